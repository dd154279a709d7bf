"""What the worker told, in order and complete: launches with their stages, and what went wrong around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.probe.specs import Spec

# Stages that are shown, in order. "checks" is part of running the kernel.
STAGES = ("grid", "interpret", "checks", "lower", "compile")


@define
class Stage:
    """One stage of one launch on one target. `ok` is None where it could not be tried; `detail` says why."""

    stage: str
    target: str | None
    ok: bool | None
    seconds: float = 0.0
    detail: str | None = None
    problems: list[dict[str, Any]] = field(factory=list)
    figures: dict[str, Any] = field(factory=dict)


@define
class LaunchResult:
    """One launch: `facts` as the worker describes it."""

    facts: dict[str, Any]
    stages: list[Stage] = field(factory=list)

    @property
    def kernel(self) -> str:
        return str(self.facts["kernel"])

    @property
    def backend(self) -> str | None:
        backend: str | None = self.facts["backend"]
        return backend

    @property
    def place(self) -> dict[str, Any] | None:
        """Where it is launched; where its kernel is defined, if no frame of the user's launched it."""
        place: dict[str, Any] | None = self.facts["place"] or self.facts["kernel_place"]
        return place

    def add(self, stage: Stage) -> None:
        """A stage's outcome; a later one goes before an earlier one."""
        self.stages = [each for each in self.stages if (each.stage, each.target) != (stage.stage, stage.target)]
        self.stages.append(stage)

    def stage(self, name: str, target: str | None = None) -> Stage | None:
        return next((each for each in self.stages if (each.stage, each.target) == (name, target)), None)

    def problems(self, stage: str) -> list[dict[str, Any]]:
        return [problem for each in self.stages if each.stage == stage for problem in each.problems]


@define
class ProbeResult:
    """What came of one request. `errors` are sentences about the run itself; `trouble` an exception while tracing."""

    spec: Spec | None
    launches: list[LaunchResult] = field(factory=list)
    parts: dict[str, str | None] = field(factory=dict)
    trouble: list[dict[str, Any]] = field(factory=list)
    trouble_task: str | None = None
    errors: list[str] = field(factory=list)
    compared: dict[str, Any] | None = None  # what the comparison with a reference came to
    culprit: dict[str, Any] | None = None  # of a bisection
    files: list[str] = field(factory=list)  # of the user's own, that were imported
    modules: list[dict[str, Any]] = field(factory=list)  # what is left to be compiled by another process


def collect(
    spec: Spec | None, events: Iterable[dict[str, Any]], timeout: float, into: ProbeResult | None = None
) -> ProbeResult:
    """The result that a request's events make up; added to the result `into` of an earlier request where given."""
    result = ProbeResult(spec) if into is None else into
    found: dict[int, LaunchResult] = dict(enumerate(result.launches))
    for event in events:
        match event["event"]:
            case "parts":
                result.parts = event["parts"]
            case "files":
                result.files = event["files"]
            case "launch":
                # A fresh child describes every launch again.
                known = found.get(event["launch"])
                if known is None:
                    found[event["launch"]] = LaunchResult(event)
                else:
                    known.facts = event
            case "compile":
                result.modules.append(event)
            case "end" if "launch" in event:
                found[event["launch"]].add(
                    Stage(
                        event["stage"],
                        event["target"],
                        event["ok"],
                        event["seconds"],
                        event.get("detail"),
                        event.get("problems") or [],
                        event.get("figures") or {},
                    )
                )
            case "end" if event["task"] == "reference":
                result.compared = event
            case "culprit":
                result.culprit = event
            case "end" if not event["ok"]:
                result.trouble = event["problems"]
                result.trouble_task = event["task"]
            case "died":
                _died(event, found, result, timeout)
            case "error":
                result.errors.append(event["message"])
    result.launches = [found[at] for at in sorted(found)]
    return result


_KINDS = {"deadline": "deadline", "task-deadline": "deadline", "memory": "memory-limit", "processes": "memory-limit"}


def _died(event: dict[str, Any], found: dict[int, LaunchResult], result: ProbeResult, timeout: float) -> None:
    """A child that ended in the middle of a task: the verdict of that task, or an error of the run."""
    task: str | None = event["task"]
    stage, _, rest = (task or "").partition(":")
    number, _, target = rest.partition(":")
    how = ending(event, timeout)
    if stage in STAGES and number.isdigit() and int(number) in found:
        kind = _KINDS.get(event["reason"], "crash")
        problem = {"kind": kind, "message": how, "output": event["output"], "status": event["status"]}
        launch = found[int(number)]
        # A slow interpreter says nothing about a kernel that cannot wait for ever.
        slow = kind == "deadline" and stage in ("interpret", "checks") and not launch.facts.get("waits")
        launch.add(Stage(stage, target or None, None if slow else False, 0.0, how, [problem]))
        return
    doing = {"load": "while its file was imported", "trace": "while it was traced"}.get(stage, "")
    name = f"`{result.spec.function}`" if result.spec is not None else "the program"
    result.errors.append(f"{name}: {how} {doing}".rstrip())


def ending(event: dict[str, Any], timeout: float) -> str:
    """How a child ended, in words."""
    status = event["status"]
    if event["reason"] == "deadline":
        return f"stopped after {timeout:g} s"
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
