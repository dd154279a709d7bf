"""Helpers for tests of rules, also of other packages: lint a piece of code, fix it, run the examples.

    from pallas_lint.testing import check_examples, lint

    def test_examples():
        check_examples(NoMagicBlocks)

    def test_near_miss():
        assert not lint("...", target="tpu", select="ACME101")

The rule must be installed (`pip install -e .`), so that its entry point is found.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.config.settings import Overrides, Settings, SettingsFinder
from pallas_lint.lint import check_file
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.run import fixer
from pallas_lint.run.project import Project
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.finding import Finding
    from pallas_lint.ruleset.rule import Example, Rule

MARK = "#!"


@lru_cache
def settings(jax: str | None = None, target: str | None = None, select: str | None = None) -> Settings:
    """Settings as `--isolated --jax-version JAX --target TARGET --select SELECT` give them; all rules by default."""
    values: dict[str, object] = {"select": [select or "ALL"]}
    if jax is not None:
        values["jax-version"] = jax
    if target is not None:
        values["target"] = [target]
    finder = SettingsFinder(Overrides(values, isolated=True), Path("/nonexistent"))
    return finder.for_folder(Path("/nonexistent"))


def lint(code: str, jax: str | None = None, target: str | None = None, select: str | None = None) -> list[Finding]:
    """The findings in `code` (indented as a docstring may be)."""
    return lint_text(inspect.cleandoc(code) + "\n", jax, target, select)


def lint_text(text: str, jax: str | None = None, target: str | None = None, select: str | None = None) -> list[Finding]:
    """The findings in a text as it stands."""
    return list(findings_of(text, jax, target, select))


def findings_of(text: str, jax: str | None, target: str | None, select: str | None) -> tuple[Finding, ...]:
    """The findings in a text as a tuple, which can be cached."""
    source = Source("example.py", text)
    result = check_file(source, settings(jax, target, select), Project(Path("/nonexistent"))).result
    assert not result.errors, (result.errors, result.traceback)
    return result.findings


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


def lines(findings: list[Finding], code: str) -> set[int]:
    """The lines on which findings of `code` start."""
    return {finding.span.start.line for finding in findings if finding.code == code}


def fixed(code: str, jax: str | None = None, target: str | None = None, select: str | None = None) -> str:
    """`code` after all fixes of its findings, unsafe ones too, in rounds until nothing changes."""
    return fixed_text(inspect.cleandoc(code) + "\n", jax, target, select)


def fixed_text(text: str, jax: str | None = None, target: str | None = None, select: str | None = None) -> str:
    """A text as it stands after all fixes, by the fixer that the command line uses."""

    def relint(sources: Mapping[str, Source], changed: frozenset[str]) -> list[Finding]:
        return lint_text(sources["example.py"].text, jax, target, select)

    source = Source("example.py", text)
    outcome = fixer.fix({"example.py": source}, lint_text(text, jax, target, select), relint, unsafe=True)
    assert not outcome.problems, outcome.problems
    return outcome.sources["example.py"].text


def marked(text: str) -> set[int]:
    """The lines of an example that are marked as flagged."""
    return {number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(MARK)}


def without_marks(text: str) -> str:
    return "\n".join(line.rstrip().removesuffix(MARK).rstrip() for line in text.splitlines())


def check_examples(rule: type[Rule]) -> None:
    """Run all examples of a rule: flagged where marked, silent where fine, fixed as declared and only once.

    Raises AssertionError, and ValueError where the rule is not registered.
    """
    if rule.code not in all_rules():
        raise ValueError(f"{rule.code} is not registered: install the package whose entry point names it")
    assert rule.invalid and rule.valid, f"{rule.code} needs an example of each kind"
    for example in rule.invalid:
        check_flagged(rule.code, example)
        if example.fixed is not None:
            check_fix(rule.code, example)
    for example in rule.valid:
        check_fine(rule.code, example)


def check_flagged(code: str, example: Example) -> None:
    """Findings start on the marked lines and on no other."""
    expected = marked(example.code)
    assert expected, "a flagged example marks its lines"
    assert lines(lint(without_marks(example.code), example.jax, example.target), code) == expected


def check_fine(code: str, example: Example) -> None:
    """No finding of the rule."""
    findings = [finding for finding in lint(example.code, example.jax, example.target) if finding.code == code]
    assert not findings, [finding.message for finding in findings]


def check_fix(code: str, example: Example) -> None:
    """The fixes come to `fixed`, which parses, has no finding left, and is not changed by fixing it again."""
    import libcst

    assert example.fixed is not None
    before = without_marks(example.code)
    # A rule about the file as a whole needs the others: a suppression is unused only where its rule was on.
    select = None if code.startswith("PAL0") else code
    after = fixed(before, example.jax, example.target, select)
    assert after.rstrip() == example.fixed.rstrip()
    libcst.parse_module(after)
    assert fixed(after, example.jax, example.target, select) == after, "fixing twice changes nothing"
    assert not lines(lint(after, example.jax, example.target), code), "the finding is gone"
