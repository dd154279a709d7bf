"""Probing several functions with one worker: what the command line, `--probe` and `--fix` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pallas_lint.config.layout import Layouts
from pallas_lint.probe.results import ProbeResult, collect
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.protocol import Event, Function, FunctionRequest, Terms
    from pallas_lint.probe.specs import Spec

DEFAULT_TIMEOUT = 120.0  # seconds for one function
DEFAULT_MEMORY = 8 << 30  # bytes
EVERY_TARGET = ("tpu:v4", "tpu:v5e", "tpu:v5p", "tpu:v6e", "tpu:tpu7x", "triton", "mosaic-gpu")


@frozen
class Conditions:
    """How to probe. `targets`: empty for each launch's own; `stage`: the last one, None for as far as possible."""

    targets: Sequence[str] = ()
    stage: str | None = None
    reference: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    memory_limit: int = DEFAULT_MEMORY
    perf: bool = False  # tell what launches cost, too
    runs: bool = True  # run kernels in interpret mode
    real: bool = False  # run kernels on the device that is there
    devices: int | None = None  # that functions see
    promela: bool = False  # tell models of kernels on several devices

    @classmethod
    def of(cls, settings: Mapping[str, Any], targets: Sequence[str] = ()) -> Conditions:
        """As the settings `probe.*` say; `targets`, where there are any, go before `all-targets`."""
        return cls(
            tuple(targets) or (EVERY_TARGET if settings.get("all-targets") else ()),
            settings.get("stage"),
            timeout=settings.get("timeout", DEFAULT_TIMEOUT),
            memory_limit=settings.get("memory-limit", DEFAULT_MEMORY),
        )

    def request(self) -> Terms:
        """The part of a request that does not depend on the function."""
        return {
            "targets": list(self.targets),
            "stage": self.stage,
            "reference": self.reference,
            "timeout": self.timeout,
            "memory_limit": self.memory_limit,
            "perf": self.perf,
            "runs": self.runs,
            "real": self.real,
            "devices": self.devices,
            "promela": self.promela,
        }


@define
class Session:
    """A worker and the conditions under which it is asked. `progress` is told what is being done."""

    worker: Worker
    cwd: Path
    conditions: Conditions
    progress: Callable[[str], None] = field(default=lambda _: None)
    texts: Mapping[str, str] = field(factory=dict)  # by absolute path, of files that an editor has not saved

    def probe(self, spec: Spec) -> ProbeResult:
        """One function's result; where a compiler crashed, with the operation that it died on."""
        request = self._request(spec)
        result = self._collect(spec, request)
        for at, launch in enumerate(result.launches):
            for stage in launch.stages:
                crash = next((problem for problem in stage.of_target if problem["kind"] == "crash"), None)
                if stage.stage == "compile" and stage.target is not None and crash is not None:
                    search: FunctionRequest = {**request, "bisect": (at, stage.target)}
                    crash["culprit"] = self._collect(spec, search).culprit
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
        function: Function = {
            "file": str(file),
            "function": spec.function,
            "args": list(spec.arguments),
            "kwargs": dict(spec.keywords),
            "texts": dict(self.texts),
            "roots": [str(base.folder) for base in Layouts().of(file.parent).bases if base.folder in file.parents],
            **self.conditions.request(),
        }
        return cast("FunctionRequest", function)

    def _collect(self, spec: Spec, request: FunctionRequest) -> ProbeResult:
        def told() -> Iterator[Event]:
            for event in self.worker.ask(request):
                if event["event"] == "begin":
                    self.progress(f"{spec.function}: {event['task']}")
                yield event

        return collect(spec, told(), self.conditions.timeout)
