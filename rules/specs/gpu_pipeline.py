"""PAL315 gpu-pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    NONE,
    Access,
    Concretization,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Op,
    Rule,
    Severity,
    Value,
)
from pallas_lint.checker.backend_failures import ends_with
from pallas_lint.kernels.facts.shared_memory import SPECIALISED, STEPS
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.launch import block_spec

_SET_REGISTERS = f"{PALLAS}.mosaic_gpu.set_max_registers"
_MIN_REGISTERS, _MAX_REGISTERS = 24, 256  # registers of a thread that `setmaxnreg` takes


class GpuPipeline(Rule):
    """A Mosaic GPU pipeline that does not fit the warpgroups, the slots or the registers that it is given.

    A warp-specialised pipeline has one warpgroup that moves memory, after those that compute: the launch has
    `num_compute_wgs + 1` of them. With another number jax reports nothing, and the barriers count arrivals that never
    come, or come twice: the kernel hangs. `wg_axis` is the `thread_name` of the launch, and the warpgroup that moves
    memory is the last one.

    An input may be kept for as many steps as there are slots less one: its `delay_release` is smaller than
    `max_concurrent_steps`. Registers are handed out by eights, here and by `set_max_registers`.

    ## How to fix

    `num_threads=num_compute_wgs + 1`, `wg_axis` like the launch's `thread_name`, one more of `max_concurrent_steps`
    than `delay_release`, `memory_registers=40`.

    ## Known limits

    Silent where the numbers are not known, where only some inputs are kept too long (jax takes that), and about
    warpgroups where the pipeline runs under a condition: others may do something else.

    ## References

    - Lowered for CUDA with jax 0.6.2, 0.8.3, 0.10.2 and 0.12.0.1: "Memory thread must be the last thread.",
      "max_concurrent_steps must be greater than all delay_release values" ("... than delay_release" of specialised
      ones; delays from 0.8.3 on), "Found an unbound axis name: wg", "n must be a positive multiple of 8" (up to 0.10.2
      "Verification failed"). Numbers of warpgroups that do not fit are lowered by all; so are delays of outputs, and
      of some inputs only.
    - Run on an H100 with jax 0.11.2: three warpgroups for a pipeline of one and its fetcher hang.
    """

    code = "PAL315"
    name = "gpu-pipeline"
    severity = Severity.ERROR
    backends = frozenset({"mosaic_gpu"})
    invalid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                def step(_, x_smem, o_smem):
                    o_smem[...] = x_smem[...] * 2

                block = plgpu.BlockSpec((64, 128), lambda i: (i, 0))
                plgpu.emit_pipeline_warp_specialized(  #!
                    step,
                    grid=(4,),
                    in_specs=[block],
                    out_specs=[block],
                    memory_registers=40,
                    wg_axis="wg",
                    num_compute_wgs=1,
                )(x_gmem, o_gmem)

            def double(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32),
                    num_threads=3,
                    thread_name="wg",
                )(x)
            """,
            target="mosaic_gpu",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                def step(_, x_smem, o_smem):
                    o_smem[...] = x_smem[...] * 2

                plgpu.emit_pipeline_warp_specialized(
                    step,
                    grid=(4,),
                    in_specs=[plgpu.BlockSpec((64, 128), lambda i: (i, 0), delay_release=1)],
                    out_specs=[plgpu.BlockSpec((64, 128), lambda i: (i, 0))],
                    max_concurrent_steps=2,
                    memory_registers=40,
                    wg_axis="wg",
                    num_compute_wgs=1,
                )(x_gmem, o_gmem)

            def double(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32),
                    num_threads=2,
                    thread_name="wg",
                )(x)
            """,
            target="mosaic_gpu",
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if launch.api not in STEPS or launch.open:
            return
        found = [*_slots(launch)]
        if launch.api == SPECIALISED:
            found += [*_warpgroups(launch), *_registers(launch, context)]
        for message, help_ in found:
            yield context.finding(launch.called_at, message, help=help_, certain=launch.path.certain)

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """Registers that the kernel requests for a warpgroup."""
        for op in trace.ops(_SET_REGISTERS):
            registers = integer(op.argument("n", 0))
            if registers is not None and _is_refused(registers):
                message = f"`set_max_registers` of {registers}, and registers come by eights"
                nearest = max(round(registers / 8), 3) * 8
                yield context.finding(op.site, message, help=f"take a multiple of 8: {nearest}", op=op)


def _slots(launch: Launch) -> Iterator[tuple[str, str]]:
    """Inputs that are kept too long: jax compares the smallest of their delays, and looks at none of the outputs'."""
    given = launch.argument("max_concurrent_steps")
    steps = STEPS[launch.api] if given is None else integer(given)
    delays = [_delay(spec) for spec in launch.in_specs.items] if launch.in_specs and not launch.in_specs.open else []
    known = [delay for delay in delays if delay is not None]
    if steps is not None and known and len(known) == len(delays) and min(known) >= max(steps, 1):
        slots = "1 slot is" if steps == 1 else f"{steps} slots are"
        yield (
            f"`delay_release` is {min(known)}, for which {slots} too few (`max_concurrent_steps`)",
            f"take `max_concurrent_steps={max(known) + 1}`",
        )


def _delay(spec: Value) -> int | None:
    """For how many steps an input is kept, where that is known."""
    block = block_spec(spec)
    if block is None or block.value.open:
        return None
    delay = block.value.argument("delay_release")
    return 0 if delay is None else integer(delay)


def _warpgroups(launch: Launch) -> Iterator[tuple[str, str]]:
    compute, memory = integer(launch.argument("num_compute_wgs")), integer(launch.argument("memory_thread_idx"))
    if compute is not None and memory is not None and memory != compute:
        yield (
            f"`memory_thread_idx` is {memory}, but the last warpgroup is {compute}",
            "leave it out: the last warpgroup moves memory",
        )
    axis = launch.argument("wg_axis")
    for trace, first, last in launch.spans:
        outer = trace.launch
        if outer.form.is_inner or outer.open or "mesh" in outer.arguments:
            continue
        threads, name = integer(outer.argument("num_threads")), outer.argument("thread_name")
        if isinstance(axis, Const) and isinstance(name, Const) and name != NONE and axis != name:
            yield f'`wg_axis` is "{axis.value}", and the launch\'s `thread_name` "{name.value}"', "name the same axis"
        alone = first < last and not any(
            guard.kind in ("when", "cond", "if")
            for event in trace.events[first : first + 1]
            if isinstance(event, Op | Access | Concretization)
            for guard in event.guards
        )
        if compute is not None and threads is not None and threads != compute + 1 and alone:
            yield (
                f"the launch has {threads} warpgroups, but this pipeline needs {compute + 1}: {compute} to compute, "
                "one to move memory",
                f"launch it with `num_threads={compute + 1}`",
            )
        return


def _registers(launch: Launch, context: Context) -> Iterator[tuple[str, str]]:
    registers = integer(launch.argument("memory_registers"))
    if registers is None:
        return
    if _is_refused(registers):
        yield f"`memory_registers` is {registers}, and registers come by eights", "take a multiple of 8: 40"
    elif not _MIN_REGISTERS <= registers <= _MAX_REGISTERS and context.failing(ends_with("0.10.2")):
        yield f"`memory_registers` is {registers}, of {_MIN_REGISTERS} to {_MAX_REGISTERS}", "take 24 to 40"


def _is_refused(registers: int) -> bool:
    return registers <= 0 or registers % 8 != 0
