"""PAL424: what becomes of elements that a mask leaves out."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint

CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

def kernel(x_ref, o_ref):
    index = jnp.arange(SIZE)
    mask = index < BOUND
    x = plgpu.load(x_ref.at[index], mask=maskOTHER)
    plgpu.store(o_ref.at[index], BODY, mask=mask)

def run(x, n=1000):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((None, 1000), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((None, 1000), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((4, 1000), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
"""


def found(body: str, size: str = "1024", bound: str = "1000", other: str = "") -> list[Severity]:
    code = CODE.replace("SIZE", size).replace("BOUND", bound).replace("OTHER", other).replace("BODY", body)
    return [finding.severity for finding in lint(code, target="triton", select="PAL424")]


@pytest.mark.parametrize(
    "body", ["x / jnp.sum(x)", "x - x.max()", "x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2 + x * x))"]
)
def test_elements_that_are_mixed_in(body: str) -> None:
    assert found(body) == [Severity.WARNING]


@pytest.mark.parametrize(
    ("body", "keywords"),
    [
        ("x * 2", {}),
        ("x / jnp.sum(x)", {"other": ", other=0.0"}),
        ("x / jnp.sum(jnp.where(mask, x, 0))", {}),
        ("x / jnp.sum(x * mask)", {}),
        ("x / jnp.sum(x, where=mask)", {}),
        ("x / jnp.sum(x)", {"bound": "1024"}),  # it leaves nothing out
    ],
)
def test_elements_that_stay_where_they_are(body: str, keywords: dict[str, str]) -> None:
    assert found(body, **keywords) == []
