"""No regular expression takes more than linear time, whatever it is given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pallas_lint.probe.messages import KNOWN
from tests.meta.regex_growth import growth
from tests.meta.regular_expressions import Use, uses

ROOT = Path(__file__).resolve().parents[2]
# Patterns that are made at run time, and what they may be.
MADE: dict[tuple[str, str], list[str | bytes]] = {
    ("pallas_lint/kernels/model/launch_forms.py", "compile"): [r"\b(?:pallas_call|core_map)\s*[(,]", "emit_pipeline"],
    ("pallas_lint/probe/messages.py", "search"): [pattern for known in KNOWN for pattern in known.patterns],
    # Each star of a glob is a look-ahead and a reference to it, which is never tried again: tests/test_patterns.py.
    ("pallas_lint/config/patterns.py", "compile"): [],
}
METHODS = {method: method for method in ("compile", "match", "fullmatch")}
LITERAL = re.compile(r"[=(,:?&|!;]\s*/(?![/*])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+)/([dgimsuvy]*)(?=\s*[.,;)])")
MADE_IN_SCRIPTS = {"vscode-extension/src/targets.ts": 1}  # `new RegExp`


@pytest.mark.slow
def test_python() -> None:
    files = [file for folder in ("pallas_lint", "server", "rules") for file in sorted((ROOT / folder).rglob("*.py"))]
    found = [use for file in files for use in uses(file, ROOT)]
    assert len(found) > 300
    assert {(use.file, use.method) for use in found if use.pattern is None} == set(MADE)
    patterns = {**_by_pattern(found), **{(pattern, 0, "search"): "made" for made in MADE.values() for pattern in made}}
    slow = {place: (key[0], worse) for key, place in patterns.items() if (worse := growth(*key))}
    assert not slow


def _by_pattern(found: list[Use]) -> dict[tuple[str | bytes, int, str], str]:
    """Each pattern, its flags and the method that it is used with (a search, where that is nothing else), and where."""
    places = {
        (
            use.pattern,
            re.compile(use.pattern, use.flags).flags,
            METHODS.get(use.method, "search"),
        ): f"{use.file}:{use.line}"
        for use in found
        if use.pattern is not None
    }
    used = {key[:2] for key in places if key[2] != "compile"}
    return {
        (pattern, flags, "search" if method == "compile" else method): place
        for (pattern, flags, method), place in places.items()
        if method != "compile" or (pattern, flags) not in used
    }


def test_scripts() -> None:
    """JavaScript writes what is used here as Python does. A pattern counts as one for a search if it is not sticky."""
    folders = ((ROOT / "vscode-extension" / "src", "*.ts"), (ROOT / "pallas_lint", "*.js"), (ROOT / "docs", "*.js"))
    files = [file for folder, ending in folders for file in folder.rglob(ending)]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}
    found = [(match[1], match[2]) for text in texts.values() for match in LITERAL.finditer(text)]
    assert len(found) > 15
    assert {name: text.count("new RegExp(") for name, text in texts.items() if "new RegExp(" in text} == MADE_IN_SCRIPTS
    part = re.search(r"String\.raw`(.*)`", texts["vscode-extension/src/targets.ts"])
    assert part is not None
    slow = {}
    for pattern, flags in [*found, (f"^{part[1]}(?:,{part[1]})*$", "")]:
        python = re.sub(r"\\p\{\w+\}", r"\\w", pattern).replace(r"\/", "/")
        numbers = [getattr(re, flag.upper()) for flag in flags if flag in "ims"]
        if worse := growth(python, sum(numbers), "match" if "y" in flags else "search"):
            slow[pattern] = worse
    assert not slow


@pytest.mark.parametrize(
    ("pattern", "method", "kind"),
    [
        (r"(?:a|a)*b", "match", "exponential"),
        (r"(?:a+)+b", "match", "exponential"),
        (r"(?:\d{1,18}|[?, ])*\]", "match", "exponential"),
        (r"(?:[ \n]|#[^\n]*)+\Z", "match", "exponential"),
        (r"\s*,?\s*\)", "match", "polynomial"),
        (r"a.*b.*c", "match", "polynomial"),
        (r"\s*(.*?)\s*", "fullmatch", "polynomial"),
        (r"[ \t]*#", "search", "quadratic"),
        (r"(?m)^\s*#", "search", "quadratic"),
        (r"\w+=", "finditer", "quadratic"),
        (r"/\*.*?\*/", "sub", "quadratic"),
        (r"'(?:\\.|[^'\\])*'", "search", "quadratic"),
        (r"a(?:[ab]*c)?", "findall", "quadratic"),
        (r"x(?=\w*y)", "search", "quadratic"),
        (rb"(?i:A)b*(?i:B)*c", "match", "polynomial"),
        (r"(['\"])[^;]*\1", "search", "quadratic"),
        (r"[ \t]*#", "match", None),
        (r"(?m)^[ \t]*#", "search", None),
        (r"^\s*#", "search", None),
        (r"\w+", "search", None),
        (r"(?<!\w)\w+=", "search", None),
        (r"\b\w+=", "search", None),
        (r"\s*(?:,\s*)?\)", "match", None),
        (r"'[^']*'", "search", None),
        (r"'(?:\\.?|[^'\\])*'?", "search", None),
        (r"(?:\d{1,18}(?!\d)|[?, ])*\]", "match", None),
        (r"has_\w{0,64}(?:tpu|gpu)", "search", None),
        (r"\d+(?:\.\d+)*", "fullmatch", None),
    ],
)
def test_growth(pattern: str | bytes, method: str, kind: str | None) -> None:
    found = growth(pattern, 0, method)
    assert (found.kind if found else None) == kind
