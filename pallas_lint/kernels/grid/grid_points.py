"""Evaluation of scalars at one point of the grid: index maps' results, and conditions in kernels."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from pallas_lint.identity import iter_unique
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, PALLAS, PROGRAM_ID, is_integer
from pallas_lint.kernels.model.trace import LOOP_CARRY, LOOP_INDEX, conditions_in
from pallas_lint.kernels.model.values import Array, Const, OneOf, Slice, Sym, Value
from pallas_lint.records import evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Guard, Op

_MAX_DEPTH = 40
_MAX_INTEGER = 2**80  # no index and no size is larger
_MAX_SHIFTED = 80
Scalar = int | float | bool
Known = dict[tuple["Sym | Op", int], "Scalar | None"]  # what arithmetic at some depth gives at the point at hand


def _truncated_division(a: Any, b: Any) -> Any:
    if not isinstance(a, int) or not isinstance(b, int):
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) is (b < 0) else -1)


def _truncated_remainder(a: Any, b: Any) -> Any:
    return a - b * _truncated_division(a, b)


def _invert(a: Any) -> Any:
    return not a if isinstance(a, bool) else ~a


def _ceiling_division(a: Any, b: Any) -> Any:
    return -(-a // b)


def _power(a: Any, b: Any) -> Any:
    return a**b if abs(b) <= _MAX_SHIFTED else None


def _left_shift(a: Any, b: Any) -> Any:
    return a << b if b <= _MAX_SHIFTED else None


# By the last part of the canonical name; jnp's and lax's names differ where they mean different things.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "subtract": operator.sub, "mul": operator.mul,
    "multiply": operator.mul, "floor_divide": operator.floordiv, "div": _truncated_division,
    "true_divide": operator.truediv, "divide": operator.truediv, "rem": _truncated_remainder,
    "remainder": operator.mod, "mod": operator.mod, "cdiv": _ceiling_division, "negative": operator.neg,
    "neg": operator.neg, "abs": abs, "absolute": abs, "minimum": min, "min": min, "maximum": max, "max": max,
    "equal": operator.eq, "eq": operator.eq, "not_equal": operator.ne, "ne": operator.ne, "less": operator.lt,
    "lt": operator.lt, "less_equal": operator.le, "le": operator.le, "greater": operator.gt, "gt": operator.gt,
    "greater_equal": operator.ge, "ge": operator.ge, "bitwise_xor": operator.xor, "logical_xor": operator.xor,
    "logical_not": operator.not_, "invert": _invert, "bitwise_not": _invert, "bitwise_invert": _invert,
    "left_shift": _left_shift, "shift_left": _left_shift, "right_shift": operator.rshift,
    "shift_right_logical": operator.rshift, "shift_right_arithmetic": operator.rshift, "power": _power,
}  # fmt: skip
_SYMBOLS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": _left_shift,
    ">>": operator.rshift, "cdiv": _ceiling_division, "max": max, "min": min,
}  # fmt: skip
_AND = frozenset({"logical_and", "bitwise_and"})
_OR = frozenset({"logical_or", "bitwise_or"})
# Their result is their first operand as far as the value of a scalar goes.
_SAME = frozenset(
    "astype convert_element_type asarray array multiple_of max_contiguous squeeze reshape ravel int32 int16 int8 uint32"
    " int64 bool_ all any stop_gradient optimization_barrier".split()
)
_MODULES = ("jax.numpy.", "jax.lax.", f"{PALLAS}.")


@frozen
class Point:
    """One step of a launch's grid.

    `symbols`: what named sizes are taken to be, for grids of which the size is not known.
    """

    indices: tuple[int, ...]
    sizes: tuple[int | None, ...]
    symbols: Mapping[Sym, int] = field(factory=dict)
    launch: Launch | None = None

    def value(self, value: Value) -> Scalar | None:
        """What a scalar is here; None where that is not known."""
        return self._value(value, 0, {})

    def in_loops(self, loops: Mapping[Op, int], symbols: Mapping[Sym, int]) -> LoopPoint:
        """This step at certain iterations of the loops in the kernel, with sizes for symbols."""
        return LoopPoint(self.indices, self.sizes, symbols, self.launch, loops)

    def runs(self, guards: tuple[Guard, ...]) -> bool | None:
        """Whether code under these guards runs here; None where that is not known. Loops are taken to run."""
        result: bool | None = True
        for guard in conditions_in(guards):
            here = self.value(guard.condition)
            if not isinstance(here, bool):  # an integer chooses among the branches of a `switch`
                result = None
            elif here is guard.negated:
                return False
        return result

    def _value(self, value: Value, depth: int, known: Known) -> Scalar | None:
        if depth > _MAX_DEPTH:
            return None
        if isinstance(value, Const):
            return value.value if isinstance(value.value, bool | int | float) else None
        if isinstance(value, Sym):
            made = self.symbols.get(value)
            if made is not None or value.operation is None:
                return made
            return self._once(value, depth, known)
        if isinstance(value, OneOf):
            found = {self._value(option, depth + 1, known) for option in value.options}
            return found.pop() if len(found) == 1 else None
        if isinstance(value, Array) and value.origin is not None and value.shape in ((), None):
            return self._once(value.origin, depth + 1, known)
        return None

    def _once(self, what: Sym | Op, depth: int, known: Known) -> Scalar | None:
        """What arithmetic gives here. It shares its parts: written out, sixty lines of `i = i + i` never end."""
        key = what, depth
        if key not in known:
            if isinstance(what, Sym):
                known[key] = self._symbol(what, depth, known)
            else:
                known[key] = self._operation(what, depth, known)
        return known[key]

    def _symbol(self, value: Sym, depth: int, known: Known) -> Scalar | None:
        assert value.operation is not None
        symbol, left, right = value.operation
        function = _SYMBOLS.get(symbol)
        if function is None:
            return None
        return _apply(function, [self._value(left, depth + 1, known), self._value(right, depth + 1, known)])

    def _operation(self, op: Op, depth: int, known: Known) -> Scalar | None:
        if op.name in (PROGRAM_ID, NUM_PROGRAMS):
            axis = axis_of(op, self.launch)
            if axis is None or axis >= len(self.indices):
                return None
            return self.indices[axis] if op.name == PROGRAM_ID else self.sizes[axis]
        if not op.name.startswith(_MODULES):
            return None
        short = op.short
        if short in _SAME and op.args:
            return self._value(op.args[0], depth, known)
        if op.keywords and short not in ("where", "clip", "clamp"):
            return None
        if short in _AND or short in _OR:
            return self._logical(op, short in _OR, depth, known)
        if short in ("where", "select", "select_n") and len(op.args) == 3 and not op.keywords:
            condition = self._value(op.args[0], depth, known)
            if not isinstance(condition, bool):
                return None
            return self._value(op.args[1 if condition is not (short == "select_n") else 2], depth, known)
        if short in ("clip", "clamp"):
            return self._clip(op, short, depth, known)
        function = _FUNCTIONS.get(short)
        return None if function is None else _apply(function, [self._value(value, depth, known) for value in op.args])

    def _logical(self, op: Op, deciding: bool, depth: int, known: Known) -> Scalar | None:
        """`and` and `or`: one operand may decide them whatever the other is."""
        found = [self._value(value, depth, known) for value in op.args]
        if any(value is deciding for value in found):
            return deciding
        if all(isinstance(value, bool) for value in found):
            return not deciding
        return _apply(operator.or_ if deciding else operator.and_, found)

    def _clip(self, op: Op, short: str, depth: int, known: Known) -> Scalar | None:
        if len(op.args) != 3 or op.keywords:
            return None
        low, value, high = op.args if short == "clamp" else (op.args[1], op.args[0], op.args[2])
        found = [self._value(part, depth, known) for part in (low, value, high)]
        if found[0] is None or found[1] is None or found[2] is None:
            return None
        return min(max(found[1], found[0]), found[2])


@frozen
class LoopPoint(Point):
    """A step of the grid, and of the loops in the kernel: their indices, and what they carry."""

    loops: Mapping[Op, int] = field(factory=dict)

    def in_loops(self, loops: Mapping[Op, int], symbols: Mapping[Sym, int]) -> LoopPoint:
        return evolve(self, loops=loops, symbols=symbols)

    def _operation(self, op: Op, depth: int, known: Known) -> Scalar | None:
        return self.loops.get(op) if op.name in (LOOP_INDEX, LOOP_CARRY) else super()._operation(op, depth, known)


def loops_in(value: Value) -> Iterator[Op]:
    """The indices of loops that go into a scalar or a slice."""
    stack: list[Value] = [value]
    for current in iter_unique(stack):
        if isinstance(current, Slice):
            stack.extend(part for part in (current.start, current.stop, current.size) if part is not None)
        elif isinstance(current, Array) and current.origin is not None:
            if current.origin.name == LOOP_INDEX:
                yield current.origin
            else:
                stack.extend(current.origin.args)


def axis_of(op: Op, launch: Launch | None) -> int | None:
    """The axis of the launch's grid that a `program_id` or `num_programs` reads; None for another launch's.

    What is made in a pipeline may hang on the indices of the grid around it, and the other way round.
    """
    if op.launch is not launch:
        return None
    axis = op.argument("axis", 0)
    known = is_integer(axis) and axis.value >= 0
    return axis.value if known and isinstance(axis, Const) else None


def axes_in(value: Value, launch: Launch | None) -> tuple[frozenset[int], bool]:
    """The axes of a launch's grid of which the index goes into a scalar, and whether nothing else may go into it."""
    axes: set[int] = set()
    complete = True
    stack: list[Value] = [value]
    for current in iter_unique(stack):
        if isinstance(current, Array) and current.origin is not None:
            op = current.origin
            axis = axis_of(op, launch) if op.name == PROGRAM_ID else None
            if axis is not None:
                axes.add(axis)
            elif op.name.startswith(_MODULES) and op.name != PROGRAM_ID:
                stack.extend((*op.args, *(item for _, item in op.keywords)))
            else:
                complete = False
        elif isinstance(current, Sym) and current.operation is not None:
            stack.extend(current.operation[1:])
        elif isinstance(current, OneOf):
            stack.extend(current.options)
        elif hasattr(current, "items") and isinstance(current.items, tuple):
            stack.extend(item for item in current.items if not isinstance(item, tuple))
        elif not isinstance(current, Const | Sym) and type(current).__name__ not in ("DType", "External"):
            complete = False
    return frozenset(axes), complete


class LinearTerms(NamedTuple):
    """What a scalar depends on, at most: indices and sizes of grid axes, and names."""

    axes: tuple[int, ...]
    sized: tuple[int, ...]
    symbols: tuple[Sym, ...]


def terms_in(value: Value) -> LinearTerms:
    """Everything that `Point.value` may read."""
    axes: set[int] = set()
    sized: set[int] = set()
    symbols: dict[Sym, None] = {}
    stack: list[Value] = [value]
    for current in iter_unique(stack):
        if isinstance(current, Array) and current.origin is not None:
            op = current.origin
            axis = axis_of(op, op.launch) if op.name in (PROGRAM_ID, NUM_PROGRAMS) else None
            if axis is not None:
                (axes if op.name == PROGRAM_ID else sized).add(axis)
            else:
                stack.extend(op.args)
        elif isinstance(current, Sym):
            symbols[current] = None
            if current.operation is not None:
                stack.extend(current.operation[1:])
            elif isinstance(current.default, OneOf):
                stack.extend(current.default.options)  # what it was chosen from
        elif isinstance(current, OneOf):
            stack.extend(current.options)
    return LinearTerms(tuple(sorted(axes)), tuple(sorted(sized)), tuple(symbols))


def _apply(function: Callable[..., Any], operands: list[Scalar | None]) -> Scalar | None:
    if any(operand is None for operand in operands):
        return None
    try:
        result = function(*operands)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return result if isinstance(result, float) or (isinstance(result, int) and abs(result) <= _MAX_INTEGER) else None
