"""Code actions: fixes, silencing, and fixing everything as the command line does."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp

from pallas_lint import lint
from pallas_lint.kernels.analysis.runs import Abandoned
from pallas_lint.ruleset.registry import all_rules
from tests.sampling import by_day
from tests.server.clients import LIMIT, applied, codes, document, everywhere, session
from tests.server.test_protocol import CODE, place

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.config.settings import Settings
    from pallas_lint.lint import FileAnalysis
    from pallas_lint.run.project import Project
    from pallas_lint.text.source import Source

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {"jaxVersion": "0.10.2"}
TWICE = CODE + CODE[CODE.index("def run") :].replace("def run", "def walk")


def at(text: str, code: str = CODE) -> lsp.Range:
    return lsp.Range(place(text, code), place(text, code))


def changed(text: str, action: lsp.CodeAction, uri: str) -> str:
    assert action.edit is not None and action.edit.changes is not None
    return applied(text, action.edit.changes[uri])


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        (
            {},
            [
                "quickfix",
                "quickfix.pallasLint.disableLine",
                "quickfix.pallasLint.disableFile",
                "quickfix.pallasLint.disableProject",
            ],
        ),
        ({"codeAction": {"disableRuleComment": {"enable": False}}}, ["quickfix"]),
        ({"codeAction": {"fixViolation": {"enable": False}}, "lint": {"ignore": ["PAL301"]}}, []),
        ({"lint": {"enable": False}}, []),
    ],
)
async def test_what_is_offered(tmp_path: Path, options: dict[str, Any], kinds: list[str]) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={**OPTIONS, **options}) as editor:
        editor.open(uri, CODE)
        found = await editor.actions(uri, at("i * 8"))
        assert [each.kind for each in found] == kinds
        assert [each.is_preferred for each in found[:1]] == [True] * bool(kinds)
        assert all(codes(each.diagnostics) == ["PAL301"] for each in found)


async def test_requested_kinds(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        editor.open(uri, CODE)
        for only, expected in (
            ("quickfix.pallasLint", 3),
            ("quickfix.pallasLint.disableLine", 1),
            ("quickfix", 4),
            ("source", 1),
            ("source.fixAll.pallasLint", 1),
            ("source.organizeImports", 0),
            ("refactor", 0),
        ):
            assert len(await editor.actions(uri, at("i * 8"), only)) == expected, only
    async with session("pull", tmp_path, options={**OPTIONS, "fixAll": False}) as editor:
        editor.open(uri, CODE)
        assert await editor.actions(uri, at("i * 8"), "source.fixAll") == []


async def test_all_of_a_rule_at_once(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        editor.open(uri, TWICE)
        found = await editor.actions(uri, at("i * 8"), "quickfix")
        (every,) = [each for each in found if each.title.startswith("PAL301: Fix all")]
        assert "i * 8" not in changed(TWICE, every, uri)


async def test_fixing_all_ends_when_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, check_file = threading.Event(), threading.Event(), lint.check_file

    def endless(source: Source, settings: Settings, project: Project, is_stale: Callable[[], bool]) -> FileAnalysis:
        if "i * 8" in source.text:
            return check_file(source, settings, project, is_stale)
        begun.set()
        while not is_stale():
            pass
        ended.set()
        raise Abandoned

    monkeypatch.setattr(lint, "check_file", endless)
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        editor.open(uri, CODE)
        await editor.pulled(uri)
        context = lsp.CodeActionContext(diagnostics=[], only=["source.fixAll"])
        params = lsp.CodeActionParams(document(uri), everywhere(), context)
        editor.client.protocol.send_request(lsp.TEXT_DOCUMENT_CODE_ACTION, params, msg_id="all")
        assert await asyncio.to_thread(begun.wait, LIMIT)
        editor.client.cancel_request(lsp.CancelParams(id="all"))
        assert await asyncio.to_thread(ended.wait, LIMIT)
        assert codes(await editor.pulled(uri)) == ["PAL101", "PAL301"]


@pytest.mark.parametrize("kind", ["disableLine", "disableFile"])
async def test_silencing(tmp_path: Path, kind: str) -> None:
    uri = (tmp_path / "k.py").as_uri()
    code = f"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n{TWICE}"
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        editor.open(uri, code)
        (action,) = await editor.actions(uri, at("i * 8", code), f"quickfix.pallasLint.{kind}")
        silent = changed(code, action, uri)
        assert silent.startswith("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n")
        editor.change(uri, silent)
        left = ["PAL101", "PAL301"] if kind == "disableLine" else ["PAL101"]
        assert codes(await editor.pulled(uri)) == left


PROJECTS = {
    "pallas-lint.toml": {
        'target = "tpu"\nignore = ["PAL1"]  # why\n': 'target = "tpu"\nignore = ["PAL1", "PAL301"]  # why\n',
        'ignore = [\n    "PAL1",  # one\n]\n[rules]\n': 'ignore = [\n    "PAL1",\n    "PAL301",  # one\n]\n[rules]\n',
        'target = "tpu"': 'ignore = ["PAL301"]\ntarget = "tpu"',
        "ignore = []\n": 'ignore = ["PAL301"]\n',
    },
    "pyproject.toml": {
        '[project]\nname = "x"\n': '[project]\nname = "x"\n\n[tool.pallas-lint]\nignore = ["PAL301"]\n',
        '[tool.pallas-lint]\ntarget = "tpu"\n\n[tool.x]\nignore = ["a"]\n': (
            '[tool.pallas-lint]\nignore = ["PAL301"]\ntarget = "tpu"\n\n[tool.x]\nignore = ["a"]\n'
        ),
        "": '[tool.pallas-lint]\nignore = ["PAL301"]\n',
    },
}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [(name, before, after) for name, cases in PROJECTS.items() for before, after in cases.items()],
)
async def test_silencing_in_the_project(tmp_path: Path, name: str, before: str, after: str) -> None:
    (tmp_path / ".git").mkdir()
    settings, uri = tmp_path / name, (tmp_path / "src" / "k.py").as_uri()
    settings.write_text(before)
    async with session("minimal", tmp_path, options=OPTIONS) as editor:
        editor.open(uri, CODE)
        (action,) = await editor.actions(uri, at("i * 8"), "quickfix.pallasLint.disableProject")
        assert action.edit is not None and action.edit.changes is not None
        assert applied(before, action.edit.changes[settings.as_uri()]) == after
        settings.write_text(after)
        editor.touched(settings)
        assert "PAL301" not in codes(await editor.pulled(uri))


async def test_a_settings_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options=OPTIONS) as editor:
        editor.open(uri, CODE)
        (action,) = await editor.actions(uri, at("i * 8"), "quickfix.pallasLint.disableProject")
        assert action.edit is not None
        create, edit = action.edit.document_changes or ()
        assert isinstance(create, lsp.CreateFile) and create.uri == (tmp_path / "pallas-lint.toml").as_uri()
        assert isinstance(edit, lsp.TextDocumentEdit)
        assert applied("", edit.edits) == 'ignore = ["PAL301"]\n'
        result = await editor.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("pallasLint.createConfig", [{"uri": tmp_path.as_uri()}])
        )
        assert result["outcome"] == "done" and len(editor.applied) == 1
        result = await editor.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("pallasLint.createConfig", [{"uri": "untitled:Untitled-1"}])
        )
        assert result["outcome"] == "failed" and "no folder" in result["message"]
        (tmp_path / "pallas-lint.toml").write_text("")
        result = await editor.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("pallasLint.createConfig", [{"folder": str(tmp_path)}])
        )
        assert result["outcome"] == "exists" and len(editor.applied) == 1
    async with session("minimal", tmp_path / "elsewhere", options=OPTIONS) as editor:
        editor.open(uri, CODE)
        result = await editor.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("pallasLint.createConfig")
        )
        assert result["outcome"] == "failed" and "write" in editor.messages[0]


def fixable() -> dict[str, str]:
    """The examples of all rules that can be fixed (by day one in four), and the repository's, by the name of a file."""
    found = {file.name: file.read_text(encoding="utf-8") for file in sorted((ROOT / "examples").rglob("*.py"))}
    examples = []
    for code, entry in all_rules().items():
        for number, example in enumerate(entry.rule.invalid):
            if example.fixed is not None:
                examples.append((f"{code.lower()}_{number}.py", example.code.replace("#!", "")))
    return found | dict(by_day(examples))


@pytest.mark.slow
async def test_fixing_all_is_what_the_command_line_does(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    for name, text in fixable().items():
        (ours / name).write_text(text, encoding="utf-8")
    shutil.copytree(ours, theirs)
    command = [
        sys.executable,
        "-m",
        "pallas_lint",
        "--fix",
        "--no-cache",
        "--jobs",
        "1",
        "--jax-version",
        "0.10.2",
        ".",
    ]
    ran = subprocess.run(command, cwd=theirs, capture_output=True, text=True, timeout=300)
    assert ran.returncode in (0, 1), ran.stderr
    different = 0
    async with session("minimal", ours, options=OPTIONS) as editor:
        for name, text in fixable().items():
            uri = (ours / name).as_uri()
            editor.open(uri, text)
            context = lsp.CodeActionContext(diagnostics=[], only=["source.fixAll.pallasLint"])
            params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), everywhere(), context)
            actions = list(await editor.client.text_document_code_action_async(params) or ())
            after = changed(text, actions[0], uri) if actions else text  # type: ignore[arg-type]
            assert after == (theirs / name).read_text(encoding="utf-8"), name
            different += after != text
            editor.close(uri)
    assert different > 10
