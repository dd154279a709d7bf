"""Loads and stores by indices and masks on a vector subcore: `plsc.load_gather`, `store_compressed` and their like.

Traced and lowered for v6e and v7x with jax 0.12.0.1; the checks are the same in 0.10.2 and 0.11.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.memory_spaces import tpu_space
from pallas_lint.kernels.model.dtypes import is_float
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.values import NONE, Array, Const, Ref, Seq, Slice, Value, as_tuple

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Access, Op

_SC = f"{PALLAS}.tpu_sc"
_BY_INDICES = frozenset(f"{_SC}.{name}" for name in ("load_gather", "store_scatter", "addupdate_scatter"))
_BY_MASK = frozenset(f"{_SC}.{name}" for name in ("load_expanded", "store_compressed", "addupdate_compressed"))
ACCESSES = _BY_INDICES | _BY_MASK | {f"{_SC}.addupdate"}
_FAR = {"any": "HBM", "hbm": "HBM", "vmem_shared": "VMEM_SHARED", "smem": "SMEM"}
Problem = tuple[str, str]  # what is refused, and what to do


def far_access(op: Op, launch: Launch) -> tuple[Ref, str] | None:
    """The ref and its memory, where that is another one than VMEM."""
    ref = op.argument("ref", 0) or op.argument("x_ref", 0)
    space = _FAR.get(tpu_space(ref.root, launch) or "") if isinstance(ref, Ref) else None
    return (ref, space) if space is not None and isinstance(ref, Ref) else None


def access_problem(op: Op) -> Problem | None:
    """What is wrong with the indices, the mask or the value of such an access."""
    ref, mask = op.argument("ref", 0), op.argument("mask")
    if not isinstance(ref, Ref):
        return None
    count = None
    if op.name in _BY_INDICES:
        if ref.dtype not in (None, "f32", "i32"):
            return f"`{ref.parameter}` of {ref.dtype}: indices take numbers of 32 bits", "bitcast it to int32 before"
        indices = op.argument("indices", 1)
        items = indices.items if isinstance(indices, Seq) and not indices.open else None
        problem = None if items is None else _indices(ref, items)
        if problem is not None:
            return problem
        shapes = [_shape(item) for item in items or ()]
        count = next((shape for shape in shapes if shape is not None), None)
    else:
        count = _numbers(ref.shape) if op.name not in (f"{_SC}.load_expanded",) else None
    if isinstance(mask, Array) and mask.dtype not in (None, "bool"):
        return f"a mask of {mask.dtype}, where booleans are taken", "compare: `mask=values > 0`"
    value = op.argument("x", 2 if op.name in _BY_INDICES else 1)
    if not isinstance(value, Array):
        return None
    if None not in (value.dtype, ref.dtype) and value.dtype != ref.dtype and not value.weak:
        return (
            f"a value of {value.dtype} for `{ref.parameter}` of {ref.dtype}",
            f"convert it: `.astype({ref.parameter}.dtype)`",
        )
    shape = _shape(value)
    if count is not None and shape is not None and shape != count:
        return f"a value of {shape}, where {count} is stored", "take as many numbers of both"
    return None


def strides(access: Access) -> int | None:
    """The step of a slice that takes not every number: a subcore has no such loads and stores."""
    parts = as_tuple(access.index)
    for part in parts:
        step = part.step if isinstance(part, Slice) else None
        if isinstance(step, Const) and isinstance(step.value, int) and step.value > 1:
            return step.value
    return None


def _indices(ref: Ref, items: tuple[Value, ...]) -> Problem | None:
    if ref.rank is not None and len(items) != ref.rank:
        return (
            f"{len(items)} vectors of indices for the {ref.rank} dimensions of `{ref.parameter}`",
            "give a vector for each dimension",
        )
    if any(isinstance(item, Const) and item != NONE for item in items) or any(_shape(item) == () for item in items):
        return "a number among the indices, which are vectors", "`jnp.full((n,), i)` repeats a number"
    floats = next((item.dtype for item in items if isinstance(item, Array) and is_float(item.dtype or "")), None)
    if floats is not None:
        return f"indices of {floats}, where 32-bit integers are taken", "convert them: `.astype(jnp.int32)`"
    shapes = {shape for item in items if (shape := _shape(item)) is not None}
    if len(shapes) > 1:
        sizes = " and ".join(str(shape[0]) for shape in sorted(shapes) if shape)
        return f"vectors of {sizes} indices", "take as many of each dimension"
    return None


def _shape(value: Value) -> tuple[int, ...] | None:
    return _numbers(value.shape) if isinstance(value, Array) else None


def _numbers(shape: object) -> tuple[int, ...] | None:
    if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
        return None
    return shape
