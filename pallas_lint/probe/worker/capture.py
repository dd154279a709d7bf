"""Captured programs: every launch is noted while the program runs, and examined when it ends.

Where no device is there for it, a launch runs in interpret mode, so that the program goes on. Nothing else about the
program changes. The examination runs in the program's own process when it is through: only there are the launches'
jaxprs, and a process with jax's threads cannot be forked. What may crash, the compilers, is left to another process.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, cast

from ..capture_protocol import CaptureRequest, read_capture
from ..protocol import Event
from . import device_targets, fingerprint, server
from .budget import EachAlone
from .examination import Setup, examine
from .launches import known
from .launches.launch import describe
from .launches.recorder import PRIMITIVES, LaunchRecorder, Record
from .launches.variants import Variants
from .recording.calls import CallRecorder
from .stages import interpret
from .stages.compile_process import CompileProcess

_JIT, _RUN_JIT = "jax._src.pjit", "_pjit_call_impl_python"
_MAX_SECONDS = 30.0  # for each kernel in an interpreter

_started: ProgramCapture | None = None


def start(folder: str) -> ProgramCapture:
    """Note launches from now on and examine them when the process ends; the same capture when called again.

    `folder` takes the events and has the request.
    """
    global _started
    if _started is not None:
        return _started
    with open(os.path.join(folder, "request.json"), encoding="utf-8") as file:
        request = read_capture(file.read())
    capture = ProgramCapture(folder, request)
    if "JAX_PLATFORMS" not in os.environ and not _has_accelerator():
        os.environ["JAX_PLATFORMS"] = "cpu"  # an installed libtpu alone makes jax look for a TPU for a minute
    capture.install()
    _started = capture
    atexit.register(capture.finish_late)
    return capture


class ProgramCapture:
    """The launches of this process."""

    def __init__(self, folder: str, request: CaptureRequest) -> None:
        self.folder = folder
        self.request = request
        self.recorder = LaunchRecorder(_without_device)
        record = request["record"]
        self.calls = None if record is None else CallRecorder(folder, record)
        # Describing each launch takes its time: a run that records does so only where more than tracing is requested.
        self.recorder.keep = self.recorder.observe = record is None or request["stages"] != ["trace"]
        self.known: Callable[[str], list[Event] | None] | None = None  # results of a launch, by its digest
        self.pid = os.getpid()
        self._finished = False
        self._closing = False

    def install(self) -> None:
        """Patch the primitives, those of modules that are yet to be imported when they are."""
        waiting: dict[str, Callable[[ModuleType], None]] = {}
        for name, primitive in PRIMITIVES:
            if name in sys.modules:
                self._patch(primitive, sys.modules[name])
            else:
                waiting[name] = partial(self._patch, primitive)
        if _JIT in sys.modules:
            self._watch_jits(sys.modules[_JIT])
        else:
            waiting[_JIT] = self._watch_jits
        for name in device_targets.PLATFORM_MODULES:
            waiting[name] = self._pretend
        if waiting:
            sys.meta_path.insert(0, _Waiting(waiting))

    def _patch(self, name: str, module: ModuleType) -> None:
        primitive = getattr(module, name, None)
        if primitive is not None:
            self.recorder.patch(primitive)
            if self.calls is not None:
                self.calls.patch(primitive)

    def _watch_jits(self, module: ModuleType) -> None:
        """Look at the options of every jit that the program runs, those within others apart."""
        original = getattr(module, _RUN_JIT, None)
        if original is not None:

            def run_jit(*arguments: Any, **params: Any) -> Any:
                return original(*arguments, **{**params, **self._note_options(params)})

            setattr(module, _RUN_JIT, run_jit)

    def _note_options(self, params: dict[str, Any]) -> dict[str, Any]:
        """Note the compiler options of a jit for its launches; a CPU in place of their device takes none of them."""
        options = dict(params.get("compiler_options_kvs") or ())
        if not options:
            return {}
        import jax

        launched = known.made_by(params["jaxpr"], [*self.recorder.records.values()])
        for record in launched:
            record.options.update(options)
        return {"compiler_options_kvs": ()} if launched and jax.default_backend() == "cpu" else {}

    def _pretend(self, module: ModuleType) -> None:
        """Give programs that query a TPU, where none is there, the target's properties: they go on, interpreted."""
        if module.__name__ == "jax._src.pallas.mosaic.core":
            _count_cores()
        if "get_device_kind" not in vars(module) or not hasattr(module, "get_tpu_info"):
            return
        original = module.get_device_kind
        tpus = [text for text in self.request["targets"] if text.startswith("tpu")]
        kind = device_targets.parse(tpus[0] if tpus else "tpu:v5e").kind

        def get_device_kind() -> str:
            backend = str(original())
            return kind if backend == "cpu" else backend

        module.get_device_kind = get_device_kind  # type: ignore[attr-defined]
        count = getattr(module, "get_num_device_cores", None)
        if count is not None:

            def get_num_device_cores() -> int:
                try:
                    return int(count() or 1)  # an abstract device of a CPU has None
                except AttributeError:  # only a TPU has any
                    return 1

            module.get_num_device_cores = get_num_device_cores  # type: ignore[attr-defined]

    def finish(self) -> None:
        """Examine what was noted; once, and only in the process that noted it (a fork has the records too)."""
        if self._finished or os.getpid() != self.pid:
            return
        self._finished = True
        records = self.recorder.launches
        self.recorder.remove()
        if not records:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        with open(os.path.join(self.folder, f"{self.pid}.jsonl"), "w", encoding="utf-8") as replies:
            skip: set[str] = set()
            if sys.is_finalizing() or self._closing:
                skip = {f"{name}:{at}" for at in range(len(records)) for name in ("interpret", "checks")}
            _quiet_jax()
            digests = [fingerprint.of(record) if self.known is not None else None for record in records]
            known = [self.known(digest) if self.known is not None and digest else None for digest in digests]
            fresh = [at for at, events in enumerate(known) if events is None]

            def emit(event: Event) -> None:
                if event["event"] == "launch":
                    digest = digests[fresh[event["launch"]]]
                    event = {**event, "digest": digest} if digest is not None else event
                server.send(replies, event)

            for at, events in enumerate((events for events in known if events is not None), len(fresh)):
                for event in events:
                    server.send(replies, cast("Event", {**event, "launch": at}))
            stages, budget = tuple(self.request["stages"]), EachAlone(_MAX_SECONDS)
            setup = Setup(self.request, stages, emit, budget, skip=skip, compile_process=CompileProcess(self.folder))
            examine([Variants(records[at]) for at in fresh], setup)

    def finish_late(self) -> None:
        """Finish while the interpreter shuts down: from Python 3.12 on, no thread can be started any more."""
        self._closing = sys.version_info >= (3, 12)
        self.finish()


def _count_cores() -> None:
    """Give the devices of a CPU a number of cores, as those of a TPU have: meshes of cores read it."""
    from jaxlib import xla_client

    kind: Any = xla_client.Device

    def num_cores(self: Any) -> int:
        return 1 if self.platform == "cpu" else int(self.__getattr__("num_cores"))

    kind.num_cores = property(num_cores)


def _has_accelerator() -> bool:
    """Whether the system shows a device that jax may run on."""
    if sys.platform != "linux":
        return sys.platform == "darwin"
    names = os.listdir("/dev")
    return any(name.startswith(("accel", "vfio", "nvidia", "kfd")) for name in names)


def _without_device(record: Record) -> dict[str, Any] | None:
    """Interpret mode for a launch whose device is missing; None where no interpreter runs it."""
    if record.params.get("interpret"):
        return {}
    import jax

    if jax.default_backend() != "cpu":
        return {}
    if record.kind == "pallas_call":
        return {"interpret": True}
    if record.sparse and interpret.runs_a_part(describe(record)):
        return None
    return {"interpret": interpret.tpu_interpreter() or True}


def _quiet_jax() -> None:
    import jax

    jax.config.update("jax_traceback_filtering", "off")
    warnings.simplefilter("ignore")


class _Waiting(importlib.abc.MetaPathFinder):
    """Calls back when one of some modules has been imported."""

    def __init__(self, waiting: dict[str, Callable[[ModuleType], None]]) -> None:
        self.waiting = waiting

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self.waiting:
            return None
        then = self.waiting.pop(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            then(module)

        loader.exec_module = exec_module
        return spec
