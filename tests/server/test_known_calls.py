"""Known calls of launchers: their shapes in hints and lenses, and which of them is shown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp

from tests.server.clients import LIMIT, document, everywhere, label, session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

pytestmark = pytest.mark.asyncio
CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def rows(x, *, bm=64):
    m, n = x.shape
    spec = pl.BlockSpec((bm, n), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(m // bm,), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=pltpu.CompilerParams())(x)
"""
TEST = """\
import jax.numpy as jnp
from kern import rows

def test_rows():
    rows(jnp.ones((256, 256)))
    rows(jnp.ones((512, 128), jnp.bfloat16), bm=32)
"""
FIRST, SECOND = "x: f32[256,256], bm=64", "x: bf16[512,128], bm=32"


def project(folder: Path, test: str = TEST) -> str:
    (folder / "pyproject.toml").write_text('[project]\nname = "p"\n')
    (folder / "kern.py").write_text(CODE)
    (folder / "test_kern.py").write_text(test)
    return (folder / "kern.py").as_uri()


async def called(editor: Editor, uri: str) -> None:
    """Wait until the callers of what a document defines were queried, which comes after its first verdict."""
    await editor.server.documents.state(uri)
    while (known := editor.server.documents.known(uri)) is None or known.calls.waits:
        await asyncio.sleep(0.01)


async def hints(editor: Editor, uri: str) -> dict[str, object]:
    """Label to tooltip."""
    await called(editor, uri)
    requested = lsp.InlayHintParams(document(uri), everywhere())
    found = await editor.client.text_document_inlay_hint_async(requested)
    return {label(each): each.tooltip for each in found or ()}


async def lenses(editor: Editor, uri: str, line: str) -> list[lsp.Command]:
    """The lenses over the line of the code that begins so."""
    await called(editor, uri)
    found = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
    lines = CODE.splitlines()
    return [each.command for each in found or () if each.command and lines[each.range.start.line].startswith(line)]


async def choose(editor: Editor, **request: object) -> Any:
    params = lsp.ExecuteCommandParams("pallasLint.chooseKnownCall", [request])
    return await editor.client.workspace_execute_command_async(params)


async def test_shapes_of_a_known_call_are_shown(tmp_path: Path) -> None:
    uri = project(tmp_path)
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        found = await hints(editor, uri)
        assert str(found[": bf16[32, 128]"]).startswith(f"with {SECOND}, as in ")
        assert str(found[": bf16[32, 128]"]).endswith("test_kern.py:6")
        assert any(label.startswith("16 steps") for label in found)
        (lens,) = await lenses(editor, uri, "def rows")
        assert lens.title == f"2 known calls · {SECOND} ▾"
        kernel = await lenses(editor, uri, "def kernel")
        assert [each.title for each in kernel] == ["Probe", "launched by rows"]
        launch = await lenses(editor, uri, "    return pl.pallas_call")
        assert [each.title for each in launch] == ["Probe", "Cost", "Tune", "TPU · grid (16) · VMEM ≥ 32 KiB"]


async def test_another_call_is_picked(tmp_path: Path) -> None:
    uri = project(tmp_path)
    async with session("visual_studio_code", tmp_path) as editor:
        editor.open(uri, CODE)
        (lens,) = await lenses(editor, uri, "def rows")
        assert lens.arguments is not None
        (request,) = lens.arguments
        # They are listed as they stand in their files; shown is the one that is judged first.
        reported = await choose(editor, **request, ask=True)
        assert [(each["arguments"], each["shown"]) for each in reported] == [(FIRST, False), (SECOND, True)]
        assert ": bf16[32, 128]" in await hints(editor, uri)
        await choose(editor, **request, arguments=FIRST)
        assert ": f32[64, 256]" in await hints(editor, uri)
        # An edit leaves the choice alone; without arguments it is the next one's turn.
        editor.change(uri, f"{CODE}\n\n# more\n")
        (lens,) = await lenses(editor, uri, "def rows")
        assert lens.title == f"2 known calls · {FIRST} ▾"
        reported = await choose(editor, **request)
        assert [each["shown"] for each in reported] == [False, True]
        assert ": bf16[32, 128]" in await hints(editor, uri)


async def test_a_single_call_is_only_shown(tmp_path: Path) -> None:
    uri = project(tmp_path, TEST.rsplit("\n", 2)[0] + "\n")
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        (lens,) = await lenses(editor, uri, "def rows")
        assert (lens.title, lens.command) == (f"1 known call · {FIRST}", "")


async def test_without_calls_hints_have_facts_from_the_text(tmp_path: Path) -> None:
    uri = project(tmp_path, "")
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        assert (await hints(editor, uri))[": [bm, x.shape[1]]"] is None
        assert await lenses(editor, uri, "def rows") == []


@pytest.mark.parametrize("request_", [{}, {"uri": 3}, {"uri": "file:///gone.py", "function": "f"}])
async def test_requests_that_mean_nothing(tmp_path: Path, request_: dict[str, object]) -> None:
    uri = project(tmp_path)
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        await called(editor, uri)
        assert await choose(editor, **request_) == []
        assert await choose(editor, uri=uri, function="kernel") == []
        reported = await choose(editor, uri=uri, function="rows", arguments="x: f32[1,1]")
        assert [each["shown"] for each in reported] == [False, True]


async def test_the_hover_of_a_launch_has_its_calls(tmp_path: Path) -> None:
    uri = project(tmp_path)
    line = next(at for at, text in enumerate(CODE.splitlines()) if "pl.pallas_call(" in text)
    place = lsp.Position(line, CODE.splitlines()[line].index("pallas_call"))
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        await called(editor, uri)
        shown = await editor.client.text_document_hover_async(lsp.HoverParams(document(uri), place))
    assert shown is not None and isinstance(shown.contents, lsp.MarkupContent)
    assert f"called with {SECOND}, as in " in shown.contents.value.replace("\\", "")
    assert f"- `{FIRST}` in " in shown.contents.value


async def test_an_annotation_is_no_call(tmp_path: Path) -> None:
    uri = project(tmp_path, "")
    first, rest = CODE.replace("rows(x,", 'rows(x: Float32[Array, "m cols"],').split("\n", 1)
    async with session("pull", tmp_path) as editor:
        editor.open(uri, f"{first}; from jaxtyping import Array, Float32\n{rest}")
        reported = (await hints(editor, uri))[": f32[bm, cols]"]
        assert reported == 'with x: Float32[Array, "m cols"], as annotated'
        assert await lenses(editor, uri, "def rows") == []


async def test_the_client_refreshes_when_callers_are_known(tmp_path: Path) -> None:
    """Lenses that it requested before them are silent of the calls."""
    uri = project(tmp_path)
    async with session("visual-studio-code", tmp_path) as editor:
        requested_again = asyncio.Event()
        editor.client.protocol.fm.features[lsp.WORKSPACE_CODE_LENS_REFRESH] = lambda _: requested_again.set()
        editor.open(uri, CODE)
        await asyncio.wait_for(requested_again.wait(), LIMIT)
        assert "2 known calls" in (await lenses(editor, uri, "def rows"))[0].title
