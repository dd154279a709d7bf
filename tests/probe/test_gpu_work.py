"""What a block of a Triton kernel does, of its jaxpr and PTX: lines of memory, turns, and what is not known."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.probe.running import HERE
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reported() -> dict[str, Any]:
    file = HERE.parent / "cost" / "loop.ptx"
    command = [python(), "-m", "tests.probe.gpu_work", str(file)]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_lines_and_turns(reported: dict[str, Any]) -> None:
    product = reported["product"]
    assert (product["turns"], product["blocks"], product["stages"]) == (8, 4, 3)
    assert product["turn_lines"] == 32 + 32, "32 rows of 64 bytes, and 32 of 128"
    assert product["lines"] == 32, "32 rows of 128 bytes"
    assert product["turn"]["wgmma"] == 16 and product["once"]["wgmma"] == 0


def test_rows_that_lie_together_are_one(reported: dict[str, Any]) -> None:
    assert reported["heads"]["turn_lines"] == 32 + 32 * 64 // 128, "rows of a head, and of the matrix"
    assert reported["heads"]["lines"] == 32 and reported["heads"]["turns"] == 2


def test_unknown_facts_are_named(reported: dict[str, Any]) -> None:
    why = {
        "float32": "it multiplies matrices of other types than of 16 bits",
        "dynamic": "how often its loop turns depends on values",
        "branches": "it has branches",
        "twice": "it has several loops",
        "places": "it reads or writes single places",
        "sums": "it multiplies no matrices",
        "unrolled": "its loop is unrolled",
        "straight": "it has no loop",
    }
    assert {name: reported[name] for name in why} == why
