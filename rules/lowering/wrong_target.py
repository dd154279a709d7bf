"""PAL112 wrong-target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    CallResult,
    Context,
    Example,
    External,
    Finding,
    Launch,
    Rule,
    Seq,
    Severity,
    Site,
    Value,
)
from pallas_lint.checker.backend_failures import BACKENDS
from pallas_lint.kernels.launches.backend import STRONG, of_name

if TYPE_CHECKING:
    from pallas_lint.config.targets import Backend


class WrongTarget(Rule):
    """A kernel that is written for another backend than the target.

    Scratch shapes, semaphores, memory spaces, grid specs and functions of `pallas.tpu` lower for TPU alone, those of
    `pallas.triton` and `pallas.mosaic_gpu` for GPU: `scratch memory not implemented in the Triton backend`,
    `Unimplemented primitive in Pallas TPU lowering`. Only kernels with such names are reported; for any other kernel
    the target decides. Nothing else of such a kernel is checked, since none of the targets is its own.

    Names of `pallas.tpu` in a launch that has Triton's or Mosaic GPU's parameters, or is `plgpu.kernel`, do not lower
    whatever the target is.

    An info where a kernel for one of the two GPU backends is checked for the other: a GPU runs both. So are memory
    spaces of blocks for TPU alone where the target is Triton, which takes no account of them.

    ## How to fix

    Write the kernel for the backend that it is to run on, or name the one that it has: `--target tpu`. Where a file has
    kernels of several backends, `[tool.pallas-lint.overrides]` gives folders their own targets.

    ## Known limits

    Silent where no target is configured: then each kernel is judged for its own backend.

    ## References

    - jax issue 23495.
    - The rules that are registered with jax 0.6.2, 0.8.3, 0.10.2, 0.11.2 and 0.12.0.1: neither GPU lowering has one for
      the primitives of `pallas.tpu`. Lowered for H100 with 0.11.2 and 0.12.0.1: "Unsupported memory space: vmem" of
      scratch. Blocks with memory spaces of TPUs lower for Triton with 0.6.2, 0.9.2, 0.10.2 and 0.12.0.1.
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
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + pltpu.roll(x_ref[...], 1, 1)  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """
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
        if launch.interpret or launch.is_interpreted_call or not launch.is_pallas or launch.evidence not in STRONG:
            return
        requested, own = [target.backend for target in context.settings.target], launch.backend
        if own is None:
            return
        if requested and own not in requested:
            yield _of_other_target(launch, own, requested, context)
        elif own != "tpu" and launch.evidence in ("params", "mesh"):
            for site, name in _of_tpu(launch):
                yield context.finding(
                    site,
                    f"`{name}` is for TPU: it does not lower for {BACKENDS[own]}, which the launch is for",
                    help="take what `pl` and `plgpu` have"
                    + (": scratch is `plgpu.SMEM`" if own == "mosaic_gpu" else ": intermediate arrays are values"),
                    severity=Severity.ERROR,
                    certain=launch.path.certain,
                )


def _of_other_target(launch: Launch, own: Backend, requested: list[Backend], context: Context) -> Finding:
    uses = sorted(_uses(launch, own), key=lambda use: use[2])  # a memory space is the least of it
    site, name = uses[0][:2] if uses else (launch.site, None)
    what = f"`{name}` is" if name is not None else "the kernel is"
    names = " and ".join(dict.fromkeys(BACKENDS[backend] for backend in requested))
    if {*requested} == {"triton"} and uses and uses[0][2]:
        return context.finding(
            site,
            f"{what} for {BACKENDS[own]}: {names}, the requested target, takes no account of it",
            help=f"leave it out, or choose the backend that it is for: `--target {own}`",
            severity=Severity.INFO,
        )
    return context.finding(
        site,
        f"{what} for {BACKENDS[own]}: it does not run on {names}, the requested target",
        help=f"write it for {names}, or choose its own backend: `--target {own.replace('_', '-')}`",
        severity=Severity.INFO if own != "tpu" and "tpu" not in requested else Severity.WARNING,
    )


def _of_tpu(launch: Launch) -> Iterator[tuple[Site, str]]:
    """Uses, in a launch for a GPU, of what only the TPU lowering has; all scratch of Triton's is PAL314's."""
    for site, name, is_space in _uses(launch, "tpu"):
        short = name.removeprefix("pltpu.")
        if short in _TPU_ALONE or (short == "VMEM" and not is_space and launch.backend == "mosaic_gpu"):
            yield site, name


# Each is a primitive of which no GPU lowering has a rule.
_TPU_ALONE = frozenset(
    "async_copy async_remote_copy make_async_copy make_async_remote_copy sync_copy get_barrier_semaphore bitcast"
    " pack_elementwise unpack_elementwise prng_random_bits prng_seed repeat roll stochastic_round".split()
)
_SPACES = ("ANY", "CMEM", "HBM", "SEMAPHORE", "SMEM", "VMEM")
_ALIASES = {"tpu": "pltpu", "triton": "plgpu", "mosaic_gpu": "plgpu"}


def _uses(launch: Launch, backend: str) -> Iterator[tuple[Site, str, bool]]:
    """Where names of the backend are used, and as what: in the launch's arguments, then in the kernel.

    And whether it is a memory space that is named, mostly of a block: `pltpu.VMEM`, and no `pltpu.VMEM(shape, dtype)`.
    """
    stack: list[tuple[Value, Site]] = [(value, launch.site) for value in launch.arguments.values()][::-1]
    while stack:
        value, site = stack.pop()
        if isinstance(value, CallResult):
            site = value.site
        name = value.function if isinstance(value, CallResult) else value.name if isinstance(value, External) else ""
        if of_name(name) == backend:
            short = name.rpartition(".")[2]
            yield site, f"{_ALIASES[backend]}.{short}", isinstance(value, External) and short in _SPACES
        if isinstance(value, CallResult):
            stack.extend((item, site) for item in (*(item for _, item in value.keywords), *value.args))
        elif isinstance(value, Seq):
            stack.extend((item, site) for item in value.items[::-1])
    for op in (op for trace in launch.traces for op in trace.ops() if op.certain):
        if of_name(op.name) == backend:
            yield op.site, f"{_ALIASES[backend]}.{op.short}", False
