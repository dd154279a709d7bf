"""Numbers that grow with the stretches of a loop are, stretch by stretch, what plain numbers would be."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.probe.cost.loop_skipping import Bound, Growing, Unsteady
from pallas_lint.probe.cost.values import word

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("+-*"), st.integers(-40, 40)),
        st.tuples(st.sampled_from(["//", "%", "<<", ">>"]), st.sampled_from([1, 2, 4, 8])),
        st.tuples(st.just("&"), st.sampled_from([1, 3, 8, 12, 15, 255, 5])),
        st.tuples(st.sampled_from(["word", "self"]), st.just(0)),
    ),
    max_size=6,
)


def result(begin: Any, steps: list[tuple[str, int]], limit: int) -> list[Any]:
    """What a machine might do with a number: each value and how it compares."""
    value, found = begin, []
    for name, other in steps:
        if name == "+":
            value = value + other
        elif name == "-":
            value = other - value
        elif name == "*":
            value = value * other
        elif name == "//":
            value = value // other
        elif name == "%":
            value = value % other
        elif name == "<<":
            value = value << (other % 4)
        elif name == ">>":
            value = value >> (other % 4)
        elif name == "&":
            value = value & other
        elif name == "word":
            value = word(value)
        else:
            value = value + begin
        found += [value, value < limit, value == limit]
    return found


@given(st.integers(-100, 100), st.integers(-9, 9).filter(bool), STEPS, st.integers(-200, 200))
def test_growing_numbers(now: int, by: int, steps: list[tuple[str, int]], limit: int) -> None:
    bound = Bound()
    try:
        found = result(Growing(now, by, bound), steps, limit)
    except Unsteady:
        return
    for stretch in range(min(bound.stretches, 50)):
        plain = result(now + by * stretch, steps, limit)
        reported = [each.now + each.by * stretch if isinstance(each, Growing) else each for each in found]
        assert reported == plain, (stretch, bound.stretches)
