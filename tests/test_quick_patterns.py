"""Patterns that are quick to search for match what the plain ones match."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.kernels.model.launch_forms import FORMS
from pallas_lint.text.quick_patterns import in_any_case, starting_word, statements_with

TEXTS = (
    "", "dir(", "x.dir(y)", "subdir(y)", "_dir(", "1dir(", "é.dir(", "édir(", "dir (", "JAX_9", "Jax9", "jaX_12", "jax",
    "has_JAX9", "ajax_1", "x\njax_1\n",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_quick_patterns_match_what_plain_ones_do(text: str) -> None:
    for quick, plain in (
        (starting_word("dir("), r"\bdir\("),
        (in_any_case("jax", r"_?\d"), r"(?i:jax_?\d)"),
    ):
        assert [match.span() for match in re.finditer(quick, text)] == [
            match.span() for match in re.finditer(plain, text)
        ]


@given(
    st.lists(st.sampled_from(["from a import b", "import c", "import ", "(b,\n c)", "\n", " ", "\t", ";", "#"])).map(
        "".join
    )
)
def test_statements_with_a_word_are_those_at_line_breaks(text: str) -> None:
    plain = r"(?:from[ \t]+\w+[ \t]+import[ \t]*(\([^()#]*\)|[^\n#;]*)|import[ \t]+([^\n#;]+))"
    for blanks, indented in (("*", False), ("+", True)):
        expected = [match[1] for match in re.finditer(rf"(?<![^\n])[ \t]{blanks}({plain})", text)]
        found = statements_with("import", re.compile(plain).match, text, indented=indented)
        assert [match[0] for match in found] == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("pl.pallas_call(kernel, grid=(1,))(x)", 1),
        ("pl.pallas_call(\n    kernel, grid=(1,))(x)", 1),
        ("@pl.kernel(mesh=mesh)", 1),
        ("functools.partial(kernel, n)", 1),
        ("pl.pallas_call(functools.partial(kernel, n))", 2),
        ("my_kernel(x)\nx.my_kernel(x)", 0),
        ("pl.core_map, mpmd_map(f)", 2),
        ("my_mpmd_map(f)", 0),
    ],
)
def test_launches_in_a_text(text: str, count: int) -> None:
    assert len(FORMS.launching.findall(text)) == count
