"""The `dimension_semantics` of a launch: the value for each grid axis, and where it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.values import NONE, UNKNOWN, CallResult, Const, Dictionary, External, Seq, Value
from pallas_lint.syntax import Site, nodes
from pallas_lint.syntax.literals import text_value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import Launch

# Each word with the last of the measured releases that does not know it; None: all do.
WORDS = {"parallel": None, "arbitrary": None, "core_parallel": "0.5.3", "subcore_parallel": "0.6.2"}


def semantics_of(launch: Launch, rank: int) -> tuple[str | None, ...]:
    """The semantics of each axis of the grid, None where not known; "arbitrary" is jax's default."""
    declared = declared_semantics(launch)
    if declared is None:
        return ("arbitrary",) * rank
    if not isinstance(declared, Seq) or declared.open or len(declared.items) != rank:
        return (None,) * rank
    return tuple(semantics_name(item) for item in declared.items)


def declared_semantics(launch: Launch) -> Value | None:
    """The `dimension_semantics` of a launch; None where there certainly are none, UNKNOWN where that is not known."""
    own = launch.argument("dimension_semantics")
    if own not in (None, NONE):
        return own
    params = launch.argument("compiler_params", "params")
    if params in (None, NONE):
        return UNKNOWN if launch.open else None
    if isinstance(params, Dictionary):
        nested = params.get("mosaic") or params.get("mosaic_tpu") or params.get("mosaic_gpu")
        params = nested if nested is not None else params
    if isinstance(params, Dictionary):
        found = params.get("dimension_semantics")
        return found if found is not None else UNKNOWN if params.open else None
    if isinstance(params, CallResult):
        found = params.argument("dimension_semantics", 0 if params.function.endswith("CompilerParams") else None)
        return UNKNOWN if found is None and params.open else None if found == NONE else found
    return UNKNOWN


def semantics_name(value: Value) -> str | None:
    """ "parallel" for "parallel", `pltpu.PARALLEL` and `pltpu.GridDimensionSemantics.PARALLEL`."""
    if isinstance(value, External):
        return value.short.lower()
    return value.value.lower() if isinstance(value, Const) and isinstance(value.value, str) else None


def semantics_site(launch: Launch, axis: int) -> tuple[Site, Site | None]:
    """Where the semantics are given, and the literal for one axis where it has its own."""
    value = launch.argument("compiler_params", "params")
    place = getattr(value, "site", None) or launch.called_at
    for owner in (getattr(value, "site", None), launch.site):
        expression = None if owner is None else _keyword(owner.node, "dimension_semantics")
        if owner is None or expression is None:
            continue
        place = Site(owner.piece, expression)
        if isinstance(expression, nodes.Tuple | nodes.List) and axis < len(expression.elements):
            element = expression.elements[axis]
            starred = any(isinstance(item, nodes.StarredElement) for item in expression.elements)
            return place, None if starred else Site(owner.piece, element.value)
    return place, None


def _keyword(node: nodes.Node, name: str) -> nodes.BaseExpression | None:
    """The expression given for a keyword in a call or for a key in a dict display, at any depth."""
    stack: list[nodes.Node] = [node]
    while stack:
        current = stack.pop(0)
        if isinstance(current, nodes.Arg) and current.keyword is not None and current.keyword.value == name:
            return current.value
        key = current.key if isinstance(current, nodes.DictElement) else None
        if isinstance(current, nodes.DictElement) and isinstance(key, nodes.SimpleString) and text_value(key) == name:
            return current.value
        stack.extend(current.children)
    return None
