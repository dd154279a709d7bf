"""Where logical lines begin: strings, brackets and comments that line ends stand in."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.syntax.reading.lines import indents

# The same with strings that must end, which is quadratic in the number of quotes of one that does not.
_SIMPLE = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|#[^\n]*|\\\n|[(\[{]|[)\]}]|\n",
    re.DOTALL,
)
_PIECES = ("x", " ", "\n", "\\\n", "(", ")", "'a\\'('", '"b\\"["', '"""c"\n\\"("""', "# d'(\n", 'f"{\n', '}"\n', '""')


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join))
def test_logical_lines(text: str) -> None:
    text += "\nend"
    depth, begins = 0, [0]
    for token in _SIMPLE.finditer(text):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        begins += [token.end()] * (token[0] == "\n" and not depth)
    blank = re.compile(r"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)*([ \t]*)")
    expected = {match.end(): match[1].encode() for at in begins if (match := blank.match(text, at))}
    assert indents(text.encode()) == expected
