"""Keys by identity."""

from __future__ import annotations

from pallas_lint.identity import ById, ByIds


def test_keys_compare_by_identity() -> None:
    first, second = [1], [1]
    assert ById(first) == ById(first) != ById(second)
    assert ByIds((first, second)) == ByIds((first, second)) != ByIds((second, first))
    assert ByIds((first,)) != ByIds((first, first))
    assert ByIds((first,)) != ById(first)
    assert len({ByIds((first, second)), ByIds((first, second)), ByIds(()), ByIds(())}) == 2
