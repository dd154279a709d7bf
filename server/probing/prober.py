"""Probing a function for an editor: asked for by its user, in a process of its own, off the event loop.

The server itself never runs the user's code; whether a worker may is decided by whoever started the server.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, evolve, field, frozen
from lsprotocol import types as lsp
from pallas_lint.server.protocol.progress import Progress
from pallas_lint.server.protocol.session import argument
from pallas_lint.server.workspace.client_settings import client_commands

from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.options import TARGETS, OptionError
from pallas_lint.notebooks.notebook import SUFFIX
from pallas_lint.probe import facts, specs
from pallas_lint.probe.client import Worker, WorkerError
from pallas_lint.probe.session import Conditions, Session
from pallas_lint.report.lines import Lines
from pallas_lint.run.project import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.probing.probe_targets import Chosen
    from pallas_lint.server.workspace.documents import Judged
    from pallas_lint.server.workspace.folders import Folder

    from pallas_lint.text.source import Source

T = TypeVar("T")

IDLE = 600.0  # seconds after which a worker that nobody asks is ended
NOT_ALLOWED = (
    "the probe runs the project's code, which this server was not started for: in VS Code trust the workspace and turn"
    " on the setting pallasLint.probe.enable, in another editor start it as `pallas-lint server --allow-probe`"
)
_DOING = {
    "load": "importing the file",
    "trace": "tracing",
    "grid": "walking over the grid",
    "interpret": "running it in interpret mode",
    "checks": "checking what it reads and writes",
    "lower": "lowering",
    "compile": "compiling",
}


class Failed(Exception):
    """The probe could not be made; the message is one sentence."""


class _Cancelled(Exception):
    """Nobody waits for the answer any more."""


@frozen
class Asked:
    """A request for a probe, made sense of."""

    judged: Judged
    file: Path
    folder: Folder
    chosen: Chosen
    spec: specs.Spec
    python: str
    conditions: Conditions
    texts: Mapping[Path, Source]  # of open documents that are not as on disk

    @property
    def root(self) -> Path:
        return project_root(self.file.parent)


@define(eq=False)
class Prober:
    """The workers, one for each interpreter and project, and the one probe that runs at a time."""

    _workers: dict[tuple[str, Path], Worker] = field(factory=dict, init=False)
    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _running: tuple[Worker, threading.Event] | None = field(default=None, init=False)
    _idle: asyncio.TimerHandle | None = field(default=None, init=False)

    async def run(self, asked: Asked, tell: Callable[[str], None], cancelled: threading.Event) -> dict[str, Any]:
        """Probe, keep what is found, and return the answer to the client; raises Failed.

        Once `cancelled` is set the worker is ended; so it is where this very call is cancelled.
        """
        loop = asyncio.get_running_loop()
        async with self._turn:
            if cancelled.is_set():
                return _answer("cancelled", "the probe was cancelled")
            if self._idle is not None:
                self._idle.cancel()
            key = asked.python, asked.root
            worker = self._workers.setdefault(key, Worker(asked.python, asked.root))
            self._running = worker, cancelled

            def say(text: str) -> None:
                loop.call_soon_threadsafe(tell, text)

            done = asyncio.ensure_future(on_own_thread(lambda: _probe(asked, worker, say, cancelled)))
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:
                cancelled.set()
                await on_own_thread(worker.stop)
                await asyncio.wait([done])
                raise
            finally:
                self._running = None
                self._idle = loop.call_later(IDLE, self._forget)

    async def stop(self, cancelled: threading.Event) -> None:
        """End the probe that is called off by this event, if it is the one that runs."""
        if self._running is not None and self._running[1] is cancelled:
            await on_own_thread(self._running[0].stop)

    def _forget(self) -> None:
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


def _answer(outcome: str, message: str, **more: Any) -> dict[str, Any]:
    return {"outcome": outcome, "message": message, "function": None, "launches": 0, "findings": 0, **more}


# -- on the probe's thread ---------------------------------------------------------------------------------------------


def _probe(asked: Asked, worker: Worker, tell: Callable[[str], None], cancelled: threading.Event) -> dict[str, Any]:
    from pallas_lint.probe.findings import all_findings

    def progress(text: str) -> None:
        if cancelled.is_set():
            raise _Cancelled
        tell(_spoken(text.removeprefix(f"{asked.spec.function}: ")))

    texts = {str(file): source.text for file, source in asked.texts.items()}
    try:
        result = Session(worker, asked.root, asked.conditions, progress, texts).probe(asked.spec)
    except _Cancelled:
        return _answer("cancelled", "the probe was cancelled")
    except WorkerError as error:
        raise Failed(str(error)) from error
    if cancelled.is_set():
        return _answer("cancelled", "the probe was cancelled")
    lines = Lines(asked.root, {_shown(file, asked.root): source for file, source in asked.texts.items()})
    findings, errors = all_findings([result], asked.root, lines.line)
    if result.launches:
        facts.store(asked.root, [result], findings, asked.texts)
    if errors and not result.launches:
        raise Failed(". ".join(error.message for error in errors))
    told = [_counted(len(result.launches), "launch", "es"), _counted(len(findings), "finding", "s")]
    message = f"`{asked.spec.function}` was probed: {', '.join(told)}"
    return _answer(
        "done",
        ". ".join((message, *(error.message for error in errors))),
        launches=len(result.launches),
        findings=len(findings),
    )


def _counted(number: int, what: str, several: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number or 'no'} {what}{several}"


def _spoken(task: str) -> str:
    """ "compiling for tpu:v5e" of the task "compile:0:tpu:v5e"."""
    stage, _, rest = task.partition(":")
    target = rest.partition(":")[2]
    return f"{_DOING.get(stage, stage)}{' for ' if target else ''}{target}"


def _shown(file: Path, root: Path) -> str:
    """A path as findings name it."""
    try:
        return file.relative_to(root).as_posix()
    except ValueError:
        return file.as_posix()


# -- the commands ------------------------------------------------------------------------------------------------------


def register(server: PallasServer) -> None:
    """Have the server answer the commands."""
    server.command("pallasLint.probe")(probe)
    server.command("pallasLint.writeProbeComment")(write_comment)


async def probe(ls: PallasServer, given: object = None) -> dict[str, Any]:
    """`pallasLint.probe`: what came of it; another editor than VS Code is told in a message too."""
    request = argument(given)
    try:
        answer = await _answered(ls, request)
    except Failed as error:
        answer = _answer("failed", str(error))
    if not client_commands(ls.initial_settings):
        kind = {"done": lsp.MessageType.Info, "cancelled": lsp.MessageType.Info}.get(
            answer["outcome"], lsp.MessageType.Warning
        )
        message = f"pallas-lint: {answer['message']}"
        ls.window_show_message(lsp.ShowMessageParams(type=kind, message=message))
    return answer


async def _answered(ls: PallasServer, request: Mapping[str, Any]) -> dict[str, Any]:
    asking = request.get("ask") is True  # what the user is to be asked is all that is wanted: nothing is run
    if not ls.probe_allowed and not asking:
        return _answer("not-allowed", NOT_ALLOWED)
    uri, function, line, arguments = (request.get(key) for key in ("uri", "function", "line", "arguments"))
    targets = request.get("targets") or ()
    if not (
        isinstance(uri, str)
        and isinstance(function, str | None)
        and isinstance(line, int | None)
        and isinstance(arguments, str | None)
        and isinstance(targets, list | tuple)
    ):
        raise Failed("the request is not understood: it has `uri`, and `function` or `line`, and maybe `arguments`")
    judged, chosen = await _chosen(ls, uri, function, line)
    spec = _spec(ls, judged, chosen, arguments)
    file = ls.documents.path(uri)
    if spec is None or asking:
        from pallas_lint.server.probing import probe_targets

        assert judged.judgement is not None and judged.judgement.analysis is not None
        analysis, runs = judged.judgement.analysis, ls.documents.probed.runs(file)
        suggested = await ls.documents.on_thread(probe_targets.suggestion, chosen, analysis, runs)
        suggested = spec.spelled if spec is not None and spec.spelled else suggested
        message = (
            f"with what arguments is `{chosen.name}` to be probed? Write them into a comment above it:"
            f" # pallas-lint: probe({suggested})"
        )
        return _answer("needs-arguments", message, function=chosen.document(suggested))
    asked = await asyncio.to_thread(_asked, ls, judged, chosen, spec, targets)
    return await _with_progress(ls, asked)


async def _chosen(ls: PallasServer, uri: str, function: str | None, line: int | None) -> tuple[Judged, Chosen]:
    """The document and the function that a request is about. Raises Failed."""
    if uri.startswith("vscode-notebook-cell:") or ls.documents.path(uri).suffix == SUFFIX:
        raise Failed("cells of a notebook cannot be probed: put the kernel and its launch into a module")
    judged = await ls.documents.judged(uri)
    if judged is None:
        raise Failed("the file is not open")
    if judged.judgement is None:
        raise Failed(judged.problem or "the file could not be judged")
    analysis = judged.judgement.analysis
    if analysis is None:
        raise Failed("no kernel is launched in this file")
    from pallas_lint.server.probing import probe_targets

    at = None if line is None else line + 1
    try:
        return judged, await ls.documents.on_thread(probe_targets.choose, analysis, function, at)
    except probe_targets.NoFunction as error:
        raise Failed(str(error)) from error


def _spec(ls: PallasServer, judged: Judged, chosen: Chosen, arguments: str | None) -> specs.Spec | None:
    """What to probe; None where the user has to say with what arguments. Raises Failed."""
    file = str(ls.documents.path(judged.uri))
    try:
        if arguments is not None:
            return specs.parse_arguments(arguments, file, chosen.name)
        commented = [spec for spec in specs.comments_in(judged.source.text, file) if spec.function == chosen.name]
    except specs.SpecError as error:
        raise Failed(str(error)) from error
    if commented:
        return commented[-1]
    return None if chosen.needs_arguments else specs.Spec(file, chosen.name)


def _asked(ls: PallasServer, judged: Judged, chosen: Chosen, spec: specs.Spec, targets: Sequence[object]) -> Asked:
    """With which interpreter and under which conditions: of the client, else of the project's settings."""
    file = ls.documents.path(judged.uri)
    folder = ls.folders.of(file)
    client = folder.client
    told = judged.settings.probe if judged.settings is not None else {}
    try:
        python = find_python(file.parent, client.interpreter or told.get("python"))
        wanted = tuple(str(target) for target in TARGETS.parse(list(targets)))
    except (InterpreterError, OptionError) as error:
        raise Failed(str(error)) from error
    configured = Conditions.of(told, wanted or client.probe_targets)
    conditions = evolve(
        configured,
        timeout=client.probe_timeout or configured.timeout,
        memory_limit=client.probe_memory or configured.memory_limit,
    )
    return Asked(judged, file, folder, chosen, spec, python, conditions, ls.documents.differing())


async def _with_progress(ls: PallasServer, asked: Asked) -> dict[str, Any]:
    """Run it, tell the client how far it is, and have it stop where the client says so."""
    cancelled = threading.Event()
    loop = asyncio.get_running_loop()
    stopping: set[asyncio.Task[None]] = set()

    def stop() -> None:
        cancelled.set()
        stopping.add(loop.create_task(ls.prober.stop(cancelled)))

    async with Progress(ls, f"Probing {asked.spec.function}", cancellable=True) as progress:
        progress.on_cancel(stop)
        answer = await ls.prober.run(asked, progress.say, cancelled)
    if answer["launches"]:
        await _show(ls, asked.judged.uri)
    return answer


async def _show(ls: PallasServer, uri: str) -> None:
    """Have the client show what is new about a document."""
    ls.documents.was_probed(uri)
    await ls.documents.judged(uri)
    ls.protocol.notify("pallasLint/probed", {"uri": uri})
    workspace = ls.client_capabilities.workspace
    if workspace is None:
        return
    for can, refresh in (
        (workspace.diagnostics if ls.reporter.pulls else None, ls.workspace_diagnostic_refresh),
        (workspace.code_lens, ls.workspace_code_lens_refresh),
        (workspace.inlay_hint, ls.workspace_inlay_hint_refresh),
    ):
        if can is not None and can.refresh_support:
            refresh(None)


async def write_comment(ls: PallasServer, given: object = None) -> bool:
    """`pallasLint.writeProbeComment`: write the arguments above the function; whether the client took the edit."""
    request = argument(given)
    uri, function, arguments = (request.get(key) for key in ("uri", "function", "arguments"))
    if not (isinstance(uri, str) and isinstance(function, str) and isinstance(arguments, str)):
        return False
    try:
        judged, chosen = await _chosen(ls, uri, function, None)
        text = specs.parse_arguments(arguments, judged.source.path, function).spelled
    except (Failed, specs.SpecError) as error:
        ls.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Warning, message=f"pallas-lint: {error}"))
        return False
    edit = comment_edit(judged.source, chosen, f"# pallas-lint: probe({text})")
    changes = lsp.WorkspaceEdit(changes={uri: [edit]})
    label = f"Probe comment of {function}"
    done = await ls.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(edit=changes, label=label))
    return done.applied


def comment_edit(source: Source, chosen: Chosen, comment: str) -> lsp.TextEdit:
    """The edit that writes a probe comment above a function and its decorators, in place of the one that is there."""
    first = source.line(chosen.line)
    indent = first[: len(first) - len(first.lstrip())]
    above = chosen.line - 1
    while above and source.line(above).strip().startswith("#") and not specs.is_comment(source.line(above)):
        above -= 1
    if above and specs.is_comment(source.line(above)):
        old = len(source.line(above))  # of a line without astral characters: it is a probe comment
        start, end = lsp.Position(above - 1, 0), lsp.Position(above - 1, old)
        return lsp.TextEdit(range=lsp.Range(start, end), new_text=f"{indent}{comment}")
    place = lsp.Position(chosen.line - 1, 0)
    newline = "\r\n" if "\r\n" in source.text else "\n"
    return lsp.TextEdit(range=lsp.Range(place, place), new_text=f"{indent}{comment}{newline}")
