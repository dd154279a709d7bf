"""What the report says of costs, read as people read it."""

from __future__ import annotations

import re
from typing import Any

from pallas_lint.probe.perf import page
from pallas_lint.probe.results import LaunchResult


def cost(target: str) -> Any:
    return {
        "target": target, "microseconds": 27.0, "low": 22.5, "high": 33.6, "bound": "latency",
        "cycles": {"issue": 100, "stall": 0}, "steps": 64, "spills": 0.0,
        "bytes": {"read": 8, "written": 1, "ideal": 3}, "units": {"mxu": 0.05},
        "lines": [], "doubts": [], "compiler": "libtpu 0.0.50.1", "cores": 1,
        "pipeline": {"copies": [], "waits": []},
    }  # fmt: skip


def cells(html: str) -> list[list[str]]:
    """The rows of all tables, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)] for row in rows]


def test_a_column_for_each_target_and_how_often_operands_are_moved() -> None:
    traffic = [
        {"operand": "x_ref", "role": "in", "moved": 4 << 20, "ideal": 1 << 20},
        {"operand": "o_ref", "role": "out", "moved": 1 << 20, "ideal": 1 << 20},
    ]
    facts: Any = {"causes": {"traffic": traffic}}
    launch = LaunchResult(facts, costs=[cost("tpu:v5e"), cost("tpu:v6e")])
    told = cells(page.section(launch, lambda *_: None, lambda path, line: f"{path}:{line}"))
    assert told[:2] == [["", "tpu:v5e", "tpu:v6e"], ["predicted", "27 µs", "27 µs"]]
    assert [row[-1] for row in told if "_ref" in row[0]] == ["4 times", "once"]
