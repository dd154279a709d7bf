"""Keys by identity."""

from __future__ import annotations

from pallas_lint.identity import Same, SameEach


def test_equal_things_are_not_the_same() -> None:
    first, second = [1], [1]
    assert Same(first) == Same(first) != Same(second)
    assert SameEach((first, second)) == SameEach((first, second)) != SameEach((second, first))
    assert SameEach((first,)) != SameEach((first, first))
    assert SameEach((first,)) != Same(first)
    assert len({SameEach((first, second)), SameEach((first, second)), SameEach(()), SameEach(())}) == 2
