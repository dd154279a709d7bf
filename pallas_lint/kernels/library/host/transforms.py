"""Calls of transformed functions: `jax.vmap(f)(x)`, `jax.grad(f)(x)`, `jax.eval_shape(f, x)`.

Known arguments are passed to the function, and its result is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library import derivatives, sharding
from pallas_lint.kernels.library.host.trees import as_arrays, axis_of, map_leaves
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import operand_element
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import NONE, UNKNOWN, Array, CallResult, Const, Dim, Seq, Sym, Value, as_tuple
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

_FUNCTION = ("fun", "f")
_PULLBACK, _PUSHFORWARD = "jax.vjp()", "jax.linearize()"


def call(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value | None:
    """Call a transformed function; None where the arguments or the transformation are unknown."""
    if made.function == _PULLBACK:
        return Seq(tuple(map(derivatives.like, made.args)))
    model = _MADE.get(made.function)
    known = model is not None and interp.kernel is None and not made.open and _has_known_arguments(arguments)
    return model(interp, made, arguments, node) if model is not None and known else None


def run(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    """Call one of DIRECT; None where the arguments are unknown."""
    known = interp.kernel is None and arguments.positional and _has_known_arguments(arguments.rest(1))
    return _DIRECT[name](interp, name, arguments, node) if known else None


def _has_known_arguments(arguments: Arguments) -> bool:
    """Whether the shape of an array is among the arguments."""
    values = (*arguments.positional, *arguments.keywords.values())
    shapes = (leaf.shape for value in values for leaf in tree_leaves(as_arrays(value)) if isinstance(leaf, Array))
    return not arguments.open and any(shape is not None for shape in shapes)


def _function(made: CallResult) -> Value:
    return next((value for name in _FUNCTION if (value := made.argument(name, 0)) is not None), UNKNOWN)


# -- a function of one example, and of many --------------------------------------------------------------------------


def _vmap(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    axes = made.argument("in_axes", 1) or Const(0)
    count = len(arguments.positional)
    each = list(axes.items) if isinstance(axes, Seq) and not axes.open else [axes] * count
    if len(each) != count:
        return UNKNOWN  # jax refuses it
    every = [*zip(arguments.positional, each, strict=True), *((v, Const(0)) for v in arguments.keywords.values())]
    sizes = [size for value, axis in every for size in _mapped_sizes(as_arrays(value), axis)]
    size: Dim = next((size for size in sizes if isinstance(size, int)), sizes[0] if sizes else None)
    one = [_without_axis(as_arrays(value), axis) for value, axis in every]
    named = dict(zip(arguments.keywords, one[count:], strict=True))
    context = interp.frame.sharding_context if made.function == "jax.vmap" else sharding.unknown(interp, made.function)
    with sharding.within(interp, context):
        result = interp.call(_function(made), Arguments(one[:count], named), node)
    return _with_axis(result, made.argument("out_axes", 2) or Const(0), size)


def _mapped_sizes(value: Value, axis: Value) -> Iterator[Dim]:
    """The sizes of the mapped axes."""
    if isinstance(value, Seq) and isinstance(axis, Seq) and len(value.items) == len(axis.items):
        for item, each in zip(value.items, axis.items, strict=True):
            yield from _mapped_sizes(item, each)
    elif isinstance(axis, Const):
        for leaf in tree_leaves(value):
            at = axis_of(axis, leaf.shape) if isinstance(leaf, Array) else None
            if at is not None and isinstance(leaf, Array) and leaf.shape is not None:
                yield leaf.shape[at]


def _without_axis(value: Value, axis: Value) -> Value:
    """What one example gets."""
    if axis == NONE:
        return value
    if isinstance(value, Seq) and isinstance(axis, Seq):
        if len(value.items) != len(axis.items):
            return UNKNOWN
        return evolve(value, items=tuple(map(_without_axis, value.items, axis.items)))

    def of_leaf(leaf: Value) -> Value:
        if isinstance(leaf, Sym):
            return Sym(f"{leaf.text}[vmap]", leaf.owner)
        if not isinstance(leaf, Array):
            return UNKNOWN
        at = axis_of(axis, leaf.shape)
        rest = None if at is None or leaf.shape is None else (*leaf.shape[:at], *leaf.shape[at + 1 :])
        return Array(rest, leaf.element, leaf.weak)

    return map_leaves(of_leaf, value)


def _with_axis(value: Value, axis: Value, size: Dim) -> Value:
    """What all examples give."""
    if isinstance(value, Seq) and isinstance(axis, Seq):
        if len(value.items) != len(axis.items):
            return UNKNOWN
        return evolve(value, items=tuple(_with_axis(item, at, size) for item, at in zip(value.items, axis.items)))  # noqa: B905
    if axis == NONE:
        return value

    def of_leaf(leaf: Value) -> Value:
        if isinstance(leaf, Const) and isinstance(leaf.value, bool | int | float):
            leaf = Array((), *operand_element(leaf))
        if not isinstance(leaf, Array):
            return UNKNOWN
        at = None if leaf.shape is None else axis_of(axis, (*leaf.shape, size))
        rest = None if at is None or leaf.shape is None else (*leaf.shape[:at], size, *leaf.shape[at:])
        return Array(rest, leaf.element, leaf.weak)

    return map_leaves(of_leaf, value)


# -- derivatives -----------------------------------------------------------------------------------------------------


def _grad(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """Derivatives are like what they are taken by."""
    with derivatives.differentiating(interp):
        result = interp.call(_function(made), arguments, node)
    wanted = made.argument("argnums", 1) or Const(0)
    numbers = [integer(item) for item in as_tuple(wanted)]
    given = dict(enumerate(arguments.positional))
    every = [derivatives.like(given.get(at, UNKNOWN)) for at in numbers if at is not None]
    if len(every) != len(numbers):
        return UNKNOWN
    found: Value = Seq(tuple(every)) if isinstance(wanted, Seq) else every[0]
    has_aux = made.argument("has_aux", 2) or Const(False)
    if made.function == "jax.value_and_grad":
        return Seq((result, found))
    if has_aux == Const(False):
        return found
    aux = result.items[1] if isinstance(result, Seq) and len(result.items) == 2 else UNKNOWN
    return Seq((found, aux)) if has_aux == Const(True) else UNKNOWN


def _derive(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """`jax.jacrev(f)(x)`: the function runs; what comes of it is not followed."""
    with derivatives.differentiating(interp):
        interp.call(_function(made), arguments, node)
    return UNKNOWN


def _make_jaxpr(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """The function is traced, and nothing of it runs."""
    with sharding.within(interp, evolve(interp.frame.sharding_context, traced=True)):
        interp.call(_function(made), Arguments(list(map(as_arrays, arguments.positional)), arguments.keywords), node)
    return UNKNOWN


def _of_primals(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`jax.vjp(f, *primals)`, `jax.linearize(f, *primals)`: the result, and a function."""
    with derivatives.differentiating(interp):
        result = interp.call(arguments.positional[0], Arguments(arguments.positional[1:], open=arguments.open), node)
    made = interp.frame.opaque_call(_PULLBACK if name == "jax.vjp" else _PUSHFORWARD, arguments.rest(1), node)
    has_aux = arguments.keywords.get("has_aux", Const(False))
    if has_aux == Const(False):
        return Seq((result, made))
    if not isinstance(result, Seq) or len(result.items) != 2 or has_aux != Const(True):
        return UNKNOWN
    return Seq((result.items[0], made, result.items[1]))


def _jvp(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    primals = arguments.get("primals", 1)
    if not isinstance(primals, Seq) or primals.open:
        return UNKNOWN
    result = interp.call(arguments.positional[0], Arguments(list(primals.items)), node)
    return Seq((result, derivatives.like(result)))


def _eval_shape(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """The result of the function without running it, with structs for arrays."""
    given = list(map(as_arrays, arguments.positional[1:]))
    named = {name: as_arrays(value) for name, value in arguments.keywords.items()}
    with sharding.within(interp, evolve(interp.frame.sharding_context, traced=True)):
        return interp.call(arguments.positional[0], Arguments(given, named, arguments.open), node)


_MADE: dict[str, Callable[[Tracer, CallResult, Arguments, nodes.Node], Value]] = {
    "jax.vmap": _vmap,
    "jax.pmap": _vmap,
    "jax.grad": _grad,
    "jax.value_and_grad": _grad,
    **dict.fromkeys((f"jax.{name}" for name in "jacrev jacfwd jacobian hessian".split()), _derive),
    "jax.make_jaxpr": _make_jaxpr,
}
_DIRECT: dict[str, Model] = {
    "jax.vjp": _of_primals,
    "jax.linearize": _of_primals,
    "jax.jvp": _jvp,
    "jax.eval_shape": _eval_shape,
}
DIRECT = tuple(_DIRECT)
