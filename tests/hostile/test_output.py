"""What a name or a text of the repository holds cannot steer a terminal, begin a command of a CI, or break a page."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.probe import html
from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("::error::x.py", "-\x1b[31m.py", "a\n::stop-commands::x.py", "\u202egnp.py", "\r::warning::.py", "e\x9b1m.py")


def steers(text: str) -> list[str]:
    return [char for char in text if char != "\n" and unicodedata.category(char) in ("Cc", "Cf")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--output-format", "full"),
        ("--output-format", "concise"),
        ("--output-format", "github"),
        ("--output-format", "junit"),
        ("--output-format", "sarif"),
        ("--output-format", "gitlab"),
        ("--output-format", "json"),
        ("--diff",),
        ("--statistics", "-v"),
    ],
    ids=lambda arguments: arguments[-1],
)
def test_names_of_files(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text(attack.KERNEL)
        (folder / f"bad{name}").write_bytes(b"import pallas\n\xff")
    (folder / ".gitignore").write_text("")
    ran = attack.run("--no-cache", "--isolated", *arguments, "--", ".", "\x1b[2Jmissing\n::error::x", cwd=folder)
    assert ran.status == 2
    assert "internal error" not in ran.err
    for text in (ran.out, ran.err):
        assert not steers(text)
        if arguments[-1] != "github":
            assert not [line for line in text.splitlines() if re.match(r"\s*::\w", line)]
    if arguments[-1] == "github":
        assert all(line.startswith(("::error title=pallas-lint", "::notice title=")) for line in ran.out.splitlines())


def test_settings_and_usage(tmp_path: Path) -> None:
    folder = tmp_path / "project\x1b[2J"
    folder.mkdir()
    (folder / "pallas-lint.toml").write_text('"a\\u001b[31m\\n::error::" = 1\n')
    for arguments in (["."], ["config"], ["--\x1b[31m"], ["rule", "\x1b[31m\n::error::"]):
        ran = attack.run(*arguments, cwd=folder)
        assert ran.status == 2
        assert not steers(ran.out + ran.err)
        assert not [line for line in ran.err.splitlines() if line.startswith("::")]


def test_the_report_escapes_all_of_a_finding() -> None:
    place = Position(1, 1)
    said = "<script>alert(1)</script>"
    finding = Finding(
        code=said, name=said, severity=Severity.ERROR, message=said, span=Span(said, place, place), help=said,
    )  # fmt: skip
    page = html.fragment([], [finding], {said: said}, lambda path, number: said, errors=[said])
    assert "<script" not in page
    assert "javascript:" not in page
