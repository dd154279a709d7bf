"""Notebooks in an editor: one module, answered cell by cell."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp

from tests.server.clients import LIMIT, Editor, codes, document, everywhere, label, session
from tests.server.test_protocol import applied
from tests.test_notebook import IMPORTS, KERNEL, LAUNCH, SILENT
from tests.test_notebook import document as content

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = {"jax-version": "0.10.2"}
PROFILES = ["visual-studio-code", "pull", "minimal"]
pytestmark = pytest.mark.asyncio


class Cells:
    """A notebook in an editor, of cells with a name each."""

    def __init__(self, editor: Editor, file: Path, *texts: str | tuple[str, str]) -> None:
        """`texts` are of Python cells, or pairs of a language (`markdown` for text) and the text."""
        self.editor, self.uri = editor, file.as_uri()
        self._version = 1
        self._made = 0
        self.names: list[str] = []
        cells, documents = self._new(texts)
        self.editor.client.notebook_document_did_open(
            lsp.DidOpenNotebookDocumentParams(lsp.NotebookDocument(self.uri, "jupyter-notebook", 1, cells), documents)
        )
        self.names = [cell.document for cell in cells]

    def _new(self, texts: Any) -> tuple[list[lsp.NotebookCell], list[lsp.TextDocumentItem]]:
        cells, documents = [], []
        for given in texts:
            language, text = ("python", given) if isinstance(given, str) else given
            kind = lsp.NotebookCellKind.Markup if language == "markdown" else lsp.NotebookCellKind.Code
            uri = f"vscode-notebook-cell:{self.uri.removeprefix('file://')}#c{self._made}"
            self._made += 1
            cells.append(lsp.NotebookCell(kind, uri))
            documents.append(lsp.TextDocumentItem(uri, language, 1, text))
        return cells, documents

    def _change(self, **changes: Any) -> None:
        self._version += 1
        self.editor.client.notebook_document_did_change(
            lsp.DidChangeNotebookDocumentParams(
                lsp.VersionedNotebookDocumentIdentifier(self._version, self.uri),
                lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(**changes)),
            )
        )

    def splice(self, start: int, delete: int, *texts: str | tuple[str, str]) -> None:
        cells, documents = self._new(texts)
        gone = [lsp.TextDocumentIdentifier(name) for name in self.names[start : start + delete]]
        array = lsp.NotebookCellArrayChange(start, delete, cells)
        self.names[start : start + delete] = [cell.document for cell in cells]
        self._change(structure=lsp.NotebookDocumentCellChangeStructure(array, documents, gone))

    def move(self, at: int, to: int) -> None:
        """A cell goes elsewhere; its document stays open."""
        name = self.names.pop(at)
        self._change(structure=_array(lsp.NotebookCellArrayChange(at, 1)))
        self.names.insert(to, name)
        cell = lsp.NotebookCell(lsp.NotebookCellKind.Code, name)
        self._change(structure=_array(lsp.NotebookCellArrayChange(to, 0, [cell])))

    def type(self, at: int, where: lsp.Range, text: str) -> None:
        identifier = lsp.VersionedTextDocumentIdentifier(self._version + 1, self.names[at])
        change = lsp.TextDocumentContentChangePartial(range=where, text=text)
        self._change(text_content=[lsp.NotebookDocumentCellContentChanges(identifier, [change])])

    def close(self) -> None:
        cells = [lsp.TextDocumentIdentifier(name) for name in self.names]
        self.editor.client.notebook_document_did_close(
            lsp.DidCloseNotebookDocumentParams(lsp.NotebookDocumentIdentifier(self.uri), cells)
        )

    async def found(self) -> dict[int, list[tuple[Any, int]]]:
        """Code and line of the diagnostics requested, by cell."""
        pulled = {at: await self.editor.pulled(name) for at, name in enumerate(self.names)}
        return {at: [(each.code, each.range.start.line) for each in found] for at, found in pulled.items() if found}

    async def actions(self, at: int, where: lsp.Position, *only: str) -> dict[str, lsp.CodeAction]:
        found = await self.editor.actions(self.names[at], lsp.Range(where, where), *only)
        return {each.title: each for each in found}


def _array(change: lsp.NotebookCellArrayChange) -> lsp.NotebookDocumentCellChangeStructure:
    return lsp.NotebookDocumentCellChangeStructure(change)


def place(text: str, within: str, offset: int = 0) -> lsp.Position:
    before = within[: within.index(text) + offset]
    return lsp.Position(before.count("\n"), len(before.rpartition("\n")[2]))


@pytest.mark.parametrize("profile", PROFILES)
async def test_findings_lie_in_cells_and_point_at_others(profile: str, tmp_path: Path) -> None:
    async with session(profile, tmp_path, options=OPTIONS) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", ("markdown", "# pallas"), IMPORTS, f"%time 1\n\n{KERNEL}", LAUNCH)
        assert await cells.found() == {2: [("PAL101", 3)], 3: [("PAL301", 1)]}
        (cumsum,) = await editor.pulled(cells.names[2])
        assert cumsum.range.start == place("jnp.cumsum", f"%time 1\n\n{KERNEL}")
        (launched,) = cumsum.related_information or []
        assert launched.location == lsp.Location(
            cells.names[3], lsp.Range(place("pl.pallas_call", LAUNCH), place("(\n        kernel", LAUNCH))
        )


@pytest.mark.parametrize("profile", ["emacs", "minimal"])
async def test_diagnostics_are_pushed_for_each_cell_and_cleared(profile: str, tmp_path: Path) -> None:
    async with session(profile, tmp_path, options=OPTIONS) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, KERNEL, LAUNCH)
        _, kernel, launch = cells.names
        await editor.until(lambda: editor.shown(launch))
        assert [each.code for each in editor.shown(kernel) or []] == ["PAL101"]
        cells.type(2, lsp.Range(place(" * 8", LAUNCH), place(", 0)", LAUNCH)), "")
        await editor.until(lambda: editor.shown(launch) == [])
        assert [each.code for each in editor.shown(kernel) or []] == ["PAL101"]
        cells.splice(1, 1)
        await editor.until(lambda: editor.shown(kernel) == [])
        cells.splice(1, 0, KERNEL)
        await editor.until(lambda: editor.shown(cells.names[1]))
        cells.close()
        await editor.until(lambda: editor.shown(cells.names[1]) == [])


async def test_cells_come_go_and_move(tmp_path: Path) -> None:
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, KERNEL, LAUNCH)
        cells.splice(1, 0, "x = 1\ny = 2", ("markdown", "text"))
        assert await cells.found() == {3: [("PAL101", 1)], 4: [("PAL301", 1)]}
        cells.move(4, 1)
        assert await cells.found() == {1: [("PAL301", 1)], 4: [("PAL101", 1)]}
        cells.splice(4, 1, ("markdown", KERNEL))
        assert await cells.found() == {1: [("PAL301", 1)]}
        cells.splice(4, 1, ("shellscript", KERNEL))
        assert await cells.found() == {1: [("PAL301", 1)]}
        cells.splice(4, 1, KERNEL)
        assert await cells.found() == {1: [("PAL301", 1)], 4: [("PAL101", 1)]}
        cells.splice(0, 5)
        assert await cells.found() == {}


async def test_workspace_diagnostics_have_the_cells_of_open_notebooks(tmp_path: Path) -> None:
    async with session("pull", tmp_path, options=OPTIONS) as editor:

        async def requested(previous: list[lsp.PreviousResultId]) -> dict[str, list[object]]:
            params = lsp.WorkspaceDiagnosticParams(previous)
            report = await asyncio.wait_for(editor.client.workspace_diagnostic_async(params), LIMIT)
            known.update({each.uri: str(each.result_id) for each in report.items})
            full = [each for each in report.items if isinstance(each, lsp.WorkspaceFullDocumentDiagnosticReport)]
            return {each.uri: codes(each.items) for each in full}

        known: dict[str, str] = {}
        cells = Cells(editor, tmp_path / "n.ipynb", ("markdown", "# pallas"), IMPORTS, KERNEL, LAUNCH)
        await cells.found()
        _, _, kernel, launch = cells.names
        assert await requested([]) == {kernel: ["PAL101"], launch: ["PAL301"]}
        cells.type(3, lsp.Range(lsp.Position(0, 0), lsp.Position(100, 0)), SILENT)
        await cells.found()
        assert await requested([lsp.PreviousResultId(uri, known[uri]) for uri in (kernel, launch)]) == {launch: []}
        cells.close()
        assert await requested([lsp.PreviousResultId(kernel, known[kernel])]) == {kernel: []}


async def test_half_a_function_costs_only_its_own_findings(tmp_path: Path) -> None:
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, "", KERNEL, LAUNCH)
        start = lsp.Position(0, 0)
        cells.type(1, lsp.Range(start, start), 'def half(x):\n    return """')
        assert await cells.found() == {1: [("PAL001", 1)], 2: [("PAL101", 1)], 3: [("PAL301", 1)]}


async def test_hover_hints_lenses_and_completion(tmp_path: Path) -> None:
    async with session("visual-studio-code", tmp_path, options=OPTIONS) as editor:
        kernel = f"# pallas-lint: disable=PAL9\n{KERNEL}"
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, kernel, LAUNCH)
        client = editor.client
        shown = await client.text_document_hover_async(
            lsp.HoverParams(document(cells.names[1]), place("cumsum", kernel, 1))
        )
        assert shown is not None and shown.range is not None
        assert shown.range.start == place("jnp.cumsum", kernel)
        for at, count in ((0, 0), (1, 2), (2, 0)):
            hints = await client.text_document_inlay_hint_async(
                lsp.InlayHintParams(document(cells.names[at]), everywhere())
            )
            own = [each for each in hints or [] if label(each).startswith(": ")]
            assert len(own) == count
            if own:
                assert own[0].position == place("x_ref", kernel, len("x_ref"))
        for at, line in ((1, 1), (2, 2)):
            lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(document(cells.names[at])))
            assert {each.range.start.line for each in lenses or []} == {line}
            titles = {each.command.title for each in lenses or [] if each.command}
            assert "Probe" in titles and not titles & {"Tune", "Layout"}, "these are about files"
        completed = await client.text_document_completion_async(
            lsp.CompletionParams(document(cells.names[1]), place("PAL9", kernel, 4))
        )
        items = completed if isinstance(completed, list) else completed.items if completed else []
        first = next(each for each in items if each.label == "PAL101")
        assert isinstance(first.text_edit, lsp.TextEdit)
        assert first.text_edit.range == lsp.Range(place("PAL9", kernel), place("PAL9", kernel, 4))


async def test_ways_between_cells(tmp_path: Path) -> None:
    async with session("visual-studio-code", tmp_path, options=OPTIONS) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, KERNEL, LAUNCH)
        client, kernel, launch = editor.client, *cells.names[1:]
        spec = await client.text_document_definition_async(
            lsp.DefinitionParams(document(kernel), place("x_ref", KERNEL, 1))
        )
        assert isinstance(spec, list)
        assert (spec[0].uri, spec[0].range.start) == (launch, place("pl.BlockSpec", LAUNCH))
        requested = lsp.ReferenceParams(lsp.ReferenceContext(True), document(kernel), place("kernel(", KERNEL, 1))
        (found,) = await client.text_document_references_async(requested) or []
        assert (found.uri, found.range.start) == (launch, place("pl.pallas_call", LAUNCH))
        outlines = [
            await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document(cell)))
            for cell in cells.names
        ]
        assert [[each.name for each in outline or ()] for outline in outlines] == [[], ["kernel"], ["launch of kernel"]]


async def test_fixes_and_suppressions_edit_cells(tmp_path: Path) -> None:
    async with session("visual-studio-code", tmp_path, options=OPTIONS) as editor:
        first = f"%%time\n{IMPORTS}"
        cells = Cells(editor, tmp_path / "n.ipynb", "!pip install jax", first, KERNEL, LAUNCH)
        found = await cells.actions(3, place("i * 8", LAUNCH))
        fix = next(each for each in found.values() if each.is_preferred)
        assert applied(LAUNCH, fix.edit, cells.names[3]) == SILENT
        (shown,) = fix.diagnostics or []
        assert shown.range.start.line == 1
        line = next(each for title, each in found.items() if "on this line" in title)
        silenced = LAUNCH.replace("0))\n", "0))  # pallas-lint: disable=PAL301\n")
        assert applied(LAUNCH, line.edit, cells.names[3]) == silenced
        whole = next(each for title, each in found.items() if "in this file" in title)
        edit = whole.edit
        assert edit is not None and edit.changes is not None
        (name,) = edit.changes
        assert applied("!pip install jax", edit, name).startswith("# pallas-lint: disable-file=PAL301\n")


async def test_fix_all_of_a_cell_changes_no_other(tmp_path: Path) -> None:
    async with session("visual-studio-code", tmp_path, options=OPTIONS) as editor:
        other = LAUNCH.replace("def run", "def other")
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, KERNEL, f"!ls\n{LAUNCH}", other)
        for at, text in ((2, f"!ls\n{LAUNCH}"), (3, other)):
            (action,) = (await cells.actions(at, lsp.Position(0, 0), "source.fixAll.pallasLint")).values()
            assert applied(text, action.edit, cells.names[at]) == text.replace("i * 8", "i")
        assert not await cells.actions(1, lsp.Position(0, 0), "source.fixAll.pallasLint")


async def test_the_server_and_the_command_line_agree(tmp_path: Path) -> None:
    from tests.test_notebook import linted, notebook

    texts = [IMPORTS, "%%bash\nls", KERNEL, "def half(:\n  pass", LAUNCH]
    source = notebook(*texts)
    phrase = {(f.code, source.to_cell(f.span).cell, source.to_cell(f.span).start.line) for f in linted(source).findings}
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", *texts)
        found = {(code, at + 1, line + 1) for at, each in (await cells.found()).items() for code, line in each}
    assert found == phrase


async def test_an_open_helper_and_notebooks_beside_each_other(tmp_path: Path) -> None:
    helper = tmp_path / "maths.py"
    helper.write_text("import jax.numpy as jnp\n\ndef order(v):\n    return jnp.sort(v, axis=-1)\n")
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        kernel = f"from maths import order\n{KERNEL}".replace("jnp.cumsum(x_ref[...], axis=1)", "order(x_ref[...])")
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, kernel, SILENT)
        others = Cells(editor, tmp_path / "m.ipynb", IMPORTS, KERNEL, SILENT)
        assert await cells.found() == {}
        assert await others.found() == {1: [("PAL101", 1)]}
        editor.open(helper.as_uri(), helper.read_text())
        (finding,) = await editor.pulled(helper.as_uri())
        assert finding.code == "PAL101"
        places = [(each.message, each.location.uri) for each in finding.related_information or []]
        assert places == [("called here", cells.names[1]), ("launched here", cells.names[2])]


async def test_saving_counts_where_only_what_is_saved_is_shown(tmp_path: Path) -> None:
    async with session("pull", tmp_path, options={**OPTIONS, "lint": {"run": "onSave"}}) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, KERNEL, SILENT)
        assert await cells.found() == {1: [("PAL101", 1)]}
        cells.type(1, lsp.Range(place("cumsum", KERNEL), place("(x_ref[", KERNEL)), "sum")
        assert await cells.found() == {1: [("PAL101", 1)]}
        editor.client.notebook_document_did_save(
            lsp.DidSaveNotebookDocumentParams(lsp.NotebookDocumentIdentifier(cells.uri))
        )
        assert ("PAL101", 1) not in (await cells.found()).get(1, [])


async def test_a_closed_notebook_is_named_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "n.ipynb"
    file.write_text(json.dumps(content(IMPORTS, KERNEL, SILENT)))
    async with session("minimal", tmp_path, options=OPTIONS) as editor:
        await editor.client.workspace_execute_command_async(lsp.ExecuteCommandParams("pallasLint.lintWorkspace"))
        await editor.until(lambda: editor.shown(file.as_uri()))
        (finding,) = editor.shown(file.as_uri()) or []
        assert finding.message.startswith("line 2 of cell 2: `jnp.cumsum`")


async def test_the_json_of_a_notebook_is_no_code(tmp_path: Path) -> None:
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        uri = (tmp_path / "n.ipynb").as_uri()
        editor.open(uri, json.dumps(content(IMPORTS, KERNEL, SILENT)), language="json")
        assert await editor.pulled(uri) == []


async def test_what_comes_for_a_notebook_that_is_not_open_is_passed_over(tmp_path: Path) -> None:
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, KERNEL, SILENT)
        name = cells.names[1]
        cells.close()
        cells.type(1, lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)), "x")
        assert await editor.pulled(name) == []
        assert not editor.messages
