"""PAL502: sizes that `jax.jit` traces."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint

CODE = """\
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref, *scratch):
    o_ref[...] = x_ref[...] * 2

DECORATOR
def run(x, block=128, parts=4):
    spec = pl.BlockSpec(BLOCK, lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(GRID,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(SHAPE, x.dtype),
        scratch_shapes=[pltpu.VMEM(SCRATCH, x.dtype)],
    )(x)

CALL
"""
PARAMETERS = next(number for number, line in enumerate(CODE.splitlines(), 1) if line.startswith("def run"))


def found(
    call: str, decorator: str = "@jax.jit", block: str = "(block, 128)", grid: str = "4", shape: str = "x.shape",
    scratch: str = "(8, 128)",
) -> list[Severity]:  # fmt: skip
    code = CODE.replace("DECORATOR", decorator).replace("CALL", call).replace("BLOCK", block).replace("GRID", grid)
    findings = lint(code.replace("SHAPE", shape).replace("SCRATCH", scratch))
    assert all(finding.span.start.line == PARAMETERS for finding in findings if "is traced" in finding.message)
    return [finding.severity for finding in findings if finding.code == "PAL502"]


PASSED = "run(jnp.ones((512, 128)), 128)"


@pytest.mark.parametrize(
    "keywords",
    [
        {"block": "(block, 128)"},
        {"block": "(512 // parts, 128)", "call": "run(jnp.ones((512, 128)), parts=4)"},
        {"block": "(128, 128)", "shape": "(4 * block, 128)"},
        {"block": "(128, 128)", "scratch": "(block, 128)"},
        {"decorator": '@functools.partial(jax.jit, static_argnames="parts")'},
        {"decorator": "@functools.partial(jax.jit, static_argnums=2)"},
    ],
)
def test_a_traced_size(keywords: dict[str, str]) -> None:
    assert found(keywords.pop("call", PASSED), **keywords) == [Severity.ERROR]


@pytest.mark.parametrize(
    "keywords",
    [
        {"call": "run(jnp.ones((512, 128)))"},  # a default is no argument of what is jitted
        {"decorator": ""},
        {"decorator": '@functools.partial(jax.jit, static_argnames=("block", "parts"))'},
        {"decorator": "@functools.partial(jax.jit, static_argnums=(1,))"},
        {"decorator": "@functools.partial(jax.jit, static_argnums=NUMBERS)"},
        {"block": "(128, 128)", "grid": "parts", "call": "run(jnp.ones((512, 128)), 128, 4)"},  # dynamic grids lower
        {"block": "(x.shape[0] // 4, 128)"},
        {"decorator": "", "call": "jax.jit(functools.partial(run, block=128))(jnp.ones((512, 128)))"},
    ],
)
def test_a_size_that_is_known_while_tracing(keywords: dict[str, str]) -> None:
    assert found(keywords.pop("call", PASSED), **keywords) == []
