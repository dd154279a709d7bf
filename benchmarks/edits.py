"""Edits of every kind, as in an editor, at places spread over the file."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TYPED = "n = 2"
_PASTED = 20  # lines
_PLACES = 10  # edits of one kind are made at so many places, spread over the file
_DISTANT = 60  # lines between two edits that are made at once, at least
_KERNEL = re.compile(r"^[ \t]*def \w+\((?:self, )?[^)]*(?:_ref\b|_ref,|refs\b)")
_FUNCTION = re.compile(r"^[ \t]*def (\w+)\(")


@frozen
class Change:
    """Replace a range, lines and characters counted from 0, by a text."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str

    @property
    def range(self) -> dict[str, Any]:
        places = {"start": self.start, "end": self.end}
        return {name: {"line": line, "character": character} for name, (line, character) in places.items()}


@frozen
class Edit:
    """Changes that an editor sends at once, made one after the other."""

    kind: str
    changes: tuple[Change, ...]


def applied(text: str, edit: Edit) -> str:
    """The text after an edit."""
    for change in edit.changes:
        lines = text.splitlines(keepends=True)
        (first, column), (last, end) = change.start, change.end
        before, after = "".join(lines[:first]) + lines[first][:column], lines[last][end:] + "".join(lines[last + 1 :])
        text = before + change.text + after
    return text


def groups(text: str) -> Iterator[list[Edit]]:
    """Edits without end, in groups after each of which the text is what it was; all kinds take turns."""
    lines = text.splitlines()
    kernels, others = _spread(_bodies(lines, kernels=True)), _spread(_bodies(lines, kernels=False))
    everywhere = sorted(kernels + others)
    names = _spread(_names(lines))
    for turn in count():
        if kernels:
            yield _typing("typing in a kernel", lines, kernels[turn % len(kernels)])
        if others:
            yield _typing("typing elsewhere", lines, others[turn % len(others)])
        at = everywhere[turn % len(everywhere)]
        yield _pasting(lines, at)
        yield _breaking(lines, at)
        if names:
            yield _renaming(lines, names[turn % len(names)])
        yield _formatting(lines, at, everywhere[(turn + len(everywhere) // 2) % len(everywhere)])


def _typing(kind: str, lines: Sequence[str], at: int) -> list[Edit]:
    """A statement on a line of its own, letter by letter; then the line is taken out."""
    space = lines[at][: _indent(lines[at])]
    found = [Change((at, 0), (at, 0), f"{space}\n")]
    for n, letter in enumerate(_TYPED):
        column = len(space) + n
        found.append(Change((at, column), (at, column), letter))
    found.append(Change((at, 0), (at + 1, 0), ""))
    return [Edit(kind, (change,)) for change in found]


def _pasting(lines: Sequence[str], at: int) -> list[Edit]:
    space = lines[at][: _indent(lines[at])]
    block = "".join(f"{space}pasted_{n} = {n} * 2\n" for n in range(_PASTED))
    return [
        Edit(f"pasting {_PASTED} lines", (Change((at, 0), (at, 0), block),)),
        Edit("taking them out", (Change((at, 0), (at + _PASTED, 0), ""),)),
    ]


def _breaking(lines: Sequence[str], at: int) -> list[Edit]:
    end, typed = len(lines[at]), " + ("
    return [
        Edit("breaking the syntax", (Change((at, end), (at, end), typed),)),
        Edit("mending it", (Change((at, end), (at, end + len(typed)), ""),)),
    ]


def _renaming(lines: Sequence[str], name: str) -> list[Edit]:
    """A function, wherever it is named: all places at once, the last first, as editors do."""

    def changes(old: str, new: str) -> tuple[Change, ...]:
        # The lines are as they were: a rename moves what follows on the same line only.
        places = [(at, found.start()) for at, line in enumerate(lines) for found in _word(name).finditer(line)]
        before: dict[int, int] = defaultdict(int)
        moved = []
        for at, column in places:
            moved.append((at, column + before[at]))
            before[at] += len(old) - len(name)
        return tuple(Change((at, column), (at, column + len(old)), new) for at, column in reversed(moved))

    return [
        Edit("renaming a function", changes(name, f"{name}_2")),
        Edit("renaming a function", changes(f"{name}_2", name)),
    ]


def _formatting(lines: Sequence[str], one: int, other: int) -> list[Edit]:
    """What formatting on save does: a blank line comes, or goes, at two distant places."""
    first, last = sorted((one, other))
    come = (Change((last, 0), (last, 0), "\n"), Change((first, 0), (first, 0), "\n"))
    go = (Change((last + 1, 0), (last + 2, 0), ""), Change((first, 0), (first + 1, 0), ""))
    return [Edit("formatting on save", come), Edit("formatting on save", go)]


def _names(lines: Sequence[str]) -> list[str]:
    """Functions that are named at distant places."""
    found = dict.fromkeys(match[1] for line in lines if (match := _FUNCTION.match(line)))
    return [name for name in found if len(at := _places(lines, name)) > 1 and at[-1] - at[0] >= _DISTANT]


def _places(lines: Sequence[str], name: str) -> list[int]:
    return [at for at, line in enumerate(lines) if name in line and _word(name).search(line)]


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{name}\b")


def _bodies(lines: Sequence[str], *, kernels: bool) -> list[int]:
    """Lines on which the first statement of a function begins, one with refs for parameters or one without."""
    found = []
    for at, line in enumerate(lines):
        if _FUNCTION.match(line) and bool(_KERNEL.match(_signature(lines, at))) is kernels:
            below = at
            while not lines[below].rstrip().endswith(":") and below < len(lines) - 1:
                below += 1
            below = min(below + 1, len(lines) - 1)
            if _indent(lines[below]) > _indent(line) and not lines[below].lstrip().startswith(('"', "'", "@", "#")):
                found.append(below)
    return found


def _signature(lines: Sequence[str], at: int) -> str:
    """The beginning of a function up to the colon, on one line."""
    text = lines[at]
    while not text.rstrip().endswith(":") and at + 1 < len(lines):
        at += 1
        text += lines[at]
    return text


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _spread(places: list[Any]) -> list[Any]:
    """A few of many, first to last."""
    if len(places) <= _PLACES:
        return places
    return [places[n * (len(places) - 1) // (_PLACES - 1)] for n in range(_PLACES)]
