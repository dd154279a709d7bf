"""PAL705 deprecated-backend."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Launch, Rule, Severity, Use
from pallas_lint.checker.api_names import PALLAS, because
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.launches.backend import STRONG

_TRITON_SINCE = (0, 11)
_MOSAIC_GPU_SINCE = (0, 10, 2)
_MOSAIC_GPU_GONE = (0, 11, 2)


class DeprecatedBackend(Rule):
    """A backend, or a way into one, that jax is giving up.

    - Pallas Triton is deprecated since jax 0.11.0: lowering warns, kernels still run, no release is named for the
      end. `pallas_call` on a GPU means Triton from 0.11.2 on, as it did up to 0.8.
    - `pl.pallas_call` for Mosaic GPU is deprecated since 0.10.2. From 0.11.2 on it is gone: passing
      `mosaic_gpu.CompilerParams` to `pallas_call` dies with an `AssertionError` that has no text (measured in 0.11.2
      and 0.12.0.1; 0.10.2 lowers it).
    - `jax.experimental.pallas.ops.gpu`, jax's own GPU kernels, are deprecated since 0.11.0 in favour of the tokamax
      library.

    ## How to fix

    Write new GPU kernels with `plgpu.kernel` of `jax.experimental.pallas.mosaic_gpu` (Hopper and newer), or keep
    Triton kernels under jax_triton. In place of `ops.gpu` use tokamax.

    ## Known limits

    One finding for each import and launch, not for each use. Launches whose backend is not known from the text are not
    counted, nor are those that go through a library's own wrapper.

    ## References

    - jax documentation, "Pallas Changelog", 0.10.2, 0.11.0 and 0.11.2.
    """

    code = "PAL705"
    name = "deprecated-backend"
    severity = Severity.INFO
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu  #!

            def run(kernel, x):
                return pl.pallas_call(kernel, out_shape=x, compiler_params=plgpu.CompilerParams(num_warps=4))(x)
            """,
            jax="0.11.2",
        ),
        Example(
            """
            import jax
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, out_shape=x, compiler_params=plgpu.CompilerParams())(x)  #!
            """,
            jax="0.11.2",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def run(kernel, x):
                return pl.pallas_call(kernel, out_shape=x, compiler_params=plgpu.CompilerParams(num_warps=4))(x)
            """,
            jax="0.10.2",
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def run(kernel, x):
                return plgpu.kernel(kernel, out_type=x)(x)
            """,
            jax="0.12.0",
        ),
    )

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        if not use.imported:
            return
        for module, what, instead in (
            (f"{PALLAS}.triton", "Pallas Triton is", "write new kernels with `plgpu.kernel` (Mosaic GPU)"),
            (f"{PALLAS}.ops.gpu", "jax's own GPU kernels are", "use the tokamax library"),
        ):
            if use.name != module and not use.name.startswith(f"{module}."):
                continue
            reached = context.analysis.guards.reached_in(use, context.versions)
            failing = tuple(version for version in reached if parse(version) >= _TRITON_SINCE)
            if failing:
                yield context.finding(use.span, f"{what} deprecated since jax 0.11.0", help=instead, versions=failing)

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if launch.api != f"{PALLAS}.pallas_call" or launch.backend != "mosaic_gpu" or launch.interpret:
            return
        if launch.evidence not in STRONG:
            return
        gone = tuple(v for v in context.versions if parse(v) >= _MOSAIC_GPU_GONE)
        if gone and launch.evidence == "params":
            yield context.finding(
                launch.site,
                f"`pallas_call` refuses Mosaic GPU parameters since jax 0.11.2: {because(context, gone)}",
                help="it dies with a bare AssertionError; launch with `plgpu.kernel`",
                severity=Severity.ERROR,
                only_in=gone,
            )
            return
        failing = tuple(v for v in context.versions if parse(v) >= _MOSAIC_GPU_SINCE)
        if failing:
            yield context.finding(
                launch.site,
                "`pallas_call` for Mosaic GPU is deprecated since jax 0.10.2 and removed in 0.11.2",
                help="launch with `plgpu.kernel`",
                versions=failing,
            )
