"""Texts that make regular expressions try the same characters again and again, in every file that is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

_LONG = 300_000  # characters: minutes if the time is quadratic
# Read for each call that a shapes file records, in no more than 2,000 characters.
_VALUES = (
    f"f32[{'1' * 30}!",
    f"i8[{'1,' * 20}{'1' * 60}x",
    f"key<fry>[{'1? ' * 30}!",
    f"f32[{'1' * 1900}",
    "'" + "\\'" * 900,
    "-/" * 900 + ":",
)
_HEAD = "import jax\nfrom jax.experimental import pallas as pl\n"
_COMMENTS = (
    "# pallas-lint: assume " + "a" * _LONG,
    "# pallas-lint: assume" * (_LONG // 20),
    "x = 1" + " #" * _LONG + "pallas-lint: assume",
    f"# pallas-lint: probe(f32[{'1' * _LONG}!)\ndef f(x): pass",
    f"# pallas-lint: probe(f32[1{' ' * _LONG}!)\ndef g(x): pass",
    "# pallas-lint: probe('" + "\\'" * _LONG + ")\ndef h(x): pass",
    "# pallas-lint: disable-file=" + "PAL301 " * (_LONG // 7),
    "# noqa: " + "A1" * _LONG + "!",
)
_CELLS = ("%%time\nx = 1\n", "!ls\nx = '" + '\\"' * _LONG, "%x\n'''" + "\\'''" * _LONG + "\\", attack.KERNEL)
_FILES = {
    "k.py": attack.KERNEL,
    "comments.py": _HEAD + "\n".join(_COMMENTS) + "\n",
    "strings.py": _HEAD + "x = " + "'\\\"\\'" * (_LONG // 16) + "\n",
    "imports.py": f"{_HEAD}x = '''\n" + "from a import (\n" * (_LONG // 15) + "'''\n",
    "blanks.py": f"# pallas\nfrom jax.experimental import {' ' * _LONG}palace\nx = enable_x64({' ' * _LONG}!\n",
    "version.py": f"{_HEAD}if {'has_' * 3_000}:\n    x = 1\n",
    "n.ipynb": json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
                for cell in _CELLS
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ),
    "requirements.txt": f"jax[{'tpu ' * _LONG}\n{' # ' * _LONG}\n" + "jax={" * _LONG,
    "uv.lock": "\n \n" * _LONG + "name = 'jax'x\n",
    "setup.py": "package_dir={" * (_LONG // 13),
    "pyproject.toml": f'[project]\nname = "x"\ndependencies = ["jax{" " * _LONG}!"]\n[tool.pallas-lint]\n',
}


def _project(folder: Path) -> Path:
    folder.mkdir()
    for name, text in _FILES.items():
        (folder / name).write_text(text)
    tables = (
        f'["k.py::run{at}"]\ncalls = [{{ args = {{ x = {json.dumps(value)} }} }}]\n' for at, value in enumerate(_VALUES)
    )
    (folder / "pallas-lint-shapes.toml").write_text("version = 1\n\n" + "".join(tables))
    return folder


@pytest.mark.nightly
def test_runs_end(tmp_path: Path) -> None:
    folder = _project(tmp_path / "project")
    ran = attack.run("--no-cache", ".", cwd=folder)
    assert ran.calm and ran.status == 2, ran.err
    assert [f"k.py::run{at}: x = " in ran.err for at in range(len(_VALUES))] == [True] * len(_VALUES)
    assert "k.py:14" in ran.out and "PAL301" in ran.out  # the kernel is judged for all that


def test_settings_that_cannot_be_read_end(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "k.py").write_text(attack.KERNEL)
    (folder / "pallas-lint.toml").write_text(f'"{" " * _LONG}(at line 7" = 1\n"{" " * _LONG}(at line 7" = 2\n')
    ran = attack.run("--no-cache", ".", cwd=folder)
    assert ran.calm and ran.status == 2
    assert ran.err.startswith("pallas-lint.toml:2: error: invalid TOML")


def test_the_server_answers(tmp_path: Path) -> None:
    folder = _project(tmp_path / "project")
    with attack.server("--untrusted", cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        for name in ("comments.py", "strings.py", "imports.py", "blanks.py", "version.py"):
            wire.open((folder / name).as_uri(), _FILES[name])
        wire.open((folder / "k.py").as_uri(), attack.KERNEL)
        assert "PAL301" in wire.codes((folder / "k.py").as_uri())
        assert wire.end() == 0
