"""Memory that a launch or a scope has."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from ...devices.events import Kind
from .references import UNKNOWN, Buffer
from .unroller import Home

_MOST_VALUES = 65_536  # of a buffer whose integers are followed


def allocate(aval: Any, key: Hashable, name: str, home: Home) -> Buffer:
    """A buffer of this type of reference."""
    import numpy as np

    inner = getattr(aval, "inner_aval", aval)
    dtype = getattr(inner, "dtype", None)
    shape = tuple(int(size) for size in getattr(inner, "shape", ()))
    space = str(getattr(aval, "memory_space", "") or "").lower().rpartition(".")[2]
    semaphore = semaphore_kind(dtype, space)
    values = None
    if semaphore is None and "smem" in space and math.prod(shape) <= _MOST_VALUES:
        values = np.full(shape, UNKNOWN, object)
    itemsize = int(getattr(dtype, "itemsize", 1) or 1)
    whose = home.device if space in ("any", "hbm") else home.line
    return Buffer(key, name, shape, itemsize, space, semaphore, whose, values)


def semaphore_kind(dtype: Any, space: str) -> Kind | None:
    """Which kind of semaphore a reference is to; None for data."""
    text = str(dtype).lower()
    if "sem" not in text and "sem" not in space:
        return None
    return "dma" if "dma" in text else "barrier" if "barrier" in text else "regular"
