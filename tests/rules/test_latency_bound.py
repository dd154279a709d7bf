"""PAL801 on Triton: programs that each work on a single element."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def kernel(x_ref, o_ref):
    o_ref[{index}] = x_ref[{index}] * 2


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        {specs}grid=({grid},),
        compiler_params=plgpu.CompilerParams(),
    )(x)


run(jnp.ones({size}))
"""
ONE = "pl.program_id(0)"


def found(index: str, size: int, block: int | None = None, per_program: int = 1) -> list[tuple[str, int]]:
    spec = f"pl.BlockSpec(({block},), lambda i: (i,))"
    specs = "" if block is None else f"in_specs=[{spec}], out_specs={spec}, "
    code = _MODULE.format(index=index, specs=specs, grid=size // per_program, size=size)
    return [(f.severity.name, f.span.start.line) for f in lint(code, "0.12.0.1", "triton", "PAL801")]


@pytest.mark.parametrize(("size", "severity"), [(1 << 20, "WARNING"), (1 << 16, "INFO")])
@pytest.mark.parametrize(("index", "block"), [(ONE, None), ("...", 1)])
def test_a_program_for_each_element(size: int, severity: str, index: str, block: int | None) -> None:
    assert found(index, size, block) == [(severity, 15)]


def test_few_programs_and_blocks() -> None:
    assert found(ONE, 1 << 12) == found("...", 1 << 20, 1024, 1024) == []
