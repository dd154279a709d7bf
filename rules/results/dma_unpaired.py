"""PAL415 dma-unpaired."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pallas_lint.api import (
    NONE,
    Access,
    CallResult,
    Context,
    Dictionary,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Launch,
    Ref,
    Rule,
    Seq,
    Severity,
    Site,
    Span,
    nodes,
)
from pallas_lint.checker.backend_failures import up_to
from pallas_lint.kernels.facts.copies import (
    GPU,
    REMOTE,
    TO_GMEM,
    TO_SMEM,
    WAIT_TO_GMEM,
    BarrierSignal,
    Copies,
    copies_of,
    declaration,
    miscounts,
    unmatched,
    warpgroups,
)
from pallas_lint.kernels.facts.semaphores import misuses, unbalanced
from pallas_lint.kernels.model.known_names import integer, is_integer
from pallas_lint.syntax.descent import walk

_WAIT_TO_SMEM = f"{GPU}.wait_gmem_to_smem"
_MAX_COPY = 40  # characters of a copy that a fix's title names
_BARRIER_SEMAPHORE = "jax.experimental.pallas.tpu.get_barrier_semaphore"


class DmaUnpaired(Rule):
    """An asynchronous copy that is never awaited, or a wait that no copy ends.

    A started copy runs beside the kernel. Until a wait on its semaphore (on Mosaic GPU: its barrier) has returned,
    the destination holds old data, and a semaphore that is not back at zero when the kernel ends corrupts the next
    one. A wait without a copy hangs the chip. A descriptor that is neither started nor waited for copies nothing.

    Semaphores count bytes, not copies: with two copies on one semaphore the first wait may be ended by either. A
    barrier of Mosaic GPU counts arrivals, one for each copy, and a wait ends after `num_arrivals`: more copies than
    that before a wait are in two of its phases, and no wait ends with the first one.

    Copies take a `SemaphoreType.DMA`, a single one of an array; signals and waits by number a `SemaphoreType.REGULAR`,
    which is signalled as often as it is waited for.

    Two launches of one program that use the barrier semaphore under one `collective_id` get the same semaphore: a
    device that is ahead signals its neighbour's previous kernel.

    ## How to fix

    Call `.wait()` on the descriptor, or on a new one with the same refs and semaphore, on every path on which
    `.start()` ran, before the destination is read. A remote copy needs both waits: `wait_send` before the source is
    overwritten and `wait_recv` before the destination is read. `copy_smem_to_gmem` needs `wait_smem_to_gmem` before
    its source is overwritten and before the kernel ends.

    ## Fix safety

    Unsafe: it waits right after the start, so that nothing is done meanwhile.

    ## Known limits

    Starts and waits are matched by semaphore alone, whatever the refs, in any order and in any grid step, and
    semaphores in arrays by index only where all indices are constant. They are counted where all of one semaphore run
    under the same conditions and in the same loops, and what each copies is known; remote copies are not counted.
    Silent for semaphores that come from outside the kernel or reach code that is not seen, and where the number of
    starts and waits differs only by how often loops run. One `collective_id` in two launches is a warning where they
    synchronise in code of their own, and a hint where it is the same code: that is allowed if a device cannot enter the
    second before its neighbours left the first.

    ## References

    - jax documentation, "Async operations" and the docstrings of `make_async_copy`, `make_async_remote_copy` and
      `get_barrier_semaphore`.
    - Semaphores of other kinds and arrays of them, traced with jax 0.12.0.1 on tensor cores and subcores; 0.10.2 and
      0.11.2 have the same checks.
    - jax issue 27963: one `collective_id` in two kernels.
    - Run with jax 0.8.3, 0.10.2 and 0.12.0.1. Without wait: right with `interpret=True` and NaN with
      `pltpu.InterpretParams(dma_execution_mode="on_wait")`, "Semaphore has non-zero count at kernel exit" with
      "eager". Descriptor never used: NaN. Wait without start: NaN with `interpret=True`, hangs with InterpretParams.
      Read after the first of two waits on one semaphore: NaN with "on_wait". Two starts and one wait: "Semaphore has
      non-zero count at kernel exit"; one start and two waits: hangs.
    - Run on an H200 with jax 0.11.2: two copies on a barrier of one arrival, of one warpgroup or one copy of each of
      two, end in `CUDA_ERROR_LAUNCH_FAILED`; a wait for a second arrival, a second wait and a wait on a semaphore that
      nothing signals hang. Without `wait_smem_to_gmem` 8,192 blocks were right, three times: a warning.
    - GPU interpreter of jax 0.12.0.1, two copies on a barrier of one arrival: "Barrier completed phase 1, but no
      threads observed phase 0". The compiler takes them. Lowered for CUDA with 0.12.0.1: "copy_gmem_to_smem without a
      barrier is only supported on pre-Hopper GPUs"; from 0.10.2 on "Operation is only valid for a single barrier, but
      barrier ref contains 2", which 0.8.3 lowers.
    """

    code = "PAL415"
    name = "dma-unpaired"
    severity = Severity.ERROR
    fix = "unsafe"
    of_hardware = True
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref, buffer, sem):
                pltpu.make_async_copy(x_ref, buffer, sem).start()  #!
                pltpu.make_async_copy(x_ref, buffer, sem).wait()  #+
                o_ref[...] = buffer[...] * 2

            def double(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                    out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
                )(x)
            """,
        ),
        Example(
            """
            def kernel(x_ref, o_ref, buffer, sems):
                pltpu.make_async_copy(x_ref, buffer, sems.at[0]).start()  #!
                pltpu.make_async_copy(x_ref, buffer, sems.at[1]).wait()  #!
                o_ref[...] = buffer[...] * 2

            def double(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                    out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def copy(x_ref, buffer, sem, slot):
                return pltpu.make_async_copy(x_ref.at[pl.ds(slot * 8, 8)], buffer.at[slot % 2], sem.at[slot % 2])

            def kernel(x_ref, o_ref, buffer, sem):
                step = pl.program_id(0)

                @pl.when(step == 0)
                def _():
                    copy(x_ref, buffer, sem, step).start()

                @pl.when(step + 1 < pl.num_programs(0))
                def _():
                    copy(x_ref, buffer, sem, step + 1).start()

                copy(x_ref, buffer, sem, step).wait()
                o_ref[...] = buffer[step % 2] * 2

            def double(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        misused = list(_misused(trace, context))
        yield from misused
        if misused:
            return
        copies = copies_of(trace)
        if not copies.complete or trace.launch.form.kernels == "meshes" or len(trace.launch.bodies) > 1:
            return
        barriers = list(_barrier_use(copies, context))
        if barriers:
            yield from barriers
            return
        yield from _unmatched(copies, context)
        yield from _miscounted(copies, context)
        yield from _never_used(copies, context)
        yield from _conditional(copies, context)
        yield from _shared(copies, context)
        yield from _to_gmem(trace, context)

    def check_module(self, context: Context) -> Iterator[Finding]:
        if "auto_assign_collective_ids" in context.module.source.text:
            return
        seen: list[tuple[Launch, int]] = []
        for launch in context.analysis.launches:
            found = _collective_id(launch)
            if found is None or launch.form.is_inner or not _barriers(launch):
                continue
            number, where = found
            for other, taken in seen:
                level = _rivalry(launch, other) if taken == number else None
                if level is not None:
                    yield context.finding(
                        where,
                        f"another launch has the same barrier semaphore: `collective_id={number}` is used twice",
                        help="give each launch a `collective_id` of its own, unless all synchronise in the same way",
                        severity=level,
                        related=[(other.called_at, "the other launch")],
                    )
                    break
            seen.append((launch, number))


def _misused(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Semaphores of another kind, several at once, and such as are never signalled."""
    versions = context.failing(lambda version: not up_to("0.10.1", version))
    for found in (*misuses(trace), *unbalanced(trace)) if versions else ():
        yield context.finding(
            found.op.site,
            found.problem,
            help=found.help,
            certain=found.certain,
            op=found.op,
            versions=versions,
        )


def _unmatched(copies: Copies, context: Context) -> Iterator[Finding]:
    """Starts on semaphores on which nothing waits, and waits on those that nothing signals."""
    for signal in unmatched(copies):
        surely = signal.op.certain and signal.ref is not None and signal.ref.role == "scratch"
        if signal.kind == "wait":
            message = f"this wait never ends: no copy that is started signals `{signal.spelled}`"
            help_ = "call `.start()` on the copy first"
        else:
            message = f"this copy is never awaited: the kernel has no wait on `{signal.spelled}`"
            help_ = "wait before the destination is used and before the kernel ends"
        fixes = _waited(signal, context) if signal.kind == "start" else []
        yield context.finding(signal.op.site, message, help=help_, certain=surely, fixes=fixes)


def _waited(signal: BarrierSignal, context: Context) -> list[Fix]:
    """Wait right after the start, where that is a statement of its own: `copy.start()`."""
    site = signal.op.site
    call, piece = site.node, site.piece
    start = call.func if isinstance(call, nodes.Call) else None
    if not isinstance(start, nodes.Attribute) or start.attr.value != "start" or not _is_statement(site):
        return []
    copy = piece.code(start.value)
    span = piece.span(call)
    end = Span(span.path, span.end, span.end)
    indent = piece.source.line(span.start.line)[: span.start.column - 1]
    title = f"wait for it at once: `{copy}.wait()`" if len(copy) <= _MAX_COPY else "wait for it at once"
    return [context.unsafe(title, context.replace(end, f"\n{indent}{copy}.wait()"))]


def _is_statement(site: Site) -> bool:
    """Whether a call is a statement that has a line of its own."""
    lines = (node for statement in site.piece.body for node in walk(statement))
    return any(
        isinstance(line, nodes.SimpleStatementLine)
        and len(line.body) == 1
        and isinstance(line.body[0], nodes.Expr)
        and line.body[0].value is site.node
        for line in lines
    )


def _miscounted(copies: Copies, context: Context) -> Iterator[Finding]:
    """More starts than waits, or more waits than starts, on one semaphore."""
    if any(launch.form.is_inner and copies.trace in launch.traces for launch in context.analysis.launches):
        return  # its body runs many times
    for found in miscounts(copies):
        signal, on_barrier = found.signal, found.signal.op.name.startswith(GPU)
        if found.arrivals is not None:
            each = warpgroups([signal], copies.trace) or 1
            what = "a copy too many" if each == 1 else f"this copy of each of the {each} warpgroups"
            message = f"{what} arrives at `{signal.spelled}` before a wait, which ends after {found.arrivals}"
            help_ = "declare the barrier with `num_arrivals=` the number of copies, or wait for each copy"
        elif signal.kind == "wait":
            message = (
                f"this wait never ends: it is number {found.waits} on `{signal.spelled}`, "
                f"and {_copies(found.starts)} started before it"
            )
            help_ = "wait once for each copy, after its start"
        else:
            message = f"{_copies(found.starts)} started on `{signal.spelled}`, and {found.waits} waited for"
            help_ = "wait for each copy before the kernel ends"
            help_ += "" if on_barrier else ": the semaphore has to be back at zero"
        certain = signal.kind == "wait" or not on_barrier
        surely = certain and not signal.conditions and signal.ref is not None and signal.ref.role == "scratch"
        yield context.finding(signal.op.site, message, help=help_, certain=surely)


def _copies(count: int) -> str:
    return "no copy is" if count == 0 else "1 copy is" if count == 1 else f"{count} copies are"


def _never_used(copies: Copies, context: Context) -> Iterator[Finding]:
    for key, op in copies.made.items():
        refs = [value for value in (*op.args, *(value for _, value in op.keywords)) if isinstance(value, Ref)]
        if key in copies.used or op.open or not refs or any(ref.buffer in copies.foreign for ref in refs):
            continue
        yield context.finding(
            op.site,
            f"`{op.short}` only describes a copy: it is neither started nor waited for",
            help="call `.start()` and `.wait()` on the result",
            severity=Severity.WARNING,
            op=op,
        )


def _conditional(copies: Copies, context: Context) -> Iterator[Finding]:
    """A single start and a single wait of the same copy, of which one runs under more conditions than the other."""
    for start in copies.of("start"):
        copied = start.op.name == TO_SMEM or (start.op.name.endswith("_copy.start") and start.op.name not in REMOTE)
        if not copied or not copies.is_checkable(start):
            continue
        meeting = list(islice((other for other in copies.meeting(start) if other is not start), 2))
        if len(meeting) != 1 or meeting[0].kind != "wait" or not _same_copy(start, meeting[0], copies.trace):
            continue
        wait = meeting[0]
        if start.in_loop or wait.in_loop or not (start.op.certain and wait.op.certain):
            continue
        inner, outer = wait.conditions, start.conditions
        if len(inner) > len(outer) and inner[: len(outer)] == outer:
            message = f"the copy is always started, but waited for only under a condition (`{start.spelled}`)"
            where, other, text = wait.op.site, start.op.site, "started here"
        elif len(outer) > len(inner) and outer[: len(inner)] == inner:
            message = f"waits always, but the copy is started only under a condition (`{start.spelled}`)"
            where, other, text = wait.op.site, start.op.site, "started here"
        else:
            continue
        help_ = "start and wait under the same conditions"
        yield context.finding(where, message, help=help_, severity=Severity.WARNING, related=[(other, text)])


def _same_copy(one: BarrierSignal, other: BarrierSignal, trace: KernelTrace) -> bool:
    """Whether both certainly concern copies of the same size: between the same refs, or of a block on its barrier."""
    if one.op.name == TO_SMEM:
        return trace.launch.arguments.keys().isdisjoint(("num_threads", "mesh", "cluster"))
    return isinstance(one.target, Ref) and one.target == other.target and one.source == other.source


def _shared(copies: Copies, context: Context) -> Iterator[Finding]:
    """Two copies in flight on one semaphore, and data of the first used before the second is waited for."""
    plain = [
        signal for signal in copies.signals if copies.is_checkable(signal) and not signal.in_loop and signal.op.certain
    ]
    in_order: dict[object, list[BarrierSignal]] = {}  # by semaphore
    for signal in plain:
        if signal.ref is not None and signal.slot is not None:
            in_order.setdefault((signal.ref.buffer, signal.slot), []).append(signal)
    fours = [four for each in in_order.values() for four in zip(each, each[1:], each[2:], each[3:], strict=False)]
    for first, second, wait, last in sorted(fours, key=lambda four: four[0].at):
        if [signal.kind for signal in (first, second, wait, last)] != ["start", "start", "wait", "wait"]:
            continue
        if not isinstance(first.target, Ref):
            continue
        if not isinstance(second.target, Ref) or not isinstance(wait.target, Ref):
            continue
        if not isinstance(last.target, Ref) or last.target.buffer == wait.target.buffer:
            continue
        if second.target.buffer == first.target.buffer:
            continue
        if len({signal.conditions for signal in (first, second, wait, last)}) > 1:
            continue
        for event in copies.trace.events[wait.at : last.at]:
            if isinstance(event, Access) and event.kind == "load" and event.ref.buffer == wait.target.buffer:
                if event.site.key in copies.sites:
                    continue
                yield context.finding(
                    wait.op.site,
                    f"two copies are in flight on `{first.spelled}`: the other one may end this wait",
                    help="give each copy its own semaphore, or wait for both before the data is used",
                    severity=Severity.WARNING,
                    related=[(second.op.site, "the other copy"), (event.site, "used here")],
                )
                return


def _barrier_use(copies: Copies, context: Context) -> Iterator[Finding]:
    """Copies without a barrier, and arrays of barriers that are taken for one."""
    for op in copies.trace.ops(TO_SMEM):
        bare = op.argument("barrier", 2) in (None, NONE) and not op.open
        if bare and not any(True for _ in copies.trace.ops(_WAIT_TO_SMEM)):
            yield context.finding(
                op.site,
                "a copy to SMEM without a barrier: only GPUs before Hopper take it, and nothing here waits for it",
                help="pass a `plgpu.Barrier()` from the scratch, and wait with `barrier_wait`",
                severity=Severity.WARNING,
            )
    versions = context.failing(lambda version: not up_to("0.10.1", version))
    for signal in copies.signals if versions else ():
        made = None if signal.ref is None or signal.slot != () else declaration(copies.trace, signal.ref)
        number = None if made is None else made.argument("num_barriers", 1)
        several = isinstance(number, Seq) or (integer(number) or 0) > 1
        if several:
            yield context.finding(
                signal.op.site,
                f"`{signal.spelled}` is an array of barriers: `{signal.op.short}` takes a single one",
                help=f"index it: `{signal.spelled}.at[0]`",
                op=signal.op,
                versions=versions,
            )


# -- Mosaic GPU: copies to GMEM ------------------------------------------------------------------------------------


def _to_gmem(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """`copy_smem_to_gmem` in a kernel that never waits for such copies."""
    if any(True for _ in trace.ops(WAIT_TO_GMEM)):
        return
    for op in trace.ops(TO_GMEM):
        source = op.argument("src", 0)
        if not isinstance(source, Ref) or source.role != "scratch" or not trace.owns(source):
            continue
        yield context.finding(
            op.site,
            f"nothing waits for this copy out of `{source.parameter}`: no `wait_smem_to_gmem` in the whole kernel",
            help="call `wait_smem_to_gmem(0)` before the source is overwritten and before the kernel ends",
            op=op,
            severity=Severity.WARNING,
        )


# -- collective ids ------------------------------------------------------------------------------------------------


def _collective_id(launch: Launch) -> tuple[int, Site] | None:
    """The literal id, and where it is written."""
    params = launch.argument("compiler_params")
    value = None
    if isinstance(params, CallResult):
        value = params.argument("collective_id")
    elif isinstance(params, Dictionary):
        inner = params.get("mosaic") or params
        value = inner.get("collective_id") if isinstance(inner, Dictionary) else None
    if not is_integer(value):
        return None
    where = launch.called_at
    if isinstance(params, CallResult):
        node = params.site.node
        for argument in node.args if isinstance(node, nodes.Call) else ():
            if argument.keyword is not None and argument.keyword.value == "collective_id":
                where = Site(params.site.piece, argument)
    return value.value, where


def _barriers(launch: Launch) -> set[object]:
    """The places at which the launch's kernel gets the barrier semaphore."""
    return {op.site.key for trace in launch.traces for op in trace.ops(_BARRIER_SEMAPHORE)}


def _rivalry(one: Launch, other: Launch) -> Severity | None:
    """How likely two launches disturb each other; None where they may never meet.

    Launches that synchronise in the same way may share an id, according to jax; "if in doubt, prefer not sharing".
    """
    again = one.site.key == other.site.key and {b.node for b in one.bodies} == {b.node for b in other.bodies}
    if again or not one.callers or not other.callers or not (one.certain and other.certain):
        return None
    roots = one.callers[0], other.callers[0]
    alike = bool(_barriers(one) & _barriers(other))
    if roots[0].node is roots[1].node:
        return Severity.INFO if alike else Severity.WARNING
    tests = any(root.method_of is not None or root.name.startswith("test") for root in roots)
    return None if alike or tests else Severity.INFO
