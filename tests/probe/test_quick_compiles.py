"""What an interpreter runs is compiled in a hurry where that pays, and nothing is imported for it in vain."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pallas_lint.probe import client
from tests.probe.running import HERE
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow

_SCRIPT = """
import importlib, json, sys

sys.path[:0] = sys.argv[1:]
import main

main.load_package()
environment, launches, recorder, interpret, quick_compiles = (
    importlib.import_module(f"{main.WORKER}.{name}")
    for name in ("environment", "launches.launch", "launches.recorder", "stages.interpret", "stages.quick_compiles")
)
environment.set_variables()
environment.import_jax()

import jax
from jax._src import compiler

import kernels


def launch(function, *shapes, **keywords):
    noted = recorder.LaunchRecorder()
    noted.install()
    jax.make_jaxpr(lambda *arrays: function(*arrays, **keywords))(*[jax.ShapeDtypeStruct(s, "float32") for s in shapes])
    noted.remove()
    return launches.describe(*noted.records.values())


def level():
    options = compiler.get_compile_options(1, 1)
    return options.executable_build_options.debug_options.xla_backend_optimization_level


def within(launch):
    with quick_compiles.of_launch(launch):
        return level()


def program(limit):
    return jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, limit(x), lambda _, x: x * 2, x))(jax.numpy.ones((8, 128)))


small = launch(kernels.good, (32, 128))
before, imported = level(), set(sys.modules)
given = interpret.operands(small)
(result,) = interpret.run(small, given, interpret.tpu_interpreter() or True)
print(json.dumps({
    "before": before,
    "after": level(),
    "small": within(small),
    "large": within(launch(kernels.matmul, (8192, 8192), (8192, 8192), bm=128)),
    "right": bool((result == given[0]).all()),
    "of GPUs": sorted(name for name in {*sys.modules} - imported if "mosaic_gpu" in name),
    "ten rounds": quick_compiles.numbers(program(lambda _: 10)) / quick_compiles.numbers(program(lambda _: 1)),
    "until": repr(quick_compiles.numbers(program(lambda x: x.max().astype(int)))),
}))
"""


def test_small_launches_are_compiled_in_a_hurry() -> None:
    folders = [str(client.MAIN.parent), str(HERE)]
    given = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # as users start it
    command = [python(), "-c", _SCRIPT, *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=Path("/"), env=given)
    assert not done.returncode, done.stderr
    reported = json.loads(done.stdout)
    assert reported["before"] == reported["after"] == reported["large"] > reported["small"] == 0
    assert reported["right"]
    assert reported["of GPUs"] == []
    assert 5 < reported["ten rounds"] <= 10
    assert reported["until"] == "inf"
