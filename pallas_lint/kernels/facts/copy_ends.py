"""Asynchronous copies on TPU whose two ends differ: they neither cast nor reshape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.agreements import shapes_differ
from pallas_lint.kernels.facts.copies import LOCAL, REMOTE
from pallas_lint.kernels.model.dtypes import canonical
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.values import CallResult, Ref, spelled_shape

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import Op

_AT_ONCE = {f"{PALLAS}.{name}" for name in ("async_copy", "async_remote_copy", "sync_copy")}
_STARTED = _AT_ONCE | {f"{PALLAS}.tpu.{name}" for name in ("async_copy", "async_remote_copy", "sync_copy")}


def ends_of_start(op: Op) -> tuple[Ref, Ref] | None:
    """Source and destination where an operation starts a copy; a wait may be made of others of the same size."""
    made: Op | CallResult = op
    if op.name not in _STARTED:
        name, _, method = op.name.rpartition(".")
        descriptor = op.args[0] if method == "start" and name in LOCAL | REMOTE and op.args else None
        if not isinstance(descriptor, CallResult):
            return None
        made = descriptor
    source = made.argument("src_ref", 0) or made.argument("src", 0)
    target = made.argument("dst_ref", 1) or made.argument("dst", 1)
    return (source, target) if isinstance(source, Ref) and isinstance(target, Ref) else None


def unequal_ends(source: Ref, target: Ref) -> str | None:
    """How they differ, whatever the sizes that are not known; None where they may be alike."""
    one, other = _held(source), _held(target)
    if one is not None and other is not None and one != other:
        return f"{source.dtype} is copied to `{target.parameter}`, which holds {target.dtype}: copies do not cast"
    if source.shape is None or target.shape is None:
        return None
    ranks = _is_whole(source) and _is_whole(target) and len(source.shape) != len(target.shape)
    if not ranks and not shapes_differ(source.shape, target.shape):
        return None
    before, after = map(spelled_shape, (source.shape, target.shape))
    return f"shape {before} is copied to {after} of `{target.parameter}`: copies neither reshape nor broadcast"


def _held(ref: Ref) -> str | None:
    """The dtype as compilers see it: integers have no sign; None where it is not known."""
    dtype = ref.dtype and canonical(ref.dtype)
    if not isinstance(dtype, str) or dtype in ("bool", "semaphore"):
        return None
    return f"i{dtype[1:]}" if dtype[0] == "u" else dtype


def _is_whole(ref: Ref) -> bool:
    """Whether it is of no block, of which a dimension may be None: of scratch, or of an array that stays in HBM."""
    return ref.role == "scratch" or ref.space in ("any", "hbm")
