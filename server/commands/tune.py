"""`pallasLint.tune`: tries block sizes of a function, and writes the fastest when the user agrees."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.commands.probe import (
    NOT_ALLOWED,
    chosen_function,
    needs_arguments,
    probe_request,
    spec_of,
    spec_of_known_call,
)
from pallas_lint.server.probing.prober import Failed, answer_of, on_own_thread
from pallas_lint.server.protocol.positions import range_of
from pallas_lint.server.protocol.progress import Progress
from pallas_lint.server.protocol.session import argument
from pallas_lint.server.workspace.client_settings import client_commands

from pallas_lint.probe.client import WorkerError
from pallas_lint.probe.tuning import better_arguments
from pallas_lint.probe.tuning.combinations import Tuning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.document_state import DocumentState

WRITE, SHOW = "Write Them", "Show Table"
TRIED = "pallasLint/tried"  # shows a page of Markdown, where the client has SHOW_TRIED among its commands
SHOW_TRIED = "pallasLint.showTried"


async def tune(ls: PallasServer, given: object = None) -> dict[str, Any]:
    """`pallasLint.tune`: what came of it; other editors than VS Code get a message about a failure too."""
    try:
        answer = await _answered(ls, argument(given))
    except Failed as error:
        answer = answer_of("failed", str(error))
    if not client_commands(ls.initial_settings) and answer["outcome"] not in ("done", "cancelled"):
        message = f"pallas-lint: {answer['message']}"
        ls.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Warning, message=message))
    return answer


async def _answered(ls: PallasServer, request: Mapping[str, Any]) -> dict[str, Any]:
    uri, function, line, arguments = (request.get(key) for key in ("uri", "function", "line", "arguments"))
    if not (
        isinstance(uri, str)
        and isinstance(function, str | None)
        and isinstance(line, int | None)
        and isinstance(arguments, str | None)
    ):
        raise Failed("the request is not understood: it has `uri`, and `function` or `line`, and maybe `arguments`")
    if not ls.probe_allowed:
        return answer_of("not-allowed", NOT_ALLOWED)
    state, chosen = await chosen_function(ls, uri, function, line)
    spec = spec_of(ls, state, chosen, arguments) or await spec_of_known_call(ls, state, chosen)
    if spec is None:
        return await needs_arguments(ls, state, chosen, None)
    known = better_arguments.blocks(spec, state.source.text)
    if known is None:
        raise Failed(f"no argument of `{chosen.name}` is as block sizes are: powers of two from 8 on, by default")
    probe = await asyncio.to_thread(probe_request, ls, state, chosen, spec, (), fresh=True, perf=True)
    texts = {str(file): source.text for file, source in probe.texts.items()}
    loop = asyncio.get_running_loop()

    def show(text: str) -> None:
        loop.call_soon_threadsafe(progress.show, text)

    async with Progress(ls, f"Trying block sizes of {spec.function}", cancellable=True) as progress:
        tuning = Tuning(
            spec, better_arguments.around(known), probe.python, probe.root, probe.conditions,
            show, known.values, texts,
        )  # fmt: skip
        progress.on_cancel(tuning.stop)
        try:
            finished = await on_own_thread(tuning.run)
        except WorkerError as error:
            raise Failed(str(error)) from error
        except asyncio.CancelledError:
            await on_own_thread(tuning.stop)
            raise
    found = next(better_arguments.findings(tuning, known), None)
    message = (
        found.message
        if found is not None
        else f"of {len(tuning.trials)} choices none is clearly faster than now"
        if finished
        else "it was cancelled"
    )
    written = await _offered(ls, state, tuning, known if found is not None else None, message)
    return answer_of("done" if finished else "cancelled", message, written=written)


async def _offered(
    ls: PallasServer,
    state: DocumentState,
    tuning: Tuning,
    known: better_arguments.CurrentArguments | None,
    message: str,
) -> bool:
    """Show the result, and offer the best values as defaults; returns whether they were written.

    `known`: what there is now, where something else is better.
    """
    from pallas_lint.server.views.tuning_results import page

    fastest = (one for target in tuning.targets for one in tuning.best(target)[:1])
    best = next(fastest, None) if known is not None else None
    places = known.places if known is not None else {}
    texts = [(places[name], text) for name, text in (best.values if best is not None else ()) if name in places]
    edits = [lsp.TextEdit(range_of(state.source, span, ls.workspace.position_codec), text) for span, text in texts]
    shows = SHOW_TRIED in client_commands(ls.initial_settings)
    if not shows and tuning.trials:
        ls.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Info, message=page(tuning)))
    answer = await _choice_of(ls, message, [WRITE] * bool(edits) + [SHOW] * (shows and bool(tuning.trials)))
    if answer == SHOW:
        ls.protocol.notify(TRIED, {"function": tuning.spec.function, "markdown": page(tuning)})
        answer = await _choice_of(ls, message, [WRITE]) if edits else None
    if answer != WRITE:
        return False
    version = lsp.OptionalVersionedTextDocumentIdentifier(state.uri, state.version)
    change = lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(version, edits)])
    label = f"Block sizes of {tuning.spec.function}"
    return (await ls.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(edit=change, label=label))).applied


async def _choice_of(ls: PallasServer, message: str, titles: list[str]) -> str | None:
    """Which of the buttons with these titles was chosen under a message."""
    actions = [lsp.MessageActionItem(title) for title in titles]
    shown = lsp.ShowMessageRequestParams(lsp.MessageType.Info, f"pallas-lint: {message}", actions)
    answer = await ls.window_show_message_request_async(shown)
    return answer.title if answer is not None else None
