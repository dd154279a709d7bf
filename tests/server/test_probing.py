"""The probe in the server, over its protocol: real jax in the worker, a real server process, two kinds of clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from tests.probe.test_containment import running, wait_for
from tests.rules.interpreted import python
from tests.server.test_protocol import applied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.slow
PROFILES = ("visual-studio-code", "neovim")
CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

B = 128


def kernel(x_ref, o_ref):
    o_ref[...] = jnp.sort(x_ref[...])


def fine(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


def launch(body, x):
    spec = pl.BlockSpec((8, B), lambda i: (i, 0))
    return pl.pallas_call(
        body,
        grid=(x.shape[0] // 8,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)


def run(x):
    return launch(kernel, x)


# pallas-lint: probe(f32[16,128])
def doubled(x):
    return launch(fine, x)


def without_arguments():
    return launch(fine, jnp.ones((16, B), jnp.float32))


def dies(x):
    import os

    os._exit(3)
    return launch(fine, x)


def endless(x):
    import os, subprocess, sys

    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", os.environ["MARK"]])
    open(os.environ["MARK"], "w").close()
    while True:
        pass
    return launch(fine, x)
"""


class Editor:
    """A client with one document open, and what the server sent without a request."""

    def __init__(self, client: LanguageClient, file: Path, text: str) -> None:
        self.client, self.file, self.text, self.version = client, file, text, 1
        self.uri = file.as_uri()
        self.probed: list[str] = []

    async def probe(self, **requested: Any) -> dict[str, Any]:
        """The answer to `pallasLint.probe`."""
        params = lsp.ExecuteCommandParams("pallasLint.probe", [{"uri": self.uri, **requested}])
        answer: dict[str, Any] = await self.client.workspace_execute_command_async(params)
        return answer

    def change(self, text: str) -> None:
        self.version, self.text = self.version + 1, text
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(uri=self.uri, version=self.version),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        report = await self.client.text_document_diagnostic_async(
            lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(self.uri))
        )
        return list(getattr(report, "items", ()))

    async def lenses(self) -> list[lsp.CodeLens]:
        params = lsp.CodeLensParams(lsp.TextDocumentIdentifier(self.uri))
        return list(await self.client.text_document_code_lens_async(params) or ())

    async def titles(self, line: int) -> list[str]:
        return [each.command.title for each in await self.lenses() if each.range.start.line == line and each.command]

    async def report(self, **requested: Any) -> Any:
        return await self.request("pallasLint/report", {"textDocument": {"uri": self.uri}, **requested})

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        return await self.client.protocol.send_request_async(method, params)

    async def hover(self, line: int) -> lsp.Hover | None:
        """Over the first word of a line."""
        text = self.text.splitlines()[line]
        at = lsp.Position(line, len(text) - len(text.lstrip()))
        return await self.client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(self.uri), at))

    def line(self, part: str) -> int:
        return next(at for at, each in enumerate(self.text.splitlines()) if part in each)


@contextlib.asynccontextmanager
async def editor(
    folder: Path, *flags: str, profile: str = "visual-studio-code", text: str = CODE, options: Any = None,
    configuration: Any = None, environment: dict[str, str] | None = None,
) -> AsyncIterator[Editor]:  # fmt: skip
    file = folder / "k.py"
    if not file.exists():
        file.write_text(text)
    (folder / "pallas-lint.toml").touch()
    given = dict(options or {})
    if "interpreter" not in given:
        given["interpreter"] = python()
    client = make_test_lsp_client()
    found = Editor(client, file, text)
    for method in (
        lsp.CLIENT_REGISTER_CAPABILITY, lsp.WORKSPACE_CODE_LENS_REFRESH, lsp.WORKSPACE_INLAY_HINT_REFRESH,
        lsp.WORKSPACE_DIAGNOSTIC_REFRESH,
    ):  # fmt: skip
        with contextlib.suppress(Exception):  # pytest-lsp answers some by itself
            client.feature(method)(lambda *_: None)
    client.feature("pallasLint/probed")(lambda params: found.probed.append(params.uri))
    if configuration is not None:
        for scope in (None, file.parent.as_uri()):
            client.set_configuration(configuration, section=None, scope_uri=scope or "")
    await client.start_io(
        sys.executable,
        "-m",
        "pallas_lint",
        "server",
        *flags,
        cwd=str(folder),
        env={**os.environ, **(environment or {})},
    )
    try:
        await client.initialize_session(
            lsp.InitializeParams(
                capabilities=client_capabilities(profile),
                root_uri=folder.as_uri(),
                workspace_folders=[lsp.WorkspaceFolder(folder.as_uri(), "ws")],
                initialization_options={
                    "settings": {"jaxVersion": "0.10.2", **given},
                    "clientCommands": ["pallasLint.showLayout"] if profile == "visual-studio-code" else [],
                },
            )
        )
        item = lsp.TextDocumentItem(uri=found.uri, language_id="python", version=1, text=text)
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        yield found
        await client.shutdown_session()
    except BaseException:
        client.exit(None)  # or it would be waited for
        raise
    finally:
        await client.stop()


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_probe_from_its_arguments_to_its_report(tmp_path: Path, profile: str) -> None:
    async with editor(tmp_path, "--allow-probe", profile=profile) as e:
        (before,) = [each for each in await e.diagnostics() if each.code == "PAL101"]
        assert "probe" not in before.message
        requested = await e.probe(function="run")
        assert requested["outcome"] == "needs-arguments"
        assert requested["function"] == {
            "name": "run",
            "parameters": [{"name": "x", "default": None, "annotation": None}],
            "suggestion": "f32[32,128]",
            "known": False,
        }
        assert await e.report() is None
        launched = e.line("pl.pallas_call")
        assert "Layout" not in await e.titles(launched)

        done = await e.probe(function="run", arguments=requested["function"]["suggestion"])
        assert (done["outcome"], done["launches"], done["findings"]) == ("done", 1, 1), done
        (after,) = [each for each in await e.diagnostics() if each.code == "PAL101"]
        assert after.range == before.range and "the probe confirms it" in after.message
        assert set(e.probed) == {e.uri}
        titles = await e.titles(e.line("def kernel"))
        assert "TPU · grid (4) · VMEM 16 KiB" in titles
        assert "✗ tpu:v5e: lower" in titles and "Probe" in titles
        assert ("Layout" in titles) is (profile == "visual-studio-code")

        report = await e.report(position={"line": e.line("jnp.sort"), "character": 0})
        assert [(each.kernel, each.line, each.anchor) for each in report.launches] == [("kernel", launched, "launch-0")]
        assert report.current == "launch-0"
        assert report.html.startswith("<header>") and "<script" not in report.html and "<style" not in report.html
        assert f'data-path="{e.file}" data-line="{launched + 1}"' in report.html
        assert 'id="launch-0"' in report.html and "does not lower" in report.html and "tpu:v5e" in report.html
        whole = await e.report(standalone=True)
        assert whole.html.startswith("<!doctype html>") and report.html in whole.html
        assert (await e.report(position={"line": e.line("def dies"), "character": 0})).current is None

        again = await e.probe(function="run")
        assert again["function"]["suggestion"] == "f32[32,128]", "those of the last probe"


@pytest.mark.nightly
@pytest.mark.asyncio
async def test_kernels_run_on_the_device_where_the_server_was_started_so(tmp_path: Path) -> None:
    (tmp_path / "pallas-lint.toml").write_text('[probe]\nstage = "trace"\n')
    for options, requested in (((), False), (("--allow-run",), True)):
        async with editor(tmp_path, "--allow-probe", *options) as e:
            assert (await e.probe(function="run", arguments="f32[32,128]"))["outcome"] == "done"
            assert ("jax finds no" in (await e.report()).html) is requested


@pytest.mark.nightly
@pytest.mark.asyncio
async def test_what_has_not_changed_is_not_run_again(tmp_path: Path) -> None:
    text = CODE.replace("import jax\n", "import os\n\nimport jax\n\nimport rows\n", 1).replace("// 8", "// rows.ROWS")
    text = text.replace("B = 128\n", 'B = 128\nopen(os.environ["MARK"], "a").write("ran ")\n', 1)
    mark, rows = tmp_path / "mark", tmp_path / "rows.py"
    rows.write_text("ROWS = 8\n")
    (tmp_path / "pallas-lint.toml").write_text('[probe]\nstage = "trace"\n')
    async with editor(tmp_path, "--allow-probe", text=text, environment={"MARK": str(mark)}) as e:

        async def runs(arguments: str = "f32[32,128]", **how: Any) -> bool:
            """Whether the code ran."""
            mark.write_text("")
            answer = await e.probe(function="run", arguments=arguments, **how)
            assert (answer["outcome"], answer["launches"]) == ("done", 1), answer
            ran = mark.read_text() != ""
            assert ("nothing has changed since" in answer["message"]) is not ran
            return ran

        assert await runs()
        assert not await runs()
        assert await runs(fresh=True)
        e.change(text.replace("import jax\n", "# Why.\n\nimport jax\n", 1))
        assert not await runs()
        assert any(title.startswith("TPU · grid (4)") for title in await e.titles(e.line("def kernel")))
        assert await runs("f32[64,128]")
        e.change(text.replace("B = 128\n", 'B = 128\njax.config.update("jax_enable_x64", True)\n', 1))
        assert await runs("f32[64,128]")
        rows.write_text("ROWS = 16\n")
        assert await runs("f32[64,128]")
        assert await runs("f32[64,128]", targets=["tpu:v6e"])


@pytest.mark.nightly
@pytest.mark.asyncio
async def test_facts_follow_edits_and_go_with_their_code(tmp_path: Path) -> None:
    async with editor(tmp_path, "--allow-probe") as e:
        await e.probe(function="run", arguments="f32[32,128]")
        confirmed = [each for each in await e.diagnostics() if "the probe confirms" in each.message]
        (before,) = confirmed
        e.change(CODE.replace("B = 128\n", "B = 128\n# more\nC = 1\n").replace("x_ref[...] * 2.0", "x_ref[...] * 3.0"))
        (moved,) = [each for each in await e.diagnostics() if "the probe confirms" in each.message]
        assert moved.range.start.line == before.range.start.line + 2
        assert "✗ tpu:v5e: lower" in await e.titles(e.line("def kernel"))
        for changed in (
            CODE.replace("jnp.sort(x_ref[...])", "jnp.sort(x_ref[...] )"),
            CODE.replace("B = 128", "B = 256"),
            CODE.replace("// 8", "// 16"),
        ):
            e.change(changed)
            assert not [each for each in await e.diagnostics() if "probe" in each.message]
            assert not any("tpu:v5e" in title for title in await e.titles(e.line("def kernel")))
            assert await e.report() is None
        e.change(CODE)
        assert [each for each in await e.diagnostics() if "the probe confirms" in each.message] == confirmed


@pytest.mark.nightly
@pytest.mark.asyncio
async def test_facts_go_with_code_of_other_files(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.py"
    sizes.write_text("B = 128\nOTHER = 1\n")
    async with editor(tmp_path, "--allow-probe", text=CODE.replace("B = 128", "from sizes import B")) as e:

        async def confirmed() -> bool:
            return any("the probe confirms" in each.message for each in await e.diagnostics())

        def written(text: str) -> None:
            sizes.write_text(text)
            changes = [lsp.FileEvent(sizes.as_uri(), lsp.FileChangeType.Changed)]
            e.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes))

        await e.probe(function="run", arguments="f32[32,128]")
        assert await confirmed()
        written("B = 128\nOTHER = 2\n")
        assert await confirmed(), "it rests on one statement of it"
        written("B = 256\nOTHER = 2\n")
        assert not await confirmed()
        written("B = 128\n")
        assert await confirmed()
        item = lsp.TextDocumentItem(uri=sizes.as_uri(), language_id="python", version=1, text="B = 8 * 16\n")
        e.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        assert not await confirmed(), "the editor's text counts"


@pytest.mark.asyncio
async def test_the_text_in_the_editor_is_probed(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("raise RuntimeError('the text on disk')\n")
    async with editor(tmp_path, "--allow-probe", options={"probe": {"targets": ["triton", "tpu:v6e"]}}) as e:
        done = await e.probe(line=e.line("return launch(fine, x)"))
        assert done["outcome"] == "done" and done["launches"] == 1, "with the arguments of the comment"
        titles = await e.titles(e.line("pl.pallas_call"))
        assert any("✓ triton" in title and "✓ tpu:v6e" in title for title in titles), titles
        titles = await e.titles(e.line("def fine"))
        assert "TPU · grid (2) · VMEM 16 KiB" in titles
        assert any("✓ triton" in title and "✓ tpu:v6e" in title for title in titles), titles
        done = await e.probe(function="without_arguments", targets=["triton"])
        assert done["outcome"] == "done", "nothing to ask for"
        assert (await e.probe(function="run", arguments="f32[", targets=[]))["outcome"] == "failed"
        assert (await e.probe(function="nowhere"))[
            "message"
        ] == "there is no function `nowhere` at the top of this file"
        assert (await e.probe(line=0))["outcome"] == "failed"
        assert (await e.probe(function="run", arguments="f32[8,128]", targets=["gpu"]))["outcome"] == "failed"
        assert (await e.probe(uri=3))["outcome"] == "failed"


@pytest.mark.asyncio
async def test_a_comment_is_written_and_replaced(tmp_path: Path) -> None:
    decorated = CODE.replace("def run(x)", "@jax.jit\ndef run(x)")
    async with editor(tmp_path, text=decorated) as e:
        edits: list[lsp.WorkspaceEdit] = []

        @e.client.feature(lsp.WORKSPACE_APPLY_EDIT)
        def apply(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
            edits.append(params.edit)
            return lsp.ApplyWorkspaceEditResult(applied=True)

        async def write(function: str, arguments: str) -> str:
            requested = {"uri": e.uri, "function": function, "arguments": arguments}
            params = lsp.ExecuteCommandParams("pallasLint.writeProbeComment", [requested])
            assert await e.client.workspace_execute_command_async(params) is True
            return applied(e.text, edits[-1], e.uri)

        text = await write("run", "f32[8, 128]")
        assert "\n\n# pallas-lint: probe(f32[8,128])\n@jax.jit\ndef run(x)" in text
        e.change(text)
        text = await write("run", "f32[16,128]")
        assert text.count("probe(") == 2 and "\n# pallas-lint: probe(f32[16,128])\n@jax.jit" in text
        text = await write("doubled", "f32[8,128]")
        assert "# pallas-lint: probe(f32[8,128])\ndef doubled" in text and "probe(f32[16,128])\ndef doubled" not in text


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
async def test_nothing_in_a_repository_allows_the_probe(tmp_path: Path, profile: str) -> None:
    every = {"probe": {"enable": True, "allow": True, "allowed": True}, "allowProbe": True, "args": ["--allow-probe"]}
    (tmp_path / "pyproject.toml").write_text("[tool.pallas-lint.probe]\ntimeout = 10\n")
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "settings.json").write_text(json.dumps({"pallasLint.probe.enable": True}))
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w').close()\n{CODE}"
    async with editor(tmp_path, profile=profile, text=code, options=every, configuration={"pallasLint": every}) as e:
        e.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams({"pallasLint": every}))
        for requested in ({"function": "doubled"}, {"function": "run", "arguments": "f32[8,128]"}):
            answer = await e.probe(**requested)
            assert answer["outcome"] == "not-allowed"
            assert "--allow-probe" in answer["message"] and "pallasLint.probe.enable" in answer["message"]
        status = await e.client.protocol.send_request_async("pallasLint/status", {"uri": e.uri})
        assert status.probe.allowed is False
    assert not mark.exists()


@pytest.mark.asyncio
async def test_files_of_the_workspace_do_not_run_in_the_server(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for name in (
        "jax.py",
        "jaxlib.py",
        "sitecustomize.py",
        "usercustomize.py",
        "conftest.py",
        "lsprotocol.py",
        "attrs.py",
    ):
        (tmp_path / name).write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    async with editor(tmp_path, "--allow-probe") as e:
        assert {each.code for each in await e.diagnostics()} == {"PAL101"}
        assert not mark.exists()
        done = await e.probe(function="doubled")
        assert done["outcome"] == "done", done["message"]
    assert not mark.exists(), mark.read_text()


@pytest.mark.asyncio
async def test_a_dying_process_is_reported_and_the_next_probe_works(tmp_path: Path) -> None:
    async with editor(tmp_path, "--allow-probe") as e:
        for _ in range(2):
            died = await e.probe(function="dies", arguments="f32[8,128]")
            assert died["outcome"] == "failed"
            assert died["message"] == "`dies`: the process ended itself with status 3 while it was traced"
            assert (await e.probe(function="doubled"))["outcome"] == "done"
        assert e.client.messages == [], "the answer tells it"


@pytest.mark.nightly
@pytest.mark.asyncio
@pytest.mark.parametrize("profile", PROFILES)
async def test_an_endless_function_is_cancelled(tmp_path: Path, profile: str) -> None:
    mark = tmp_path / "mark"

    async def until(what: Any) -> bool:
        return await asyncio.to_thread(wait_for, what)

    async with editor(tmp_path, "--allow-probe", profile=profile, environment={"MARK": str(mark)}) as e:
        requested = [{"uri": e.uri, "function": "endless", "arguments": "f32[8,128]"}]
        params = lsp.ExecuteCommandParams("pallasLint.probe", requested)
        answer = asyncio.ensure_future(e.client.workspace_execute_command_async(params))
        assert await until(mark.exists)
        assert await until(lambda: running(str(mark))), "its arguments are readable a moment after it began"
        assert {each.code for each in await e.diagnostics()} == {"PAL101"}, "other requests are answered meanwhile"
        (token,) = e.client.progress_reports
        e.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token))
        assert (await answer)["outcome"] == "cancelled"
        assert await until(lambda: not running(str(mark)))
        reported = e.client.progress_reports[token]
        assert [each.kind for each in reported][:1] == ["begin"] and reported[-1].kind == "end"
        assert "tracing" in [getattr(each, "message", None) for each in reported]

        mark.unlink()
        future = e.client.protocol.send_request(lsp.WORKSPACE_EXECUTE_COMMAND, params, msg_id="called-off")
        waiting = asyncio.ensure_future(e.probe(function="doubled"))
        assert await until(mark.exists)
        e.client.cancel_request(lsp.CancelParams("called-off"))
        with pytest.raises(JsonRpcException):
            await asyncio.wrap_future(future)
        assert (await waiting)["outcome"] == "done", "the next in the queue has its turn"
        assert await until(lambda: not running(str(mark)))


@pytest.mark.asyncio
async def test_the_server_ends_with_a_probe_under_way(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with editor(tmp_path, "--allow-probe", environment={"MARK": str(mark)}) as e:
        requested = asyncio.ensure_future(e.probe(function="endless", arguments="f32[8,128]"))
        assert await asyncio.to_thread(wait_for, mark.exists)
    requested.cancel()
    assert await asyncio.to_thread(wait_for, lambda: not running(str(mark))), "processes are left"
