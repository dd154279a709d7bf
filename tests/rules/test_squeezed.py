"""`pl.squeezed` and `pl.Squeezed()` are read as the `None` that they stand for, by all rules that look at blocks."""

from __future__ import annotations

import pytest

from pallas_lint.testing import codes, lint

CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    {body}

def run():
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec(({squeezed}, 8, 128), lambda i: (i, 0, 0))],
        out_specs=pl.BlockSpec((128, 8), lambda i: (0, i)),
        out_shape=jax.ShapeDtypeStruct((128, 32), jnp.int8),
        compiler_params=pltpu.CompilerParams(),
    )(jnp.zeros((4, 8, 128), jnp.int8))
"""


@pytest.mark.parametrize("squeezed", ["None", "pl.squeezed", "pl.Squeezed()"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("o_ref[...] = x_ref[...].reshape(128, 8).T.T", "PAL202"),
        ("o_ref[0:8, :] = x_ref[pl.ds(0, 16), :]", "PAL412"),
    ],
)
def test_squeezed_dimensions(squeezed: str, body: str, code: str) -> None:
    assert code in codes(lint(CODE.format(squeezed=squeezed, body=body), jax="0.10.2", target="tpu"))
