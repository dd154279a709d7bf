"""Selection of launches from known calls of their launcher: those that add information are kept."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.sharding import partitioning_reason
from pallas_lint.kernels.model.queries import MET
from pallas_lint.kernels.model.values import Array, CallResult, Const, Dictionary, DType, Func, Seq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.known_calls.known_call import KnownCall

_MAX_CALLS = 16  # launches kept for one site, besides those with unknown callers
_MAX_DEPTH = 6


def keep_informative(
    interp: Interpreter, before: tuple[Launch, ...], known_call_of: Callable[[Launch], KnownCall]
) -> None:
    """Keep the launches of the current run that add information, each with the call that led to it.

    `before` are those of earlier runs. A launch behind an undecided branch adds nothing.
    """
    kept: list[Launch] = []
    facts_of = cache(_facts)
    for launch in interp.outcome.launches:
        interp.memo.record_dependency(MET, launch.site.key)
        if not launch.path.certain or not launch.belongs_to(interp.root):
            continue  # a launch of another module is checked there
        same = [other for other in (*before, *kept) if other.site.key == launch.site.key]
        facts, known_call = facts_of(launch), known_call_of(launch)
        real = not (launch.interpret or known_call.on == "interpret")
        known = next(
            (
                other
                for other in same
                if _covers(facts_of(other), facts)
                and not (real and other.is_interpreted_call)
                and (launch.path.attempted or not other.path.attempted)
            ),
            None,
        )
        if known is not None:
            interp.outcome.alike.append((known, known_call))
            continue
        # Calls in the file itself do not count against the limit for known calls from elsewhere.
        alike = [other.known_call for other in same if other.known_call is not None]
        if sum((other.kind == "here") is (known_call.kind == "here") for other in alike) < _MAX_CALLS:
            launch.known_call = known_call
            kept.append(launch)
    dropped = set(interp.outcome.launches) - set(kept)
    interp.outcome.launches[:] = kept
    interp.pending[:] = [launch for launch in interp.pending if launch not in dropped]


def _covers(known: tuple[object, ...], facts: tuple[object, ...]) -> bool:
    """Whether all facts are known."""
    return len(known) == len(facts) and all(new is None or new == old for old, new in zip(known, facts, strict=True))


def _facts(launch: Launch) -> tuple[object, ...]:
    """Everything in a launch that may be a number, None where it is not known."""
    operands = () if launch.operands is None else tuple(launch.operands)
    names = ("grid", "in_specs", "out_specs", "out_shape", "scratch_shapes")
    values = (*(launch.argument(name) for name in names), *operands, launch.kernel)
    return (*(part for value in values for part in _parts(value, 0)), *_sharding_facts(launch))


def _sharding_facts(launch: Launch) -> Iterator[object]:
    """The sites that shard its calls over devices."""
    for context in launch.result_calls.sharding_contexts:
        if context.shard_map is not None:
            yield context.shard_map.site.key
    reason = partitioning_reason(launch)
    if reason is not None:
        yield reason.site.key


def _parts(value: Value | None, depth: int) -> Iterator[object]:
    if depth > _MAX_DEPTH:
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
