"""Findings from the worker's events: one per cause, at the user's line, with the code of its rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pallas_lint.finding import Finding, LintError, Severity
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.probe import messages, reasons
from pallas_lint.probe.chip_memory import stays_in_hbm
from pallas_lint.probe.cost_report import cost_findings, occupancy, whole_function
from pallas_lint.probe.multi_device import findings as mesh
from pallas_lint.probe.places import FindingBuilder, Places, place_of
from pallas_lint.probe.reasons import tuple_text
from pallas_lint.probe.results import Stage
from pallas_lint.probe.running import local_device, not_a_number
from pallas_lint.records import define, evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pallas_lint.probe.protocol import (
        Checked,
        Ended,
        InInterpreter,
        NotANumber,
        OutOfRange,
        OverBudget,
        ParallelWrites,
        Place,
        Race,
        Raised,
        Revisited,
        Shared,
        Uncovered,
    )
    from pallas_lint.probe.results import LaunchResult, ProbeResult
    from pallas_lint.probe.specs import Spec

_FALLBACK = {"trace": "PAL901", "lower": "PAL902", "compile": "PAL903"}


def all_findings(
    results: Iterable[ProbeResult], cwd: Path, line: Callable[[str, int], str | None]
) -> tuple[list[Finding], list[LintError]]:
    """The findings and errors of several probes, each once."""
    findings: dict[Finding, Finding] = {}
    errors: list[LintError] = []
    for result in results:
        found, problems = findings_of(result, cwd, line)
        for finding in found:
            findings[finding] = _of_both(findings.get(finding, finding), finding)
        errors += [problem for problem in problems if problem not in errors]
    return sorted(findings.values(), key=lambda finding: finding.sort_key), errors


def findings_of(
    result: ProbeResult, cwd: Path, line: Callable[[str, int], str | None]
) -> tuple[list[Finding], list[LintError]]:
    """The findings and errors of one probe. `line` gives the text of a line of a shown path."""
    places = Places(cwd, line)
    here = result.spec.file if result.spec is not None else "<program>"
    errors = [LintError(here, message) for message in result.errors]
    found: list[Finding] = []
    trouble = next((problem for problem in result.trouble if problem["kind"] == "raised"), None)
    if trouble is not None and result.trouble_task == "load":
        errors.append(_import_error(trouble, here, places))
    elif trouble is not None:
        wrong = None if result.spec is None or result.launches else _call_error(result.spec, trouble, places)
        if wrong is not None:
            errors.append(wrong)
        else:
            found.append(_ExceptionFindings(result, places).raised(trouble, "trace"))
    for target, problems in result.refusals.items():
        about, traced = _ExceptionFindings(result, places), Stage("trace", target, ok=False)
        found += [about.raised(problem, "trace", traced) for problem in problems if problem["kind"] == "raised"]
    for launch in result.launches:
        found += _LaunchFindings(result, places, launch, reasons.causes(launch)).findings()
        builder = FindingBuilder(result, places, launch)
        found += (*cost_findings.findings(launch, builder), *occupancy.findings(launch, builder))
    found += whole_function.findings(result, places)
    if result.compared is not None:
        found += _compared(result, places)
    if result.spec is not None and not result.launches and not result.trouble and not errors:
        errors.append(LintError(here, f"`{result.spec.function}` launches no kernel, traced as for a TPU or a GPU"))
    return _merged(found), errors


def _compared(result: ProbeResult, places: Places) -> Iterator[Finding]:
    """What the comparison with a reference function shows."""
    event = result.compared
    assert event is not None
    about = _ExceptionFindings(result, places, result.launches[0] if result.launches else None)
    if event["ok"] is None and event.get("detail"):
        yield about.finding_at((), "PAL908", Severity.INFO, f"it is not compared with the reference: {event['detail']}")
    for problem in event.get("problems") or []:
        if problem["kind"] == "mismatch":
            advice = f"on random operands, {'on ' + problem['device'] if 'device' in problem else 'in interpret mode'}"
            yield about.finding_at((), "PAL908", Severity.ERROR, problem["message"], advice)
        elif problem["kind"] == "raised":
            message = f"it cannot be compared with the reference: {messages.sentence(problem)}"
            yield about.finding_at(problem["places"], "PAL908", Severity.WARNING, message)


def _import_error(trouble: Raised, here: str, places: Places) -> LintError:
    if trouble["type"] == "NotThere":
        return LintError(here, messages.sentence(trouble))
    at = next((place for place in trouble["places"] if place.get("function") != "importlib"), None)
    shown, line = (places.shown(at["file"]), at["line"]) if at else (here, None)
    return LintError(shown, f"it cannot be imported: {trouble['type']}: {messages.sentence(trouble)}", line)


def _call_error(spec: Spec, trouble: Raised, places: Places) -> LintError | None:
    """What is wrong with the arguments that the function was called with; None where nothing is."""
    at = next(iter(trouble["places"]), None)
    own = at is not None and at.get("function") == spec.function.rpartition(".")[2]
    does = messages.done_in_kernels(trouble, places.text(at)) if own or not trouble.get("in_launch", True) else None
    if does is not None:
        message = f"`{spec.function}` {does}: if it is a kernel, probe the function that launches it"
        return LintError(places.shown(at["file"]) if at else spec.file, message, at["line"] if at else spec.line)
    quoted = next(spec.quoted_types(), None)
    if quoted is not None and trouble["type"] in ("TypeError", "AttributeError", "ArgumentMismatch"):
        return LintError(
            spec.file, f"{quoted!r} is a string: arrays are written without quotes, as {quoted}", spec.line
        )
    if trouble["places"] or trouble["type"] not in ("TypeError", "ArgumentMismatch", "BadArgument", "SpecError"):
        return None
    example = f"; for example {spec.called_with(trouble['example'])}" if "example" in trouble else ""
    message = f"`{spec.function}` cannot be called so: {messages.sentence(trouble)}{example}"
    return LintError(spec.file, message, spec.line)


def _merged(found: list[Finding]) -> list[Finding]:
    """One finding where code, place, backend, severity and message agree; it names the devices that agree on it."""
    best: dict[tuple[object, ...], Finding] = {}
    for finding in found:
        key = (finding.code, finding.span, finding.backend, finding.severity, finding.message)
        best[key] = _of_both(best.get(key, finding), finding)
    return sorted(best.values(), key=lambda finding: finding.sort_key)


def _of_both(one: Finding, other: Finding) -> Finding:
    """One of two findings that are the same, about the devices and launches of both."""
    return evolve(one.with_devices(other), launches=tuple(dict.fromkeys((*one.launches, *other.launches))))


@define
class _ExceptionFindings(FindingBuilder):
    """What exceptions around launches come to."""

    def raised(self, problem: Raised, at: str, stage: Stage | None = None) -> Finding:
        """An exception's finding: under the code of the rule that it is known for."""
        shared = messages.shared_memory(problem)
        if shared is not None and stage is not None:
            return self.finding_at(
                problem["places"],
                "PAL213",
                Severity.ERROR,
                f"the kernel needs {shared[0]:,} bytes of shared memory, and {_device(stage) or 'the device'} "
                f"gives it {shared[1]:,}",
                "use smaller blocks or fewer stages",
                backend=_backend(stage),
                device=_device(stage),
            )
        known = messages.understand(problem, at)
        places = _places_of(problem, known)
        code = known.code if known is not None else _FALLBACK[at]
        backend, device = (_backend(stage), _device(stage)) if stage is not None else (None, None)
        where = f" for {backend}" if backend is not None else ""
        verb = {"trace": f"does not trace{where}", "lower": f"does not lower for {backend}",
                "compile": f"does not compile for {backend}"}[at]  # fmt: skip
        primitive = next((place["primitive"] for place in places if "primitive" in place), None)
        subject = f"`{primitive}`" if primitive and at == "lower" else "the kernel"
        if self.result.spec is not None and not problem.get("in_launch", True) and at == "trace":
            subject = f"`{self.result.spec.function}`"  # no kernel has been reached yet
        severity, advice = Severity.ERROR, _help(known, primitive)
        if at == "trace" and messages.misses_device(problem):
            severity, advice = Severity.INFO, "not judged: it needs a device that is not there where the probe runs"
        elif problem.get("alone"):
            severity, advice = Severity.WARNING, _ALONE
        elif at == "trace" and known is None and _is_bare_assertion(problem):
            severity = Severity.WARNING
        return self.finding_at(
            places,
            code,
            severity,
            f"{subject} {verb}: {messages.in_words(problem, at)}",
            advice,
            backend=backend,
            device=None if at == "lower" else device,
        )


def _places_of(problem: Raised, known: messages.MessageMeaning | None) -> list[Place]:
    """The places of an exception, the most informative first."""
    places, mapping = problem["places"], problem.get("in_index_map")
    if known is not None and known.code in messages.ABOUT_THE_KERNEL:
        # jax notices it at the launch; what is wrong is in the kernel.
        return sorted(places, key=lambda place: "mentioned" not in place)
    return [mapping, *places] if mapping and known is not None and known.code in ("PAL302", "PAL303") else places


def _is_bare_assertion(problem: Raised) -> bool:
    """Whether it is an assertion without a message: it is not known what it is about."""
    return problem["type"] == "AssertionError" and problem["message"].partition(" ")[0] in ("", "assert")


def _help(known: messages.MessageMeaning | None, primitive: str | None) -> str:
    """Known advice, with the name to look up where jax names what it refused."""
    if known is None:
        return ""
    return known.help.replace(messages.NAME, primitive) if primitive else known.help


@define
class _LaunchFindings(_ExceptionFindings):
    """The findings of one launch, one for each cause."""

    launch: LaunchResult
    explained: dict[str, str]  # code of the finding that is the cause of others

    def findings(self) -> Iterator[Finding]:
        yield from mesh.findings(self.launch, self, self.guessed)
        for stage, problems in (
            ("grid", self.launch.of_grid),
            ("interpret", self.launch.of_running),
            ("checks", self.launch.of_checks),
        ):
            for problem in problems:
                finding = _FINDINGS.get((stage, problem["kind"]))
                if finding is not None:
                    yield from finding(self, problem)
        yield from self._targets()
        yield from local_device.findings(self.launch, self, self.guessed, explained=bool(self.explained))

    # -- grid ------------------------------------------------------------------------------------------------------

    def out_of_range(self, problem: OutOfRange) -> Iterator[Finding]:
        name = problem["operand"]
        point, start = tuple_text(problem["point"]), tuple_text(problem["start"])
        size = math.prod(problem["shape"]) * bits(problem["dtype"]) // 8
        # What XLA may keep in VMEM is read there without a check.
        certain = problem["role"] == "out" or (self.launch.backend == "tpu" and stays_in_hbm(size))
        yield self.finding_at(
            problem["places"],
            "PAL307",
            Severity.ERROR if certain else Severity.WARNING,
            f"the block of `{name}` at grid point {point} starts at {start}, outside the array of shape "
            f"{tuple_text(problem['shape'])}",
            f"{reasons.why_out_of_range(problem)}; {problem['count']} of {problem['points']} grid points are affected",
        )

    def uncovered(self, problem: Uncovered) -> Iterator[Finding]:
        yield self.finding_at(
            (),
            "PAL308",
            Severity.WARNING,
            reasons.never_written(problem),
            "they keep whatever the memory held; cover them, or alias an input that holds their values",
        )

    def unread(self, problem: Uncovered) -> Iterator[Finding]:
        yield self.finding_at(
            (),
            "PAL420",
            Severity.WARNING,
            reasons.never_read(problem),
            "make the grid as long as the array has blocks (`pl.cdiv`), or pass a slice of it",
        )

    def parallel_writes(self, problem: ParallelWrites) -> Iterator[Finding]:
        name = problem["operand"]
        yield self.finding_at(
            (),
            "PAL404",
            Severity.ERROR if problem["carried"] else Severity.WARNING,
            f"grid points {tuple_text(problem['first'])} and {tuple_text(problem['second'])} write the same block of "
            f"`{name}`, and may run at the same time",
            f'mark grid axis {", ".join(map(str, problem["axes"]))} as "arbitrary"',
            backend="tpu",
        )

    def revisited(self, problem: Revisited) -> Iterator[Finding]:
        if not reasons.is_added_to(self.launch, problem["operand"]):
            return
        yield self.finding_at(
            (),
            "PAL403",
            Severity.ERROR if self.launch.backend == "tpu" else Severity.WARNING,
            f"the block {tuple_text(problem['block'])} of `{problem['operand']}` is left after grid point "
            f"{tuple_text(problem['first'])} and added to again at {tuple_text(problem['second'])}",
            "on TPU its contents are not fetched again: put the axes that it does not depend on last",
            backend="tpu",
        )

    def shared(self, problem: Shared) -> Iterator[Finding]:
        if not reasons.is_shared(self.launch, problem):
            return
        yield self.finding_at(
            problem["places"],
            "PAL405",
            Severity.WARNING,
            f"{problem['points']} grid points write the {problem['visited']} "
            f"{'block' if problem['visited'] == 1 else 'blocks'} of `{problem['operand']}`, and run at the same time",
            "use atomics, or give every grid point a block of its own",
            backend=self.launch.backend,
        )

    # -- running it ------------------------------------------------------------------------------------------------

    def out_of_bounds(self, problem: InInterpreter) -> Iterator[Finding]:
        if self._names_past_the_end(problem["places"]):
            return
        # The TPU interpreter has the numbers, checkify the line.
        outside = next(
            (each for each in self.launch.of_checks if each["kind"] == "out-of-bounds" and each["places"]), None
        )
        yield self.finding_at(
            (outside or problem)["places"],
            "PAL412",
            Severity.INFO if self._guess(problem) else Severity.ERROR,
            f"an access leaves its buffer: {messages.reading(problem['message'])}",
            self._guess(problem) or "interpret=True moves such accesses inside without a word",
        )

    def race(self, problem: Race) -> Iterator[Finding]:
        if "race" in self.explained:
            return
        if problem.get("equal"):
            advice = "in the interpreter they write the same values"
            yield self.finding_at(problem["places"], "PAL905", Severity.INFO, reasons.race(problem), advice)
            return
        yield self.finding_at(
            problem["places"],
            "PAL905",
            Severity.INFO if problem.get("depends_on") else Severity.ERROR,
            reasons.race(problem),
            reasons.depends_on(problem) or "wait for the copy, or for a semaphore, between them",
        )

    def refused_to_revisit(self, problem: InInterpreter) -> Iterator[Finding]:
        if "revisited" not in self.explained:
            text, guess = messages.sentence(problem), reasons.depends_on(problem)
            severity = Severity.INFO if guess else Severity.WARNING
            yield self.finding_at(problem["places"], "PAL403", severity, text, guess, backend="tpu")

    def breaks_a_protocol(self, problem: InInterpreter) -> Iterator[Finding]:
        if "race" in self.explained:
            return
        yield self.finding_at(
            problem["places"],
            "PAL905",
            Severity.INFO if problem.get("depends_on") else Severity.WARNING,
            f"barriers or copies are not waited for as they must be: {problem['message']}",
            reasons.depends_on(problem)
            or "each completion of a barrier has to be waited for before the next, by every thread that waits on it",
        )

    def without_end(self, problem: Ended) -> Iterator[Finding]:
        if self.launch.facts["waits"]:
            yield self.finding_at(
                (),
                "PAL905",
                Severity.WARNING,
                "the kernel does not finish in the interpreter: it waits, and nothing else runs",
                "a semaphore is waited for that nothing signals",
            )

    def _names_past_the_end(self, places: list[Place]) -> bool:
        """Whether the grid or verification already names what leaves its array at these places."""
        return "PAL307" in self.explained.values() or mesh.copies_past_the_end(self.launch, places)

    def checked_out_of_bounds(self, problem: Checked) -> Iterator[Finding]:
        if problem["places"] and "outside" not in self.explained and not self._names_past_the_end(problem["places"]):
            yield self.finding_at(
                problem["places"],
                "PAL412",
                Severity.INFO if self._guess(problem) else Severity.ERROR,
                f"an access leaves its buffer: {messages.sentence(problem)}",
                self._guess(problem),
            )

    def _guess(self, problem: InInterpreter | Checked) -> str:
        """Advice where a verdict may depend on made-up integers or random values; empty where it does not."""
        on_values = reasons.depends_on(problem)
        tried = "depends_on" in problem and "the grid" not in self.launch.facts["guessed"]
        return on_values if tried else self.guessed or on_values

    @property
    def guessed(self) -> str:
        """Advice where a verdict depends on unknown integers; empty where none does."""
        return reasons.on_random_values(self.launch.facts["guessed"])

    def not_a_number(self, problem: NotANumber) -> Iterator[Finding]:
        if reasons.cause_of(problem, self.explained) is None:
            yield not_a_number.finding(problem, self.launch, self, self.guessed)

    # -- lowering and compiling ------------------------------------------------------------------------------------

    def _targets(self) -> Iterator[Finding]:
        targeted = [stage for stage in self.launch.stages if stage.target is not None]
        guessed = self.launch.facts["targets_guessed"]
        # It may not be meant for a device at all.
        only_interpreted = guessed and self.launch.facts["interpret"]
        works = {_backend(stage) for stage in targeted if stage.stage == "lower" and stage.ok}
        for stage in targeted:
            if stage.ok is not False or (guessed and works and _backend(stage) not in works):
                continue  # it may not be meant for this backend, and it works on another
            at_grid = any(
                problem["kind"] == "memory" and problem["target"] == stage.target for problem in self.launch.of_grid
            )
            for problem in stage.of_target:
                finding = _ON_TARGETS[problem["kind"]](self, problem, stage)
                if finding.code == "PAL213" and at_grid:
                    continue  # reported before it was lowered
                yield evolve(finding, severity=Severity.INFO) if only_interpreted else finding

    def over_budget(self, problem: OverBudget) -> Iterator[Finding]:
        from pallas_lint.kernels.facts.memory_budget import Part, spelled

        parts = [Part(part["name"], part["bytes"], part["buffers"]) for part in problem["parts"] if part["bytes"]]
        backend, _, device = problem["target"].partition(":")
        advice = _LESS[backend == "mosaic-gpu", problem["space"]]
        yield self.finding_at(
            (),
            "PAL213",
            Severity.WARNING if problem.get("alone") else Severity.ERROR,
            reasons.over_budget(problem),
            f"{spelled(parts)}; {_ALONE if problem.get('alone') else advice}",
            backend=backend.replace("-", "_"),
            device=device or None,
        )

    def not_compiled(self, problem: OverBudget, stage: Stage) -> Finding:
        return next(self.over_budget(problem))

    def compiler_ended(self, problem: Ended, stage: Stage) -> Finding:
        culprit, kind = problem.get("culprit"), problem["kind"]
        place = place_of(culprit) if culprit is not None else None
        return self.finding_at(
            (place,) if place is not None else (),
            "PAL904",
            {"crash": Severity.ERROR, "deadline": Severity.INFO}.get(kind, Severity.WARNING),
            f"the compiler {'crashes' if kind == 'crash' else 'was stopped'}: {problem['message']}"
            + (f"; without `{culprit['primitive']}` it does not" if culprit else ""),
            messages.last_words(problem["output"]),
            backend=_backend(stage),
            device=_device(stage),
        )

    def refused(self, problem: Raised, stage: Stage) -> Finding:
        return self.raised(problem, stage.stage, stage)


# How problems become findings: by stage and kind those of a run, by kind those of a target. A kind that is not here is
# told by another, or says nothing about the kernel.
_FINDINGS: dict[tuple[str, str], Callable[[_LaunchFindings, Any], Iterator[Finding]]] = {
    ("grid", "out-of-range"): _LaunchFindings.out_of_range,
    ("grid", "uncovered"): _LaunchFindings.uncovered,
    ("grid", "unread"): _LaunchFindings.unread,
    ("grid", "parallel-writes"): _LaunchFindings.parallel_writes,
    ("grid", "revisited"): _LaunchFindings.revisited,
    ("grid", "shared"): _LaunchFindings.shared,
    ("grid", "memory"): _LaunchFindings.over_budget,
    ("interpret", "nan"): _LaunchFindings.not_a_number,
    ("interpret", "out-of-bounds"): _LaunchFindings.out_of_bounds,
    ("interpret", "race"): _LaunchFindings.race,
    ("interpret", "revisited"): _LaunchFindings.refused_to_revisit,
    ("interpret", "protocol"): _LaunchFindings.breaks_a_protocol,
    ("interpret", "deadline"): _LaunchFindings.without_end,
    ("checks", "out-of-bounds"): _LaunchFindings.checked_out_of_bounds,
}
_ON_TARGETS: dict[str, Callable[[_LaunchFindings, Any, Stage], Finding]] = {
    "raised": _LaunchFindings.refused,
    "memory": _LaunchFindings.not_compiled,
    "crash": _LaunchFindings.compiler_ended,
    "memory-limit": _LaunchFindings.compiler_ended,
    "deadline": _LaunchFindings.compiler_ended,
}


# Where a launch needs too much by itself, and it is not known how it goes in its program.
_ALONE = "use smaller blocks or fewer buffers, unless XLA keeps whole arrays in VMEM where it is used"
# What to do about too little memory: of a GPU or not, and which.
_LESS = {
    (False, "vmem"): "use smaller blocks or fewer buffers",
    (False, "smem"): "keep large tables in HBM, and copy or block what a step needs; matrices transposed or flat",
    (True, "smem"): "use smaller blocks or fewer stages",
}


def _backend(stage: Stage) -> str:
    return (stage.target or "").partition(":")[0].replace("-", "_")


def _device(stage: Stage) -> str | None:
    return (stage.target or "").partition(":")[2] or None
