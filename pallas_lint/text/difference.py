"""Where two texts, or bytes, differ."""

from __future__ import annotations

from typing import AnyStr


def common_start(old: AnyStr, new: AnyStr, most: int) -> int:
    """How much both begin with, `most` at most."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(old: AnyStr, new: AnyStr, most: int) -> int:
    """How much both end with, `most` at most."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]:
            low = middle
        else:
            high = middle - 1
    return low
