"""PAL110 other-generation."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Op, Rule, Severity
from pallas_lint.kernels.model.known_names import PALLAS

_WGMMA = f"{PALLAS}.mosaic_gpu.wgmma"
_TCGEN05 = f"{PALLAS}.mosaic_gpu.tcgen05_mma"
# operation → (its GPUs, what the compiler does on the device that has it not, what to write there)
_OF = {
    _WGMMA: (
        "Hopper (sm90)",
        "sm100",
        "ptxas refuses it",
        "`plgpu.tcgen05_mma` there, with an accumulator in `plgpu.TMEM`",
    ),
    _TCGEN05: (
        "Blackwell (sm100)",
        "sm90",
        "the compiler crashes",
        "`plgpu.wgmma` there, with an accumulator in `plgpu.ACC`",
    ),
}


class OtherGeneration(Rule):
    """Mosaic GPU: a matrix product by an instruction of another generation of GPUs than the target's.

    `plgpu.wgmma` is Hopper's: B200s (sm100) do not have it, and ptxas reports it only when the kernel is compiled.
    `plgpu.tcgen05_mma` and its tensor memory are Blackwell's: when it compiles them for an H100 (sm90), the compiler
    ends the whole process.

    ## How to fix

    Write a kernel for each generation and choose by the device's `compute_capability`. In a project for both, name
    both: `target = ["mosaic-gpu:sm90", "mosaic-gpu:sm100"]`.

    ## Known limits

    Only where the settings name the device (`target = "mosaic-gpu:sm90"`), and only one: with both, a kernel for either
    is right. A warning, since it is not known for which of a project's kernels the setting is meant. Silent in kernels
    that have both instructions.

    ## References

    - Compiled for H100 and B200 without a device, with jax 0.12.0.1: "Instruction 'wgmma.fence' not supported on
      .target 'sm_100a'"; `tcgen05_mma` for sm90 ends in SIGABRT.
    """

    code = "PAL110"
    name = "other-generation"
    severity = Severity.WARNING
    backends = frozenset({"mosaic_gpu"})
    ops = (_WGMMA, _TCGEN05)
    invalid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, x_smem, y_smem):
                def body(total):
                    plgpu.wgmma(total, x_smem, y_smem)  #!
                    return total[...]

                o_gmem[...] = pl.run_scoped(body, plgpu.ACC((64, 128), jnp.float32))

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    scratch_types=[plgpu.SMEM((64, 64), jnp.bfloat16), plgpu.SMEM((64, 128), jnp.bfloat16)],
                )()
            """,
            target="mosaic-gpu:sm100",
        ),
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, x_smem, y_smem, total, done):
                plgpu.tcgen05_mma(total, x_smem, y_smem, done, accumulate=False)  #!
                plgpu.barrier_wait(done)
                o_gmem[...] = plgpu.async_load_tmem(total)
                plgpu.wait_load_tmem()

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    scratch_types=[
                        plgpu.SMEM((128, 64), jnp.bfloat16),
                        plgpu.SMEM((64, 128), jnp.bfloat16),
                        plgpu.TMEM((128, 128), jnp.float32),
                        plgpu.Barrier(orders_tensor_core=True),
                    ],
                )()
            """,
            target="mosaic-gpu:sm90",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, x_smem, y_smem):
                def body(total):
                    plgpu.wgmma(total, x_smem, y_smem)
                    return total[...]

                o_gmem[...] = pl.run_scoped(body, plgpu.ACC((64, 128), jnp.float32))

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    scratch_types=[plgpu.SMEM((64, 64), jnp.bfloat16), plgpu.SMEM((64, 128), jnp.bfloat16)],
                )()
            """,
            target="mosaic-gpu:sm90",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        has, lacks, then, instead = _OF[op.name]
        named = [target.device for target in context.settings.target if target.backend == "mosaic_gpu"]
        if named != [lacks] or not op.certain or context.trace is None:
            return
        if {each.name for each in context.trace.ops(*_OF)} != {op.name}:
            return
        yield context.finding(
            op.site, f"`{op.short}` is an instruction of {has}: for {lacks} {then}", help=f"use {instead}", op=op
        )
