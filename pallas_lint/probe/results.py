"""Results of a probe, put together from the worker's events: launches with their stages, and errors around them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Literal, cast

from pallas_lint.probe.cost.results import TOO_LARGE
from pallas_lint.probe.messages import is_of_memory, sentence, without_internals, wrong_flags
from pallas_lint.probe.protocol import CHECKS, Facts, Problem
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pallas_lint.probe.cost.results import Cost, FunctionCost, OperationCost
    from pallas_lint.probe.interleaving.report import Row
    from pallas_lint.probe.protocol import (
        BlockWork,
        Checked,
        Culprit,
        Died,
        Ended,
        Event,
        GridProblem,
        LeftToCompile,
        OnDevices,
        Place,
        RunProblem,
        StageEnd,
        TargetProblem,
        TaskEnd,
    )
    from pallas_lint.probe.specs import Spec

# Stages that are shown, in order. "checks" is part of running the kernel.
STAGES = ("grid", "lower", "compile", "verify", "interpret", "checks", "run")


@define
class Stage:
    """One stage of one launch on one target. `ok` is None where it could not be tried, for the reason in `detail`."""

    stage: str
    target: str | None
    ok: bool | None
    seconds: float = 0.0
    detail: str | None = None
    problems: list[Problem] = field(factory=list)
    figures: dict[str, int] = field(factory=dict)
    work: BlockWork | None = None  # of a GPU kernel
    no_work: str | None = None
    states: int | None = None  # steps of devices that were looked at
    unreached: bool = False  # because time ran out

    @property
    def charts(self) -> list[list[Row]]:
        """Runs that show what goes wrong on several devices."""
        on_devices = cast("list[OnDevices]", [problem for problem in self.problems if problem.get("trace")])
        return [problem["trace"] for problem in on_devices]

    @property
    def of_target(self) -> list[TargetProblem]:
        """What went wrong in lowering or compiling."""
        return cast("list[TargetProblem]", self.problems)


def types_of(launch: Mapping[str, Any]) -> str:
    """The types of a launch's operands, given its facts or its document."""
    return ", ".join(f"{each['dtype']}{each['shape']}".replace(" ", "") for each in launch["operands"])


def signature_of(launch: Mapping[str, Any]) -> str:
    """What distinguishes a launch from others of its kernel at its line, given its facts or its document."""
    blocks = [each.get("block") for each in launch["operands"]]
    return f"({types_of(launch)}) {launch['grid']} {blocks}"


@define
class LaunchResult:
    """One launch: `facts` as the worker describes it."""

    facts: Facts
    stages: list[Stage] = field(factory=list)
    costs: list[Cost] = field(factory=list)  # by target
    model: str | None = None  # in Promela, where that was requested

    @property
    def kernel(self) -> str:
        return self.facts["kernel"]

    @property
    def backend(self) -> str | None:
        return self.facts["backend"]

    @property
    def place(self) -> Place | None:
        """Where it is launched; where its kernel is defined, if no frame of the user's launched it."""
        return self.facts["place"] or self.facts["kernel_place"]

    def add(self, stage: Stage) -> None:
        """A stage's outcome; a later one goes before an earlier one."""
        self.stages = [each for each in self.stages if (each.stage, each.target) != (stage.stage, stage.target)]
        self.stages.append(stage)

    def stage(self, name: str, target: str | None = None) -> Stage | None:
        return next((each for each in self.stages if (each.stage, each.target) == (name, target)), None)

    @property
    def goes_on(self) -> bool:
        """Whether stages are still to come."""
        return any(self.stage(name, target) is None for name, target in self.facts.get("stages", ()))

    # Kinds are distinct within a stage.

    @property
    def of_grid(self) -> list[GridProblem]:
        return cast("list[GridProblem]", self._problems("grid"))

    @property
    def of_running(self) -> list[RunProblem]:
        return cast("list[RunProblem]", self._problems("interpret"))

    @property
    def of_checks(self) -> list[Checked]:
        """Failures of checkify; an exception on the way is not about the kernel."""
        checked = (problem for problem in self._problems("checks") if problem["kind"] in CHECKS)
        return cast("list[Checked]", list(checked))

    def _problems(self, stage: str) -> list[Problem]:
        return [problem for each in self.stages if each.stage == stage for problem in each.problems]


@define
class ProbeResult:
    """What came of one request. `errors` are sentences about the run itself; `trouble` an exception while tracing."""

    spec: Spec | None
    launches: list[LaunchResult] = field(factory=list)
    parts: dict[str, str | None] = field(factory=dict)
    trouble: list[Problem] = field(factory=list)
    trouble_task: str | None = None
    refusals: dict[str, list[Problem]] = field(factory=dict)  # of the same kind, for one target of several
    errors: list[str] = field(factory=list)
    functions: list[FunctionCost] = field(factory=list)  # what the whole function costs, by target
    compared: TaskEnd | None = None  # what the comparison with a reference came to
    culprit: Culprit | None = None  # of a bisection
    files: list[str] = field(factory=list)  # of the user's own, that were imported
    kept: bool = False  # of an earlier run, not of this one
    modules: list[LeftToCompile] = field(factory=list)  # what is left to be compiled by another process


def judged_for(results: Iterable[ProbeResult]) -> list[str]:
    """The targets that something was lowered or compiled for, and the jax that did it."""
    targets, versions = set(), set()
    for result in results:
        stages = [stage for launch in result.launches for stage in launch.stages]
        targets |= {stage.target for stage in stages if stage.target and stage.ok is not None}
        versions |= {f"jax {result.parts['jax']}"} if stages and result.parts.get("jax") else set()
    return [*sorted(targets), *sorted(versions)]


def newer_than_known(results: Iterable[ProbeResult]) -> list[str]:
    """A note on each jax that is newer than every known one."""
    from pallas_lint.compat import versions

    newest = versions.newest()
    found = sorted({str(result.parts["jax"]) for result in results if result.parts.get("jax")})
    return [
        f"jax {each} is newer than {newest}, the newest version known"
        for each in found
        if versions.parse(each) > versions.parse(newest)
    ]


def collect(
    spec: Spec | None, events: Iterable[Event], timeout: float, into: ProbeResult | None = None,
    ended: Callable[[ProbeResult], None] = lambda _: None,
) -> ProbeResult:  # fmt: skip
    """The result that a request's events make up; added to the result `into` of an earlier request where given.

    `ended` is called with the result so far whenever a stage of a launch has ended.
    """
    result = ProbeResult(spec) if into is None else into
    found: dict[int, LaunchResult] = dict(enumerate(result.launches))
    for event in events:
        if event["event"] == "parts":
            result.parts = event["parts"]
        elif event["event"] == "files":
            result.files = event["files"]
        elif event["event"] == "launch":
            # A fresh child describes every launch again.
            known = found.get(event["launch"])
            if known is None:
                found[event["launch"]] = LaunchResult(event)
            else:
                known.facts = event
        elif event["event"] == "compile":
            result.modules.append(event)
        elif event["event"] == "end":
            if "launch" in event:
                _stage_ended(event, found)
                result.launches = [found[at] for at in sorted(found)]
                ended(result)
            else:
                _task_ended(event, result)
        elif event["event"] == "culprit":
            result.culprit = event
        elif event["event"] == "died":
            _died(event, found, result, timeout)
        elif event["event"] == "error":
            result.errors.append(event["message"])
    result.launches = [found[at] for at in sorted(found)]
    result.functions = [_with_launches(cost, result.launches) for cost in result.functions]
    return result


def _stage_ended(event: StageEnd, found: dict[int, LaunchResult]) -> None:
    if event["stage"] == "cost":
        if "cost" in event:
            found[event["launch"]].costs.append(_with_reason(event["cost"], found[event["launch"]]))
        return
    detail = event.get("detail")
    stage = Stage(event["stage"], event["target"], event["ok"], event["seconds"], detail and without_internals(detail))
    stage.problems, stage.figures = event.get("problems") or [], event.get("figures") or {}
    stage.work, stage.no_work = event.get("work"), event.get("no_work")
    stage.states, stage.unreached = event.get("states"), event.get("unreached", False)
    launch = found[event["launch"]]
    launch.model = event.get("model", launch.model)
    launch.add(stage)


def _with_reason(cost: Cost, launch: LaunchResult) -> Cost:
    """The message of a cost without a number, from the stage that failed."""
    stages = (launch.stage(name, cost["target"]) for name in ("lower", "compile"))
    failed = next((stage for stage in stages if stage is not None and stage.ok is False), None)
    if cost["microseconds"] is not None or failed is None:
        return cost
    short = any(is_of_memory(problem, failed.stage) for problem in failed.problems)
    return {**cost, "doubts": [TOO_LARGE if short else f"it does not {failed.stage}"]}


def _task_ended(event: TaskEnd, result: ProbeResult) -> None:
    if event["task"] == "reference":
        result.compared = event
    elif "function" in event:
        result.functions.append(event["function"])
    elif event["task"].startswith("function:"):
        result.functions.append(_unknown(result, event["task"], event.get("detail") or _why_not(event)))
    elif event["task"].startswith("trace:"):
        result.refusals[event["task"].partition(":")[2]] = event.get("problems") or []
    elif not event["ok"]:
        result.trouble = event.get("problems") or []
        result.trouble_task = event["task"]


def _why_not(event: TaskEnd) -> str:
    """Why a whole function was not compiled."""
    problems = event.get("problems") or []
    if any(is_of_memory(problem, "compile") for problem in problems):
        return TOO_LARGE
    words = next((sentence(problem) for problem in problems if problem["kind"] == "raised"), "")
    return f"it is not compiled: {words}" if words else "it is not compiled"


def _unknown(result: ProbeResult, task: str, why: str) -> FunctionCost:
    """The cost of a function that has no number."""
    return {
        "function": result.spec.function if result.spec is not None else "",
        "target": task.partition(":")[2],
        "microseconds": None, "low": None, "high": None, "kernels": 0.0, "xla": 0.0, "missing": [why],
        "doubts": [], "operations": [], "against": None, "compiler": "",
    }  # fmt: skip


_EACH_ONCE = "kernels: each launch once, as it costs by itself"


def _with_launches(cost: FunctionCost, launches: Sequence[LaunchResult]) -> FunctionCost:
    """The cost of a function that could not be compiled as a whole, with what is known of its launches."""
    if cost["microseconds"] is not None or cost["compiler"]:
        return cost
    costs = [(launch, each) for launch in launches for each in launch.costs if each["target"] == cost["target"]]
    known = [(launch, each["microseconds"]) for launch, each in costs if each["microseconds"] is not None]
    if not known:
        return cost
    unknown = [
        f"{launch.kernel}: {'; '.join(each['doubts'])}" for launch, each in costs if each["microseconds"] is None
    ]
    operations: list[OperationCost] = [
        {"name": launch.kernel, "kernel": True, "microseconds": took,
         "path": launch.place["file"] if launch.place else None, "line": launch.place["line"] if launch.place else 0}
        for launch, took in sorted(known, key=lambda each: -each[1])
    ]  # fmt: skip
    return {
        **cost, "kernels": sum(took for _, took in known), "doubts": [_EACH_ONCE], "operations": operations,
        "missing": list(dict.fromkeys([*cost["missing"], *unknown])),
    }  # fmt: skip


_KINDS: dict[str, Literal["deadline", "memory-limit"]] = {
    "deadline": "deadline",
    "task-deadline": "deadline",
    "waiting": "deadline",
    "memory": "memory-limit",
    "processes": "memory-limit",
}


def _died(event: Died, found: dict[int, LaunchResult], result: ProbeResult, timeout: float) -> None:
    """A child that ended in the middle of a task: the verdict of that task, or an error of the run."""
    task: str | None = event["task"]
    stage, _, rest = (task or "").partition(":")
    number, _, target = rest.partition(":")
    how = ending(event, timeout)
    if stage in STAGES and number.isdigit() and int(number) in found:
        kind: Literal["crash", "deadline", "memory-limit"] = _KINDS.get(event["reason"], "crash")
        problem: Ended = {"kind": kind, "message": how, "output": event["output"], "status": event["status"]}
        launch = found[int(number)]
        # A slow interpreter is no sign of a defect: only one that waits is.
        waits = event["reason"] == "waiting" and launch.facts.get("waits")
        slow = kind == "deadline" and stage in ("interpret", "checks") and not waits
        # Nor is it one that there is more to check than there is memory for.
        unjudged = (stage == "verify" and kind != "crash") or event.get("schedules", False)
        if slow:
            steps = prod(launch.facts["grid"] or ())
            how = f"{how}: about {steps:,} steps; a longer `--timeout` or smaller shapes"
        if event.get("schedules"):
            how = f"{how}, as writing schedules had; a longer `--timeout`, or no `--perf`"
        detail = f"not judged: {how}" if unjudged or slow else how
        problems: list[Problem] = [] if slow or event.get("schedules") else [problem]
        launch.add(
            Stage(stage, target or None, None if slow or unjudged else False, 0.0, detail, problems, unreached=slow)
        )
        return
    if stage == "function" and task is not None:
        slow = _KINDS.get(event["reason"]) == "deadline"
        result.functions.append(_unknown(result, task, f"{how}; a longer `--timeout`" if slow else how))
        return
    doing = {"load": "its file was imported", "trace": "it was traced", "cost": "its cost was predicted"}.get(stage)
    name = f"`{result.spec.function}`" if result.spec is not None else "the program"
    flags = wrong_flags(event["output"])
    result.errors.append(f"{name}: {flags}" if flags else f"{name}: {how}{f' while {doing}' if doing else ''}")


def ending(event: Died, timeout: float) -> str:
    """How a child ended, in words."""
    status = event["status"]
    if event["reason"] == "deadline":
        return f"stopped after {timeout:g} s"
    if event["reason"] == "waiting":
        return "stopped: it waits, and nothing runs that would end that"
    if event["reason"] == "task-deadline":
        return "stopped: it took too long"
    if event["reason"] == "memory":
        return "stopped: it took more memory than --memory-limit allows"
    if event["reason"] == "processes":
        return "stopped: it started more than a hundred processes"
    if status is None:
        return "the worker process ended"
    if status < 0:
        import signal

        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the process was ended by {name}"
    return f"the process ended itself with status {status}"


def complete(launches: Iterable[LaunchResult], reason: str) -> None:
    """Add to each launch the stages that it was to go through and did not reach, and bring all into one order."""
    for launch in launches:
        for name, target in launch.facts.get("stages", ()):
            if launch.stage(name, target) is None:
                lowered = launch.stage("lower", target) if name == "compile" else None
                refused = lowered is not None and lowered.ok is False
                detail = "it does not lower" if refused else reason
                launch.add(Stage(name, target, None, detail=detail, unreached=not refused))
        targets = list(dict.fromkeys(target for _, target in launch.facts.get("stages", ())))
        launch.stages.sort(key=lambda stage: _place(stage, targets))


def _place(stage: Stage, targets: Sequence[str | None]) -> tuple[int, int, int]:
    at = STAGES.index(stage.stage) if stage.stage in STAGES else len(STAGES)
    if stage.target is not None:
        return 1, targets.index(stage.target) if stage.target in targets else len(targets), at
    return 0 if stage.stage == "grid" else 2, 0, at


@define
class RequestedStages:
    """What the user requested by name: stages, and targets to lower and compile for."""

    stages: Collection[str] = ()
    targets: Collection[str] = ()

    def unjudged(self, launches: Iterable[LaunchResult]) -> Iterator[str]:
        """As text, each requested stage that could not be judged, or for which there was no time."""
        for launch in launches:
            for stage in launch.stages:
                requested = stage.unreached or stage.stage in self.stages or stage.target in self.targets
                if stage.ok is None and requested and not _is_refused(launch, stage):
                    where = f" for {stage.target}" if stage.target else ""
                    why = (stage.detail or "").removeprefix("not judged: ")
                    yield f"{stage.stage}{where} of `{launch.kernel}`{f': {why}' if why else ''}"


def _is_refused(launch: LaunchResult, stage: Stage) -> bool:
    """Whether it is a stage after one that failed."""
    lowered = launch.stage("lower", stage.target)
    return stage.stage == "compile" and lowered is not None and lowered.ok is False
