"""Every rule's own examples: flagged where they say so, silent where they say so, fixed as they say."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import libcst
import pytest

from pallas_lint.rule import all_rules
from tests.rules.harness import MARK, fixed, lines, lint

if TYPE_CHECKING:
    from pallas_lint.rule import Example

INVALID = [
    pytest.param(code, example, id=f"{code}-{at}")
    for code, entry in all_rules().items()
    for at, example in enumerate(entry.rule.invalid)
]
VALID = [
    pytest.param(code, example, id=f"{code}-{at}")
    for code, entry in all_rules().items()
    for at, example in enumerate(entry.rule.valid)
]


def marked(text: str) -> set[int]:
    return {number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(MARK)}


def without_marks(text: str) -> str:
    return "\n".join(line.rstrip().removesuffix(MARK).rstrip() for line in text.splitlines())


@pytest.mark.parametrize(("code", "example"), INVALID)
def test_flagged(code: str, example: Example) -> None:
    text = inspect.cleandoc(example.code)
    expected = marked(text)
    assert expected, "a flagged example marks its lines"
    assert lines(lint(without_marks(text), example.jax, example.target), code) == expected


@pytest.mark.parametrize(("code", "example"), VALID)
def test_fine(code: str, example: Example) -> None:
    findings = lint(example.code, example.jax, example.target)
    assert not lines(findings, code), [finding.message for finding in findings]


@pytest.mark.parametrize(("code", "example"), [p for p in INVALID if p.values[1].fixed is not None])
def test_fix(code: str, example: Example) -> None:
    before = without_marks(inspect.cleandoc(example.code))
    # A rule about the file as a whole needs the others: a suppression is unused only where its rule was on.
    select = None if code.startswith("PAL0") else code
    after = fixed(before, example.jax, example.target, select)
    assert after.rstrip() == inspect.cleandoc(example.fixed).rstrip()
    libcst.parse_module(after)
    assert fixed(after, example.jax, example.target, select) == after, "fixing twice changes nothing"
    assert not lines(lint(after, example.jax, example.target), code), "the finding is gone"


@pytest.mark.parametrize("code", [code for code, entry in all_rules().items() if not entry.rule.probe_only])
def test_has_examples(code: str) -> None:
    rule = all_rules()[code].rule
    assert rule.invalid and rule.valid
    if rule.fix is not None:
        assert any(example.fixed is not None for example in rule.invalid)
