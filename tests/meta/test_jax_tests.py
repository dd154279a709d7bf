"""The list of what was found in jax's own tests: every line of it was judged, and findings are known by it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tools.jax_tests import run

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
class SomeTest:
    def test_one(self):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]

def helper():
    pass
"""


def entries() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(run.LIST.read_text(encoding="utf-8"))
    return found


def test_every_finding_was_judged() -> None:
    assert Counter(entry["verdict"] for entry in entries()).keys() <= {"true", "wanted", "contested", "false"}
    assert [entry for entry in entries() if entry["verdict"] in ("false", "contested") and not entry["why"]] == []


def test_every_finding_is_there_once_and_of_a_suite_that_runs() -> None:
    keys = [tuple(entry[name] for name in run.KEY) for entry in entries()]
    assert len(set(keys)) == len(keys)
    assert {entry["suite"] for entry in entries()} <= set(run.SUITES)


@pytest.mark.parametrize(
    ("line", "function"), [(5, "SomeTest.test_one"), (3, "SomeTest.test_one"), (8, "helper"), (1, "")]
)
def test_a_finding_is_known_by_the_function_around_it(tmp_path: Path, line: int, function: str) -> None:
    (tmp_path / "some_test.py").write_text(SOURCE)
    finding: dict[str, Any] = {
        "path": "some_test.py", "start": {"line": line}, "kernel": None, "code": "PAL907", "severity": "error",
    }  # fmt: skip
    key = run.key_of(finding, "pallas", tmp_path)
    assert key == ("pallas", "some_test.py", function, "", "PAL907", "error")
