"""PAL416 missing-commit-smem."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    ELLIPSIS,
    Access,
    Const,
    Context,
    Example,
    Finding,
    Fix,
    Guard,
    KernelTrace,
    Op,
    Ref,
    Rule,
    Severity,
    Span,
    Value,
)
from pallas_lint.kernels.facts.copies import COMMIT_SMEM, GPU, TO_GMEM, TO_SMEM, WAIT_TO_GMEM
from pallas_lint.kernels.facts.loop_unrolling import EventInstance, overlap, part_of, unrolled_events
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.trace import refs_in
from pallas_lint.records import define

# Functions that read SMEM through the asynchronous proxy, and the positions of their SMEM operands.
_READERS: dict[str, tuple[tuple[str, int], ...]] = {
    TO_GMEM: (("src", 0),),
    f"{GPU}.wgmma": (("a", 1), ("b", 2)),
    f"{GPU}.tcgen05_mma": (("a", 1), ("b", 2)),
    f"{GPU}.async_copy_smem_to_tmem": (("smem_ref", 0),),
    f"{GPU}.async_copy_scales_to_tmem": (("smem_ref", 0),),
}
_COMMIT_GROUP = f"{GPU}.commit_smem_to_gmem_group"
_COPIES = frozenset((TO_SMEM, TO_GMEM))


class MissingCommitSmem(Rule):
    """Mosaic GPU: shared memory is written, then copied out or multiplied without `commit_smem` in between.

    Ordinary writes to SMEM and the units that copy to GMEM or run MMA (TMA, `wgmma`, `tcgen05`) are not ordered
    with each other. `plgpu.commit_smem()` is the fence between them; without it the copy may send what the buffer held
    before. Nothing warns about it, and small kernels often come out right by luck.

    The other direction is the same: a buffer from which a copy is still reading must not be written before
    `plgpu.wait_smem_to_gmem` has returned, in this turn of a loop or in the next. `wait_smem_to_gmem(n)` leaves the
    last `n` copies running: of a ring of `n` slots that is one too many.

    What a copy from GMEM brings is there once its barrier was waited for: a read before `barrier_wait` may see what the
    buffer held before, and a slot that the next copy is already started into may change while it is read.
    Two copies into one slot at the same time leave some of either.

    ## How to fix

    Call `plgpu.commit_smem()` after the last write and before the copy or MMA, and
    `plgpu.wait_smem_to_gmem(0, wait_read_only=True)` before the next write; of a ring of `n` slots `n - 1` copies
    may be left. Call `plgpu.barrier_wait` between a copy from GMEM and the first read, and start the copy of the next
    tiles behind the last read of their slot.

    ## Fix safety

    Safe: a fence changes no value, only when others see it.

    ## Known limits

    Any `commit_smem` between the write and the copy counts, whatever its condition, and any wait between the copy and
    the next write. Loops are unrolled for four iterations. Slots of a buffer are distinguished by numbers, by what
    loops count and by equal values. Silent for code that is not seen. Silent for what runs in interpret mode only.

    ## References

    - jax documentation, Pallas Mosaic GPU reference, "commit_smem": required before async copies and MMA;
      jax issue 27868.
    - Lowered for CUDA with jax 0.12.0.1: the proxy fence is there with `commit_smem` and nowhere without.
    - Run with the GPU interpreter of jax 0.12.0.1 (`detect_races=True`): a race without `commit_smem`, none with; a
      race with a ring of two slots and `wait_smem_to_gmem(2)`, none with 1; one with no wait in the loop.
    - Run on an H100 with jax 0.11.2, 200 times each: a small copy was right without the fence every time, which is why
      this is a warning; a buffer overwritten before its copy was waited for was wrong every time.
    - Run on an H200 with jax 0.11.2: without the fence 8,192 blocks of 128 x 128 had 185, 485 and 1,827 wrong values of
      134 million in three runs.
    """

    code = "PAL416"
    name = "missing-commit-smem"
    severity = Severity.WARNING
    of_hardware = True
    fix = "safe"
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem, x_smem, barrier):
                plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
                plgpu.barrier_wait(barrier)
                x_smem[...] = x_smem[...] + 1
                plgpu.commit_smem()  #+
                plgpu.copy_smem_to_gmem(x_smem, o_gmem)  #!
                plgpu.wait_smem_to_gmem(0)

            def add_one(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((128,), jnp.float32),
                    scratch_types=[plgpu.SMEM((128,), jnp.float32), plgpu.Barrier()],
                )(x)
            """,
            run="add_one(f32(128))",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem, x_smem, barrier):
                plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
                plgpu.barrier_wait(barrier)
                plgpu.copy_smem_to_gmem(x_smem, o_gmem)
                plgpu.wait_smem_to_gmem(0)

            def identity(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((128,), jnp.float32),
                    scratch_types=[plgpu.SMEM((128,), jnp.float32), plgpu.Barrier()],
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        yield from _unfenced_reads(trace, context)
        if any(True for _ in trace.ops(TO_SMEM)):
            yield from _early_reads(trace, context)
        if any(True for _ in trace.ops(TO_GMEM)):
            yield from _early_writes(trace, context)


def _unfenced_reads(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    copies = {op.site.key for op in trace.ops(*_COPIES)}
    dirty: dict[tuple[str, object], Access] = {}
    unseen = set(trace.untracked_at)
    for at, event in enumerate(trace.events):
        if at in unseen:  # code ran that may have fences
            dirty.clear()
        if isinstance(event, Access):
            if event.kind not in ("store", "accumulate") or event.site.key in copies:
                continue
            if event.ref.space not in ("tmem", "regs"):  # `commit_tmem` is the fence of these
                dirty[event.ref.buffer] = event
        elif isinstance(event, Op):
            if event.name == COMMIT_SMEM:
                dirty.clear()
            elif event.name in _READERS:
                for ref in _read_by(event):
                    write = dirty.pop(ref.buffer, None)
                    if write is not None:
                        yield _unfenced(event, write, context)


@define(eq=False)
class _Filling:
    """A copy into a buffer that may not have arrived."""

    op: Op
    target: Ref
    part: object
    conditions: tuple[Guard, ...]
    barrier: Value
    barrier_part: object

    def meets(self, ref: Ref, part: object, conditions: tuple[Guard, ...]) -> bool:
        """Whether it certainly has elements in common with a read or copy that is in no other branch or thread."""
        shared = min(len(conditions), len(self.conditions))
        return (
            ref.buffer == self.target.buffer
            and (self.part == "" or overlap(self.part, part))
            and conditions[:shared] == self.conditions[:shared]
        )

    def may_end_with(self, wait: Op, instance: EventInstance) -> bool:
        """Whether a wait may be for it: not one for another barrier of the same array of barriers."""
        waited = wait.argument("barrier", 0)
        if not isinstance(waited, Ref) or not isinstance(self.barrier, Ref) or waited.buffer != self.barrier.buffer:
            return True
        part = part_of(waited, ELLIPSIS, instance)
        return part == self.barrier_part or not (_is_number(part) and _is_number(self.barrier_part))


def _is_number(part: object) -> bool:
    return isinstance(part, tuple) and all(isinstance(each, Const) for each in part)


def _with_pending(trace: KernelTrace, pending: list[_Filling] | list[_Sending]) -> Iterator[EventInstance]:
    """The events with loops unrolled; nothing is pending any more where code ran that may wait."""
    last = -1
    for instance in unrolled_events(trace):
        if any(min(last, instance.at) < at <= instance.at for at in trace.untracked_at):
            pending.clear()
        last = instance.at
        yield instance


def _early_reads(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Reads of what a copy fills, and other copies into it, in any turn of a loop, with no wait since."""
    copies = {op.site.key for op in trace.ops(*_COPIES)}
    filling: list[_Filling] = []
    reported = set()
    for instance in _with_pending(trace, filling):
        event = instance.event
        read: list[tuple[Ref, Value]] = []
        if isinstance(event, Access):
            read = [(event.ref, event.index)] if event.kind == "load" and event.site.key not in copies else []
        elif any(word in event.short for word in ("wait", "test", "barrier", "semaphore")):
            filling[:] = [copy for copy in filling if not copy.may_end_with(event, instance)]
        elif event.name in _READERS:
            read = [(ref, ELLIPSIS) for ref in _read_by(event)]
        for ref, index in read if filling else ():
            part = part_of(ref, index, instance)
            copy = next((each for each in filling if each.meets(ref, part, instance.conditions)), None)
            if copy is None or event.site.key in reported:
                continue
            filling.remove(copy)
            reported.add(event.site.key)
            what = "read before the copy into it was waited for"
            yield _unwaited(copy, event, what, "copy first, or start the copy after this read", context)
        if isinstance(event, Op) and event.name == TO_SMEM:
            target, barrier = event.argument("dst", 1), event.argument("barrier", 2)
            if isinstance(target, Ref) and barrier is not None:
                part = part_of(target, ELLIPSIS, instance)
                at = part_of(barrier, ELLIPSIS, instance) if isinstance(barrier, Ref) else None
                other = next((each for each in filling if each.meets(target, part, instance.conditions)), None)
                if other is not None and other.part == part and event.site.key not in reported:
                    reported.add(event.site.key)
                    what = "filled again while a copy into it may still run"
                    yield _unwaited(other, event, what, "earlier copy first, or copy into another slot", context)
                filling.append(_Filling(event, target, part, instance.conditions, barrier, at))


def _unwaited(copy: _Filling, event: Access | Op, what: str, instead: str, context: Context) -> Finding:
    return context.finding(
        event.site,
        f"{_named(copy.target)} is {what}",
        help=f"call `plgpu.barrier_wait` with the barrier of the {instead}",
        severity=Severity.WARNING if event.certain and copy.op.certain else Severity.INFO,
        related=[(copy.op.site, "copied here")],
    )


def _read_by(op: Op) -> Iterator[Ref]:
    for name, position in _READERS[op.name]:
        value = op.argument(name, position)
        if value is not None:
            yield from refs_in(value)


# -- copies that still read ----------------------------------------------------------------------------------------


@define(eq=False)
class _Sending:
    """A copy that may not have read all of its source. `group`: its commit group, None: not committed yet."""

    op: Op
    source: Ref
    part: object
    conditions: tuple[Guard, ...]
    group: int | None = None
    left: int = 0  # the wait since then leaves so many groups


def _early_writes(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """What overwrites a source in the same turn of a loop or in one of the next, before the copy was waited for."""
    sending: list[_Sending] = []
    groups, reported = 0, set()
    for instance in _with_pending(trace, sending):
        event = instance.event
        if isinstance(event, Access):
            if event.kind not in ("store", "accumulate") or event.site.key in reported:
                continue
            part = part_of(event.ref, event.index, instance)
            for copy in sending:
                same = copy.source.buffer == event.ref.buffer and overlap(copy.part, part)
                if same and copy.conditions[: len(instance.conditions)] == instance.conditions:
                    reported.add(event.site.key)
                    yield _overwritten(copy, event, context)
                    break
        elif event.name == WAIT_TO_GMEM:
            left = integer(event.argument("n", 0))
            sending[:] = [copy for copy in sending if left and (copy.group is None or copy.group > groups - left)]
            for copy in sending:
                copy.left = left or 0
        elif event.name in (TO_GMEM, _COMMIT_GROUP):
            source = event.argument("src", 0)
            if event.name == TO_GMEM and isinstance(source, Ref):
                sending.append(_Sending(event, source, part_of(source, ELLIPSIS, instance), instance.conditions))
            if event.argument("commit_group") != Const(False):
                groups += 1
                for copy in sending:
                    copy.group = groups if copy.group is None else copy.group


def _unfenced(op: Op, write: Access, context: Context) -> Finding:
    short = op.short
    return context.finding(
        op.site,
        f"`{short}` may not see what was written to {_named(write.ref)}: no `commit_smem` in between",
        help="call `plgpu.commit_smem()` before it: writes to SMEM reach the copy and MMA units only after a fence",
        severity=Severity.WARNING if op.certain and write.certain else Severity.INFO,
        related=[(write.site, "written here")],
        fixes=_fixes(op, context),
    )


def _overwritten(copy: _Sending, write: Access, context: Context) -> Finding:
    why = f"`wait_smem_to_gmem({copy.left})` leaves it" if copy.left else "no `wait_smem_to_gmem` in between"
    help_ = "call `wait_smem_to_gmem(0, wait_read_only=True)` first"
    return context.finding(
        write.site,
        f"{_named(write.ref)} is overwritten while a copy may still read it: {why}",
        help=f"{help_}; of a ring of n slots n - 1 copies may be left" if copy.left else help_,
        severity=Severity.WARNING,
        related=[(copy.op.site, "copied from here")],
    )


def _named(ref: Ref) -> str:
    return "its source" if ref.parameter.startswith("#") else f"`{ref.parameter}`"


def _fixes(op: Op, context: Context) -> list[Fix]:
    """A line with the fence before the statement, where that is the call alone."""
    module = context.module_of(op.site)
    where = op.site.span.start
    indent = module.source.line(where.line)[: where.column - 1]
    if indent.strip():
        return []
    spelled, imports = context.spell(COMMIT_SMEM, module)
    newline = "\r\n" if "\r\n" in module.source.text else "\n"
    edit = context.replace(Span(op.site.span.path, where, where), f"{spelled}(){newline}{indent}")
    return [context.safe("call `commit_smem()` first", edit, *imports)]
