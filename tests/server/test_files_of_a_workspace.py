"""Findings beyond the open document: in helpers, in the whole workspace, and after files have changed."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from pallas_lint.run.cache import Cache
from pallas_lint.run.cache_folder import cache_folder, modified
from pallas_lint.run.project import Project
from tests.sampling import by_day
from tests.server.clients import LIMIT, codes, document, session
from tests.server.test_protocol import CODE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

OPTIONS = {"jaxVersion": "0.10.2"}
HELPER = "import jax.numpy as jnp\n\n\ndef order(v):\n    return jnp.sort(v, axis=-1)\n"
USER = CODE.replace("import jax\n", "import jax\nfrom maths import order\n", 1).replace(
    "jnp.cumsum(x_ref[...], axis=1)", "order(x_ref[...])"
)
CLEAN = CODE.replace("jnp.cumsum(x_ref[...], axis=1)", "x_ref[...]").replace("i * 8", "i")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "maths.py").write_text(HELPER)
    (tmp_path / "k.py").write_text(USER)
    (tmp_path / "other.py").write_text(USER.replace("def run", "def walk"))
    return tmp_path


@pytest.mark.parametrize("profile", by_day(["minimal", "visual-studio-code", "neovim", "emacs", "pull"]))
async def test_findings_in_a_helper_lie_there_once(profile: str, folder: Path) -> None:
    helper, uri, other = ((folder / name).as_uri() for name in ("maths.py", "k.py", "other.py"))
    async with session(profile, folder, options=OPTIONS) as editor:
        editor.open(uri, USER)
        editor.open(other, USER)
        await editor.pulled(uri)
        await editor.pulled(other)
        await editor.until(lambda: codes(editor.shown(helper)) == ["PAL101"])
        (found,) = editor.shown(helper) or ()
        related = [each.location.uri for each in found.related_information or ()]
        assert uri in related or other in related
        # Opened, it has the same finding, by whichever way the client gets it.
        editor.open(helper, HELPER)
        if editor.server.reporter.pulls:
            await editor.until(lambda: editor.shown(helper) == [])
            assert codes(await editor.pulled(helper)) == ["PAL101"]
        else:
            assert codes(await editor.pushed(helper)) == ["PAL101"]
        # What is written there counts for the kernels elsewhere.
        editor.change(helper, HELPER.replace("jnp.sort(v, axis=-1)", "v"))
        await editor.pulled(uri)
        await editor.pulled(other)
        assert codes(await editor.pulled(helper)) == []


async def test_closing_the_kernel_clears_the_helper(folder: Path) -> None:
    helper, uri = ((folder / name).as_uri() for name in ("maths.py", "k.py"))
    async with session("minimal", folder, options=OPTIONS) as editor:
        editor.open(uri, USER)
        await editor.until(lambda: codes(editor.shown(helper)) == ["PAL101"])
        editor.close(uri)
        await editor.until(lambda: editor.shown(helper) == [] and editor.shown(uri) == [])


async def test_only_what_rests_on_a_changed_file_is_judged_again(folder: Path) -> None:
    uri, clean = ((folder / name).as_uri() for name in ("k.py", "clean.py"))
    async with session("pull", folder, options=OPTIONS) as editor:
        editor.open(uri, USER)
        editor.open(clean, CLEAN)
        await editor.pulled(uri)
        await editor.pulled(clean)

        def judgements() -> list[object]:
            return [editor.server.documents.known(each).file_analysis for each in (uri, clean)]

        before = judgements()
        (folder / "maths.py").write_text(HELPER.replace("jnp.sort(v, axis=-1)", "v"))
        editor.touched(folder / "maths.py")
        await editor.until(lambda: editor.shown((folder / "maths.py").as_uri()) == [])
        assert [one is other for one, other in zip(before, judgements(), strict=True)] == [False, True]


async def test_a_pulling_client_is_refreshed(folder: Path) -> None:
    uri = (folder / "clean.py").as_uri()
    async with session("pull", folder, options=OPTIONS) as editor:
        editor.open(uri, CODE)
        report = await editor.client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(document(uri)))
        assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
        again = lsp.DocumentDiagnosticParams(document(uri), previous_result_id=report.result_id)
        same = await editor.client.text_document_diagnostic_async(again)
        assert isinstance(same, lsp.RelatedUnchangedDocumentDiagnosticReport)
        (folder / "pallas-lint.toml").write_text('ignore = ["PAL101"]\n')
        editor.touched(folder / "pallas-lint.toml", kind=lsp.FileChangeType.Created)
        await editor.until(lambda: editor.refreshed)
        changed = await editor.client.text_document_diagnostic_async(again)
        assert isinstance(changed, lsp.RelatedFullDocumentDiagnosticReport)
        assert codes(changed.items) == ["PAL301"]


@pytest.mark.parametrize("name", ["uv.lock", ".venv/lib/python3.12/site-packages/jax-0.4.35.dist-info/METADATA"])
async def test_the_project_gets_another_jax(folder: Path, name: str) -> None:
    (folder / ".git").mkdir()
    uri = (folder / "k.py").as_uri()
    file = folder / name
    async with session("pull", folder) as editor:
        editor.open(uri, CODE)
        await editor.pulled(uri)
        assert (await editor.request("pallasLint/status", {"uri": uri})).jax.version != "0.4.35"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('[[package]]\nname = "jax"\nversion = "0.4.35"\n')
        editor.touched(file, kind=lsp.FileChangeType.Created)
        assert (await editor.request("pallasLint/status", {"uri": uri})).jax.version == "0.4.35"


async def requested(
    editor: Editor, previous: list[lsp.PreviousResultId], token: str | None = None
) -> list[lsp.WorkspaceDocumentDiagnosticReport]:
    report = await asyncio.wait_for(
        editor.client.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams(previous, partial_result_token=token)),
        LIMIT,
    )
    return list(report.items)


@pytest.mark.slow
async def test_workspace_diagnostics(folder: Path) -> None:
    options = {**OPTIONS, "workspaceDiagnostics": "on"}
    async with session("pull", folder, options=options) as editor:
        first = await requested(editor, [])
        known = {each.uri: each for each in first}
        assert set(known) == {(folder / name).as_uri() for name in ("maths.py", "k.py", "other.py")}
        helper = known[(folder / "maths.py").as_uri()]
        assert isinstance(helper, lsp.WorkspaceFullDocumentDiagnosticReport)
        assert codes(helper.items) == ["PAL101"] and editor.shown(helper.uri) is None
        # Asked again, the server waits until there is something to say.
        previous = [lsp.PreviousResultId(each.uri, str(each.result_id)) for each in first]
        waiting = asyncio.create_task(requested(editor, previous))
        await editor.request("pallasLint/status")
        assert not waiting.done()
        (folder / "k.py").write_text(CLEAN)
        editor.touched(folder / "k.py")
        second = {each.uri: each for each in await waiting}
        changed = second.pop((folder / "k.py").as_uri())
        assert isinstance(changed, lsp.WorkspaceFullDocumentDiagnosticReport) and not changed.items
        same = second[(folder / "other.py").as_uri()]
        assert isinstance(same, lsp.WorkspaceUnchangedDocumentDiagnosticReport)


async def test_a_request_that_waits_can_be_cancelled(folder: Path) -> None:
    async with session("pull", folder, options=OPTIONS) as editor:
        request = editor.client.protocol.send_request(
            lsp.WORKSPACE_DIAGNOSTIC, lsp.WorkspaceDiagnosticParams([]), msg_id="waits"
        )
        await editor.request("pallasLint/status")
        editor.client.cancel_request(lsp.CancelParams(id="waits"))
        with pytest.raises(Exception, match="cancel"):
            await asyncio.wait_for(asyncio.wrap_future(request), LIMIT)


@pytest.mark.slow
async def test_reports_in_parts(folder: Path) -> None:
    options = {**OPTIONS, "workspaceDiagnostics": "on"}
    async with session("pull", folder, options=options) as editor:
        assert await requested(editor, [], token="parts") == []
        assert sum(len(part["items"]) for part in editor.progress["parts"]) == 3


@pytest.mark.parametrize("profile", by_day(["visual-studio-code", "minimal", "pull"], 3))
async def test_linting_the_workspace_once(profile: str, folder: Path) -> None:
    async with session(profile, folder, options=OPTIONS) as editor:
        params = lsp.ExecuteCommandParams("pallasLint.lintWorkspace")
        result = await asyncio.wait_for(editor.client.workspace_execute_command_async(params), LIMIT)
        assert result == {"outcome": "done", "findings": 3}
        assert codes(editor.shown((folder / "k.py").as_uri())) == ["PAL301"]
        assert codes(editor.shown((folder / "maths.py").as_uri())) == ["PAL101"]
        kinds = [each["kind"] for reported in editor.progress.values() for each in reported]
        assert kinds == ([] if profile == "minimal" else ["begin", "report", "end"])
        # The same results as those of the command line: they share the cache.
        kept = cache_folder(folder)
        assert kept is not None and modified("lint", Cache(kept, folder, Project(folder))._name("k.py"))
        # A document that is opened has its own verdict, and what was found before comes back.
        uri = (folder / "k.py").as_uri()
        editor.open(uri, CLEAN)
        assert await editor.pulled(uri) == []
        editor.close(uri)
        await editor.until(lambda: codes(editor.shown(uri)) == ["PAL301"])


async def test_linting_the_workspace_can_be_cancelled(folder: Path) -> None:
    for number in range(60):
        shutil.copy(folder / "k.py", folder / f"copy_{number}.py")
    async with session("visual-studio-code", folder, options=OPTIONS) as editor:
        params = lsp.ExecuteCommandParams("pallasLint.lintWorkspace")
        running = asyncio.create_task(editor.client.workspace_execute_command_async(params))
        await editor.until(lambda: editor.progress)
        (token,) = editor.progress
        editor.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token))
        result = await asyncio.wait_for(running, LIMIT)
        assert result["outcome"] == "cancelled"
        assert editor.shown((folder / "k.py").as_uri()) is None


async def test_findings_that_a_baseline_knows_are_not_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pallas_lint.cli import main

    (folder / "pallas-lint.toml").write_text('baseline = "known.json"\njax-version = "0.10.2"\n')
    (folder / "k.py").write_text(CODE)
    command = [str(folder / "k.py"), "--config", str(folder / "pallas-lint.toml"), "--no-cache"]
    assert main([*command, "--write-baseline"]) == 0
    uri = (folder / "k.py").as_uri()
    async with session("pull", folder) as editor:
        editor.open(uri, CODE)
        assert await editor.pulled(uri) == []
        editor.change(uri, CODE + "\n\ndef half(:\n")
        assert codes(await editor.pulled(uri)) == ["PAL001"]
        # Known are those that the command line knows, wherever they have moved to.
        moved = "# A line more.\n" + CODE.replace("jnp.cumsum", "jnp.sort")
        (folder / "k.py").write_text(moved)
        editor.change(uri, moved)
        capsys.readouterr()
        assert main([*command, "--output-format", "json"]) == 1
        reported = json.loads(capsys.readouterr().out)["findings"]
        assert codes(await editor.pulled(uri)) == [each["code"] for each in reported] == ["PAL101"]
        # Written again while the server runs, and broken.
        assert main([*command, "--write-baseline"]) == 0
        editor.change(uri, moved + "\n")
        assert await editor.pulled(uri) == []
        (folder / "known.json").write_text("{")
        editor.change(uri, moved)
        assert len(await editor.pulled(uri)) == 2
        await editor.until(lambda: editor.messages)
        assert "the baseline is not JSON" in editor.messages[0]


async def test_what_another_file_has_presumed_is_judged_again(tmp_path: Path) -> None:
    reported = "from jax.experimental.pallas import {} as other\n"
    unknown = CODE.replace("from jax.experimental.pallas import tpu as pltpu\n", "")
    unknown = unknown.replace("        compiler_params=pltpu.CompilerParams(),\n", "")
    for name, text in (("pyproject.toml", "[project]\n"), ("known.py", reported.format("tpu")), ("k.py", unknown)):
        (tmp_path / name).write_text(text)
    uri, other = ((tmp_path / name).as_uri() for name in ("k.py", "known.py"))

    def presumed() -> list[bool]:
        return ["presumed TPU" in each.message for each in editor.shown(uri) or () if each.code == "PAL101"]

    async with session("minimal", tmp_path, options=OPTIONS) as editor:
        editor.open(uri, unknown)
        await editor.until(lambda: presumed() == [True])
        editor.open(other, reported.format("tpu"))
        editor.change(other, reported.format("tpu") + reported.format("triton"))
        await editor.until(lambda: presumed() == [False])
        editor.close(other)
        await editor.until(lambda: presumed() == [True])
