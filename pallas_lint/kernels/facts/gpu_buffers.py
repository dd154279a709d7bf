"""Buffer declarations of a Mosaic GPU kernel: transforms, and the buffer behind a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.trace import Access, Op, refs_in
from pallas_lint.kernels.model.values import NONE, CallResult, Ref, Seq

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.trace import KernelTrace

SWIZZLES = (32, 64, 128)  # bytes of a row that are permuted together


def whole(ref: Ref) -> Ref | None:
    """The buffer of which a ref is a part, cut out by indices alone; None for views that show it in another way."""
    while ref.view:
        if ref.parent is None:
            return None
        ref = ref.parent
    return ref


def buffers(trace: KernelTrace) -> Iterator[Ref]:
    """The buffers that a kernel is seen to get or use, each once, with what declares them."""
    seen: set[tuple[str, object]] = set()
    for ref in _met(trace):
        buffer = whole(ref)
        if buffer is not None and buffer.declared is not None and buffer.buffer not in seen:
            seen.add(buffer.buffer)
            yield buffer


def _met(trace: KernelTrace) -> Iterator[Ref]:
    yield from trace.refs
    for event in trace.events:
        if isinstance(event, Access):
            yield event.ref
        elif isinstance(event, Op):
            for value in (*event.args, *(value for _, value in event.keywords)):
                yield from refs_in(value)


def transforms(buffer: Ref) -> tuple[CallResult, ...] | None:
    """The transforms that a buffer is declared with; None where they are not known."""
    if buffer.declared is None:
        return None
    given = buffer.declared.argument("transforms")
    if given in (None, NONE):
        return None if buffer.declared.open else ()
    if not isinstance(given, Seq) or given.open:
        return None
    found = tuple(item for item in given.items if isinstance(item, CallResult))
    return found if len(found) == len(given.items) else None


def tiling(transform: CallResult) -> tuple[int, ...] | None:
    """The tile of a `TilingTransform`, where all of it is known."""
    tile = transform.argument("tiling", 0) if transform.short == "TilingTransform" else None
    sizes = [integer(item) for item in tile.items] if isinstance(tile, Seq) and not tile.open else [None]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def swizzle(transform: CallResult) -> int | None:
    """The bytes of a `SwizzleTransform`."""
    return integer(transform.argument("swizzle", 0)) if transform.short == "SwizzleTransform" else None


def elements(number: int, dtype: str) -> int:
    """The number of elements in a number of bytes."""
    return number * 8 // bits(dtype)
