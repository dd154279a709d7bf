"""Cache folders that are none, or lead elsewhere: nothing that the program did not make is removed or overwritten."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack
from tests.hostile.test_files_written import everything

if TYPE_CHECKING:
    from pathlib import Path

NEW = ("--jax-version", "0.10.2")
COMMANDS: dict[str, tuple[str, ...]] = {
    "lint": (*NEW, "."),
    "kernels": (*NEW, "--show-kernels", "."),
    "fix": (*NEW, "--fix", "--diff", "."),
    "clean": ("clean",),
}
NAMES = ("lint", "calls", "probe", "results", "pallas-lint", "00", "key", "CACHEDIR.TAG", "cleaned", "last-removal")


def grow_old(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            os.utime(file, (time.time() - 200 * 86_400,) * 2)


def fill(folder: Path) -> None:
    """Files as a cache might have them, all old."""
    for name in (
        "thesis.txt",
        "config.json",
        "0a/eslint.json",
        "deep/er/notes.md",
        f"lint/00/{'0' * 30}",
        "lint/x.json",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("precious")
    grow_old(folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "k.py").write_text(attack.KERNEL)
    return folder


def test_links_in_the_place_of_a_cache(project: Path) -> None:
    victim = project.parent / "victim"
    fill(victim)
    before = everything(victim)
    for name in NAMES:
        (project / name).symlink_to(victim)
    files = {"pallas-lint.toml": "", "pyproject.toml": "[tool.pallas-lint]\n"}
    for (file, head), setting in zip(cycle(files.items()), (".", "lint", "../victim", str(victim), "lint/0a")):
        (project / file).write_text(f'{head}cache-dir = "{setting}"\n')
        for name, command in COMMANDS.items():
            ran = attack.run(*command, cwd=project)
            assert ran.calm and (ran.status == 0 or "PAL301" in ran.out or name in ("fix", "kernels")), (setting, ran)
            assert everything(victim) == before, (setting, name)
        hooked = attack.hook("pallas-lint", "k.py", cwd=project)
        assert hooked.calm and "PAL301" in hooked.out and everything(victim) == before
        (project / file).unlink()


def test_folders_of_the_project(project: Path) -> None:
    """The same without links, and without an attacker: folders that have the names of ours."""
    for name in ("tools", "tools/lint", "lint", "calls", "probe"):
        (project / name).mkdir(exist_ok=True)
    fill(project / "tools")
    fill(project / "lint")
    (project / "pallas-lint.toml").write_text('cache-dir = "tools"\n')
    before = everything(project)
    for options in ((), ("--cache-dir", "tools"), ("--cache-dir", "."), ("--config", "pallas-lint.toml")):
        named = bool(options)
        ran = attack.run(*NEW, *options, ".", cwd=project)
        assert ran.calm and ran.status == (2 if named else 1) and everything(project) == before, options
        assert not named or "cannot keep results in" in ran.err
    for options in ((), ("--cache-dir", "tools"), ("--cache-dir", ".")):
        ran = attack.run("clean", *options, cwd=project)
        assert ran.calm and ran.status == (2 if options else 0) and everything(project) == before, options


def test_links_in_a_cache_of_ours(project: Path) -> None:
    """Put there after it was made: below its kinds, in the place of its folders, in the place of its files."""
    victim = project.parent / "victim"
    fill(victim)
    before = everything(victim)
    ran = attack.run(*NEW, "--cache-dir", "own", ".", cwd=project)
    assert ran.calm and ran.status == 1
    (entry,) = (project / "own" / "lint").glob("??/*")
    for number in range(256):
        link = project / "own" / "lint" / f"{number:02x}"
        if link != entry.parent:
            link.symlink_to(victim)
    (project / "own" / "probe").symlink_to(victim)
    entry.unlink()
    entry.symlink_to(victim / "thesis.txt")
    (project / "own" / "last-removal").unlink()
    (project / "own" / "last-removal").symlink_to(victim / "config.json")
    grow_old(project / "own")
    for command in ((*NEW, "--cache-dir", "own", "."), ("clean", "--cache-dir", "own")):
        (project / "other.py").write_text(attack.KERNEL)
        assert attack.run(*command, cwd=project).calm and everything(victim) == before
    assert entry.is_symlink(), "what is not ours is not removed either"


@pytest.mark.nightly
def test_killed_runs_leave_whole_files(project: Path) -> None:
    """At any moment: every file old or new. A new one has a name of its own for the moment of its rename only."""
    fixed = {attack.KERNEL, attack.FIXED}
    for moment in range(40):
        for number in range(6):
            (project / f"k{number}.py").write_text(attack.KERNEL)
        run = [attack.PROGRAM, "--fix", *NEW, "--no-cache", "."]
        with subprocess.Popen(run, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(0.2 + moment * 0.02)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL if moment % 2 else signal.SIGTERM)
        renamed = list(project.glob(".pallas-lint-*"))
        assert len(renamed) <= 1 and all(file.read_text() == attack.FIXED for file in renamed)
        for file in renamed:
            file.unlink()
        assert {file.read_text() for file in project.glob("k*.py")} <= fixed
