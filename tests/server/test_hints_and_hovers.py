"""What stands behind refs and launches, and what a launch says of itself in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from tests.server.clients import Editor, applied, document, everywhere, label, session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio
CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(index_ref, x_ref, y_ref, o_ref, acc_ref):
    acc_ref[...] = jnp.cumsum(x_ref[...], axis=1)
    o_ref[...] = acc_ref[...] + y_ref[...]


def run(x, poly, bm=128):
    return pl.pallas_call(
        kernel,
        grid=(1,),
        in_specs=[
            pl.BlockSpec((poly.shape[0], 1, 8), lambda i: (0, 0, i)),
            pl.BlockSpec((bm, 128), lambda i: (i, 0)),
            pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
        ],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 1)),
        out_shape=jax.ShapeDtypeStruct((64, 256), jnp.bfloat16),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=64 * 1024 * 1024),
    )(poly.astype(jnp.int32), x, x)


def whole(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run_whole(x):
    return pl.pallas_call(whole, out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32))(x)
"""


async def hovered(folder: Path, text: str) -> str:
    """What the hover over the first place with a text says."""
    uri = (folder / "k.py").as_uri()
    before = CODE[: CODE.index(text)].split("\n")
    async with session("pull", folder, options={"jax-version": "0.10.2"}) as editor:
        editor.open(uri, CODE)
        place = lsp.Position(len(before) - 1, len(before[-1]) + 1)
        shown = await editor.client.text_document_hover_async(lsp.HoverParams(document(uri), place))
    assert shown is not None and isinstance(shown.contents, lsp.MarkupContent)
    return shown.contents.value


async def test_hints_have_what_is_known_and_nothing_else(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        found = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(document(uri), everywhere()))
    assert [label(each) for each in sorted(found or (), key=lambda hint: hint.position.line)] == [
        ": i32[poly.shape[0], 1, 8]",
        ": [bm, 128]",
        ": [8, 128]",
        ": bf16[8, 128]",
        ": f32[8, 128]",
        "1 step, VMEM at least 6 KiB of 64 MiB",
        ": f32[32, 256]",
        "VMEM at least 32 KiB of 16 MiB",
    ]


async def types(folder: Path, code: str) -> list[object]:
    """The hints behind parameters."""
    uri = (folder / "k.py").as_uri()
    async with session("pull", folder) as editor:
        editor.open(uri, code)
        found = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(document(uri), everywhere()))
    return [label(each) for each in found or () if label(each).startswith(": ")]


ANY = """\
import jax
from jax.experimental import pallas as pl


def kernel(w_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...] + w_ref[...]


def run(w, x):
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(w.shape, lambda: (0,) * w.ndim), pl.BlockSpec((8, 128), lambda: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda: (0, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, "float32"),
    )(w, x)
"""
SECOND = ANY[ANY.index("def run") :].replace("def run", "def again").replace("w.shape", "(8, 128)")


async def test_a_block_of_unknown_rank_is_shown_as_written(tmp_path: Path) -> None:
    assert await types(tmp_path, ANY) == [": [*w.shape]", ": [8, 128]", ": f32[8, 128]"]
    of_its_map = ANY.replace("(0,) * w.ndim", "(0, 0)")
    assert await types(tmp_path, of_its_map) == [": [w.shape[0], w.shape[1]]", ": [8, 128]", ": f32[8, 128]"]


async def test_of_several_launches_hints_have_what_holds_in_all(tmp_path: Path) -> None:
    other = SECOND.replace("BlockSpec((8, 128), lambda: (0, 0))],", "BlockSpec((8, 256), lambda: (0, 0))],")
    assert await types(tmp_path, f"{ANY}\n\n{other}") == [": [8, _]", ": f32[8, 128]"]


async def test_a_launch_shows_its_blocks_and_its_memory(tmp_path: Path) -> None:
    reported = await hovered(tmp_path, "pallas_call(\n        kernel")
    assert reported.partition("\n\n[PAL308")[0].splitlines() == [
        "**`pallas_call`** of `kernel`: TPU, grid (1), 1 step",
        "",
        "| ref |  | block | of | index map | VMEM |",
        "|:--|:--|:--|:--|:--|:--|",
        "| `index_ref` | in | `i32[poly.shape[0], 1, 8]` |  | `i: (0, 0, i)` |  |",
        "| `x_ref` | in | `[bm, 128]` |  | `i: (i, 0)` |  |",
        "| `y_ref` | in | `[8, 128]` |  | `i: (i, 0, 0)` |  |",
        "| `o_ref` | out | `bf16[8, 128]` | `bf16[64, 256]` | `i: (i, 1)` | 2 KiB |",
        "| `acc_ref` | scratch | `f32[8, 128]` |  |  | 4 KiB |",
        "",
        "VMEM: at least **6 KiB**, under 1 % of 64 MiB (`vmem_limit_bytes` of the launch)",
        "",
        "VMEM: **40 KiB** if bm=128, x\\_ref is bf16, y\\_ref is bf16:"
        " under 1 % of 64 MiB (`vmem_limit_bytes` of the launch)",
    ]


async def test_without_a_limit_of_its_own_it_is_that_of_each_device(tmp_path: Path) -> None:
    reported = await hovered(tmp_path, "pallas_call(whole")
    assert "under 1 % of 16 MiB (v4, v5e, v5p), under 1 % of 32 MiB (v6e, tpu7x)" in reported


async def test_heads_of_tables_stand_apart_and_what_lies_between_is_named(tmp_path: Path) -> None:
    reported = await hovered(tmp_path, "cumsum")
    assert "| | jax 0.10.2 | `0.4.35` | `0.6.2 to 0.12.0.1` |" in reported
    assert "\n\nnot measured, between the columns: jax 0.4.36 to 0.6.1" in reported


async def test_a_ref_without_block_and_type_has_its_role(tmp_path: Path) -> None:
    assert await hovered(tmp_path, "x_ref[...]\n\n\ndef run_whole") == "**`x_ref`**: input 0 in VMEM"


async def shown(editor: Editor, uri: str) -> tuple[list[tuple[int, object]], list[tuple[int, str]]]:
    """Hints and lenses with their lines, from 0."""
    hints = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(document(uri), everywhere()))
    lenses = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
    reported = ((each.range.start.line, each.command.title) for each in lenses or () if each.command is not None)
    return sorted((each.position.line, label(each)) for each in hints or ()), sorted(reported)  # type: ignore[type-var]


async def test_hints_and_lenses_stay_while_a_line_is_half_written(tmp_path: Path) -> None:
    uri, line = (tmp_path / "k.py").as_uri(), "    acc_ref[...] = jnp.cumsum(x_ref[...], axis=1)\n"
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        hints, lenses = await shown(editor, uri)
        first = CODE[: CODE.index(line)].count("\n")

        def below(found: list) -> list:
            return [(at + (at > first), reported) for at, reported in found]

        editor.change(uri, CODE.replace(line, f"{line}    n = jnp.\n"))
        assert await shown(editor, uri) == (below(hints), below(lenses))
        editor.change(uri, CODE.replace(line, f"{line}    n = jnp.e\n"))
        assert await shown(editor, uri) == (below(hints), below(lenses))
        # What stands on a line that is being changed goes, and what is known of whole code counts.
        editor.change(
            uri, CODE.replace("def kernel(index_ref", "def kernel(first, index_ref").replace(line, "    n = (\n")
        )
        assert not [
            each for each, _ in (await shown(editor, uri))[0] if each == CODE[: CODE.index("def k")].count("\n")
        ]
        editor.change(uri, CODE[: CODE.index("def run(")])
        assert await shown(editor, uri) == ([], [])


async def test_hints_that_are_turned_off_do_not_stay(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("minimal", tmp_path) as editor:
        editor.open(uri, CODE)
        assert (await shown(editor, uri))[0]
        editor.change(uri, CODE.replace("    acc_ref[...] =", "    acc_ref[...] = ="))
        settings = {"pallasLint": {"inlayHints": {"enable": False}}}
        editor.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings))
        assert not (await shown(editor, uri))[0]


async def test_a_hint_of_blanks_is_none(tmp_path: Path) -> None:
    """Of a kernel's launches the hint says what they have in common, without sizes where these are mostly others."""
    uri = (tmp_path / "k.py").as_uri()
    header = CODE[: CODE.index("def kernel")]
    code = header + "".join(
        f"def {name}(x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n\n\n"
        + "".join(
            f"def run_{name}_{at}(x):\n"
            f"    return pl.pallas_call({name}, out_shape=jax.ShapeDtypeStruct({shape}, jnp.float32))(x)\n\n\n"
            for at, shape in enumerate(shapes)
        )
        for name, shapes in (("two", ((8, 128), (16, 128))), ("four", ((1, 2, 8, 128), (3, 4, 16, 128))))
    )
    async with session("pull", tmp_path) as editor:
        editor.open(uri, code)
        found = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(document(uri), everywhere()))
    labels = [label(each) for each in found or () if label(each).startswith(":")]
    assert labels == [": f32[_, 128]", ": f32"]


async def test_what_is_never_used_is_greyed_out(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE.replace("acc_ref[...] + y_ref[...]", "acc_ref[...]"))
        (unused,) = [each for each in await editor.pulled(uri) if "`y_ref` is never used" in each.message]
        editor.change(uri, CODE.replace("    o_ref[...] = acc_ref[...] + y_ref[...]\n", ""))
        (unwritten,) = [each for each in await editor.pulled(uri) if "`o_ref` is never written" in each.message]
    assert list(unused.tags or ()) == [lsp.DiagnosticTag.Unnecessary] and unwritten.tags is None


async def test_a_hint_leads_to_its_spec_and_can_be_written(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)

        async def hints() -> list[lsp.InlayHint]:
            requested = lsp.InlayHintParams(document(uri), everywhere())
            found = await editor.client.text_document_inlay_hint_async(requested) or []
            return [each for each in found if label(each).startswith(": ")]

        lines, found = CODE.splitlines(), await hints()
        leads = []
        for hint in found:
            assert not isinstance(hint.label, str) or hint is found[-1], "the last has no spec"
            for part in () if isinstance(hint.label, str) else hint.label:
                if part.location is not None:
                    assert part.location.uri == uri
                    start = part.location.range.start
                    leads.append(lines[start.line][start.character :].partition("(")[0])
        assert leads == ["pl.BlockSpec", "pl.BlockSpec", "pl.BlockSpec", "pl.BlockSpec", "pltpu.VMEM"]
        # A double click on one after the other.
        text = CODE
        for name in ("x_ref", "o_ref"):
            (hint,) = [each for each in await hints() if (each.position.line, name) == (6, _named(text, each))]
            text = applied(text, hint.text_edits or ())
            editor.change(uri, text)
        assert text.splitlines()[6].endswith("acc_ref):  # x_ref: [bm, 128], o_ref: bf16[8, 128]")
        assert {_named(text, each) for each in await hints()} == {"index_ref", "y_ref", "acc_ref", "o_ref"}


def _named(text: str, hint: lsp.InlayHint) -> str:
    """The parameter before a hint."""
    before = text.splitlines()[hint.position.line][: hint.position.character]
    return before[max(before.rfind(" "), before.rfind("(")) + 1 :]
