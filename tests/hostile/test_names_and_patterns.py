"""Names of files that look like options, and patterns that do not end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

ENDLESS = "*a" * 40 + "*b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "k.py").write_text(attack.KERNEL)
    return folder


# Behind a name that was taken for a command or for standard input nothing would be linted.
@pytest.mark.parametrize("first", ["--fix", "--select=PAL7", "--help", "probe", "server", "-"])
def test_files_of_a_hook_are_files(folder: Path, first: str) -> None:
    for name in (first, "--probe", "--unsafe-fixes", "--write-baseline", "--add-suppressions", "--config"):
        (folder / name).write_text("x = 1\n")
    names = (first, "--probe", "--write-baseline", "k.py", "--unsafe-fixes", "--config")
    ran = attack.hook("pallas-lint", *names, cwd=folder)
    assert (ran.status, ran.err) == (1, "")
    assert "PAL301" in ran.out and "6 files" in ran.out
    assert (folder / "k.py").read_text() == attack.KERNEL


def test_the_fixing_hook_fixes_for_all_that(folder: Path) -> None:
    for name in ("--diff", "--hook", "--fix"):
        (folder / name).write_text("x = 1\n")
    ran = attack.hook("pallas-lint-fix", "--jax-version", "0.10.2", "--diff", "--hook", "--fix", "k.py", cwd=folder)
    assert (ran.status, ran.err) == (0, "")
    assert (folder / "k.py").read_text() == attack.FIXED


def test_patterns_end(folder: Path) -> None:
    name = "a" * 60
    for place in (folder, folder / name, folder / name / name):
        place.mkdir(exist_ok=True)
        (place / f"{name}.py").write_text("import pallas\n")
    tables = f'exclude = ["{ENDLESS}", "**/{ENDLESS}/**/{ENDLESS}"]\n[per-file-ignores]\n"{ENDLESS}" = ["PAL3"]\n'
    (folder / "pallas-lint.toml").write_text(tables)
    (folder / ".gitignore").write_text(f"{ENDLESS}\n{'**/a*/' * 1000}b\n{'*[ab]?' * 1000}\n")
    ran = attack.run("--no-cache", ".", cwd=folder)
    assert ran.calm and ran.status == 1 and "4 files" in ran.out
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        wire.open((folder / name / f"{name}.py").as_uri(), "import pallas\n")
        wire.open((folder / "k.py").as_uri(), attack.KERNEL)
        assert "PAL301" in wire.codes((folder / "k.py").as_uri())
        assert wire.end() == 0
