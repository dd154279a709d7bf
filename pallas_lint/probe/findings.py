"""From what the worker told to findings: one a cause, at the user's line, under the code of the rule it belongs to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from pallas_lint.finding import Finding, LintError, Position, Related, Severity, Span
from pallas_lint.probe import messages
from pallas_lint.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pallas_lint.probe.results import LaunchResult, ProbeResult, Stage

_CALLED = re.compile(r"[\w.]+(?=\()")
_FALLBACK = {"trace": "PAL901", "lower": "PAL902", "compile": "PAL903"}


@define
class _Places:
    """Worker places (absolute files) as spans that the user reads."""

    cwd: Path
    line: Callable[[str, int], str | None]

    def span(self, place: dict[str, Any] | None, otherwise: str) -> Span:
        if place is None:
            return Span(otherwise, Position(1, 1), Position(1, 2))
        shown = self.shown(place["file"])
        number = int(place["line"])
        column, end_line, end_column = place.get("column"), place.get("end_line"), place.get("end_column")
        text = self.line(shown, number) or ""
        if column and end_column:
            last = int(end_line or number)
            # A call of thirty lines is shown by the name of what it calls.
            called = _CALLED.match(text, column - 1) if text.isascii() else None
            if called is not None and (int(end_line or number) > number or end_column - column > 60):
                return Span(shown, Position(number, column), Position(number, called.end() + 1))
            return Span(
                shown,
                Position(number, _characters(text, column)),
                Position(last, _characters(self.line(shown, last) or "", end_column)),
            )
        if column:
            return Span(shown, Position(number, column), Position(number, max(len(text.rstrip()) + 1, column + 1)))
        begin = len(text) - len(text.lstrip()) + 1
        return Span(shown, Position(number, begin), Position(number, max(len(text.rstrip()) + 1, begin + 1)))

    def shown(self, file: str) -> str:
        try:
            return Path(file).relative_to(self.cwd).as_posix()
        except ValueError:
            return Path(file).as_posix()


def _characters(text: str, column: int) -> int:
    """A column counted in bytes as one counted in characters."""
    if text.isascii():
        return column
    return len(text.encode("utf-8", "surrogatepass")[: column - 1].decode("utf-8", "replace")) + 1


def all_findings(
    results: Iterable[ProbeResult], cwd: Path, line: Callable[[str, int], str | None]
) -> tuple[list[Finding], list[LintError]]:
    """The findings and errors of several probes, each once."""
    findings: list[Finding] = []
    errors: list[LintError] = []
    for result in results:
        found, problems = findings_of(result, cwd, line)
        findings += [finding for finding in found if finding not in findings]
        errors += [problem for problem in problems if problem not in errors]
    return sorted(findings, key=lambda finding: finding.sort_key), errors


def findings_of(
    result: ProbeResult, cwd: Path, line: Callable[[str, int], str | None]
) -> tuple[list[Finding], list[LintError]]:
    """The findings and errors of one probe. `line` gives the text of a line of a shown path."""
    places = _Places(cwd, line)
    here = result.spec.file if result.spec is not None else "<program>"
    errors = [LintError(here, message) for message in result.errors]
    found: list[Finding] = []
    if result.trouble and result.trouble_task == "load":
        errors.append(_import_error(result.trouble[0], here, places))
    elif result.trouble:
        trouble = result.trouble[0]
        if result.spec is not None and not result.launches and _is_call_error(trouble):
            errors.append(
                LintError(here, f"`{result.spec.function}` cannot be called so: {messages.sentence(trouble)}")
            )
        else:
            found.append(_Launch(None, result, places).raised(trouble, "trace", None))
    for launch in result.launches:
        found += _Launch(launch, result, places).findings()
    if result.compared is not None:
        found += _compared(result, places)
    if result.spec is not None and not result.launches and not result.trouble and not errors:
        errors.append(LintError(here, f"`{result.spec.function}` launches no kernel"))
    return _merged(found), errors


def _compared(result: ProbeResult, places: _Places) -> Iterator[Finding]:
    """What the comparison with a reference function shows."""
    event = result.compared
    assert event is not None
    about = _Launch(result.launches[0] if result.launches else None, result, places)
    if event.get("ok") is None and event.get("detail"):
        yield about._placed({}, "PAL908", Severity.INFO, f"it is not compared with the reference: {event['detail']}")
    for problem in event.get("problems") or []:
        if problem["kind"] == "mismatch":
            yield about._placed(
                {}, "PAL908", Severity.ERROR, problem["message"], "on random operands, in interpret mode"
            )
        else:
            message = f"it cannot be compared with the reference: {messages.sentence(problem)}"
            yield about._placed(problem, "PAL908", Severity.WARNING, message)


def _import_error(trouble: dict[str, Any], here: str, places: _Places) -> LintError:
    if trouble["type"] == "NotThere":
        return LintError(here, messages.sentence(trouble))
    at = next((place for place in trouble["places"] if place.get("function") != "importlib"), None)
    shown, line = (places.shown(at["file"]), at["line"]) if at else (here, None)
    return LintError(shown, f"it cannot be imported: {trouble['type']}: {messages.sentence(trouble)}", line)


def _is_call_error(trouble: dict[str, Any]) -> bool:
    """Whether the function was called with arguments that it does not take."""
    return trouble["type"] in ("TypeError", "BadArgument", "SpecError") and not trouble["places"]


def _merged(found: list[Finding]) -> list[Finding]:
    """One finding for one code, place and backend; where several devices agree, it names none."""
    best: dict[tuple[object, ...], Finding] = {}
    for finding in found:
        key = (finding.code, finding.span, finding.backend)
        known = best.get(key)
        if known is None:
            best[key] = finding
        elif known.device != finding.device:
            best[key] = evolve(
                known, device=", ".join(sorted({*(known.device or "").split(", "), finding.device or ""} - {""}))
            )
    return sorted(best.values(), key=lambda finding: finding.sort_key)


@define
class _Launch:
    """The findings of one launch (of the tracing around it where `launch` is None)."""

    launch: LaunchResult | None
    result: ProbeResult
    places: _Places
    explained: set[str] = field(factory=set)  # operands whose NaN is explained by something found before

    def findings(self) -> Iterator[Finding]:
        launch = self.launch
        assert launch is not None
        yield from self._grid(launch)
        yield from self._running(launch)
        yield from self._targets(launch)

    # -- grid ------------------------------------------------------------------------------------------------------

    def _grid(self, launch: LaunchResult) -> Iterator[Finding]:
        for problem in launch.problems("grid"):
            kind, name = problem["kind"], problem.get("operand", "")
            read = name in launch.facts["reads"]
            if kind == "out-of-range":
                self.explained.add("*" if problem["role"] == "in" else name)
                point, start = _tuple(problem["point"]), _tuple(problem["start"])
                yield self._at_launch(
                    "PAL307",
                    Severity.ERROR,
                    f"the block of `{name}` at grid point {point} starts at {start}, outside the array of shape "
                    f"{_tuple(problem['shape'])}",
                    f"index maps count blocks of {_tuple(problem['block'])}, not elements; "
                    f"{problem['count']} of {problem['points']} grid points are affected",
                )
            elif kind == "uncovered":
                self.explained.add(name)
                yield self._at_launch(
                    "PAL308",
                    Severity.WARNING,
                    f"{problem['total'] - problem['visited']} of {problem['total']} blocks of output `{name}` "
                    "are never written",
                    "they keep whatever the memory held; cover them, or alias an input that holds their values",
                )
            elif kind == "parallel-writes":
                self.explained.add("race")
                yield self._at_launch(
                    "PAL404",
                    Severity.ERROR if read else Severity.WARNING,
                    f"grid points {_tuple(problem['first'])} and {_tuple(problem['second'])} write the same block of "
                    f"`{name}`, and may run at the same time",
                    f'mark grid axis {", ".join(map(str, problem["axes"]))} as "arbitrary"',
                    backend="tpu",
                )
            elif kind == "revisited" and launch.backend in (None, "tpu") and read:
                self.explained.add("revisited")
                yield self._at_launch(
                    "PAL403",
                    Severity.ERROR if launch.backend == "tpu" else Severity.WARNING,
                    f"the block {_tuple(problem['block'])} of `{name}` is left after grid point "
                    f"{_tuple(problem['first'])} and added to again at {_tuple(problem['second'])}",
                    "on TPU its contents are not fetched again: put the axes that it does not depend on last",
                    backend="tpu",
                )
            elif kind == "shared" and launch.backend in ("triton", "mosaic_gpu") and read:
                yield self._at_launch(
                    "PAL405",
                    Severity.WARNING,
                    f"{problem['points']} grid points write the {problem['visited']} "
                    f"{'block' if problem['visited'] == 1 else 'blocks'} of `{name}`, and run at the same time",
                    "use atomics, or give every grid point a block of its own",
                    backend=launch.backend,
                )

    # -- running it ------------------------------------------------------------------------------------------------

    def _running(self, launch: LaunchResult) -> Iterator[Finding]:
        ragged = [
            problem for problem in launch.problems("grid") if problem["kind"] == "ragged" and problem["role"] == "in"
        ]
        checked = launch.problems("checks")
        outside = next((check for check in checked if check["kind"] == "out-of-bounds" and check["places"]), None)
        for problem in launch.problems("interpret"):
            kind = problem["kind"]
            if kind == "nan":
                yield from self._nan(problem, ragged, checked)
            elif kind == "out-of-bounds" and "*" not in self.explained:
                # The TPU interpreter has the numbers, checkify the line.
                self.explained.add("outside")
                yield self._placed(
                    outside or problem,
                    "PAL412",
                    Severity.INFO if self.guessed else Severity.ERROR,
                    f"an access leaves its buffer: {messages.reading(problem['message'])}",
                    self.guessed or "interpret=True moves such accesses inside without a word",
                )
            elif kind == "race" and "race" not in self.explained:
                self.explained.add("*")  # what is read too early is NaN there
                sides = problem.get("sides") or []
                what = (
                    ": " + " and ".join(f"a {side['access']} in line {side['line']}" for side in sides) if sides else ""
                )
                yield self._placed(
                    problem,
                    "PAL905",
                    Severity.ERROR,
                    f"two accesses of one buffer race{what}",
                    "wait for the copy, or for a semaphore, between them",
                )
            elif kind == "revisited" and "revisited" not in self.explained:
                yield self._placed(problem, "PAL403", Severity.WARNING, messages.sentence(problem), "", backend="tpu")
            elif kind == "deadline" and launch.facts.get("waits"):
                yield self._at_launch(
                    "PAL905",
                    Severity.WARNING,
                    "the kernel does not come to an end in the interpreter",
                    "a semaphore may be waited for that nobody signals; raise --timeout if it is only slow",
                )
        for problem in checked:
            if problem["kind"] == "out-of-bounds" and not self.explained and problem.get("places"):
                yield self._placed(
                    problem,
                    "PAL412",
                    Severity.INFO if self.guessed else Severity.ERROR,
                    f"an access leaves its buffer: {messages.sentence(problem)}",
                    self.guessed,
                )

    def _whatever_is_given(self, problem: dict[str, Any]) -> bool:
        """Whether it came out so for several values of the integers that nobody told."""
        return problem["always"] and "the grid" not in self.guessed

    @property
    def guessed(self) -> str:
        """What to do where a verdict hangs on integers that nobody told; empty where none does."""
        names = self.launch.facts.get("guessed") if self.launch is not None else None
        if not names:
            return ""
        told = ", ".join(name if " " in name else f"`{name}`" for name in names)
        return f"on random values of {told}: give real ones, as in `i32[4]=[3,1,0,2]`"

    def _nan(
        self, problem: dict[str, Any], ragged: list[dict[str, Any]], checked: list[dict[str, Any]]
    ) -> Iterator[Finding]:
        name = problem["operand"]
        if self.explained & {name, "*", "race"}:
            return
        what = "infinite" if problem.get("infinite") else "NaN or infinite"
        share = f"{problem['count']} of {problem['size']} values of `{name}` are {what}"
        if problem["origin"] == "computed":
            made = next((check for check in checked if check["kind"] in ("nan", "division")), None)
            divided = made is not None and made["kind"] == "division"
            sure = problem["always"] and (divided or not problem.get("infinite")) and not self.guessed
            advice = "run on random operands; they may be outside what the kernel is for"
            yield self._placed(
                made or problem,
                "PAL906",
                Severity.WARNING if sure else Severity.INFO,
                f"{share}, on finite operands",
                messages.sentence(made) if made else self.guessed or advice,
            )
        elif problem.get("reaches") is False or (self.guessed and not self._whatever_is_given(problem)):
            yield self._at_launch(
                "PAL907",
                Severity.INFO,
                f"{share}: it depends on memory that nobody wrote",
                self.guessed or "nothing of it is in what the function returns",
            )
        elif ragged and problem["origin"] == "uninitialised":
            names = ", ".join(f"`{each['operand']}`" for each in ragged)
            yield self._at_launch(
                "PAL413",
                Severity.ERROR,
                f"{share}: the padding of partial blocks of {names} reaches the result",
                "mask what lies past the end with `jnp.where` before it is reduced or multiplied",
            )
        else:
            assert self.launch is not None
            reads = bool(self.launch.facts["reads"])  # else it is only that the kernel leaves them as they were
            sure = problem["origin"] == "uninitialised" and (reads or problem.get("reaches")) and not self.guessed
            yield self._at_launch(
                "PAL907",
                Severity.ERROR if sure else Severity.WARNING,
                f"{share}: it depends on memory that nobody wrote"
                if reads
                else f"{problem['count']} of {problem['size']} values of `{name}` are never written",
                "outputs and scratch start with whatever the memory held: write them before they are read",
            )

    # -- lowering and compiling ------------------------------------------------------------------------------------

    def _targets(self, launch: LaunchResult) -> Iterator[Finding]:
        told = [stage for stage in launch.stages if stage.target is not None]
        guessed = launch.facts.get("targets_guessed", False)
        # Nobody said that it is for a device at all.
        only_interpreted = guessed and launch.facts["interpret"]
        works = {_backend(stage) for stage in told if stage.stage == "lower" and stage.ok}
        for stage in told:
            if stage.ok is not False or (guessed and works and _backend(stage) not in works):
                continue  # nobody said that it is for this backend, and it works on another
            for problem in stage.problems:
                finding = self._of_target(launch, stage, problem)
                yield evolve(finding, severity=Severity.INFO) if only_interpreted else finding

    def _of_target(self, launch: LaunchResult, stage: Stage, problem: dict[str, Any]) -> Finding:
        kind = problem["kind"]
        if kind == "memory":
            parts = ", ".join(
                f"{part['name']} {part['buffers']}x {part['bytes']}" for part in problem["parts"] if part["bytes"]
            )
            return self._at_launch(
                "PAL213",
                Severity.ERROR,
                f"the kernel needs at least {_size(problem['bytes'])} of VMEM, and {_device(stage)} gives it "
                f"{_size(problem['limit'])}",
                f"bytes: {parts}; not compiled, since the compiler takes a minute to find out",
                backend=_backend(stage),
                device=_device(stage),
            )
        if kind in ("crash", "memory-limit", "deadline"):
            culprit = problem.get("culprit")
            return self._placed(
                culprit or {},
                "PAL904",
                {"crash": Severity.ERROR, "deadline": Severity.INFO}.get(kind, Severity.WARNING),
                f"the compiler {'crashes' if kind == 'crash' else 'was stopped'}: {problem['message']}"
                + (f"; without `{culprit['primitive']}` it does not" if culprit else ""),
                messages.last_words(problem.get("output", "")),
                backend=_backend(stage),
                device=_device(stage),
            )
        return self.raised(problem, stage.stage, stage)

    def raised(self, problem: dict[str, Any], at: str, stage: Stage | None) -> Finding:
        """An exception's finding: under the code of the rule that it is known for."""
        shared = messages.shared_memory(problem)
        if shared is not None and stage is not None:
            return self._placed(
                problem,
                "PAL213",
                Severity.ERROR,
                f"the kernel needs {_size(shared[0])} of shared memory, and {_device(stage) or 'the device'} "
                f"gives it {_size(shared[1])}",
                "use smaller blocks or fewer stages",
                backend=_backend(stage),
                device=_device(stage),
            )
        known = messages.understand(problem, at)
        mapping = problem.get("in_index_map")
        if known is not None and known.code in messages.ABOUT_THE_KERNEL:
            # The launch is where it is noticed; the kernel is where it is.
            places = sorted(problem["places"], key=lambda place: "mentioned" not in place)
            problem = {**problem, "places": places}
        elif mapping and known is not None and known.code in ("PAL302", "PAL303"):
            problem = {**problem, "places": [mapping, *problem["places"]]}
        code = known.code if known is not None else _FALLBACK[at]
        backend, device = (_backend(stage), _device(stage)) if stage is not None else (None, None)
        verb = {"trace": "does not trace", "lower": f"does not lower for {backend}",
                "compile": f"does not compile for {backend}"}[at]  # fmt: skip
        primitive = next((place["primitive"] for place in problem["places"] if "primitive" in place), None)
        subject = f"`{primitive}`" if primitive and at == "lower" else "the kernel"
        return self._placed(
            problem,
            code,
            Severity.ERROR,
            f"{subject} {verb}: {messages.sentence(problem)}",
            known.help if known is not None else "",
            backend=backend,
            device=device if at == "compile" else None,
        )

    # -- places ----------------------------------------------------------------------------------------------------

    def _at_launch(
        self, code: str, severity: Severity, message: str, help: str = "", *, backend: str | None = None,
        device: str | None = None,
    ) -> Finding:  # fmt: skip
        return self._placed({}, code, severity, message, help, backend=backend, device=device)

    def _placed(
        self, problem: dict[str, Any], code: str, severity: Severity, message: str, help: str = "", *,
        backend: str | None = None, device: str | None = None,
    ) -> Finding:  # fmt: skip
        launch, spec = self.launch, self.result.spec
        otherwise = spec.file if spec is not None else "<program>"
        own = launch.place if launch is not None else None
        places = [place for place in problem.get("places") or [] if place] or ([problem] if "file" in problem else [])
        span = self.places.span(places[0] if places else own, otherwise)
        related = []
        if launch is not None and places and own is not None:
            launched = self.places.span(own, otherwise)
            if (launched.path, launched.start.line) != (span.path, span.start.line):
                related.append(Related(launched, "launched here"))
        entry = all_rules().get(code)
        return Finding(
            code,
            entry.name if entry is not None else code.lower(),
            severity,
            message,
            span,
            help,
            kernel=launch.kernel if launch is not None else None,
            backend=backend,
            device=device,
            jax=self.result.parts.get("jax"),
            origin="probe",
            related=tuple(related),
        )


def _backend(stage: Stage) -> str:
    return (stage.target or "").partition(":")[0].replace("-", "_")


def _device(stage: Stage) -> str | None:
    return (stage.target or "").partition(":")[2] or None


def _tuple(values: list[int]) -> str:
    return "(" + ", ".join(map(str, values)) + ("," if len(values) == 1 else "") + ")"


def _size(count: int) -> str:
    return f"{count / (1 << 20):.2f} MiB" if count >= 1 << 19 else f"{count / 1024:.1f} KiB"
