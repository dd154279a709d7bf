"""`pallasLint.writeProbeComment`: the arguments of a probe, written above its function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.commands.probe import chosen_function
from pallas_lint.server.probing.prober import Failed
from pallas_lint.server.protocol.session import argument

from pallas_lint.notebooks.notebook import Notebook
from pallas_lint.probe import specs

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.probing.probe_targets import Chosen

    from pallas_lint.text.source import Source


async def write_comment(ls: PallasServer, given: object = None) -> bool:
    """`pallasLint.writeProbeComment`: write the arguments above the function; whether the client took the edit."""
    request = argument(given)
    uri, function, arguments = (request.get(key) for key in ("uri", "function", "arguments"))
    if not (isinstance(uri, str) and isinstance(function, str) and isinstance(arguments, str)):
        return False
    try:
        state, chosen = await chosen_function(ls, uri, function, None)
        if isinstance(state.source, Notebook):
            raise Failed("a notebook has no comment written: write it into the cell of the function")
        text = specs.parse_arguments(arguments, state.source.path, function).spelled
    except (Failed, specs.SpecError) as error:
        ls.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Warning, message=f"pallas-lint: {error}"))
        return False
    edit = comment_edit(state.source, chosen, f"# pallas-lint: probe({text})")
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
