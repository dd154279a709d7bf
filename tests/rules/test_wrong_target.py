"""PAL112: kernels that are made for another backend than the target requested."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import {module} as plx


def kernel(x_ref, o_ref, *scratch):
    o_ref[...] = {value}


def run(x):
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), {more}
    )(x)
"""
SCRATCH = "scratch_shapes=[plx.VMEM((8, 128), jnp.float32)],"
PARAMS = "compiler_params=plx.CompilerParams(),"


def found(module: str, target: str, more: str = "", value: str = "x_ref[...]") -> list[str]:
    source = _MODULE.format(module=module, more=more, value=value)
    return [f"{f.severity.name} {f.message}" for f in lint(source, "0.12.0.1", target, "PAL112")]


@pytest.mark.parametrize(
    ("module", "target", "more", "value", "text"),
    [
        ("tpu", "triton", SCRATCH, "x_ref[...]", "WARNING `pltpu.VMEM` is for TPU: it does not run on Triton"),
        ("tpu", "mosaic-gpu", SCRATCH, "x_ref[...]", "WARNING `pltpu.VMEM` is for TPU: it does not run on Mosaic GPU"),
        (
            "tpu",
            "triton",
            "",
            "plx.roll(x_ref[...], 1, 0)",
            "WARNING `pltpu.roll` is for TPU: it does not run on Triton",
        ),
        ("triton", "tpu:v5e", "", "plx.load(x_ref)", "WARNING `plgpu.load` is for Triton: it does not run on TPU"),
        (
            "mosaic_gpu",
            "triton",
            "compiler_params=plx.CompilerParams(),",
            "x_ref[...]",
            "INFO `plgpu.CompilerParams` is for Mosaic GPU: it does not run on Triton",
        ),
        (
            "tpu",
            "triton",
            "in_specs=[pl.BlockSpec(memory_space=plx.VMEM)],",
            "plx.roll(x_ref[...], 1, 0)",
            "WARNING `pltpu.roll` is for TPU: it does not run on Triton",
        ),
        ("tpu", "triton", PARAMS, "x_ref[...]", "WARNING `pltpu.CompilerParams` is for TPU: it does not run on Triton"),
    ],
)
def test_made_for_another(module: str, target: str, more: str, value: str, text: str) -> None:
    assert found(module, target, more, value) == [f"{text}, the requested target"]


@pytest.mark.parametrize("space", ["VMEM", "HBM", "SMEM"])
def test_memory_spaces_that_triton_takes_no_account_of(space: str) -> None:
    """Lowered for H100 by jax 0.6.2, 0.9.2, 0.10.2 and 0.12.0.1, in both specs, with and without a grid."""
    more = f"in_specs=[pl.BlockSpec(memory_space=plx.{space})],"
    text = f"INFO `pltpu.{space}` is for TPU: Triton, the requested target, takes no account of it"
    assert found("tpu", "triton", more) == [text]


@pytest.mark.parametrize(
    ("target", "more"),
    [("tpu", SCRATCH), ("tpu:v5e", PARAMS), ("triton", ""), ("triton", f"{SCRATCH} interpret=True,")],
)
def test_not_reported(target: str, more: str) -> None:
    assert found("tpu", target, more) == []
