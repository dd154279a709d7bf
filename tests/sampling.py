"""How much of the tests runs by day: cases of a table, and examples of a property."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")
NIGHT = bool(os.environ.get("PALLAS_LINT_NIGHTLY"))
FUZZ = "PALLAS_LINT_FUZZ"
_TIMES = float(os.environ.get(FUZZ, "0.3"))


def by_day(cases: Iterable[T], every: int = 4) -> list[T]:
    """One case in four, the same in each run, and with PALLAS_LINT_NIGHTLY=1 all of them.

    For what costs a start of jax or a compilation for each case, and changes only with the table or with jax. The cases
    of `parametrize` need it not: `tests/conftest.py` leaves out some of them.
    """
    return list(cases)[:: 1 if NIGHT else every]


def examples(count: int) -> settings:
    """So many examples of a property, times PALLAS_LINT_FUZZ: `tests/fuzz/test_longer.py` runs many more at night.

    Texts are large and judging one takes a while; to leave out most of what is drawn is no fault either.
    """
    return settings(max_examples=max(5, int(count * _TIMES)), deadline=None, suppress_health_check=list(HealthCheck))
