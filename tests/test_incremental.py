"""Judging an edited text again gives what judging it from scratch gives, whatever was edited before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.texts import composed
from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.kernels.interpreter.replay import Abandoned
from pallas_lint.lint import judge
from pallas_lint.run.project import Project
from pallas_lint.syntax import outline
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pallas_lint.lint import FileResult

ROOT = Path(__file__).resolve().parent.parent
FILE = Path("/nonexistent/edited.py")
CHOSEN = SettingsFinder(
    Overrides({"select": ["ALL"], "jax-version": "0.10.2"}, isolated=True), Path("/nonexistent")
).for_folder(Path("/nonexistent"))
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
TEXTS = [*(file.read_text() for file in sorted((ROOT / "examples").glob("*.py"))), composed(250), SHARED]
# Typed somewhere: what starts, ends or changes statements, names and numbers.
TYPED = ("(", ")", ":", "\n", "\n\n", "    ", "x", "128", "1", " = ", "#", '"""', "pl.", "del ", "jnp.sum(x_ref[...])")


def result(text: str, project: Project) -> FileResult:
    source = Source(FILE.as_posix(), text)
    project.overlay = {FILE: source}
    return judge(source, CHOSEN, project).result


def told(found: FileResult) -> tuple[object, ...]:
    return found.findings, found.errors, found.kernels, found.used_suppressions


@st.composite
def sequences(draw: st.DrawFn) -> list[str]:
    """A text and what a few edits make of it, one after the other; some are taken back."""
    texts = [draw(st.sampled_from(TEXTS))]
    for _ in range(draw(st.integers(1, 6))):
        lines = texts[-1].split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["type", "erase", "drop", "double", "move", "back"]))
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
        texts.append(texts[max(len(texts) - 2, 0)] if kind == "back" else "\n".join(lines))
    return texts


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(sequences())
def test_edits_give_the_verdict_from_scratch(texts: list[str]) -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    for text in texts:
        assert told(result(text, project)) == told(result(text, Project(Path("/nonexistent"))))


def test_the_outline_is_that_of_the_text() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(250)
    for edited in (text, f"{text}\n\ndef f(:\n  pass\n", text.replace("8, 128", "8, 256"), f"# é\n\n{text}"):
        source = Source(FILE.as_posix(), edited)
        found = project.graph().add(source, FILE).outline
        fresh = outline(source)
        assert [(p.first, p.last, p.kind, p.names, p.text) for p in found.walk()] == [
            (p.first, p.last, p.kind, p.names, p.text) for p in fresh.walk()
        ]
        assert str(found.tree.root_node) == str(fresh.tree.root_node)  # type: ignore[union-attr]


def test_an_edit_in_one_kernel_runs_only_what_reaches_it() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(250)
    result(text, project)
    replay = project.graph().syntax.replay(FILE)
    every = len(replay.runs)
    assert every > 5
    result(text.replace("\n    o_ref[...]", "\n\n    o_ref[...]", 1), project)
    assert every - 2 <= replay.again < every


def test_launches_that_share_what_the_top_level_makes_are_told_alone() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    result(SHARED, project)
    replay = project.graph().syntax.replay(FILE)
    text = SHARED
    for old, new in (("[whole], out_specs=whole", "None"), ("[pair[0]]", "[spec]"), ("return jax.grad", "jax.grad")):
        text = text.replace(old, new)
        assert told(result(text, project)) == told(result(text, Project(Path("/nonexistent"))))
        again, every = replay.again, len(replay.runs)
        assert every > 5
        assert again >= every - 2


def test_a_judgement_that_nobody_waits_for_is_abandoned() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(250)
    source = Source(FILE.as_posix(), text)
    project.overlay = {FILE: source}
    asked = iter([False] * 4 + [True] * 1000)
    with pytest.raises(Abandoned):
        judge(source, CHOSEN, project, lambda: next(asked))
    edited = text.replace("128", "256", 1)
    assert told(result(edited, project)) == told(result(edited, Project(Path("/nonexistent"))))


def test_two_distant_edits_at_once_run_only_what_reaches_them() -> None:
    project = Project(Path("/nonexistent"), incremental=True)
    text = composed(250)
    result(text, project)
    replay = project.graph().syntax.replay(FILE)
    every = len(replay.runs)
    head, _, tail = text.rpartition("\n    o_ref[...]")
    edited = f"{head}\n\n    o_ref[...]{tail}".replace("\n    o_ref[...]", "\n\n    o_ref[...]", 1)
    assert told(result(edited, project)) == told(result(edited, Project(Path("/nonexistent"))))
    assert every - 3 <= replay.again < every


def test_a_judgement_that_was_interrupted_sees_what_changed_meanwhile(tmp_path: Path) -> None:
    project = Project(tmp_path, incremental=True)
    helper, file = tmp_path / "helper.py", tmp_path / "edited.py"
    (tmp_path / "pyproject.toml").touch()
    helper.write_text("ROWS = 96\n")
    text = SHARED.replace("import jax\n", "import jax\nfrom helper import ROWS\n", 1).replace(
        "(rows, 100)", "(ROWS, 100)"
    )
    source = Source(file.as_posix(), text)
    project.overlay = {file: source}

    def judged(project: Project) -> tuple[object, ...]:
        return told(judge(source, CHOSEN, project).result)

    before = judged(Project(tmp_path, project.overlay))
    for runs in range(1, 7):
        helper.write_text("ROWS = 96\n")
        project.forget(helper)
        asked = iter([False] * runs + [True])
        with pytest.raises(Abandoned):
            judge(source, CHOSEN, project, lambda: next(asked))  # noqa: B023
        helper.write_text("ROWS = 7\n")
        project.forget(helper)
        after = judged(Project(tmp_path, project.overlay))
        is_same = judged(project) == after  # the difference is long
        assert is_same and after != before, f"interrupted after {runs} runs"
