"""Places of a kernel's parameters, other names for them, and what a call takes: for clients without another server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from tests.server.clients import applied, document, session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

pytestmark = pytest.mark.asyncio
CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

other = 3


def kernel(x_ref, o_ref, acc_ref, *, n):
    @pl.when(pl.program_id(0) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += x_ref[...] * other
    total = acc_ref[...]
    o_ref[...] = total + n


def twice(x_ref, o_ref):
    x_ref = x_ref.at[0]
    o_ref[...] = x_ref[...]


def run(x):
    import functools

    params = pltpu.CompilerParams(
        dimension_semantics=("arbitrary",), vmem_limit_bytes=2**24,
    )
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    pl.pallas_call(twice, out_shape=shape)(x)
    return pl.pallas_call(
        functools.partial(kernel, n=2), grid=(4,), in_specs=[block], out_specs=block, out_shape=shape,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)], compiler_params=params,
    )(x)
"""


def place(text: str, after: int = 1) -> lsp.Position:
    at = CODE.index(text) + after
    before = CODE[:at].split("\n")
    return lsp.Position(len(before) - 1, len(before[-1]))


async def edited(editor: Editor, uri: str, at: lsp.Position, name: str) -> str | None:
    """The text after a rename; None where there is nothing to rename."""
    edit = await editor.client.text_document_rename_async(lsp.RenameParams(document(uri), at, name))
    return None if edit is None or edit.changes is None else applied(CODE, edit.changes[uri])


async def test_all_places_of_a_ref(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)

        async def found(text: str, after: int = 1) -> list[tuple[int, str]]:
            params = lsp.DocumentHighlightParams(document(uri), place(text, after))
            places = await editor.client.text_document_document_highlight_async(params) or []
            kinds = {lsp.DocumentHighlightKind.Read: "read", lsp.DocumentHighlightKind.Write: "write"}
            return [(each.range.start.line, kinds[each.kind]) for each in places if each.kind is not None]

        everywhere = [(8, "read"), (11, "write"), (11, "read"), (13, "write"), (14, "read")]
        assert await found("acc_ref, *") == everywhere
        assert await found("acc_ref)\n", 4) == everywhere
        assert await found("total +") == [] == await found("other = 3") == await found("n):")


async def test_a_ref_gets_another_name(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        client, at = editor.client, place("acc_ref[...] +=")
        ready = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(document(uri), at))
        assert isinstance(ready, lsp.Range)
        assert (ready.start, ready.end.character - ready.start.character) == (place("acc_ref[...] +=", 0), 7)
        assert await edited(editor, uri, at, "sums_ref") == CODE.replace("acc_ref", "sums_ref")
        assert await edited(editor, uri, at, "acc_ref") == CODE
        for taken in ("x_ref", "total", "other", "class", "two words", "jnp"):
            with pytest.raises(JsonRpcException, match=taken):
                await edited(editor, uri, at, taken)
        # What is passed by name, and what the kernel binds again, is no business of a ref's name.
        for text in ("n):", "other\n", "twice(x_ref", "x_ref.at[0]"):
            here = place(text, 7 if text.startswith("twice") else 1)
            assert await edited(editor, uri, here, "name") is None
            assert not await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(document(uri), here))


async def test_the_parameters_of_a_call(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={"jaxVersion": "0.10.2"}) as editor:
        editor.open(uri, CODE)

        async def shown(text: str, after: int = 0) -> tuple[str, str | None] | None:
            params = lsp.SignatureHelpParams(document(uri), place(text, after))
            found = await editor.client.text_document_signature_help_async(params)
            if found is None:
                return None
            (reported,) = found.signatures
            names = [each.label for each in reported.parameters or ()]
            return reported.label, None if found.active_parameter is None else str(names[found.active_parameter])

        call = await shown("twice, out_shape")
        assert call is not None
        assert call[0].startswith("pallas_call(kernel, out_shape, ") and "grid=…" in call[0] and call[1] == "kernel"
        assert await shown("lambda i: (i") == (
            "BlockSpec(block_shape, index_map, pipeline_mode, memory_space=…)",
            "index_map",
        )
        params = await shown("vmem_limit_bytes=2", 18)
        assert params is not None and params[1] == "vmem_limit_bytes"
        assert await shown("x_ref, o_ref, acc") is None


async def test_tokens_of_a_part(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        client = editor.client
        whole = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document(uri)))
        lines = lsp.Range(lsp.Position(13, 0), lsp.Position(14, 5))
        part = await client.text_document_semantic_tokens_range_async(
            lsp.SemanticTokensRangeParams(document(uri), lines)
        )
        assert whole is not None and part is not None
        assert (len(part.data) // 5, part.data[0]) == (3, 13)
        assert len(whole.data) > len(part.data)


@pytest.mark.parametrize("commands", [[], ["pallasLint.showLayout"]])
async def test_they_are_left_to_others_where_only_one_may_answer(tmp_path: Path, commands: list[str]) -> None:
    async with session("pull", tmp_path, options={"clientCommands": commands}) as editor:
        can = editor.server.server_capabilities
        offered = [can.document_highlight_provider, can.rename_provider, can.signature_help_provider]
    assert [each is not None for each in offered] == [not commands] * 3
