"""Incremental analysis: an edited text gives the same findings as an analysis from scratch."""

from __future__ import annotations

import gc
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.texts import composed
from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.kernels.analysis.runs import Abandoned
from pallas_lint.kernels.interpreter.modules import Module
from pallas_lint.lint import check_file
from pallas_lint.memo.query_cache import CacheEntry
from pallas_lint.run.project import Project
from pallas_lint.syntax import outline
from pallas_lint.syntax.descent import walk
from pallas_lint.syntax.piece import Piece
from pallas_lint.text.source import Source
from tests.sampling import by_day, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import FileResult, Span
    from pallas_lint.lint import FileAnalysis
    from pallas_lint.syntax import Outline

ROOT = Path(__file__).resolve().parent.parent
FILE = Path("/nonexistent/edited.py")


def chosen(*rules: str) -> Settings:
    overrides = Overrides({"select": list(rules), "jax-version": "0.10.2"}, isolated=True)
    return SettingsFinder(overrides, Path("/nonexistent")).for_folder(Path("/nonexistent"))


CHOSEN = chosen("ALL")
# What the top level makes is used by several launches, and found through a block and a name that is bound twice too.
SHARED = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

try:
    rows = 96 // jax.device_count()
except RuntimeError:
    rows = 96
spec = pl.BlockSpec((rows, 100), lambda i: (i,))
whole = pl.BlockSpec(memory_space=pl.ANY)
pair = spec, whole
out = jax.ShapeDtypeStruct((960, 100), jnp.float32)


def copy_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def first(x):
    return pl.pallas_call(copy_kernel, out, grid=(10,), in_specs=[spec], out_specs=spec)(x)


def second(x):
    return pl.pallas_call(copy_kernel, out, grid=(10,), in_specs=[pair[0]], out_specs=pair[0])(x)


def third(x):
    return pl.pallas_call(copy_kernel, out, in_specs=[whole], out_specs=whole)(x)


spec = pl.BlockSpec((7, 100), lambda i, j: (i, 0))


def fourth(x):
    return jax.grad(pl.pallas_call(copy_kernel, out, grid=(10,), in_specs=[spec], out_specs=spec))(x)
"""
TEXTS = [*(file.read_text() for file in sorted((ROOT / "examples").glob("*.py"))), composed(120), SHARED]
# Typed somewhere: what starts, ends or changes statements, names and numbers.
TYPED = (
    "(",
    ")",
    "[",
    "}",
    "'",
    "\\",
    ":",
    "\n",
    "\n\n",
    "    ",
    "x",
    "128",
    "1",
    " = ",
    "#",
    '"""',
    "pl.",
    "del ",
    "jnp.sum(x_ref[...])",
)


def judged(text: str, project: Project, settings: Settings = CHOSEN) -> FileAnalysis:
    source = Source(FILE.as_posix(), text)
    project.overlay = {FILE: source}
    return check_file(source, settings, project)


def result(text: str, project: Project) -> FileResult:
    return judged(text, project).result


@lru_cache(64)  # several tests come back to a text by edits that are taken back
def from_scratch(text: str) -> FileResult:
    return result(text, Project(Path("/nonexistent")))


def runs(text: str, project: Project) -> tuple[int, int]:
    """The number of runs for the text, and of those taken from the cache."""
    analysis = judged(text, project).analysis
    assert analysis is not None
    return analysis.runs.made, analysis.runs.reused


def reported(found: FileResult) -> tuple[object, ...]:
    return found.findings, found.errors, found.kernels, found.used_suppressions


# Lines that come, go or take the place of others among a file's imports; some bind names that the files use.
IMPORTS = (
    "import os",
    "import jax",
    "import numpy as np",
    "import numpy as jnp",
    "import jax.numpy as jnp",
    "import jax.numpy",
    "import functools",
    "from functools import partial",
    "from jax import lax",
    "from jax import numpy as jnp, lax as rows",
    "from jax.experimental import pallas as pl",
    "from jax.experimental import pallas",
    "from jax.experimental.pallas import tpu as pltpu",
    "from jax.experimental.pallas import tpu",
    "from jax.experimental.pallas import triton as plgpu",
    "from jax.experimental.pallas import triton as pltpu",
    "from jax.experimental.pallas import *",
    "from other import rows, spec",
    "from .other import copy_kernel",
    "try:\n    from jax.experimental.pallas import tpu as pltpu\nexcept ImportError:\n    pltpu = None",
    "if True:\n    import jax.numpy as jnp",
)


@st.composite
def imported(draw: st.DrawFn, lines: list[str]) -> list[str]:
    """The lines with another import, one less, or another one in the place of one, at the top or in a function."""
    imports = [at for at, line in enumerate(lines) if line.lstrip().startswith(("import ", "from "))] or [0]
    at, new = draw(st.sampled_from(imports)), draw(st.sampled_from(IMPORTS))
    inside = [at for at, line in enumerate(lines) if line.startswith("    ") and "import" not in line]
    if inside and draw(st.integers(0, 5)) == 0:
        at = draw(st.sampled_from(inside))
        return [*lines[:at], *(f"    {line}" for line in new.split("\n")), *lines[at:]]
    before, after = draw(st.sampled_from([(at, at), (at, at + 1), (at + 1, at + 1)]))
    kept = new.split("\n") if before == after or draw(st.booleans()) else []
    return [*lines[:before], *kept, *lines[after:]]


@st.composite
def sequences(draw: st.DrawFn, of: Sequence[str] = TEXTS) -> list[str]:
    """One of some texts and what a few edits make of it, one after the other; some are taken back."""
    texts = [draw(st.sampled_from(of))]
    for _ in range(draw(st.integers(1, 6))):
        lines = texts[-1].split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(
            st.sampled_from(
                ["type", "erase", "drop", "double", "move", "indent", "join", "space", "end", "back", "all", "import"]
            )
        )
        if kind == "type":
            column = draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:column] + draw(st.sampled_from(TYPED)) + lines[at][column:]
        elif kind == "erase":
            column = draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:column] + lines[at][column + 1 :]
        elif kind == "drop":
            del lines[at : at + draw(st.integers(1, 12))]
        elif kind == "double":
            lines[at:at] = lines[at : at + draw(st.integers(1, 12))]
        elif kind == "move":
            block = lines[at : at + 12]
            del lines[at : at + 12]
            lines[0:0] = block
        elif kind == "indent":
            shift, end = draw(st.sampled_from([-4, -2, -1, 1, 2, 4])), at + draw(st.integers(1, 12))
            lines[at:end] = [" " * shift + line if shift > 0 else _dedented(line, -shift) for line in lines[at:end]]
        elif kind == "space":
            lines[at:at] = draw(st.sampled_from([[""], ["", "    "], ["# typed"], ["    # typed", ""]]))
        elif kind == "end":
            lines[at] = lines[at].rstrip() if lines[at] != lines[at].rstrip() else f"{lines[at]}  "
        elif kind == "join":
            lines[at : at + 2] = [draw(st.sampled_from(["", " ", "\\", " \\\n\n"])).join(lines[at : at + 2])]
        elif kind == "import":
            lines = draw(imported(lines))
        elif kind == "all":  # the whole text at once: edits all over it
            every = draw(st.integers(2, 40))
            lines = [f" {line}" if number % every == at % every else line for number, line in enumerate(lines)]
        texts.append(draw(st.sampled_from(texts)) if kind == "back" else "\n".join(lines))
    return texts


def _dedented(line: str, most: int) -> str:
    return line[min(most, len(line) - len(line.lstrip())) :]


@examples(40)
@given(sequences())
def test_edits_give_the_findings_from_scratch(texts: list[str]) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    for text in texts:
        assert reported(result(text, project)) == reported(from_scratch(text))


# Words that something looks for in the whole text of a file, or of a piece.
COMMENTS = (
    "# typed",
    "# x_ref, o_ref[...], kernel",
    "# pl.pallas_call(",
    "# jax.grad(",
    "# pallas-lint: disable=all",
    "# pallas-lint: assume n=128",
    "# pallas-lint: probe(f32[8])",
    "# jaxtyping",
    "# checkify, runtime_assert, debug_checks",
    "# pltpu.CompilerParams(auto_assign_collective_ids=True)",
)


@st.composite
def commented(draw: st.DrawFn) -> list[str]:
    """A text, and what it becomes while comments are written, changed and removed in it, and code now and then."""
    texts = [draw(st.sampled_from(TEXTS))]
    for _ in range(draw(st.integers(1, 6))):
        lines = texts[-1].split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        code, comment = lines[at].partition("  # ")[0], draw(st.sampled_from(["", *COMMENTS]))
        if draw(st.integers(0, 3)) == 0:
            code += draw(st.sampled_from([" + 1", "(", '"', "  "]))
        lines[at] = f"{code}  {comment}" if comment else code
        texts.append("\n".join(lines))
    return texts


@pytest.mark.slow
@examples(60)
@given(commented())
def test_comments_give_the_findings_from_scratch(texts: list[str]) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    for text in texts:
        assert reported(result(text, project)) == reported(from_scratch(text))


def test_a_comment_repeats_the_analysis() -> None:
    project, text = Project(Path("/nonexistent"), incremental=True), composed(120)
    before = judged(text, project)
    commented = text.replace("\n    o_ref[...] = ", "\n    # typed\n    o_ref[...] = ", 1)
    assert judged(text.replace("\n", "  # typed\n", 1), project).analysis is before.analysis
    assert judged(text, project).analysis is before.analysis
    assert judged(commented, project).analysis is not before.analysis  # calls in scripts are named by their line
    assert judged(text.replace("8", "16"), project).analysis is not before.analysis


def test_other_settings_after_a_repeated_analysis() -> None:
    project, text, other = Project(Path("/nonexistent"), incremental=True), composed(120), chosen("PAL4")
    wanted = {
        settings: judged(text, Project(Path("/nonexistent")), settings).result.findings for settings in (CHOSEN, other)
    }
    assert wanted[CHOSEN] != wanted[other]
    for settings in (other, other, CHOSEN, CHOSEN, other, CHOSEN):
        assert judged(text, project, settings).result.findings == wanted[settings]


# What tree-sitter takes for Python, and Python does not: only reading such a statement shows it.
LENIENT = (
    ("x = 1\n\nif __name__:\n    x\n", "x = 1\n  if __name__:\n    x\n"),
    ("x = 1\n\nprint(x)\n", "x = 1\n\nprint x\n"),
    ("if x:\n    y\n", "if x:\n"),
    ("def f(a): pass\n", "def f((a, b)): pass\n"),
    ("x = 0\n", "x = 0777\n"),
    ("x = 1\n", "x = 1 \\\n"),
    (f"class A:\n{'    # long' * 50}\n    x = 1\n", f"class A:\n{'    # long' * 50}\n    x = 1L\n"),
)


@pytest.mark.parametrize(("right", "wrong"), LENIENT)
def test_errors_in_unused_statements_are_reported(right: str, wrong: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    for text, codes in ((right, []), (wrong, ["PAL001"]), (right, []), (wrong, ["PAL001"])):
        edited = f"from jax.experimental import pallas as pl\n\n{text}"
        for found in (result(edited, project), from_scratch(edited)):
            assert [each.code for each in found.findings] == codes


@pytest.mark.parametrize("before", ["y = 0\n", "x = (\n", "class A:\n" + "    # long\n" * 50 + "    y = 1\n"])
@pytest.mark.parametrize("more", ["    \n", "\n", "", "# a comment\n"])
def test_a_line_continued_by_a_blank_one_is_whole(before: str, more: str) -> None:
    text = "import pallas\n" + before.replace("(", "1").rstrip("\n") + f" \\\n{more}\ny = 2\n"
    project = Project(Path("/nonexistent"), incremental=True)
    assert [reported(result(each, project)) for each in (before, text)][1] == reported(from_scratch(text))
    assert not from_scratch(text).findings


def test_a_backslash_in_a_broken_file() -> None:
    """tree-sitter has other nodes for it after an edit than from scratch."""
    text = 'import pallas as pl\\\n\n """A."""\n    return pl.pallas_call(\n         in_specs=[\n        ],\n    )(a)\n'
    project = Project(Path("/nonexistent"), incremental=True)
    result("    return pl.pallas_call(\n", project)
    assert reported(result(text, project)) == reported(from_scratch(text))


def test_what_joins_a_broken_statement_is_in_its_text() -> None:
    before = "def f(a, b):\n     m, k = a\n    _, n = b\n     return pl.run(\n        k,\n     )(a, b)\n"
    project = Project(Path("/nonexistent"), incremental=True)
    for text in (before, before.replace("    _, n", ":    _, n")):
        source = Source(FILE.as_posix(), text)
        assert pieces(project.graph().add(source, FILE).outline) == pieces(outline(source))


METHODS = "".join(f"    @case({n})\n    def test_{n}(self):\n        run({n})\n\n" for n in range(12))
CLASSES = "\n".join(f"class Test{n}(Case):\n{METHODS}" for n in range(3))


def pieces(found: Outline) -> list[tuple[object, ...]]:
    return [
        (piece.first, piece.last, piece.kind, piece.names, piece.text, len(piece.members), piece.suspect, piece.in_tree)
        for piece in found.walk()
    ]


@examples(100)
@given(sequences((*TEXTS, CLASSES, CLASSES)))
def test_the_outline_is_that_of_the_text(texts: list[str]) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    for text in (*texts, f"{texts[-1]}\n\ndef f(:\n  pass\n", f"# é\n\n{texts[-1]}", texts[0]):
        source = Source(FILE.as_posix(), text)
        found, fresh = project.graph().add(source, FILE).outline, outline(source)
        assert pieces(found) == pieces(fresh)
        assert str(found.tree.root_node) == str(fresh.tree.root_node)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "edited",
    [
        pytest.param(
            CLASSES.replace("\n    @case(5)\n    def test_5(self):\n        run(5)\n", "", 1), id="a method less"
        ),
        pytest.param(CLASSES.replace("(Case)", "(Case2)", 1) + CLASSES, id="a class that went comes twice"),
        pytest.param(f"{METHODS}\n{CLASSES}", id="what stood in a class stands alone"),
    ],
)
def test_equal_statements_are_distinguished(edited: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    for text in (CLASSES, edited, CLASSES.replace("Test1(", "Test1((", 1), CLASSES, edited):
        source = Source(FILE.as_posix(), text)
        assert pieces(project.graph().add(source, FILE).outline) == pieces(outline(source))


def test_an_edit_in_one_kernel_reruns_only_its_roots() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(120)
    every, _ = runs(text, project)
    assert every > 5
    made, again = runs(text.replace("\n    o_ref[...]", "\n    n = 1\n    o_ref[...]", 1), project)
    assert 0 < made <= 2
    assert made + again == every


def test_names_in_comments_are_no_dependencies() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = (
        SHARED.replace("def second(x):\n", "def second(x):\n    # unlike helper\n", 1)
        + "\n\ndef helper():\n    return 1\n"
    )
    every, _ = runs(text, project)
    assert runs(text.replace("return 1", "return 2"), project) == (0, every)


COMMENTS = ("  # typed", "  # é ü", "  # typed")


@pytest.mark.parametrize("line", ["import jax\n", "    o_ref[...] = x_ref[...]\n", "def copy_kernel(x_ref, o_ref):\n"])
def test_a_comment_reruns_nothing(line: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    every, _ = runs(SHARED, project)
    for comment in COMMENTS:
        assert runs(SHARED.replace(line, f"{line[:-1]}{comment}\n", 1), project) == (0, every)
    assert runs(SHARED, project) == (0, every)


@pytest.mark.parametrize("text", by_day(TEXTS))
def test_comments_leave_verdicts_and_places(text: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    judged(text, project)
    lines = text.split("\n")
    for number in range(0, len(lines), 1 + len(lines) // 5):
        for comment in (*COMMENTS[:2], ""):
            edited = "\n".join((*lines[:number], lines[number] + comment, *lines[number + 1 :]))
            found = judged(edited, project)
            assert reported(found.result) == reported(from_scratch(edited))
            if found.analysis is not None:
                assert places(found.analysis.module.outline) == places(outline(Source(FILE.as_posix(), edited)))


# Lines that are silent, at the indentation of the line below, and what is typed behind a line.
SPACES = ("\n", "    \n", "\n\n\n", "# typed\n", "\n    # é\n")


@pytest.mark.parametrize(
    "line", ["    o_ref[...] = x_ref[...]\n", "    return pl.pallas_call(copy_kernel, out, in_specs"]
)
def test_a_blank_line_reruns_nothing(line: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    every, _ = runs(SHARED, project)
    for more in SPACES:
        assert runs(SHARED.replace(line, f"{more}{line}", 1), project) == (0, every)
    assert runs(SHARED.replace(line, f"{line[:-1]} \n", 1), project)[0] in (0, 1)  # where the line ends there
    assert runs(SHARED, project) == (0, every)


def test_letters_that_are_taken_back_leave_the_runs_of_before() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    runs(SHARED, project)
    made = []
    for typed in ("    \n", "    n\n", "    n \n", "    n = 2\n", "    n = 2 \n", "    \n", ""):
        edited = SHARED.replace("    o_ref[...] = x", f"{typed}    o_ref[...] = x", 1)
        made.append(runs(edited, project)[0] > 0)
    assert made == [False, True, False, True, False, False, False]


def test_code_that_stays_broken_reruns_nothing() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    made = []
    for typed in ("n = (", "n = ( ", "n = (1", "n = (1,"):
        edited = SHARED.replace("    o_ref[...] = x", f"    {typed}\n    o_ref[...] = x", 1)
        made.append(runs(edited, project)[0] > 0)
        assert reported(result(edited, project)) == reported(from_scratch(edited))
    assert made == [True, False, False, False]


@pytest.mark.slow
@pytest.mark.parametrize("text", by_day(TEXTS))
def test_blank_lines_leave_verdicts_and_places(text: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    judged(text, project)
    lines = text.split("\n")
    for number in range(0, len(lines), 1 + len(lines) // 5):
        for more in (["", "  "], ["# typed"], [lines[number] + "  ", ""], []):
            edited = "\n".join((*lines[:number], *more, *lines[number + bool("".join(more).strip(" #typed")) :]))
            found = judged(edited, project)
            assert reported(found.result) == reported(from_scratch(edited))
            if found.analysis is not None:
                assert places(found.analysis.module.outline) == places(outline(Source(FILE.as_posix(), edited)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('    """A.\n    B."""\n', '    """A.\n\n    B."""\n', id="a line in a string"),
        pytest.param('    s = """A \n"""\n', '    s = """A\n"""\n', id="a space in a string"),
        pytest.param("    f(1,\n    2)\n", "    f(1,\n\n    2)\n", id="a line in an expression"),
        pytest.param("    x = 1 \\\n    + 2\n", "    x = 1 \\\n\n    + 2\n", id="a line that a backslash joins"),
        pytest.param("    x = 1 \\\n    + 2\n", "    x = 1 \\ \n    + 2\n", id="a space behind a backslash"),
    ],
)
def test_spaces_within_statements_count(before: str, after: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    kernel = "    o_ref[...] = x_ref[...]\n"
    for some in (before, after, before):
        text = SHARED.replace(kernel, f"{some}{kernel}", 1)
        assert reported(result(text, project)) == reported(from_scratch(text))
        found = project.graph().add(Source(FILE.as_posix(), text), FILE).outline
        assert places(found) == places(outline(Source(FILE.as_posix(), text)))


@pytest.mark.parametrize(
    "comment", ["pallas-lint: assume rows=8", "pl.pallas_call(", "stop_gradient", "copy_kernel", "rows"]
)
def test_visible_comments_count(comment: str) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    judged(SHARED, project)
    edited = SHARED.replace("    o_ref[...] = x_ref[...]", f"    o_ref[...] = x_ref[...]  # {comment}", 1)
    assert reported(result(edited, project)) == reported(from_scratch(edited))


def places(found: Outline) -> list[tuple[str, Span]]:
    """Where each node is."""
    return [
        (type(node).__name__, piece.span(node))
        for piece in found.walk()
        for statement in piece.body
        for node in walk(statement)
    ]


@pytest.mark.slow
def test_nothing_accumulates_over_edits() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    counts = []
    for number in range(72):
        line = "o_ref[...] = x_ref[...]"
        judged(SHARED.replace(line, f"{line}  # {number}" if number % 2 else f"{line} * {number}", 1), project)
        if number in (35, 71):  # entries that are not used are dropped every 12 revisions
            gc.collect()
            counts.append(sum(type(each) in (CacheEntry, Module, Piece) for each in gc.get_objects()))
    assert counts[1] == counts[0]


def test_an_undone_edit_reruns_nothing() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(120)
    every, _ = runs(text, project)
    for typed in (" + (", " + (1", " + (1)"):
        edited = text.replace("\n    o_ref[...] = ", f"\n    o_ref[...]{typed} = ", 1)
        assert reported(result(edited, project)) == reported(from_scratch(edited))
    assert runs(text, project) == (0, every)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("ROWS = 8\n", "ROWS = 6\n", id="by a function that was called before with the same arguments"),
        pytest.param("WIDTH = 100\n", "WIDTH = 50\n", id="by a member of a class that another run looked up"),
        pytest.param("STEPS = 8\n", "STEPS = 9\n", id="by the top level, for another run"),
        pytest.param("DEEP = 1\n", "DEEP = 2\n", id="by an index map, after the run"),
    ],
)
def test_lookups_of_earlier_runs_are_dependencies(old: str, new: str) -> None:
    launch = "    return pl.pallas_call(kernel, out, grid=grid, in_specs=[spec], out_specs=spec)(x)\n"
    comments = "\n".join(["    # long enough for its members to be judged each by itself"] * 40)
    text = f"""\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = 8
WIDTH = 100
STEPS = 8
DEEP = 1
out = jax.ShapeDtypeStruct((64, 100), jnp.float32)
grid = (STEPS,)


def rows():
    return ROWS


first = rows()
second = rows()


class Sizes:
{comments}
    width = WIDTH

    def block(self, rows):
        return rows, self.width


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def one(x):
    spec = pl.BlockSpec(Sizes().block(first), lambda i: (i * DEEP, 0))
{launch}

def two(x):
    spec = pl.BlockSpec(Sizes().block(second), lambda i: (i * DEEP, 0))
{launch}"""
    project = Project(Path("/nonexistent"), incremental=True)
    before = reported(result(text, project))
    edited = text.replace(old, new)
    assert reported(from_scratch(edited)) != before
    assert reported(result(edited, project)) == reported(from_scratch(edited))


def test_launches_that_share_top_level_values_are_cached_separately() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    result(SHARED, project)
    text = SHARED
    for old, new in (("[whole], out_specs=whole", "None"), ("[pair[0]]", "[spec]"), ("return jax.grad", "jax.grad")):
        text = text.replace(old, new)
        found = judged(text, project)
        assert reported(found.result) == reported(from_scratch(text))
        assert found.analysis is not None
        assert found.analysis.runs.made <= 2
        assert found.analysis.runs.reused >= 3


def test_an_outdated_analysis_is_abandoned() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(120)
    source = Source(FILE.as_posix(), text)
    project.overlay = {FILE: source}
    requested = iter([False] * 4 + [True] * 1000)
    with pytest.raises(Abandoned):
        check_file(source, CHOSEN, project, lambda: next(requested))
    edited = text.replace("128", "256", 1)
    assert reported(result(edited, project)) == reported(from_scratch(edited))


def test_two_distant_edits_rerun_only_their_roots() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(120)
    result(text, project)
    head, _, tail = text.rpartition("\n    o_ref[...]")
    edited = f"{head}\n    x_ref\n    o_ref[...]{tail}".replace("\n    o_ref[...]", "\n    x_ref\n    o_ref[...]", 1)
    found = judged(edited, project)
    assert reported(found.result) == reported(from_scratch(edited))
    assert found.analysis is not None
    made, reused = found.analysis.runs.made, found.analysis.runs.reused
    assert 0 < made <= 3 < reused


def test_an_interrupted_analysis_sees_later_changes(tmp_path: Path) -> None:
    project = Project(tmp_path, incremental=True)
    helper, file = tmp_path / "helper.py", tmp_path / "edited.py"
    (tmp_path / "pyproject.toml").touch()
    helper.write_text("ROWS = 96\n")
    text = SHARED.replace("import jax\n", "import jax\nfrom helper import ROWS\n", 1).replace(
        "(rows, 100)", "(ROWS, 100)"
    )
    source = Source(file.as_posix(), text)
    project.overlay = {file: source}

    def again(project: Project) -> tuple[object, ...]:
        return reported(check_file(source, CHOSEN, project).result)

    before = again(Project(tmp_path, project.overlay))
    for runs in range(1, 7):
        helper.write_text("ROWS = 96\n")
        project.forget(helper)
        requested = iter([False] * runs + [True])
        with pytest.raises(Abandoned):
            check_file(source, CHOSEN, project, lambda: next(requested))  # noqa: B023
        helper.write_text("ROWS = 7\n")
        project.forget(helper)
        after = again(Project(tmp_path, project.overlay))
        is_same = again(project) == after  # the difference is long
        assert is_same and after != before, f"interrupted after {runs} runs"


def test_files_that_only_rules_read_are_dependencies(tmp_path: Path) -> None:
    steps, file = tmp_path / "steps.py", tmp_path / "edited.py"
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "helper.py").write_text("from steps import STEP\n\n\ndef block(i):\n    return i * STEP\n")
    steps.write_text("STEP = 1\n")
    text = SHARED.replace("import jax\n", "import jax\nfrom helper import block\n", 1)
    source = Source(file.as_posix(), text.replace("(rows, 100), lambda i: (i,)", "(96, 100), lambda i: (block(i), 0)"))
    project = Project(tmp_path, {file: source}, incremental=True)
    before = reported(check_file(source, CHOSEN, project).result)
    steps.write_text("STEP = 3\n")
    project.forget(steps)
    after = reported(check_file(source, CHOSEN, project).result)
    is_same = after == reported(
        check_file(source, CHOSEN, Project(tmp_path, {file: source})).result
    )  # the difference is long
    assert is_same
    assert after != before
