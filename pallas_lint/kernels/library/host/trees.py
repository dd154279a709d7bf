"""Pytrees: nested tuples, lists, dictionaries and objects, and the arrays in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.operands import axes
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import element_of
from pallas_lint.kernels.model.known_names import is_shape_struct
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    DType,
    External,
    Func,
    Instance,
    Seq,
    Value,
    shape_of,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.kernels.model.values import Shape
    from pallas_lint.syntax import nodes


def map_leaves(function: Callable[[Value], Value], tree: Value) -> Value:
    """The tree with what the function gives in the place of each leaf; None is none."""
    if isinstance(tree, Seq):
        return evolve(tree, items=tuple(map_leaves(function, item) for item in tree.items))
    if isinstance(tree, Dictionary):
        return evolve(tree, items=tuple((key, map_leaves(function, item)) for key, item in tree.items))
    if isinstance(tree, Instance) and tree.order is not None:
        return evolve(tree, attributes={key: map_leaves(function, item) for key, item in tree.attributes.items()})
    return NONE if tree == NONE else function(tree)


def as_arrays(tree: Value) -> Value:
    """Shape structs as arrays."""
    return map_leaves(_as_array, tree) if isinstance(tree, Seq | Dictionary | CallResult | Instance) else tree


def _as_array(leaf: Value) -> Value:
    if not is_shape_struct(leaf):
        return leaf
    return Array(shape_of(leaf.argument("shape", 0) or UNKNOWN), element_of(leaf.argument("dtype", 1)))


def axis_of(axis: Value, shape: Shape | None) -> int | None:
    """Which axis of such an array a number means; None where that is not known."""
    found = None if shape is None else axes(axis, len(shape))
    return found[0] if found is not None and len(found) == 1 and shape else None


# -- what jax.tree has ----------------------------------------------------------------------------------------------

_STRUCTURE = "jax.tree.structure"


def leaves(tree: Value) -> list[Value] | None:
    """The leaves in jax's order, in which dictionaries go by their keys; None where they are not all known."""
    if isinstance(tree, Const | Array | DType | Func | External) or is_shape_struct(tree):
        return [] if tree == NONE else [tree]
    if isinstance(tree, Seq) and not tree.open:
        parts: list[Value] = list(tree.items)
    elif isinstance(tree, Dictionary) and not tree.open:
        named = {key.value: value for key, value in tree.items if isinstance(key, Const)}
        if len(named) < len(tree.items) or len({type(key) for key in named}) > 1:
            return None
        parts = [named[key] for key in sorted(named)]
    else:
        return None
    found: list[Value] = []
    for part in parts:
        inner = leaves(part)
        if inner is None:
            return None
        found += inner
    return found


def _flatten(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    tree = arguments.get("tree", 0)
    found = None if tree is None or "is_leaf" in arguments.keywords else leaves(tree)
    if found is None or tree is None or len(arguments.positional) > 1:
        return None
    listed, structure = Seq(tuple(found), "list"), interp.frame.opaque_call(_STRUCTURE, Arguments([tree]), node)
    if name.endswith("leaves"):
        return listed
    return structure if name.endswith("structure") else Seq((listed, structure))


def _unflatten(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    structure, given = arguments.get("treedef", 0), arguments.get("leaves", 1)
    if not isinstance(structure, CallResult) or structure.function != _STRUCTURE or not isinstance(given, Seq):
        return None
    tree = structure.args[0]
    there = leaves(tree)
    if given.open or there is None or len(there) != len(given.items):
        return None
    return _filled(tree, iter(given.items))


def _filled(tree: Value, given: Iterator[Value]) -> Value:
    if isinstance(tree, Seq):
        return evolve(tree, items=tuple(_filled(item, given) for item in tree.items))
    if isinstance(tree, Dictionary):
        named = dict(tree.items)
        order = sorted(named, key=lambda key: key.value if isinstance(key, Const) else "")
        filled = {key: _filled(named[key], given) for key in order}
        return evolve(tree, items=tuple((key, filled[key]) for key, _ in tree.items))
    return NONE if tree == NONE else next(given)


def _reduce(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    function, tree = arguments.get("function", 0), arguments.get("tree", 1)
    found = None if tree is None or "is_leaf" in arguments.keywords else leaves(tree)
    if function is None or found is None:
        return None
    initial = arguments.get("initializer", 2)
    items = [*([] if initial is None else [initial]), *found]
    result = items[0] if items else UNKNOWN
    for item in items[1:]:
        result = interp.call(function, Arguments([result, item]), node)
    return result


# Models that give None where the tree is not known.
TREES: dict[str, Callable[[Tracer, str, Arguments, nodes.Node], Value | None]] = {
    **{
        f"jax.tree{infix}{name}": _flatten
        for infix in (".", "_util.tree_")
        for name in ("leaves", "flatten", "structure")
    },
    **{f"jax.tree{infix}unflatten": _unflatten for infix in (".", "_util.tree_")},
    **{f"jax.tree{infix}reduce": _reduce for infix in (".", "_util.tree_")},
}
