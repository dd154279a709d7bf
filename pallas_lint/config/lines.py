"""Line numbers of the keys of a TOML file."""

from __future__ import annotations

import re

# Strings, compiled when first used: most runs have no error to place.
_PART = r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[\w-]+)"""
_DOTTED = rf"({_PART}(?:[ \t]*\.[ \t]*{_PART})*)"
_HEADER = rf"\s*\[\[?[ \t]*{_DOTTED}[ \t]*\]"
_KEY = rf"\s*{_DOTTED}[ \t]*="


def line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """The line of the entry that `keys` lead to, or of the nearest table around it; None where there is none.

    A scan by line, since the TOML parsers of the standard library keep no positions.
    """
    best: tuple[int, int] | None = None  # (keys matched, line)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        header, entry = re.match(_HEADER, line), re.match(_KEY, line)
        if header:
            table = path = _parts(header[1])
        elif entry:
            path = (*table, *_parts(entry[1]))
        else:
            continue
        # A table below what is looked for opens that too: `[tool.x]` is where `tool` is.
        matched = min(len(path), len(keys)) if path[: len(keys)] == keys[: len(path)] else 0
        if matched and (best is None or matched > best[0]):
            best = (matched, number)
    return best[1] if best else None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(map(_unquoted, re.findall(rf"(?<![^. \t]){_PART}", dotted)))


def _unquoted(part: str) -> str:
    if "\\" not in part:
        return part[1:-1] if part[0] in "\"'" else part
    from pallas_lint.text import toml

    (key,) = toml.loads(f"{part} = 0")
    return str(key)
