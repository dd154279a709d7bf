"""Why a launch or a function has no number, in the words of the stage that failed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pallas_lint.probe.results import ProbeResult, collect
from pallas_lint.probe.tuning import combinations
from pallas_lint.probe.worker.stages import cost, whole_function

V5E = "tpu:v5e"
FOUND_BY_THE_COMPILER = {
    "kind": "raised",
    "type": "JaxRuntimeError",
    "message": "CompileTimeScopedVmemOom: Scoped allocation with size 24.00M and limit 16.00M",
    "places": [],
    "in_index_map": False,
    "in_launch": True,
}
KNOWN_BEFORE = {"kind": "memory", "space": "vmem", "bytes": 25 << 20, "limit": 16 << 20, "target": V5E, "parts": []}
OTHER = {**FOUND_BY_THE_COMPILER, "message": "Mosaic failed to compile TPU kernel"}
CRASH = {"kind": "crash", "message": "the process was ended by SIGSEGV", "output": "", "status": -11}
TOO_LARGE = "it needs more memory than there is"


def ended(stage: str, ok: bool | None, **more: Any) -> dict[str, Any]:
    return {"event": "end", "task": f"{stage}:0:{V5E}", "launch": 0, "stage": stage, "target": V5E, "ok": ok,
            "seconds": 0.0, **more}  # fmt: skip


def probed(failed: str, problem: dict[str, Any]) -> ProbeResult:
    cost = {"target": V5E, "microseconds": None, "doubts": ["it does not compile"]}
    events = [
        {"event": "launch", "launch": 0, "kernel": "kernel"},
        ended(failed, False, problems=[problem]),
        ended("cost", True, cost=cost),
    ]
    return collect(None, cast("Any", events), 60.0)


@pytest.mark.parametrize(
    ("failed", "problem", "doubt"),
    [
        ("compile", FOUND_BY_THE_COMPILER, TOO_LARGE),
        ("compile", KNOWN_BEFORE, TOO_LARGE),
        ("compile", OTHER, "it does not compile"),
        ("lower", OTHER, "it does not lower"),
        ("compile", CRASH, "it does not compile"),
    ],
)
def test_a_launch_that_fails_has_no_cost_for_the_reason_of_its_stage(
    failed: str, problem: dict[str, Any], doubt: str
) -> None:
    (launch,) = probed(failed, problem).launches
    assert [cost["doubts"] for cost in launch.costs] == [[doubt]]


@pytest.mark.parametrize("problem", [FOUND_BY_THE_COMPILER, KNOWN_BEFORE])
def test_a_choice_that_is_too_large_says_so_whatever_found_it(problem: dict[str, Any]) -> None:
    assert combinations.trial_of((), probed("compile", problem)).why == {V5E: "more VMEM than there is"}


@pytest.mark.parametrize(
    ("problems", "missing"),
    [([FOUND_BY_THE_COMPILER], TOO_LARGE), ([OTHER], f"it is not compiled: {OTHER['message']}"), ([], None)],
)
def test_a_function_that_is_not_compiled(problems: list[Any], missing: str | None) -> None:
    detail = None if missing else "left to another process"
    event = {"event": "end", "task": f"function:{V5E}", "ok": False, "seconds": 0.0, "problems": problems,
             "detail": detail}  # fmt: skip
    (function,) = collect(None, cast("Any", [event]), 60.0).functions
    assert function["missing"] == [missing or detail]


def test_a_compiler_that_was_too_slow_with_schedules_says_nothing_about_the_kernel() -> None:
    launch = {"event": "launch", "launch": 0, "kernel": "kernel"}
    died = {"event": "died", "task": f"compile:0:{V5E}", "reason": "task-deadline", "status": -9, "output": "",
            "schedules": True}  # fmt: skip
    (found,) = collect(None, cast("Any", [launch, died]), 60.0).launches
    stage = found.stage("compile", V5E)
    assert stage is not None and (stage.ok, stage.problems) == (None, [])
    assert "no `--perf`" in (stage.detail or "")


def test_a_function_without_a_total_has_what_its_launches_cost() -> None:
    """Each once; those that have no cost either say why."""
    place = {"file": "kernels.py", "line": 7}
    cost = {"target": V5E, "microseconds": 3.0, "doubts": []}
    events = [
        *({"event": "launch", "launch": at, "kernel": name, "place": place, "times": 2}
          for at, name in enumerate(("first", "second", "third"))),
        {"event": "died", "task": f"function:{V5E}", "reason": "task-deadline", "status": -9, "output": ""},
        ended("cost", True, cost=cost),
        {**ended("cost", True, cost={**cost, "microseconds": 5.0}), "launch": 1},
        {**ended("cost", True, cost={**cost, "microseconds": None, "doubts": ["it waits"]}), "launch": 2},
    ]  # fmt: skip
    (function,) = collect(None, cast("Any", events), 60.0).functions
    assert (function["microseconds"], function["kernels"], function["xla"]) == (None, 8.0, 0.0)
    assert function["missing"] == ["stopped: it took too long; a longer `--timeout`", "third: it waits"]
    assert function["doubts"] == ["kernels: each launch once, as it costs by itself"]
    assert [(each["name"], each["microseconds"]) for each in function["operations"]] == [
        ("second", 5.0),
        ("first", 3.0),
    ]
    assert {(each["path"], each["line"]) for each in function["operations"]} == {("kernels.py", 7)}


LONG = "attention_block_q_512_" * 10


@pytest.mark.parametrize(
    ("operation", "written", "found"),
    [
        ("add.1", ["add.1", "add"], "add.1"),
        ("add.1", ["add"], None),
        (f"{LONG}.1", [f"{LONG[:190]}-5315294559034365742"], f"{LONG[:190]}-5315294559034365742"),
        (f"{LONG}.1", [f"{LONG[:190]}-1", f"{LONG[:190]}-2"], None),
        ("other", [f"{LONG[:190]}-1"], None),
    ],
)
def test_names_of_schedules(operation: str, written: list[str], found: str | None) -> None:
    assert cost.named(operation, dict.fromkeys(written, "")) == found


@pytest.mark.parametrize(
    ("operands", "found"),
    [
        (["f32[8,128]{1,0}", "s32[]{:T(128)}", "u32[]"], [{1: [0], 2: [0]}]),
        (["s32[4]{0}", "pred[]{:T(512)S(6)}"], [{1: [0]}, {1: [1]}]),
        (["f32[]", "pred[8]"], [{}]),
    ],
)
def test_scalars_of_operations_of_xla(operands: list[str], found: list[dict[int, list[int]]]) -> None:
    assert whole_function.guesses(operands) == found
