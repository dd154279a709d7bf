"""Dtypes and shapes of operands that only the code around a launch shows."""

from __future__ import annotations

import pytest

from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.kernels.model.values import Array, Value
from pallas_lint.text.source import Source

MODULE = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run(x, other):
    {line}
    rows, columns = x.shape
    spec = pl.BlockSpec((rows, columns), lambda i: (0, 0))
    return pl.pallas_call(kernel, grid=(1,), in_specs=[spec], out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def operand(line: str) -> Value:
    (launch,) = analyse(ModuleGraph().add(Source("k.py", MODULE.format(line=line)), None), ("0.10.2",)).launches
    assert launch.operands is not None
    return launch.operands[0]


@pytest.mark.parametrize("dtype", ["jnp.bfloat16", "'bfloat16'", "dtype=jnp.bfloat16"])
def test_dtype_of_a_conversion(dtype: str) -> None:
    value = operand(f"x = x.astype({dtype})")
    assert isinstance(value, Array)
    assert (value.dtype, value.rank) == ("bf16", 2)  # that of x, which is unpacked


@pytest.mark.parametrize("line", ["x = x.astype(np.float32)", "x = x.astype(other)"])
def test_what_may_be_anything(line: str) -> None:
    assert not isinstance(operand(line), Array)


def test_converted_value_keeps_the_shape() -> None:
    (launch,) = analyse(
        ModuleGraph().add(Source("k.py", MODULE.format(line="y = x; x = x.astype(jnp.int8)")), None), ("0.10.2",)
    ).launches
    assert "x.shape[0]" in repr(launch.argument("in_specs"))


@pytest.mark.parametrize(
    ("line", "dtype"),
    [("pass", None), ("assert x.dtype == jnp.bfloat16", "bf16"), ("if x.dtype != 'int8': raise", "i8")],
)
def test_unpacking_a_shape_gives_the_rank_and_a_guard_the_dtype(line: str, dtype: str | None) -> None:
    value = operand(line)
    assert isinstance(value, Array)
    assert (value.rank, value.dtype) == (2, dtype)


def test_a_guard_gives_the_rank() -> None:
    module = MODULE.replace("rows, columns = x.shape", "rows, columns = n, m").format(line="assert x.ndim == 3")
    (launch,) = analyse(ModuleGraph().add(Source("k.py", module), None), ("0.10.2",)).launches
    assert launch.operands is not None
    assert isinstance(launch.operands[0], Array)
    assert launch.operands[0].rank == 3
