"""Semaphores of a kernel: of which kind each is, and uses that its kind, shape or counts do not allow.

Traced with jax 0.10.2, 0.11.2 and 0.12.0.1, for tensor cores and for subcores; run on an H200 with 0.11.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.facts.copies import LOCAL, REMOTE
from pallas_lint.kernels.model.known_names import BARRIER_SEMAPHORE, PALLAS, integer
from pallas_lint.kernels.model.trace import Op, refs_in
from pallas_lint.kernels.model.values import NONE, CallResult, Const, External, Ref, Seq, as_tuple
from pallas_lint.records import frozen
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.trace import KernelTrace

_DECLARED = f"{PALLAS}.tpu.SemaphoreType."
_DECLARED_ON_GPU = f"{PALLAS}.mosaic_gpu.SemaphoreType."
_SIGNALS = tuple(f"{PALLAS}.{module}semaphore_signal" for module in ("", "tpu."))
_WAITS = tuple(f"{PALLAS}.{module}semaphore_wait" for module in ("", "tpu.", "mosaic_gpu."))
_WAIT_METHODS = tuple(f"_copy.{method}" for method in ("wait", "wait_send", "wait_recv"))
_COUNTED = {*_SIGNALS, *_WAITS}
_BACK_AT_ZERO = "signal and wait for as many: it has to be back at zero"
_OTHERWISE = ("core_index", "decrement")  # of a signal to another core, of a wait that leaves the count as it is
Kind = Literal["DMA", "REGULAR", "BARRIER"]


@frozen
class Misuse:
    """A use of a semaphore that fails, or never ends."""

    op: Op
    problem: str
    help: str
    certain: bool = True  # False: only where nothing else touches the semaphore


def kind_of(trace: KernelTrace, semaphore: Ref, declared_in: str = _DECLARED) -> Kind | None:
    """What the launch's scratch declares it as; None where that is not known."""
    declared, refs = trace.launch.scratch, [ref for ref in trace.refs if ref.role == "scratch"]
    if not isinstance(declared, Seq) or declared.open or len(declared.items) != len(refs):
        return None
    made = next((each for each, ref in zip(declared.items, refs, strict=True) if ref.buffer == semaphore.buffer), None)
    name = made.function if isinstance(made, CallResult) else made.name if isinstance(made, External) else ""
    short = name.removeprefix(declared_in)
    return short if short in ("DMA", "REGULAR", "BARRIER") and short != name else None  # type: ignore[return-value]


def misuses(trace: KernelTrace) -> Iterator[Misuse]:
    """Copies on semaphores that are none for copies, on several at once, and signals on those of copies."""
    awaited = _awaited(trace)
    for op in trace.ops(*LOCAL, *REMOTE, *_SIGNALS):
        copies = op.name not in _SIGNALS
        for semaphore in _copy_semaphores(op) if copies else [op.args[0] if op.args else None]:
            if not isinstance(semaphore, Ref):
                continue
            kind, spelled = kind_of(trace, semaphore), semaphore.parameter
            if copies and kind in ("REGULAR", "BARRIER"):
                if op.site.key in awaited:  # it may be started, and waited for by `pl.semaphore_wait`
                    yield Misuse(
                        op,
                        f"a copy on `{spelled}` is waited for, which is a semaphore to signal, not one of copies",
                        "declare it as `pltpu.SemaphoreType.DMA`",
                    )
            elif not copies and kind == "DMA":
                yield Misuse(
                    op,
                    f"a signal on `{spelled}`, which is a semaphore of copies",
                    "declare it as `pltpu.SemaphoreType.REGULAR`",
                )
            elif kind is not None and semaphore.shape and not semaphore.view:
                yield Misuse(op, f"`{spelled}` is an array of semaphores", f"take one of them: `{spelled}.at[0]`")
            elif (past := _past_the_end(semaphore)) is not None:
                at, size = past
                yield Misuse(
                    op, f"`{spelled}` has {size} semaphores, and this is number {at}", f"count from 0 to {size - 1}"
                )


def _awaited(trace: KernelTrace) -> set[object]:
    """The places of copies whose descriptors are waited for."""
    found: set[object] = set()
    for op in trace.ops():
        if op.name.endswith(_WAIT_METHODS) and op.args and isinstance(op.args[0], CallResult):
            found.add(op.args[0].site.key)
    return found


def unbalanced(trace: KernelTrace) -> Iterator[Misuse]:
    """Waits on a semaphore that nothing signals, and signals of which some are never waited for."""
    if not trace.complete or trace.tracked_until is not None or len(trace.launch.bodies) > 1:
        return
    escaped = {event.ref.buffer for event in trace.accesses() if event.kind == "escape"}
    uses: dict[tuple[str, object], list[Op]] = {}
    for op in trace.ops():
        for ref in (ref for value in op.args for ref in refs_in(value)):
            if ref.dtype == "semaphore" and op.name != "ref.at":
                uses.setdefault(ref.buffer, []).append(op)
    for ref in trace.refs:
        of_it = uses.get(ref.buffer, [])
        on_gpu = kind_of(trace, ref, _DECLARED_ON_GPU) == "REGULAR"
        if ref.buffer in escaped or ref.shape != () or not (on_gpu or kind_of(trace, ref) == "REGULAR"):
            continue
        if not of_it or not all(op.name in _COUNTED and op.certain for op in of_it):
            continue
        waits = [op for op in of_it if op.name in _WAITS]
        if waits and len(waits) == len(of_it):
            yield Misuse(
                waits[0],
                f"this wait never ends: nothing signals `{ref.parameter}`",
                "signal it before, with `pl.semaphore_signal`",
            )
        elif (left := _left(of_it)) is not None and (left[0] < left[1] or not on_gpu):
            signalled, waited = left
            last = next(op for op in reversed(of_it) if op.name in (_SIGNALS if signalled > waited else _WAITS))
            problem = f"`{ref.parameter}` is signalled {signalled} times in all, and {waited} are waited for"
            if signalled < waited:
                problem = f"this wait never ends: {problem}"
            yield Misuse(last, problem, _BACK_AT_ZERO, signalled < waited)
    if not trace.runs_foreign_code:
        yield from _unbalanced_barrier(trace)


def _unbalanced_barrier(trace: KernelTrace) -> Iterator[Misuse]:
    """More signals on the barrier semaphore than waits, or fewer: it stays as it is for the next kernel."""
    of_it = [
        op
        for op in trace.ops()
        if any(isinstance(value, CallResult) and value.function == BARRIER_SEMAPHORE for value in op.args)
    ]
    if not of_it or not all(op.name in _COUNTED and op.certain for op in of_it):
        return
    left = _left(of_it)
    waits = [op for op in of_it if op.name in _WAITS]
    if left is not None and waits:
        signalled, waited = left
        counts = f"each device signals the barrier semaphore {count_of(signalled, 'time')}, and waits for {waited}"
        problem = f"this wait never ends: {counts}" if signalled < waited else counts
        yield Misuse(waits[-1], problem, _BACK_AT_ZERO, signalled < waited)


def _left(ops: list[Op]) -> tuple[int, int] | None:
    """How often a semaphore is signalled and waited for, where both are known and differ.

    Signals to other devices count: these run the same code, and signal as often in all as they wait. So do the blocks
    of a grid on a GPU, which share the semaphore.
    """
    counts = {True: 0, False: 0}
    for op in ops:
        count = integer(op.argument("inc" if op.name in _SIGNALS else "value", 1) or Const(1))
        unlisted = any(guard.kind != "loop" or not guard.exact for guard in op.guards)
        if count is None or unlisted or any(op.argument(name) not in (None, NONE) for name in _OTHERWISE):
            return None
        counts[op.name in _SIGNALS] += count
    return None if counts[True] == counts[False] else (counts[True], counts[False])


def _copy_semaphores(op: Op) -> list[object]:
    if op.name in REMOTE:
        return [op.argument("send_sem", 2), op.argument("recv_sem", 3)]
    return [op.argument("sem", 2)]


def _past_the_end(semaphore: Ref) -> tuple[int, int] | None:
    """The constant index of one semaphore and their number, where there are fewer."""
    parent = semaphore.parent
    if not semaphore.view or parent is None or parent.view or not parent.shape or len(parent.shape) != 1:
        return None
    parts = as_tuple(semaphore.indexer)
    at, (size,) = integer(parts[0]) if len(parts) == 1 else None, parent.shape
    return (at, size) if at is not None and isinstance(size, int) and at >= size else None
