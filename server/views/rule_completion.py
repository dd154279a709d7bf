"""Completion in comments: the words after `# pallas-lint:`, and the codes and names of rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import range_of

from pallas_lint.finding import Span
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.triage.silencing import NEVER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Finding, Position
    from pallas_lint.text.source import Source

_CODE = re.compile(r"#\s*(?:pallas-lint:\s*disable(-file|-next-line)?=|noqa:\s*)(?:[\w-]+\s*,\s*)*(?P<word>[\w-]*)$")
_WORD = re.compile(r"#\s*pallas-lint:(?P<gap>\s*)(?P<word>[\w-]*)$")
# What can follow `# pallas-lint:`, with what it does.
_DIRECTIVES = {
    "disable=": "silence rules on this line, or on the statement below",
    "disable-next-line=": "silence rules on the line below",
    "disable-file=": "silence rules in the whole file, at its top",
    "probe(": "arguments with which the function below is called: probe(f32[512,512], bm=128)",
    "reference(": "a plain jax function with the same results as the one below: reference(plain)",
    "assume ": "values of names that are not known: assume bm=128, bk=512",
}


def is_in_directive(source: Source, cursor: Position) -> bool:
    """Whether a comment for the linter is being written there."""
    before = source.line(cursor.line)[: cursor.column - 1]
    return _CODE.search(before) is not None or _WORD.search(before) is not None


def completions(
    source: Source, cursor: Position, codec: PositionCodec, findings: Iterable[Finding] = ()
) -> list[lsp.CompletionItem]:
    """The words or the rules that can stand at the cursor; those of `findings` that the comment would silence first."""
    before = source.line(cursor.line)[: cursor.column - 1]
    code = _CODE.search(before)
    if code is not None:
        here = _silenced(source, cursor, code, findings)
        return rule_items(word_before(source, cursor, code["word"], codec), quoted=False, first=here)
    word = _WORD.search(before)
    return _words(source, cursor, word, codec) if word is not None else []


def _silenced(source: Source, cursor: Position, code: re.Match[str], findings: Iterable[Finding]) -> Sequence[str]:
    """The rules with findings where a comment counts, each once."""
    alone = not source.line(cursor.line)[: code.start()].strip()
    line = cursor.line + (code[1] == "-next-line" or alone)
    found = (
        each.code
        for each in findings
        if code[1] == "-file" or each.span.start.line <= line <= each.span.end.line or each.span.start.line == line
    )
    return list(dict.fromkeys(each for each in found if each not in NEVER))


def _words(source: Source, cursor: Position, word: re.Match[str], codec: PositionCodec) -> list[lsp.CompletionItem]:
    where = word_before(source, cursor, word["word"], codec)
    gap = "" if word["gap"] else " "
    return [
        lsp.CompletionItem(
            label=directive.rstrip("= ("),
            kind=lsp.CompletionItemKind.Keyword,
            detail=about,
            sort_text=f"{number:03}",
            text_edit=lsp.TextEdit(range=where, new_text=f"{gap}{directive}"),
        )
        for number, (directive, about) in enumerate(_DIRECTIVES.items())
    ]


def word_before(source: Source, cursor: Position, word: str, codec: PositionCodec) -> lsp.Range:
    """The place of what is written of a word, up to the cursor."""
    start = cursor._replace(column=cursor.column - len(word))
    return range_of(source, Span(source.path, start, cursor), codec)


def rule_items(place: lsp.Range, *, quoted: bool, first: Collection[str] = ()) -> list[lsp.CompletionItem]:
    """All rules, to be put in at `place`, with those of `first` first; `quoted` with quotes around them."""
    return [
        lsp.CompletionItem(
            label=code,
            label_details=lsp.CompletionItemLabelDetails(description=entry.name),
            detail=entry.name,
            sort_text=f"{code not in first:d}{code}",
            filter_text=f'"{code} {entry.name}' if quoted else f"{code} {entry.name}",
            kind=lsp.CompletionItemKind.EnumMember,
            documentation=entry.summary,
            text_edit=lsp.TextEdit(range=place, new_text=f'"{code}"' if quoted else code),
        )
        for code, entry in all_rules().items()
    ]
