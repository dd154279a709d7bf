"""PAL422 copy-order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Example, Finding, KernelTrace, Rule, Severity, Site, blocks_of
from pallas_lint.kernels.facts.copies import copies_of, miscounts, unmatched
from pallas_lint.kernels.facts.subcores.mesh import axes_of_subcores
from pallas_lint.kernels.facts.subcores.races import guarded_barriers, meetings
from pallas_lint.kernels.launches.dimension_semantics import semantics_of, semantics_site

if TYPE_CHECKING:
    from pallas_lint.api import Sym
    from pallas_lint.kernels.facts.device_lines import DeviceLines
    from pallas_lint.probe.interleaving.report import Verdict

_TWO_CORES = ("v4", "v5p")
_HELP = {
    "device-race": "wait for the copy before, or take another slot of the buffer",
    "deadlock": "start, or signal, once for each wait, before it",
    "unfinished": "wait as often as copies are started, before the kernel ends",
    "left-over": "wait for all that is signalled: the semaphore has to be back at zero at the end of the kernel",
}


class CopyOrder(Rule):
    """An access that may overlap a copy that was not waited for, or waits that do not match the copies.

    `copy.start()` returns at once; the copy reads its source and writes its destination some time before the wait for
    it ends. A store to the source until then is sent in part, a load from the destination sees what was there before,
    and a second copy to it mixes with the first. On several devices each is as fast as it likes: a remote copy into a
    buffer of a neighbour needs that neighbour's word, by a semaphore, that it no longer reads the buffer. And where two
    cores share a `parallel` axis (v4, v5p), each starts in the middle of the grid: a copy that the step before was to
    start is never started.

    The kernel is laid out as a line of events for each device and core, and every order in which they can happen is
    looked at, as by the probe's `verify`.

    The vector subcores of a SparseCore share `VMEM_SHARED`, and none waits for another: between a copy to it and a copy
    of the same rows by another subcore there has to be a `plsc.subcore_barrier()`, which all of them come to.

    ## How to fix

    Move the wait before the access, take another slot of the buffer, or signal the sender when a buffer is free again:
    `pl.semaphore_signal(free, 1, device_id=sender)` after the last use, `pl.semaphore_wait(free, 1)` before the copy.
    Axes along which steps wait for copies of earlier steps are `"arbitrary"`.

    ## Known limits

    Judged are kernels of which the text gives the sizes of the grid, of loops, buffers and slices and the mesh, with
    conditions, slots and device ids computed of indices and of what loops carry; parts at places that the data give are
    taken to be apart. Sizes that have only names and that the code does not compare are tried as 3, 4, 5 and 6 of what
    divides them: reported is what goes wrong for all of these. Starts and waits whose number alone is wrong, whatever
    the loops, are PAL415's.
    Copies that overtake each other are looked at on one device only; the probe does it on all, and judges all other
    kernels too.

    ## References

    - sgl-project/sglang-jax issues 1024 and 1110, pytorch/xla issue 8328.
    - `pallas_lint/probe/interleaving` explains why a number of runs linear in the events covers every order.
    """

    code = "PAL422"
    name = "copy-order"
    severity = Severity.WARNING
    backends = frozenset({"tpu"})
    cores = frozenset({"tensor", "sparse"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_hbm, buf, sem):
                for n in range(4):
                    buf[n % 2] = x_ref[n] * 2.0  #!
                    if n >= 2:
                        pltpu.make_async_copy(buf.at[n % 2], o_hbm.at[n - 2], sem.at[n % 2]).wait()
                    pltpu.make_async_copy(buf.at[n % 2], o_hbm.at[n], sem.at[n % 2]).start()
                for n in (2, 3):
                    pltpu.make_async_copy(buf.at[n % 2], o_hbm.at[n], sem.at[n % 2]).wait()

            def run():
                return pl.pallas_call(
                    kernel,
                    out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
                    out_shape=jax.ShapeDtypeStruct((4, 8, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
                )(jnp.zeros((4, 8, 128), jnp.float32))
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_hbm, buf, sem):
                for n in range(4):
                    if n >= 2:
                        pltpu.make_async_copy(buf.at[n % 2], o_hbm.at[n - 2], sem.at[n % 2]).wait()
                    buf[n % 2] = x_ref[n] * 2.0
                    pltpu.make_async_copy(buf.at[n % 2], o_hbm.at[n], sem.at[n % 2]).start()
                for n in (2, 3):
                    pltpu.make_async_copy(buf.at[n % 2], o_hbm.at[n], sem.at[n % 2]).wait()

            def run():
                return pl.pallas_call(
                    kernel,
                    out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
                    out_shape=jax.ShapeDtypeStruct((4, 8, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
                )(jnp.zeros((4, 8, 128), jnp.float32))
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        target, launch = context.target, trace.launch
        if target is None or target.backend != "tpu":
            return
        if target.core == "sparse":
            yield from _of_subcores(trace, target.device, context)
        if not any(copies_of(trace).of("start")):
            return
        found = [*self._orders(trace, context, None)]
        yield from found
        if found or target.device not in _TWO_CORES:
            return
        blocks = blocks_of(launch, context.analysis)
        rank = blocks.grid.rank if blocks is not None else 0
        shared = [axis for axis, each in enumerate(semantics_of(launch, rank)) if each == "parallel"]
        if shared:
            yield from self._orders(trace, context, shared[0])

    def _orders(self, trace: KernelTrace, context: Context, shared: int | None) -> Iterator[Finding]:
        """What goes wrong in some order; on two cores where these share an axis."""
        from pallas_lint.kernels.facts.device_lines import device_lines

        lines, sizes = device_lines(trace, shared), ""
        found = _verdicts(lines) if lines is not None else []
        if lines is None and trace.launch.known_call is None:
            lines, found, sizes = _for_all_sizes(trace, shared, context)
        if lines is None:
            return
        several, unpaired = len(lines.traces.lines) > 1, _unpaired(trace)
        for verdict in _chosen(found):
            places = [lines.site(place) for place in verdict.places]
            if verdict.kind != "device-race" and places[0].key in unpaired:
                continue
            site: Site = places[0]
            message, help = verdict.message + sizes, _HELP[verdict.kind]
            if shared is not None:
                message = f"two cores share axis {shared} of the grid, which is parallel: {message}"
                help = f'make axis {shared} "arbitrary": a step that waits for a copy of the one before needs it'
                whole, own = semantics_site(trace.launch, shared)
                places, site = [site, *places], own or whole
            elif several and verdict.kind == "device-race":
                help = "let the other device signal that it no longer uses the buffer, and wait for that before"
            yield context.finding(site, message, help=help, related=[(each, "here") for each in places[1:2]])
            if shared is not None:
                return


def _verdicts(lines: DeviceLines) -> list[Verdict]:
    """What goes wrong at places in the text, surely or, on one device, if a copy overtakes another."""
    from pallas_lint.probe.interleaving.system import TooLarge
    from pallas_lint.probe.interleaving.verdicts import check_traces

    try:
        found = check_traces(lines.traces).found
    except TooLarge:
        return []
    alone = len(lines.traces.lines) == 1
    judged = [verdict for verdict in found if verdict.sure or (alone and verdict.kind == "device-race")]
    return [verdict for verdict in judged if verdict.kind in _HELP and verdict.places]


def _chosen(found: list[Verdict]) -> list[Verdict]:
    """What surely goes wrong; else the first that does if a copy overtakes another."""
    return [verdict for verdict in found if verdict.sure] or found[:1]


def _for_all_sizes(
    trace: KernelTrace, shared: int | None, context: Context
) -> tuple[DeviceLines | None, list[Verdict], str]:
    """What goes wrong whatever the numbers are for which the text has only names, with the first numbers tried."""
    from pallas_lint.kernels.facts.assumed_sizes import assumed_sizes
    from pallas_lint.kernels.facts.device_lines import device_lines

    common: list[Verdict] = []
    first: DeviceLines | None = None
    sizes = ""
    for symbols in assumed_sizes(trace, context.analysis.outcome.effects):
        lines = device_lines(trace, shared, symbols)
        found = _verdicts(lines) if lines is not None else []
        if first is None:
            first, common, sizes = lines, found, _spelled(symbols)
        alike = {_key(verdict) for verdict in found}
        common = [verdict for verdict in common if _key(verdict) in alike]
        if not common:
            return None, [], ""
    return first, common, sizes


def _spelled(symbols: dict[Sym, int]) -> str:
    named = sorted((name.text, number) for name, number in symbols.items() if not name.text.startswith("#"))
    spelled = [f"`{name}` is {number}" for name, number in named]
    return f", for one where {' and '.join(spelled[:2])}" if spelled else ""


def _unpaired(trace: KernelTrace) -> set[object]:
    """The starts and waits that PAL415 reports: their number alone is wrong."""
    copies = copies_of(trace)
    signals = [*unmatched(copies), *(found.signal for found in miscounts(copies))]
    return {signal.op.site.key for signal in signals}


def _key(verdict: Verdict) -> object:
    """A key that one fault shares in two orders of events."""
    return verdict.kind, tuple((place["file"], place["line"], place.get("column")) for place in verdict.places)


def _of_subcores(trace: KernelTrace, device: str | None, context: Context) -> Iterator[Finding]:
    """Copies of subcores that meet in what these share, and barriers that not all of them come to."""
    axes = axes_of_subcores(trace.launch, device) if trace.launch.core == "sc_vector" else None
    if axes is None:
        return
    for found in meetings(trace, axes):
        one, other = found.subcores
        does, did = (
            f"copies {'to' if each.kind == 'store' else 'from'} row {found.row} of `{each.ref.parameter}`"
            for each in (found.second, found.first)
        )
        yield context.finding(
            found.second.site,
            f"subcore {other} {does}, while subcore {one} {did}: nothing orders the two",
            help="call `plsc.subcore_barrier()` between them",
            related=[(found.first.site, "here")],
        )
        return
    for op in guarded_barriers(trace, axes):
        yield context.finding(
            op.site,
            "only some subcores of a core come to this barrier, and wait for the others for ever",
            help="call it outside the condition",
            op=op,
        )
