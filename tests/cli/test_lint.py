"""Linting from the command line: what is printed, and what the exit status is."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from invocation import KERNEL, OLD

import pallas_lint.lint
from pallas_lint import __version__
from pallas_lint.cli.parser import parse_lint
from pallas_lint.run.cache_folder import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocation import Ran

    Lint = Callable[..., Ran]


def test_a_finding_is_shown_with_its_line_and_makes_the_status_1(kernel_file: Path, lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "kernel.py")
    assert ran.status == 1
    assert "kernel.py:14:" in ran.out
    assert "PAL301 index-map-element-offset" in ran.out
    assert "        in_specs=[pl.BlockSpec((8, 128), lambda i: (i * 8, 0))]," in ran.out
    assert "^^^^" in ran.out
    assert "fixable with --fix" in ran.out
    assert ran.err == ""


def test_warnings_of_python_about_the_code_are_not_printed(kernel_file: Path, lint: Lint) -> None:
    text = kernel_file.read_text().replace("grid=(4,)", 'name="a\\-" "b\\-", grid=(4,)', 1)
    assert "a\\-" in text
    kernel_file.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran = lint("--isolated", *OLD, "--fix", "kernel.py")
    assert ran.out.startswith("No findings in 1 file. (1 finding fixed)\n1 kernel judged for jax 0.4.35 ")
    assert ran.err == ""


def test_clean_code_is_status_0(folder: Path, lint: Lint) -> None:
    (folder / "plain.py").write_text("print(1)\n")
    ran = lint("--isolated")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "No findings in 0 kernels, 1 file.\n"


def test_named_files_that_are_not_python_are_reported(folder: Path, lint: Lint) -> None:
    for name in ("README.txt", "LICENSE"):
        (folder / name).write_text("prose\n")
    (folder / "script").write_text("#!/usr/bin/env python3\nprint(1)\n")
    (folder / "types.pyi").write_text("x: int\n")
    ran = lint("--isolated", "README.txt", "script", "types.pyi", "LICENSE", "README.txt")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "No findings in 0 kernels, 4 files.\n"
        "note: not Python by name or first line, but read as Python: README.txt, LICENSE\n"
    )
    assert "note" not in lint("--isolated", "script", "types.pyi").out


def test_json_has_every_key_of_the_contract(kernel_file: Path, lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "--output-format", "json")
    document = json.loads(ran.out)
    assert list(document) == [
        "version",
        "tool",
        "files",
        "kernels",
        "sight",
        "coverage",
        "findings",
        "errors",
        "launches",
    ]
    assert (document["version"], document["tool"], document["files"]) == (1, __version__, 1)
    finding = next(f for f in document["findings"] if f["code"] == "PAL301")
    assert set(finding) == {
        "code", "name", "severity", "message", "help", "url", "path", "start", "end", "cell", "kernel",
        "backend", "device", "core", "jax", "dtype", "origin", "related", "fixes", "witness", "known_call",
    }  # fmt: skip
    line = KERNEL.splitlines()[finding["start"]["line"] - 1]
    assert line[finding["start"]["column"] - 1 : finding["end"]["column"] - 1] == "i * 8"
    assert set(finding["fixes"][0]) == {"title", "applicability", "edits"}
    assert set(finding["fixes"][0]["edits"][0]) == {"path", "start", "end", "cell", "text"}


def test_concise_is_one_line_a_finding(kernel_file: Path, lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "--output-format", "concise", "-q")
    assert ran.out.startswith("kernel.py:14:")
    assert ": PAL301 " in ran.out
    assert ran.out.count("\n") == 1
    assert ran.out.count("[") == ran.out.count("]")


def test_statistics_count_by_rule(kernel_file: Path, lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "--statistics")
    assert ran.out.splitlines()[0] == "1  PAL301  [1 fixable]  index-map-element-offset"
    document = json.loads(lint("--isolated", *OLD, "--statistics", "--output-format", "json").out)
    assert document["statistics"] == [
        {"code": "PAL301", "name": "index-map-element-offset", "count": 1, "fixable": 1, "unsafe": 0}
    ]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--fail-on", "error"], 1),
        (["--ignore", "PAL301"], 0),
        (["--ignore", "PAL3"], 0),
        (["--ignore", "index-map-element-offset"], 0),
        (["--select", "PAL301"], 1),
        (["--select", "PAL002"], 0),
    ],
)
def test_selection(kernel_file: Path, lint: Lint, arguments: list[str], status: int) -> None:
    assert lint("--isolated", *OLD, *arguments).status == status


def test_severity_and_fail_on_come_from_the_settings(kernel_file: Path, lint: Lint, folder: Path) -> None:
    (folder / "pallas-lint.toml").write_text('severity = {PAL301 = "info"}\n')
    ran = lint(*OLD)
    assert ran.status == 0
    assert "[info]" in ran.out
    (folder / "pallas-lint.toml").write_text('fail-on = "info"\nseverity = {PAL301 = "info"}\n')
    assert lint(*OLD).status == 1


def test_an_assumed_jax_version_is_printed_once(kernel_file: Path, lint: Lint, folder: Path) -> None:
    (folder / "other.py").write_text(KERNEL)
    assert lint("--isolated").out.count("judged as") == 1
    assert "judged as" not in lint("--isolated", "-q").out
    assert "judged as" not in lint("--isolated", *OLD).out


def test_an_unknown_version_is_judged_as_the_one_below_with_a_note(kernel_file: Path, lint: Lint) -> None:
    assert "judged as" in lint("--isolated", "--jax-version", "0.99.1").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "PAL30x"], "--select: "),
        (["--slect", "PAL301"], "unknown option --slect, did you mean --select?"),
        (["--target", "triiton"], "--target: unknown target 'triiton', did you mean 'triton'?"),
        (["--target", "tpu:v9"], "--target: unknown device 'v9'"),
        (["--jax-version", "0.1.2"], "older than"),
        (["--jax-version", "soon"], "is not a jax version"),
        (["--jax-version", ">=0.1,<0.2"], "no known jax version is in"),
        (["--jobs", "none"], "not a number of processes"),
        (["--output-format", "xml"], "unknown format 'xml'"),
        (["--watch", "-"], "--watch takes files and folders"),
        (["--watch", "nowhere"], "nowhere: no such file or folder"),
        (["--write-baseline"], "--write-baseline requires --baseline FILE or the setting `baseline`"),
        (["--baseline=x.json", *OLD], "x.json: error: cannot read the baseline: No such file or directory"),
        (["--add-suppressions", "--fix"], "--add-suppressions cannot be combined with --fix"),
        (["--python", "/no/such/python"], "no interpreter"),
        (["--config", "nowhere.toml"], "nowhere.toml: error: cannot read the configuration"),
        (["--unsafe-fixes"], "requires --fix"),
        (["-", "x.py"], "together with other paths"),
        (["--fail-on", "always"], "argument --fail-on"),
        (["probe", "x"], "x: cannot read the file"),
        (["server", "--tcp", "0.0.0.0:1"], "not an address on this machine"),
    ],
)
def test_bad_usage_is_one_clear_line_and_status_2(folder: Path, lint: Lint, arguments: list[str], message: str) -> None:
    (folder / "kernel.py").write_text(KERNEL)
    ran = lint(*arguments)
    assert ran.status == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err


def test_options_may_stand_between_paths(folder: Path, lint: Lint) -> None:
    (folder / "a.py").write_text(KERNEL)
    (folder / "b.py").write_text(KERNEL)
    ran = lint("a.py", "--isolated", "b.py", *OLD, "--output-format", "concise", "-q")
    assert [line.split(":")[0] for line in ran.out.splitlines()] == ["a.py", "b.py"]


def test_a_missing_path_is_an_error_and_the_rest_is_linted(kernel_file: Path, lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "nope.py", "kernel.py")
    assert ran.status == 2
    assert "nope.py: error: no such file or folder" in ran.err
    assert "PAL301" in ran.out
    assert "there is a command `rule`" in lint("rules").err
    assert "there is a command `rule`" in lint("explain", "PAL301").err
    assert "leave `check` out" in lint("check").err


def test_a_folder_without_python_is_fine(folder: Path, lint: Lint) -> None:
    (folder / "empty").mkdir()
    ran = lint("--isolated", "empty")
    assert ran.status == 0
    assert "no Python files in empty" in ran.out


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n\nx = 'pallas \xff'\n", "bad.py:3: error: the file is not valid utf-8"),
        (b"pallas\0\0", "binary"),
        (b"# coding: klingon\nimport pallas\n", "bad.py:1: error: "),
        (b"\xff\xfep\x00a\x00l\x00l\x00a\x00s\x00pallas", "UTF-16"),
    ],
)
def test_an_unreadable_file_is_an_error_and_the_rest_is_linted(
    kernel_file: Path, lint: Lint, folder: Path, data: bytes, message: str
) -> None:
    (folder / "bad.py").write_bytes(data)
    ran = lint("--isolated", *OLD)
    assert ran.status == 2
    assert message in ran.err
    assert "PAL301" in ran.out
    document = json.loads(lint("--isolated", *OLD, "--output-format", "json").out)
    assert [error["path"] for error in document["errors"]] == ["bad.py"]


def test_a_broken_configuration_names_file_and_line(kernel_file: Path, lint: Lint, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.pallas-lint]\nselect = ["PAL301"]\nignore = [\n')
    ran = lint()
    assert ran.status == 2
    assert "pyproject.toml:" in ran.err
    assert "invalid TOML" in ran.err
    assert "Traceback" not in ran.err


def test_a_broken_configuration_elsewhere_leaves_the_rest_linted(kernel_file: Path, lint: Lint, folder: Path) -> None:
    (folder / "part").mkdir()
    (folder / "part" / "pallas-lint.toml").write_text('selct = ["PAL301"]\n')
    (folder / "part" / "other.py").write_text(KERNEL)
    ran = lint(*OLD)
    assert ran.status == 2
    assert "part/pallas-lint.toml:1: error: unknown key 'selct', did you mean 'select'?" in ran.err
    assert "kernel.py:14" in ran.out
    assert "other.py" not in ran.out


def test_a_broken_pyproject_that_is_not_ours_does_not_matter(kernel_file: Path, lint: Lint, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project\n")
    assert lint(*OLD).status == 1


def test_a_crash_on_one_file_is_reported_and_the_others_are_printed(
    kernel_file: Path, lint: Lint, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "crash.py").write_text("# pallas CRASH\n")
    real = pallas_lint.lint.lint_source

    def crashing(source: Any, *rest: Any) -> Any:
        if "CRASH" in source.text:
            raise RuntimeError("boom")
        return real(source, *rest)

    monkeypatch.setattr(pallas_lint.lint, "lint_source", crashing)
    ran = lint("--isolated", *OLD, "--no-cache")
    assert ran.status == 2
    assert "crash.py: error: internal error: RuntimeError: boom" in ran.err
    assert "Traceback" not in ran.err
    assert "PAL301" in ran.out
    assert "Traceback" in lint("--isolated", *OLD, "--no-cache", "-v").err


def test_standard_input(lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "--stdin-filename", "src/k.py", "-", stdin=KERNEL.encode())
    assert ran.status == 1
    assert "src/k.py:14:" in ran.out
    assert "i * 8" in ran.out
    assert lint("-", "--isolated", stdin=b"print(1)\n").status == 0
    assert lint("-", "--isolated", stdin=b"pallas \xff").status == 2


def test_a_file_name_that_is_not_utf8(lint: Lint, folder: Path) -> None:
    name = b"caf\xe9.py"
    try:
        (folder / os.fsdecode(name)).write_text(KERNEL)
    except OSError:
        pytest.skip("this file system takes only valid names")
    for output_format in ("full", "concise", "json"):
        assert lint("--isolated", *OLD, "--output-format", output_format).status == 1


def test_verbose_prints_what_was_used(kernel_file: Path, lint: Lint) -> None:
    (kernel_file.parent / "pallas-lint.toml").write_text("")
    assert "settings of pallas-lint.toml, " in lint(*OLD, "-v").out
    assert "jax 0.4.35 (--jax-version)" in lint(*OLD, "-v").out


def test_support_takes_its_options(lint: Lint) -> None:
    assert lint("support", "jnp.cumsum", "--target", "tpu").status == 0
    assert "did you mean 'tpu'?" in lint("support", "jnp.cumsum", "--target", "tpuu").err
    assert lint("support").status == 2


def test_a_huge_file(lint: Lint, folder: Path) -> None:
    (folder / "data.py").write_text("DATA = '" + "x" * 5_000_000 + "'\n")
    (folder / "kernel.py").write_text(KERNEL)
    ran = lint("--isolated", *OLD)
    assert ran.status == 1
    assert len(ran.out) < 5000


def test_exclude_adds_to_what_is_left_out(lint: Lint, folder: Path) -> None:
    for name in ("a", "b", "build"):
        (folder / name).mkdir()
        (folder / name / "k.py").write_text(KERNEL)
    ran = lint("--isolated", *OLD, "--output-format", "concise", "-q", "--exclude", "b")
    assert [line.split(":")[0] for line in ran.out.splitlines()] == ["a/k.py"]


def test_the_output_does_not_depend_on_jobs_or_cache(lint: Lint, folder: Path) -> None:
    for number in range(9):
        (folder / f"k{number}.py").write_text(KERNEL.replace("32", str(number)))
    expected = lint("--isolated", *OLD, "--no-cache", "--jobs", "1")
    for options in (["--no-cache", "--jobs", "3"], ["--jobs", "2"], ["--jobs", "1"], []):
        assert lint("--isolated", *OLD, *options) == expected
    assert {file.suffix for file in folder.iterdir()} == {".py"}
    kept = cache_folder(folder)
    assert kept is not None and len(list(kept.path.glob("lint/??/*"))) == 9


def test_colours(kernel_file: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in lint("--isolated", *OLD).out
    assert "\x1b[" in lint("--isolated", *OLD, "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in lint("--isolated", *OLD).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in lint("--isolated", *OLD).out


def test_one_command_line_leaves_nothing_to_the_next() -> None:
    first = parse_lint(["a.py", "--exclude", "b", "--target", "tpu", "--", "-c.py"])
    again = parse_lint(["--exclude", "d", "--", "e.py"])
    assert (first.paths, first.exclude, first.target) == (["a.py", "-c.py"], [["b"]], ["tpu"])
    assert (again.paths, again.exclude, again.target) == (["e.py"], [["d"]], [])
    assert parse_lint([]).paths == []
