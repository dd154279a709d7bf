"""Captured launches are interpreted in the program that made them: one that takes too long is ended there."""

from __future__ import annotations

import subprocess

import pytest

from tests.probe.running import HERE
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow


@pytest.mark.nightly
def test_a_kernel_that_takes_too_long_is_ended_and_holds_up_no_other() -> None:
    command = [python(), "-m", "tests.probe.ended"]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    reported, ended, result = done.stdout.splitlines()
    assert reported == "it did not finish within 5 s; smaller shapes"
    assert ended == "ended"
    assert float(result) == 3.0
    assert "Traceback" not in done.stderr
