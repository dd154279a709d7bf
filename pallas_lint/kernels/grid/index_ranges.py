"""Ranges of loop and grid indices: the last start of a slice, bounds it is compared with, and each step."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from pallas_lint.kernels.grid.grid_points import LoopPoint, axes_in, loops_in
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, PROGRAM_ID, is_integer
from pallas_lint.kernels.model.launch import block_spec
from pallas_lint.kernels.model.symbols import symbolic
from pallas_lint.kernels.model.trace import LOOP_INDEX, Access, is_full_index
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    UNKNOWN,
    Array,
    Const,
    Ref,
    Seq,
    Slice,
    Sym,
    Value,
    as_tuple,
    from_dim,
    options,
)
from pallas_lint.records import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Guard, KernelTrace, Op

_MAX_POINTS = 4096
_MULTIPLY = frozenset(("jax.numpy.multiply", "jax.lax.mul"))
_ADD = frozenset(("jax.numpy.add", "jax.lax.add"))
_SUBTRACT = frozenset(("jax.numpy.subtract", "jax.lax.sub"))
_SUBSCRIPT = "jax.numpy.ndarray.__getitem__"
_MAX_SUMMANDS = 8
_RANGES = {"jax.numpy.arange": 0, "jax.lax.iota": 1, "jax.lax.broadcasted_iota": 1}  # the argument with the size
_SAME = frozenset(
    (
        "jax.numpy.astype", "jax.lax.convert_element_type", "jax.numpy.asarray", "jax.numpy.int32",
        "jax.experimental.pallas.multiple_of",
    )
)  # fmt: skip


@frozen
class IndexRange:
    """`index * factor + offset`, the index counting from 0 to `count` - 1."""

    count: Value
    factor: Value
    offset: int = 0

    @property
    def last(self) -> int | None:
        """The value at the end; None where it is not known, or where there is none."""
        count, factor = number(self.count), number(self.factor)
        return None if count is None or factor is None or count <= 0 else (count - 1) * factor + self.offset


@frozen
class SliceUse:
    """One index of one dimension of a ref, where `access` uses it: a slice, a number, or `start + arange`."""

    ref: Ref
    axis: int
    index: Value
    access: Access
    is_array: bool = False  # an array of indices, of which `index` is the slice

    @property
    def noun(self) -> str:
        return "range of indices" if self.is_array else "slice"


def number(value: Value | None) -> int | None:
    known = is_integer(value) and not isinstance(value.value, bool)
    return value.value if known and isinstance(value, Const) else None


def reach_of(value: Value, launch: Launch, depth: int = 0) -> IndexRange | None:
    """How far the value counts; None for what does not count in equal steps from 0."""
    if depth > 12:
        return None
    if isinstance(value, Sym):
        return _of_name(value, launch, depth)
    op = value.origin if isinstance(value, Array) else None
    if op is None:
        return None
    if op.name == LOOP_INDEX:
        return _of_loop(op.args[0], op.args[1])
    if op.name == PROGRAM_ID:
        return _of_grid(op, launch)
    if op.name in _SAME and op.args:
        return reach_of(op.args[0], launch, depth + 1)
    if op.name in _MULTIPLY and len(op.args) == 2:
        return _product(op.args[0], op.args[1], launch, depth)
    if op.name in _ADD and len(op.args) == 2:
        return _sum(op.args[0], op.args[1], launch, depth)
    if op.name in _SUBTRACT and len(op.args) == 2 and (less := number(op.args[1])) is not None:
        return _sum(op.args[0], Const(-less), launch, depth)
    return None


def blocks_in(value: Value, launch: Launch) -> IndexRange | None:
    """How far `block * size + more` counts by its first part, where the second is a loop's and counts up from 0."""
    op = value.origin if isinstance(value, Array) else None
    if op is not None and op.name in _SAME and op.args:
        return blocks_in(op.args[0], launch)
    if op is None or op.name not in _ADD or len(op.args) != 2:
        return None
    for block, more in (op.args, op.args[::-1]):
        reach, inner = reach_of(block, launch), reach_of(more, launch)
        if reach is not None and inner is not None and not axes_in(more, launch)[0] and _counts_up(inner):
            return reach if axes_in(block, launch)[0] else None
    return None


def _counts_up(reach: IndexRange) -> bool:
    """Whether it is certainly never negative: a loop's index, times its size."""
    step = number(reach.factor)
    return reach.offset >= 0 and (isinstance(reach.factor, Sym) if step is None else step >= 0)


_AT_MOST = frozenset(("less_equal", "le"))
_ABOVE = frozenset(("greater", "gt"))
_AT_LEAST = frozenset(("greater_equal", "ge"))
_COMPARISONS = {  # and what they are with their sides exchanged
    "less": "greater", "lt": "gt", "greater": "less", "gt": "lt", "less_equal": "greater_equal", "le": "ge",
    "greater_equal": "less_equal", "ge": "le", "not_equal": "not_equal", "ne": "ne",
}  # fmt: skip


def always_holds(guard: Guard, launch: Launch) -> bool:
    """Whether a condition lets all steps through: `i < n`, `i != n` or `i >= 0`, where i counts from 0 to n - 1."""
    op = guard.condition.origin if isinstance(guard.condition, Array) else None
    if op is None or guard.negated or len(op.args) != 2 or op.short not in _COMPARISONS:
        return False
    return any(
        _holds(index, bound, short, launch)
        for index, bound, short in ((*op.args, op.short), (*op.args[::-1], _COMPARISONS[op.short]))
    )


def _holds(index: Value, bound: Value, short: str, launch: Launch) -> bool:
    reach = reach_of(index, launch)
    if reach is None or reach.factor != Const(1):
        return False
    if short in _ABOVE | _AT_LEAST:
        least = number(bound)
        return least is not None and reach.offset >= least + (short in _ABOVE)
    count, more = summed(reach.count)
    limit, extra = summed(bound)
    room = more + reach.offset - extra  # the last one is less than the bound by 1 - room
    return room <= (1 if short in _AT_MOST else 0) and _count_is(limit, count, index, launch)


def _count_is(bound: Value, count: Value, index: Value, launch: Launch) -> bool:
    """Whether a bound is the number of steps that the index counts: by name, or the `num_programs` of its axis."""
    op = bound.origin if isinstance(bound, Array) else None
    if op is None or op.name != NUM_PROGRAMS:
        return bound == count
    step = _counted(index)
    of_grid = step is not None and step.name == PROGRAM_ID and launch.form.is_over_blocks
    return of_grid and step is not None and step.argument("axis", 0) == op.argument("axis", 0)


def _counted(index: Value) -> Op | None:
    """What made an index that something may have been added to."""
    counted, _ = summed(index)
    return counted.origin if isinstance(counted, Array) else None


def summed(value: Value) -> tuple[Value, int]:
    """What a constant is added to, and the constant: (n, 1) of `n + 1`, (0, 8) of 8."""
    offset = 0
    for _ in range(_MAX_SUMMANDS):
        parts = _sides(value)
        known = None if parts is None else number(parts[2])
        if parts is None or known is None:
            break
        offset += known if parts[0] == "+" else -known
        value = parts[1]
    known = number(value)
    return (value, offset) if known is None else (Const(0), offset + known)


def _sides(value: Value) -> tuple[str, Value, Value] | None:
    """The sign and the operands of a sum or a difference, the constant behind."""
    op = value.origin if isinstance(value, Array) else None
    if op is not None and op.name in _ADD | _SUBTRACT and len(op.args) == 2:
        sign, (left, right) = "+" if op.name in _ADD else "-", op.args
    elif isinstance(value, Sym) and value.operation is not None and value.operation[0] in "+-":
        sign, left, right = value.operation
    else:
        return None
    return (sign, right, left) if sign == "+" and number(left) is not None else (sign, left, right)


def _of_name(value: Sym, launch: Launch, depth: int) -> IndexRange | None:
    """The index of a Python loop, or arithmetic on one."""
    if value.operation is None:
        return None
    symbol, left, right = value.operation
    if symbol == "range":
        return _of_loop(left, right)
    if symbol == "*":
        return _product(left, right, launch, depth)
    if symbol == "-" and (less := number(right)) is not None:
        return _sum(left, Const(-less), launch, depth)
    return _sum(left, right, launch, depth) if symbol == "+" else None


def _of_loop(lower: Value, upper: Value) -> IndexRange | None:
    first, end = number(lower), number(upper)
    if first is None:
        return None
    if end is not None:
        return IndexRange(Const(end - first), Const(1), first)
    count = symbolic("-", upper, Const(first)) if isinstance(upper, Sym) else upper if first == 0 else UNKNOWN
    return IndexRange(count, Const(1), first) if count is not UNKNOWN else None


def _of_grid(op: Op, launch: Launch) -> IndexRange | None:
    axis, grid = number(op.argument("axis", 0)), launch.grid
    if axis is None or grid is None or grid.open or not 0 <= axis < len(grid.items) or not launch.form.is_over_blocks:
        return None
    return IndexRange(grid.items[axis], Const(1))


def _product(left: Value, right: Value, launch: Launch, depth: int) -> IndexRange | None:
    for index, factor in ((left, right), (right, left)):
        if not isinstance(factor, Const | Sym):
            continue
        inner = reach_of(index, launch, depth + 1)
        if inner is None:
            continue
        known, step = number(factor), number(inner.factor)
        if inner.factor == Const(1) and inner.offset == 0:
            return evolve(inner, factor=factor)
        if known is not None and step is not None:
            return evolve(inner, factor=Const(step * known), offset=inner.offset * known)
    return None


def _sum(left: Value, right: Value, launch: Launch, depth: int) -> IndexRange | None:
    for index, more in ((left, right), (right, left)):
        offset = number(more)
        inner = reach_of(index, launch, depth + 1) if offset is not None else None
        if inner is not None and offset is not None:
            return evolve(inner, offset=inner.offset + offset)
    return None


def points_of(values: Iterable[Value], launch: Launch) -> list[LoopPoint] | None:
    """Every step of the loops and of the grid axes that these scalars depend on; None where one is not known."""
    used = list(values)
    loops = {op: _steps_of(op) for value in used for op in loops_in(value)}
    axes = sorted({axis for value in used for axis in axes_in(value, launch)[0]})
    grid = () if launch.grid is None or launch.grid.open else tuple(map(number, launch.grid.items))
    counts = [grid[axis] if axis < len(grid) else None for axis in axes]
    ranges = [*(range(count) if count is not None else None for count in counts), *loops.values()]
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges) or math.prod(map(len, known)) > _MAX_POINTS:
        return None
    found = []
    for steps in itertools.product(*known):
        indices = [0] * len(grid)
        for axis, step in zip(axes, steps, strict=False):
            indices[axis] = step
        held = dict(zip(loops, steps[len(axes) :], strict=True))
        found.append(LoopPoint(tuple(indices), grid, {}, launch, held))
    return found


def _steps_of(loop: Op) -> range | None:
    first, end = (number(bound) for bound in loop.args[:2])
    return None if first is None or end is None else range(first, end)


def divided(value: Value) -> tuple[Value, Value] | None:
    """`(n, b)` where the value is n over b, rounded up: `cdiv(n, b)`, `(n + b - 1) // b`."""
    if not isinstance(value, Sym) or value.operation is None:
        return None
    symbol, left, right = value.operation
    if symbol == "cdiv":
        return left, right
    if symbol != "//" or not isinstance(left, Sym) or left.operation is None:
        return None
    block = number(right)
    if block is not None and left.operation[0] == "+" and left.operation[2] == Const(block - 1):
        return left.operation[1], right
    return next(((term, right) for term in _terms(left) if _is_sum_less_one(left, term, right)), None)


def _terms(value: Sym) -> Iterator[Value]:
    """The summands of a sum."""
    stack: list[Value] = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, Sym) and current.operation is not None and current.operation[0] in "+-":
            stack.append(current.operation[1])
            if current.operation[0] == "+":
                stack.append(current.operation[2])
        else:
            yield current


def _is_sum_less_one(value: Sym, term: Value, block: Value) -> bool:
    """Whether the value is `term + block - 1`, in either order of the operations."""
    if value.operation is None:
        return False
    symbol, left, right = value.operation
    if symbol == "-" and right == Const(1) and isinstance(left, Sym) and left.operation is not None:
        return left.operation[0] == "+" and left.operation[1:] in ((term, block), (block, term))
    if symbol == "+":
        for one, other in ((left, right), (right, left)):
            if one == term and isinstance(other, Sym) and other.operation == ("-", block, Const(1)):
                return True
    return False


def parts_of(trace: KernelTrace) -> Iterator[SliceUse]:
    """Every index that a load, a store or a copy applies to a ref, views included."""
    for access in trace.accesses():
        if access.kind not in ("load", "store", "accumulate"):
            continue
        yield from _aligned(access.ref, access.index, access)
        view: Ref | None = access.ref
        while view is not None and view.parent is not None and view.indexer is not None:
            yield from _aligned(view.parent, view.indexer, access)
            view = view.parent


def _aligned(ref: Ref, index: Value, access: Access) -> Iterator[SliceUse]:
    if isinstance(index, Seq) and (index.open or index.kind != "tuple"):
        return
    parts = list(index.items) if isinstance(index, Seq) else [index]
    if NONE in parts:
        return
    if ELLIPSIS in parts:
        at = parts.index(ELLIPSIS)
        rank = ref.rank
        if rank is None or parts.count(ELLIPSIS) > 1:
            parts = parts[:at]
        else:
            parts[at : at + 1] = [ELLIPSIS] * (rank - len(parts) + 1)
    for axis, part in enumerate(parts):
        if part != ELLIPSIS:
            found = as_slice(part)
            yield SliceUse(ref, axis, part if found is None else found, access, found is not None)


def as_slice(index: Value) -> Slice | None:
    """`start + jnp.arange(n)`, in one dimension or in one of several, as the slice of the same elements."""
    start: Value = Const(0)
    op = index.origin if isinstance(index, Array) and index.shape not in ((), None) else None
    while op is not None and op.args:
        if op.name in _RANGES:
            return _range_as_slice(op, start)
        inner = op.args[0]
        if op.name in _ADD and len(op.args) == 2 and start == Const(0):
            inner, start = op.args if _is_vector(inner) else op.args[::-1]
            if _is_vector(start):
                return None
        elif op.short != "expand_dims" and not (op.name == _SUBSCRIPT and _adds_dimensions(op.args[1])):
            return None
        op = inner.origin if isinstance(inner, Array) else None
    return None


def _range_as_slice(op: Op, start: Value) -> Slice | None:
    """A range from 0 in steps of 1, moved to `start`."""
    size = op.args[_RANGES[op.name]] if len(op.args) > _RANGES[op.name] else UNKNOWN
    if op.short == "broadcasted_iota":
        axis = number(op.argument("dimension", 2))
        sizes = size.items if isinstance(size, Seq) and not size.open else ()
        if (
            axis is None
            or not 0 <= axis < len(sizes)
            or any(each != Const(1) for each in (*sizes[:axis], *sizes[axis + 1 :]))
        ):
            return None
        size = sizes[axis]
    elif len(op.args) != _RANGES[op.name] + 1 or any(name != "dtype" for name, _ in op.keywords):
        return None
    return Slice(start, UNKNOWN, NONE, size) if isinstance(size, Const | Sym) else None


def _is_vector(value: Value) -> bool:
    return isinstance(value, Array) and value.shape != ()


def _adds_dimensions(index: Value) -> bool:
    """Whether an index of a value keeps its elements: `[:, None]`."""
    parts = as_tuple(index)
    return all(part == NONE or is_full_index(part) for part in parts)


def size_of(part: SliceUse) -> Value | None:
    """The number of elements of a `pl.ds`; 1 for a number."""
    if isinstance(part.index, Slice):
        return part.index.size if part.index.step in (Const(1), NONE) else None
    return Const(1)


def start_of(part: SliceUse) -> Value:
    return part.index.start if isinstance(part.index, Slice) else part.index


def extents(part: SliceUse, trace: KernelTrace) -> Iterator[Value]:
    """What the dimension that is indexed is known as: a number, or the names under which its size goes."""
    ref = part.ref
    if ref.shape is not None:
        if part.axis < len(ref.shape) and ref.shape[part.axis] is not None:
            yield from_dim(ref.shape[part.axis])
        return
    if ref.view:
        return
    yield Sym(f"{ref.parameter}.shape[{part.axis}]", trace)
    operand = _operand(ref, trace.launch)
    if isinstance(operand, Sym):
        yield Sym(f"{operand.text}.shape[{part.axis}]", operand.owner)


def _operand(ref: Ref, launch: Launch) -> Value | None:
    """What is passed to the launch for an input that the kernel gets whole."""
    if ref.role == "prefetch" and ref.index is not None and not launch.operands_open:
        return next(iter((launch.operands or [])[ref.index :]), None)
    specs = launch.in_specs
    if ref.role != "in" or ref.index is None:
        return None
    if specs is not None:
        if specs.open or ref.index >= len(specs.items):
            return None
        spec = [block_spec(option) for option in options(specs.items[ref.index])]
        if any(found is None or found.has_block_shape for found in spec):
            return None
    elif launch.argument("in_specs") not in (None, NONE):
        return None
    return launch.operand(ref.index)
