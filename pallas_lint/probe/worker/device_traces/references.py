"""References of a kernel: buffers, and the parts of them that transforms select."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...interleaving.events import Kind, Region, Semaphore


class UnknownValue:
    """A value that depends on data: on those of an operand of the launch, where that is known."""

    def __init__(self, operand: str | None = None) -> None:
        self.operand = operand

    def __repr__(self) -> str:
        return "?"


UNKNOWN = UnknownValue()


class Unmodelled(Exception):
    """Code that cannot be followed; the message is a phrase that names it, with its place.

    `data` is the value that would have to be known.
    """

    def __init__(self, message: str, place: Any = None, data: UnknownValue = UNKNOWN) -> None:
        super().__init__(message)
        self.place = place
        self.data = data

    @property
    def way_out(self) -> str:
        """What the user can do about it, as the end of a sentence."""
        operand = self.data.operand
        return "" if operand is None else f'; `{operand}` decides: give its argument values, as in "i32[4]=[1,2,3,0]"'


def first_unknown(values: Iterable[Any]) -> UnknownValue | None:
    """The first of some values that is not known, of those on operands if there are any; None where all are known."""
    unknown = [value for value in values if isinstance(value, UnknownValue)]
    return max(unknown, key=lambda value: value.operand is not None, default=None)


_ONE_BUFFER = ("MemorySpaceCastTransform", "AccessAssumptionTransform", "UnswizzleRef", "SwizzleTransform")
_TRANSPOSED = ("TransposeTransform", "RefTransposer", "TransposeRef")
_UNTILED = ("UntilingTransform", "UntileRef")


@dataclass(eq=False)
class Buffer:
    """An array that references are made of. `values`: of one that holds integers which may steer the kernel."""

    key: Hashable  # the same on every device
    name: str
    shape: tuple[int, ...]
    itemsize: int  # bytes; of sub-byte types one
    space: str  # "vmem", "smem", "any", "hbm", ...
    semaphore: Kind | None
    home: int
    values: Any = None  # an object array of numbers, and of UnknownValue
    moves: bool = False  # whether the pipeline gives it other memory from one grid point to the next
    barrier: Any = None  # what a barrier of a GPU is declared as, jax's type
    entry: int = 0  # of a barrier of a GPU: how often its scope was entered before

    def untiled(self, tiling: tuple[int, ...]) -> Buffer:
        """This memory without its tiles: the last dimensions, sizes within a tile, are multiplied into those before."""
        ahead = len(self.shape) - 2 * len(tiling)
        counts = self.shape[ahead : ahead + len(tiling)]
        return replace(self, shape=(*self.shape[:ahead], *(count * size for count, size in zip(counts, tiling))))

    @property
    def view(self) -> View:
        return View(self, tuple((0, size, 1) for size in self.shape), tuple(range(len(self.shape))), self.shape)


@dataclass(frozen=True)
class View:
    """A part of a buffer: for each of its dimensions (start, size, stride), and those that it still has."""

    buffer: Buffer
    box: tuple[tuple[int | None, int, int], ...]
    dims: tuple[int, ...] | None  # None: another shape than the buffer's, the box is all of it that is known
    shape: tuple[int, ...]
    data: UnknownValue = UNKNOWN  # whose values would give the unknown starts

    def region(self, home: int | None = None) -> Region:
        """The part, in the memory of another device where `home` is given."""
        buffer = self.buffer
        return Region(
            buffer.home if home is None else home, buffer.key, buffer.name, buffer.shape, self.box, buffer.space
        )

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.buffer.itemsize

    def semaphore(self, place: Any, home: int | None = None) -> Semaphore:
        """The one semaphore that it is. Raises Unmodelled."""
        buffer = self.buffer
        if buffer.semaphore is None or any(start is None for start, _, _ in self.box):
            raise Unmodelled("which semaphore it is depends on data", place, self.data)
        index = tuple(start for start, _, _ in self.box if start is not None)
        return Semaphore(buffer.home if home is None else home, buffer.name, index, buffer.semaphore)

    def transformed(self, transform: Any, place: Any) -> View:
        """The part of it that a transform of jax's means. Raises Unmodelled."""
        name: str = type(transform).__name__
        if name in ("NDIndexer", "Indexer"):
            return self._indexed(transform, place)
        if name in _ONE_BUFFER:
            return self
        if name in _UNTILED and self == self.buffer.view:
            return self.buffer.untiled(tuple(transform.tiling)).view
        if name in _TRANSPOSED and self.dims is not None:
            order = transform.permutation
            return replace(self, dims=tuple(self.dims[at] for at in order), shape=tuple(self.shape[at] for at in order))
        if name in ("BitcastTransform", "ReshapeTransform", "RefBitcaster", "RefReshaper"):
            shape: Any = getattr(transform, "shape", getattr(transform, "new_shape", None))
            scaled = self._recounted(self.shape if shape is None else tuple(shape), getattr(transform, "dtype", None))
            return replace(scaled, dims=None)
        raise Unmodelled(f"a reference with a {name}", place)

    def _recounted(self, shape: tuple[int, ...], dtype: Any) -> View:
        """With another shape; bytes are those of the part's, whatever its elements are taken for."""
        size = getattr(dtype, "itemsize", None)
        if size is None or size == self.buffer.itemsize:
            return replace(self, shape=shape)
        return replace(self, shape=(*shape, size)) if self.buffer.itemsize == 1 else replace(self, shape=self.shape)

    def _indexed(self, transform: Any, place: Any) -> View:
        indices: tuple[Any, ...] = transform.indices
        if self.dims is None or len(self.dims) != len(indices):
            shape = tuple(transform.get_indexer_shape())
            whole = math.prod(shape) == math.prod(self.shape)
            box = self.box if whole else tuple((None, size, stride) for _, size, stride in self.box)
            return replace(self, box=box, dims=None, shape=shape)
        parts, dims, sizes = list(self.box), [], []
        for dim, index in zip(self.dims, indices):
            start, _, stride = parts[dim]
            rank: Any = getattr(index, "ndim", 0)
            if hasattr(index, "start"):  # a slice
                first, size, step = index.start, index.size, getattr(index, "stride", None) or 1
                if isinstance(size, UnknownValue):
                    raise Unmodelled("how much of a reference it is depends on data", place, size)
                known = start is not None and not isinstance(first, UnknownValue)
                begin = start + int(first) * stride if known and start is not None else None
                parts[dim] = (begin, int(size), stride * int(step))
                dims.append(dim)
                sizes.append(int(size))
            elif isinstance(index, UnknownValue) or rank:
                parts[dim] = (None, 1, 1)
                if rank:
                    dims.append(dim)
                    sizes.append(int(index.size))
            else:
                parts[dim] = (None if start is None else start + int(index) * stride, 1, 1)
        data = first_unknown(getattr(index, "start", index) for index in indices) or self.data
        return View(self.buffer, tuple(parts), tuple(dims), tuple(sizes), data)


def view_of(value: Any, place: Any) -> View:
    """The part that a value of the kernel refers to. Raises Unmodelled."""
    if isinstance(value, View):
        return value
    if isinstance(value, Buffer):
        return value.view
    if hasattr(value, "transforms"):  # jax's TransformedRef
        transforms = list(value.transforms)
        if isinstance(value.ref, tuple | list):
            select = transforms.pop(0)
            if isinstance(select.idx, UnknownValue):
                raise Unmodelled("which of several references it is depends on data", place, select.idx)
            view = view_of(value.ref[int(select.idx)], place)
        else:
            view = view_of(value.ref, place)
        for transform in transforms:
            view = view.transformed(transform, place)
        return view
    raise Unmodelled(f"a reference of type {type(value).__name__}", place)
