"""The predicted order of Triton configurations: what is counted in PTX, and how it agrees with times of an H100."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.probe.results import LaunchResult, ProbeResult, Stage
from pallas_lint.probe.tuning import combinations
from pallas_lint.probe.tuning.gpu_order import clocks
from pallas_lint.probe.worker.stages import ptx
from pallas_lint.records import evolve

HERE = Path(__file__).parent
LOOP = (HERE / "loop.ptx").read_text()
# Configurations of kernels with block sizes, warps and stages: what they come to when they are compiled without a GPU,
# and nanoseconds of an H100, as benchmarks/gpu_order.py measures them. The constants were fitted to none of them.
MEASURED: list[dict[str, Any]] = json.loads((HERE / "gpu_times.json").read_text())


def test_counts_of_a_turn_and_once() -> None:
    counted = ptx.counted(LOOP)
    assert counted is not None
    once, turn = counted
    assert turn == {
        "wgmma": 16, "mma": 2, "shared": 12 + 4 + 4 + 1, "special": 1, "shuffles": 1, "barriers": 1, "copies": 1,
        "issued": 8,
    }  # fmt: skip
    assert once == {
        "wgmma": 0, "mma": 0, "shared": 0, "special": 0, "shuffles": 0, "barriers": 0, "copies": 1, "issued": 3
    }  # fmt: skip


def test_several_loops_or_kernels_are_not_counted() -> None:
    again = "$L__BB0_2:\n\t@%p2 bra.uni \t$L__BB0_2;\n\tret;"
    assert ptx.counted(LOOP.replace("\tret;", again)) is None
    assert ptx.counted(LOOP + LOOP) is None
    assert ptx.counted("") is None


@pytest.mark.parametrize("problem", MEASURED, ids=lambda each: f"{each['kernel']} {each['arrays'][0]}")
def test_the_order_agrees_with_the_device(problem: dict[str, Any]) -> None:
    order = sorted(problem["choices"], key=lambda each: clocks(each["figures"], each["work"]) or 0)
    times = [each["nanoseconds"] for each in order]
    ranks = [sum(other < mine for other in times) for mine in times]
    assert statistics.correlation(range(len(times)), ranks) >= 0.9
    assert min(times[:3]) <= 1.1 * min(times)


@given(
    st.integers(0, 4096), st.integers(1, 4096), st.sampled_from(range(4)), st.sampled_from(["turns", "blocks", "lines"])
)
def test_more_work_takes_longer(spilled: int, more: int, at: int, what: str) -> None:
    one = MEASURED[0]["choices"][at]
    figures, work = {**one["figures"], "spilled_bytes": spilled}, one["work"]
    now = clocks(figures, work)
    assert now is not None and now > 0
    assert (clocks({**figures, "spilled_bytes": spilled + more}, work) or 0) > now
    assert (clocks(figures, {**work, what: work[what] + more}) or 0) >= now


def test_what_does_not_fit_has_no_place() -> None:
    one = MEASURED[0]["choices"][0]
    assert clocks({}, one["work"]) is None
    assert clocks({**one["figures"], "shared_bytes": 1 << 20}, one["work"]) is None


def tried(*stages: Stage) -> combinations.Trial:
    return combinations.trial_of((("bm", "64"),), ProbeResult(None, [LaunchResult(cast("Any", {}), list(stages))]))


def test_a_choice_that_compiles_has_its_place() -> None:
    one = MEASURED[0]["choices"][0]
    lowered, compiled = Stage("lower", "triton", True), Stage("compile", "triton", True, figures=one["figures"])
    assert tried(lowered, evolve(compiled, work=one["work"])).clocks == {
        "triton": clocks(one["figures"], one["work"])
    }  # fmt: skip
    for stages, why in (
        ([evolve(compiled, no_work="it has branches")], "it has branches"),
        ([compiled], "an order is predicted of Triton kernels on an H100, where ptxas is installed"),
        ([Stage("lower", "triton", None, detail="no plugin")], "no plugin"),
        ([Stage("lower", "triton", False)], "lower fails"),
    ):
        found = tried(*stages)
        assert not found.clocks and found.why == {"triton": why}


def test_a_choice_that_leaves_something_out_has_none() -> None:
    one = MEASURED[0]["choices"][0]
    uncovered = Stage("grid", None, False, problems=[cast("Any", {"kind": "uncovered", "operand": "o"})])
    found = tried(uncovered, Stage("compile", "triton", True, figures=one["figures"], work=one["work"]))
    assert not found.clocks and found.why == {"triton": "part of the output is never written"}
