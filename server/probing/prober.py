"""Probing a function for an editor, in a separate process and off the event loop.

The server itself never runs the user's code; whether a worker may is decided where the server is started.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from pallas_lint.server.probing.answer_cache import Answers

from pallas_lint.config.bounds import project_root
from pallas_lint.probe import specs, stored_runs
from pallas_lint.probe.client import Worker, WorkerError
from pallas_lint.probe.cost_report.figures import headline
from pallas_lint.probe.places import shown_file
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.records import define, field, frozen
from pallas_lint.report.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pallas_lint.server.probing.probe_targets import Chosen
    from pallas_lint.server.workspace.document_state import DocumentState
    from pallas_lint.server.workspace.folders import Folder

    from pallas_lint.finding import Finding, LintError
    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.text.source import Source

T = TypeVar("T")

_AT_FIRST, _SHARE = 1.0, 0.1  # seconds and part of a probe's time that showing its stages may take
_MAX_COSTS = 3  # that are shown in a message
IDLE = 600.0  # seconds after which an idle worker is ended
_DOING = {
    "load": "importing the file",
    "trace": "tracing",
    "grid": "walking over the grid",
    "verify": "looking for races and deadlocks",
    "interpret": "running it in interpret mode",
    "checks": "checking what it reads and writes",
    "lower": "lowering",
    "compile": "compiling",
    "cost": "running the schedule",
    "run": "running it on the device of this machine",
}


class Failed(Exception):
    """The probe could not be made; the message is one sentence."""


class _Cancelled(Exception):
    """The request was cancelled."""


@frozen
class ProbeRequest:
    """A request for a probe, made sense of."""

    state: DocumentState
    file: Path
    folder: Folder
    chosen: Chosen
    spec: specs.Spec
    python: str
    conditions: ProbeOptions
    texts: Mapping[Path, Source]  # of open documents that are not as on disk
    fresh: bool = False  # run it whatever is known

    @property
    def root(self) -> Path:
        return project_root(self.file.parent)


@define(eq=False)
class Prober:
    """The workers, one for each interpreter and project, and the one probe that runs at a time."""

    _workers: dict[tuple[str, Path], Worker] = field(factory=dict, init=False)
    _answers: Answers = field(factory=Answers, init=False)
    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _running: tuple[Worker, threading.Event] | None = field(default=None, init=False)
    _idle: asyncio.TimerHandle | None = field(default=None, init=False)

    async def run(
        self,
        request: ProbeRequest,
        show_status: Callable[[str], None],
        known: Callable[[], None],
        cancelled: threading.Event,
    ) -> dict[str, Any]:
        """Probe, keep what is found, and return the answer to the client; raises Failed.

        `show_status` is called with a description of each step, `known` whenever more is known of the function and
        kept. Once `cancelled` is set the worker is ended; so it is where this very call is cancelled.
        """
        loop = asyncio.get_running_loop()
        async with self._lock:
            if cancelled.is_set():
                return answer_of("cancelled", "the probe was cancelled")
            if self._idle is not None:
                self._idle.cancel()
            key = request.python, request.root
            worker = self._workers.setdefault(key, Worker(request.python, request.root))
            self._running = worker, cancelled

            def show_text(text: str) -> None:
                loop.call_soon_threadsafe(show_status, text)

            def stage_ended() -> None:
                loop.call_soon_threadsafe(known)

            probe = _Probe(request, worker, show_text, stage_ended, cancelled)
            done = asyncio.ensure_future(on_own_thread(lambda: probe.answer(self._answers)))
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:
                cancelled.set()
                self._answers.forget()
                await on_own_thread(worker.stop)
                await asyncio.wait([done])
                raise
            finally:
                self._running = None
                self._idle = loop.call_later(IDLE, self._forget)

    async def stop(self, cancelled: threading.Event) -> None:
        """End the probe that is called off by this event, if it is the one that runs."""
        if self._running is not None and self._running[1] is cancelled:
            self._answers.forget()
            await on_own_thread(self._running[0].stop)

    def _forget(self) -> None:
        self._answers.forget()
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            threading.Thread(target=worker.close, name="pallas-lint-probe", daemon=True).start()

    def shutdown(self) -> None:
        """End all workers; returns when they have ended."""
        if self._idle is not None:
            self._idle.cancel()
        for worker in self._workers.values():
            worker.stop()


async def on_own_thread(work: Callable[[], T]) -> T:
    """What `work` returns, called on a thread that does not keep the server from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Any], None], value: object) -> None:
        if not future.done():
            how(value)

    def run() -> None:
        try:
            value = work()
        except BaseException as error:
            loop.call_soon_threadsafe(settle, future.set_exception, error)
        else:
            loop.call_soon_threadsafe(settle, future.set_result, value)

    threading.Thread(target=run, name="pallas-lint-probe", daemon=True).start()
    return await future


def answer_of(outcome: str, message: str, **more: Any) -> dict[str, Any]:
    return {"outcome": outcome, "message": message, "function": None, "launches": 0, "findings": 0, **more}


# -- on the probe's thread ---------------------------------------------------------------------------------------------


@define(eq=False)
class _Probe:
    """One probe."""

    _request: ProbeRequest
    _worker: Worker
    _show_status: Callable[[str], None]
    _known: Callable[[], None]
    _cancelled: threading.Event
    _begun: float = field(factory=time.monotonic, init=False)
    _spent: float = field(default=0.0, init=False)  # seconds, on showing what is known

    def answer(self, answers: Answers) -> dict[str, Any]:
        """The answer to the client. Raises Failed."""
        known = None if self._request.fresh else answers.again(self._request)
        if known is not None:
            return known
        begun = time.time()
        result, response = self._run()
        if result is not None:
            answers.keep(self._request, result, response, begun)
        return response

    def _run(self) -> tuple[ProbeResult | None, dict[str, Any]]:
        request = self._request
        texts = {str(file): source.text for file, source in request.texts.items()}
        try:
            session = Session(self._worker, request.root, request.conditions, self._progress, self._stage_ended, texts)
            result = session.probe(request.spec)
        except _Cancelled:
            return None, answer_of("cancelled", "the probe was cancelled")
        except WorkerError as error:
            raise Failed(str(error)) from error
        if self._cancelled.is_set():
            return None, answer_of("cancelled", "the probe was cancelled")
        findings, errors = self._keep(result)
        if errors and not result.launches:
            raise Failed(". ".join(error.message for error in errors))
        parts = [_counted(len(result.launches), "launch", "es"), _counted(len(findings), "finding", "s")]
        costs = [cost for launch in result.launches for cost in launch.costs]
        parts = [*(headline(cost) for cost in costs[:_MAX_COSTS]), *parts]
        message = f"`{request.spec.function}` was probed: {', '.join(parts)}"
        message = ". ".join((message, *(error.message for error in errors)))
        return result, answer_of("done", message, launches=len(result.launches), findings=len(findings))

    def _progress(self, text: str) -> None:
        if self._cancelled.is_set():
            raise _Cancelled
        self._show_status(_in_words(text.removeprefix(f"{self._request.spec.function}: ")))

    def _stage_ended(self, result: ProbeResult) -> None:
        """Have what is known so far be shown; of many launches not so often that it holds them up."""
        if self._spent <= _AT_FIRST + _SHARE * (time.monotonic() - self._begun):
            begun = time.thread_time()
            self._keep(result)
            self._known()
            self._spent += time.thread_time() - begun

    def _keep(self, result: ProbeResult) -> tuple[list[Finding], list[LintError]]:
        """Store the result of a probe for views; returns the findings, and the errors."""
        from pallas_lint.probe.findings import all_findings
        from pallas_lint.probe.known_defects import known_defects

        request = self._request
        texts = {shown_file(str(file), request.root): source for file, source in request.texts.items()}
        lines = Lines(request.root, texts)
        findings, errors = all_findings([result], request.root, lines.line)
        findings += known_defects([result], lines)
        if result.launches:
            stored_runs.store(request.root, [result], findings, request.texts)
        return findings, errors


def _counted(number: int, what: str, several: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number or 'no'} {what}{several}"


def _in_words(task: str) -> str:
    """ "compiling for tpu:v5e" of the task "compile:0:tpu:v5e"."""
    stage, _, rest = task.partition(":")
    target = rest.partition(":")[2]
    return f"{_DOING.get(stage, stage)}{' for ' if target else ''}{target}"
