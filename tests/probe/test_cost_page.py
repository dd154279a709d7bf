"""What the report says of costs, read as people read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.probe.cost_report import page, whole_function
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.page.html import document
from pallas_lint.probe.results import LaunchResult, ProbeResult
from pallas_lint.probe.specs import parse_target
from pallas_lint.report.style import Style

if TYPE_CHECKING:
    from pathlib import Path


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
    reported = cells(page.section(launch, lambda *_: None, lambda path, line: f"{path}:{line}"))
    assert reported[:2] == [["", "tpu:v5e", "tpu:v6e"], ["predicted", "27 µs", "27 µs"]]
    assert [row[-1] for row in reported if "_ref" in row[0]] == ["4 times", "once"]


def operation(name: str, microseconds: float, line: int) -> Any:
    return {
        "name": name,
        "kernel": line > 0,
        "microseconds": microseconds,
        "path": "k.py" if line else None,
        "line": line,
    }


def function(**changes: Any) -> Any:
    operations = [operation("copy", 7.0, 0), operation("add.1", 2.0, 9), operation("tiny", 0.01, 0)]
    against = {"function": "plain", "microseconds": 4.0, "low": 3.5, "high": 4.5, "missing": [], "doubts": []}
    return {"function": "f", "target": "tpu:v5e", "microseconds": 9.01, "low": 8.0, "high": 10.0, "kernels": 2.0,
            "xla": 7.01, "missing": [], "doubts": ["timed roughly"], "operations": operations, "against": against,
            "compiler": "", **changes}  # fmt: skip


TOTALS = """\
f on tpu:v5e: 9.01 µs (8 µs to 10 µs); kernels 2 µs, XLA around them 7.01 µs
  timed roughly
    78%  XLA     copy
    22%  kernel  add.1  k.py:9
                 27 µs by itself, with operands and results in HBM: here XLA keeps some in VMEM
  plain: 4 µs (3.5 µs to 4.5 µs), 2.25 times as fast"""


def launched(line: int, *costs: Any) -> dict[str, Any]:
    return {"path": "k.py", "line": line, "cost": list(costs)}


@pytest.mark.parametrize(
    ("launches", "explained"),
    [
        ([launched(9, cost("tpu:v5e"))], True),
        ([launched(9, cost("tpu:v6e"))], False),
        ([launched(8, cost("tpu:v5e"))], False),
        ([launched(9, {**cost("tpu:v5e"), "microseconds": 2.1})], False),
        ([launched(9, {**cost("tpu:v5e"), "microseconds": None})], False),
        ([launched(9, cost("tpu:v5e")), launched(9, cost("tpu:v5e"))], False),  # which of them is not known
        ([], False),
    ],
)
def test_totals_and_kernels_that_take_less_than_by_themselves(launches: list[Any], explained: bool) -> None:
    lines = TOTALS.split("\n")
    wanted = lines if explained else [line for line in lines if "by itself" not in line]
    assert list(whole_function.paragraphs([function()], launches, Style())) == ["\n".join(wanted)]


def test_what_has_a_number_where_there_is_no_total() -> None:
    sort: dict[str, Any] = {"name": "sort", "kernel": False, "microseconds": 1.5, "path": None, "line": 0}
    found = function(
        microseconds=None, kernels=0.0, xla=2.0, missing=["add.1: why"], doubts=[], operations=[sort], against=None
    )
    lines = """\
f on tpu:v5e: no total; what has a number: XLA around them 2 µs
  no number: add.1: why
  1.5 µs  XLA     sort
  500 ns  all others"""
    assert list(whole_function.paragraphs([found], [], Style())) == [lines]
    nothing = function(microseconds=None, kernels=0.0, xla=0.0, missing=["add.1: why"], operations=[], against=None)
    assert next(iter(whole_function.paragraphs([nothing], [], Style()))).split("\n")[0] == "f on tpu:v5e: no total"


def test_a_slower_function_is_reported_where_it_is_defined(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import jax\n\n\n@jax.jit\ndef f(x):\n    return x\n")
    result = ProbeResult(parse_target("k.py::f", []), functions=[function()])
    ((found,), _) = findings_of(result, tmp_path, lambda *_: "def f(x):")
    assert (found.code, found.span.path, found.span.start.line, found.kernel) == ("PAL812", "k.py", 5, None)


def test_totals_come_first_on_the_page() -> None:
    result = ProbeResult(
        None, functions=[function(), function(microseconds=None, missing=["sort: <none>"], against=None)]
    )
    text = document([result], [], lambda *_: None)
    assert text.index("Whole functions") < text.index("no total; what has a number: kernels ")
    assert "no number: sort: &lt;none&gt;" in text
    assert cells(text)[:3] == [["share", "of", "operation"], ["78%", "XLA", "copy "], ["22%", "kernel", "add.1 k.py:9"]]
