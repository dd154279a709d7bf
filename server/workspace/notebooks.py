"""Open notebooks: to the rest of the server each is one document, to the client each of its cells is.

Requests on a cell go to the notebook, and results are mapped back to its cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp, moved, range_of
from pallas_lint.server.workspace.documents import Documents

from pallas_lint.finding import Edit, Span
from pallas_lint.notebooks.notebook import Cell, Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.server.app import PallasServer

T = TypeVar("T")

# All cells, that their numbers are those of the editor's list.
SYNC = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[lsp.NotebookDocumentFilterWithNotebook(notebook="jupyter-notebook")], save=True
)
# They write into a file, or show one.
_OF_FILES = ("pallasLint.tune", "pallasLint.showLayout")


class Notebooks:
    """The notebooks that are open."""

    def __init__(self, server: PallasServer) -> None:
        self._server = server
        self._by_cell: dict[str, str] = {}  # URI of a code cell -> of its notebook
        self._shown: dict[str, set[str]] = {}  # notebook -> cells that have diagnostics in the client

    def put(self, uri: str) -> None:
        """A notebook was opened or changed: its cells are one document from now on."""
        workspace = self._server.workspace
        document = workspace.get_notebook_document(notebook_uri=uri)
        if document is None:
            return
        texts: list[tuple[int, str]] = []
        cells: dict[int, str] = {}
        for number, cell in enumerate(document.cells, start=1):
            text = workspace.get_text_document(cell.document)
            if cell.kind is lsp.NotebookCellKind.Code and text.language_id == "python":
                texts.append((number, text.source))
                cells[number] = cell.document
        self._by_cell = {cell: owner for cell, owner in self._by_cell.items() if owner != uri}
        self._by_cell |= dict.fromkeys(cells.values(), uri)
        self._server.documents.put(uri, document.version, Notebook.of(Documents.shown(uri), texts, cells))

    def close(self, uri: str) -> None:
        self._by_cell = {cell: owner for cell, owner in self._by_cell.items() if owner != uri}
        self._shown.pop(uri, None)

    def of_cell(self, uri: str) -> tuple[str, Notebook, Cell] | None:
        """The notebook of a cell: its URI, its newest text and the cell in it; None for what is no cell with Python."""
        owner = self._by_cell.get(uri)
        source = self._server.documents.source(owner) if owner is not None else None
        if owner is None or not isinstance(source, Notebook):
            return None
        return next(((owner, source, cell) for cell in source.cells if cell.uri == uri), None)

    @staticmethod
    def of_file(found: Sequence[lsp.Diagnostic], notebook: Notebook) -> list[lsp.Diagnostic]:
        """The diagnostics of a notebook that is not open: there is no document for a place in a cell."""
        start = lsp.Position(0, 0)
        lines = [notebook.describe_line(each.range.start.line + 1) if notebook.cells else "" for each in found]
        return [
            attrs.evolve(each, message=f"{line}: {each.message}", range=lsp.Range(start, start))
            for each, line in zip(found, lines, strict=True)
        ]

    # -- to the client ---------------------------------------------------------------------------------------------

    def published(self, uri: str, version: int | None, found: Sequence[lsp.Diagnostic]) -> None:
        """Push the diagnostics of a document, or of each cell of a notebook; cells that are gone have none."""
        state = self._server.documents.known(uri)
        source = state.source if state is not None else None
        if not isinstance(source, Notebook):
            for cell in self._shown.pop(uri, ()):
                self._push(cell, None, [])
            self._push(uri, version, self.located(list(found)))
            return
        parts = list(self.by_cell(found, source))
        cells = {cell for cell, _, _ in parts}
        for cell in self._shown.get(uri, set()) - cells:
            self._push(cell, None, [])
        for cell, version, inside in parts:
            self._push(cell, version, inside)
        self._shown[uri] = cells

    def by_cell(
        self, found: Sequence[lsp.Diagnostic], notebook: Notebook
    ) -> Iterator[tuple[str, int | None, list[lsp.Diagnostic]]]:
        """The URI of each cell of a notebook with its version and its part of the diagnostics."""
        for cell in notebook.cells:
            text = self._server.workspace.text_documents.get(cell.uri)
            yield cell.uri, text.version if text is not None else None, self._in_cell(found, notebook, cell)

    def _push(self, uri: str, version: int | None, found: list[lsp.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        )

    def answer(self, answer: Any, uri: str, notebook: Notebook, cell: Cell) -> Any:
        """An answer about a notebook as one about its cell."""
        up = 1 - cell.first
        if isinstance(answer, lsp.RelatedFullDocumentDiagnosticReport):
            return attrs.evolve(answer, items=self._in_cell(answer.items, notebook, cell))
        if isinstance(answer, lsp.Hover):
            return moved(answer, up)
        if not isinstance(answer, list):
            return answer
        kept: list[Any] = []
        for each in answer:
            if isinstance(each, lsp.CodeAction):
                edit = self._edit(each.edit, uri, notebook) if each.edit is not None else None
                if edit is not None:
                    kept.append(attrs.evolve(each, edit=edit, diagnostics=moved(each.diagnostics, up)))
            elif isinstance(each, lsp.CodeLens):
                of_files = each.command is not None and each.command.command in _OF_FILES
                if is_in(each.range.start, cell) and not of_files:
                    kept.append(attrs.evolve(each, range=moved(each.range, up)))
            elif isinstance(each, lsp.Location):
                kept.append(self._location(each))
            elif isinstance(each, lsp.DocumentSymbol):
                if is_in(each.selection_range.start, cell):
                    kept.append(moved(each, up))
            elif isinstance(each, lsp.InlayHint):
                if is_in(each.position, cell):
                    kept.append(self._hint(moved(each, up)))
            else:
                kept.append(moved(each, up))
        return kept

    def _hint(self, hint: lsp.InlayHint) -> lsp.InlayHint:
        """A hint whose parts lead into cells."""
        if isinstance(hint.label, str):
            return hint
        parts = [
            each if each.location is None else attrs.evolve(each, location=self._location(each.location))
            for each in hint.label
        ]
        return attrs.evolve(hint, label=parts)

    def _in_cell(self, found: Sequence[lsp.Diagnostic], notebook: Notebook, cell: Cell) -> list[lsp.Diagnostic]:
        """The diagnostics of a notebook that lie in a cell."""
        inside = [each for each in found if is_in(each.range.start, cell)]
        if cell is notebook.cells[0]:  # what concerns the whole notebook
            inside = [each for each in found if each.range.start.line < cell.first - 1] + inside
        return [self.located(attrs.evolve(each, range=moved(each.range, 1 - cell.first))) for each in inside]

    def located(self, value: T) -> T:
        """Places, diagnostics, or a report of them, that point into cells where they would point into a notebook."""
        if not self._by_cell:
            return value
        if isinstance(value, list):
            return [self.located(each) for each in value]  # type: ignore[return-value]
        if isinstance(value, lsp.RelatedFullDocumentDiagnosticReport):
            return attrs.evolve(value, items=self.located(list(value.items)))
        if isinstance(value, lsp.Location):
            return self._location(value)  # type: ignore[return-value]
        if isinstance(value, lsp.WorkspaceSymbol) and isinstance(value.location, lsp.Location):
            return attrs.evolve(value, location=self._location(value.location))
        if not isinstance(value, lsp.Diagnostic) or not value.related_information:
            return value
        related = [attrs.evolve(each, location=self._location(each.location)) for each in value.related_information]
        return attrs.evolve(value, related_information=related)

    def _location(self, location: lsp.Location) -> lsp.Location:
        uri = self._server.documents.uri_of(Documents.shown(location.uri))
        source = self._server.documents.source(uri) if uri is not None else None
        if not isinstance(source, Notebook) or not source.cells:
            return location
        cell = source.cell_at(location.range.start.line + 1)
        return lsp.Location(cell.uri, moved(location.range, 1 - cell.first))

    def _edit(self, edit: lsp.WorkspaceEdit, uri: str, notebook: Notebook) -> lsp.WorkspaceEdit | None:
        """An edit of a notebook as one of its cells; None where it cannot be."""
        if edit.changes is None or uri not in edit.changes:
            return edit
        changes: dict[str, list[lsp.TextEdit]] = {each: list(of) for each, of in edit.changes.items() if each != uri}
        codec = self._server.workspace.position_codec
        for each in edit.changes[uri]:
            start, end = (from_lsp(notebook, place, codec) for place in (each.range.start, each.range.end))
            settled = notebook.edit_in_cells(Edit(Span(notebook.path, start, end), each.new_text))
            if settled is None:
                return None
            cell = notebook.cell_at(settled.span.start.line)
            where = moved(range_of(notebook, settled.span, codec), 1 - cell.first)
            changes.setdefault(cell.uri, []).append(lsp.TextEdit(where, settled.text))
        return attrs.evolve(edit, changes=changes)


def is_in(place: lsp.Position, cell: Cell) -> bool:
    """Whether a place in a notebook lies in a cell of it."""
    return cell.first - 1 <= place.line <= cell.first - 1 + _lines(cell)


def _lines(cell: Cell) -> int:
    return cell.text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
