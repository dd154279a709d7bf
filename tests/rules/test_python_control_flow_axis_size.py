"""PAL502: `lax.psum` of a number is a Python number; that of an array is traced."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_CODE = """
    import jax
    from jax import lax
    from jax.experimental import pallas as pl

    def kernel(x_ref, o_ref):
        for _ in range({count}):
            o_ref[...] = x_ref[...]

    def run(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)
"""


@pytest.mark.parametrize(("count", "flagged"), [("lax.psum(1, 'x')", False), ("lax.psum(x_ref[0, 0], 'x')", True)])
def test_psum(count: str, flagged: bool) -> None:
    assert bool(lint(_CODE.format(count=count), select="PAL502")) is flagged
