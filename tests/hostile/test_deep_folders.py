"""Folders in each other, deeper than Python lets functions call each other, and longer than the system takes paths."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from collections.abc import Iterator

# Slow: each step of a walk writes a path of a thousand folders.
LEVELS = 1100  # of folders with a name of one letter: a path to the innermost still fits into the system's limit
DOTTED = ".".join("a" * LEVELS)


def descend(top: Path, levels: int, name: str = "a", files: tuple[str, ...] = ()) -> None:
    """Make folders below `top`, so many that no single path may name the innermost, each with some files."""
    with _inside(top):
        for _ in range(levels):
            os.mkdir(name)  # noqa: PTH102
            os.chdir(name)
            for file in files:
                Path(file).write_text("x\n")
        Path("k.py").write_text(attack.KERNEL)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    top = tmp_path_factory.mktemp("deep") / "project"
    top.mkdir()
    (top / ".git").mkdir()
    for name in ("too-deep", "long"):
        (top / name).mkdir()
    descend(top, LEVELS, files=("__init__.py", ".gitignore"))
    descend(top / "too-deep", LEVELS, "ccc")
    descend(top / "long", 30, "b" * 200)
    calls = f"import {DOTTED}.k\nfrom {DOTTED}.k import run as deep\n{attack.KERNEL}\n{DOTTED}.k.run(1)\ndeep(2)\n"
    (top / "calls.py").write_text(calls)
    (top / "relative.py").write_text(f"from {'.' * 3000}a import b\nimport {'a.' * 3000}a\n{attack.KERNEL}")
    (top / "z.py").write_text(attack.KERNEL)
    yield top
    subprocess.run(["/bin/rm", "-rf", str(top)], check=True)  # pytest's own way calls itself for each level


def check(ran: attack.Ran) -> None:
    found = [line.partition(":")[0] for line in ran.out.splitlines() if "PAL301" in line]
    assert found == [f"{'a/' * LEVELS}k.py", "calls.py", "relative.py", "z.py"]
    lines = ran.err.splitlines()
    assert ran.calm and ran.status == 2
    assert len(lines) == 2 and all(line.endswith("File name too long") for line in lines), ran.err
    assert lines[0].startswith("long/bbb") and lines[1].startswith("too-deep/ccc/")


@pytest.mark.nightly
def test_the_command_line(folder: Path) -> None:
    check(attack.run("--output-format", "concise", ".", cwd=folder))
    check(attack.run("--output-format", "concise", ".", cwd=folder))  # from the cache


@pytest.mark.slow
def test_a_run_inside(folder: Path) -> None:
    inner = folder / ("a/" * LEVELS)
    ran = attack.run("--output-format", "concise", "k.py", cwd=inner, home=folder.parent)
    assert ran.calm and ran.status == 1 and "k.py:14" in ran.out


@pytest.mark.nightly
def test_the_server(folder: Path) -> None:
    inner = folder / ("a/" * LEVELS) / "k.py"
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        for file in (inner, folder / "z.py", folder / "calls.py"):
            wire.open(file.as_uri(), file.read_text())
            assert "PAL301" in wire.codes(file.as_uri())
        answer = wire.request("workspace/executeCommand", {"command": "pallasLint.lintWorkspace", "arguments": []})
        assert "error" not in answer, answer
        assert wire.end() == 0
        assert "RecursionError" not in wire.errors.decode() and "Traceback" not in wire.errors.decode()
