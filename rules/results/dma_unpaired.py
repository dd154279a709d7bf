"""PAL415 dma-unpaired."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pallas_lint.api import (
    NONE,
    Context,
    Example,
    Finding,
    Fix,
    KernelTrace,
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
    TO_GMEM,
    TO_SMEM,
    WAIT_TO_GMEM,
    BarrierSignal,
    Copies,
    copies_of,
    declaration,
    early_uses,
    miscounts,
    unequal_conditions,
    unmatched,
    warpgroups,
)
from pallas_lint.kernels.facts.semaphores import misuses, unbalanced
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.syntax.descent import walk

_WAIT_TO_SMEM = f"{GPU}.wait_gmem_to_smem"
_MAX_COPY = 40  # characters of a copy that a fix's title names


class DmaUnpaired(Rule):
    """An asynchronous copy that is never awaited, or a wait that no copy ends.

    A started copy runs beside the kernel. Until a wait on its semaphore (on Mosaic GPU: its barrier) has returned,
    the destination holds old data, and a semaphore that is not back at zero when the kernel ends corrupts the next
    one. A wait without a copy hangs the chip. A descriptor that is neither started nor waited for copies nothing.

    Semaphores count bytes, not copies: with two copies on one semaphore the first wait may be ended by either. A
    barrier of Mosaic GPU counts arrivals, one for each copy, and a wait ends after `num_arrivals`: more copies than
    that before a wait are in two of its phases, and no wait ends with the first one.

    Copies take a `SemaphoreType.DMA`, a single one of an array; signals and waits by number a `SemaphoreType.REGULAR`,
    which is signalled as often as it is waited for. So is the barrier semaphore, which the next kernel with the same
    `collective_id` takes as it was left.

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
    starts and waits differs only by how often loops run.

    ## References

    - jax documentation, "Async operations" and the docstrings of `make_async_copy` and `make_async_remote_copy`.
    - Semaphores of other kinds and arrays of them, traced with jax 0.12.0.1 on tensor cores and subcores; 0.10.2 and
      0.11.2 have the same checks.
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
    """A start and the only wait for it, of which one runs under more conditions than the other."""
    for start, wait in unequal_conditions(copies):
        if len(wait.conditions) > len(start.conditions):
            message = f"the copy is always started, but waited for only under a condition (`{start.spelled}`)"
        else:
            message = f"waits always, but the copy is started only under a condition (`{start.spelled}`)"
        help_ = "start and wait under the same conditions"
        related = [(start.op.site, "started here")]
        yield context.finding(wait.op.site, message, help=help_, severity=Severity.WARNING, related=related)


def _shared(copies: Copies, context: Context) -> Iterator[Finding]:
    """The first use of data that the other one of two copies in flight may stand for."""
    for early in islice(early_uses(copies), 1):
        yield context.finding(
            early.wait.op.site,
            f"two copies are in flight on `{early.wait.spelled}`: the other one may end this wait",
            help="give each copy its own semaphore, or wait for both before the data is used",
            severity=Severity.WARNING,
            related=[(early.other.op.site, "the other copy"), (early.use.site, "used here")],
        )


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
