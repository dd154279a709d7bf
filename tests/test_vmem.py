"""`pallas_lint.vmem`: the sum that PAL213 checks, for libraries."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint import vmem
from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.kernels.facts.memory_budget import budgets_of
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.text.source import Source
from tests.sampling import examples

_NUMPYS = SimpleNamespace(name="float32")  # `np.dtype("float32")`
_NUMPYS_CLASS = type("float32", (), {"dtype": property(lambda self: _NUMPYS)})  # `np.float32`
_JAXS = SimpleNamespace(dtype=_NUMPYS)  # `jnp.float32`
_CODE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref, acc_ref):
    o_ref[...] = x_ref[...].astype(o_ref.dtype) + acc_ref[0, 0]

def run():
    x = jnp.zeros(({rows} * 4, {lanes}), jnp.{dtype})
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec(({rows}, {lanes}), lambda i: (i, 0))],
        out_specs=pl.BlockSpec(({rows}, {lanes}), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(({rows} * 4, {lanes}), jnp.float32),
        scratch_shapes=[pltpu.VMEM(({rows}, 128), jnp.float32)],
    )(x)

run()
"""


@examples(100)
@given(
    rows=st.sampled_from([1, 2, 5, 8, 16, 24, 100, 512]), lanes=st.sampled_from([1, 64, 128, 300, 1024]),
    dtype=st.sampled_from(["float32", "bfloat16", "int8"]), sublanes=st.sampled_from([("v5e", 8), ("tpu8t", 16)]),
)  # fmt: skip
def test_as_the_linter_counts(rows: int, lanes: int, dtype: str, sublanes: tuple[str, int]) -> None:
    chip, count = sublanes
    code = _CODE.format(rows=rows, lanes=lanes, dtype=dtype)
    analysis = analyse(ModuleGraph().add(Source("example.py", code), None), ("0.12.0.1",))
    blocks = [((rows, lanes), dtype), ((rows, lanes), "f32")]
    counted = vmem.usage(blocks, scratch=[((rows, 128), _JAXS)], chip=chip)
    assert {budgets_of(launch, analysis, count)[0].total for launch in analysis.launches} == {counted}


def test_tiles_are_filled_up() -> None:
    assert vmem.usage([((8, 128), "float32")]) == 2 * 8 * 128 * 4
    assert vmem.usage([((512, 64), "bf16")], buffers=1) == 512 * 128 * 2
    assert vmem.usage([], scratch=[((5, 128), _NUMPYS)]) == 8 * 128 * 4
    assert vmem.usage([((8, 128), _NUMPYS_CLASS)], buffers=1) == 8 * 128 * 4


def test_limits() -> None:
    assert (vmem.capacity("v5e"), vmem.default_limit("v5e")) == (128 << 20, 16 << 20)
    with pytest.raises(ValueError, match="not known"):
        vmem.default_limit("tpu8i")
    with pytest.raises(ValueError, match="there are v4"):
        vmem.capacity("v3")


@pytest.mark.parametrize("dtype", ["float33", "datetime64[s]", object()])
def test_a_dtype_that_is_none(dtype: object) -> None:
    with pytest.raises(ValueError, match="unknown dtype"):
        vmem.usage([((8, 128), dtype)])


class _NumpysInteger:
    """An integer without the methods of Python's, as numpy 1 has them."""

    def __index__(self) -> int:
        return 8


def test_sizes_are_integers_of_any_kind_and_not_negative() -> None:
    assert vmem.usage([((_NumpysInteger(), 128), "float32")]) == vmem.usage([((8, 128), "float32")])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="negative size"):
        vmem.usage([((-8, 128), "float32")])
