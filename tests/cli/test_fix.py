"""--fix and --diff from the command line."""

from __future__ import annotations

import stat
import subprocess
from typing import TYPE_CHECKING

import pytest
from invocation import KERNEL, OLD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocation import Ran

    Lint = Callable[..., Ran]


def test_fix_changes_the_file_and_reports_what_is_left(folder: Path, lint: Lint) -> None:
    (folder / "k.py").write_text(KERNEL)
    ran = lint("--isolated", *OLD, "--fix")
    assert ran.status == 0
    assert "(1 finding fixed)" in ran.out
    assert "i * 8" not in (folder / "k.py").read_text()
    assert lint("--isolated", *OLD).status == 0


def test_bytes_around_a_fix_stay_as_they_are(folder: Path, lint: Lint) -> None:
    text = "\ufeff" + KERNEL.replace("    o_ref", "    # é\u2028\x0c 日本\n    o_ref").replace("\n", "\r\n").rstrip(
        "\r\n"
    )
    before = text.encode()
    file = folder / "k.py"
    file.write_bytes(before)
    file.chmod(0o750)
    assert lint("--isolated", *OLD, "--fix").status == 0
    after = file.read_bytes()
    start, end = before.index(b"i * 8"), before.index(b", 0))],")
    assert after.startswith(before[:start])
    assert after.endswith(before[end:])
    assert after != before
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert sorted(entry.name for entry in folder.iterdir()) == ["k.py"]


def test_another_encoding_is_kept(folder: Path, lint: Lint) -> None:
    text = "# coding: latin-1\n" + KERNEL.replace("x_ref[...]", "x_ref[...]  # caf\xe9")
    (folder / "k.py").write_bytes(text.encode("latin-1"))
    assert lint("--isolated", *OLD, "--fix").status == 0
    assert b"# caf\xe9\n" in (folder / "k.py").read_bytes()


def test_a_link_is_followed_and_kept(folder: Path, lint: Lint) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "k.txt").write_text(KERNEL)
    (folder / "k.py").symlink_to("real/k.txt")
    assert lint("--isolated", *OLD, "--fix", "k.py").status == 0
    assert (folder / "k.py").is_symlink()
    assert "i * 8" not in (folder / "real" / "k.txt").read_text()


def test_a_read_only_file_is_an_error_and_its_findings_stay(folder: Path, lint: Lint) -> None:
    (folder / "k.py").write_text(KERNEL)
    (folder / "w.py").write_text(KERNEL)
    (folder / "k.py").chmod(0o444)
    ran = lint("--isolated", *OLD, "--fix")
    assert ran.status == 2
    assert "k.py: error: cannot write the fixed file: the file is read-only" in ran.err
    assert "k.py:14:" in ran.out
    assert "w.py:14:" not in ran.out
    assert (folder / "k.py").read_text() == KERNEL
    assert "i * 8" not in (folder / "w.py").read_text()


def test_diff_writes_nothing_and_can_be_applied(folder: Path, lint: Lint) -> None:
    (folder / "k.py").write_text(KERNEL)
    ran = lint("--isolated", *OLD, "--diff")
    assert ran.status == 1
    assert (folder / "k.py").read_text() == KERNEL
    assert ran.err == "pallas-lint: would fix 1 finding in 1 file\n"
    try:
        subprocess.run(["patch", "-p0"], input=ran.out, text=True, check=True, cwd=folder, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no patch program")
    ran = lint("--isolated", *OLD, "--diff")
    assert (ran.status, ran.out) == (0, "")


def test_diff_of_a_file_without_a_last_newline(folder: Path, lint: Lint) -> None:
    (folder / "k.py").write_text(KERNEL.rstrip("\n"))
    out = lint("--isolated", *OLD, "--diff").out
    assert out.endswith("     )(x)\n\\ No newline at end of file\n")


def test_fixed_standard_input_goes_to_standard_output(folder: Path, lint: Lint) -> None:
    ran = lint("--isolated", *OLD, "--fix", "--stdin-filename", "k.py", "-", stdin=KERNEL.encode())
    assert ran.status == 0
    assert ran.out.startswith("import jax\n")
    assert "i * 8" not in ran.out
    assert "No findings" in ran.err
    plain = b"print(1)\r\n"
    assert lint("--isolated", "--fix", "-", stdin=plain).out.encode() == plain
    ran = lint("--isolated", *OLD, "--diff", "-", stdin=KERNEL.encode())
    assert ran.status == 1
    assert ran.out.startswith("--- <stdin>\n+++ <stdin>\n")


def test_an_unused_suppression_is_removed(folder: Path, lint: Lint) -> None:
    text = KERNEL.replace("x_ref[...]", "x_ref[...]  # pallas-lint: disable=PAL301")
    (folder / "k.py").write_text(text)
    ran = lint("--isolated", "--ignore", "PAL301", "--diff", *OLD)
    assert (ran.status, ran.out) == (0, "")
    assert "PAL002" in lint("--isolated", *OLD).out
    lint("--isolated", *OLD, "--fix", "--select", "PAL301,PAL002")
    assert "disable" not in (folder / "k.py").read_text()


def test_rules_that_are_not_to_be_fixed(kernel_file: Path, lint: Lint) -> None:
    before = kernel_file.read_text()
    (kernel_file.parent / "pallas-lint.toml").write_text('unfixable = ["PAL301"]\n')
    ran = lint(*OLD, "--fix", "kernel.py")
    assert (ran.status, "PAL301" in ran.out, "fixable" in ran.out) == (1, True, False)
    assert kernel_file.read_text() == before
    (kernel_file.parent / "pallas-lint.toml").write_text('fixable = ["PAL3"]\n')
    assert lint(*OLD, "--fix", "kernel.py").status == 0
    assert kernel_file.read_text() != before
