"""The safe rewritings of `pl.load` and `pl.store` give what the functions gave, bit for bit, where jax has both."""

from __future__ import annotations

import subprocess

import pytest

from pallas_lint.testing import fixed
from tests.rules import interpreted

# Plain integers among the indices do not get past the interpreter of jax 0.6.
KERNEL = """
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    x = pl.load(x_ref, (pl.ds(0, 8), slice(None)))
    y = pl.load(x_ref, (slice(0, 8), pl.dslice(0, 128)))
    z = pl.load(x_ref.at[pl.ds(0, 8)], ...)
    row = pl.load(x_ref, (jnp.int32(2), pl.ds(0, 128)))
    pl.store(o_ref, (pl.ds(0, 8), slice(None)), x * y +
             z)
    pl.store(o_ref, (jnp.int32(3), slice(None)), row)
    pl.swap(o_ref, (pl.ds(4, 1), pl.ds(0, 128)), row[None] + 1)
"""


@pytest.mark.slow
def test_loads_and_stores() -> None:
    after = fixed(KERNEL, "0.12.0", None, "PAL701")
    assert "pl.load" not in after and "pl.store" not in after and "pl.swap" not in after
    values = [0.37 * index - 100 for index in range(1024)]
    operands = [(values, (8, 128), "float32")]
    result = interpreted.run(after, operands, (8, 128), "float32")
    question = "from jax.experimental import pallas as pl; print(hasattr(pl, 'load'))"
    answer = subprocess.run(
        [interpreted.python(), "-W", "ignore", "-c", question], capture_output=True, text=True, check=True
    )
    if answer.stdout.strip() == "True":
        assert interpreted.run(KERNEL, operands, (8, 128), "float32") == result
    else:
        # This jax has only the new way: it runs, and its numbers are those of the text.
        import struct

        floats = struct.unpack("<1024f", bytes.fromhex(result))
        assert floats[3 * 128 + 5] == pytest.approx(values[2 * 128 + 5], rel=1e-6)
        assert floats[4 * 128 + 5] == pytest.approx(values[2 * 128 + 5] + 1, rel=1e-6)
