"""Launches as documents of the JSON report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.probe.places import shown_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pallas_lint.finding import Finding
    from pallas_lint.probe.cost.results import Cost, FunctionCost
    from pallas_lint.probe.interleaving.report import Row
    from pallas_lint.probe.results import LaunchResult, Stage


def launch_document(launch: LaunchResult, cwd: Path) -> dict[str, Any]:
    """One launch as plain data."""
    facts, place = launch.facts, launch.place
    memory = facts.get("memory")
    document = {
        "kernel": launch.kernel,
        "path": None if place is None else shown_file(place["file"], cwd),
        "line": None if place is None else place["line"],
        "backend": launch.backend,
        "grid": facts["grid"],
        "dimension_semantics": facts.get("semantics"),
        "operands": facts["operands"],
        "memory": memory,
        "stages": [_stage(launch, stage, cwd) for stage in _with_trace(launch)],
    }
    costs = [_cost(cost, cwd) for cost in launch.costs]
    return {**document, "cost": costs} if costs else document


def function_document(cost: FunctionCost, cwd: Path) -> dict[str, Any]:
    """What a whole function costs, as plain data."""
    operations = [{**each, "path": each["path"] and shown_file(each["path"], cwd)} for each in cost["operations"]]
    return {**cost, "operations": operations}


def without_repeats(document: dict[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    """A launch's document in which stages name findings by their codes, instead of repeating them."""
    stages = [
        {**stage, "detail": stage["detail"] and _shortened(stage["detail"], findings)} for stage in document["stages"]
    ]
    return {**document, "stages": stages}


def _shortened(detail: str, findings: Sequence[Finding]) -> str:
    parts = []
    for part in detail.split("; "):
        own = part.partition(" (PAL")[0]
        known = next((each.code for each in findings if len(own) > 15 and own in each.message), None)
        parts.append(f"{known}, see above" if known is not None else part)
    return "; ".join(dict.fromkeys(parts))


def _cost(cost: Cost, cwd: Path) -> dict[str, Any]:
    lines = [{**line, "path": line["path"] and shown_file(line["path"], cwd)} for line in cost["lines"]]
    return {**{name: value for name, value in cost.items() if name != "pipeline"}, "lines": lines}


def _with_trace(launch: LaunchResult) -> list[Stage]:
    from pallas_lint.probe.results import Stage

    return [Stage("trace", None, True), *launch.stages]


def _stage(launch: LaunchResult, stage: Stage, cwd: Path) -> dict[str, Any]:
    document: dict[str, Any] = {
        "target": stage.target,
        "stage": stage.stage,
        "ok": stage.ok,
        "seconds": round(stage.seconds, 3),
        "detail": _detail(launch, stage),
    }
    if stage.figures:
        document["figures"] = stage.figures
    if stage.states is not None:
        document["states"] = stage.states
        document["trace"] = [_row(row, cwd) for row in next(iter(stage.charts), [])]
    return document


def _row(row: Row, cwd: Path) -> dict[str, Any]:
    return {**row, "path": shown_file(row["path"], cwd)} if "path" in row else {**row}


def _detail(launch: LaunchResult, stage: Stage) -> str | None:
    """Why it failed, and its other details."""
    from pallas_lint.probe import reasons

    return "; ".join(dict.fromkeys(filter(None, (reasons.why(launch, stage), stage.detail)))) or None
