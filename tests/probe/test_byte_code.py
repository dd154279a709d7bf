"""Byte code of installed packages: kept in a folder of our own where they have none, and of nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from pallas_lint.probe.client import MAIN

if TYPE_CHECKING:
    from pathlib import Path

# As the worker starts, with `jax` in a folder that stands for that of installed packages.
PROGRAM = """
import importlib.util, sys, sysconfig
sys.dont_write_bytecode = True
site, project, folder = sys.argv[1:]
sys.path[:0] = [site, project]
sysconfig.get_path = lambda name: site
spec = importlib.util.spec_from_file_location("byte_code", {file!r})
byte_code = importlib.util.module_from_spec(spec)
spec.loader.exec_module(byte_code)
byte_code.keep_in(folder)
import jax.experimental.pallas, mine
print(jax.answer, mine.answer)
"""


def answers(tmp_path: Path) -> list[str]:
    """What the installed package and the user's file say."""
    program = PROGRAM.format(file=str(MAIN.parent / "byte_code.py"))
    folders = [str(tmp_path / name) for name in ("site", "project", "kept")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", program, *folders], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout.split()


def test_what_is_kept(tmp_path: Path) -> None:
    for name in ("", "experimental", "experimental/pallas"):
        folder = tmp_path / "site" / "jax" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("answer = 1\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "mine.py").write_text("answer = 1\n")
    assert answers(tmp_path) == ["1", "1"]
    kept = list((tmp_path / "kept").rglob("*.pyc"))
    assert len(kept) == 3 and all("site" in each.parts for each in kept), "of the package, not of the user's file"
    assert not list(tmp_path.glob("site/**/*.pyc")) and not list(tmp_path.glob("project/**/*.pyc"))
    before = {each: each.stat().st_mtime_ns for each in kept}
    (tmp_path / "project" / "mine.py").write_text("answer = 2\n")
    assert answers(tmp_path) == ["1", "2"], "of the same size, maybe within the same second"
    assert {each: each.stat().st_mtime_ns for each in kept} == before
    (tmp_path / "site" / "jax" / "__init__.py").write_text("answer = 12\n")
    assert answers(tmp_path) == ["12", "2"]


def test_a_package_with_byte_code_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "site" / "jax" / "experimental" / "pallas"
    folder.mkdir(parents=True)
    (tmp_path / "site" / "jax" / "__init__.py").write_text("answer = 1\n")
    (folder / "__init__.py").write_text("")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "mine.py").write_text("answer = 1\n")
    subprocess.run([sys.executable, "-X", "pycache_prefix=", "-m", "compileall", "-q", str(folder)], check=True)
    assert answers(tmp_path) == ["1", "1"]
    assert not (tmp_path / "kept").exists()
