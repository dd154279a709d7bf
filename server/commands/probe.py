"""`pallasLint.probe`: probes a function on request."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.probing.prober import Failed, ProbeRequest, answer_of
from pallas_lint.server.protocol.progress import Progress
from pallas_lint.server.protocol.session import argument, refresh_views
from pallas_lint.server.workspace.client_settings import client_commands

from pallas_lint.checker.targeting import targets_of
from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.options import TARGETS, OptionError
from pallas_lint.notebooks.notebook import Notebook
from pallas_lint.probe import specs
from pallas_lint.probe.session import ProbeOptions
from pallas_lint.records import define, evolve, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.probing.probe_targets import Chosen
    from pallas_lint.server.workspace.document_state import DocumentState

NOT_ALLOWED = (
    "the probe runs the project's code, which this server was not started for: in VS Code trust the workspace and turn"
    " on the setting pallasLint.probe.enable, in another editor start it as `pallas-lint server --allow-probe`"
)


async def probe(ls: PallasServer, given: object = None) -> dict[str, Any]:
    """`pallasLint.probe`: the result; other editors than VS Code also get a message."""
    request = argument(given)
    try:
        answer = await _answered(ls, request)
    except Failed as error:
        answer = answer_of("failed", str(error))
    if not client_commands(ls.initial_settings):
        kind = {"done": lsp.MessageType.Info, "cancelled": lsp.MessageType.Info}.get(
            answer["outcome"], lsp.MessageType.Warning
        )
        message = f"pallas-lint: {answer['message']}"
        ls.window_show_message(lsp.ShowMessageParams(type=kind, message=message))
    return answer


async def _answered(ls: PallasServer, request: Mapping[str, Any]) -> dict[str, Any]:
    only_questions = request.get("ask") is True  # only the questions for the user are requested: nothing is run
    if not ls.probe_allowed and not only_questions:
        return answer_of("not-allowed", NOT_ALLOWED)
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
    state, chosen = await chosen_function(ls, uri, function, line)
    spec = spec_of(ls, state, chosen, arguments)
    if spec is None and not only_questions and not client_commands(ls.initial_settings):
        spec = await spec_of_known_call(ls, state, chosen)  # for which other clients prompt their users
    if spec is None or only_questions:
        return await needs_arguments(ls, state, chosen, spec)
    fresh, perf = request.get("fresh") is True, request.get("perf") is True
    probe = await asyncio.to_thread(probe_request, ls, state, chosen, spec, targets, fresh=fresh, perf=perf)
    return await _with_progress(ls, probe)


async def chosen_function(
    ls: PallasServer, uri: str, function: str | None, line: int | None
) -> tuple[DocumentState, Chosen]:
    """The document and the function that a request is about: of a cell, in its notebook. Raises Failed."""
    cell_of = ls.notebooks.of_cell(uri)
    if cell_of is not None:
        uri, _, cell = cell_of
        line = None if line is None else line + cell.first - 1
    state = await ls.documents.state(uri)
    if state is None:
        raise Failed("the file is not open")
    if state.file_analysis is None:
        raise Failed(state.problem or "the file could not be judged")
    if not state.has_analysis:
        raise Failed("no kernel is launched in this file")
    analysis = state.analysis
    from pallas_lint.server.probing import probe_targets

    at = None if line is None else line + 1
    try:
        return state, await ls.documents.on_thread(probe_targets.choose, analysis, function, at)
    except probe_targets.NoFunction as error:
        raise Failed(str(error)) from error


def spec_of(ls: PallasServer, state: DocumentState, chosen: Chosen, arguments: str | None) -> specs.Spec | None:
    """What to probe; None where the user has to enter the arguments. Raises Failed."""
    file = str(ls.documents.path(state.uri))
    try:
        if arguments is not None:
            return specs.parse_arguments(arguments, file, chosen.name)
        commented = [spec for spec in specs.comments_in(state.source.text, file) if spec.function == chosen.name]
    except specs.SpecError as error:
        raise Failed(str(error)) from error
    if commented:
        return commented[-1]
    return None if chosen.needs_arguments else specs.Spec(file, chosen.name)


async def spec_of_known_call(ls: PallasServer, state: DocumentState, chosen: Chosen) -> specs.Spec | None:
    """What to probe with the call that lenses and hints show; None where too little of it is known."""
    from pallas_lint.server.probing.suggested_arguments import arguments_of
    from pallas_lint.server.views.calls import shown_call

    known = await ls.documents.on_thread(shown_call, state, chosen.name)
    arguments = arguments_of(known, chosen) if known is not None else None
    return None if arguments is None else spec_of(ls, state, chosen, arguments)


async def needs_arguments(
    ls: PallasServer, state: DocumentState, chosen: Chosen, spec: specs.Spec | None
) -> dict[str, Any]:
    """The answer that has the client prompt its user, with suggestions: what `spec` has, else the known call."""
    from pallas_lint.server.probing.suggested_arguments import suggestion
    from pallas_lint.server.views.calls import shown_call

    analysis, runs = state.analysis, ls.documents.probed.runs(ls.documents.path(state.uri))
    known = await ls.documents.on_thread(shown_call, state, chosen.name)
    suggested = await ls.documents.on_thread(suggestion, chosen, analysis, runs, known)
    suggested = spec.spelled if spec is not None and spec.spelled else suggested
    message = (
        f"with what arguments is `{chosen.name}` to be probed? Write them into a comment above it:"
        f" # pallas-lint: probe({suggested})"
    )
    function = {**chosen.document(suggested), "known": known is not None}
    return answer_of("needs-arguments", message, function=function)


def probe_request(
    ls: PallasServer, state: DocumentState, chosen: Chosen, spec: specs.Spec, targets: Sequence[object], *,
    fresh: bool, perf: bool,
) -> ProbeRequest:  # fmt: skip
    """With which interpreter and under which conditions: of the client, else of the project's settings.

    `perf`: to predict its cost, which runs nothing in interpret mode.
    """
    file = ls.documents.path(state.uri)
    folder = ls.folders.of(file)
    client = folder.client
    table = state.settings.probe if state.settings is not None else {}
    try:
        python = find_python(file.parent, client.interpreter or table.get("python"))
        wanted = tuple(str(target) for target in TARGETS.parse(list(targets)))
    except (InterpreterError, OptionError) as error:
        raise Failed(str(error)) from error
    configured = ProbeOptions.of(table, wanted or client.probe_targets)
    conditions = evolve(
        configured,
        targets=configured.targets or _chosen_targets(state, chosen),
        timeout=client.probe_timeout or configured.timeout,
        memory_limit=client.probe_memory or configured.memory_limit,
        real=ls.run_allowed,
    )
    if perf:
        tpus = tuple(target for target in conditions.targets if target.startswith("tpu"))
        compared = specs.reference_of(state.source.text, chosen.name) is not None
        conditions = evolve(conditions, targets=tpus, stage=None, perf=True, whole=compared, runs=False, real=False)
    texts = ls.documents.differing()
    if isinstance(state.source, Notebook):
        from pallas_lint.server.probing.probe_targets import module_of

        texts[file] = module_of(state.source, chosen.name)
    return ProbeRequest(state, file, folder, chosen, spec, python, conditions, texts, fresh)


def _chosen_targets(state: DocumentState, chosen: Chosen) -> tuple[str, ...]:
    """The project's targets for which a function's launches are checked; empty: each launch's own."""
    if state.settings is None or not state.settings.target:
        return ()
    from pallas_lint.server.probing.probe_targets import launches_from

    analysis = state.analysis
    launches = list(launches_from(analysis, chosen)) or analysis.launches  # it may hand a kernel to who launches it
    found = {target: None for launch in launches for target in targets_of(launch, state.settings) or ()}
    return () if any(target.core is not None for target in found) else tuple(map(str, found))


async def _with_progress(ls: PallasServer, request: ProbeRequest) -> dict[str, Any]:
    """Run it, report progress to the client, and stop it when the client cancels."""
    cancelled = threading.Event()
    loop = asyncio.get_running_loop()
    stopping: set[asyncio.Task[None]] = set()

    def stop() -> None:
        cancelled.set()
        stopping.add(loop.create_task(ls.prober.stop(cancelled)))

    shown = _Shown(ls, request.state.uri)
    async with Progress(ls, f"Probing {request.spec.function}", cancellable=True) as progress:
        progress.on_cancel(stop)
        answer = await ls.prober.run(request, progress.show, shown.again, cancelled)
    await shown.finish(again=bool(answer["launches"]))
    if answer["outcome"] == "done":
        await _show_call(ls, request)
    return answer


async def _show_call(ls: PallasServer, request: ProbeRequest) -> None:
    """Have lenses and hints show the call that was probed, where they show calls of the function."""
    from pallas_lint.server.views.calls import probed_call

    state = await ls.documents.state(request.state.uri)
    if state is None or not state.has_analysis:
        return
    call = await ls.documents.on_thread(probed_call, state, request.spec.function, request.spec.spelled)
    if call is not None:
        ls.documents.pick(state.uri, request.spec.function, call)
        refresh_views(ls)


@define(eq=False)
class _Shown:
    """What the client shows of a document while a probe of it goes on."""

    _ls: PallasServer
    _uri: str
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _changed: bool = field(default=False, init=False)

    def again(self) -> None:
        """More is known: show it, once what is being shown is."""
        self._changed = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._show())

    async def _show(self) -> None:
        while self._changed:
            self._changed = False
            await _show(self._ls, self._uri)

    async def finish(self, *, again: bool) -> None:
        """Show the last of it."""
        if again:
            self.again()
        if self._task is not None:
            await self._task


async def _show(ls: PallasServer, uri: str) -> None:
    """Have the client show what is new about a document."""
    ls.documents.was_probed(uri)
    await ls.documents.state(uri)
    ls.protocol.notify("pallasLint/probed", {"uri": uri})
    workspace = ls.client_capabilities.workspace
    can = workspace.diagnostics if workspace is not None and ls.reporter.pulls else None
    if can is not None and can.refresh_support:
        ls.workspace_diagnostic_refresh(None)
    refresh_views(ls)
