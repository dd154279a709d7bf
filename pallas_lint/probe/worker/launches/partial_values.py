"""Arrays of integers of which some elements are known, through operations that move elements or combine them singly.

`jnp.stack([starts, jnp.arange(n), jnp.ones(n, int)])` of unknown `starts` has two known rows: how long the copies are
that a kernel makes by it, if not where they begin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MAX_ELEMENTS = 1 << 16  # of an array that is followed in part
# The operands of operations that move elements; the others say where to.
_MOVED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("reshape", "transpose", "squeeze", "expand_dims", "broadcast_in_dim", "slice", "rev"), (0,)),
    **dict.fromkeys(("convert_element_type", "copy", "dynamic_slice", "gather", "split", "tile", "unstack"), (0,)),
    **dict.fromkeys(("pad", "dynamic_update_slice"), (0, 1)),
    "scatter": (0, 2),
}
_OF_ALL = frozenset({"concatenate", "stack", "select_n"})
_ELEMENTWISE = frozenset(
    "add sub mul div rem max min neg sign and or xor not eq ne lt le gt ge "
    "shift_left shift_right_logical shift_right_arithmetic".split()
)


class PartialValue:
    """An array of integers, and a mask of the elements that are not known."""

    def __init__(self, data: Any, unknown: Any) -> None:
        self.data = data
        self.unknown = unknown


def whole(value: Any) -> Any:
    """The value if all of it is known, else None."""
    return None if isinstance(value, PartialValue) else value


def results(equation: Any, values: list[Any], compute: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
    """What is known of the results of an equation with operands that are not known, or in part.

    `compute` has the results of an equation with known operands.
    """
    import numpy as np

    name, nothing = str(equation.primitive), [None] * len(equation.outvars)
    places = range(len(values)) if name in _OF_ALL | _ELEMENTWISE else _MOVED.get(name, ())
    moved = [at for at in places if at < len(values)]
    avals = [equation.invars[at].aval for at in moved]
    if not moved or not all(map(_is_followed, [*avals, *(var.aval for var in equation.outvars)])):
        return nothing
    directs = [value for at, value in enumerate(values) if at not in moved]
    if any(whole(value) is None for value in directs) or all(values[at] is None for at in moved):
        return nothing
    parts = [_part(values[at], aval) for at, aval in zip(moved, avals)]

    def computed_of(arrays: list[Any]) -> list[Any]:
        changed = dict(zip(moved, arrays))
        return compute(equation, [changed.get(at, value) for at, value in enumerate(values)])

    data = computed_of([part.data for part in parts])
    marks = [part.unknown.astype(part.data.dtype) for part in parts]
    if name in _ELEMENTWISE:
        unknown = [np.logical_or.reduce(np.broadcast_arrays(*(part.unknown for part in parts)))]
    elif name == "select_n":  # its first operand chooses
        chosen = computed_of([parts[0].data, *marks[1:]])
        unknown = [None if each is None else np.logical_or(each, parts[0].unknown) for each in chosen]
    else:
        unknown = computed_of(marks)
    pairs = zip(data, unknown)
    return [None if any(each is None for each in pair) else _joined(*map(np.asarray, pair)) for pair in pairs]


def _joined(data: Any, unknown: Any) -> Any:
    """What is known of an array: all, a part, or nothing."""
    if not unknown.any():
        return data
    return None if unknown.all() else PartialValue(data, unknown != 0)


def _is_followed(aval: Any) -> bool:
    return getattr(getattr(aval, "dtype", None), "kind", "") in "biu" and 0 < aval.size <= _MAX_ELEMENTS


def _part(value: Any, aval: Any) -> PartialValue:
    import numpy as np

    if isinstance(value, PartialValue):
        return value
    if value is None:
        return PartialValue(np.zeros(aval.shape, aval.dtype), np.ones(aval.shape, bool))
    return PartialValue(np.asarray(value, aval.dtype), np.zeros(aval.shape, bool))
