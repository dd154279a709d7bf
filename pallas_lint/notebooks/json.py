"""The JSON of a notebook: its cells, and their new texts put back without touching anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pallas_lint.text.source import SourceError

_BLANK = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u(?!00[0-7])", re.IGNORECASE)  # of a character that JSON could hold as it is
_PYTHON = ("python", "ipython")


class Contents(NamedTuple):
    """The code cells by number (from 1, among all cells) that hold Python, and the kernel's language."""

    cells: tuple[tuple[int, str], ...]
    language: str


def contents(document: str) -> Contents:
    """What a notebook holds. Raises SourceError with one clear sentence."""
    try:
        notebook = json.loads(document)
    except json.JSONDecodeError as error:
        raise SourceError(f"the notebook is not valid JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise SourceError("the notebook's JSON is nested too deeply") from error
    except ValueError as error:  # Python's own limit, which JSON does not have
        raise SourceError("the notebook's JSON has a number of too many digits") from error
    version = notebook.get("nbformat") if isinstance(notebook, dict) else None
    if not isinstance(version, int):
        raise SourceError("the file is not a notebook: it has no `nbformat`")
    if version < 4:
        raise SourceError(
            f"the notebook has the old format {version}; `jupyter nbconvert --to notebook --inplace` brings it to 4"
        )
    if version > 4:
        raise SourceError(f"the notebook has format {version}; 4 is the newest known")
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise SourceError("the notebook has no list of `cells`")
    found = [(number, _code(cell, number)) for number, cell in enumerate(cells, start=1)]
    return Contents(tuple((number, text) for number, text in found if text is not None), _language(notebook))


def _code(cell: Any, number: int) -> str | None:
    """The text of a cell with Python code, else None. Raises SourceError."""
    if not isinstance(cell, dict):
        raise SourceError(f"cell {number} of the notebook is not an object")
    if cell.get("cell_type") != "code" or _at(cell, "metadata", "vscode", "languageId") not in (None, "python"):
        return None
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise SourceError(f"the source of cell {number} is neither text nor a list of lines")
    return "".join(lines)


def _language(notebook: Any) -> str:
    language = _at(notebook, "language_info", "name", under="metadata") or _at(
        notebook, "kernelspec", "language", under="metadata"
    )
    return language if isinstance(language, str) and language.lower() not in _PYTHON else "python"


def _at(value: Any, *keys: str, under: str | None = None) -> Any:
    for key in (under, *keys) if under else keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def rewritten(document: str, texts: Mapping[int, str]) -> str:
    """`document` with new texts of some cells (by number); only their `source` changes."""
    parts: list[str] = []
    done = 0
    for start, end, text in _places(document, texts):
        parts += (document[done:start], _source(document[start:end], text, document))
        done = end
    return "".join((*parts, document[done:]))


def _places(document: str, texts: Mapping[int, str]) -> Iterator[tuple[int, int, str]]:
    """Where in `document` the sources of these cells stand, in order."""
    top = {key: start for key, start, _ in _members(document, _blank(document, 0))}
    for number, (start, _) in enumerate(_items(document, top["cells"]), start=1):
        if number in texts:
            members = {key: (first, last) for key, first, last in _members(document, start)}
            yield (*members["source"], texts[number])


def _source(raw: str, text: str, document: str) -> str:
    """JSON for `text`: a string or a list of lines as `raw` is one, spaced like it, with its lines where they stay."""
    ascii_only = document.isascii() and _ESCAPED.search(document) is not None
    if raw.startswith('"'):
        return _dumped(text, ascii_only)
    items = list(_items(raw, 0))
    old = [json.loads(raw[start:end]) for start, end in items]
    same = at = 0
    while same < len(old) and text.startswith(old[same], at) and old[same].endswith("\n"):
        at += len(old[same])
        same += 1
    last, end = len(old), len(text)
    while last > same and text.endswith(old[last - 1], at, end) and text[: end - len(old[last - 1])].endswith("\n"):
        last -= 1
        end -= len(old[last])
    lines = [
        *(raw[first:past] for first, past in items[:same]),
        *(_dumped(line, ascii_only) for line in text[at:end].splitlines(keepends=True)),
        *(raw[first:past] for first, past in items[last:]),
    ]
    lead, tail = (raw[1 : items[0][0]], raw[items[-1][1] : -1]) if items else ("", "")
    if len(items) > 1:
        separator = raw[items[0][1] : items[1][0]]
    else:
        separator = "," + (lead if "\n" in lead else " " if '": ' in document else "")
    return f"[{lead}{separator.join(lines)}{tail}]" if lines else "[]"


def _dumped(text: str, ascii_only: bool) -> str:
    dumped = json.dumps(text, ensure_ascii=ascii_only)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", dumped)  # half a character cannot be encoded


_decode = json.JSONDecoder().raw_decode


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each value of the object that begins at `at`."""
    at = _blank(text, at + 1)
    while text[at] != "}":
        key, at = _decode(text, at)
        start = _blank(text, _blank(text, at) + 1)
        _, end = _decode(text, start)
        yield key, start, end
        at = _blank(text, end)
        at = _blank(text, at + 1) if text[at] == "," else at


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each item of the list that begins at `at`."""
    at = _blank(text, at + 1)
    while text[at] != "]":
        _, end = _decode(text, at)
        yield at, end
        at = _blank(text, end)
        at = _blank(text, at + 1) if text[at] == "," else at
