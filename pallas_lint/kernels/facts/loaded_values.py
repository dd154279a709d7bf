"""Values that equal the content of a ref: their load, and whether the ref could be used in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.identity import iter_unique
from pallas_lint.kernels.model.trace import Access, is_full_index
from pallas_lint.kernels.model.values import NONE, Array, Ref, Seq, Slice
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.syntax import Site


def load_of(value: Array, trace: KernelTrace | None) -> Access | None:
    """The load whose result this value is, unchanged."""
    return None if trace is None else trace.load_of(value)


def uses_loaded(value: Value) -> bool:
    """Whether a number that was loaded goes into a scalar or an index."""
    stack = [value]
    for current in iter_unique(stack):
        if isinstance(current, Seq):
            stack.extend(current.items)
        elif isinstance(current, Slice):
            stack.extend(part for part in (current.start, current.stop) if part is not None)
        elif isinstance(current, Array):
            if current.origin is not None:
                stack.extend(current.origin.args)
            elif not current.host:
                return True
    return False


def ref_in_place(value: Array, use: Site, trace: KernelTrace | None) -> tuple[Ref, str] | None:
    """The ref that holds the whole value, as it can be written at `use`.

    None where the value is not a whole ref, where the kernel writes the ref, or where its name means nothing.
    """
    load = load_of(value, trace)
    if load is None or trace is None or not is_full_index(load.index):
        return None
    if trace.tracked_until is not None or not trace.complete:
        return None
    if trace.launch.argument("input_output_aliases") not in (None, NONE):
        return None
    if any(access.ref.buffer == load.ref.buffer and access.kind != "load" for access in trace.accesses()):
        return None
    node = load.site.node
    if (
        not isinstance(node, nodes.Subscript)
        or not isinstance(node.value, nodes.Name)
        or use.piece is not load.site.piece
    ):
        return None
    name = node.value.value
    around, inner = _functions(load.site), _functions(use)
    if inner[: len(around)] != around or any(_binds(function, name) for function in inner[len(around) :]):
        return None
    return load.ref, name


def _functions(site: Site) -> list[nodes.Node]:
    """The functions around a place, the outermost first."""
    module = site.piece.module
    if module is None:
        return []
    stack: list[tuple[nodes.Node, tuple[nodes.Node, ...]]] = [(module, ())]
    while stack:
        node, around = stack.pop()
        if node is site.node:
            return list(around)
        inside = (*around, node) if isinstance(node, nodes.FunctionDef | nodes.Lambda) else around
        stack.extend((child, inside) for child in node.children)
    return []


def _binds(function: nodes.Node, name: str) -> bool:
    """Whether the function has a parameter or local variable of this name."""
    stack: list[nodes.Node] = list(function.children)
    while stack:
        node = stack.pop()
        if isinstance(node, nodes.Param) and node.name.value == name:
            return True
        if isinstance(node, nodes.AssignTarget) and isinstance(node.target, nodes.Name) and node.target.value == name:
            return True
        stack.extend(node.children)
    return False
