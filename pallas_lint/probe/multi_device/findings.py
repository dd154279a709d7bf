"""Findings about kernels on several devices: defects in some order of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pallas_lint.finding import Related, Severity
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.probe.places import FindingBuilder
    from pallas_lint.probe.protocol import OnDevices, Place
    from pallas_lint.probe.results import LaunchResult

# By kind: code, severity where it is sure and where it is not, what to do.
_FINDINGS = {
    "deadlock": ("PAL910", Severity.ERROR, Severity.WARNING, ""),
    "device-race": (
        "PAL911", Severity.ERROR, Severity.WARNING, "wait for the copy, or signal the other side, between the two",
    ),
    "alike": (
        "PAL911", Severity.WARNING, Severity.WARNING, "let one of them write, or signal the other one between the two",
    ),
    "unfinished": (
        "PAL911", Severity.ERROR, Severity.WARNING,
        "wait for both ends of a copy before the kernel ends: `wait_send` and `wait_recv`, or `wait`",
    ),
    "left-over": (
        "PAL912", Severity.WARNING, Severity.WARNING,
        "wait for all that is signalled: the next kernel that is given this semaphore takes it for its own",
    ),
    "past-end": (
        "PAL412", Severity.ERROR, Severity.ERROR, "a copy is not cut off at the end of its buffer: check the index",
    ),
    "outside": ("PAL912", Severity.ERROR, Severity.ERROR, "take it modulo the size of the axis: `lax.rem(i, n)`"),
    "overrun": (
        "PAL912", Severity.WARNING, Severity.WARNING,
        "declare it with all that arrive between two waits (`num_arrivals`), or arrive only after the wait before",
    ),
    "unfenced": (
        "PAL416", Severity.WARNING, Severity.WARNING,
        "call the fence after the last write, in the warpgroup that writes, before it signals the others",
    ),
    "too-early": (
        "PAL912", Severity.WARNING, Severity.WARNING,
        "have the barrier wait for every device that this one writes to, or that may be a launch behind",
    ),
}  # fmt: skip


# The same for GPUs, where that is another.
_ON_GPU = {
    "unfinished": "wait for it first: `barrier_wait`, `wait_smem_to_gmem(0)` or `wgmma_wait(0)`",
    "deadlock": "each wait takes as many arrivals as the barrier was declared with: `plgpu.Barrier(num_arrivals=...)`",
}


def problems(launch: LaunchResult) -> list[OnDevices]:
    """The problems from verification, or from the interpreter where verification could not run."""
    stage = launch.stage("verify" if _is_verified(launch) else "interpret")
    found = [problem for problem in stage.problems if problem["kind"] in _FINDINGS] if stage is not None else []
    return cast("list[OnDevices]", found)


def _is_verified(launch: LaunchResult) -> bool:
    verified = launch.stage("verify")
    return verified is not None and verified.ok is not None


def findings(launch: LaunchResult, builder: FindingBuilder, guessed: str) -> Iterator[Finding]:
    """One for each problem; a warning at most, with a note, where it depends on values that were `guessed`."""
    for problem in problems(launch):
        _, sure, unsure, advice = _FINDINGS[problem["kind"]]
        code = code_of(launch, problem)
        severity = sure if problem["sure"] else unsure
        backend = launch.facts["backend"] or "tpu"
        if backend == "mosaic_gpu":
            advice = _ON_GPU.get(problem["kind"], advice)
        equal = _values_are_equal(launch) if problem["kind"] == "alike" else None
        if equal is not None:
            severity = Severity.INFO if equal else Severity.ERROR
            advice = f"in the interpreter both write {'the same values' if equal else 'different values'}"
        # Verification makes no values up: they are known, or both branches are taken.
        on_values = problem["kind"] == "alike" or problem.get("on_data") or not _is_verified(launch)
        if guessed and on_values and severity is Severity.ERROR:
            severity, advice = Severity.WARNING, guessed
        finding = builder.finding_at(problem["places"], code, severity, problem["message"], advice, backend=backend)
        others = [builder.places.span(place, finding.span.path) for place in problem["places"][1:]]
        word = "waits for ever, too" if problem["kind"] == "deadlock" else "the other one"
        known = {(each.span.path, each.span.start.line) for each in finding.related}
        more = [
            Related(span, word) for span in others if span != finding.span and (span.path, span.start.line) not in known
        ]
        yield evolve(finding, related=(*more, *finding.related))


def _values_are_equal(launch: LaunchResult) -> bool | None:
    """Whether writes that race in the interpreter write the same there, all of them; None where none race."""
    seen = [bool(problem.get("equal")) for problem in launch.of_running if problem["kind"] == "race"]
    return all(seen) if seen else None


def explains(launch: LaunchResult) -> dict[str, str]:
    """What of an interpreter's findings has its cause in these: `*` (what is NaN) and `race`, with the cause's code."""
    found: dict[str, str] = {}
    for problem in problems(launch):
        if problem["kind"] in ("device-race", "unfinished"):
            found.setdefault("*", code_of(launch, problem))  # what is read too early is NaN there
        if problem["kind"] in ("device-race", "alike", "deadlock", "overrun", "unfinished", "unfenced"):
            found.setdefault("race", code_of(launch, problem))
    return found


def copies_past_the_end(launch: LaunchResult, places: Iterable[Place]) -> bool:
    """Whether verification names a copy that leaves its buffer at one of these places.

    Also true where no place is inside of the kernel: an interpreter of several devices names only the launch.
    """
    named = {_line_of(place) for problem in problems(launch) if problem["kind"] == "past-end"
             for place in problem["places"]}  # fmt: skip
    seen = {_line_of(place) for place in places} - ({_line_of(launch.place)} if launch.place else set())
    return bool(named) and (not seen or bool(seen & named))


def _line_of(place: Place) -> tuple[str, int]:
    return place["file"], place["line"]


def code_of(launch: LaunchResult, problem: OnDevices) -> str:
    """The code of a problem's finding."""
    code = _FINDINGS[problem["kind"]][0]
    return "PAL905" if code == "PAL911" and not launch.facts["axes"] else code  # the same on one device
