"""Memory spaces of the refs that a document names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.views.calls import shown_traces
from pallas_lint.server.views.figures import known_of, space_of

from pallas_lint.kernels.launches.launching import bodies_of, definition_site
from pallas_lint.kernels.model.values import Func
from pallas_lint.memories import kind_of
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.finding import Span
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Ref
    from pallas_lint.syntax import Piece
    from pallas_lint.syntax.scopes import FunctionScope


def named_refs(state: DocumentState) -> dict[Span, str]:
    """The kind of memory of every ref by the places of its name, in order.

    A ref is left out where its memory is not known from a launch, or where two launches have different ones.
    """
    if not state.has_analysis:
        return {}
    found: dict[nodes.Name, tuple[Piece, str | None]] = {}
    for trace in shown_traces(state):
        for piece, name, kind in _named(trace, state):
            _, before = found.get(name, (piece, kind))
            found[name] = piece, kind if before == kind else None
    spans = {piece.span(name): kind for name, (piece, kind) in found.items() if kind is not None}
    return dict(sorted(spans.items(), key=lambda each: each[0]))


def _named(trace: KernelTrace, state: DocumentState) -> Iterator[tuple[Piece, nodes.Name, str | None]]:
    """The names of refs in one kernel, and in what it calls in the same file."""
    launch, path = trace.launch, state.source.path
    probed = known_of(state, launch)

    def kinds(refs: Iterable[Ref]) -> dict[str, str | None]:
        return {ref.parameter: kind_of(space_of(ref, launch, state, probed)) for ref in refs}

    held = kinds(ref for allocation in trace.allocations for ref in allocation.refs)
    own: set[nodes.Name] = set()
    for body in bodies_of(launch.kernel):  # the others have traces of their own
        if isinstance(body, Func) and body.piece.source.path == path and definition_site(body).key == trace.site.key:
            for used, kind in _uses(body.piece.scopes.of(body.node), kinds(trace.refs), held):
                own.add(used)
                yield body.piece, used, kind
    # What is left are refs that other functions are passed, and other names for them: these are seen where they are
    # read and written.
    seen: set[tuple[nodes.Name, str | None]] = set()
    for access in trace.accesses():
        piece, name = access.site.piece, _accessed(access.site.node)
        if name is None or name in own or piece.source.path != path:
            continue
        kind = kinds([access.ref])[access.ref.parameter]
        if (name, kind) not in seen:
            scope = piece.scopes.binding(name, piece)
            for used in scope.parameters[name.value] if scope is not None else [name]:
                seen.add((used, kind))
                yield piece, used, kind


def _accessed(node: nodes.Node) -> nodes.Name | None:
    """The name that `name[...]`, `name.at[...][...]` and the like begin with; not that of an object that has refs."""
    while isinstance(node, nodes.Subscript) or (isinstance(node, nodes.Attribute) and node.attr.value == "at"):
        node = node.value
    return node if isinstance(node, nodes.Name) else None


def _uses(
    scope: FunctionScope, refs: Mapping[str, str | None], held: Mapping[str, str | None]
) -> Iterator[tuple[nodes.Name, str | None]]:
    """The names of refs among a function's parameters, and among those of functions in it that are handed some."""
    for parameter, names in scope.parameters.items():
        if parameter in refs:
            yield from ((name, refs[parameter]) for name in names)
    for inner in scope.inner:
        yield from _uses(inner, held, held)
