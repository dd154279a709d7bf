"""Every rule is held by its tests: one that is silent is noticed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("family", ["PAL1", "PAL2", "PAL3", "PAL4", "PAL5", "PAL6", "PAL7"])
def test_no_rule_falls_silent_unnoticed(family: str) -> None:
    # In a process of its own: what runs is not the rules that are loaded here.
    command = [sys.executable, "tools/mutants.py", family, "--sample", "0"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    reported = re.search(r"; 0 of (\d+) rules could fall silent unnoticed", ran.stdout)
    assert reported is not None and int(reported[1]) > 0, ran.stdout
