"""PAL002 unused-suppression."""

from __future__ import annotations

from pallas_lint.api import Example, Rule, Severity


class UnusedSuppression(Rule):
    """A `# pallas-lint: disable=...` comment that silences nothing, or names no rule.

    Such a comment is mostly left over from code that has been mended since, or misspelled and so without effect:
    it looks as if something were silenced on purpose.

    ## How to fix

    Remove the comment, or the code in it. The fix does: it takes out what silences nothing and keeps the rest.

    ## Fix safety

    Safe: only a comment changes.

    ## Known limits

    `# noqa` comments are honoured but never reported, since other tools may need them. Rules that are not enabled in
    a run cannot be known to be unused, and are not reported. A file that does not parse everywhere is not checked.
    """

    code = "PAL002"
    name = "unused-suppression"
    severity = Severity.WARNING
    fix = "safe"
    # The suppressions themselves report it, once everything else is known.
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl

            BLOCK = 128  # pallas-lint: disable=PAL101  #!-
            BLOCK = 128  #+
            """,
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl

            BLOCK = 128  # noqa: PAL101
            """
        ),
    )
