"""Findings of kernels that ran on the device of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pallas_lint.finding import Severity
from pallas_lint.probe import messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.probe.places import FindingBuilder
    from pallas_lint.probe.protocol import Difference, Ended, InInterpreter
    from pallas_lint.probe.results import LaunchResult


def findings(launch: LaunchResult, builder: FindingBuilder, guessed: str, *, explained: bool) -> Iterator[Finding]:
    """What is wrong there. `guessed`: what to do about values that were; `explained`: whether it is known why."""
    stage = launch.stage("run")
    if stage is None:
        return
    for problem in cast("list[Difference | InInterpreter | Ended]", stage.problems):
        if problem["kind"] == "mismatch":
            device = (stage.detail or "").partition(":")[0]
            # A launch without a declared device may be meant for one that runs the grid in order.
            sure = not (guessed or explained or launch.facts["targets_guessed"])
            message = f"on {device}, {problem['message']}"
            advice = guessed or "on random operands, beside interpret mode"
            yield builder.finding_at((), "PAL908", Severity.ERROR if sure else Severity.WARNING, message, advice)
        elif problem["kind"] == "out-of-bounds":
            # Unwritten memory may be read and thrown away.
            severity = Severity.WARNING if problem["type"] == "read" or guessed else Severity.ERROR
            yield builder.finding_at(problem["places"], "PAL908", severity, problem["message"], guessed)
        elif problem["kind"] == "raised":
            message = f"it fails on the local device: {messages.sentence(problem)}"
            yield builder.finding_at(problem["places"], "PAL908", Severity.ERROR, message)
        else:
            severity = Severity.ERROR if problem["kind"] == "crash" else Severity.WARNING
            message = f"it does not finish on the local device: {problem['message']}"
            yield builder.finding_at((), "PAL908", severity, message)
