"""What holds for every fix: the result parses, is stable, has no stray names, and the finding is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import libcst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.testing import fixed_text, lint_text
from tests.rules.fixable import (
    Fixable,
    aliased,
    fixable,
    loose_names,
    nested,
    with_block_spec_imported,
    with_comments,
    with_surroundings,
    with_tabs,
)
from tests.sampling import examples

if TYPE_CHECKING:
    from pathlib import Path

FIXABLE = fixable()
ALIASES = {"jnp": "np_", "pl": "pallas", "pltpu": "tpu", "plgpu": "gpu", "lax": "xla_lax"}
# What a fix may leave to be tidied by hand.
LEFT_OVER = {"PAL208": "F841"}  # the load of the value stays: other findings and code may use it
HEADERS = ("", "def build():\n", "class Kernels:\n    def build(self):\n")


def check(text: str, case: Fixable, *, must_be_found: bool = True) -> str:
    """The text after its fixes, if all is well with them."""
    jax, target, select = case.example.jax, case.example.target, case.select

    def found(text: str) -> list[str]:
        return [finding.message for finding in lint_text(text, jax, target, select) if finding.code == case.code]

    if must_be_found:
        assert found(text), "the mistake is not found in this spelling"
    after = fixed_text(text, jax, target, select)
    libcst.parse_module(after)
    compile(after, "fixed.py", "exec")
    assert fixed_text(after, jax, target, select) == after, "fixing twice changes nothing"
    assert not found(after), "the finding is gone"
    missing_before, unused_before = loose_names(text)
    missing, unused = loose_names(after)
    assert missing <= missing_before, "the fix uses names that nothing binds"
    assert unused <= unused_before, "the fix leaves an import that nothing uses"
    newlines = {line[len(line.rstrip("\r\n")) :] for line in after.splitlines(keepends=True)} - {""}
    assert len(newlines) == 1, "the fix mixes line endings"
    return after


CASES = pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in FIXABLE])


@CASES
def test_as_it_stands(case: Fixable) -> None:
    assert check(case.text, case) == case.fixed


@CASES
def test_spelt_in_another_way_throughout(case: Fixable) -> None:
    """Every variation that leaves the code where it is, in one text. At night each alone, which says what is wrong."""
    text = with_surroundings(with_comments(aliased(with_block_spec_imported(case.text), ALIASES)))
    check(text.replace("\n", "\r\n"), case, must_be_found="# pallas" not in case.text)


@CASES
def test_within_a_method_indented_with_tabs(case: Fixable) -> None:
    check(with_tabs(nested(case.text, HEADERS[2])), case, must_be_found=False)


@pytest.mark.nightly
@CASES
class TestSpellings:
    """Each single variation of an example."""

    def test_other_aliases(self, case: Fixable) -> None:
        check(aliased(case.text, ALIASES), case)

    def test_block_spec_by_name(self, case: Fixable) -> None:
        check(with_block_spec_imported(case.text), case)

    def test_windows_line_endings(self, case: Fixable) -> None:
        after = check(case.text.replace("\n", "\r\n"), case)
        assert after.replace("\r\n", "\n") == case.fixed

    def test_tabs(self, case: Fixable) -> None:
        check(with_tabs(case.text), case)

    def test_comments(self, case: Fixable) -> None:
        check(with_comments(case.text), case, must_be_found="# pallas" not in case.text)

    def test_other_code_around(self, case: Fixable) -> None:
        check(with_surroundings(case.text), case)

    def test_within_a_function(self, case: Fixable) -> None:
        check(nested(case.text, HEADERS[1]), case, must_be_found=False)

    def test_within_a_method(self, case: Fixable) -> None:
        check(nested(case.text, HEADERS[2]), case, must_be_found=False)


@examples(120)
@given(
    case=st.sampled_from(FIXABLE),
    names=st.fixed_dictionaries({}, optional={old: st.sampled_from([new, f"{old}2"]) for old, new in ALIASES.items()}),
    block_spec=st.booleans(),
    comments=st.booleans(),
    around=st.booleans(),
    header=st.sampled_from(HEADERS),
    tabs=st.booleans(),
    windows=st.booleans(),
)
def test_any_combination(
    case: Fixable,
    names: dict[str, str],
    block_spec: bool,
    comments: bool,
    around: bool,
    header: str,
    tabs: bool,
    windows: bool,
) -> None:
    text = with_block_spec_imported(case.text) if block_spec else case.text
    text = aliased(text, names)
    if header:
        text = nested(text, header)
    if comments:
        text = with_comments(text)
    if around:
        text = with_surroundings(text)
    if tabs:
        text = with_tabs(text)
    if windows:
        text = text.replace("\n", "\r\n")
    check(text, case, must_be_found=False)


def test_names_as_ruff_sees_them(tmp_path: Path) -> None:
    """No fix makes an unused import or variable, a redefinition, or an undefined name."""
    for case in FIXABLE:
        (tmp_path / f"{case.name}.before.py").write_text(case.text, encoding="utf-8")
        (tmp_path / f"{case.name}.after.py").write_text(case.fixed, encoding="utf-8")
    rules = "F401,F811,F821,F841"
    ran = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", rules, "--output-format", "json", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    problems: dict[str, set[str]] = {}
    for problem in json.loads(ran.stdout):
        name = problem["filename"].rpartition("/")[2]
        problems.setdefault(name, set()).add(f"{problem['code']} {problem['message']}")
    made = {
        case.name: problems[f"{case.name}.after.py"] - problems.get(f"{case.name}.before.py", set())
        for case in FIXABLE
        if f"{case.name}.after.py" in problems
    }
    stray = {
        name: kept
        for name, new in made.items()
        if (kept := {text for text in new if not text.startswith(LEFT_OVER.get(name[:6], "-"))})
    }
    assert not stray
