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

_STARTED = {
    f"{PALLAS}.{module}{name}" for module in ("", "tpu.") for name in ("async_copy", "async_remote_copy", "sync_copy")
}


def started_by(op: Op) -> Op | CallResult | None:
    """What describes the copy that an operation starts; a wait may be described with others of the same size."""
    if op.name in _STARTED:
        return op
    name, _, method = op.name.rpartition(".")
    descriptor = op.args[0] if method == "start" and name in LOCAL | REMOTE and op.args else None
    return descriptor if isinstance(descriptor, CallResult) else None


def unequal_ends(copy: Op | CallResult) -> str | None:
    """How its ends differ, whatever the sizes that are not known; None where they may be alike."""
    source = copy.argument("src_ref", 0) or copy.argument("src", 0)
    target = copy.argument("dst_ref", 1) or copy.argument("dst", 1)
    return _difference(source, target) if isinstance(source, Ref) and isinstance(target, Ref) else None


def _difference(source: Ref, target: Ref) -> str | None:
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
