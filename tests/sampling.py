"""Which cases run by day, and which at night only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")
NIGHT = bool(os.environ.get("PALLAS_LINT_NIGHTLY"))


def by_day(cases: Iterable[T], every: int = 4) -> list[T]:
    """One case in four, the same in each run, and with PALLAS_LINT_NIGHTLY=1 all of them.

    For what costs a start of jax or a compilation for each case, and changes only with the table or with jax. The cases
    of `parametrize` need it not: `tests/conftest.py` leaves out some of them.
    """
    return list(cases)[:: 1 if NIGHT else every]
