"""A current folder that is gone, and standard streams that are closed or full: a message and status 2, no crash."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

FULL = "cannot write to standard output: No space left on device"
CLOSED = "cannot write to standard output: it is closed"
# Commands that print to standard output, and the status with which they end where they can.
PRINTING = {
    "--version": 0,
    "--help": 0,
    "--version .": 0,
    "probe --help": 0,
    ".": 1,
    "--output-format json .": 1,
    "--diff .": 1,
    "--show-files .": 0,
    "--show-kernels .": 0,
    "rule": 0,
    "rule PAL301": 0,
    "support jnp.cumsum": 0,
    "support jnp.cumsum --output-format json": 0,
    "config": 0,
    "config --schema": 0,
    "completion bash": 0,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "project"
    (top / ".git").mkdir(parents=True)
    (top / "k.py").write_text(attack.KERNEL)
    return top


def shell(
    line: str, folder: Path, *, program: str = attack.PROGRAM, before: str = "", unbuffered: bool = False
) -> attack.Ran:
    """What `pallas-lint LINE` comes to, where LINE redirects its streams as a shell has them."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "HOME": str(home), "VIRTUAL_ENV": "", "PYTHONUNBUFFERED": "1" if unbuffered else ""}
    command = f"{before}exec {program} {line}"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )
    ran = attack.Ran(done.returncode, done.stdout, done.stderr)
    assert ran.calm, ran
    return ran


@pytest.mark.parametrize("command", PRINTING)
def test_output_that_cannot_be_written(folder: Path, command: str) -> None:
    cases = ((">/dev/full", FULL, False), (">/dev/full", FULL, True), (">&-", CLOSED, False))
    for redirected, message, unbuffered in cases:
        ran = shell(f"{command} {redirected}", folder, unbuffered=unbuffered)
        assert (ran.status, ran.out) == (2, "") and ran.err.count(message) == 1, ran


@pytest.mark.parametrize("command", [".", "--help", "rule"])
def test_messages_that_cannot_be_written(folder: Path, command: str) -> None:
    expected = shell(command, folder)
    for redirected in ("2>&-", "2>/dev/full", "<&-", "<&- 2>&-"):
        ran = shell(f"{command} {redirected}", folder)
        assert (ran.status, ran.out) == (PRINTING[command], expected.out), redirected
    assert shell(f"{command} >&- 2>&-", folder).status == 2
    assert shell("nowhere 2>&-", folder).status == 2
    assert "error" in shell("nowhere.py", folder).err  # and not where the report goes
    assert "error" not in shell("nowhere.py 2>&-", folder).out


def test_a_report_in_a_file_needs_no_output(folder: Path) -> None:
    for redirected in (">/dev/full", ">&-", ">&- 2>&- <&-"):
        assert shell(f"--output-format json --output-file r.json . {redirected}", folder).status == 1
        assert '"PAL301"' in (folder / "r.json").read_text()
        assert shell(f"clean {redirected}", folder).status == 0


def test_files_do_not_get_the_numbers_of_closed_streams(folder: Path) -> None:
    before = (folder / "k.py").read_bytes()
    ran = shell("--fix k.py >&- 2>&- <&-", folder)
    assert ran.status == 2
    assert (folder / "k.py").read_text() == attack.FIXED != before.decode()


def test_input_that_cannot_be_read(folder: Path) -> None:
    ran = shell("- <&-", folder)
    assert (ran.status, ran.out) == (2, "") and "cannot read standard input: it is closed" in ran.err
    ran = shell("- 0>written", folder)
    assert (ran.status, ran.out) == (2, "") and "cannot read standard input: Bad file descriptor" in ran.err
    ran = shell("--fix - <k.py >/dev/full", folder)
    assert ran.status == 2 and FULL in ran.err


def test_a_server_without_streams(folder: Path) -> None:
    for redirected in ("<&-", ">&-", ">&- <&-"):
        ran = shell(f"server {redirected}", folder)
        assert ran.status == 2 and "the server talks over standard input and output" in ran.err


@pytest.mark.parametrize(
    "command",
    [".", "k.py", "- </dev/null", "config", "clean", "probe k.py", "server </dev/null", "--fix .", "--show-files"],
)
def test_a_current_folder_that_is_gone(folder: Path, command: str) -> None:
    gone = "mkdir gone && cd gone && rmdir ../gone && "
    for program in (attack.PROGRAM, shlex.join([sys.executable, "-m", "pallas_lint"])):
        ran = shell(command, folder, program=program, before=gone)
        assert (ran.status, ran.out) == (2, "") and "the current folder does not exist any more" in ran.err, ran


@pytest.mark.parametrize("command", ["--version", "--help", "rule PAL301", "support jnp.cumsum", "completion zsh"])
def test_what_needs_no_current_folder(folder: Path, command: str) -> None:
    ran = shell(command, folder, before="mkdir gone && cd gone && rmdir ../gone && ")
    assert ran.status == 0 and ran.out and not ran.err
