"""Settings files in the editor: hovers of keys and completion of values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.views.markdown import content, own
from pallas_lint.server.views.rule_completion import rule_items, word_before

from pallas_lint.config.settings import configurable, schema
from pallas_lint.records import frozen
from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from pathlib import Path

    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Position
    from pallas_lint.text.source import Source

_OWN = "tool.pallas-lint"  # the table of pyproject.toml
_HEADER = re.compile(r"\s*\[\[?([^\]]*)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[\w.-]+)\s*=")
_TABLES_OF_RULES = ("severity", "rules")  # their keys are rules


@frozen
class _Place:
    """Where a cursor stands: in the value of `key` (None: where a key begins) of the table `table`, "" for the top."""

    table: str
    key: str | None
    word: str  # what is written of the word at the cursor
    quoted: bool


def _place(file: Path, source: Source, line: int, before: str) -> _Place | None:
    """The place at the end of `before`, the text of a line (from 1) up to the cursor; None outside of our table."""
    table = _table_at(source, line)
    if file.name == "pyproject.toml":
        if table != _OWN and not table.startswith(f"{_OWN}."):
            return None
        table = table[len(_OWN) + 1 :]
    key, written = _open_key(source, line, before)
    quotes = re.search(r"([\"'])([^\"']*)$", written) if written.count('"') % 2 or written.count("'") % 2 else None
    word = quotes[2] if quotes else re.search(r"(?<![\w.-])[\w.-]*$", written)[0]  # type: ignore[index]
    return _Place(table, key, word, quotes is not None)


def _table_at(source: Source, line: int) -> str:
    for number in range(line - 1, 0, -1):
        header = _HEADER.match(source.line(number))
        if header:
            return re.sub(r"[\s\"']", "", header[1])
    return ""


def _open_key(source: Source, line: int, before: str) -> tuple[str | None, str]:
    """The key whose value the cursor is in, and what stands between the two."""
    written = before
    for number in range(line, max(line - 200, 0), -1):
        text = before if number == line else source.line(number)
        match = _KEY.match(text)
        if match:
            value = text[match.end() :] + ("" if number == line else written)
            closed = number != line and value.count("[") <= value.count("]") and value.count("{") <= value.count("}")
            return (None, before) if closed else (match[1].strip("\"'"), value)
        if number != line:
            written = text + written
        if _HEADER.match(text) and not text.lstrip().startswith('["'):
            break
    return None, before


def completions(file: Path, source: Source, cursor: Position, codec: PositionCodec) -> list[lsp.CompletionItem]:
    """What can stand at the cursor."""
    place = _place(file, source, cursor.line, source.line(cursor.line)[: cursor.column - 1])
    if place is None:
        return []
    where = word_before(source, cursor, place.word, codec)
    if place.key is None:
        return _keys(place, where)
    key = place.table or place.key.partition(".")[0]
    kind = schema()["properties"].get(key, {})
    if key in ("select", "extend-select", "ignore", "per-file-ignores"):
        return rule_items(where, quoted=not place.quoted)
    words = list(dict.fromkeys(_words(_below(kind, place) if place.table else kind)))
    texts = [word if place.quoted or word in ("true", "false") else f'"{word}"' for word in words]
    return [
        lsp.CompletionItem(
            label=word,
            kind=lsp.CompletionItemKind.EnumMember,
            filter_text=text,
            text_edit=lsp.TextEdit(range=where, new_text=text),
        )
        for word, text in zip(words, texts, strict=True)
    ]


def _keys(place: _Place, where: lsp.Range) -> list[lsp.CompletionItem]:
    if place.table in _TABLES_OF_RULES:
        return rule_items(where, quoted=False)
    if place.table:
        names = dict.fromkeys(schema()["properties"].get(place.table, {}).get("properties", {}), "")
    else:
        names = {key: attribute.metadata["doc"] for key, attribute in configurable().items()}
    return [
        lsp.CompletionItem(
            label=name,
            kind=lsp.CompletionItemKind.Property,
            documentation=doc or None,
            text_edit=lsp.TextEdit(range=where, new_text=name),
        )
        for name, doc in names.items()
    ]


def _below(kind: dict[str, Any], place: _Place) -> dict[str, Any]:
    """The schema's entry of a key of a table."""
    known = kind.get("properties", {}).get(place.key, kind.get("additionalProperties", {}))
    return known if isinstance(known, dict) else {}


def _words(kind: dict[str, Any]) -> list[str]:
    """The words that a value may be, or be made of."""
    if kind.get("type") == "boolean":
        return ["true", "false"]
    inner = [kind["items"]] if "items" in kind else []
    return [*kind.get("enum", ()), *(word for each in (*kind.get("anyOf", ()), *inner) for word in _words(each))]


def hover(file: Path, source: Source, line: int, column: int) -> lsp.MarkupContent | None:
    """The help for the key or the rule at a place; `line` and `column` count from 1."""
    text = source.line(line)
    word = next((m for m in re.finditer(r"[\w-]+", text) if m.start() < column <= m.end() + 1), None)
    place = _place(file, source, line, text[: word.start()]) if word is not None else None
    if word is None or place is None:
        return None
    rule = next((each for code, each in all_rules().items() if word[0] in (code, each.name)), None)
    if rule is not None:
        described = f"**{rule.code}** {rule.name}\n\n{rule.summary}"
    elif place.key is None and not place.table and word[0] in configurable():
        attribute = configurable()[word[0]]
        default = attribute.default if isinstance(attribute.default, (str, bool)) else None
        default_text = (
            f"\n\nDefault: `{str(default).lower() if isinstance(default, bool) else default}`" if default else ""
        )
        described = f"**`{word[0]}`**\n\n{attribute.metadata['doc']}{default_text}"
    else:
        return None
    return content(own(described))  # the word is one of ours
