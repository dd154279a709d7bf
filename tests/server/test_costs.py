"""Costs in the server, over its protocol: predicted by a real compiler, shown, and what is made of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from tests.server.test_probing import CODE, editor

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.nightly
@pytest.mark.asyncio
async def test_what_it_costs_is_shown_until_the_code_changes(tmp_path: Path) -> None:
    async with editor(tmp_path, "--allow-probe") as e:
        assert "Cost" in await e.titles(e.line("def fine"))
        requested = {"function": "doubled", "arguments": "f32[4096,128]"}
        await e.probe(**requested)
        done = await e.probe(**requested, perf=True, targets=["tpu:v5e", "tpu:v6e", "triton"])
        words = (
            r"`doubled` was probed: v5e [\d.]+ µs · latency-bound, v6e [\d.]+ µs · latency-bound, 1 launch, 2 findings"
        )
        assert re.fullmatch(words, done["message"]), done
        titles = await e.titles(e.line("def fine"))
        (costs,) = [title for title in titles if "-bound" in title]
        assert re.fullmatch(r"v5e [\d.]+ µs latency-bound, v6e [\d.]+ µs", costs)
        assert any(each.code == "PAL801" for each in await e.diagnostics())
        place = lsp.Position(
            e.line("pl.pallas_call("), CODE.splitlines()[e.line("pl.pallas_call(")].index("pallas_call")
        )
        shown = await e.client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(e.uri), place))
        assert all(
            each in shown.contents.value
            for each in ("as probed: grid [512]", "probed: ✓ tpu:v5e", "cost: v5e ", "· latency-bound, v6e ")
        )

        found = await e.request("pallasLint/heat", {"uri": e.uri})
        body = e.line("o_ref[...] = x_ref[...] * 2.0")
        assert [each.device for each in found.devices] == ["v5e", "v6e"]
        (line,) = [each for each in found.devices[0].lines if each.line == body]
        assert 0 < line.share < 1 and line.text.endswith("on v5e, mostly load")
        assert f"cost: {line.text}" in (await e.hover(body)).contents.value
        # What goes by outside of the kernel's lines is attributed to the launch.
        (rest,) = [each for each in found.devices[0].lines if each.line == e.line("pl.pallas_call(")]
        assert rest.share > line.share and re.search(r"% of .* on v5e: the steps of the grid themselves", rest.text)
        report = await e.report()
        for words in (
            "Predicted cost",
            "Time by line on v5e",
            "Bytes by operand",
            "The first steps on v5e",
            "interpret",
        ):
            assert words in report.html, "what was probed before is there, too"

        e.change(CODE.replace("# pallas-lint: probe(f32[16,128])", "# More.\n# pallas-lint: probe(f32[16,128])"))
        assert [each.line for each in (await e.request("pallasLint/heat", {"uri": e.uri})).devices[0].lines]
        e.change(CODE.replace("x_ref[...] * 2.0", "x_ref[...] * 3.0"))
        (before,) = [title for title in await e.titles(e.line("def fine")) if "µs" in title]
        assert re.fullmatch(r"was v5e [\d.]+ µs, v6e [\d.]+ µs before the edit", before)
        assert await e.request("pallasLint/heat", {"uri": e.uri}) is None
        assert "cost" not in (await e.hover(body)).contents.value


@pytest.mark.nightly
@pytest.mark.asyncio
async def test_costs_are_those_of_the_chosen_target(tmp_path: Path) -> None:
    async with editor(tmp_path, "--allow-probe", options={"target": ["triton", "tpu:v6e"]}) as e:
        done = await e.probe(function="doubled", arguments="f32[64,128]", perf=True)
        assert done["message"].startswith("`doubled` was probed: v6e "), done


COMPARED = CODE.replace(
    "# pallas-lint: probe(f32[16,128])\n",
    "def plain(x):\n    return x * 2.0\n\n\n# pallas-lint: probe(f32[1024,128])\n# pallas-lint: reference(plain)\n",
)


@pytest.mark.asyncio
async def test_plain_jax_stands_beside_the_function(tmp_path: Path) -> None:
    async with editor(tmp_path, "--allow-probe", text=COMPARED) as e:
        await e.probe(function="doubled", perf=True, targets=["tpu:v5e"])
        (compared,) = [title for title in await e.titles(e.line("def fine")) if "plain" in title]
        assert re.fullmatch(r"v5e: doubled [\d.]+ [nµ]s, plain [\d.]+ [nµ]s", compared)


TUNED = (
    CODE
    + """

# pallas-lint: probe(f32[4096,128])
def scaled(x, bm=8):
    block = pl.BlockSpec((bm, 128), lambda i: (i, 0))
    return pl.pallas_call(
        fine,
        grid=(x.shape[0] // bm,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""
)


@pytest.mark.nightly
@pytest.mark.asyncio
async def test_block_sizes_are_tried_and_written(tmp_path: Path) -> None:
    async with editor(tmp_path, "--allow-probe", text=TUNED) as e:
        requested: list[lsp.ShowMessageRequestParams] = []
        edits: list[lsp.WorkspaceEdit] = []

        @e.client.feature(lsp.WINDOW_SHOW_MESSAGE_REQUEST)
        def answered(params: lsp.ShowMessageRequestParams) -> lsp.MessageActionItem | None:
            requested.append(params)
            return params.actions[0] if params.actions else None

        @e.client.feature(lsp.WORKSPACE_APPLY_EDIT)
        def written(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
            edits.append(params.edit)
            return lsp.ApplyWorkspaceEditResult(applied=True)

        await e.probe(function="scaled", perf=True, targets=["tpu:v5e"])
        (slow,) = [each for each in await e.diagnostics() if each.code == "PAL801"]
        params = lsp.CodeActionParams(
            lsp.TextDocumentIdentifier(e.uri), slow.range, lsp.CodeActionContext(diagnostics=[slow])
        )
        actions = await e.client.text_document_code_action_async(params) or []
        (action,) = [each for each in actions if "Try other block sizes" in each.title]
        assert "pallasLint.tune" in str(action.command), "lsprotocol takes it for a command"
        here = [{"uri": e.uri, "line": slow.range.start.line}]
        reported = await e.client.workspace_execute_command_async(lsp.ExecuteCommandParams("pallasLint.tune", here))
        assert reported["outcome"] == "done" and reported["written"], reported
        assert re.match(r"bm=32 is predicted to be [\d.]+ times as fast as bm=8: ", reported["message"])
        assert reported["message"] in requested[0].message
        (change,) = edits[0].document_changes or []
        assert isinstance(change, lsp.TextDocumentEdit)
        (edit,) = change.edits
        line = TUNED.splitlines()[edit.range.start.line]
        assert line[edit.range.start.character : edit.range.end.character] == "8" and edit.new_text == "32"

        none = await e.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("pallasLint.tune", [{"uri": e.uri, "function": "doubled"}])
        )
        assert none["outcome"] == "failed" and "as block sizes are" in none["message"]
    async with editor(tmp_path, text=TUNED) as e:
        refused = await e.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("pallasLint.tune", [{"uri": e.uri, "function": "scaled"}])
        )
        assert refused["outcome"] == "not-allowed" and "--allow-probe" in refused["message"]
