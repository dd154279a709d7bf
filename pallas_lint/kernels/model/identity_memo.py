"""Memoisation of recursive queries on values that share sub-values.

Without it, sixty lines of `i = i + i` make a value whose tree has 2**60 nodes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def memoize_by_identity(query: Callable[_P, _R]) -> Callable[_P, _R]:
    """Memoise a recursive query by argument identity for the duration of the outermost call.

    Shared sub-values are visited once. Integers, which are depths, are compared by value.
    """
    state = threading.local()

    @wraps(query)
    def memoized(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # The arguments are held, so that no address is reused.
        results: dict[Hashable, tuple[_R, object]] | None = getattr(state, "results", None)
        if results is None:
            state.results = {}
            try:
                return query(*args, **kwargs)
            finally:
                state.results = None
        key = tuple(value if value.__class__ is int else id(value) for value in (*args, *kwargs.values()))
        result = results.get(key)
        if result is None:
            result = results[key] = query(*args, **kwargs), (args, kwargs)
        return result[0]

    return memoized
