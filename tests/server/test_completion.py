"""Completion inside calls of Pallas functions and in comments, in half-written text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pallas_lint.server.views.call_completion import completions
from pallas_lint.server.views.open_calls import items, surroundings
from pygls.workspace import PositionCodec

from pallas_lint.text.source import Source
from tests.sampling import examples
from tests.server.clients import applied, document, session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

IMPORTS = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
"""
KERNEL = """\

def kernel(x_ref, y_ref, o_ref, acc_ref):
    o_ref[...] = x_ref[...]

"""
LAUNCH = """\
def run(x, y, m, n, k):
    grid = (m // 128, n // 128, k // 128)
    return pl.pallas_call(
        kernel,
        {before}
        grid=grid,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        {after}
    )(x, y)
"""


def offered(text: str, version: str = "0.12.0.1", *, snippets: bool = False, imports: str = IMPORTS) -> dict[str, str]:
    """Label to the text with it, of what is offered where `|` stands; what stands behind the cursor stays as it is."""
    before, _, after = (imports + text).partition("|")
    source = Source("a.py", before + after)
    cursor = source.position(len(before))
    found = completions(source, cursor, version, PositionCodec("utf-16"), snippets=snippets)
    assert [each.sort_text for each in found] == sorted(each.sort_text or "" for each in found)
    return {each.label: applied(source.text, [each.text_edit])[len(imports) :] for each in found}


def in_launch(before: str = "", after: str = "") -> str:
    return KERNEL + LAUNCH.replace("{before}", before).replace("{after}", after)


@pytest.mark.parametrize("quote", ['"', "'"])
def test_dimension_semantics_in_the_midst_of_a_call(quote: str) -> None:
    typed = f"params = pltpu.CompilerParams(dimension_semantics=({quote}"
    found = offered(f"{typed}|")
    assert list(found)[:2] == ["parallel", "arbitrary"]
    assert found["parallel"] == f"{typed}parallel"
    assert offered(f"{typed}|{quote})")["arbitrary"] == f"{typed}arbitrary{quote})"  # an editor closes what one opens
    # Behind others, and without a quote yet.
    assert offered(f"{typed}parallel{quote}, |")['"arbitrary"'].endswith('"arbitrary"')
    assert "pltpu.PARALLEL" in offered("pltpu.CompilerParams(dimension_semantics=[pltpu.|])")
    # Of the jax in question.
    assert "core_parallel" in found
    assert "core_parallel" not in offered(f"{typed}|", "0.5.3")


def test_dimension_semantics_for_each_axis_of_the_grid() -> None:
    found = offered(in_launch(after="compiler_params=pltpu.CompilerParams(dimension_semantics=|),"))
    assert {'("parallel", "parallel", "parallel")', '("arbitrary", "arbitrary", "arbitrary")'} <= found.keys()


def test_index_maps_take_as_many_indices_as_the_grid_has_axes() -> None:
    whole = "lambda i, j, k: (i, j)"
    assert whole in offered(in_launch(before="in_specs=[pl.BlockSpec((128, 128), |"))
    assert whole in offered(in_launch(after="out_specs=pl.BlockSpec((128, 128), index_map=|),"))
    assert whole in offered(in_launch(before="in_specs=[pl.BlockSpec((128, 128), lam|), pl.BlockSpec((8, 8), f)],"))
    assert "lambda i, j, k: (i, j, k)" in offered(in_launch(before="in_specs=[pl.BlockSpec(block, |"))
    assert "lambda i: (i,)" in offered("pl.pallas_call(f, grid=(4,), in_specs=[pl.BlockSpec((8,), |")
    assert "lambda i: (i, 0)" in offered("pl.pallas_call(f, grid=4, in_specs=[pl.BlockSpec((8, 128), |)])")
    scalars = "num_scalar_prefetch=1, grid=(4, 4), in_specs=[pl.BlockSpec((8, 128), |"
    assert "lambda i, j, s0_ref: (i, j)" in offered(f"pltpu.PrefetchScalarGridSpec({scalars}")
    # Where the grid is not seen, or two are, nothing is guessed.
    assert not any("lambda" in each for each in offered("spec = pl.BlockSpec((8, 128), |"))
    two = (
        "def f():\n    pl.pallas_call(f, grid=(2,))\n    pl.pallas_call(f, grid=(2, 2))\n    s = pl.BlockSpec((8,), |\n"
    )
    assert not any("lambda" in each for each in offered(two))
    stops = offered(in_launch(before="in_specs=[pl.BlockSpec((128, 128), |"), snippets=True)[whole]
    assert "lambda i, j, k: (${1:i}, ${2:j})" in stops


def test_parameters_of_this_jax() -> None:
    found = offered(in_launch(before="in_specs=[], |"))
    assert next(iter(found)) == "out_shape="  # must be given
    assert "scratch_shapes=" in found
    assert not {"kernel=", "in_specs="} & found.keys()  # are given
    assert "use_tc_tiling_on_sc=" in offered("pltpu.CompilerParams(|)")
    assert "use_tc_tiling_on_sc=" not in offered("pltpu.CompilerParams(|)", "0.7.2")
    assert "vmem_limit_bytes=" in offered("pltpu.CompilerParams(dimension_semantics=('parallel',), vm|)")
    assert "dimension_semantics=" in offered("pltpu.TPUCompilerParams(|)", "0.4.35")
    assert "memory_space=" in offered("pl.BlockSpec((8, 128), lambda i, j: (i, j), |)")
    assert "pipeline_mode=" in offered("pl.BlockSpec((8, 128), lambda i, j: (i, j), |)")
    # As the file imports it, and in a function that imports it itself.
    assert "grid=" in offered("from jax.experimental.pallas import pallas_call as launch\nlaunch(kernel, |")
    own = "from jax.experimental.pallas import triton as plgpu\nplgpu.CompilerParams(|"
    assert offered(own).keys() == {"num_warps=", "num_stages="}
    local = "import jax\n\ndef f():\n    from jax.experimental.pallas import tpu as pltpu\n    pltpu.CompilerParams(|"
    assert "flags=" in offered(local, imports="")


def test_memory_spaces_under_the_names_of_the_file() -> None:
    found = offered("pl.BlockSpec(memory_space=|)")
    assert {"pltpu.VMEM", "pltpu.SMEM", "pl.ANY"} <= found.keys()
    assert not any(each.startswith("plgpu") for each in found)
    assert "pltpu.SMEM" in offered("pl.BlockSpec(memory_space=pltpu.S|)")
    scratch = offered("pl.pallas_call(kernel, scratch_shapes=[|", snippets=True)
    assert scratch["pltpu.VMEM"].endswith("[pltpu.VMEM((${1:8}, ${2:128}), ${3:jnp.float32})")
    assert "pltpu.SemaphoreType.DMA" in scratch


@pytest.mark.parametrize(
    "text",
    [
        "x = |", "jnp.zeros(|", "pl.pallas_call(kernel, grid=|)", "# pl.pallas_call(|", "'pl.pallas_call(|'",
        "pl.pallas_call(kernel, name='|')", "pl.pallas_call(f(|", "x = pl.pallas_call(\n\ndef f():\n    |",
        "pl.pallas_call(kernel, name=x.|)", "|",
    ],
)  # fmt: skip
def test_nothing_elsewhere(text: str) -> None:
    assert not offered(text)


def test_what_a_tuple_has() -> None:
    assert items("(a, b // (c, d)[0], )") == ["a", "b // (c, d)[0]"]
    assert items("[a") == ["a"]
    assert items("()") == []
    assert items("(a)") is items("(a,) * 2") is items("a") is None


@examples(200)
@given(st.text(alphabet="()[]{},='\"\\#:\n \tlambdf.é🟦", max_size=60), st.integers(0, 60))
def test_any_text_around_the_cursor_is_read(text: str, at: int) -> None:
    source = Source("a.py", text)
    cursor = source.position(min(at, len(text)))
    found = surroundings(source, cursor)
    assert found.text[: found.cursor] == found.before
    for bracket in found.brackets:
        cut = bracket.arguments(found.text)
        assert len(cut) == 1 or sum(len(each.text) for each in cut) < len(found.text)
    for bracket in found.around:
        assert bracket.end is None and bracket.start <= found.cursor


CODE = f"""{IMPORTS}
def kernel(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...])  # pallas-lint:|

def run(x):
    return pl.pallas_call(kernel, out_shape=x)(x)
"""


async def completed(editor: Editor, uri: str, text: str) -> list[lsp.CompletionItem]:
    before, _, after = text.partition("|")
    editor.open(uri, before + after)
    lines = before.split("\n")
    requested = lsp.CompletionParams(document(uri), lsp.Position(len(lines) - 1, len(lines[-1])))
    found = await editor.client.text_document_completion_async(requested)
    editor.close(uri)
    items = found if isinstance(found, (list, tuple)) else found.items if found else []
    return sorted(items, key=lambda each: each.sort_text or each.label)


@pytest.mark.asyncio
async def test_words_and_codes_of_comments(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={"target": "tpu:v5e"}) as editor:
        words = await completed(editor, uri, CODE)
        assert [each.label for each in words] == [
            "disable", "disable-next-line", "disable-file", "probe", "reference", "assume"
        ]  # fmt: skip
        assert words[0].text_edit.new_text == " disable="  # type: ignore[union-attr]
        spaced = await completed(editor, uri, CODE.replace("|", " dis|"))
        assert spaced[0].text_edit.new_text == "disable="  # type: ignore[union-attr]
        # The rules of findings on the line come first, wherever the comment stands.
        for comment in (
            CODE.replace("|", " disable=|"),
            CODE.replace("|", "").replace("    o_ref", "    # pallas-lint: disable=|\n    o_ref"),
            CODE.replace("|", "").replace("    o_ref", "    # pallas-lint: disable-next-line=|\n    o_ref"),
            "# pallas-lint: disable-file=|\n" + CODE.replace("|", ""),
        ):
            codes = [each.label for each in await completed(editor, uri, comment)]
            assert (codes[0], len(codes) > 50) == ("PAL101", True), comment
        assert not await completed(editor, uri, CODE.replace("# pallas-lint:|", "# pallas|"))
        # In code, of the jax of the project.
        typed = await completed(editor, uri, CODE.replace("|", "").replace("out_shape=x", "out_shape=x, compiler_|"))
        assert "compiler_params=" in [each.label for each in typed]


async def test_a_comment_that_is_being_typed_is_not_called_wrong(tmp_path: Path) -> None:
    text = f"{IMPORTS}{KERNEL}"
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path) as editor:
        editor.open(uri, text)
        seen = {}
        for typed in ("pallas-lint:", "pallas-lint: dis", "pallas-lint: disable=PAL", "pallas-lint: disable=PALX"):
            editor.change(uri, text.replace("as jnp", f"as jnp  # {typed}"))
            seen[typed.rpartition(" ")[2]] = [each.code for each in await editor.pulled(uri)]
        assert seen == {"pallas-lint:": [], "dis": [], "disable=PAL": [], "disable=PALX": ["PAL002"]}
        half = text.replace("as jnp", "as jnp  # pallas-lint: dis")
        editor.change(uri, half)
        assert not await editor.pulled(uri)
        editor.change(uri, f"{half}n = 1\n")  # it is left as it is
        assert [each.code for each in await editor.pulled(uri)] == ["PAL002"]
