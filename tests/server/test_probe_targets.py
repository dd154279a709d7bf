"""Which function is probed, with what arguments to begin with, and where its comment is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pallas_lint.server.commands.probe_comment import comment_edit
from pallas_lint.server.probing.probe_targets import NoFunction, choose
from pallas_lint.server.probing.suggested_arguments import suggestion

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.lint import check_file
from pallas_lint.run.project import Project
from pallas_lint.text.source import Source

CODE = """\
from functools import partial

import jax
from jax.experimental import pallas as pl


def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


@partial(jax.jit, static_argnames=("bm",))
def add(x: jax.Array, y: Float[Array, "n 256"], *, bm=8, causal, eps: float):
    n, m = x.shape
    block = pl.BlockSpec((bm, 256), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(n // bm,), in_specs=[block, block], out_specs=block, out_shape=x)(x, y)


def outer(q, k):
    return add(q, k, causal=True, eps=0.0)


class Layer:
    def run(self, x):
        return pl.pallas_call(kernel, out_shape=x)(x, x)


UNUSED = 1
"""


def judged(code: str) -> tuple[Source, object]:
    source = Source("/k.py", code)
    settings = SettingsFinder(Overrides({}, isolated=True), Path("/")).for_folder(Path("/"))
    file_analysis = check_file(source, settings, Project(Path("/")))
    assert file_analysis.analysis is not None
    return source, file_analysis.analysis


def line(part: str) -> int:
    return next(at for at, text in enumerate(CODE.splitlines(), 1) if part in text)


@pytest.mark.parametrize(
    ("at", "function"),
    [("o_ref[...] =", "add"), ("n, m = x.shape", "add"), ("static_argnames", "add"), ("return add", "outer")],
)
def test_the_function_at_a_line(at: str, function: str) -> None:
    _, analysis = judged(CODE)
    assert choose(analysis, None, line(at)).name == function  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "at", "phrase"),
    [(None, "UNUSED", "no kernel is launched here"), ("nowhere", None, "no function"), ("Layer.run", None, "method")],
)
def test_where_there_is_none(function: str | None, at: str | None, phrase: str) -> None:
    _, analysis = judged(CODE)
    with pytest.raises(NoFunction, match=phrase):
        choose(analysis, function, None if at is None else line(at))  # type: ignore[arg-type]


def test_arguments_from_annotations_specs_and_uses() -> None:
    _, analysis = judged(CODE)
    chosen = choose(analysis, "add", None)  # type: ignore[arg-type]
    assert [each.name for each in chosen.required] == ["x", "y", "causal", "eps"]
    assert suggestion(chosen, analysis, (), None) == "f32[32,256], f32[32,256], causal=False, eps=1.0"  # type: ignore[arg-type]


def test_the_comment_goes_above_decorators_and_keeps_line_ends() -> None:
    source, analysis = judged(CODE.replace("\n", "\r\n"))
    chosen = choose(analysis, "add", None)  # type: ignore[arg-type]
    edit = comment_edit(source, chosen, "# pallas-lint: probe(f32[8,256])")
    assert edit.range.start.line == line("@partial") - 1 and edit.new_text == "# pallas-lint: probe(f32[8,256])\r\n"
