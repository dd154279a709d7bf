"""Operators on abstract values: arithmetic and comparisons, Python's and those of arrays."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import libcst as cst

from pallas_lint.kernels.library import arrays
from pallas_lint.kernels.library.jax_version import compare_version
from pallas_lint.kernels.library.operands import as_may_be
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.kinds import differ
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    Choice,
    Class,
    Const,
    Dictionary,
    DType,
    Func,
    Instance,
    Made,
    Ref,
    Seq,
    Sym,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.interpreter.interpreter import Interpreter

# Operators of arrays under the names of the jnp functions that they call.
BINARY: dict[type, tuple[str, str]] = {
    cst.Add: ("+", "jax.numpy.add"),
    cst.Subtract: ("-", "jax.numpy.subtract"),
    cst.Multiply: ("*", "jax.numpy.multiply"),
    cst.Divide: ("/", "jax.numpy.true_divide"),
    cst.FloorDivide: ("//", "jax.numpy.floor_divide"),
    cst.Modulo: ("%", "jax.numpy.remainder"),
    cst.Power: ("**", "jax.numpy.power"),
    cst.MatrixMultiply: ("@", "jax.numpy.matmul"),
    cst.BitAnd: ("&", "jax.numpy.bitwise_and"),
    cst.BitOr: ("|", "jax.numpy.bitwise_or"),
    cst.BitXor: ("^", "jax.numpy.bitwise_xor"),
    cst.LeftShift: ("<<", "jax.numpy.left_shift"),
    cst.RightShift: (">>", "jax.numpy.right_shift"),
}
AUGMENTED: dict[type, tuple[str, str]] = {
    getattr(cst, f"{node.__name__}Assign"): names for node, names in BINARY.items()
}
_COMPARISONS: dict[type, tuple[Callable[[Any, Any], bool], str]] = {
    cst.Equal: (operator.eq, "jax.numpy.equal"),
    cst.NotEqual: (operator.ne, "jax.numpy.not_equal"),
    cst.LessThan: (operator.lt, "jax.numpy.less"),
    cst.LessThanEqual: (operator.le, "jax.numpy.less_equal"),
    cst.GreaterThan: (operator.gt, "jax.numpy.greater"),
    cst.GreaterThanEqual: (operator.ge, "jax.numpy.greater_equal"),
}
UNARY: dict[type, str] = {
    cst.Minus: "jax.numpy.negative",
    cst.BitInvert: "jax.numpy.invert",
    cst.Plus: "jax.numpy.positive",
}


def binary(i: Interpreter, node: cst.CSTNode, symbol: str, name: str, left: Value, right: Value) -> Value:
    """The value of `left symbol right`; records an operation when an operand is traced."""
    if isinstance(left, Array | Ref) or isinstance(right, Array | Ref):
        result = arrays.infer(name, [_as_array(left), _as_array(right)], {}, i.root.x64 is not None)
        result = result if i.kernel is not None else as_may_be(result, [left, right])
        return i.op(name, node, Arguments([left, right]), result, "operator")
    if isinstance(left, Choice) or isinstance(right, Choice):
        return UNKNOWN
    if symbol == "%" and isinstance(left, Sym):
        i.notes.remainders.add(left)
    if symbol == "%" and isinstance(right, Sym):
        i.notes.divisors.add(right)
    return arithmetic(symbol, left, right)


def _as_array(value: Value) -> Value:
    return Array(value.shape, value.element) if isinstance(value, Ref) else value


def compare(i: Interpreter, node: cst.CSTNode, how: cst.BaseCompOp, left: Value, right: Value) -> Value:
    if isinstance(how, cst.Is | cst.IsNot):
        return _identity(left, right, negated=isinstance(how, cst.IsNot))
    if isinstance(how, cst.In | cst.NotIn):
        if isinstance(right, Seq) and right.items:
            i.demand("in", left, node)
        known = isinstance(right, Seq) and not right.open and all(isinstance(item, Const) for item in right.items)
        if known and isinstance(right, Seq) and isinstance(left, Const):
            return Const((left in right.items) is isinstance(how, cst.In))
        return UNKNOWN
    function, name = _COMPARISONS[how.__class__]
    if isinstance(left, Array | Ref) or isinstance(right, Array | Ref):
        result = arrays.infer(name, [_as_array(left), _as_array(right)], {}, i.root.x64 is not None)
        result = result if i.kernel is not None else as_may_be(result, [left, right])
        return i.op(name, node, Arguments([left, right]), result, "operator")
    version = compare_version(i, function, left, right)
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
    if left == right and isinstance(left, Sym):
        return Const(function(0, 0))
    return UNKNOWN


def _identity(left: Value, right: Value, *, negated: bool) -> Value:
    if left == NONE and right == NONE:
        return Const(not negated)
    one, other = (left, right) if right == NONE else (right, left)
    if isinstance(one, Ref) and one.optional:
        return UNKNOWN
    if other == NONE and isinstance(one, Const | Seq | Dictionary | Array | Ref | Func | Class | Instance | DType):
        return Const((one == NONE) is not negated)
    if other == NONE and isinstance(one, Made) and not one.function.startswith(("method:", "builtins.")):
        return Const(negated)
    return UNKNOWN
