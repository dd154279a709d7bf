"""What clients say about settings: parsed key by key, by folder, taken when they change, never a reason to fail."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp
from pallas_lint.server.features import configuration
from pallas_lint.server.workspace.client_settings import ClientSettings, parse

from pallas_lint import lint
from tests.server.clients import LIMIT, codes, session
from tests.server.test_protocol import CODE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pallas_lint.server.app import PallasServer

    from pallas_lint.config.settings import Settings
    from pallas_lint.lint import FileAnalysis
    from pallas_lint.run.project import Project
    from pallas_lint.text.source import Source


@pytest.mark.parametrize(
    "given",
    [
        {"lint": {"select": ["PAL1"]}, "jaxVersion": "0.10.2"},
        {"pallasLint": {"lint": {"select": ["PAL1"]}, "jaxVersion": "0.10.2"}},
        {"settings": {"pallasLint": {"lint.select": ["PAL1"], "jax-version": "0.10.2"}}},
        {"select": ["PAL1"], "jax-version": "0.10.2"},
        {"args": ["--select", "PAL1", "--jax-version=0.10.2"]},
        {"configuration": {"select": ["PAL1"], "jax-version": "0.10.2"}},
    ],
)
def test_the_forms_of_settings(given: dict[str, Any]) -> None:
    settings = parse(given)
    assert dict(settings.values) == {"select": ["PAL1"], "jax-version": "0.10.2"}
    assert not settings.problems


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"lint": {"selct": ["PAL1"]}}, "unknown setting 'lint.selct', did you mean 'lint.select'?"),
        ({"lint": {"run": "onTpye"}}, "lint.run: 'onTpye' is not one of onType, onSave, did you mean 'onType'?"),
        ({"lint": {"select": "PAL1"}}, "lint.select: expected a list of strings, got a string"),
        ({"lint": 7}, "unknown setting 'lint', did you mean"),
        ({"target": "tpu:v9"}, "target: "),
        ({"severity": {"PAL1": "loud"}}, "severity.PAL1: 'loud' is not one of error, warning, info"),
        ({"args": ["--selct", "X"]}, "args: unknown option --selct, did you mean --select?"),
        ({"args": ["--fix"]}, "args: --fix has no effect in an editor"),
        ({"args": ["--help"]}, "prints help"),
        ({"args": ["--probe"]}, "args: --probe has no effect in an editor"),
        ({"configuration": {"tarxget": "tpu"}}, "unknown setting 'configuration.tarxget', did you mean 'target'?"),
        ({"interpreter": "/no/such/python"}, "interpreter: there is no '/no/such/python'"),
        ({"probe": {"memoryLimit": "much"}}, "probe.memoryLimit: 'much' is not an amount of memory"),
        ([1, 2], "the settings from the editor are not an object"),
    ],
)
def test_unusable_settings_are_reported_and_the_rest_counts(given: Any, problem: str) -> None:
    settings = parse({**given, "hover": {"enable": False}} if isinstance(given, dict) else given)
    assert [each for each in settings.problems if each.startswith(problem) or problem in each]
    assert settings.hover is not isinstance(given, dict)


def test_no_settings_no_messages(capsys: pytest.CaptureFixture[str]) -> None:
    for nothing in (
        None,
        {},
        {"pallasLint": None},
        {"lint": {"select": None, "ignore": []}, "target": "", "enable": True},
        {"clientCommands": ["pallasLint.showLayout"]},
    ):
        assert parse(nothing) == ClientSettings()
    parse({"args": ["--version"]})
    assert not capsys.readouterr().out


@pytest.mark.parametrize("given", [{"probe": {"enable": True}}, {"probe.enable": True}, {"allowProbe": True}])
async def test_no_setting_allows_the_probe(given: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pallas-lint.toml").write_text("[probe]\nall-targets = true\n")
    async with session("pull", tmp_path, options=given, configuration={"": given}) as editor:
        status = await editor.request("pallasLint/status", {"uri": (tmp_path / "k.py").as_uri()})
        assert status.probe.allowed is False
    async with session("pull", tmp_path, allow_probe=True) as editor:
        assert (await editor.request("pallasLint/status")).probe.allowed is True


async def test_status(tmp_path: Path) -> None:
    (tmp_path / "pallas-lint.toml").write_text('target = "tpu:v5e"\njax-version = "0.10.2"\n')
    async with session("pull", tmp_path) as editor:
        status = await editor.request("pallasLint/status", {"uri": (tmp_path / "k.py").as_uri()})
        assert status.settings == str(tmp_path / "pallas-lint.toml")
        assert (status.targets, status.jax.version, status.problem) == (["tpu:v5e"], "0.10.2", None)
        assert status.rules > 50
        (tmp_path / "pallas-lint.toml").write_text("nonsense = 1\n")
        editor.touched(tmp_path / "pallas-lint.toml")
        status = await editor.request("pallasLint/status", {"uri": (tmp_path / "k.py").as_uri()})
        assert "nonsense" in status.problem
        page = await editor.request("pallasLint/rule", {"code": "pal101"})
        assert page.title.startswith("PAL101 ") and "## How to fix" in page.markdown
        assert await editor.request("pallasLint/rule", {"code": "PAL999"}) is None


async def test_each_folder_has_its_own(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    for folder in (one, two, three):
        folder.mkdir()
    (two / "pallas-lint.toml").write_text('jax-version = "0.10.2"\nignore = ["PAL301"]\n')
    settings = {"": {"jaxVersion": "0.10.2"}, one.as_uri(): {"jaxVersion": "0.10.2", "lint": {"ignore": ["PAL101"]}}}
    async with session("pull", one, two, configuration=settings) as editor:
        found = {}
        for folder in (one, two, three):
            editor.open((folder / "k.py").as_uri(), CODE)
            found[folder.name] = codes(await editor.pulled((folder / "k.py").as_uri()))
        assert found == {"one": ["PAL301"], "two": ["PAL101"], "three": ["PAL101", "PAL301"]}
        editor.client.set_configuration({"pallasLint": {"lint": {"select": ["PAL3"]}}}, scope_uri=three.as_uri())
        event = lsp.WorkspaceFoldersChangeEvent(
            added=[lsp.WorkspaceFolder(three.as_uri(), "three")], removed=[lsp.WorkspaceFolder(one.as_uri(), "one")]
        )
        editor.client.workspace_did_change_workspace_folders(lsp.DidChangeWorkspaceFoldersParams(event))
        assert codes(await editor.pulled((three / "k.py").as_uri())) == ["PAL301"]
        assert codes(await editor.pulled((one / "k.py").as_uri())) == ["PAL101", "PAL301"]


async def test_settings_that_come_late_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "_MAX_WAIT", 0.01)
    may_answer = asyncio.Event()

    def slow(server: PallasServer) -> None:
        query = server.protocol.send_request_async

        async def send_request(method: str, params: Any = None, *others: Any, **more: Any) -> Any:
            if method == lsp.WORKSPACE_CONFIGURATION:
                await may_answer.wait()
            return await query(method, params, *others, **more)

        monkeypatch.setattr(server.protocol, "send_request_async", send_request)

    uri = (tmp_path / "k.py").as_uri()
    given, begun = {"jaxVersion": "0.10.2", "lint": {"select": ["PAL3"]}}, {"jaxVersion": "0.10.2"}
    async with session(
        "pull", tmp_path, options=begun, configuration={tmp_path.as_uri(): given}, change=slow
    ) as editor:
        editor.open(uri, CODE)
        assert codes(await editor.pulled(uri)) == ["PAL101", "PAL301"]
        may_answer.set()

        async def taken() -> None:
            while codes(await editor.pulled(uri)) != ["PAL301"]:
                await asyncio.sleep(0.01)

        await asyncio.wait_for(taken(), LIMIT)


def answers_when(may_answer: asyncio.Event, monkeypatch: pytest.MonkeyPatch) -> Callable[[PallasServer], None]:
    """Lets the answers of the client to requests of the server arrive late."""
    may_answer.set()

    def slow(server: PallasServer) -> None:
        query = server.protocol.send_request_async

        async def send_request(method: str, params: Any = None, *others: Any, **more: Any) -> Any:
            answer = await query(method, params, *others, **more)
            await may_answer.wait()
            return answer

        monkeypatch.setattr(server.protocol, "send_request_async", send_request)

    return slow


async def test_an_edit_just_before_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer = asyncio.Event()
    slow = answers_when(may_answer, monkeypatch)
    uri = (tmp_path / "k.py").as_uri()
    given = {"jaxVersion": "0.10.2"}
    async with session(
        "pull", tmp_path, options=given, configuration={tmp_path.as_uri(): given}, change=slow
    ) as editor:
        editor.open(uri, CODE)
        assert codes(await editor.pulled(uri)) == ["PAL101", "PAL301"]
        may_answer.clear()
        on_save = {"pallasLint": {**given, "lint": {"run": "onSave"}}}
        editor.client.set_configuration(on_save, scope_uri=tmp_path.as_uri())
        editor.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
        editor.change(uri, CODE.replace("i * 8", "i"))
        pulled = asyncio.ensure_future(editor.pulled(uri))
        await asyncio.sleep(0.05)
        may_answer.set()
        assert codes(await pulled) == ["PAL101", "PAL301"]
        editor.save(uri)
        assert codes(await editor.pulled(uri)) == ["PAL101"]


async def test_the_status_is_that_of_settings_on_their_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer = asyncio.Event()
    slow = answers_when(may_answer, monkeypatch)
    given, document = {"target": ["tpu:v5e"]}, {"uri": (tmp_path / "k.py").as_uri()}
    async with session("pull", tmp_path, configuration={tmp_path.as_uri(): given}, change=slow) as editor:
        assert (await editor.request("pallasLint/status", document)).targets == ["tpu:v5e"]
        may_answer.clear()
        editor.client.set_configuration({"pallasLint": {"target": []}}, scope_uri=tmp_path.as_uri())
        editor.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
        status = asyncio.ensure_future(editor.request("pallasLint/status", document))
        await asyncio.sleep(0.05)
        may_answer.set()
        assert (await status).targets == []


async def test_unknown_settings_are_reported_once_with_the_nearest(tmp_path: Path) -> None:
    wrong = {"lint": {"selct": ["PAL1"]}}
    async with session("pull", tmp_path, options=wrong, configuration={"": wrong}) as editor:
        editor.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=wrong))
        await editor.request("pallasLint/status")
        assert [each for each in editor.messages if "did you mean 'lint.select'" in each] == [
            "pallas-lint: unknown setting 'lint.selct', did you mean 'lint.select'?"
        ]


@pytest.mark.parametrize(
    ("preference", "expected"),
    [("editorFirst", ["PAL301"]), ("filesystemFirst", ["PAL101"]), ("editorOnly", ["PAL301"])],
)
async def test_precedence_of_settings(tmp_path: Path, preference: str, expected: list[str]) -> None:
    (tmp_path / "pallas-lint.toml").write_text('select = ["PAL1"]\n')
    given = {"configurationPreference": preference, "jaxVersion": "0.10.2", "lint": {"select": ["PAL3"]}}
    async with session("pull", tmp_path, options=given) as editor:
        editor.open((tmp_path / "k.py").as_uri(), CODE)
        assert codes(await editor.pulled((tmp_path / "k.py").as_uri())) == expected


async def test_a_settings_file_by_name(tmp_path: Path) -> None:
    (tmp_path / "pallas-lint.toml").write_text('select = ["PAL1"]\n')
    (tmp_path / "editor.toml").write_text('select = ["PAL3"]\n')
    given = {"configuration": "editor.toml", "jaxVersion": "0.10.2"}
    async with session("pull", tmp_path, options=given) as editor:
        editor.open((tmp_path / "k.py").as_uri(), CODE)
        assert codes(await editor.pulled((tmp_path / "k.py").as_uri())) == ["PAL301"]
    async with session("pull", tmp_path, options={**given, "configuration": "missing.toml"}) as editor:
        editor.open((tmp_path / "k.py").as_uri(), CODE)
        assert await editor.pulled((tmp_path / "k.py").as_uri()) == []
        assert ["missing.toml" in each for each in editor.messages] == [True]


@pytest.mark.parametrize("given", [{"exclude": ["gen"]}, {"ignorePatterns": ["gen/**"]}, {"args": ["--exclude=k.py"]}])
async def test_files_left_out_have_no_findings(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "gen").mkdir()
    async with session("pull", tmp_path, options={"jaxVersion": "0.10.2", **given}) as editor:
        for name in ("gen/k.py", "other.py"):
            editor.open((tmp_path / name).as_uri(), CODE)
        assert await editor.pulled((tmp_path / "gen/k.py").as_uri()) == []
        assert len(await editor.pulled((tmp_path / "other.py").as_uri())) == 2


async def test_findings_on_save_only(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("minimal", tmp_path, options={"jaxVersion": "0.10.2", "lint": {"run": "onSave"}}) as editor:
        editor.open(uri, CODE)
        assert codes(await editor.pushed(uri)) == ["PAL101", "PAL301"]
        editor.change(uri, CODE.replace("i * 8", "i"))
        hovered = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(9, 20))
        assert await editor.client.text_document_hover_async(hovered) is not None  # of the newest text
        assert codes(editor.shown(uri)) == ["PAL101", "PAL301"]
        editor.save(uri)
        assert codes(await editor.pushed(uri)) == ["PAL101"]


async def test_waiting_for_a_replaced_text_gives_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, check_file = threading.Event(), lint.check_file

    def slow(source: Source, settings: Settings, project: Project, is_stale: Callable[[], bool]) -> FileAnalysis:
        while source.text.startswith("# slow") and not is_stale():
            begun.set()
        return check_file(source, settings, project, is_stale)

    monkeypatch.setattr(lint, "check_file", slow)
    uri = (tmp_path / "k.py").as_uri()
    hovered = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(9, 20))
    async with session("minimal", tmp_path, options={"jaxVersion": "0.10.2", "lint": {"run": "onSave"}}) as editor:
        editor.open(uri, CODE)
        await editor.pushed(uri)
        editor.change(uri, f"# slow\n{CODE}")
        answer = asyncio.ensure_future(editor.client.text_document_hover_async(hovered))
        await asyncio.to_thread(begun.wait, LIMIT)
        editor.change(uri, CODE)
        assert await answer is not None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lint": {"enable": False}}, []),
        ({"showSyntaxErrors": False}, ["PAL101", "PAL301"]),
        ({"severity": {"PAL1": "info"}}, ["PAL101", "PAL301", "PAL001"]),
    ],
)
async def test_what_is_shown(tmp_path: Path, given: dict[str, Any], expected: list[str]) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={"jaxVersion": "0.10.2", **given}) as editor:
        editor.open(uri, CODE + "\n\ndef half(:\n")
        found = await editor.pulled(uri)
        assert codes(found) == expected
        if "severity" in given:
            assert found[0].severity == lsp.DiagnosticSeverity.Information


@pytest.mark.parametrize("feature", ["hover", "codeLens", "inlayHints"])
async def test_features_can_be_switched_off(tmp_path: Path, feature: str) -> None:
    uri = (tmp_path / "k.py").as_uri()
    identifier = lsp.TextDocumentIdentifier(uri)
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(40, 0))
    for enabled in (True, False):
        async with session("pull", tmp_path, options={"jaxVersion": "0.10.2", feature: {"enable": enabled}}) as editor:
            editor.open(uri, CODE)
            client = editor.client
            found = {
                "hover": await client.text_document_hover_async(lsp.HoverParams(identifier, lsp.Position(9, 20))),
                "codeLens": await client.text_document_code_lens_async(lsp.CodeLensParams(identifier)),
                "inlayHints": await client.text_document_inlay_hint_async(lsp.InlayHintParams(identifier, everything)),
            }
            assert {name for name, what in found.items() if not what} == (set() if enabled else {feature})
