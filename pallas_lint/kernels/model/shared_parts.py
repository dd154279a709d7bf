"""Questions about a value that are questions about its parts in turn.

Values share their parts: written out, one of sixty lines of `i = i + i` is larger than any memory.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_P = ParamSpec("_P")
_R = TypeVar("_R")


def asked_once(question: Callable[_P, _R]) -> Callable[_P, _R]:
    """Ask each part once at each depth, however many values share it, until the outermost question is answered.

    The arguments are told apart by what they are, not by what they say; depths by their number.
    """
    here = threading.local()

    @wraps(question)
    def ask(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # The arguments are held, so that no other has the identity of one.
        known: dict[Hashable, tuple[_R, object]] | None = getattr(here, "known", None)
        if known is None:
            here.known = {}
            try:
                return question(*args, **kwargs)
            finally:
                here.known = None
        key = tuple(each if each.__class__ is int else id(each) for each in (*args, *kwargs.values()))
        found = known.get(key)
        if found is None:
            found = known[key] = question(*args, **kwargs), (args, kwargs)
        return found[0]

    return ask
