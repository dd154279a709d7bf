"""The call that is meant: what a probe is suggested to be given, and what is shown of a launch with known calls."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp

from tests.server.clients import document, session
from tests.server.test_known_calls import CODE, called, choose, hints, lenses, project
from tests.stand_in_worker import ended, launch, make

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is started by its first line"),
]
FIRST, SECOND = "f32[256,256]", "bf16[512,128], bm=32"
LAUNCHED = next(at for at, line in enumerate(CODE.splitlines(), start=1) if "pl.pallas_call(" in line)


async def command(editor: Editor, name: str, **requested: Any) -> dict[str, Any]:
    found: dict[str, Any] = await editor.client.workspace_execute_command_async(
        lsp.ExecuteCommandParams(f"pallasLint.{name}", [requested])
    )
    return found


async def titles(editor: Editor, uri: str) -> list[str]:
    return [each.title for each in await lenses(editor, uri, "    return pl.pallas_call")]


def stand_in(folder: Path, file: Path, shape: list[int], dtype: str, block: list[int]) -> str:
    """An interpreter that sees one launch with one operand."""
    operand = {"name": "x_ref", "role": "in", "dtype": dtype, "shape": shape, "block": block, "memory_space": "vmem"}
    operand |= {"bytes": 1, "space": None, "index": 0}
    memory = {"space": "vmem", "bytes": 3 << 20, "limit": 16 << 20, "device": "v5e", "parts": []}
    event = launch(
        file, LAUNCHED, grid=[8], backend="tpu", operands=[operand], memory=memory, stages=[["lower", "tpu:v5e"]]
    )
    return str(make(folder, [event, ended("lower", "tpu:v5e")]))


@pytest.mark.parametrize("clients", [["pallasLint.showLayout"], []])
async def test_the_known_call_is_what_a_probe_is_given(tmp_path: Path, clients: list[str]) -> None:
    uri = project(tmp_path)
    program = stand_in(tmp_path / "stand-in", tmp_path / "kern.py", [256, 256], "f32", [64, 256])
    options = {"settings": {"interpreter": program}, "clientCommands": clients}
    async with session("pull", tmp_path, options=options, allow_probe=True) as editor:
        editor.open(uri, CODE)
        await called(editor, uri)
        requested = await command(editor, "probe", uri=uri, function="rows", ask=True)
        assert (requested["function"]["suggestion"], requested["function"]["known"]) == (SECOND, True)
        await choose(editor, uri=uri, function="rows", arguments="x: f32[256,256], bm=64")
        answer = await command(editor, "probe", uri=uri, function="rows")
        if clients:  # which has to be confirmed first
            assert (answer["outcome"], answer["function"]["suggestion"]) == ("needs-arguments", FIRST)
        else:
            assert answer["outcome"] == "done", answer


async def test_a_lens_is_about_one_call(tmp_path: Path) -> None:
    uri = project(tmp_path)
    program = stand_in(tmp_path / "stand-in", tmp_path / "kern.py", [1024, 512], "f32", [128, 512])
    async with session("pull", tmp_path, options={"settings": {"interpreter": program}}, allow_probe=True) as editor:
        editor.open(uri, CODE)
        before = await titles(editor, uri)
        assert before == ["Probe", "Cost", "Tune", "TPU · grid (16) · VMEM ≥ 32 KiB"]
        # Another call is probed: it is shown from now on, with what was seen of it.
        answer = await command(editor, "probe", uri=uri, function="rows", arguments="f32[1024,512], bm=128")
        assert answer["outcome"] == "done", answer
        assert await titles(editor, uri) == [
            "Probe",
            "Cost",
            "Tune",
            "TPU · grid (8) · VMEM 3 MiB",
            "✓ tpu:v5e (lower)",
        ]
        (lens,) = await lenses(editor, uri, "def rows")
        assert lens.title == "3 known calls · x: f32[1024,512], bm=128 ▾"
        assert ": f32[128, 512]" in await hints(editor, uri)
        requested = await command(editor, "probe", uri=uri, function="rows", ask=True)
        assert requested["function"]["suggestion"] == "f32[1024,512], bm=128"
        # Back to one of the others: nothing of the probe is reported of it, and its verdict names what it was given.
        await choose(editor, uri=uri, function="rows", arguments="x: bf16[512,128], bm=32")
        assert await titles(editor, uri) == [*before, "with f32[1024,512]: ✓ tpu:v5e (lower)"]
        assert ": bf16[32, 128]" in await hints(editor, uri)


async def test_a_probe_of_a_known_call_shows_that_one(tmp_path: Path) -> None:
    uri = project(tmp_path)
    program = stand_in(tmp_path / "stand-in", tmp_path / "kern.py", [256, 256], "f32", [64, 256])
    async with session("pull", tmp_path, options={"settings": {"interpreter": program}}, allow_probe=True) as editor:
        editor.open(uri, CODE)
        await called(editor, uri)
        assert (await command(editor, "probe", uri=uri, function="rows", arguments=FIRST))["outcome"] == "done"
        (lens,) = await lenses(editor, uri, "def rows")
        assert lens.title == "2 known calls · x: f32[256,256], bm=64 ▾"
        assert "TPU · grid (8) · VMEM 3 MiB" in await titles(editor, uri)


async def test_a_document_that_is_no_file_is_probed(tmp_path: Path) -> None:
    """Twice: what has not changed is not run again."""
    uri = "untitled:Untitled-1"
    program = make(tmp_path / "stand-in", [])
    async with session(
        "pull", tmp_path, options={"settings": {"interpreter": str(program)}}, allow_probe=True
    ) as editor:
        file = editor.server.documents.path(uri)
        assert file.name == "Untitled-1.py"
        assert file != editor.server.documents.path("untitled:Untitled-2")
        (program.parent / "events.json").write_text(json.dumps([launch(file, LAUNCHED), ended("grid")]))
        editor.open(uri, CODE)
        await editor.pulled(uri)
        for _ in range(2):
            answer = await command(editor, "probe", uri=uri, function="rows", arguments=FIRST)
            assert (answer["outcome"], answer["launches"]) == ("done", 1), answer
        found = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
        assert any(each.command and each.command.title == "✓" for each in found or ())


UNDECIDED = """\
import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 128), "float32")
    return pl.pallas_call(kernel, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
"""


@pytest.mark.parametrize(
    ("target", "reported"),
    [
        ("tpu:v5e", "TPU · grid (4) · VMEM ≥ 8 KiB"),
        ("triton", "Triton · grid (4)"),
        (None, "backend not known · grid (4) · VMEM ≥ 8 KiB"),
    ],
)
async def test_the_chosen_target_is_the_backend_of_kernels_that_name_none(
    tmp_path: Path, target: str | None, reported: str
) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={"target": target}) as editor:
        editor.open(uri, UNDECIDED)
        found = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
        assert reported in [each.command.title for each in found or () if each.command]
        requested = lsp.SemanticTokensParams(document(uri))
        tokens = await editor.client.text_document_semantic_tokens_full_async(requested)
        assert bool(tokens and tokens.data) is (target == "tpu:v5e")
