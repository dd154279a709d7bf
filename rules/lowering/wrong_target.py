"""PAL112 wrong-target."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    CallResult,
    Context,
    Example,
    External,
    Finding,
    Launch,
    Op,
    Rule,
    Seq,
    Severity,
    Site,
    Value,
)
from pallas_lint.checker.backend_failures import BACKENDS
from pallas_lint.kernels.launches.backend import STRONG, of_name


class WrongTarget(Rule):
    """A kernel that is written for another backend than the target.

    Scratch shapes, semaphores, memory spaces, grid specs and functions of `pallas.tpu` lower for TPU alone, those of
    `pallas.triton` and `pallas.mosaic_gpu` for GPU: `scratch memory not implemented in the Triton backend`,
    `Unimplemented primitive in Pallas TPU lowering`. Only kernels with such names are reported; for any other kernel
    the target decides. Nothing else of such a kernel is checked, since none of the targets is its own.

    An info where a kernel for one of the two GPU backends is checked for the other: a GPU runs both.

    ## How to fix

    Write the kernel for the backend that it is to run on, or name the one that it has: `--target tpu`. Where a file has
    kernels of several backends, `[tool.pallas-lint.overrides]` gives folders their own targets.

    ## Known limits

    Silent where no target is configured: then each kernel is judged for its own backend.

    ## References

    - jax issue 23495.
    """

    code = "PAL112"
    name = "wrong-target"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref, m_ref):
                m_ref[...] = jnp.max(x_ref[...], axis=1, keepdims=True)
                o_ref[...] = x_ref[...] - m_ref[...]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((8, 1), jnp.float32)],  #!
                )(x)
            """,
            target="triton",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] - jnp.max(x_ref[...], axis=1, keepdims=True)

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            target="triton",
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        requested = [target.backend for target in context.settings.target]
        own = launch.backend
        if not requested or own is None or own in requested or launch.evidence not in STRONG:
            return
        if launch.interpret or launch.is_tried or not launch.is_pallas:
            return
        site, name = next(_uses(launch, own), (launch.site, None))
        what = f"`{name}` is" if name is not None else "the kernel is"
        names = " and ".join(dict.fromkeys(BACKENDS[backend] for backend in requested))
        yield context.finding(
            site,
            f"{what} for {BACKENDS[own]}: it does not run on {names}, the requested target",
            help=f"write it for {names}, or choose its own backend: `--target {own.replace('_', '-')}`",
            severity=Severity.INFO if own != "tpu" and "tpu" not in requested else Severity.WARNING,
        )


_ALIASES = {"tpu": "pltpu", "triton": "plgpu", "mosaic_gpu": "plgpu"}


def _uses(launch: Launch, backend: str) -> Iterator[tuple[Site, str]]:
    """Where names of the backend are used, and as what: in the launch's arguments, then in the kernel."""
    stack: list[tuple[Value, Site]] = [(value, launch.site) for value in launch.arguments.values()][::-1]
    while stack:
        value, site = stack.pop()
        if isinstance(value, CallResult):
            site = value.site
        name = value.function if isinstance(value, CallResult) else value.name if isinstance(value, External) else ""
        if of_name(name) == backend:
            yield site, f"{_ALIASES[backend]}.{name.rpartition('.')[2]}"
        if isinstance(value, CallResult):
            stack.extend((item, site) for item in (*(item for _, item in value.keywords), *value.args))
        elif isinstance(value, Seq):
            stack.extend((item, site) for item in value.items[::-1])
    for op in (op for trace in launch.traces for op in trace.events if isinstance(op, Op)):
        if of_name(op.name) == backend:
            yield op.site, f"{_ALIASES[backend]}.{op.short}"
