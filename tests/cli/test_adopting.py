"""Starting with a project that has findings: baselines and written suppressions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from invocation import KERNEL, OLD, Ran

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Lint = Callable[..., Ran]


def test_what_a_baseline_knows_is_not_reported(kernel_file: Path, lint: Lint, folder: Path) -> None:
    wrote = lint(*OLD, "--baseline", "known.json", "--write-baseline")
    assert (wrote.status, wrote.out) == (0, "")
    assert "wrote 1 finding to known.json" in wrote.err
    ran = lint(*OLD, "--baseline", "known.json")
    assert ran.status == 0
    assert "1 finding known from known.json not shown" in ran.out


def test_lines_above_and_other_folders_do_not_matter(kernel_file: Path, lint: Lint, folder: Path) -> None:
    lint(*OLD, "--baseline", "known.json", "--write-baseline")
    kernel_file.write_text(f"# one more line\n\n{KERNEL}")
    (folder / "sub").mkdir()
    assert lint(*OLD, "--baseline", "known.json", str(kernel_file)).status == 0
    assert lint(*OLD, "--baseline", "sub/../known.json").status == 0


def test_a_second_finding_of_the_same_kind_is_new(kernel_file: Path, lint: Lint) -> None:
    lint(*OLD, "--baseline", "known.json", "--write-baseline")
    kernel_file.write_text(f"{KERNEL}\n\n{KERNEL[KERNEL.index('def run') :].replace('run', 'again')}")
    ran = lint(*OLD, "--baseline", "known.json", "--output-format", "json")
    assert ran.status == 1
    assert len(json.loads(ran.out)["findings"]) == 1


def test_entries_that_are_gone_are_reported_and_dropped(kernel_file: Path, lint: Lint, folder: Path) -> None:
    (folder / "other.py").write_text(KERNEL)
    lint(*OLD, "--baseline", "known.json", "--write-baseline")
    kernel_file.write_text(KERNEL.replace("i * 8", "i"))
    assert "1 finding of known.json no longer there" in lint(*OLD, "--baseline", "known.json").out
    # A run on one file is silent about the others, and keeps what is known of them.
    assert "no longer" not in lint(*OLD, "--baseline", "known.json", "other.py").out
    lint(*OLD, "--baseline", "known.json", "--write-baseline", "kernel.py")
    known = json.loads((folder / "known.json").read_text())["findings"]
    assert [each["path"] for each in known] == ["other.py"]
    assert lint(*OLD, "--baseline", "known.json").status == 0


def test_the_setting_counts_from_its_own_folder(kernel_file: Path, lint: Lint, folder: Path) -> None:
    (folder / "pallas-lint.toml").write_text('baseline = "known.json"\n')
    assert lint(*OLD, "--write-baseline").status == 0
    assert (folder / "known.json").exists()
    assert lint(*OLD).status == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "known.json:1: error: the baseline is not JSON"),
        ("[]", "the file is not a baseline of pallas-lint"),
        ('{"version": 7}', "the baseline has another version"),
        ('{"version": 1, "findings": [{}]}', "the file is not a baseline of pallas-lint"),
    ],
)
def test_a_broken_baseline_hides_nothing(kernel_file: Path, lint: Lint, folder: Path, text: str, message: str) -> None:
    (folder / "known.json").write_text(text)
    ran = lint(*OLD, "--baseline", "known.json")
    assert ran.status == 2
    assert message in ran.err
    assert "PAL301" in ran.out


def test_suppressions_are_written_and_hold(kernel_file: Path, lint: Lint) -> None:
    diff = lint(*OLD, "--add-suppressions", "--diff")
    assert diff.status == 1
    assert (
        "+        in_specs=[pl.BlockSpec((8, 128), lambda i: (i * 8, 0))],  # pallas-lint: disable=PAL301" in diff.out
    )
    assert kernel_file.read_text() == KERNEL
    ran = lint(*OLD, "--add-suppressions")
    assert ran.status == 0
    assert "1 finding silenced by a comment" in ran.out
    assert lint(*OLD, "--extend-select", "PAL002").status == 0
    assert lint(*OLD, "--add-suppressions").status == 0
    assert kernel_file.read_text().count("disable=") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lambda i: (i * 8, 0))],", "lambda i: (i * 8, 0))],  # why"),
        ("lambda i: (i * 8, 0))],", "lambda i: (i * 8, 0))],  # pallas-lint: disable=PAL9"),
        ("lambda i: (i * 8, 0))],", "lambda i: ( \\\n            i * 8, \\\n            0))], \\"),
        ("(8, 128), lambda i: (i * 8, 0)", "(8, 128), lambda i, text='''\n    ''': (i * 8, 0)"),
        ("\n", "\r\n"),
    ],
)
def test_a_suppression_finds_a_place(kernel_file: Path, lint: Lint, old: str, new: str) -> None:
    kernel_file.write_bytes(KERNEL.replace(old, new).encode())
    assert lint(*OLD).status == 1
    assert lint(*OLD, "--add-suppressions").status == 0
    assert lint(*OLD).status == 0
    compile(kernel_file.read_bytes(), "kernel.py", "exec")


def test_what_cannot_be_silenced_stays(folder: Path, lint: Lint) -> None:
    (folder / "kernel.py").write_text(f"{KERNEL}\n\ndef half(:\n    pl.load\n")
    ran = lint(*OLD, "--add-suppressions")
    assert ran.status == 1
    assert "PAL001" in ran.out
    assert "PAL301" not in ran.out
