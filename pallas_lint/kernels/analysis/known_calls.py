"""Launches met because a call of their launcher is seen: they count where they tell more than is known without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.spreading import spread_by
from pallas_lint.kernels.model.queries import MET
from pallas_lint.kernels.model.values import Array, CallResult, Const, Dictionary, DType, Func, Seq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.witnesses.witness import Witness

_MOST_CALLS = 16  # launches kept for one site beside those met without its callers
_DEPTH = 6


def keep_telling(interp: Interpreter, before: tuple[Launch, ...], witness_of: Callable[[Launch], Witness]) -> None:
    """Of the launches met last, keep those that tell something new, each with the call that led to it.

    `before` are those of earlier runs. A launch of which it is open whether it happens tells nothing.
    """
    kept: list[Launch] = []
    for launch in interp.outcome.launches:
        interp.memo.record_dependency(MET, launch.site.key)
        if not launch.certain or launch.module is not interp.root:
            continue  # a launch elsewhere is judged where it stands
        same = [other for other in (*before, *kept) if other.site.key == launch.site.key]
        told, witness = _told(launch), witness_of(launch)
        real = not (launch.interpret or witness.on == "interpret")
        known = next(
            (other for other in same if _tells_all(_told(other), told) and not (real and other.is_tried)), None
        )
        if known is not None:
            interp.outcome.alike.append((known, witness))
            continue
        # What the file itself calls takes no place of what others tell.
        alike = [other.witness for other in same if other.witness is not None]
        if sum((each.kind == "here") is (witness.kind == "here") for each in alike) < _MOST_CALLS:
            launch.witness = witness
            kept.append(launch)
    dropped = set(interp.outcome.launches) - set(kept)
    interp.outcome.launches[:] = kept
    interp.pending[:] = [launch for launch in interp.pending if launch not in dropped]


def _tells_all(known: tuple[object, ...], told: tuple[object, ...]) -> bool:
    """Whether nothing is told that was not known."""
    return len(known) == len(told) and all(new is None or new == old for old, new in zip(known, told, strict=True))


def _told(launch: Launch) -> tuple[object, ...]:
    """Everything in a launch that may be a number, None where it is not known."""
    operands = () if launch.operands is None else tuple(launch.operands)
    names = ("grid", "in_specs", "out_specs", "out_shape", "scratch_shapes")
    values = (*(launch.argument(name) for name in names), *operands, launch.kernel)
    return (*(part for value in values for part in _parts(value, 0)), *_spread(launch))


def _spread(launch: Launch) -> Iterator[object]:
    """What spreads its calls over devices."""
    for around in launch.around:
        if around.shard_map is not None:
            yield around.shard_map.site.key
    spread = spread_by(launch)
    if spread is not None:
        yield spread.site.key


def _parts(value: Value | None, depth: int) -> Iterator[object]:
    if depth > _DEPTH:
        return
    if isinstance(value, Const):
        yield value.value
    elif isinstance(value, DType):
        yield value.name
    elif isinstance(value, Array):
        yield value.dtype
        yield value.rank
        yield from (
            (None,) if value.shape is None else (size if isinstance(size, int) else None for size in value.shape)
        )
    elif isinstance(value, CallResult):
        for part in (*value.args, *(part for _, part in value.keywords)):
            yield from _parts(part, depth + 1)
    elif isinstance(value, Func):
        for part in (*value.bound, *(part for _, part in value.keywords)):
            yield from _parts(part, depth + 1)
    elif isinstance(value, Seq):
        for part in value.items:
            yield from _parts(part, depth + 1)
    elif isinstance(value, Dictionary):
        for _, part in value.items:
            yield from _parts(part, depth + 1)
    else:
        yield None
