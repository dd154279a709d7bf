"""Completion of rule codes and names in suppression comments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from pallas_lint.rule import all_rules

if TYPE_CHECKING:
    from pallas_lint.source import Source

_BEFORE = re.compile(r"#\s*(?:pallas-lint:\s*disable(?:-file)?=|noqa:\s*)(?:[\w-]+\s*,\s*)*([\w-]*)$")


def completions(source: Source, line: int, before: str) -> list[lsp.CompletionItem]:
    """The rules that can stand at the end of `before`, the text of a line up to the cursor."""
    match = _BEFORE.search(before)
    if match is None:
        return []
    start = len(before) - len(match[1])
    place = lsp.Range(
        start=lsp.Position(line=line, character=start), end=lsp.Position(line=line, character=len(before))
    )
    return [
        lsp.CompletionItem(
            label=code,
            detail=entry.name,
            filter_text=f"{code} {entry.name}",
            kind=lsp.CompletionItemKind.EnumMember,
            documentation=entry.summary,
            text_edit=lsp.TextEdit(range=place, new_text=code),
        )
        for code, entry in all_rules().items()
    ]
