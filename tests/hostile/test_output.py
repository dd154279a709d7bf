"""What a name or a text of the repository holds cannot steer a terminal, begin a command of a CI, or break a page."""

from __future__ import annotations

import contextlib
import io
import re
import unicodedata
from typing import TYPE_CHECKING

import pytest

from pallas_lint.cli import terminal
from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.probe.page import html
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
        ("--show-kernels",),
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
    for arguments in (
        ["."],
        ["config"],
        ["--\x1b[31m"],
        ["rule", "\x1b[31m\n::error::"],
        ["support", "\x1b[31m\n::error::"],
    ):
        ran = attack.run(*arguments, cwd=folder)
        assert ran.status == 2
        assert not steers(ran.out + ran.err)
        assert not [line for line in ran.err.splitlines() if line.startswith("::")]


@pytest.mark.parametrize("arguments", [("--diff",), ("--output-format", "full")], ids=lambda each: each[-1])
def test_lines_of_the_code_give_no_orders_to_github(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    lines = attack.KERNEL.splitlines()
    at = next(number for number, line in enumerate(lines) if "(i * 8, 0)" in line)
    launch = next(number for number in range(at, 0, -1) if lines[number].startswith("    return"))
    orders = ["    text = '''", "    ::stop-commands::mine", "    '''"]
    reported = f"{lines[at]}  # ##[stop-commands]mine"
    code = "\n".join([*lines[:launch], *orders, *lines[launch:at], reported, *lines[at + 1 :], ""])
    (folder / "k.py").write_text(code)
    ran = attack.run("--no-cache", "--isolated", *arguments, cwd=folder, env={"GITHUB_ACTIONS": "true"})
    assert ran.status == 1
    shown = ran.out.splitlines()
    if arguments == ("--diff",):
        # The text is what it is, for `patch`; between the first line and the last no command counts.
        stop = re.fullmatch(r"::stop-commands::([0-9a-f]{32})", shown[0])
        assert stop is not None and shown[-1] == f"::{stop[1]}::"
        assert any(line.lstrip().startswith("::") or "##[" in line for line in shown[1:-1])
        elsewhere = attack.run("--no-cache", "--isolated", *arguments, cwd=folder, env={"GITHUB_ACTIONS": ""})
        assert elsewhere.out.splitlines() == shown[1:-1]
    else:
        assert "stop-commands]mine" in ran.out
        assert not [line for line in shown if re.match(r"\s*::\w", line) or "##[" in line]


def test_a_traceback_begins_no_line() -> None:
    phrase = io.StringIO()
    with contextlib.redirect_stderr(phrase):
        terminal.crash(ValueError("a\n::error::b\n\x1b[31m##[error]c"), verbose=True)
    assert "ValueError" in phrase.getvalue()
    assert not steers(phrase.getvalue())
    assert not [line for line in phrase.getvalue().splitlines() if line.lstrip().startswith("::") or "##[" in line]


def test_the_report_escapes_all_of_a_finding() -> None:
    place = Position(1, 1)
    phrase = "<script>alert(1)</script>"
    finding = Finding(
        code=phrase, name=phrase, severity=Severity.ERROR, message=phrase, span=Span(phrase, place, place), help=phrase,
    )  # fmt: skip
    page = html.fragment([], [finding], {phrase: phrase}, lambda path, number: phrase, errors=[phrase])
    assert "<script" not in page
    assert "javascript:" not in page
