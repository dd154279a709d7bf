"""Propagation of padding of partial blocks: axes of a value that hold garbage, and sums over them.

The last block of an array that the block does not divide is padded with whatever is there: NaN in interpret mode, old
memory on a device. Elementwise operations carry it along and stores drop it; sums, maxima and products over the padded
axis mix it into the result. Anything that goes through `where` or `select` counts as masked, unless its condition is
`index <= length`, which lets the first element of the padding through.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Literal

from pallas_lint.identity import ById
from pallas_lint.kernels.facts.dataflow import SELECTING, operands
from pallas_lint.kernels.grid.blocks import MAX_POINTS, blocks_of
from pallas_lint.kernels.grid.grid_points import Point, axes_in
from pallas_lint.kernels.grid.grid_simulation import tested_axes
from pallas_lint.kernels.grid.index_ranges import divided, number
from pallas_lint.kernels.library.indexing import is_scalar_index
from pallas_lint.kernels.model.known_names import PROGRAM_ID, named
from pallas_lint.kernels.model.trace import Access, Op, conditions_in, is_full_index
from pallas_lint.kernels.model.values import ELLIPSIS, Array, Const, Seq, Sym, Value, as_tuple, from_dim
from pallas_lint.records import define, evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace

Certainty = Literal["sure", "likely", "possible"]

REDUCING = named(
    "sum mean max min amax amin prod var std argmax argmin any all logsumexp cumsum softmax"
    " reduce_sum reduce_max reduce_min reduce_prod"
)
ELEMENTWISE = named(
    "add subtract multiply true_divide divide sub mul div maximum minimum power pow exp exp2 log sqrt rsqrt square abs"
    " negative neg tanh sigmoid logistic relu silu gelu astype convert_element_type asarray stop_gradient integer_pow"
)
DOTS = named("dot matmul") | {"jax.experimental.pallas.dot"}
_ZERO = named("zeros zeros_like")
_COMPARING = named("less less_equal greater greater_equal equal not_equal lt le gt ge eq ne logical_and bitwise_and")


@frozen
class Padded:
    """An axis of a value that ends in garbage. `load` is where it came in; `weighted`: multiplied by masked weights;
    `passed_by`: the comparison that lets one element of it through a mask.
    """

    axis: int
    block: Block
    dimension: int
    load: Access
    certainty: Certainty
    weighted: bool = False
    passed_by: Op | None = None


@frozen
class Mixed:
    """A sum or product over padded axes. `masked`: the other factor is 0 there, which does not help against NaN."""

    op: Op
    padded: tuple[Padded, ...]
    masked: bool


@define(eq=False)
class _Padding:
    trace: KernelTrace
    values: dict[Op | ById, tuple[Padded, ...]] = field(factory=dict)  # by operation, or by loaded value
    weights: set[Op] = field(factory=set)  # operations whose results are 0 where a mask is false
    selected: set[Op] = field(factory=set)  # operations on something that went through `where`

    def of(self, value: Value) -> tuple[Padded, ...]:
        if not isinstance(value, Array):
            return ()
        return self.values.get(value.origin if value.origin is not None else ById(value), ())

    def is_weight(self, value: Value) -> bool:
        return isinstance(value, Array) and value.origin in self.weights

    def run(self, blocks: dict[tuple[str, object], tuple[Block, dict[int, Certainty]]]) -> Iterator[Mixed]:
        for event in self.trace.events:
            if isinstance(event, Access):
                found = blocks.get(event.ref.buffer)
                if event.kind == "load" and found is not None and isinstance(event.value, Array):
                    self._load(event, *found)
            elif isinstance(event, Op):
                yield from self._op(event)

    def _load(self, access: Access, block: Block, partial: dict[int, Certainty]) -> None:
        value = access.value
        if access.ref.view or not isinstance(value, Array) or block.dims is None:
            return
        seen = [at for at, each in enumerate(block.dims) if each.kind != "squeezed"]
        loaded = _loaded(access.index, len(seen))
        if loaded is None:
            return
        kept = [seen[at] for at in loaded]
        self.values[ById(value)] = tuple(
            Padded(kept.index(at), block, at, access, certainty) for at, certainty in partial.items() if at in kept
        )

    def _op(self, op: Op) -> Iterator[Mixed]:
        self._note_weights(op)
        if op.name in SELECTING and not op.open:
            self._let_through(op)
        if op.name in SELECTING or op.open:
            return
        if op.name in REDUCING:
            yield from self._reduce(op)
        elif op.name in DOTS and len(op.args) >= 2:
            yield from self._dot(op, op.args[0], op.args[1], None)
        elif op.name == "jax.lax.dot_general" and len(op.args) >= 2:
            yield from self._dot(op, op.args[0], op.args[1], op.argument("dimension_numbers", 2))
        elif op.name == "jax.numpy.einsum" and len(op.args) == 3:
            yield from self._einsum(op)
        elif op.name in ELEMENTWISE:
            self._elementwise(op)
        elif op.name == "jax.numpy.transpose" and len(op.args) == 1:
            rank = _rank(op.args[0])
            if rank is not None:
                self._set(op, (evolve(axis, axis=rank - 1 - axis.axis) for axis in self.of(op.args[0])))

    def _let_through(self, op: Op) -> None:
        """What `where(index <= length, x, ...)` leaves of the padding of `x`: the element at `length`."""
        condition, *values = operands(op)
        comparison = condition.origin if isinstance(condition, Array) else None
        if (
            comparison is None
            or comparison.short not in ("less_equal", "le")
            or len(comparison.args) != 2
            or not values
        ):
            return
        index, bound = comparison.args
        self._set(
            op,
            (
                evolve(axis, passed_by=comparison)
                for axis in self.of(values[0])
                if _rank(condition) == _rank(values[0]) and _is_at_end(axis, index, bound)
            ),
        )

    def _note_weights(self, op: Op) -> None:
        values = list(operands(op))
        if op.name in SELECTING:
            self.selected.add(op)
            if any(_is_zero(value) for value in values[1:]):
                self.weights.add(op)
        elif op.short in ("exp", "exp2", "softmax") and any(self._is_selected(v) for v in values):
            self.weights.add(op)
        elif op.short in ("astype", "convert_element_type") and values:
            origin = values[0].origin if isinstance(values[0], Array) else None
            if self.is_weight(values[0]) or (origin is not None and origin.name in _COMPARING):
                self.weights.add(op)
        elif op.short in ("multiply", "mul", "true_divide", "div") and self.is_weight(values[0]):
            if not self.of(values[1]):
                self.weights.add(op)
        elif op.name in ELEMENTWISE and any(self._is_selected(value) for value in values):
            self.selected.add(op)

    def _is_selected(self, value: Value) -> bool:
        return isinstance(value, Array) and value.origin in self.selected

    def _set(self, op: Op, padded: Iterator[Padded]) -> None:
        found = tuple(padded)
        if found:
            self.values[op] = found

    def _elementwise(self, op: Op) -> None:
        values = [value for value in op.args if isinstance(value, Array)]
        ranks = [_rank(value) for value in values]
        if any(rank is None for rank in ranks):
            return
        top = max((rank for rank in ranks if rank is not None), default=0)
        product = op.short in ("multiply", "mul")
        weighted = product and any(self.is_weight(value) for value in values)
        self._set(
            op,
            (
                evolve(axis, axis=axis.axis + top - (rank or 0), weighted=axis.weighted or weighted)
                for value, rank in zip(values, ranks, strict=True)
                for axis in self.of(value)
            ),
        )

    def _reduce(self, op: Op) -> Iterator[Mixed]:
        padded = self.of(op.args[0]) if op.args else ()
        axes = reduced_axes(op) if padded else None
        if axes is None:
            return
        mixed = tuple(axis for axis in padded if axis.axis in axes)
        if mixed:
            yield Mixed(op, mixed, any(axis.weighted for axis in mixed))
        elif op.argument("keepdims", 3) == Const(True):
            self._set(op, iter(padded))

    def _dot(self, op: Op, left: Value, right: Value, numbers: Value | None) -> Iterator[Mixed]:
        first, second = _rank(left), _rank(right)
        if first is None or second is None:
            return
        if numbers is None:
            flags = [op.argument(name) == Const(True) for name in ("trans_a", "trans_b")]
            pairs = {(first - 2 if flags[0] else first - 1, second - 1 if flags[1] else max(second - 2, 0))}
        else:
            found = contracted(numbers)
            if found is None:
                return
            pairs = found
        yield from self._contract(op, left, right, {a for a, _ in pairs}, {b for _, b in pairs})
        if numbers is None and first == second == 2 and not any(op.argument(n) for n in ("trans_a", "trans_b")):
            rows = [axis for axis in self.of(left) if axis.axis == 0]
            columns = [axis for axis in self.of(right) if axis.axis == 1]
            self._set(op, iter((*rows, *columns)))

    def _einsum(self, op: Op) -> Iterator[Mixed]:
        pattern = op.args[0].value if isinstance(op.args[0], Const) and isinstance(op.args[0].value, str) else ""
        inputs, arrow, output = pattern.replace(" ", "").partition("->")
        letters = inputs.split(",")
        if not arrow or "." in pattern or len(letters) != 2:
            return
        gone = set(letters[0] + letters[1]) - set(output)
        axes = [{at for at, letter in enumerate(operand) if letter in gone} for operand in letters]
        yield from self._contract(op, op.args[1], op.args[2], axes[0], axes[1])

    def _contract(self, op: Op, left: Value, right: Value, first: set[int], second: set[int]) -> Iterator[Mixed]:
        one = tuple(axis for axis in self.of(left) if axis.axis in first)
        other = tuple(axis for axis in self.of(right) if axis.axis in second)
        if one or other:
            masked = (not one and self.is_weight(left)) or (not other and self.is_weight(right))
            yield Mixed(op, (*one, *other), masked or any(axis.weighted for axis in (*one, *other)))


def _loaded(index: Value, rank: int) -> list[int] | None:
    """The dimensions that a load takes whole, where it takes one index of each other one: those of `ref[0]`."""
    if is_full_index(index):
        return list(range(rank))
    if isinstance(index, Seq) and index.open:
        return None
    parts = list(as_tuple(index))
    if ELLIPSIS not in parts:
        parts.append(ELLIPSIS)
    at, missing = parts.index(ELLIPSIS), rank - (len(parts) - 1)
    if missing < 0:
        return None
    parts = [*parts[:at], *[ELLIPSIS] * missing, *parts[at + 1 :]]
    if not all(is_full_index(part) or is_scalar_index(part) for part in parts):
        return None
    return [at for at, part in enumerate(parts) if is_full_index(part)]


def _is_at_end(axis: Padded, index: Value, bound: Value) -> bool:
    """Whether `index` counts the elements of the whole array along the axis, from 0, and `bound` is its length."""
    block, shape, dims = axis.block, axis.block.array_shape, axis.block.dims
    if shape is None or dims is None or shape[axis.dimension] is None or bound != from_dim(shape[axis.dimension]):
        return False
    total = index.origin if isinstance(index, Array) else None
    if total is None or total.short != "add" or len(total.args) != 2:
        return False
    size = from_dim(dims[axis.dimension].size)
    for offset, counted in (total.args, total.args[::-1]):
        iota = counted.origin if isinstance(counted, Array) else None
        product = offset.origin if isinstance(offset, Array) else None
        if iota is None or iota.name != "jax.lax.broadcasted_iota" or iota.argument("dimension", 2) != Const(axis.axis):
            continue
        if product is not None and product.short in ("multiply", "mul") and len(product.args) == 2:
            factors = product.args
            steps = [value.origin for value in factors if isinstance(value, Array) and value.origin is not None]
            if size in factors and any(step.name == PROGRAM_ID for step in steps) and block.known_map:
                return True
    return False


def mixed_padding(trace: KernelTrace, analysis: Analysis) -> Iterator[Mixed]:
    """Every sum, maximum or product over an axis that is padded in the last block."""
    launch = trace.launch
    if not launch.form.is_over_blocks or not trace.complete or launch.backend == "mosaic_gpu":
        return  # TMA copies fill elements beyond an array with zeros
    blocks = blocks_of(launch, analysis)
    if blocks is None:
        return
    found: dict[tuple[str, object], tuple[Block, dict[int, Certainty]]] = {}
    for ref in trace.refs:
        block = blocks.of(ref) if ref.role == "in" else None
        if block is None or block.dims is None or block.array_shape is None or not block.sure or not block.known_map:
            continue
        partial = dict(_partial(block, launch, analysis))
        if partial:
            found[ref.buffer] = (block, partial)
    for mixed in _Padding(trace).run(found) if found else ():
        padded = tuple(axis for axis in mixed.padded if _may_run_there(mixed.op, axis))
        if padded:
            yield evolve(mixed, padded=padded)


def _partial(block: Block, launch: Launch, analysis: Analysis) -> Iterator[tuple[int, Certainty]]:
    """The dimensions of a block that are padded in its last visit, and how sure that is."""
    if block.dims is None or block.array_shape is None or len(block.dims) != len(block.array_shape):
        return
    for at, (dim, length) in enumerate(zip(block.dims, block.array_shape, strict=True)):
        if dim.kind != "blocked" or dim.size is None or length is None:
            continue
        if isinstance(dim.size, int) and isinstance(length, int):
            if dim.size <= 1 or length % dim.size == 0:
                continue
            visits = block.visits
            if visits is None:
                yield at, "likely"
            elif any((here[at] + 1) * dim.size > length for _, here in visits if at < len(here)):
                yield at, "sure"
        elif _is_rounded_up(block, at, dim.size, length, analysis):
            yield at, "possible"


def _may_run_there(op: Op, axis: Padded) -> bool:
    """Whether an operation may run where the block is padded, which it does not under `pl.when(step < steps - 1)`."""
    guards = conditions_in((*axis.load.guards, *op.guards))
    steps = _padded_steps(axis.block, axis.dimension) if guards else None
    if steps is None:
        return True
    points, axes = steps
    decided = tuple(guard for guard in guards if axes.issuperset(tested_axes((guard,), axis.block.grid)))
    return any(point.runs(decided) is not False for point in points)


def _padded_steps(block: Block, at: int) -> tuple[list[Point], frozenset[int]] | None:
    """The steps at which a dimension of the block is padded, and the grid axes that its index depends on."""
    size = block.dims[at].size if block.dims is not None else None
    length = block.array_shape[at] if block.array_shape is not None else None
    if block.indices is None or not isinstance(size, int) or not isinstance(length, int):
        return None
    axes, complete = axes_in(block.indices[at], block.grid.launch)
    known = tuple(each if isinstance(each, int) else None for each in block.grid.sizes)
    counts = [known[axis] if axis in axes else 1 for axis in range(len(known))]
    if not complete or None in counts or math.prod(count or 0 for count in counts) > MAX_POINTS:
        return None
    points = [
        Point(indices, known, launch=block.grid.launch)
        for indices in itertools.product(*(range(count or 0) for count in counts))
    ]
    reached = [(point, point.value(block.indices[at])) for point in points]
    if any(not isinstance(index, int) for _, index in reached):
        return None
    return [point for point, index in reached if index is not None and (index + 1) * size > length], axes


def _is_rounded_up(block: Block, at: int, size: int | Sym, length: int | Sym, analysis: Analysis) -> bool:
    """Whether the block's grid axis has `cdiv(length, size)` steps and the code does not test the remainder."""
    if block.indices is None or at >= len(block.indices):
        return False
    axes, complete = axes_in(block.indices[at], block.grid.launch)
    if len(axes) != 1 or not complete:
        return False
    steps = block.grid.sizes[next(iter(axes))]
    ratio = divided(steps) if isinstance(steps, Sym) else None
    if ratio is None or ratio != (from_dim(length), from_dim(size)):
        return False
    return length not in analysis.outcome.effects.remainders


def _rank(value: Value) -> int | None:
    return value.rank if isinstance(value, Array) else 0 if isinstance(value, Const | Sym) else None


def _is_zero(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, int | float) and value.value == 0
    origin = value.origin if isinstance(value, Array) else None
    return origin is not None and (origin.name in _ZERO or (_is_filled(origin) and _is_zero(origin.args[1])))


def _is_filled(op: Op) -> bool:
    return op.short in ("full", "full_like") and len(op.args) > 1


def reduced_axes(op: Op) -> frozenset[int] | None:
    """The axes of a reduction; None where they are not known, and where it has a mask of its own."""
    rank = _rank(op.args[0]) if op.args else None
    if rank is None or op.argument("where") is not None:
        return None
    axis = op.argument("axis", 1) or op.argument("axes", 1)
    if axis is None or axis == Const(None):
        return frozenset((rank - 1,) if op.short == "softmax" else range(rank))
    numbers = [number(item) for item in as_tuple(axis)]
    return None if None in numbers else frozenset(known % rank for known in numbers if known is not None)


def contracted(numbers: Value) -> set[tuple[int, int]] | None:
    """The pairs of contracted axes of `(((1,), (0,)), ((), ()))`."""
    if not isinstance(numbers, Seq) or not numbers.items or not isinstance(numbers.items[0], Seq):
        return None
    sides = [[number(item) for item in side.items] for side in numbers.items[0].items if isinstance(side, Seq)]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]) or None in (*sides[0], *sides[1]):
        return None
    return {(a, b) for a, b in zip(sides[0], sides[1], strict=True) if a is not None and b is not None}
