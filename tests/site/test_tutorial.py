"""The tutorial, followed word by word: its commands print what it shows, its changes fit the files it begins with."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.interpreted import python

HERE = Path(__file__).resolve().parents[2] / "docs" / "start"
pytestmark = pytest.mark.nightly


def changed(text: str, change: str) -> str:
    """`text` with a change in it; each line begins with a blank, a minus or a plus."""
    lines = change.rstrip("\n").split("\n")
    before, after = ("\n".join(line[1:] for line in lines if line[:1] in sides) for sides in ((" ", "-"), (" ", "+")))
    assert text.count(before) == 1, before
    return text.replace(before, after)


def test_the_tutorial(tmp_path: Path) -> None:
    shutil.copytree(HERE / "tutorial", tmp_path, dirs_exist_ok=True)
    environment = {**os.environ, "VIRTUAL_ENV": str(Path(python()).parents[1])}
    page = (HERE / "tutorial.md").read_text(encoding="utf-8")
    commands = 0
    for kind, title, block in re.findall(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', page, re.MULTILINE | re.DOTALL):
        if kind == "python":
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(block)
        if kind == "diff":
            file = tmp_path / title
            file.write_text(changed(file.read_text(), block))
        if kind != "console":
            continue
        command, _, output = block.partition("\n")
        words = shlex.split(command.removeprefix("$ "))
        assert words[0] == "pallas-lint"
        done = subprocess.run(
            [sys.executable, "-m", "pallas_lint", *words[1:]],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        for part in output.split("...\n"):
            assert part in done.stdout, f"{command} prints\n{done.stdout}"
        commands += 1
    assert commands >= 6
    assert done.returncode == 0
