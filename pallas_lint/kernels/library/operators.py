"""Operators on abstract values: arithmetic and comparisons, Python's and those of arrays."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.library import arrays, products
from pallas_lint.kernels.library.equality import equal
from pallas_lint.kernels.library.host import machine
from pallas_lint.kernels.library.host.classes import class_member
from pallas_lint.kernels.library.host.jax_version import compare_version
from pallas_lint.kernels.library.operands import as_may_be
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import dtype_of
from pallas_lint.kernels.model.kinds import differ
from pallas_lint.kernels.model.known_names import UNION, name_of
from pallas_lint.kernels.model.symbols import arithmetic, item_of
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Class,
    Const,
    Dictionary,
    DType,
    External,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Sym,
    Value,
    chosen_number,
)
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pallas_lint.kernels.model.tracer import Tracer

# Operators of arrays under the names of the jnp functions that they call.
BINARY: dict[type, tuple[str, str]] = {
    nodes.Add: ("+", "jax.numpy.add"),
    nodes.Subtract: ("-", "jax.numpy.subtract"),
    nodes.Multiply: ("*", "jax.numpy.multiply"),
    nodes.Divide: ("/", "jax.numpy.true_divide"),
    nodes.FloorDivide: ("//", "jax.numpy.floor_divide"),
    nodes.Modulo: ("%", "jax.numpy.remainder"),
    nodes.Power: ("**", "jax.numpy.power"),
    nodes.MatrixMultiply: ("@", "jax.numpy.matmul"),
    nodes.BitAnd: ("&", "jax.numpy.bitwise_and"),
    nodes.BitOr: ("|", "jax.numpy.bitwise_or"),
    nodes.BitXor: ("^", "jax.numpy.bitwise_xor"),
    nodes.LeftShift: ("<<", "jax.numpy.left_shift"),
    nodes.RightShift: (">>", "jax.numpy.right_shift"),
}
_METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
AUGMENTED: dict[type, tuple[str, str]] = {
    getattr(nodes, f"{node.__name__}Assign"): names for node, names in BINARY.items()
}
_COMPARISONS: dict[type, tuple[Callable[[Any, Any], bool], str]] = {
    nodes.Equal: (operator.eq, "jax.numpy.equal"),
    nodes.NotEqual: (operator.ne, "jax.numpy.not_equal"),
    nodes.LessThan: (operator.lt, "jax.numpy.less"),
    nodes.LessThanEqual: (operator.le, "jax.numpy.less_equal"),
    nodes.GreaterThan: (operator.gt, "jax.numpy.greater"),
    nodes.GreaterThanEqual: (operator.ge, "jax.numpy.greater_equal"),
}
UNARY: dict[type, str] = {
    nodes.Minus: "jax.numpy.negative",
    nodes.BitInvert: "jax.numpy.invert",
    nodes.Plus: "jax.numpy.positive",
}


def binary(
    interp: Tracer, node: nodes.Node, symbol: str, name: str, left: Value, right: Value, *, in_place: bool = False
) -> Value:
    """The value of `left symbol right`; records an operation when an operand is traced."""
    if isinstance(left, Instance) or isinstance(right, Instance):
        made = _by_method(interp, node, symbol, left, right, in_place=in_place)
        if made is not None:
            return made
    if isinstance(left, Array | Ref) or isinstance(right, Array | Ref):
        result = arrays.infer(name, [_as_array(left), _as_array(right)], {}, interp.root.x64 is not None)
        result = result if interp.kernel is not None else as_may_be(result, [left, right])
        given = products.with_default_precision(name, Arguments([left, right]), interp.frame.matmul_precision)
        return interp.frame.op(name, node, given, result, "operator")
    left, right = chosen_number(left), chosen_number(right)
    if isinstance(left, OneOf) or isinstance(right, OneOf):
        return UNKNOWN
    if symbol == "|" and all(isinstance(side, External | Class) or name_of(side) == UNION for side in (left, right)):
        return interp.frame.opaque_call(UNION, Arguments([left, right]), node)
    if symbol == "%" and isinstance(left, Sym):
        interp.effects.remainders.add(left)
    if symbol == "%" and isinstance(right, Sym):
        interp.effects.divisors.add(right)
    if symbol in ("%", "//") and interp.kernel is None and isinstance(left, Sym) and isinstance(right, Sym):
        interp.effects.ratios.add((left, right))
    if symbol == "&" and interp.kernel is None:
        _note_pair(interp, left, Const(0))  # `n & (n - 1)` is 0 for powers of two
    return arithmetic(symbol, left, right)


def _by_method(
    interp: Tracer, node: nodes.Node, symbol: str, left: Value, right: Value, *, in_place: bool
) -> Value | None:
    """What an operator's method of an object of the project returns, such as `__add__`; None where none has one."""
    method = _METHODS[symbol]
    of_left = [f"__i{method}__", f"__{method}__"] if in_place else [f"__{method}__"]
    for owner, other, names in ((left, right, of_left), (right, left, [f"__r{method}__"])):
        if not isinstance(owner, Instance):
            continue
        for name in names:
            found = class_member(interp, owner.cls, name)
            if isinstance(found, Func):
                return interp.call(evolve(found, method_of=owner), Arguments([other]), node)
    return None


def _as_array(value: Value) -> Value:
    return Array(value.shape, value.element) if isinstance(value, Ref) else value


def compare(interp: Tracer, node: nodes.Node, how: nodes.BaseCompOp, left: Value, right: Value) -> Value:
    if isinstance(how, nodes.Is | nodes.IsNot):
        return _identity(left, right, negated=isinstance(how, nodes.IsNot))
    if isinstance(how, nodes.In | nodes.NotIn):
        if isinstance(right, Seq) and right.items:
            interp.frame.concretize("in", left, node)
        there = _contains(right, left)
        if there is None:
            _note_compared(interp, left, right)
            _note_dtypes(interp, left, _members(right))
            return machine.computed(interp, (left, right), node) or UNKNOWN
        return Const(there is isinstance(how, nodes.In))
    function, name = _COMPARISONS[how.__class__]
    if isinstance(left, Array | Ref) or isinstance(right, Array | Ref):
        result = arrays.infer(name, [_as_array(left), _as_array(right)], {}, interp.root.x64 is not None)
        result = result if interp.kernel is not None else as_may_be(result, [left, right])
        return interp.frame.op(name, node, Arguments([left, right]), result, "operator")
    version = compare_version(interp, function, left, right)
    if version is not None:
        return Const(version)
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return Const(bool(function(left.value, right.value)))
        except TypeError:
            return UNKNOWN
    if function in (operator.eq, operator.ne):
        left_type, right_type = arrays.element_of(left), arrays.element_of(right)
        if differ(left_type, right_type):
            return Const(function is operator.ne)
        if isinstance(left_type, str) and left_type == right_type:
            return Const(function is operator.eq)
        same = equal(left, right)
        if same is not None:
            return Const(same is (function is operator.eq))
    left, right = chosen_number(left), chosen_number(right)
    if left == right and isinstance(left, Sym):
        return Const(function(0, 0))
    _note_compared(interp, left, right)
    _note_dtypes(interp, left, (right,))
    return machine.computed(interp, (left, right), node) or UNKNOWN


def _note_dtypes(interp: Tracer, value: Value, compared: Iterable[Value]) -> None:
    """The dtypes that a dtype is compared with which the text leaves open."""
    if interp.kernel is not None or not isinstance(value, Sym) or not interp.frame.stack:
        return
    known = ((option, dtype_of(option)) for option in compared)
    function, of_array = interp.frame.stack[0].node, value.text.endswith((".dtype", ".dtype.name"))
    interp.effects.dtypes.update(
        (function, value.text, dtype)
        for option, dtype in known
        if dtype is not None and (of_array or not isinstance(option, Const))
    )


def _note_compared(interp: Tracer, left: Value, right: Value) -> None:
    """The sizes in a comparison that the text does not decide; tests for divisibility rule out no order of sizes."""
    if interp.kernel is not None or right == Const(0):
        return
    for one, other in _items(left, right):
        _note_pair(interp, one, other)


def _items(left: Value, right: Value) -> Iterable[tuple[Value, Value]]:
    """What is compared with what: of two tuples, and of `x.shape` and a tuple, each item with its own."""
    sides = [_listed(left, right), _listed(right, left)]
    return zip(*sides, strict=True) if len(sides[0]) == len(sides[1]) else [(left, right)]


def _listed(value: Value, other: Value) -> tuple[Value, ...]:
    """The items of a tuple; of a shape of unknown rank, those that it has where it equals the other."""
    if isinstance(value, Seq) and not value.open:
        return value.items
    if isinstance(other, Seq) and not other.open and isinstance(value, Sym) and value.text.endswith(".shape"):
        return tuple(item_of(value, at) for at in range(len(other.items)))
    return (value,)


def _note_pair(interp: Tracer, left: Value, right: Value) -> None:
    whole: list[Value] = [left, right]
    parts: list[Value] = []
    found: set[Sym | None] = set()
    for value in whole:
        if isinstance(value, Seq):
            whole.extend(value.items)
        elif isinstance(value, Sym):
            parts.append(value)
        elif isinstance(value, Const):
            found.add(None)
    for value in parts:
        if isinstance(value, Sym) and value.operation is not None:
            parts.extend(value.operation[1:])
        elif isinstance(value, Sym):
            found.add(value)
    if len(found) == 1 and any(isinstance(value, Const) for value in parts):
        found.add(None)  # the 128 of `k // 128 == limit()`; that of `k // 128 == scales.shape[0]` limits neither
    if found - {None}:
        interp.effects.comparisons.add(frozenset(found))


def _contains(container: Value, wanted: Value) -> bool | None:
    """Whether `wanted in container`; None where that is not known."""
    if isinstance(container, Const) and isinstance(wanted, Const):
        strings = isinstance(container.value, str) and isinstance(wanted.value, str)
        return wanted.value in container.value if strings else None
    if not isinstance(container, Seq | Dictionary):
        return None
    found = [equal(item, wanted) for item in _members(container)]
    return True if True in found else None if None in found or container.open else False


def _members(container: Value) -> tuple[Value, ...]:
    """What is known to be in a container."""
    if isinstance(container, Dictionary):
        return tuple(key for key, _ in container.items)
    return container.items if isinstance(container, Seq) else ()


def _identity(left: Value, right: Value, *, negated: bool) -> Value:
    if left == NONE and right == NONE:
        return Const(not negated)
    if isinstance(left, Const) and isinstance(right, Const) and bool in (left.kind, right.kind):
        return Const((left == right) is not negated)
    if isinstance(left, Instance | External) and isinstance(right, Instance | External):
        same = equal(left, right)
        return UNKNOWN if same is None else Const(same is not negated)
    one, other = (left, right) if right == NONE else (right, left)
    if isinstance(one, Ref) and one.optional:
        return UNKNOWN
    if other == NONE and isinstance(one, Const | Seq | Dictionary | Array | Ref | Func | Class | Instance | DType):
        return Const((one == NONE) is not negated)
    if other == NONE and isinstance(one, CallResult) and not one.function.startswith(("method:", "builtins.")):
        return Const(negated)
    return UNKNOWN
