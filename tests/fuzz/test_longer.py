"""Properties with many more examples, and others each night, each file in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import FUZZ

TESTS = Path(__file__).parents[1]
FILES = sorted(
    file.relative_to(TESTS).as_posix()
    for file in TESTS.rglob("test_*.py")
    if file.name != Path(__file__).name and "@examples(" in file.read_text(encoding="utf-8")
)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FILES)
def test_random_examples(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "hypothesis", name]
    fuzz = "30" if name.startswith("fuzz/") else "5"
    ran = subprocess.run(
        [*command, "--hypothesis-profile=default"],
        cwd=TESTS, env={**os.environ, FUZZ: os.environ.get(FUZZ, fuzz)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
