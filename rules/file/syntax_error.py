"""PAL001 syntax-error."""

from __future__ import annotations

from pallas_lint.api import Example, Rule, Severity


class SyntaxErrorRule(Rule):
    """A file, or a notebook cell, that does not parse.

    The error is reported once, where the parser gave up; every function, class and statement that does parse is
    checked nevertheless, so a half-written kernel costs only its own findings.

    Three limits are reported by the same code, as warnings, since what is not checked may hide an error: code that is
    nested too deeply to be read (an info where it is a table, which hides nothing), a file or a function that takes
    too long to follow, and a launch to which more than 64 calls lead (an info: the first of them were checked).

    ## How to fix

    Complete or correct the code at the reported place. Syntax newer than the Python that runs pallas-lint is no
    error: type parameters, `type` statements and nested f-strings are understood under any Python.
    Code that takes too long to follow is split, or passes fewer values around.

    ## Known limits

    What stands between two broken tokens may be cut at the wrong line, and then counts as broken with them.
    """

    code = "PAL001"
    name = "syntax-error"
    severity = Severity.ERROR
    # The pipeline itself reports it, while it parses.
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def half(:  #!
                pass
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def whole[T](x: T) -> T:
                return x
            """
        ),
    )
