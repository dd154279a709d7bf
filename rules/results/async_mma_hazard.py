"""PAL418 async-mma-hazard."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    ELLIPSIS,
    NONE,
    Access,
    Const,
    Context,
    Example,
    Finding,
    Func,
    Guard,
    KernelTrace,
    Launch,
    Op,
    Ref,
    Rule,
    Severity,
    Site,
    Value,
)
from pallas_lint.kernels.facts.copies import GPU
from pallas_lint.kernels.facts.loop_unrolling import overlap, part_of, unrolled_events
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.launch import block_spec
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.loop_unrolling import EventInstance

_WGMMA, _TCGEN05 = f"{GPU}.wgmma", f"{GPU}.tcgen05_mma"
_WGMMA_WAIT, _LOAD_ACC = f"{GPU}.wgmma_wait", f"{GPU}.wgmma_accumulator_load"
_COMMIT = f"{GPU}.tcgen05_commit_arrive"
_BARRIER_WAITS = tuple(f"{GPU}.{name}" for name in ("barrier_wait", "barrier_test", "barrier_arrive_and_wait"))
# Operations that the tensor cores execute in program order.
_IN_ORDER = tuple(f"{GPU}.async_copy_{what}_to_tmem" for what in ("smem", "scales", "sparse_metadata"))
_Buffer = tuple[str, object]


@define(eq=False)
class _Running:
    """One product that may still run: what it reads and adds to, and where that is known to be over."""

    op: Op
    conditions: tuple[Guard, ...]
    reads: list[tuple[Ref, object]]  # with the part of the buffer
    acc: _Buffer | None
    step: int  # of the pipeline
    barriers: set[_Buffer | None] = field(factory=set)  # of `tcgen05_mma`: a wait on one of them ends it
    over: list[tuple[Guard, ...]] = field(factory=list)  # under these conditions

    @property
    def is_wgmma(self) -> bool:
        return self.op.name == _WGMMA

    def uses(self, access: Access, part: object) -> bool:
        buffer = access.ref.buffer
        if not self.is_wgmma and buffer == self.acc:
            return True
        return access.kind != "load" and any(ref.buffer == buffer and overlap(read, part) for ref, read in self.reads)

    def concerns(self, conditions: tuple[Guard, ...]) -> bool:
        """Whether code under these conditions may run after it in the same thread before it is known to be over."""
        shorter = min(len(conditions), len(self.conditions))
        if conditions[:shorter] != self.conditions[:shorter]:
            return False
        return not any(conditions[: len(over)] == over for over in self.over)


class AsyncMmaHazard(Rule):
    """Mosaic GPU: memory is used while tensor cores, which were not waited for, still read or write it.

    `plgpu.wgmma` and `plgpu.tcgen05_mma` return at once, and the tensor cores work on. Who refills an operand before
    they are done multiplies the new data, or half of it; who reads the accumulator gets an unfinished sum. jax does not
    notice, and what comes out differs from run to run.

    - An SMEM operand of `wgmma` may be written, also by a copy, after `plgpu.wgmma_wait(0)`, or after `acc[...]`, which
      waits. `wgmma_wait(n)` leaves the last `n` running. `wgmma_accumulator_load(acc, wait_n=None)` does not wait.
    - A pipeline refills the slot of a step when its body returns, or `delay_release` steps later: by then no `wgmma`
      that reads it may be running.
    - `tcgen05_mma` is over when a wait on the barrier has returned that it was passed, or that a later
      `tcgen05_commit_arrive` was passed.

    ## How to fix

    Call `plgpu.wgmma_wait(0)` first, or give the pipeline's inputs `delay_release=1` and let the body end with
    `plgpu.wgmma_wait(1)`. Of `tcgen05_mma`: wait on its barrier.

    ## Known limits

    Four iterations of loops are followed. Slots of a buffer are told apart by numbers, by what loops count and by equal
    values. Between threads (`pl.when(wg == 0)` and `pl.when(wg == 1)`) nothing is compared: barriers order these.
    Of pipelines with `manual_consumed_barriers` only the body is judged. Silent after code that is not seen. Silent
    for what runs in interpret mode only.

    ## References

    - jax/_src/pallas/mosaic_gpu/primitives.py, `wgmma_wait`, `wgmma_accumulator_load`, `tcgen05_mma`,
      `tcgen05_commit_arrive`; pipeline.py: `consumed_slot = lax.rem(step - delay_release, max_concurrent_steps)`.
    - PTX ISA, "Asynchronous warpgroup level matrix operations": accessing registers or shared memory of a
      `wgmma.mma_async` before `wgmma.wait_group` has undefined behaviour.
    - Read in the lowering of jax 0.12.0.1: `wgmma.wait_group` comes from `wgmma_wait`, a read of the accumulator and
      the end of `run_state`, and from nothing else. Both directions of the examples compile for an H100.
    - GPU interpreter of jax 0.12.0.1 (`detect_races=True`): a race where TMEM is read before the wait on the barrier of
      `tcgen05_mma`, none after it. To `wgmma` it is blind.
    """

    code = "PAL418"
    name = "async-mma-hazard"
    severity = Severity.WARNING
    of_hardware = True
    invalid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(a_gmem, b_gmem, o_gmem, a, b, barrier):
                plgpu.copy_gmem_to_smem(b_gmem, b, barrier)
                plgpu.barrier_wait(barrier)

                def multiply(acc):
                    @pl.loop(0, 4)
                    def step(k):
                        plgpu.copy_gmem_to_smem(a_gmem.at[k], a, barrier)  #!
                        plgpu.barrier_wait(barrier)
                        plgpu.wgmma(acc, a, b)

                    return acc[...]

                o_gmem[...] = pl.run_scoped(multiply, plgpu.ACC((64, 64), jnp.float32))

            def run(a, b):
                tiling = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
                    scratch_types=[
                        plgpu.SMEM((64, 64), jnp.float16, transforms=tiling),
                        plgpu.SMEM((64, 64), jnp.float16, transforms=tiling),
                        plgpu.Barrier(),
                    ],
                )(a, b)
            """,
            target="mosaic_gpu",
        ),
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(a_gmem, b_gmem, o_gmem, acc):
                def step(indices, a, b):
                    plgpu.wgmma(acc, a, b)  #!
                    plgpu.wgmma_wait(1)

                tiling = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
                plgpu.emit_pipeline(
                    step,
                    grid=(8,),
                    in_specs=[
                        plgpu.BlockSpec((64, 64), lambda k: (0, k), transforms=tiling),
                        plgpu.BlockSpec((64, 64), lambda k: (k, 0), transforms=tiling),
                    ],
                    max_concurrent_steps=2,
                )(a_gmem, b_gmem)
                o_gmem[...] = acc[...]

            def run(a, b):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
                    scratch_types=[plgpu.ACC((64, 64), jnp.float32)],
                )(a, b)
            """,
            target="mosaic_gpu",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(a_gmem, b_gmem, o_gmem, acc):
                def step(indices, a, b):
                    plgpu.wgmma(acc, a, b)
                    plgpu.wgmma_wait(1)

                tiling = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
                plgpu.emit_pipeline(
                    step,
                    grid=(8,),
                    in_specs=[
                        plgpu.BlockSpec((64, 64), lambda k: (0, k), transforms=tiling, delay_release=1),
                        plgpu.BlockSpec((64, 64), lambda k: (k, 0), transforms=tiling, delay_release=1),
                    ],
                    max_concurrent_steps=2,
                )(a_gmem, b_gmem)
                o_gmem[...] = acc[...]

            def run(a, b):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
                    scratch_types=[plgpu.ACC((64, 64), jnp.float32)],
                )(a, b)
            """,
            target="mosaic_gpu",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        if not any(True for _ in trace.ops(_WGMMA, _TCGEN05)):
            return
        cores, reported = _TensorCores(trace), set()
        for instance in unrolled_events(trace):
            for product in cores.disturbed_by(instance):
                access = instance.event
                if (
                    isinstance(access, Access)
                    and access.site.key not in reported
                    and access.certain
                    and product.op.certain
                ):
                    reported.add(access.site.key)
                    yield _used(product, access, context)
        for launch in context.analysis.launches:
            if launch.form.is_inner and launch.form.backend == "mosaic_gpu":
                yield from _released(launch, trace, context)


@define(eq=False)
class _TensorCores:
    """What may run on the tensor cores of one kernel while its events go by."""

    trace: KernelTrace
    running: list[_Running] = field(factory=list)
    step: int = 0
    last: int = -1  # the event before
    ordered: set[object] = field(factory=set)  # places of what waits for the products before it by itself
    loads: dict[object, Op] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.ordered.update(op.site.key for op in self.trace.ops(_WGMMA, _TCGEN05, *_IN_ORDER))
        self.loads.update((op.site.key, op) for op in self.trace.ops(_LOAD_ACC))

    def disturbed_by(self, instance: EventInstance) -> list[_Running]:
        """Record an event, and return the products that still use what it accesses."""
        if any(min(self.last, instance.at) < at <= instance.at for at in self.trace.untracked_at):
            self.running.clear()  # it may have waited
        self.last = instance.at
        access = instance.event
        if isinstance(access, Op):
            self._do(access, instance)
            return []
        place, buffer = access.site.key, access.ref.buffer
        if place in self.ordered or access.kind == "escape":
            return []
        if access.kind == "load" and any(product.is_wgmma and product.acc == buffer for product in self.running):
            if place not in self.loads:
                self._read(instance.conditions)
                return []
            self._wait(self.loads[place].argument("wait_n") or Const(0))
            using = [product for product in self.running if product.acc == buffer]
        else:
            part = part_of(access.ref, access.index, instance)
            using = [product for product in self.running if product.uses(access, part)]
        return [product for product in using if product.concerns(instance.conditions)]

    def _do(self, op: Op, instance: EventInstance) -> None:
        if op.name in (_WGMMA, _TCGEN05):
            self.running.append(_product(op, instance, self.step))
        if op.name in (_COMMIT, _TCGEN05):
            barrier = op.argument("barrier", 0 if op.name == _COMMIT else 3)
            for product in self.running:
                if barrier not in (None, NONE) or op.open:
                    product.barriers.add(_buffer(barrier))
        elif op.name == _WGMMA_WAIT:
            self._wait(op.argument("n", 0))
        elif op.name in _BARRIER_WAITS:
            ended = {_buffer(op.argument("barrier", 0)), None}
            anyway = None in ended and len(ended) == 1
            self.running = [
                product
                for product in self.running
                if product.is_wgmma or not (anyway or not product.barriers.isdisjoint(ended))
            ]

    def _wait(self, number: Value | None) -> None:
        """Until no more than so many `wgmma` run."""
        if number == NONE:
            return
        products, left = [product for product in self.running if product.is_wgmma], integer(number)
        kept = products[-left:] if left else []
        self.running = [product for product in self.running if not product.is_wgmma or product in kept]

    def _read(self, conditions: tuple[Guard, ...]) -> None:
        """`acc[...]` waits for all where it runs: often in the last turn only."""
        for product in self.running:
            if product.is_wgmma:
                open_ = any(guard.kind == "if" for guard in conditions[len(product.conditions) :])
                product.over.append(() if open_ else conditions)
        self.running = [product for product in self.running if product.concerns(product.conditions)]


def _buffer(barrier: Value | None) -> _Buffer | None:
    """Which barrier it certainly is."""
    return barrier.buffer if isinstance(barrier, Ref) and barrier.role is not None else None


def _product(op: Op, instance: EventInstance, step: int) -> _Running:
    names = (("a", 1), ("b", 2), ("a_scale", None), ("b_scale", None), ("a_sparse_metadata", None))
    operands = [op.argument(name, position) for name, position in names]
    reads = [(ref, part_of(ref, ELLIPSIS, instance)) for ref in operands if isinstance(ref, Ref)]
    acc = op.argument("acc", 0)
    return _Running(op, instance.conditions, reads, acc.buffer if isinstance(acc, Ref) else None, step)


def _used(product: _Running, access: Access, context: Context) -> Finding:
    name, spelled = product.op.short, _spelled(access.ref)
    doing = "read" if access.kind == "load" else "overwritten"
    using = "add to" if access.ref.buffer == product.acc else "read"
    if product.is_wgmma:
        help_ = "pass `wait_n=0`" if access.kind == "load" else "call `plgpu.wgmma_wait(0)` first"
    elif product.barriers:
        help_ = "call `plgpu.barrier_wait` first, on the barrier of `tcgen05_mma` or `tcgen05_commit_arrive`"
    else:
        help_ = "pass `tcgen05_mma` a barrier, and wait on it first"
    return context.finding(
        access.site,
        f"{spelled} is {doing} while `{name}` may still {using} it",
        help=help_,
        related=[(product.op.site, "started here")],
    )


def _spelled(ref: Ref) -> str:
    return "the operand" if ref.parameter.startswith("#") else f"`{ref.parameter}`"


# -- pipelines -----------------------------------------------------------------------------------------------------

_STEPS = 4  # delays are of one step, or two


def _released(launch: Launch, trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Products that still read an input of a pipeline when its slot is filled again."""
    first, last = next(((first, last) for kernel, first, last in launch.spans if kernel is trace), (0, 0))
    by_hand = launch.argument("manual_consumed_barriers") not in (None, NONE, Const(False))
    if first == last or launch.open or by_hand or _never_refills(launch):
        return
    if any(first <= at <= last for at in trace.untracked_at):
        return
    cores = _TensorCores(KernelTrace(trace.name, trace.site, trace.launch, events=trace.events[first:last]))
    for cores.step in range(_STEPS):
        for instance in unrolled_events(cores.trace):
            cores.disturbed_by(instance)
    reported = set()
    for product in reversed(cores.running):
        delays = {ref.parameter: _delay(launch, ref) for ref, _ in product.reads}
        late = {name: delay for name, delay in delays.items() if delay is not None and product.step < _STEPS - delay}
        if product.is_wgmma and product.op.certain and late and product.op.site.key not in reported:
            reported.add(product.op.site.key)
            name, delay = next(iter(late.items()))
            yield context.finding(
                product.op.site,
                f"`wgmma` may still read `{name}` when the pipeline fills its slot again: `delay_release` is {delay}",
                help="end the body with `plgpu.wgmma_wait(0)`, or with `wgmma_wait(1)` and `delay_release=1`",
                # A step later the product is hardly ever still at work: on an H100 200 runs of 200 came out right.
                severity=Severity.INFO if delay else Severity.WARNING,
            )


def _never_refills(launch: Launch) -> bool:
    """Whether there certainly are no more steps than slots."""
    given = launch.argument("max_concurrent_steps")
    slots = integer(given) if given is not None else 1 if launch.api.endswith("emit_pipeline") else 2
    sizes = None if launch.grid is None or launch.grid.open else [integer(size) for size in launch.grid.items]
    if slots is None or sizes is None or None in sizes:
        return False
    return math.prod(size for size in sizes if size is not None) <= slots


def _delay(launch: Launch, ref: Ref) -> int | None:
    """After how many steps the pipeline fills the slot of an input again, with other data; None where not known."""
    if ref.owner is not launch or ref.role != "in" or ref.index is None:
        return None
    specs = launch.in_specs
    spec = None if specs is None or ref.index >= len(specs.items) else block_spec(specs.items[ref.index])
    if spec is None or spec.value.open or not _follows_the_grid(spec.index_map):
        return None
    delay = spec.value.argument("delay_release") or launch.argument("delay_release") or Const(0)
    return integer(delay)


def _follows_the_grid(index_map: Value | None) -> bool:
    """Whether the block certainly is another one in the next step: the map names one of its parameters."""
    if not isinstance(index_map, Func):
        return False
    names = [parameter.name.value for parameter in index_map.node.params.params]
    body = Site(index_map.piece, index_map.node.body).code
    return any(re.search(rf"\b{name}\b", body) for name in names)
