"""Words that change with the version, as one text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.compat import histories

_WORDS = st.one_of(st.none(), st.lists(st.sampled_from(["x", "shape?=", "*args"])).map(" ".join))
_STEPS = st.dictionaries(st.integers(0, 40), _WORDS, min_size=1).map(lambda steps: sorted(steps.items()))


@given(_STEPS)
def test_steps_are_read_back(steps: list[tuple[int, str | None]]) -> None:
    assert histories.read(histories.spell(steps)) == steps


@given(_STEPS, st.integers(0, 40))
def test_the_last_step_holds(steps: list[tuple[int, str | None]], index: int) -> None:
    held = [words for since, words in steps if since <= index]
    assert histories.at(histories.spell(steps), index) == (held[-1] if held else None)


def test_nothing_holds_of_what_has_no_history() -> None:
    assert histories.at(None, 3) is None
