"""Choice of the known calls to analyse where there are many: those that differ most."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pallas_lint.known_calls.known_call import is_array

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.known_calls.known_call import KnownCall

MAX_CALLS = 8  # calls of one function
# How many of each source come first, whatever the others have: nearer sources are meant for this function.
_SLOTS = {"comment": 2, "caller": 3, "file": 3}
_TYPE = re.compile(r"(?<![\w?<>])([\w?<>]+)\[([\d?, .]*)\]")
_TILE = 128
_MAX_SPECIFIC = 64  # calls of a function that are compared with all others of it


class _Seen(NamedTuple):
    """The features by which calls can matter to rules, the coarsest first."""

    flags: tuple[tuple[str, str], ...]  # which arguments are no arrays, and what they are: they choose kernels
    dtypes: tuple[tuple[str, str], ...]
    ranks: tuple[tuple[str, int], ...]
    aligned: tuple[tuple[str, tuple[bool, ...]], ...]  # which sizes fill whole tiles
    single: tuple[tuple[str, tuple[bool, ...]], ...]  # ... and which are one


def choose(known_calls: Iterable[KnownCall], most: int = MAX_CALLS) -> tuple[tuple[KnownCall, ...], int]:
    """At most so many calls of each function, and how many were left out. The same for the same calls in any order.

    Of equal calls one counts. First come the slots of each source, then those most unlike the ones that
    are in already.
    """
    by_function: dict[str, dict[KnownCall, None]] = {}
    for known_call in sorted(known_calls, key=_order):
        by_function.setdefault(known_call.function, {}).setdefault(known_call)
    kept: list[KnownCall] = []
    left_out = 0
    for function in sorted(by_function):
        every = _most_specific(list(by_function[function]))
        chosen = every if len(every) <= most else _most_different(every, most)
        left_out += len(every) - len(chosen)
        kept += chosen
    return tuple(kept), left_out


def _order(known_call: KnownCall) -> tuple[object, ...]:
    kinds = ("here", "comment", "caller", "file")
    return kinds.index(known_call.kind), -_known(known_call), known_call.arguments, known_call.on, known_call.source


def _known(known_call: KnownCall) -> int:
    """How much of the arguments is known."""
    return sum(2 if "?" not in text and "..." not in text else 1 for _, text in known_call.arguments)


def _most_specific(known_calls: list[KnownCall]) -> list[KnownCall]:
    """The calls that no other call refines."""
    known = {each: _known(each) for each in known_calls}
    # The most specific calls refine others; comparing all pairs takes minutes for some thousand calls.
    specific = sorted(known_calls, key=lambda each: -known[each])[:_MAX_SPECIFIC]
    return [
        each
        for each in known_calls
        if not any(known[other] > known[each] and _covers(other, each) for other in specific)
    ]


def _covers(one: KnownCall, other: KnownCall) -> bool:
    if one.on != other.on or len(one.arguments) < len(other.arguments):
        return False
    known = dict(one.arguments)
    return all(name in known and _fits(text, known[name]) for name, text in other.arguments)


def _fits(vague: str, exact: str) -> bool:
    if vague == exact:
        return True
    first, second = _TYPE.fullmatch(vague), _TYPE.fullmatch(exact)
    if first is None or second is None or first[1] not in ("?", second[1]):
        return False
    if first[2] == "...":
        return True
    sizes, others = first[2].split(","), second[2].split(",")
    return len(sizes) == len(others) and all(a in ("?", b) for a, b in zip(sizes, others, strict=True))


def _most_different(known_calls: list[KnownCall], most: int) -> list[KnownCall]:
    seen = {known_call: _seen(known_call) for known_call in known_calls}
    chosen: list[KnownCall] = []
    left = dict(_SLOTS)
    waiting = list(known_calls)
    while waiting and len(chosen) < most:
        in_slots = [each for each in waiting if left.get(each.kind, 0)] or waiting
        # Of equals the first: they are in order.
        best = max(in_slots, key=lambda each: _newness(seen[each], [seen[other] for other in chosen]))
        chosen.append(best)
        waiting.remove(best)
        left[best.kind] = left.get(best.kind, 0) - 1
    return sorted(chosen, key=_order)


def _newness(one: _Seen, others: list[_Seen]) -> tuple[bool, ...]:
    """Which of the things that can be seen no other call has, the coarsest first."""
    return tuple(all(mine != theirs[at] for theirs in others) for at, mine in enumerate(one))


def _seen(known_call: KnownCall) -> _Seen:
    flags, dtypes, ranks, aligned, single = [], [], [], [], []
    for name, text in known_call.arguments:
        types = _TYPE.findall(text)
        if not types or not is_array(text):
            flags.append((name, _TYPE.sub("", text)))
        for dtype, sizes in types:
            dtypes.append((name, dtype))
            numbers = [int(size) for size in re.findall(r"\d+", sizes)]
            ranks.append((name, sizes.count(",") + bool(sizes)))
            aligned.append((name, tuple(number % _TILE == 0 for number in numbers)))
            single.append((name, tuple(number == 1 for number in numbers)))
    return _Seen(*(tuple(part) for part in (flags, dtypes, ranks, aligned, single)))
