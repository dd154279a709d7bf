"""Targets that jax lowers for and no libtpu compiles for: TPU 8i, and 8t with its sixteen sublanes."""

from __future__ import annotations

import json
import subprocess

import pytest

from pallas_lint.compat.chips import CHIPS, knowing, sublanes
from pallas_lint.finding import Severity
from pallas_lint.kernels.facts.memory_budget import padded_bytes
from pallas_lint.testing import lint, settings
from tests.rules.interpreted import python
from tests.rules.kernels import launch

NEW = ("tpu8i", "tpu8t")

BLOCKS = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def run():
    x = jnp.ones({array}, jnp.float32)
    block = pl.BlockSpec({block}, lambda i: {index})
    out = jax.ShapeDtypeStruct({array}, jnp.float32)
    return pl.pallas_call(
        kernel, grid=(4,), in_specs=[block], out_specs=block, out_shape=out, compiler_params=pltpu.CompilerParams()
    )(x)
"""


def severities(code: str, rule: str, device: str, version: str = "0.12.0.1") -> set[Severity]:
    return {found.severity for found in lint(code, version, f"tpu:{device}", rule)}


@pytest.mark.parametrize("device", NEW)
def test_what_does_not_lower_is_an_error(device: str) -> None:
    code = launch("o_ref[...] = jnp.cumsum(x_ref[...], axis=1)", "tpu")
    assert severities(code, "PAL101", device) == {Severity.ERROR}


@pytest.mark.parametrize(("device", "expected"), [("v6e", Severity.ERROR), *((new, Severity.WARNING) for new in NEW)])
def test_refusals_of_a_compiler_are_less_severe_where_none_was_run(device: str, expected: Severity) -> None:
    code = launch("x = x_ref[...].astype(jnp.bfloat16)\no_ref[...] = jnp.mod(x, x).astype(jnp.float32)", "tpu")
    assert severities(code, "PAL104", device) == {expected}


@pytest.mark.parametrize(("device", "refused"), [("v6e", False), ("tpu8i", False), ("tpu8t", True)])
def test_vectors_come_in_registers(device: str, refused: bool) -> None:
    """3072 numbers are three registers of 8 sublanes, and one and a half of 16."""
    code = BLOCKS.format(array="(12288,)", block="(3072,)", index="(i,)")
    assert severities(code, "PAL201", device) == ({Severity.ERROR} if refused else set())


@pytest.mark.parametrize(("device", "reported"), [("v6e", False), ("tpu8i", False), ("tpu8t", True)])
def test_rows_that_fill_a_part_of_a_tile(device: str, reported: bool) -> None:
    code = BLOCKS.format(array="(32, 128)", block="(8, 128)", index="(i, 0)")
    assert severities(code, "PAL201", device) == ({Severity.INFO} if reported else set())


def test_padding_queries_the_device() -> None:
    assert [padded_bytes((9, 128), "f32", sublanes(device)) >> 10 for device in (None, "tpu8i", "tpu8t")] == [8, 8, 8]
    assert [padded_bytes((17, 128), "f32", sublanes(device)) >> 10 for device in (None, "tpu8t")] == [12, 16]


@pytest.mark.parametrize(("device", "last_without"), [("tpu8i", "0.10.1"), ("tpu8t", "0.11.0")])
def test_older_jax_is_not_judged(device: str, last_without: str) -> None:
    code = launch("o_ref[...] = jnp.cumsum(x_ref[...], axis=1)", "tpu")
    since = CHIPS[device].since
    assert since is not None
    assert severities(code, "PAL101", device, last_without) == set()
    assert severities(code, "PAL101", device, since) == {Severity.ERROR}
    note = f"jax {last_without} has no {device}, which came with {since}: "
    assert settings(last_without, f"tpu:{device}").jax.note == f"{note}nothing is judged for it"
    some = settings(f">={last_without},<=0.12.0", f"tpu:{device}").jax
    assert some.note == f"{note}judged from {since} on"
    assert knowing(device, some.versions)[0] == since


_ASK = """
import json
try:
    from jax._src import tpu_info
except ImportError:
    from jax._src.pallas.mosaic import tpu_info
found = {}
for kind in ("TPU v4", "TPU v5e", "TPU v5p", "TPU v6e", "TPU7x", "TPU8i", "TPU8t"):
    version = tpu_info.chip_version_from_device_kind(kind)
    if version is not None:
        info = tpu_info.get_tpu_info_for_chip(version, 1)
        name = kind.removeprefix("TPU ").replace("TPU", "tpu")
        found[name] = [info.generation, info.vmem_capacity_bytes, info.num_sublanes]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_table_is_that_of_jax() -> None:
    done = subprocess.run([python(), "-c", _ASK], capture_output=True, text=True, check=True)
    of_jax = json.loads(done.stdout)
    assert {"v4", "v5e", "v5p", "v6e", "tpu7x"} <= of_jax.keys()
    for device, (generation, vmem, rows) in of_jax.items():
        chip = CHIPS[device]
        assert (chip.generation, chip.vmem, chip.sublanes) == (generation, vmem, rows), device
