"""Texts for the linter: kernels that people could have written, and what becomes of them on the way to the disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from pallas_lint.ruleset.registry import all_rules
from pallas_lint.testing import without_marks

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent.parent
_RULES = (entry.rule for entry in all_rules().values() if entry.package is None)
KERNELS = sorted(
    {
        *(file.read_text(encoding="utf-8") for file in (ROOT / "examples").rglob("*.py")),
        *(without_marks(example.code) + "\n" for rule in _RULES for example in (*rule.invalid, *rule.valid)),
    }
)
# One with a finding that has a safe fix.
KERNEL = (ROOT / "examples" / "index_map.py").read_text(encoding="utf-8")
# Text that is typed, pasted or lost.
PIECES = [
    *"( ) [ ] { } ( [ { : , . = == := ; @ * ** -> \\ # ' \" ''' \"\"\" f' f\"{ b' r'''".split(),
    *("\n", "\r", "\r\n", "\t", "\x0c", "\u2028", "\ufeff", "\0", "\x1a", "\x1b[31m", "é", "日本", "🟦", "e\u0301"),
    *("if 1:\n", "else:\n", "def f(", "class C:\n", "lambda", "lambda i: ", "yield", "await ", "async ", "return\n"),
    *("for _ in x_ref:\n", "while True:\n", "match x:\n", "case _:\n", "with ", "try:\n", "except* E:\n"),
    *(
        "x_ref",
        "o_ref[...] = ",
        "[::-1]",
        "[...]",
        "[None]",
        "[*x]",
        "**{}",
        "*args",
        "pl.program_id(0)",
        "pl.ds(0, 8)",
    ),
    *("# pallas-lint: disable=PAL3", "# pallas-lint: disable-file=ALL\n", "# noqa", "# pallas-lint: probe(f32[8])\n"),
    *("# pallas-lint: assume(n=8)\n", "# pallas-lint:", "global x_ref\n", "import jax as pl\n", "from x import *\n"),
    *("del x_ref\n", "nonlocal n\n", "type T = int\n"),
]
VALUES = (
    "0 1 -1 2 7 8 100 128 2**31 10**30 1e400 1.5 1j True None ... x_ref n (8,) () [] {} 'x' b'' f'{n}' not_defined "
    "jnp.float32 (1,*n) -n n//0 0**-1 1<<99 lambda:0 (n:=8) [n]*9 len pl jnp float('nan') range(3) max() "
).split()
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_NAME = re.compile(r"[^\W\d]\w*")


def _place(draw: Any, text: str) -> int:
    return int(draw(st.integers(0, len(text))))


def cut(draw: Any, text: str) -> str:
    return text[: _place(draw, text)]


def typed(draw: Any, text: str) -> str:
    at = _place(draw, text)
    return text[:at] + draw(st.sampled_from(PIECES)) + text[at:]


def lost(draw: Any, text: str) -> str:
    at = _place(draw, text)
    return text[:at] + text[at + draw(st.integers(1, 12)) :]


def lines_changed(draw: Any, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    what = draw(st.sampled_from(["delete", "repeat", "swap", "move", "indent", "of another"]))
    if what == "delete":
        del lines[first]
    elif what == "repeat":
        lines.insert(second, lines[first])
    elif what == "swap":
        lines[first], lines[second] = lines[second], lines[first]
    elif what == "move":
        lines.insert(second, lines.pop(first))
    elif what == "indent":
        lines[first] = draw(st.sampled_from(["    ", "\t", " "])) + lines[first]
    else:
        lines.insert(first, draw(st.sampled_from(draw(st.sampled_from(KERNELS)).splitlines(keepends=True))))
    return "".join(lines)


def _replaced(draw: Any, text: str, what: re.Pattern[str], by: st.SearchStrategy[str]) -> str:
    places = [match.span() for match in what.finditer(text)]
    if not places:
        return text
    start, end = draw(st.sampled_from(places))
    return text[:start] + draw(by) + text[end:]


def other_number(draw: Any, text: str) -> str:
    return _replaced(draw, text, _NUMBER, st.sampled_from(VALUES))


def other_name(draw: Any, text: str) -> str:
    return _replaced(draw, text, _NAME, st.sampled_from([*VALUES, *_NAME.findall(text)]))


def line_ends(draw: Any, text: str) -> str:
    return text.replace("\n", draw(st.sampled_from(["\r\n", "\r", "\n\x0c", " \n", "\n\n"])))


def tabs(draw: Any, text: str) -> str:
    return text.replace("    ", "\t")


def long(draw: Any, text: str) -> str:
    """Something longer or deeper than anybody writes by hand."""
    at = _place(draw, text)
    count = draw(st.sampled_from([50, 300, 2000]))
    piece = draw(
        st.sampled_from(["(", "[", "-", "not ", "x.", "if 1:\n ", "lambda: ", "1 + ", "f(", "x, ", "# y ", "é"])
    )
    closed = {"(": "1" + ")" * count, "[": "1" + "]" * count, "f(": ")" * count}.get(piece, "")
    return text[:at] + piece * count + (closed if draw(st.booleans()) else "") + text[at:]


def two(draw: Any, text: str) -> str:
    return text + draw(st.sampled_from(KERNELS))


# Changes after which a text may well parse, and those after which it hardly does.
SENSIBLE: list[Callable[[Any, str], str]] = [lines_changed, other_number, other_name, line_ends, tabs, two]
ANY: list[Callable[[Any, str], str]] = [*SENSIBLE, cut, typed, typed, lost, long]


@st.composite
def kernels(draw: Any, changes: list[Callable[[Any, str], str]] = ANY, most: int = 4) -> str:
    """A kernel with some changes."""
    text: str = draw(st.sampled_from(KERNELS))
    for change in draw(st.lists(st.sampled_from(changes), max_size=most)):
        text = change(draw, text)
    return text


def sensible(most: int = 3) -> st.SearchStrategy[str]:
    return kernels(SENSIBLE, most)


MESSAGES = [
    *("", "", "# coding: latin-1\n", "# -*- coding: utf-8-sig -*-\n", "# coding: hex\n", "# coding: cp932\n"),
    *("#!/x\n# vim: set fileencoding=utf-7 :\n", "# coding: \x00\n"),
]


@st.composite
def files(draw: Any) -> bytes:
    """What a file may hold: a kernel in some encoding, declared or not, with some bytes changed."""
    phrase = draw(st.sampled_from(MESSAGES))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32-be", "cp932"]))
    data: bytes = (phrase + draw(kernels())).encode(encoding, "replace")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 2)) :]
    return data
