"""Symbols of the workspace: kernels and launches by name, of open documents and of files that a run has looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.views.navigation import outline

from pallas_lint.checker.backend_failures import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.launch_summary import LaunchSummary


def symbols(
    query: str,
    states: Iterable[DocumentState],
    launches: Iterable[LaunchSummary],
    codec: PositionCodec,
    uri_of: Callable[[str], str],
) -> list[lsp.WorkspaceSymbol]:
    """The kernels and launches whose names have the letters of `query` in this order, each place once.

    `states` are the open documents; of `launches`, with absolute paths, those in other files count.
    """
    found: dict[tuple[str, int], lsp.WorkspaceSymbol] = {}
    opened: set[str] = set()
    for state in states:
        opened.add(state.source.path)
        for each in outline(state, codec):
            if _matches(query, each.name):
                place = lsp.Location(state.uri, each.selection_range)
                symbol = lsp.WorkspaceSymbol(place, each.name, each.kind, container_name=each.detail)
                found[state.source.path, each.selection_range.start.line] = symbol
    for launch in launches:
        for path, start, name, kind, detail in _of_summary(launch):
            if path not in opened and (path, start.line) not in found and _matches(query, name):
                place = lsp.Location(uri_of(path), lsp.Range(start, start))
                found[path, start.line] = lsp.WorkspaceSymbol(place, name, kind, container_name=detail)
    return sorted(found.values(), key=lambda each: each.name)


def _of_summary(launch: LaunchSummary) -> Iterator[tuple[str, lsp.Position, str, lsp.SymbolKind, str]]:
    """The kernels of a launch and the launch itself: path, place, name, kind and details of each.

    Columns are taken as they are: what stands before a kernel's name or a launch takes one unit a character.
    """
    backend = BACKENDS.get((launch.backend or "").partition(":")[0].replace("-", "_"), "backend not known")
    about = f"{backend}, {launch.grid}"
    names = launch.kernel.split(", ") if launch.kernel is not None else []
    for name, defined in zip(names, launch.defined, strict=False):
        if not defined:
            continue
        path, line, column = defined.rsplit(":", 2)
        yield path, lsp.Position(int(line) - 1, int(column) - 1), name, lsp.SymbolKind.Function, f"kernel: {about}"
    if launch.cell is None:  # of a notebook that is not open no cell can be pointed at
        title = f"launch of {launch.kernel or 'kernel'}"
        yield launch.path, lsp.Position(launch.line - 1, launch.column - 1), title, lsp.SymbolKind.Event, about


def _matches(query: str, name: str) -> bool:
    """Whether a name has the letters in this order, as editors look for symbols; they rank what they get."""
    letters = iter(name.casefold())
    return all(letter in letters for letter in query.casefold() if not letter.isspace())
