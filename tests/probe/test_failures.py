"""What keeps a function from being judged, in the words of who has to mend it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.compat import newest
from pallas_lint.probe.messages import sentence, without_internals, wrong_flags
from pallas_lint.probe.reasons import why
from pallas_lint.probe.results import LaunchResult, ProbeResult, Stage, newer_than_known
from pallas_lint.probe.worker.stages import interpret
from tests.probe.running import run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
import os
import sys
import threading

import jax
from jax.experimental import pallas as pl

if os.environ.get("ENDS"):
    sys.exit(3)


def double(x, x64=False):
    jax.config.update("jax_enable_x64", x64)
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, grid=(x.shape[0] // 8,), in_specs=[block], out_specs=block, out_shape=shape)(x)


async def later(x):
    return double(x)


def parts(x):
    yield double(x)


class Layer:
    def apply(self, x):
        return double(x)


class Several(Exception):
    exceptions = [ValueError("tile 7 does not fit"), TypeError("no")]


def threaded(x):
    made = []

    def work():
        raise ValueError("tile 3 does not fit")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return made[0]


def group(x):
    raise Several("all implementations failed (2 sub-exceptions)")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "env", "phrase"),
    [
        ("double", {"ENDS": "1"}, "the process ended itself with status 3 while its file was imported"),
        ("double", {"XLA_FLAGS": "--bogus"}, "Unknown flag in XLA_FLAGS: --bogus"),
        ("later", {}, "`later` is async: probe a function"),
        ("parts", {}, "`parts` is a generator: probe a function"),
        ("Layer.apply", {}, "`Layer.apply` is a method: have the file make an instance"),
    ],
)
def test_what_cannot_be_called(tmp_path: Path, function: str, env: dict[str, str], phrase: str) -> None:
    (tmp_path / "k.py").write_text(FILE)
    done = run(f"k.py::{function}", "f32[8,128]", "--python", python(), "--stage", "grid", cwd=tmp_path, env=env)
    assert done.returncode == 2 and phrase in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["k.py::threaded", "f32[8,128]"], "does not trace: a thread raised ValueError: tile 3 does not fit"),
        (["k.py::group", "f32[8,128]"], "does not trace: tile 7 does not fit"),
        (["k.py::double", "f32[10000000,1024]"], "interpret: too large: its operands and results take 76.29 GiB"),
        (
            ["k.py::double", "f32[8,128]", "x64=True"],
            "does not compile for tpu: an index map returns a 64-bit integer, which TPUs do not have",
        ),
    ],
)
def test_what_is_wrong_in_words(tmp_path: Path, arguments: list[str], phrase: str) -> None:
    (tmp_path / "k.py").write_text(FILE)
    stage = ["--target", "tpu:v5e"] if "x64=True" in arguments else ["--stage", "interpret"]
    assert phrase in run(*arguments, "--python", python(), *stage, cwd=tmp_path).stdout


HIDES_LIBTPU = """
from importlib import metadata

known = metadata.version


def version(name):
    if name.startswith("libtpu"):
        raise metadata.PackageNotFoundError(name)
    return known(name)


metadata.version = version
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "phrase"),
    [(True, "libtpu is installed, but does not load: "), (False, "needs libtpu in that environment")],
)
def test_a_compiler_that_is_not_there(tmp_path: Path, broken: bool, phrase: str) -> None:
    (tmp_path / "k.py").write_text(FILE)
    (tmp_path / "libtpu.so").write_text("no library")
    (tmp_path / "sitecustomize.py").write_text("" if broken else HIDES_LIBTPU)
    env = {"PYTHONPATH": str(tmp_path), "TPU_LIBRARY_PATH": str(tmp_path / "libtpu.so") if broken else ""}
    words = ("--target", "tpu:v5e", "--stage", "compile", "--skip", "interpret,checks", "--strict")
    done = run("k.py::double", "f32[8,128]", "--python", python(), *words, cwd=tmp_path, env=env)
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 2 and "1 stage not judged: compile for tpu:v5e of `kernel`: " in last and phrase in last


def test_an_unknown_jax() -> None:
    results = [ProbeResult(None, parts={"jax": version}) for version in ("0.10.2", "99.1.0", "99.1.0")]
    assert newer_than_known(results) == [f"jax 99.1.0 is newer than {newest()}, the newest version known"]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "status"), [("raise SystemExit(3)", 2), ("pass", 0)])
def test_a_captured_program_that_fails(tmp_path: Path, program: str, status: int) -> None:
    done = run("--capture", "--", sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == status
    assert ("the program ended with status 3" in done.stderr) == bool(status)


@pytest.mark.parametrize("name", ["nb.ipynb::run", "nb.ipynb"])
def test_notebooks(tmp_path: Path, name: str) -> None:
    (tmp_path / "nb.ipynb").write_text("{}")
    done = run(name, cwd=tmp_path)
    assert done.returncode == 2 and "notebooks are not probed" in done.stderr


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("writing HostAllocationKey(memory_space_id=1, at=(2, 3), buffer_id=103)[0, 4]", "writing a buffer[0, 4]"),
        ("<jax._src.debugging.OrderedIOEffect object at 0x7fbc01> is left", "an ordered effect is left"),
        (
            "checkify: Shapes must be 1D sequences of concrete values of integer type, got (JitTracer(int32[]), 128).",
            "checkify: how much is read or copied depends on data",
        ),
        (
            "shapes must be concrete, got (JitTracer(int32[]), 128)",
            "shapes must be concrete, got (a traced int32[], 128)",
        ),
        ("got JitTracer<float32[8,128]>", "got a traced float32[8,128]"),
        ("checks: safe_zip() argument 1 has length 0", "checks: jax fails with an error about its own structures"),
        ("Too many leaves for PyTreeDef; expected 1", "jax fails with an error about its own structures"),
        ("a block of (8, 128) at o_ref[0:8]", "a block of (8, 128) at o_ref[0:8]"),
    ],
)
def test_what_is_inside_of_jax_stays_there(text: str, left: str) -> None:
    assert without_internals(text) == left


def test_long_messages_end_at_a_word() -> None:
    assert sentence({"kind": "raised", "message": "value " * 100}).endswith("value …")  # type: ignore[typeddict-unknown-key]


def test_other_output_names_no_flags() -> None:
    assert (
        wrong_flags("warning\nF1125 1 parse.cc:234] Unknown flag in XLA_FLAGS: --x\n")
        == "Unknown flag in XLA_FLAGS: --x"
    )
    assert wrong_flags("nothing\n") == ""


def test_a_race_in_words() -> None:
    """An interpreter names threads and buffers as it numbers them itself."""
    sides = [
        {"access": access, "file": "/k.py", "line": line, "column": 1} for access, line in (("write", 3), ("read", 5))
    ]
    message = "write of ('hbm', 101, 0, 0) from Warpgroup(device_id=0, cluster=0)"
    race: Any = {"kind": "race", "message": message, "places": [], "sides": sides}
    facts: Any = {"axes": {}, "reads": [], "backend": "mosaic_gpu", "kernel": "k", "place": None}
    stage = Stage("interpret", None, False, problems=[race])
    words = "two accesses of one buffer race: a write in line 3 and a read in line 5"
    assert why(LaunchResult(facts, [stage]), stage) == words


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Out-of-bounds read of (0 0 any 100): reading [16:20] but buffer has shape (16,)", "out-of-bounds"),
        ("an input is missing. Equation: while[params=InterpretParams(out_of_bounds_reads='raise')]", "raised"),
    ],
)
def test_what_the_interpreter_raises(message: str, kind: str) -> None:
    """A program that jax prints has the names of the interpreter's parameters in it."""
    assert interpret.raised(ValueError(message))["kind"] == kind
