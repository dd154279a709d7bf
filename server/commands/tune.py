"""`pallasLint.tune`: block sizes of a function are tried, and the fastest are written where its user says so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.commands.probe import NOT_ALLOWED, asked_for, chosen_function, spec_of
from pallas_lint.server.probing.prober import Failed, answer_of, on_own_thread
from pallas_lint.server.protocol.positions import range_of
from pallas_lint.server.protocol.progress import Progress
from pallas_lint.server.protocol.session import argument

from pallas_lint.probe.client import WorkerError
from pallas_lint.probe.perf import better
from pallas_lint.probe.perf.tuning import Tuning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.document_state import DocumentState

WRITE = "Write Them"


async def tune(ls: PallasServer, given: object = None) -> dict[str, Any]:
    """`pallasLint.tune`: what came of it, which is told in a message too."""
    try:
        return await _answered(ls, argument(given))
    except Failed as error:
        ls.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Warning, message=f"pallas-lint: {error}"))
        return answer_of("failed", str(error))


async def _answered(ls: PallasServer, request: Mapping[str, Any]) -> dict[str, Any]:
    uri, function, line = (request.get(key) for key in ("uri", "function", "line"))
    if not (isinstance(uri, str) and isinstance(function, str | None) and isinstance(line, int | None)):
        raise Failed("the request is not understood: it has `uri`, and `function` or `line`")
    if not ls.probe_allowed:
        raise Failed(NOT_ALLOWED)
    state, chosen = await chosen_function(ls, uri, function, line)
    spec = spec_of(ls, state, chosen, None)
    if spec is None:
        raise Failed(f"with what arguments? Write them above `{chosen.name}`: # pallas-lint: probe(f32[512,512])")
    known = better.blocks(spec, state.source.text)
    if known is None:
        raise Failed(f"no argument of `{chosen.name}` is as block sizes are: powers of two from 8 on, by default")
    asked = await asyncio.to_thread(asked_for, ls, state, chosen, spec, (), fresh=True, perf=True)
    texts = {str(file): source.text for file, source in asked.texts.items()}
    loop = asyncio.get_running_loop()

    def say(text: str) -> None:
        loop.call_soon_threadsafe(progress.say, text)

    async with Progress(ls, f"Trying block sizes of {spec.function}", cancellable=True) as progress:
        tuning = Tuning(
            spec, better.around(known), asked.python, asked.root, asked.conditions,
            say, known.values, texts,
        )  # fmt: skip
        progress.on_cancel(tuning.stop)
        try:
            finished = await on_own_thread(tuning.run)
        except WorkerError as error:
            raise Failed(str(error)) from error
    found = next(better.findings(tuning, known), None)
    if found is None:
        message = f"of {len(tuning.tried)} choices none is clearly faster than now" if finished else "it was cancelled"
        ls.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Info, message=f"pallas-lint: {message}"))
        return answer_of("done" if finished else "cancelled", message)
    written = await _offered(ls, state, tuning, known, found.message)
    return answer_of("done", found.message, written=written)


async def _offered(ls: PallasServer, state: DocumentState, tuning: Tuning, known: better.Now, message: str) -> bool:
    """Ask whether the best values are to become the defaults; whether they have."""
    best = tuning.best(tuning.targets[0])[0]
    texts = [(known.places[name], text) for name, text in best.values if name in known.places]
    edits = [lsp.TextEdit(range_of(state.source, span, ls.workspace.position_codec), text) for span, text in texts]
    actions = [lsp.MessageActionItem(WRITE)] if edits else []
    shown = lsp.ShowMessageRequestParams(lsp.MessageType.Info, f"pallas-lint: {message}", actions)
    answer = await ls.window_show_message_request_async(shown)
    if answer is None or answer.title != WRITE:
        return False
    version = lsp.OptionalVersionedTextDocumentIdentifier(state.uri, state.version)
    change = lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(version, edits)])
    label = f"Block sizes of {tuning.spec.function}"
    return (await ls.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(edit=change, label=label))).applied
