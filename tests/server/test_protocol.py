"""The server over its protocol, with several kinds of clients."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path  # noqa: TC003
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp
from pallas_lint.server.views.rule_completion import completions
from pygls.workspace import PositionCodec
from pytest_lsp import ClientServerConfig, LanguageClient

from pallas_lint.finding import Position
from pallas_lint.text.source import Source
from tests.sampling import by_day
from tests.server.clients import capabilities, label, session

CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

B = 128


def kernel(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def run(x, n):
    spec = pl.BlockSpec((8, B), lambda i: (i * 8, 0))
    return pl.pallas_call(
        kernel,
        grid=(n,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((8 * n, B), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""
OPTIONS = {"jax-version": "0.10.2"}


def place(text: str, code: str = CODE, offset: int = 0) -> lsp.Position:
    line = next(at for at, each in enumerate(code.splitlines()) if text in each)
    return lsp.Position(line, code.splitlines()[line].index(text) + offset)


@pytest.fixture(params=["visual-studio-code", "neovim", "emacs"])
async def client(request: Any) -> AsyncIterator[LanguageClient]:
    async with session(request.param, options=OPTIONS) as editor:
        yield editor.client


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "pallas_lint", "server"]),
    params=by_day(["visual-studio-code", "neovim", "emacs"]),
)
async def process(request: Any, lsp_client: LanguageClient) -> AsyncIterator[None]:
    lsp_client.feature(lsp.CLIENT_REGISTER_CAPABILITY)(lambda *_: None)
    await lsp_client.initialize_session(
        lsp.InitializeParams(capabilities=capabilities(request.param), initialization_options=OPTIONS)
    )
    yield
    await lsp_client.shutdown_session()


def open_document(client: LanguageClient, uri: str, text: str = CODE, version: int = 1) -> None:
    item = lsp.TextDocumentItem(uri=uri, language_id="python", version=version, text=text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))


def change(client: LanguageClient, uri: str, text: str, version: int) -> None:
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=version),
            content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
        )
    )


async def diagnostics(client: LanguageClient, uri: str) -> list[lsp.Diagnostic]:
    """What the client shows: pulled where the client pulls, else what was pushed last."""
    report = await client.text_document_diagnostic_async(
        lsp.DocumentDiagnosticParams(text_document=lsp.TextDocumentIdentifier(uri=uri))
    )
    assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
    return list(report.items)


def document(uri: str) -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(uri=uri)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return (tmp_path / "k.py").as_uri()


async def test_a_launch_points_at_its_kernel_wherever_an_edit_moves_that(client: LanguageClient, uri: str) -> None:
    large = CODE.replace("(8, B)", "(8192, 8192)").replace("(8 * n, B)", "(8192 * n, 8192)")
    versions = (
        large,
        large.replace("def kernel", "# one line more\ndef kernel"),
        large.replace("def run", "# one line more\ndef run"),
        large.replace("def kernel", "MORE = 1\n\n\ndef kernel"),
        large,
    )
    open_document(client, uri, large)
    for version, text in enumerate(versions, start=2):
        change(client, uri, text, version)
        found = [each for each in await diagnostics(client, uri) if each.range.start == place("pl.pallas_call", text)]
        related = [each for finding in found for each in finding.related_information or ()]
        kernels = [each.location.range.start for each in related if each.message == "the kernel `kernel`"]
        assert kernels
        assert all(each == place("kernel(x_ref", text) for each in kernels)


async def test_diagnostics_with_links_and_related_places(client: LanguageClient, uri: str) -> None:
    open_document(client, uri)
    found = await diagnostics(client, uri)
    assert [each.code for each in found] == ["PAL101", "PAL301"]
    first = found[0]
    assert first.range.start == place("jnp.cumsum")
    assert first.severity == lsp.DiagnosticSeverity.Error
    assert first.code_description is not None and first.code_description.href.endswith("/PAL101/")
    assert first.related_information and first.related_information[0].message == "launched here"
    assert first.related_information[0].location.range.start == place("pl.pallas_call")


async def test_a_process_of_its_own(process: LanguageClient, uri: str) -> None:
    open_document(process, uri)
    assert [each.code for each in await diagnostics(process, uri)] == ["PAL101", "PAL301"]


async def test_the_newest_text_counts(client: LanguageClient, uri: str) -> None:
    open_document(client, uri)
    for version in range(2, 12):
        change(client, uri, CODE.replace("cumsum", "cumsum" if version % 2 else "sort"), version)
    change(client, uri, CODE.replace("jnp.cumsum(x_ref[...], axis=1)", "x_ref[...]").replace("i * 8", "i"), 12)
    assert await diagnostics(client, uri) == []


async def test_half_a_function_costs_only_its_own_findings(client: LanguageClient, uri: str) -> None:
    open_document(client, uri, CODE + "\n\ndef half(:\n    pass\n")
    assert {each.code for each in await diagnostics(client, uri)} == {"PAL001", "PAL101", "PAL301"}


async def actions_at(client: LanguageClient, uri: str, at: lsp.Position, **context: Any) -> list[lsp.CodeAction]:
    found = await client.text_document_code_action_async(
        lsp.CodeActionParams(
            text_document=document(uri),
            range=lsp.Range(at, at),
            context=lsp.CodeActionContext(diagnostics=await diagnostics(client, uri), **context),
        )
    )
    return [each for each in found or [] if isinstance(each, lsp.CodeAction)]


def applied(text: str, edit: lsp.WorkspaceEdit | None, uri: str) -> str:
    assert edit is not None and edit.changes is not None and set(edit.changes) == {uri}
    lines = text.splitlines(keepends=True)

    def offset(position: lsp.Position) -> int:
        line = lines[position.line] if position.line < len(lines) else ""
        units = line.encode("utf-16-le")[: position.character * 2].decode("utf-16-le")
        return sum(map(len, lines[: position.line])) + len(units)

    for change in sorted(edit.changes[uri], key=lambda each: offset(each.range.start), reverse=True):
        text = text[: offset(change.range.start)] + change.new_text + text[offset(change.range.end) :]
    return text


async def test_quick_fixes(client: LanguageClient, uri: str) -> None:
    open_document(client, uri)
    found = await actions_at(client, uri, place("i * 8"))
    fix = found[0]
    assert fix.is_preferred and fix.kind == lsp.CodeActionKind.QuickFix
    assert "lambda i: (i, 0)" in applied(CODE, fix.edit, uri)
    assert "on this line" in found[1].title and "in this file" in found[2].title
    silenced = applied(CODE, found[1].edit, uri)
    change(client, uri, silenced, 2)
    assert [each.code for each in await diagnostics(client, uri)] == ["PAL101"]
    change(client, uri, applied(CODE, found[2].edit, uri), 3)
    assert [each.code for each in await diagnostics(client, uri)] == ["PAL101"]


async def test_fix_all(client: LanguageClient, uri: str) -> None:
    open_document(client, uri)
    (action,) = await actions_at(client, uri, lsp.Position(0, 0), only=["source.fixAll.pallasLint"])
    assert "i * 8" not in applied(CODE, action.edit, uri)
    assert not await actions_at(client, uri, lsp.Position(0, 0), only=["refactor"])


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("cumsum", ["jnp.cumsum", "TPU (this kernel)", "does not work", "Triton"]),
        ("x_ref, o_ref", ["x_ref", "input 0", "[8, 128]"]),
        ("pallas_call(", ["TPU, grid (n)", "VMEM"]),
    ],
)
async def test_hover(client: LanguageClient, uri: str, text: str, reported: list[str]) -> None:
    open_document(client, uri)
    shown = await client.text_document_hover_async(lsp.HoverParams(document(uri), place(text, offset=1)))
    assert shown is not None and isinstance(shown.contents, lsp.MarkupContent)
    for each in reported:
        assert each in shown.contents.value
    assert await client.text_document_hover_async(lsp.HoverParams(document(uri), lsp.Position(6, 0))) is None


async def test_shared_memory(client: LanguageClient, uri: str) -> None:
    code = """import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

def kernel(o_gmem, s_smem, b):
    o_gmem[...] = s_smem[...]

def run():
    return plgpu.kernel(
        kernel,
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_shapes=[plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()],
    )()
"""
    open_document(client, uri, code)
    shown = await client.text_document_hover_async(lsp.HoverParams(document(uri), lsp.Position(8, 20)))
    assert shown is not None and isinstance(shown.contents, lsp.MarkupContent)
    for each in ("SMEM: at least **32.01 KiB**", "`s_smem` 32 KiB", "`b` 8 bytes", "14 % of 227 KiB"):
        assert each in shown.contents.value
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(20, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document(uri), everything))
    assert "SMEM at least 32.01 KiB of 227 KiB" in [label(each) for each in hints or []]


async def test_hints_and_lenses(client: LanguageClient, uri: str) -> None:
    open_document(client, uri)
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(40, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document(uri), everything))
    assert [label(each) for each in hints or []] == [
        ": [8, 128]", ": f32[8, 128]", "VMEM at least 4 KiB of 16 MiB",
    ]  # fmt: skip
    lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
    titles = [each.command.title for each in lenses or [] if each.command is not None]
    assert titles == ["Probe", "launched by run", "Probe", "Cost", "TPU · grid (n) · VMEM ≥ 4 KiB"]


async def test_completion_of_codes(client: LanguageClient, uri: str) -> None:
    text = "x = 1  # pallas-lint: disable=PAL101,PAL2\n"
    open_document(client, uri, text)
    found = await client.text_document_completion_async(
        lsp.CompletionParams(document(uri), lsp.Position(0, len(text) - 1))
    )
    items = found if isinstance(found, list) else found.items if found else []
    assert "PAL202" in {each.label for each in items}
    nothing = await client.text_document_completion_async(lsp.CompletionParams(document(uri), lsp.Position(0, 3)))
    assert not nothing


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_what_is_completed_stands_before_the_cursor(encoding: str) -> None:
    source = Source("a.py", "x = '🟦é'  # pallas-lint: disable=PAL1\n")
    cursor = Position(1, len(source.line(1)) + 1)
    codec = PositionCodec(encoding)
    place = completions(source, cursor, codec)[0].text_edit.range  # type: ignore[union-attr]
    assert source.text[source.offset(from_lsp(source, place.start, codec)) :] == "PAL1\n"
    assert from_lsp(source, place.end, codec) == cursor


async def test_columns_of_astral_characters(client: LanguageClient, uri: str) -> None:
    code = CODE.replace("    o_ref[...] = jnp", '    "🟦🟦"; o_ref[...] = jnp')
    open_document(client, uri, code)
    first = (await diagnostics(client, uri))[0]
    line = code.splitlines()[first.range.start.line]
    before = line[: line.index("jnp.cumsum")]
    units = {"utf-8": len(before.encode()), "utf-16": len(before.encode("utf-16-le")) // 2, "utf-32": len(before)}
    assert first.range.start.character in units.values()
    assert first.range.start.character != len(before) or len(before) == units["utf-32"]


async def test_settings_are_taken_and_reloaded(client: LanguageClient, uri: str, tmp_path: Path) -> None:
    open_document(client, uri)
    assert len(await diagnostics(client, uri)) == 2
    client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings={**OPTIONS, "ignore": ["PAL101"]})
    )
    assert [each.code for each in await diagnostics(client, uri)] == ["PAL301"]
    (tmp_path / "pallas-lint.toml").write_text("nonsense = 1\n")
    client.workspace_did_change_watched_files(
        lsp.DidChangeWatchedFilesParams(
            changes=[lsp.FileEvent((tmp_path / "pallas-lint.toml").as_uri(), lsp.FileChangeType.Created)]
        )
    )
    assert await diagnostics(client, uri) == []


async def test_an_open_helper_is_read_from_the_editor(client: LanguageClient, uri: str, tmp_path: Path) -> None:
    helper = tmp_path / "maths.py"
    helper.write_text("import jax.numpy as jnp\n\ndef order(v):\n    return v\n")
    code = CODE.replace("import jax\n", "import jax\nfrom maths import order\n", 1).replace(
        "jnp.cumsum(x_ref[...], axis=1)", "order(x_ref[...])"
    )
    open_document(client, uri, code)
    assert {each.code for each in await diagnostics(client, uri)} == {"PAL301"}
    open_document(client, helper.as_uri(), helper.read_text().replace("return v", "return jnp.sort(v, axis=-1)"))
    await asyncio.sleep(0)
    known = await diagnostics(client, uri)
    assert {each.code for each in known} == {"PAL301"}, "the finding stands in the helper"


async def test_closing_clears(client: LanguageClient, uri: str) -> None:
    open_document(client, uri)
    await diagnostics(client, uri)
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(document(uri)))
    assert await diagnostics(client, uri) == []
