"""Whatever a file holds, there is a verdict on it, and its places are places of the file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st

from pallas_lint import fixer
from pallas_lint.source import Source, SourceError
from tests.fuzz.budget import examples
from tests.fuzz.texts import files, kernels, sensible
from tests.fuzz.verdicts import assert_reported, circumstances, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.finding import Finding


@examples(25)
@given(kernels(), circumstances)
def test_any_text(text: str, where: tuple[str | None, str]) -> None:
    source = Source("k.py", text)
    assert_reported(source, verdict(source, *where))


@examples(15)
@given(sensible(), circumstances)
def test_any_kernel(text: str, where: tuple[str | None, str]) -> None:
    """Of texts that mostly parse: the analysis gets further with them."""
    verdict(Source("k.py", text), *where)


@examples(20)
@given(files() | st.binary().map(lambda data: b"import pallas\n" + data), circumstances)
def test_any_bytes(data: bytes, where: tuple[str | None, str]) -> None:
    try:
        source = Source.from_bytes(data, "k.py")
    except SourceError as error:
        assert error.message and "\n" not in error.message
        assert error.line is None or 1 <= error.line <= data.count(b"\n") + data.count(b"\r") + 1
        return
    if source.encoding in ("utf-8", "utf-8-sig", "iso-8859-1"):
        assert source.data == data
    verdict(source, *where)


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@examples(15)
@given(sensible(2), circumstances, st.booleans())
def test_any_fix(text: str, where: tuple[str | None, str], unsafe: bool) -> None:
    """What parsed does so after all fixes, and fixing it again changes nothing."""
    assume(parses(text))

    def fixed(text: str) -> fixer.Outcome:
        def relint(sources: Mapping[str, Source], changed: frozenset[str]) -> list[Finding]:
            return list(verdict(sources["k.py"], *where).findings)

        source = Source("k.py", text)
        return fixer.fix({"k.py": source}, relint({"k.py": source}, frozenset()), relint, unsafe=unsafe)

    first = fixed(text)
    after = first.sources["k.py"].text
    assert parses(after)
    assert not any("settle" in problem.message for problem in first.problems)
    assert fixed(after).sources["k.py"].text == after
