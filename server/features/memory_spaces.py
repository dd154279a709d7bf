"""The memory that each ref is in, for clients that colour names: as semantic tokens, and as `pallasLint/refs`.

VS Code shows the semantic tokens of one extension for a file, and those of all Python are worth more. Its extension
requests the places instead, and paints them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import moved, range_of
from pallas_lint.server.protocol.session import argument
from pallas_lint.server.workspace.notebooks import is_in

from pallas_lint.memories import KINDS

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

LEGEND = lsp.SemanticTokensLegend(token_types=[lsp.SemanticTokenTypes.Parameter.value], token_modifiers=KINDS)


async def semantic_tokens(ls: PallasServer, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
    """Each name of a ref as a parameter; the modifier is its memory."""
    _, found = await _refs(ls, params.text_document.uri)
    return _encoded(found)


async def semantic_tokens_in(ls: PallasServer, params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
    """The semantic tokens in the lines of a range."""
    _, found = await _refs(ls, params.text_document.uri)
    first, last = params.range.start.line, params.range.end.line
    return _encoded([each for each in found if first <= each[0].start.line <= last])


def _encoded(found: list[tuple[lsp.Range, str]]) -> lsp.SemanticTokens:
    """Each token by its distance from the one before."""
    data: list[int] = []
    line = column = 0
    for where, kind in found:
        start = where.start
        begins = start.character - (column if start.line == line else 0)
        data += (start.line - line, begins, where.end.character - start.character, 0, 1 << KINDS.index(kind))
        line, column = start.line, start.character
    return lsp.SemanticTokens(data=data)


async def refs(ls: PallasServer, params: Any) -> dict[str, Any]:
    """The places of the names of refs, by the memory that they are in: line, begin and end, from 0.

    They are not `complete` while a line is half written: those in its function are missing.
    """
    uri = argument(params).get("uri")
    complete, found = await _refs(ls, uri) if isinstance(uri, str) else (True, [])
    places: dict[str, list[tuple[int, int, int]]] = {}
    for where, kind in found:
        places.setdefault(kind, []).append((where.start.line, where.start.character, where.end.character))
    return {"complete": complete, "places": places}


async def _refs(ls: PallasServer, uri: str) -> tuple[bool, list[tuple[lsp.Range, str]]]:
    """Whether all of a document could be read, and the names of refs in it, or in the cell of a notebook, in order."""
    cell_of = ls.notebooks.of_cell(uri)
    state = await ls.documents.state(uri if cell_of is None else cell_of[0])
    if state is None:
        return True, []
    from pallas_lint.server.views.memory_spaces import named_refs

    codec = ls.workspace.position_codec
    found = [(range_of(state.source, span, codec), kind) for span, kind in named_refs(state).items()]
    if cell_of is None:
        return not state.half_written, found
    newest = ls.notebooks.of_cell(uri)  # cells may have moved meanwhile
    if newest is None or newest[1] is not state.source:
        return False, []
    cell = newest[2]
    inside = [(moved(where, 1 - cell.first), kind) for where, kind in found if is_in(where.start, cell)]
    return not state.half_written, inside
