"""Notebooks: one module of all code cells, and fixes that touch nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.finding import Edit, FileResult, Fix, Position, Span
from pallas_lint.lint import lint_source
from pallas_lint.notebooks.magics import masked
from pallas_lint.notebooks.notebook import Notebook
from pallas_lint.records import evolve
from pallas_lint.run import fixer
from pallas_lint.run.project import Project
from pallas_lint.text.source import Replacement, SourceError
from tests.sampling import examples

if TYPE_CHECKING:
    from pallas_lint.finding import Finding

IMPORTS = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu"""
KERNEL = """\
def kernel(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)"""
LAUNCH = """\
def run(x, n):
    spec = pl.BlockSpec((8, 128), lambda i: (i * 8, 0))
    return pl.pallas_call(
        kernel,
        grid=(n,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((8 * n, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)"""
SILENT = LAUNCH.replace("i * 8", "i")


def document(*sources: str | tuple[str, str], **metadata: Any) -> dict[str, Any]:
    """A notebook with these code cells; a pair is a cell's kind and source."""
    cells: list[dict[str, Any]] = []
    for number, source in enumerate(sources):
        kind, text = ("code", source) if isinstance(source, str) else source
        cell: dict[str, Any] = {"cell_type": kind, "id": f"c{number}", "metadata": {"z": 1, "a": 2}}
        if kind == "code":
            outputs = [{"name": "stdout", "output_type": "stream", "text": ["é 🟦 \x1b[31m\n"]}]
            cell |= {"execution_count": number, "outputs": outputs}
        cells.append({**cell, "source": text.splitlines(keepends=True)})
    language = {"language_info": {"name": "python"}, "kernelspec": {"name": "k", "display_name": "K"}}
    return {"nbformat_minor": 5, "nbformat": 4, "metadata": {**language, **metadata}, "cells": cells}


def notebook(*sources: str | tuple[str, str], **metadata: Any) -> Notebook:
    return Notebook.from_bytes(json.dumps(document(*sources, **metadata)).encode(), "n.ipynb")


def linted(source: Notebook) -> FileResult:
    nowhere = Path("/nonexistent")
    chosen = SettingsFinder(Overrides({"jax-version": "0.10.2"}, isolated=True), nowhere).for_folder(nowhere)
    result = lint_source(source, chosen, Project(nowhere))
    assert not result.errors, result.traceback
    return result


def places(source: Notebook) -> list[tuple[str, int | None, int]]:
    """Code, cell and line in the cell of each finding."""
    spans = [(finding.code, source.to_cell(finding.span)) for finding in linted(source).findings]
    return [(code, span.cell, span.start.line) for code, span in spans]


# -- what is judged ----------------------------------------------------------------------------------------------------


def test_cells_are_one_module_and_findings_name_their_cell() -> None:
    source = notebook(("markdown", "# pallas"), IMPORTS, KERNEL, ("raw", "x"), LAUNCH)
    assert places(source) == [("PAL101", 3, 2), ("PAL301", 5, 2)]
    cumsum, offset = linted(source).findings
    (launched, *_) = cumsum.related
    assert source.to_cell(launched.span) == Span("n.ipynb", Position(3, 12), Position(3, 26), 5)
    assert source.to_cell(offset.span).start == Position(2, LAUNCH.splitlines()[1].index("i * 8") + 1)


def test_a_kernel_may_stand_below_its_launch() -> None:
    assert places(notebook(IMPORTS, LAUNCH, KERNEL)) == [("PAL301", 2, 2), ("PAL101", 3, 2)]


def test_a_function_means_the_names_of_its_own_cell() -> None:
    good = KERNEL.replace("jnp.cumsum(x_ref[...], axis=1)", "x_ref[...]")
    again = f"{SILENT}\nrun(jnp.ones((8, 128)), 1)"
    assert places(notebook(IMPORTS, KERNEL, again, good, again)) == [("PAL101", 2, 2)]
    assert places(notebook(IMPORTS, good, again, KERNEL, again)) == [("PAL101", 4, 2)]


def test_names_bound_together_and_again_one_by_one() -> None:
    first = f"x, y = jnp.ones((16, 128)), jnp.ones((8, 128))\n{SILENT}"
    source = notebook(IMPORTS, first, KERNEL.replace("jnp.cumsum(x_ref[...], axis=1)", "x_ref[...]"), "\nrun(y, 2)")
    assert [finding.message.partition(", as ")[2] for finding in linted(source).findings] == ["in line 2 of cell 4"]
    again = notebook(*[cell.text for cell in source.cells[:3]], "x = jnp.ones((32, 128))", "y = x\nrun(y, 2)")
    assert places(again) == []


@pytest.mark.parametrize(
    "broken",
    [
        "def half(:\n    pass",
        'x = """',
        "f(1,\n  [2,",
        "else:\n    pass",
        "@jax.jit",
        "x = 1 \\",
        "x = )",
        "class A:\n  def f(self):\n    '''\n\ndef ok():\n    pass",
    ],
)
def test_a_broken_cell_costs_only_itself(broken: str) -> None:
    source = notebook(IMPORTS, broken, KERNEL, SILENT)
    found = places(source)
    assert ("PAL101", 3, 2) in found
    assert {(code, cell) for code, cell, _ in found} <= {("PAL101", 3), ("PAL001", 2)}
    assert ("PAL001", 2) in {(code, cell) for code, cell, _ in found} or broken.endswith(("\\", "jit"))


def test_the_rest_of_a_broken_cell_is_judged() -> None:
    assert places(notebook(IMPORTS, f"def half(:\n    pass\n\n{KERNEL}", SILENT)) == [
        ("PAL001", 2, 1),
        ("PAL101", 2, 5),
    ]


def test_an_indented_cell_runs_as_ipython_runs_it() -> None:
    indented = "\n".join(f"    {line}" for line in KERNEL.splitlines())
    assert places(notebook(IMPORTS, "def f():\n    pass", indented, SILENT)) == [("PAL101", 3, 2)]


def test_await_at_the_top() -> None:
    assert places(notebook(IMPORTS, f"import asyncio\nawait asyncio.sleep(0)\n{KERNEL}", SILENT)) == [("PAL101", 2, 4)]


def test_cells_that_begin_with_a_byte_order_mark() -> None:
    marked = ["\ufeff" + text for text in (IMPORTS, KERNEL, LAUNCH)]
    assert places(notebook(*marked)) == places(notebook(IMPORTS, KERNEL, LAUNCH)) != []


def test_a_cell_that_ends_in_a_carriage_return() -> None:
    assert places(notebook(IMPORTS + "\r", KERNEL.replace("\n", "\r\n") + "\r", SILENT)) == [("PAL101", 2, 2)]


@pytest.mark.parametrize("language", ["R", "julia"])
def test_other_kernels_are_noted_and_left_alone(language: str) -> None:
    source = notebook(IMPORTS, KERNEL, LAUNCH, language_info={"name": language})
    assert source.note == f"n.ipynb: a notebook in {language}, not linted"
    assert places(source) == []


def test_cells_in_another_language_are_left_alone() -> None:
    content = document(IMPORTS, KERNEL, "%%bash\necho pallas (", SILENT)
    content["cells"].append(
        {"cell_type": "code", "metadata": {"vscode": {"languageId": "shellscript"}}, "source": "x ("}
    )
    source = Notebook.from_bytes(json.dumps(content).encode(), "n.ipynb")
    assert places(source) == [("PAL101", 2, 2)]


# -- magics ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%matplotlib inline\nx = 1", "__________________\nx = 1"),
        ("!pip install \\\n  jax\nx", "______________\n     \nx"),
        ("!!ls", "____"),
        ("x = !ls\ny", "x = ___\ny"),
        ("x = %pwd  # y\nz", "x = _________\nz"),
        ("%time y = f(x)", "_____;y = f(x)"),
        ("%timeit -n 10 -r3 f(x)", "_________________;f(x)"),
        ("%time for i in x: f(i)", "______________________"),
        ("%timeit", "_______"),
        ("%%time\nf(x)", "      \nf(x)"),
        ("\n%%capture out\n%cd x\nf(x)", "\n             \n_____\nf(x)"),
        ("%%bash\nls (", "      \n    "),
        ("%%writefile k.py\nx = 1\r\n", "                \n     \r\n"),
        ("jnp.sort?\nx", "_________\nx"),
        ("?jnp.sort\n??x", "_________\n___"),
        ("%timeit??", "_________"),
        (",f a b\n;f a\n/f x", "______\n____\n____"),
        ("if x:\n    !ls\n    y = 1", "if x:\n    ___\n    y = 1"),
        # Python, whatever it looks like
        ("x = (a\n  % b)", "x = (a\n  % b)"),
        ("x = a \\\n  % b", "x = a \\\n  % b"),
        ('"""\n%matplotlib\n!ls\n"""', '"""\n%matplotlib\n!ls\n"""'),
        ("'''a\\'''\n!ls'''\n", "'''a\\'''\n!ls'''\n"),
        ("f'a' # why?\n", "f'a' # why?\n"),
        ("x %= 2; y != 3; z = '= !ls'", "x %= 2; y != 3; z = '= !ls'"),
        ("f(a=1,\n  b=2)\n%x", "f(a=1,\n  b=2)\n__"),
        ("async def f():\n  await g()\n", "async def f():\n  await g()\n"),
    ],
)
def test_magics_are_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


CELL_TEXT = st.text(alphabet="%!?=;/()[]'\"\\\n\r #ax=1é🟦", max_size=60)


@given(CELL_TEXT)
def test_masks_keep_every_place(text: str) -> None:
    result = masked(text)
    assert len(result) == len(text)
    assert [at for at, each in enumerate(result) if each in "\r\n"] == [
        at for at, each in enumerate(text) if each in "\r\n"
    ]


@settings(deadline=None)
@given(st.lists(CELL_TEXT, max_size=4))
def test_any_text_can_be_in_a_cell(texts: list[str]) -> None:
    source = Notebook.of("n.ipynb", enumerate(["import pallas", *texts], start=1))
    for cell in source.cells:
        assert source.position(cell.start) == Position(cell.first, 1)
        assert len(source.text[cell.start : cell.end]) == len(cell.text)
    linted(source)


def test_what_a_magic_gives_is_not_known() -> None:
    text = SILENT.replace("def run(x, n):", "n = !nproc\ndef run(x):").replace("lambda i: (i, 0)", "lambda i: (i, n)")
    assert places(notebook(IMPORTS, KERNEL, text)) == [("PAL101", 2, 2)]


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"", "not valid JSON", 1),
        (b'{\n "cells": [,]}', "not valid JSON", 2),
        (b'{\n\n "\xff": 1}', "not valid utf-8", 3),
        (b"[]", "not a notebook", None),
        (b"{}", "no `nbformat`", None),
        (b'{"nbformat": 3, "worksheets": []}', "old format 3", None),
        (b'{"nbformat": 5, "cells": []}', "format 5", None),
        (b'{"nbformat": 4}', "no list of `cells`", None),
        (b'{"nbformat": 4, "cells": [7]}', "cell 1 of the notebook is not an object", None),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}', "source of cell 1", None),
        (b"[" * 100_000, "nested too deeply", None),
    ],
)
def test_an_invalid_notebook_has_a_reason_and_a_place(data: bytes, message: str, line: int | None) -> None:
    with pytest.raises(SourceError) as caught:
        Notebook.from_bytes(data, "n.ipynb")
    assert message in caught.value.message
    assert caught.value.line == line


def test_a_notebook_without_metadata_or_cells() -> None:
    assert places(Notebook.from_bytes(b'{"nbformat": 4, "cells": []}', "n.ipynb")) == []
    assert (
        places(Notebook.from_bytes(b'\xef\xbb\xbf{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "n.ipynb")) == []
    )


# -- writing -----------------------------------------------------------------------------------------------------------

JSON_STYLES = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 1, 2, "\t"]),
        "ensure_ascii": st.booleans(),
        "sort_keys": st.booleans(),
    }
)


def dumped(content: dict[str, Any], style: dict[str, Any], end: str, as_text: bool) -> bytes:
    content = copy.deepcopy(content)
    if as_text:
        for cell in content["cells"]:
            cell["source"] = "".join(cell["source"])
    return (json.dumps(content, **style) + end).encode()


@examples(30)
@given(JSON_STYLES, st.sampled_from(["", "\n", "\r\n"]), st.booleans())
def test_fixes_change_the_source_of_their_cell_and_nothing_else(style: dict[str, Any], end: str, as_text: bool) -> None:
    content = document(("markdown", "# é"), IMPORTS, f"# é 日本\n{KERNEL}", f"print('é')\n{LAUNCH}\n")
    data = dumped(content, style, end, as_text)
    source = Notebook.from_bytes(data, "n.ipynb")
    assert source.data == data
    assert source.edited([]).data == data
    fixed = fixed_source(source)
    content["cells"][3]["source"] = f"print('é')\n{SILENT}\n".splitlines(keepends=True)
    assert fixed.data == dumped(content, style, end, as_text)
    nbformat.validate(json.loads(fixed.data))


def fixed_source(source: Notebook, findings: list[Finding] | None = None) -> Notebook:
    found = list(linted(source).findings) if findings is None else findings

    def relint(sources: Any, _: frozenset[str]) -> list[Finding]:
        return list(linted(sources[source.path]).findings) if findings is None else []

    outcome = fixer.fix({source.path: source}, found, relint)
    assert not outcome.problems
    result = outcome.sources[source.path]
    assert isinstance(result, Notebook)
    return result


@given(
    st.lists(st.text(alphabet='ab é🟦\\"\n\r\u2028\ud800\x0c', max_size=20), min_size=1, max_size=4),
    st.data(),
    JSON_STYLES,
    st.booleans(),
)
def test_any_edit_can_be_written_back(
    texts: list[str], data: st.DataObject, style: dict[str, Any], as_text: bool
) -> None:
    content = document(*texts)
    source = Notebook.from_bytes(dumped(content, {**style, "ensure_ascii": True}, "\n", as_text), "n.ipynb")
    number = data.draw(st.integers(0, len(texts) - 1))
    text = texts[number]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(st.sampled_from(["", "x", "é\n", "\n\n", "a\nb"]))
    base = source.cells[number].start
    after = json.loads(source.edited([Replacement(base + start, base + end, new)]).data)
    assert "".join(after["cells"][number]["source"]) == text[:start] + new + text[end:]
    content["cells"][number]["source"] = after["cells"][number]["source"]
    if as_text:
        for cell in content["cells"]:
            cell["source"] = "".join(cell["source"])
    assert after == content


def test_lines_that_stay_keep_their_bytes() -> None:
    raw = json.dumps(document(IMPORTS, KERNEL, LAUNCH), indent=1)
    odd = raw.replace('"def run(x, n):\\n"', '"\\u0064ef run(x, n):\\n"')
    assert odd != raw
    fixed = fixed_source(Notebook.from_bytes(odd.encode(), "n.ipynb")).data.decode()
    assert fixed == odd.replace("i * 8", "i")


def edit(source: Notebook, start: tuple[int, int], end: tuple[int, int], text: str) -> Notebook | None:
    """The notebook with an edit at places in its text; None where it is refused."""
    (finding, *_) = linted(notebook(IMPORTS, KERNEL, LAUNCH)).findings
    span = Span("n.ipynb", Position(*start), Position(*end))
    settled = source.with_cell_positions(_with(finding, Fix("t", "safe", (Edit(span, text),))))
    return fixed_source(source, [settled]) if settled.fixes else None


def _with(finding: Finding, fix: Fix) -> Finding:
    return evolve(finding, fixes=(fix,))


def texts(source: Notebook | None) -> list[str] | None:
    return None if source is None else [cell.text for cell in source.cells]


def test_edits_stay_in_their_cell() -> None:
    # Line 1 is ours, `a` is line 2, `b` 3, 4 is ours, `%m` 5, `c` 6, bash 8 and 9, `%%time` 11, `d` 12.
    source = notebook("a\nb", "%m\nc", "%%bash\nls", "%%time\nd")
    assert texts(edit(source, (1, 1), (1, 1), "x\n")) == ["x\na\nb", "%m\nc", "%%bash\nls", "%%time\nd"]
    assert texts(edit(source, (4, 1), (4, 1), "x\n")) == ["a\nb\nx", "%m\nc", "%%bash\nls", "%%time\nd"]
    assert texts(edit(source, (3, 1), (4, 1), "")) == ["a", "%m\nc", "%%bash\nls", "%%time\nd"]
    assert texts(edit(source, (3, 1), (4, 1), "x\n")) == ["a\nx", "%m\nc", "%%bash\nls", "%%time\nd"]
    assert texts(edit(source, (5, 1), (5, 1), "x\n")) == ["a\nb", "x\n%m\nc", "%%bash\nls", "%%time\nd"]
    assert texts(edit(source, (12, 1), (12, 2), "e")) == ["a\nb", "%m\nc", "%%bash\nls", "%%time\ne"]
    assert texts(edit(source, (13, 1), (13, 1), "x\n")) == ["a\nb", "%m\nc", "%%bash\nls", "%%time\nd\nx"]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ((3, 1), (5, 1)),
        ((5, 1), (5, 3)),
        ((5, 2), (6, 1)),
        ((8, 1), (8, 1)),
        ((9, 1), (9, 2)),
        ((10, 1), (10, 1)),
        ((11, 1), (11, 1)),
    ],
)
def test_edits_of_two_cells_or_of_what_is_no_python_are_refused(start: tuple[int, int], end: tuple[int, int]) -> None:
    source = notebook("a\nb", "%m\nc", "%%bash\nls", "%%time\nd")
    assert edit(source, start, end, "x\n") is None


def test_a_new_import_goes_to_the_imports() -> None:
    code = KERNEL.replace("jnp.cumsum(x_ref[...], axis=1)", "x_ref[...]")
    launch = LAUNCH.replace("pltpu.CompilerParams()", "pltpu.TPUCompilerParams()")
    source = notebook(
        "from jax.experimental import pallas as pl\nimport jax, jax.numpy as jnp\n" + IMPORTS, code, launch
    )
    fixed = fixed_source(source)
    assert fixed.cells[2].text == SILENT
    assert fixed.cells[1].text == code


# -- suppressions ------------------------------------------------------------------------------------------------------


def test_suppressions_of_a_line_a_statement_and_the_notebook() -> None:
    line = KERNEL + "  # pallas-lint: disable=PAL101"
    assert places(notebook(IMPORTS, line, SILENT)) == []
    assert places(notebook("# pallas-lint: disable-file=PAL101", IMPORTS, KERNEL, SILENT)) == []
    assert places(notebook("%%time\n# pallas-lint: disable-file=PAL101\n" + IMPORTS, KERNEL, SILENT)) == []
    late = places(notebook(IMPORTS, "# pallas-lint: disable-file=PAL101", KERNEL, SILENT))
    assert late == [("PAL002", 2, 1), ("PAL101", 3, 2)]


def test_a_comment_at_the_end_of_a_cell_does_not_affect_the_next() -> None:
    source = notebook(
        IMPORTS + "\n# pallas-lint: disable=PAL101",
        KERNEL.splitlines()[0] + " o_ref[...] = jnp.cumsum(x_ref[...], axis=1)",
        SILENT,
    )
    assert places(source) == [("PAL002", 1, 5), ("PAL101", 2, 1)]
    assert fixed_source(source).cells[0].text == IMPORTS


def test_what_is_used_in_a_broken_cell_stays_imported() -> None:
    source = notebook(IMPORTS, KERNEL, LAUNCH.replace("i * 8", "i"), "def half(:\n    pltpu")
    assert fixed_source(source).data == source.data
