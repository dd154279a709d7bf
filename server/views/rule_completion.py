"""Completion of rule codes and names in suppression comments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import range_of

from pallas_lint.finding import Span
from pallas_lint.records import evolve
from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Position
    from pallas_lint.text.source import Source

_BEFORE = re.compile(r"#\s*(?:pallas-lint:\s*disable(?:-file)?=|noqa:\s*)(?:[\w-]+\s*,\s*)*([\w-]*)$")


def completions(source: Source, cursor: Position, codec: PositionCodec) -> list[lsp.CompletionItem]:
    """The rules that can stand at the cursor."""
    match = _BEFORE.search(source.line(cursor.line)[: cursor.column - 1])
    return rule_items(word_before(source, cursor, match[1], codec), quoted=False) if match is not None else []


def word_before(source: Source, cursor: Position, word: str, codec: PositionCodec) -> lsp.Range:
    """The place of what is written of a word, up to the cursor."""
    start = evolve(cursor, column=cursor.column - len(word))
    return range_of(source, Span(source.path, start, cursor), codec)


def rule_items(place: lsp.Range, *, quoted: bool) -> list[lsp.CompletionItem]:
    """All rules, to be put in at `place`; `quoted` with quotes around them."""
    return [
        lsp.CompletionItem(
            label=code,
            label_details=lsp.CompletionItemLabelDetails(description=entry.name),
            detail=entry.name,
            filter_text=f'"{code} {entry.name}' if quoted else f"{code} {entry.name}",
            kind=lsp.CompletionItemKind.EnumMember,
            documentation=entry.summary,
            text_edit=lsp.TextEdit(range=place, new_text=f'"{code}"' if quoted else code),
        )
        for code, entry in all_rules().items()
    ]
