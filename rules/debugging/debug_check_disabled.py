"""PAL604 debug-check-disabled."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Op, Rule, Severity
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.analysis.project_text import mentioned
from pallas_lint.kernels.launches.backend import STRONG
from pallas_lint.kernels.model.known_names import PALLAS

_WORDS = ("enable_debug_checks", "ENABLE_DEBUG_CHECKS")
_MOSAIC_GPU_SINCE = (0, 9)


class DebugCheckDisabled(Rule):
    """`pl.debug_check` in a project that never turns debug checks on.

    `pl.debug_check(condition, message)` does nothing unless the kernel is traced under `pl.enable_debug_checks(True)`
    (or with `JAX_PALLAS_ENABLE_DEBUG_CHECKS` in the environment): no error, no trace of it in the compiled kernel. With
    it the check halts the TPU or GPU and reports the message. Triton has no such check: the kernel does not lower.

    ## How to fix

    Turn the checks on where they should run, for example in `conftest.py` for tests: `with
    pl.enable_debug_checks(True):` around the first call, before anything is compiled.

    ## Known limits

    The environment variable may be set when the project runs; therefore an info.

    ## References

    - jax documentation, `jax.experimental.pallas.debug_check`.
    - Lowered with jax 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: dropped on TPU and in interpret mode;
      Triton has no rule in any of them, Mosaic GPU none before 0.9 ("Unimplemented primitive ... check").
    """

    code = "PAL604"
    name = "debug-check-disabled"
    severity = Severity.INFO
    ops = (f"{PALLAS}.debug_check",)
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                pl.debug_check(x_ref[0, 0] > 0, "positive")  #!
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                pl.debug_check(x_ref[0, 0] > 0, "positive")
                o_ref[...] = x_ref[...]

            def run(x):
                with pl.enable_debug_checks(True):
                    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        launch = context.launch
        if launch is None:
            return
        failing: tuple[str, ...] = ()
        if launch.backend == "triton":
            failing = context.versions
        elif launch.backend == "mosaic_gpu":
            failing = context.failing(lambda version: parse(version) < _MOSAIC_GPU_SINCE)
        if failing and not launch.interpret and mentioned(context.module, *_WORDS):
            backend = "Triton" if launch.backend == "triton" else "Mosaic GPU"
            yield context.finding(
                op.site,
                f"`pl.debug_check` does not lower for {backend}: it has no rule for `check`",
                help="print with `pl.debug_print`, or check the results",
                severity=Severity.ERROR if launch.evidence in STRONG else Severity.WARNING,
                op=op,
                versions=failing,
            )
        elif not mentioned(context.module, *_WORDS):
            yield context.finding(
                op.site,
                "`pl.debug_check` does nothing: this project never turns debug checks on",
                help="run under `pl.enable_debug_checks(True)`, in the tests for instance",
                op=op,
            )
