"""The same properties with many more examples, each file in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.budget import VARIABLE

HERE = Path(__file__).parent
FILES = sorted(file.name for file in HERE.glob("test_*.py") if file.name != Path(__file__).name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FILES)
def test_random_examples(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(HERE / name)]
    environment = {**os.environ, VARIABLE: os.environ.get(VARIABLE, "30")}
    ran = subprocess.run(
        [*command, "--hypothesis-profile=default"],
        cwd=HERE.parent.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
