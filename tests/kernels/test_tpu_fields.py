"""`pltpu.get_tpu_info()` in code that is linted for some TPUs, and in the data that it is looked up in."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pallas_lint.compat.tpu_info import field_of
from pallas_lint.config.targets import Target, chips_of
from pallas_lint.testing import lint
from tests.rules.interpreted import python

_MEASURE = Path(__file__).parents[2] / "tools/measure/tpu_info.py"
_CODE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1.0

def block_rows():
    info = pltpu.get_tpu_info()
    return {rows}

def run():
    rows = block_rows()
    block = pl.BlockSpec((rows, 1024), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((4 * rows, 1024), jnp.float32),
    )(jnp.ones((4 * rows, 1024), jnp.float32))
"""


def messages(rows: str, target: str, jax: str = "0.12.0.1") -> list[str]:
    return [each.message for each in lint(_CODE.replace("{rows}", rows), jax, target, "PAL213")]


@pytest.mark.parametrize(
    ("rows", "on_v6e", "on_v7x"),
    [
        ("info.vmem_capacity_bytes // 4096 // 8", "64 MiB", ""),  # a quarter of VMEM twice for each of two
        ("info.mxu_column_size * 16", "64 MiB", "64 MiB"),
        ("4096 if info.generation == 6 else 512", "64 MiB", ""),
        ("4096 if info.is_lite else 512", "64 MiB", ""),
        ("info.sparse_core.num_lanes * 256", "", "64 MiB"),
        ("info.get_sublane_tiling(jnp.bfloat16) * 256", "", "64 MiB"),
        ("info.num_cores * 4096", "", ""),  # of the device, not of its chip
        ("info.something * 4096", "", ""),
    ],
)
def test_block_sizes_of_the_target(rows: str, on_v6e: str, on_v7x: str) -> None:
    for target, size in (("tpu:v6e", on_v6e), ("tpu:tpu7x", on_v7x)):
        found = messages(rows, target)
        assert [message.partition(" of VMEM")[0].rpartition("least ")[2] for message in found] == [size][: bool(size)]


def test_without_a_chip_only_what_all_have_is_known() -> None:
    assert messages("info.num_lanes * 64", "tpu")
    assert not messages("info.mxu_column_size * 32", "tpu")
    assert not messages("info.mxu_column_size * 32", "tpu:v6e", "0.8.0")  # which has no such function


def test_chips_that_agree() -> None:
    assert field_of("num_lanes", ("v5e", "tpu8t"), ("0.12.0.1",)) == (128,) == field_of("num_lanes", (), ("0.12.0.1",))
    assert field_of("mxu_column_size", ("v6e", "tpu7x"), ("0.9.0", "0.12.0.1")) == (256,)
    assert field_of("mxu_column_size", ("v5e", "v6e"), ("0.12.0.1",)) == ()
    assert field_of("sparse_core", ("v5e",), ("0.12.0.1",)) == (None,)


@pytest.mark.parametrize(
    ("version", "found"),
    [("0.8.0", ()), ("0.8.3", (4,)), ("0.9.0", ()), ("0.9.2", (2,)), ("0.10.0", (2,)), ("0.13", (2,))],
)
def test_releases_between_measured_ones(version: str, found: tuple[int, ...]) -> None:
    """Where those around it differ, it is not known."""
    assert field_of("sparse_core.num_cores", ("tpu7x",), (version,)) == found


def test_chips_of_targets() -> None:
    assert chips_of([Target("tpu", "v6e"), Target("triton"), Target("tpu", "v6e", "sparse")]) == ("v6e",)
    assert chips_of([Target("tpu", "v6e"), Target("tpu")]) == () == chips_of([])


@pytest.mark.slow
def test_the_installed_jax_has_these_values() -> None:
    code = f"import sys; sys.path.insert(0, {str(_MEASURE.parent)!r}); import tpu_info, json, jax\n"
    code += "print(json.dumps([jax.__version__, tpu_info.measure()]))"
    done = subprocess.run(
        [python(), "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"}
    )
    version, chips = json.loads(done.stdout.splitlines()[-1])
    for chip, values in chips.items():
        assert {name: field_of(name, (chip,), (version,)) for name in values} == {
            name: (value,) for name, value in values.items()
        }


def test_releases_are_added_as_steps() -> None:
    spec = importlib.util.spec_from_file_location("tpu_info", _MEASURE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data: dict[str, Any] = {"releases": [], "chips": {}}
    for release, lanes in (("1", 8), ("2", 8), ("3", 16)):
        module.measure = lambda lanes=lanes: {"v9": {"num_lanes": lanes}}
        module.add(data, release)
    assert data == {"releases": ["1", "2", "3"], "chips": {"v9": {"num_lanes": [["1", 8], ["3", 16]]}}}
