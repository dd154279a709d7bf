"""Words that change with the version, as one text: `0 x y|12 x z|25 -` is two words, two others, and from 25 on none.

One text makes fewer objects than lists of steps, and is taken apart when it is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

_ABSENT = "-"


def spell(steps: Iterable[tuple[int, str | None]]) -> str:
    """The text of steps, each the index of the first version and what holds from there on."""
    return "|".join(f"{since} {_ABSENT if words is None else words}" for since, words in steps)


def read(text: str) -> list[tuple[int, str | None]]:
    """The steps of a text."""
    parts = (part.partition(" ") for part in text.split("|"))
    return [(int(since), None if words == _ABSENT else words) for since, _, words in parts]


def at(text: str | None, index: int) -> str | None:
    """What holds for the version with this index; None where nothing does."""
    steps = read(text) if text is not None else []
    return next((words for since, words in reversed(steps) if since <= index), None)
