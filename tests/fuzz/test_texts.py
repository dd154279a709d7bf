"""Whatever a file holds, there is a verdict on it, and its places are places of the file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pallas_lint.run import fixer
from pallas_lint.text.source import Source, SourceError
from tests.fuzz.texts import files, kernels, sensible
from tests.fuzz.verdicts import assert_reported, circumstances, verdict
from tests.sampling import examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.finding import Finding

HEADER = b"import jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n\n\n"
LAUNCH = b"\n\nlaunch = pl.pallas_call(kernel, out_shape=None)\n"


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


@pytest.mark.parametrize(
    "data",
    [
        # A letter of the next Unicode: the parser takes the name, the node refuses it.
        HEADER + "def a\uff65run(x):\n    return pl.pallas_call(kernel)(x)\n".encode(),
        HEADER + b"def kernel(o_ref):\n    o_ref[...] = jnp.arange(1e400) + jnp.arange(0, 10**400, 0.5)\n" + LAUNCH,
        # Too deep for a function that calls itself.
        HEADER + b"def kernel(o_ref):\n    pl.store(o_ref, 0, o_ref" + b"(f" * 900 + b")" * 900 + b")\n" + LAUNCH,
    ],
)
def test_what_stopped_it_once(data: bytes) -> None:
    verdict(Source.from_bytes(data, "k.py"), None, "0.10.2")


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

    def fixed(text: str) -> fixer.FixResult:
        def relint(sources: Mapping[str, Source], changed: frozenset[str]) -> list[Finding]:
            return list(verdict(sources["k.py"], *where).findings)

        source = Source("k.py", text)
        return fixer.fix({"k.py": source}, relint({"k.py": source}, frozenset()), relint, unsafe=unsafe)

    first = fixed(text)
    after = first.sources["k.py"].text
    assert parses(after)
    assert not any("settle" in problem.message for problem in first.problems)
    assert fixed(after).sources["k.py"].text == after
