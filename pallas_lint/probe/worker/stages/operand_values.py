"""Other values for operands that are made up: whether a verdict depends on the values that they happened to have.

Residuals, masks and tables that belong together in the program are drawn apart here. A fault that is gone on some other
values may be one that the program never runs into; one that stays whatever is given is the kernel's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from ..inputs import arguments
from ..launches.launch import Launch

_MAX_SECONDS = 8.0  # of CPU time, for all runs on other values, each of which compiles the interpreted kernel again
_SMALL, _LARGE = 2.0**-10, (2.0, 8.0)


def causes(launch: Launch, values: list[Any], fails: Callable[[list[Any]], bool | None], kinds: str) -> list[str]:
    """The names of the made-up operands on whose `values` a fault depends; none where it stays on all that are tried.

    Where there is no time to try all, it may depend on those that are left.

    `fails` returns whether the fault is there on other values, None where that is not known. `kinds`: of the operands
    that are filled otherwise, "b" for booleans, "i" for integers, "f" for floating-point numbers.
    """
    begun = time.process_time()
    for kind in kinds:
        chosen = [at for at in made_up(launch) if _kind(launch.record.avals[at]) == kind]
        for filled in _FILLINGS[kind](launch, values, chosen) if chosen else ():
            late = time.process_time() - begun > _MAX_SECONDS
            there = None if late else fails(filled)
            # With other integers a kernel may fail in another way, which is not this failure.
            if late or there is False or (there is None and kind == "i"):
                return list(dict.fromkeys(map(launch.input_name, chosen)))
    return []


def made_up(launch: Launch) -> list[int]:
    """The operands with unknown values."""
    return [at for at, value in enumerate(launch.record.values) if value is None]


def _kind(aval: Any) -> str:
    name = arguments.short_name(getattr(aval, "dtype", ""))
    return "b" if name == "bool" else name[:1].replace("u", "i").replace("c", "f").replace("b", "f")


def _with(values: list[Any], chosen: list[int], made: Callable[[int, Any], Any]) -> list[Any]:
    """The values, those of chosen operands made anew: `made` takes the operand's rank among them, and what it was."""
    filled = list(values)
    for rank, at in enumerate(chosen):
        filled[at] = made(rank, values[at]).astype(values[at].dtype)
    return filled


def _booleans(launch: Launch, values: list[Any], chosen: list[int]) -> Iterator[list[Any]]:
    import numpy as np

    yield _with(values, chosen, lambda _, old: np.ones(old.shape))
    yield _with(values, chosen, lambda _, old: np.zeros(old.shape))


def _integers(launch: Launch, values: list[Any], chosen: list[int]) -> Iterator[list[Any]]:
    import numpy as np

    yield _with(values, chosen, lambda _, old: np.arange(old.size).reshape(old.shape))
    yield _with(values, chosen, lambda _, old: np.zeros(old.shape))
    yield _with(values, chosen, lambda _, old: np.ones(old.shape))


def _floats(launch: Launch, values: list[Any], chosen: list[int]) -> Iterator[list[Any]]:
    """Small and large ones, ones, halves, operands each larger or smaller than the next, matrices of identity."""
    import numpy as np

    random = np.random.default_rng(2)
    yield _with(values, chosen, lambda _, old: _SMALL * random.standard_normal(old.shape))
    yield _with(values, chosen, lambda _, old: np.ones(old.shape))
    yield _with(values, chosen, lambda _, old: np.full(old.shape, 0.5))  # its square is less than it
    yield _with(values, chosen, lambda _, old: random.uniform(*_LARGE, old.shape))
    yield _with(values, chosen, lambda rank, old: np.full(old.shape, 1.0 + rank))
    yield _with(values, chosen, lambda rank, old: np.full(old.shape, float(len(chosen) - rank)))
    yield _with(values, chosen, lambda _, old: np.eye(*old.shape[-2:]) + np.zeros(old.shape) if old.ndim > 1 else old)


_FILLINGS = {"b": _booleans, "i": _integers, "f": _floats}
