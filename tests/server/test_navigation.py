"""From a ref to its spec, from a kernel to its launches, and an outline of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from tests.server.clients import document, session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio
CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref, acc_ref):
    acc_ref[...] = x_ref[...] * 2.0
    o_ref[...] = acc_ref[...]


def run(x):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 1)),
        out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x)


def whole(x):
    return pl.pallas_call(kernel, out_shape=x, scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])(x)
"""


def place(text: str, nth: int = 0) -> lsp.Position:
    """Inside the nth occurrence of a text."""
    at = -1
    for _ in range(nth + 1):
        at = CODE.index(text, at + 1)
    before = CODE[:at].split("\n")
    return lsp.Position(len(before) - 1, len(before[-1]) + 1)


def texts(locations: list[lsp.Location] | None) -> list[str]:
    lines = CODE.split("\n")
    return [lines[each.range.start.line][each.range.start.character :] for each in locations or []]


async def test_from_refs_to_what_they_are_made_of(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)

        async def leads(text: str, nth: int = 0) -> list[str]:
            requested = lsp.DefinitionParams(document(uri), place(text, nth))
            found = await editor.client.text_document_definition_async(requested)
            assert isinstance(found, list)
            return texts(found)

        # To the spec and to the operand; the other launch has no specs.
        assert await leads("x_ref") == ["pl.BlockSpec((8, 128), lambda i: (i, 0))],", "x)", "x)"]
        assert (await leads("o_ref", 1))[0] == "pl.BlockSpec((8, 128), lambda i: (i, 1)),"
        assert [text[:10] for text in await leads("acc_ref[...]", 1)] == ["pltpu.VMEM", "pltpu.VMEM"]
        assert await leads("jnp.float32") == []


async def test_from_a_kernel_to_its_launches_and_an_outline(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={"target": "tpu:v5e"}) as editor:
        editor.open(uri, CODE)
        requested = lsp.ReferenceParams(
            lsp.ReferenceContext(include_declaration=False), document(uri), place("kernel(")
        )
        found = await editor.client.text_document_references_async(requested)
        assert [text.partition("(")[0] for text in texts([*(found or [])])] == ["pl.pallas_call", "pl.pallas_call"]
        # The same from one of them: what else launches its kernel.
        requested.position = place("pallas_call(kernel")
        assert await editor.client.text_document_references_async(requested) == found
        symbols = await editor.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document(uri)))
        reported = [(each.name, each.detail) for each in symbols or [] if isinstance(each, lsp.DocumentSymbol)]
        assert reported == [
            ("kernel", "kernel: TPU, grid (4)"),
            ("launch of kernel", "TPU, grid (4)"),
            ("launch of kernel", "TPU"),
        ]


async def test_kernels_and_launches_are_found_by_name_across_the_workspace(tmp_path: Path) -> None:
    opened, other, kernels = tmp_path / "k.py", tmp_path / "other.py", tmp_path / "kernels.py"
    renamed = CODE.replace("kernel", "flash_kernel")
    definition, rest = renamed[renamed.index("def flash_kernel") :].split("\n\n\n", 1)
    imports = renamed[: renamed.index("def flash_kernel")]
    kernels.write_text(imports + definition)
    other.write_text(f"{imports}from kernels import flash_kernel\n\n\n{rest}")
    async with session("pull", tmp_path, options={"target": "tpu:v5e"}) as editor:
        editor.open(opened.as_uri(), CODE)

        async def found(query: str) -> list[tuple[str, str | None, str, int]]:
            symbols = await editor.client.workspace_symbol_async(lsp.WorkspaceSymbolParams(query)) or []
            return [
                (each.name, each.container_name, each.location.uri.rpartition("/")[2], each.location.range.start.line)
                for each in symbols
                if isinstance(each.location, lsp.Location)
            ]

        mine = [
            ("kernel", "kernel: TPU, grid (4)", "k.py", 6),
            ("launch of kernel", "TPU, grid (4)", "k.py", 12),
            ("launch of kernel", "TPU", "k.py", 23),
        ]
        assert await found("") == mine
        assert await found("KRNL") == mine
        assert await found("launch kernel") == mine[1:]
        assert await found("nothing") == []
        # Of other files what a run over the workspace saw, in the file where it stands; its cache gives the same.
        for _ in range(2):
            await editor.client.workspace_execute_command_async(lsp.ExecuteCommandParams("pallasLint.lintWorkspace"))
            assert await found("flash") == [
                ("flash_kernel", "kernel: TPU, grid (4)", "kernels.py", 6),
                ("launch of flash_kernel", "TPU, grid (4)", "other.py", 10),
                ("launch of flash_kernel", "TPU, no grid", "other.py", 21),
            ]
        # A document that is open has its own; what it launched is still where it is.
        editor.open(other.as_uri(), "x = 1\n")
        assert [name for name, *_ in await found("flash")] == ["flash_kernel"]


CALLERS = """\


def first():
    x = jnp.ones((32, 256))
    return run(x) + whole(x)
"""


async def test_the_hierarchy_of_calls_that_lead_to_a_kernel(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    code = CODE + CALLERS
    async with session("pull", tmp_path) as editor:
        editor.open(uri, code)
        client = editor.client

        async def prepared(text: str) -> lsp.CallHierarchyItem:
            requested = lsp.CallHierarchyPrepareParams(document(uri), place(text))
            (item,) = await client.text_document_prepare_call_hierarchy_async(requested) or []
            return item

        kernel = await prepared("kernel(")
        assert (kernel.name, kernel.detail) == ("kernel", "kernel: TPU, grid (4)")
        assert await prepared("pallas_call(kernel") == kernel
        found = await client.call_hierarchy_incoming_calls_async(lsp.CallHierarchyIncomingCallsParams(kernel)) or []
        lines = code.split("\n")
        reported = [
            (each.from_.name, [lines[at.start.line][at.start.character :] for at in each.from_ranges]) for each in found
        ]
        assert reported == [("run", ["pl.pallas_call("]), ("whole", [CODE.splitlines()[-1][11:]])]
        (above,) = (
            await client.call_hierarchy_incoming_calls_async(lsp.CallHierarchyIncomingCallsParams(found[0].from_)) or []
        )
        assert (above.from_.name, above.from_ranges[0].start.line) == (
            "first",
            lines.index("    return run(x) + whole(x)"),
        )
        below = (
            await client.call_hierarchy_outgoing_calls_async(lsp.CallHierarchyOutgoingCallsParams(above.from_)) or []
        )
        assert [each.to.name for each in below] == ["run", "whole"]
        nothing = lsp.CallHierarchyPrepareParams(document(uri), place("import jax"))
        assert not await client.text_document_prepare_call_hierarchy_async(nothing)


@pytest.mark.parametrize("commands", [[], ["pallasLint.showLayout"]])
async def test_the_hierarchy_is_left_to_others_where_only_one_may_answer(tmp_path: Path, commands: list[str]) -> None:
    async with session("pull", tmp_path, options={"clientCommands": commands}) as editor:
        offered = editor.server.server_capabilities.call_hierarchy_provider
    assert bool(offered) is not bool(commands)
