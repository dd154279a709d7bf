"""Settings files in the editor: one diagnostic in the file itself, completion and hovers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from tests.server.clients import applied, codes, document, session
from tests.server.test_protocol import CODE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

BROKEN = 'target = "tpu"\n\nselct = ["PAL1"]\n'


@pytest.mark.parametrize("profile", ["minimal", "neovim", "pull"])
async def test_a_broken_file_is_reported_once_and_in_it(profile: str, tmp_path: Path) -> None:
    settings = tmp_path / "pallas-lint.toml"
    settings.write_text(BROKEN)
    uris = [(tmp_path / name).as_uri() for name in ("a.py", "b.py")]
    async with session(profile, tmp_path, options={"jaxVersion": "0.10.2"}) as editor:
        for uri in uris:
            editor.open(uri, CODE)
            assert await editor.pulled(uri) == []
        await editor.until(lambda: editor.shown(settings.as_uri()))
        (found,) = editor.shown(settings.as_uri()) or ()
        assert "unknown key 'selct', did you mean 'select'?" in found.message
        assert (found.range.start.line, found.range.end.character) == (2, len('selct = ["PAL1"]'))
        settings.write_text(BROKEN.replace("selct", "select"))
        editor.touched(settings)
        await editor.until(lambda: editor.shown(settings.as_uri()) == [])
        assert codes(await editor.pulled(uris[0])) == ["PAL101"]
        assert editor.messages == []


async def test_while_it_is_edited(tmp_path: Path) -> None:
    settings, uri = tmp_path / "pyproject.toml", (tmp_path / "a.py").as_uri()
    text = '[project]\nname = "x"\n[tool.pallas-lint]\njax-version = "0.10.2"\n'
    settings.write_text(text)
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        editor.open(settings.as_uri(), text, "toml")
        assert await editor.pulled(settings.as_uri()) == []
        editor.change(settings.as_uri(), text.replace("0.10.2", "new"))
        (found,) = await editor.pulled(settings.as_uri())
        assert found.range.start.line == 3
        # What counts is what was saved.
        assert len(await editor.pulled(uri)) == 2
        settings.write_text(text + 'ignore = ["PAL3"]\n')
        editor.change(settings.as_uri(), text + 'ignore = ["PAL3"]\n')
        editor.save(settings.as_uri())
        assert codes(await editor.pulled(uri)) == ["PAL101"]


async def completed(editor: Editor, uri: str, text: str) -> dict[str, str]:
    """Label to new text of what is offered where `|` stands."""
    before, _, after = text.partition("|")
    editor.open(uri, before + after, "toml")
    at = lsp.Position(before.count("\n"), units(before.rpartition("\n")[2]))
    found = await editor.client.text_document_completion_async(lsp.CompletionParams(document(uri), at))
    items = found if isinstance(found, (list, tuple)) else found.items if found else []
    editor.close(uri)
    for each in items:
        assert isinstance(each.text_edit, lsp.TextEdit)
        assert applied(before + after, [each.text_edit]).endswith(each.text_edit.new_text + after)
    return {each.label: each.text_edit.new_text for each in items if each.text_edit is not None}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("text", "offered", "not_offered"),
    [
        ("sel|", {"select": "select", "jax-version": "jax-version"}, "PAL101"),
        ("select = [|]", {"PAL101": '"PAL101"'}, "select"),
        ('ignore = ["PAL1|"]', {"PAL101": "PAL101"}, "select"),
        ('ignore = [\n  "PAL101",\n  |\n]', {"PAL103": '"PAL103"'}, "select"),
        ('[per-file-ignores]\n"tests/*" = ["|"]', {"PAL101": "PAL101"}, "select"),
        ("[severity]\n|", {"PAL101": "PAL101"}, "select"),
        ('[severity]\nPAL101 = "|"', {"warning": "warning"}, "PAL101"),
        ("target = |", {"tpu:v5e": '"tpu:v5e"'}, "select"),
        ('target = ["tpu", "|"]', {"triton": "triton"}, "select"),
        ("respect-gitignore = |", {"true": "true", "false": "false"}, "select"),
        ('fail-on = "|"', {"error": "error"}, "select"),
        ("[probe]\n|", {"timeout": "timeout"}, "select"),
        ('[probe]\nstage = "|"', {"compile": "compile"}, "select"),
        ('ignore = ["PAL1"]\n|', {"select": "select"}, "PAL101"),
        ('per-file-ignores = {"🟦🟦" = ["PAL1|"]}', {"PAL101": "PAL101"}, "select"),
    ],
)
async def test_completion(tmp_path: Path, text: str, offered: dict[str, str], not_offered: str) -> None:
    async with session("minimal", tmp_path) as editor:
        found = await completed(editor, (tmp_path / "pallas-lint.toml").as_uri(), text)
        assert offered.items() <= found.items()
        assert not_offered not in found
        inside = f"[tool.pallas-lint{'.' + text[1:] if text.startswith('[') else ']' + chr(10) + text}"
        assert offered.items() <= (await completed(editor, (tmp_path / "pyproject.toml").as_uri(), inside)).items()
        outside = "[tool.other]\n" + text.rpartition("]\n")[2] if text.startswith("[") else f"[tool.other]\n{text}"
        assert not await completed(editor, (tmp_path / "pyproject.toml").as_uri(), outside)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("tar|get = 'tpu'", "Backends to judge every kernel for"),
        ('ignore = ["PAL|101"]', "**PAL101**"),
        ("[severity]\nunsupported-fun|ction = 'info'", "**PAL101**"),
        ("# no|thing", None),
    ],
)
async def test_hover(tmp_path: Path, text: str, reported: str | None) -> None:
    before, _, after = text.partition("|")
    at = lsp.Position(before.count("\n"), len(before.rpartition("\n")[2]))
    uri = (tmp_path / "pallas-lint.toml").as_uri()
    async with session("minimal", tmp_path) as editor:
        editor.open(uri, before + after, "toml")
        found = await editor.client.text_document_hover_async(lsp.HoverParams(document(uri), at))
        if reported is None:
            assert found is None
        else:
            assert found is not None and isinstance(found.contents, lsp.MarkupContent)
            assert reported in found.contents.value
