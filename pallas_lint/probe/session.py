"""A session: several functions probed with one worker, for `probe`, `--probe` and `--fix`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from pallas_lint.config.layout import Layouts
from pallas_lint.probe.results import ProbeResult, collect, complete
from pallas_lint.probe.specs import reference_of
from pallas_lint.records import define, field, frozen
from pallas_lint.text.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.event_cache import EventCache
    from pallas_lint.probe.protocol import Event, Function, FunctionRequest, RequestOptions
    from pallas_lint.probe.specs import Spec

DEFAULT_TIMEOUT = 120.0  # seconds for one function
DEFAULT_MEMORY = 8 << 30  # bytes
# Those that libtpu compiles for, and the GPUs.
EVERY_TARGET = ("tpu:v4", "tpu:v5e", "tpu:v5p", "tpu:v6e", "tpu:tpu7x", "triton", "mosaic-gpu")
STAGES = ("trace", "grid", "lower", "compile", "verify", "interpret", "checks")  # in the order in which they run
# What one name alone stands for: all stages up to it, those that need no compiler first.
COST = "cost"  # of `--perf`, as a stage: what it needs and nothing else
_UP_TO = ("trace", "grid", "verify", "interpret", "lower", "compile")


@frozen
class ProbeOptions:
    """How to probe. `targets`: empty for each launch's own; `stage`: as `--stage` names them, None for all."""

    targets: Sequence[str] = ()
    stage: str | None = None
    skip: Sequence[str] = ()  # stages
    reference: str | None = None
    against: str | None = None  # a function whose cost is predicted, too; None: the reference
    timeout: float = DEFAULT_TIMEOUT
    memory_limit: int = DEFAULT_MEMORY
    perf: bool = False  # predict the cost of launches, too
    whole: bool = False  # predict the cost of whole functions
    runs: bool = True  # run kernels in interpret mode
    real: bool = False  # run kernels on the device that is there
    devices: int | None = None  # that functions see
    promela: bool = False  # write models of kernels on several devices

    @classmethod
    def of(cls, settings: Mapping[str, Any], targets: Sequence[str] = ()) -> ProbeOptions:
        """From the settings `probe.*`; `targets`, where there are any, go before `all-targets`."""
        return cls(
            tuple(targets) or (EVERY_TARGET if settings.get("all-targets") else ()),
            settings.get("stage"),
            timeout=settings.get("timeout", DEFAULT_TIMEOUT),
            memory_limit=settings.get("memory-limit", DEFAULT_MEMORY),
        )

    @property
    def named(self) -> list[str]:
        """The stages that are named."""
        return self.stage.split(",") if self.stage else []

    def request(self) -> RequestOptions:
        """The part of a request that does not depend on the function."""
        return {
            "targets": list(self.targets),
            "stages": stages_of(self.named, self.skip),
            "reference": self.reference,
            "against": self.against,
            "timeout": self.timeout,
            "memory_limit": self.memory_limit,
            "perf": self.perf,
            "whole": self.whole,
            "runs": self.runs,
            "real": self.real,
            "devices": self.devices,
            "promela": self.promela,
        }


def stages_of(named: Sequence[str], skipped: Collection[str]) -> list[str]:
    """The stages to go through: all, those up to the only one that is named, or those that are named."""
    names = list(dict.fromkeys(named))
    if COST in names:
        names = [*(name for name in names if name != COST), "grid", "lower", "compile"]
    found = set(names) or set(STAGES)
    if len(names) == 1:
        found = set(_UP_TO[: _UP_TO.index("interpret" if names == ["checks"] else names[0]) + 1])
        found |= {"checks"} if "interpret" in found else set()
    return [name for name in STAGES if name == "trace" or name in found - set(skipped)]


@define
class Session:
    """A worker, and the options of its requests.

    `progress` is called with a description of each step, `ended` whenever a stage of a launch has ended, with the
    result by then.
    """

    worker: Worker
    cwd: Path
    conditions: ProbeOptions
    progress: Callable[[str], None] = field(default=lambda _: None)
    ended: Callable[[ProbeResult], None] = field(default=lambda _: None)
    texts: Mapping[str, str] = field(factory=dict)  # by absolute path, of files that an editor has not saved
    kept: EventCache | None = None  # answers of earlier runs
    # Absolute paths and functions whose comment names a reference that is not there.
    without_reference: Collection[tuple[str, str]] = ()

    def probe(self, spec: Spec) -> ProbeResult:
        """One function's result; where a compiler crashed, with the operation that it died on."""
        request = self._request(spec)
        result = self._result(spec, request)
        complete(result.launches, f"not reached within `--timeout {self.conditions.timeout:g}`")
        for at, launch in enumerate(result.launches):
            for stage in launch.stages:
                crash = next((problem for problem in stage.of_target if problem["kind"] == "crash"), None)
                if stage.stage == "compile" and stage.target is not None and crash is not None:
                    search: FunctionRequest = {**request, "bisect": (at, stage.target)}
                    crash["culprit"] = self._collect(spec, search).culprit
        return result

    def _result(self, spec: Spec, request: FunctionRequest) -> ProbeResult:
        """The answer of an earlier run, or else the worker's."""
        known = self.kept.find(request) if self.kept is not None else None
        result = self._examined(spec, request) if known is None else collect(spec, known, self.conditions.timeout)
        result.kept = known is not None
        return result

    def differences(self, spec: Spec, text: str) -> list[str]:
        """What changes in the function's result, in interpret mode, where its file has this text instead.

        Empty where nothing does, and where the original does not run, so that there is nothing to compare with.
        """
        compared = self._collect(spec, {**self._request(spec), "variant": text}).compared
        problems = compared.get("problems") if compared is not None else None
        return [problem["message"] for problem in problems or [] if problem["kind"] == "mismatch"]

    def _request(self, spec: Spec) -> FunctionRequest:
        file = (self.cwd / spec.file).resolve()
        options = self.conditions.request()
        named = options["reference"] or self._commented_reference(file, spec.function)
        runs = options["reference"] or (options["runs"] and "interpret" in options["stages"])
        function: Function = {
            "file": str(file),
            "function": spec.function,
            "args": list(spec.arguments),
            "kwargs": dict(spec.keywords),
            "texts": dict(self.texts),
            "roots": [str(base.folder) for base in Layouts().of(file.parent).bases if base.folder in file.parents],
            **options,
            "reference": named if runs else None,
            "against": options["against"] or named,
        }
        return cast("FunctionRequest", function)

    def _commented_reference(self, file: Path, function: str) -> str | None:
        """The reference that a comment above the function names, a file in it with its absolute path."""
        try:
            text = self.texts.get(str(file)) or Source.read(file, str(file)).text
        except SourceError:
            return None
        comment = reference_of(text, function)
        if comment is None or (str(file), function) in self.without_reference:
            return None
        path, mark, name = comment[1].rpartition("::")
        return f"{file.parent / path}::{name}" if mark else name

    def _examined(self, spec: Spec, request: FunctionRequest) -> ProbeResult:
        """The worker's answer, kept for later runs if it can be."""
        if self.kept is None:
            return self._collect(spec, request)
        begun = time.time()
        events: list[Event] = []
        result = self._collect(spec, {**request, "watched": True}, events.append)
        self.kept.keep(request, events, begun)
        return result

    def _collect(
        self, spec: Spec, request: FunctionRequest, note: Callable[[Event], None] = lambda _: None
    ) -> ProbeResult:
        def events() -> Iterator[Event]:
            for event in self.worker.send(request):
                if event["event"] == "begin":
                    self.progress(f"{spec.function}: {event['task']}")
                note(event)
                yield event

        return collect(spec, events(), self.conditions.timeout, ended=self.ended)
