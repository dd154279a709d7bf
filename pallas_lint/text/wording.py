"""Counts and lists, as messages spell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def count_of(number: int, noun: str) -> str:
    """ "1 finding", "2 findings", "2 launches"."""
    return f"{number} {plural(noun, number)}"


def plural(noun: str, number: int) -> str:
    """The noun as it follows a number: "launches", "axes"; "info" has no plural."""
    if number == 1 or noun == "info":
        return noun
    if noun.endswith("is"):
        return f"{noun[:-2]}es"
    return f"{noun}{'es' if noun.endswith('ch') else 's'}"


def listed(names: Sequence[str]) -> str:
    """ "v4", "v4 and v5e", "v4, v5e and v6e"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
