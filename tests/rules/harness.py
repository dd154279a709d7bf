"""Lint a piece of code as the command line would, and apply fixes to it: what every rule test needs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.lint import lint_source
from pallas_lint.project import Project
from pallas_lint.settings import Overrides, Settings, SettingsFinder
from pallas_lint.source import Source

if TYPE_CHECKING:
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
    source = Source("example.py", inspect.cleandoc(code) + "\n")
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
    text = inspect.cleandoc(code) + "\n"
    for _ in range(5):
        source = Source("example.py", text)
        edits = []
        taken: list[tuple[int, int]] = []
        for finding in lint(text, jax, target, select):
            for fix in finding.fixes[:1]:
                spans = [(source.offset(edit.span.start), source.offset(edit.span.end)) for edit in fix.edits]
                if any(a < end and start < b for a, b in spans for start, end in taken):
                    continue
                for span, edit in zip(spans, fix.edits, strict=True):
                    if (span, edit.text) not in edits:
                        edits.append((span, edit.text))
                        taken.append(span)
        if not edits:
            return text
        for (start, end), replacement in sorted(edits, reverse=True):
            text = text[:start] + replacement + text[end:]
    return text
