"""What becomes of the report: where it goes, how wide it is, and what the exit status is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invocation import OLD

from pallas_lint.cli.parser import COMMANDS
from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.probe import capture
from pallas_lint.records import evolve
from pallas_lint.report import Report, concise, full
from pallas_lint.report.style import Style
from pallas_lint.report.wrapping import columns_of, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocation import Ran

    Lint = Callable[..., Ran]


def test_exit_zero_is_for_findings_only(kernel_file: Path, lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "--exit-zero")
    assert (ran.status, "PAL301" in ran.out) == (0, True)
    assert lint("--isolated", *OLD, "--exit-zero", "--diff").status == 0
    assert lint("--isolated", *OLD, "--exit-zero", "gone.py").status == 2


@pytest.mark.parametrize("output_format", ["full", "json", "sarif"])
def test_a_report_in_a_file(folder: Path, kernel_file: Path, lint: Lint, output_format: str) -> None:
    requested = ("--isolated", *OLD, "--output-format", output_format)
    printed = lint(*requested)
    ran = lint(*requested, "--output-file", "report", "--color", "always")
    assert (ran.status, ran.out, ran.err) == (1, "", "")
    reported = (folder / "report").read_text()
    assert reported == printed.out
    assert "\x1b" not in reported


def test_reports_besides_what_is_printed(folder: Path, kernel_file: Path, lint: Lint) -> None:
    requested = ("--isolated", *OLD, "--color", "always")
    printed = lint(*requested)
    ran = lint(*requested, "--report", "sarif=a=b.sarif", "--report", "concise=lines")
    assert (ran.status, ran.out, ran.err) == (1, printed.out, printed.err)
    for output_format, name in (("sarif", "a=b.sarif"), ("concise", "lines")):
        assert (folder / name).read_text() == lint("--isolated", *OLD, "--output-format", output_format).out
    for wrong in ("sarif", "sarif=", "sarrif=x"):
        assert lint("--report", wrong).status == 2
    assert lint("--report", "sarif=x", "--diff").status == 2
    assert "--report: no/x: " in lint("--report", "sarif=no/x").err


def test_a_report_that_cannot_be_written(folder: Path, kernel_file: Path, lint: Lint) -> None:
    (folder / "place").mkdir()
    ran = lint("--isolated", *OLD, "--output-file", "place")
    assert ran.status == 2
    assert "--output-file: place: " in ran.err
    assert lint("--output-file", "x", "--diff").status == 2


def test_the_files_that_would_be_linted(folder: Path, kernel_file: Path, lint: Lint) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "b.py").write_text("syntax error (\n")
    (folder / "sub" / "left_out.py").write_text("")
    ran = lint("--show-files", "--exclude", "left_out.py")
    assert (ran.status, ran.out, ran.err) == (0, "kernel.py\nsub/b.py\n", "")
    assert lint("--show-files", "gone.py").status == 2
    assert "--show-files cannot be combined with --fix" in lint("--show-files", "--fix").err


def entries(place: Path) -> list[Path]:
    """The entries of a cache folder."""
    return [file for file in place.glob("*/??/*") if file.is_file()]


def test_a_named_cache_folder_and_its_end(
    folder: Path, kernel_file: Path, lint: Lint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "kept"
    first = lint("--isolated", *OLD, "--cache-dir", str(place))
    assert first.status == 1
    written = entries(place)
    assert written
    assert lint("--isolated", *OLD, "--cache-dir", str(place)).out == first.out
    own = written[0].parent / "mine.txt"
    own.write_text("not ours")
    assert f"removed {len(written)} file" in lint("clean", "--cache-dir", str(place)).err
    assert entries(place) == [own]
    assert "nothing to remove" in lint("clean", "--cache-dir", str(place)).err
    monkeypatch.setenv("PALLAS_LINT_CACHE_DIR", str(place))
    assert lint("--isolated", *OLD).out == first.out and len(entries(place)) == len(written) + 1
    assert f"removed {len(written)} file" in lint("clean").err


@pytest.mark.parametrize("columns", [48, 60, 100])
def test_text_fits_the_terminal(
    folder: Path, kernel_file: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    plain = lint("--isolated", *OLD).out
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = lint("--isolated", *OLD)
    assert max(map(len, ran.out.splitlines())) <= columns
    assert "".join(ran.out.split()).count("PAL301") == "".join(plain.split()).count("PAL301")
    coloured = lint("--isolated", *OLD, "--color", "always").out
    assert max(map(columns_of, coloured.splitlines())) <= columns
    as_data = json.loads(lint("--isolated", *OLD, "--output-format", "json").out)
    assert as_data["findings"]


def test_statistics_fit_the_terminal(kernel_file: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    reported = lint("--isolated", *OLD, "--statistics").out.splitlines()
    assert reported[:2] == ["1  PAL301  index-map-element-offset", "   [1 fixable]"]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_fits_a_usual_terminal(lint: Lint, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = lint(*command, "--help").out.splitlines()
    assert lines[0].startswith("usage: pallas-lint")
    assert max(map(len, lines)) <= 80


WORDS = st.lists(st.text("ab日é", min_size=1, max_size=12), min_size=1, max_size=30)


@given(words=WORDS, width=st.integers(10, 60), first=st.integers(0, 8), indent=st.integers(0, 8))
def test_wrapping_loses_nothing_and_fits(words: list[str], width: int, first: int, indent: int) -> None:
    lines = list(wrapped(" ".join(words), width, first, indent))
    assert " ".join(line.strip() for line in lines).split() == words
    for number, line in enumerate(lines):
        taken = columns_of(line) + (0 if number else first)
        assert taken <= width or len(line.split()) == 1


def test_numbers_keep_together_with_their_units() -> None:
    reported = list(wrapped("blocks take 448 KiB of 16 MiB in 5.85 µs and 3 steps of 2 s", 14))
    assert reported == ["blocks take", "448 KiB of", "16 MiB in", "5.85 µs and 3", "steps of 2 s"]


def test_colours_and_links_take_no_columns() -> None:
    style = Style(colour=True, links=True)
    reported = style.link(style.bold("a.py:1:2"), "a.py")
    assert "\x1b]8;;file:///" in reported
    assert columns_of(reported) == len("a.py:1:2")


def test_settings_name_a_cache_folder_only_if_the_user_names_them(
    folder: Path, kernel_file: Path, lint: Lint, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / ".git").mkdir()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder / "link").symlink_to(elsewhere)
    for place in (".kept", "link", "../out", str(elsewhere)):
        (folder / "pallas-lint.toml").write_text(f'cache-dir = "{place}"\n')
        ran = lint(*OLD)
        assert ran.status == 1 and "pallas-lint.toml:1: cache-dir is not used" in ran.out + ran.err
    assert list(elsewhere.rglob("*")) == []
    assert not (folder.parent / "out").exists() and not (folder / ".kept").exists()
    (folder / "pallas-lint.toml").write_text('cache-dir = ".kept"\n')
    ran = lint(*OLD, "--config", "pallas-lint.toml")
    assert ran.status == 1 and "cache-dir" not in ran.out + ran.err
    assert entries(folder / ".kept")


def test_codes_open_their_pages_where_terminals_can() -> None:
    place = Span("k.py", Position(1, 1), Position(1, 2))
    finding = Finding("PAL101", "x", Severity.ERROR, "m", place, page="https://example.org/PAL101/")
    for module in (full, concise):
        for statistics in (False, True):
            report = Report(findings=[finding], statistics=statistics, style=Style(links=True))
            text = "".join(module.render(report))
            assert "\x1b]8;;https://example.org/PAL101/\x1b\\PAL101\x1b]8;;\x1b\\" in text
            assert "\x1b" not in "".join(module.render(evolve(report, style=Style())))
    assert Style(links=True).page("X", "https://a\x1b\\b") == "X"
    assert Style(links=True).page("X", "file:///etc/passwd") == "X"


@pytest.mark.parametrize(
    ("command", "started"), [("python", "/chosen/python"), ("python3", "/chosen/python"), ("./x", "./x")]
)
def test_a_captured_program_runs_in_the_interpreter_that_was_named(
    folder: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch, command: str, started: str
) -> None:
    seen: list[list[str]] = []

    def run(command: list[str], *_: object) -> None:
        seen.append(command)
        raise OSError("not here")

    monkeypatch.setattr(capture, "run", run)
    assert lint("probe", "--python", "/chosen/python", "--capture", "--", command, "-m", "train").status == 2
    assert seen == [[started, "-m", "train"]]
