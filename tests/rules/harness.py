"""Lint a piece of code as the command line would, and apply fixes to it: what every rule test needs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint import fixer
from pallas_lint.lint import lint_source
from pallas_lint.project import Project
from pallas_lint.settings import Overrides, Settings, SettingsFinder
from pallas_lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.finding import Finding

MARK = "#!"


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
    source = Source("example.py", text)
    result = lint_source(source, settings(jax, target, select), Project(Path("/nonexistent")))
    assert not result.errors, (result.errors, result.traceback)
    return list(result.findings)


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


def lines(findings: list[Finding], code: str) -> set[int]:
    """The lines on which findings of `code` start."""
    return {finding.span.start.line for finding in findings if finding.code == code}


def fixed(code: str, jax: str | None = None, target: str | None = None, select: str | None = None) -> str:
    """`code` after all fixes of its findings, unsafe ones too, in rounds until nothing changes."""
    return fixed_text(inspect.cleandoc(code) + "\n", jax, target, select)


def fixed_text(text: str, jax: str | None = None, target: str | None = None, select: str | None = None) -> str:
    """The same for a text as it stands, by the fixer that the command line uses."""

    def relint(sources: Mapping[str, Source], changed: frozenset[str]) -> list[Finding]:
        return lint_text(sources["example.py"].text, jax, target, select)

    source = Source("example.py", text)
    outcome = fixer.fix({"example.py": source}, lint_text(text, jax, target, select), relint, unsafe=True)
    assert not outcome.problems, outcome.problems
    return outcome.sources["example.py"].text
