"""In which memory the refs are that a document names: the same in semantic tokens, and in what VS Code paints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from tests.server.clients import Editor, document, session
from tests.server.test_notebooks import Cells

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio
CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def scaled(src_ref, n):
    return src_ref[...] * n


def of_both(any_ref):
    return any_ref[0]


def kernel(lens_ref, x_ref, w_ref, o_ref, acc_ref, sem):
    def body(buf, inner_sem):
        pltpu.make_async_copy(w_ref.at[0], buf, inner_sem).start()
        acc_ref[...] += buf[...]

    pl.run_scoped(body, pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA)

    @pl.when(lens_ref[0] > 0)
    def _():
        other = x_ref
        o_ref[...] = scaled(x_ref, n=2) + other[...] + sum(x_ref for x_ref in (1, 2)) + (lambda o_ref: o_ref)(1)
        o_ref[...] += of_both(x_ref) + of_both(lens_ref)


def run(lens, x, w):
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, s: (i, 0)), pl.BlockSpec(memory_space=pltpu.HBM)],
            out_specs=pl.BlockSpec((8, 128), lambda i, s: (i, 0)),
            scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
        ),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(lens, x, w)
"""
WANTED = """\
7 src_ref vmem
8 src_ref vmem
15 lens_ref smem, x_ref vmem, w_ref hbm, o_ref vmem, acc_ref vmem, sem semaphore
16 buf vmem, inner_sem semaphore
17 w_ref hbm, buf vmem, inner_sem semaphore
18 acc_ref vmem, buf vmem
22 lens_ref smem
24 x_ref vmem
25 o_ref vmem, x_ref vmem, other vmem
26 o_ref vmem, x_ref vmem, lens_ref smem
"""


async def tokens(editor: Editor, uri: str, text: str) -> str:
    """The semantic tokens of a document, a line each, with the text that they cover."""
    found = await editor.client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document(uri)))
    options = editor.server.server_capabilities.semantic_tokens_provider
    modifiers = options.legend.token_modifiers if options is not None else ("vmem", "smem", "hbm", "tmem", "semaphore")
    reported: dict[int, list[str]] = {}
    lines, line, column = text.split("\n"), 0, 0
    data = list(found.data) if found is not None else []
    for down, right, length, kind, bits in zip(*(data[at::5] for at in range(5)), strict=True):
        line, column = line + down, right if down else column + right
        assert kind == 0
        name = lines[line].encode("utf-16-le")[2 * column : 2 * (column + length)].decode("utf-16-le")
        reported.setdefault(line + 1, []).append(f"{name} {modifiers[bits.bit_length() - 1]}")
    return "".join(f"{number} {', '.join(each)}\n" for number, each in reported.items())


async def painted(editor: Editor, uri: str) -> tuple[bool, list[tuple[int, int, str]]]:
    """Whether the document could be read, and what VS Code paints: line, column and memory of each name."""
    found = await editor.request("pallasLint/refs", {"uri": uri})
    places = found.places._asdict() if found.places else {}
    shown = ((line + 1, start, kind) for kind, each in places.items() for line, start, _ in each)
    return found.complete, sorted(shown)


async def test_every_name_of_a_ref_has_its_memory_and_other_names_have_none(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        assert await tokens(editor, uri, CODE) == WANTED


async def test_what_is_painted_has_the_same_places(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        complete, shown = await painted(editor, uri)
        assert await painted(editor, (tmp_path / "other.py").as_uri()) == (True, [])
    assert complete
    names = [(int(line.split()[0]), each.split()[-1]) for line in WANTED.splitlines() for each in line.split(", ")]
    assert [(line, kind) for line, _, kind in shown] == names


@pytest.mark.parametrize("commands", [[], ["pallasLint.showLayout"]])
async def test_tokens_are_left_to_others_where_only_one_may_answer(tmp_path: Path, commands: list[str]) -> None:
    async with session("pull", tmp_path, options={"clientCommands": commands}) as editor:
        offered = editor.server.server_capabilities.semantic_tokens_provider
    assert bool(offered) is not bool(commands)


async def test_edits_move_them(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        await tokens(editor, uri, CODE)
        text = CODE.replace("        other = x_ref\n", "        a, b = 0, '🟦'; other = x_ref\n").replace(
            "x_ref", "lhs_ref"
        )
        editor.change(uri, text)
        assert await tokens(editor, uri, text) == WANTED.replace("x_ref", "lhs_ref")
        text = text.replace("lens_ref, lhs_ref,", "lhs_ref, lens_ref,", 1)
        editor.change(uri, text)
        assert "15 lhs_ref smem, lens_ref vmem, " in await tokens(editor, uri, text)


@pytest.mark.parametrize("end", range(CODE.index("def kernel"), len(CODE), 37))
async def test_a_file_that_is_half_written_is_answered(tmp_path: Path, end: int) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE[:end] + CODE[CODE.index("def run") :])
        await tokens(editor, uri, CODE[:end] + CODE[CODE.index("def run") :])
        editor.change(uri, CODE[:end])
        await tokens(editor, uri, CODE[:end])
        editor.change(uri, CODE)
        assert await tokens(editor, uri, CODE) == WANTED
        assert not editor.messages


async def test_a_half_written_line_is_reported(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, f"{CODE}\n\n{TWO[TWO.index('def kernel') :].replace('kernel', 'other')}")
        complete, all_of_them = await painted(editor, uri)
        assert complete
        editor.change(
            uri, f"{CODE}\n\n{TWO[TWO.index('def kernel') :].replace('kernel', 'other').replace('= x_ref', '= (x_ref')}"
        )
        complete, those_elsewhere = await painted(editor, uri)
        assert not complete
        assert set(those_elsewhere) < set(all_of_them)


TWO = """\
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def near(x):
    return pl.pallas_call(kernel, out_shape=x)(x)


def far(x):
    return pl.pallas_call(kernel, out_shape=x, in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)])(x)
"""
GPU = """\
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def run(x):
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec((8, 128), lambda: (0, 0)), pl.BlockSpec(memory_space=plgpu.GMEM)],
        out_specs=pl.BlockSpec((8, 128), lambda: (0, 0)),
        out_shape=x,
        compiler_params=plgpu.CompilerParams(),
    )(x, x)
"""
BRANCHES = """\
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, y_ref, o_ref, acc_ref, sem):
    o_ref[...] = x_ref[...]


def other(x_ref, z_ref, o_ref, acc_ref, sem):
    o_ref[...] = x_ref[...]


def run(x, n, flag):
    if flag:
        body, spec, scratch = kernel, pl.BlockSpec((8, 128), lambda i: (i, 0)), pltpu.VMEM((8, 128), x.dtype)
        sem = pltpu.SemaphoreType.DMA
    else:
        body, spec, scratch = other, pl.BlockSpec((n, 128), lambda i: (0, i)), pltpu.VMEM((n, 128), x.dtype)
        sem = pltpu.SemaphoreType.DMA((2,))
    return pl.pallas_call(
        body,
        grid=(n,),
        in_specs=[spec, pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=[spec],
        out_shape=[x],
        scratch_shapes=[scratch, sem],
    )(x, x)
"""
_KERNELS = """\
6 x_ref vmem, y_ref hbm, o_ref vmem, acc_ref vmem, sem semaphore
7 o_ref vmem, x_ref vmem
10 x_ref vmem, z_ref hbm, o_ref vmem, acc_ref vmem, sem semaphore
11 o_ref vmem, x_ref vmem
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TWO, "6 o_ref vmem\n7 o_ref vmem\n"),  # not of `x_ref`: it is in one memory here, in another there
        (TWO.replace("pltpu.HBM", "chosen"), "6 o_ref vmem\n7 o_ref vmem\n"),
        (BRANCHES, _KERNELS),
        (BRANCHES.replace("pltpu.VMEM((n", "pltpu.SMEM((n"), _KERNELS.replace(", acc_ref vmem", "")),
        (
            BRANCHES.replace("pl.BlockSpec((n, 128), lambda i: (0, i))", "chosen"),
            "6 y_ref hbm, acc_ref vmem, sem semaphore\n10 z_ref hbm, acc_ref vmem, sem semaphore\n",
        ),
        (GPU, "6 x_ref smem, y_ref hbm, o_ref smem\n7 o_ref smem, x_ref smem, y_ref hbm\n"),
        (GPU.replace("mosaic_gpu", "triton").replace("memory_space=plgpu.GMEM", "(8, 128), lambda: (0, 0)"), ""),
    ],
    ids=[
        "two memories",
        "one of unknown memory",
        "branches that agree",
        "that do not",
        "of which one is not known",
        "a GPU's",
        "one without such memories",
    ],
)
async def test_only_certain_facts_are_shown(tmp_path: Path, text: str, wanted: str) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, text)
        assert await tokens(editor, uri, text) == wanted


async def test_a_cell_has_its_own(tmp_path: Path) -> None:
    imports, kernel = CODE.split("\n\n\n", 1)
    kernel, launch = kernel.split("\n\n\ndef run", 1)
    async with session("pull", tmp_path) as editor:
        cells = Cells(editor, tmp_path / "k.ipynb", imports, kernel, f"def run{launch}")
        shown = [
            await tokens(editor, uri, text) for uri, text in zip(cells.names, (imports, kernel, launch), strict=True)
        ]
        assert (await painted(editor, cells.names[1]))[1]
    up = CODE[: CODE.index("def scaled")].count("\n")
    moved = [line.split(" ", 1) for line in WANTED.splitlines()]
    assert shown == ["", "".join(f"{int(number) - up} {rest}\n" for number, rest in moved), ""]


async def test_the_hover_names_the_same_memory(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        found = await editor.client.text_document_hover_async(lsp.HoverParams(document(uri), lsp.Position(14, 22)))
    assert found is not None and isinstance(found.contents, lsp.MarkupContent)
    assert found.contents.value == "**`x_ref`**: input 0, block `[8, 128]` in VMEM"


async def test_an_object_that_has_refs_is_none(tmp_path: Path) -> None:
    """`self` in a helper that copies what it was made with, and the names of its refs themselves."""
    uri = (tmp_path / "k.py").as_uri()
    code = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


class Copies:
    def __init__(self, indices, source, sem):
        self.indices, self.source, self.sem = indices, source, sem

    def first(self):
        return self.source[self.indices[0]]


def kernel(indices_ref, x_ref, o_ref, sem):
    o_ref[...] = Copies(indices_ref, x_ref, sem).first()


def run(i, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(1,), in_specs=[pl.BlockSpec((8, 8, 128), lambda i, s: (0, 0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, s: (0, 0)), scratch_shapes=[pltpu.SemaphoreType.DMA],
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(i, x)
"""
    async with session("pull", tmp_path, options={"target": "tpu:v5e"}) as editor:
        editor.open(uri, code)
        found = await tokens(editor, uri, code)
    names = {each.split()[0] for line in found.splitlines() for each in line.split(" ", 1)[1].split(", ")}
    assert names == {"indices_ref", "x_ref", "o_ref", "sem"}
