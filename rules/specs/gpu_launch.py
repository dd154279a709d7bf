"""PAL314 gpu-launch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pallas_lint.api import (
    NONE,
    Array,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Rule,
    Seq,
    Severity,
    Sym,
    Value,
)
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.model.compiler_params import compiler_param
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.launch import block_spec
from pallas_lint.text.wording import count_of

_KERNEL = f"{PALLAS}.mosaic_gpu.kernel"
_MAX_THREADS, _MAX_AXES, _MAX_BLOCKS = 16, 3, 16
_MAX_WARPS = 32


class GpuLaunch(Rule):
    """A GPU launch whose grid, cluster, threads or warps do not fit their names, or what the GPU has.

    On Mosaic GPU, `plgpu.kernel` names every axis of its grid and of its cluster, so that the kernel can get its index
    with `lax.axis_index`. Its threads are warpgroups; their number and their axis's name come together, and a block has
    at most 16. A cluster has at most three axes and, on Hopper and Blackwell, 16 blocks: a larger one lowers and
    compiles, and the launch fails on the device.

    On Triton, `num_warps` is a power of two, from 1 to 32, and `num_stages` is at least 1. With 6 warps the compiler
    ends the whole process (`LLVM Fatal Error while compiling Triton kernel`), with 64 the launch fails. It has no
    scratch: neither `scratch_shapes` nor `pl.run_scoped` lower, and intermediate arrays are values. Nor do scalar
    prefetch, grids of traced numbers and, from jax 0.6.1 on, a `pipeline_mode` of blocks.

    ## How to fix

    `grid=(m, n), grid_names=("m", "n")`, `num_threads=2, thread_name="wg"`, `cluster=(2,), cluster_names=("pair",)`.
    On Triton `num_warps=4` or `8`, and an accumulator that a `lax.fori_loop` carries instead of scratch.

    ## Known limits

    Silent for sizes and names that are not known, and for launches over a mesh that is made elsewhere.

    ## References

    - Lowered for CUDA with jax 0.6.2, 0.8.3, 0.10.2 and 0.12.0.1, which all refuse these but for the large cluster:
      "grid_names must have the same length as grid", "cluster_names must have the same length as cluster",
      "num_threads and thread_name must be either both set or both None", "Requested too many CUDA threads per block",
      "cluster= must be at most 3D".
    - Run on an H100 with jax 0.11.2: clusters of 8 and of 16 blocks run, one of 32 fails with
      `CUDA_ERROR_INVALID_CLUSTER_SIZE`.
    - Lowered for CUDA with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2 and 0.11.2: "scratch memory not implemented
      in the Triton backend", "scalar prefetch not implemented in the Triton backend", "dynamic grid bounds not
      supported in the Triton backend", no rule for `run_scoped`. A `pipeline_mode` lowers with 0.5.3 and 0.6.0, and
      from 0.6.1 on "is not supported in Triton lowering".
    - Run on an H200 with jax 0.11.2: 1, 2, 8, 16 and 32 warps run; 3, 5, 6 and 12 end the process, 64 fail with
      `CUDA_ERROR_INVALID_VALUE`; no warps or no stages "must be positive"; 1 to 20 stages run.
    """

    code = "PAL314"
    name = "gpu-launch"
    severity = Severity.ERROR
    backends = frozenset({"mosaic_gpu", "triton"})
    invalid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                rows = pl.ds(lax.axis_index("rows") * 64, 64)
                o_gmem[rows] = x_gmem[rows] * 2

            def double(x):
                return plgpu.kernel(  #!
                    kernel,
                    out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32),
                    grid=(4, 1),
                    grid_names=("rows",),
                )(x)
            """,
            target="mosaic_gpu",
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                o_gmem[...] = x_gmem[...] * 2

            def double(x):
                return plgpu.kernel(  #!
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    num_threads=2,
                )(x)
            """,
            target="mosaic_gpu",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref, doubled_ref):
                doubled_ref[...] = x_ref[...] * 2
                o_ref[...] = doubled_ref[...] + 1

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    scratch_shapes=[pl.MemoryRef((64, 128), jnp.float32, pl.ANY)],  #!
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """,
            target="triton",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                rows = pl.ds((lax.axis_index("rows") * 2 + lax.axis_index("wg")) * 64, 64)
                o_gmem[rows] = x_gmem[rows] * 2

            def double(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((512, 128), jnp.float32),
                    grid=(4,),
                    grid_names=("rows",),
                    num_threads=2,
                    thread_name="wg",
                )(x)
            """,
            target="mosaic_gpu",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                def step(i, total):
                    return total + x_ref[i]

                o_ref[...] = lax.fori_loop(0, 8, step, jnp.zeros((128,), jnp.float32))

            def total(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128,), jnp.float32),
                    compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=2),
                )(x)
            """,
            target="triton",
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        for message, help_ in _problems(launch, context):
            yield context.finding(launch.called_at, message, help=help_, certain=launch.path.certain)
        scratch = launch.argument("scratch_shapes")
        if _is_for_triton(context) and isinstance(scratch, Seq) and scratch.items:
            message = "`scratch_shapes` do not lower on Triton, which has no scratch memory"
            site = launch.argument_site("scratch_shapes")
            yield context.finding(site, message, help=_AS_VALUES, certain=launch.path.certain)
        if _is_for_triton(context):
            yield from _pipeline_modes(launch, context)

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """Scratch that a kernel for Triton allocates."""
        for allocation in trace.allocations if _is_for_triton(context) else ():
            scratch = next(
                (ref.declared for ref in allocation.refs if ref.owner in trace.scopes and ref.declared), None
            )
            if allocation.pipeline is None and scratch is not None:
                message = "`pl.run_scoped` does not lower on Triton, which has no scratch memory"
                yield context.finding(scratch.site, message, help=_AS_VALUES, certain=allocation.certain)


_AS_VALUES = "keep intermediate arrays as values: a `lax.fori_loop` carries an accumulator"


def _is_for_triton(context: Context) -> bool:
    return context.target is not None and context.target.backend == "triton"


def _problems(launch: Launch, context: Context) -> Iterator[tuple[str, str]]:
    """Messages, each with its help."""
    if _is_for_triton(context):
        yield from (*_warps(launch), *_not_lowered(launch))
    elif launch.api == _KERNEL and not launch.open and "mesh" not in launch.arguments:
        yield from (*_axes(launch, "grid"), *_axes(launch, "cluster"), *_threads(launch))


def _warps(launch: Launch) -> Iterator[tuple[str, str]]:
    """Warps and stages that Triton's compiler or CUDA refuse."""
    warps, stages = (integer(compiler_param(launch, name)) for name in ("num_warps", "num_stages"))
    if stages is not None and stages < 1:
        yield f"`num_stages={stages}`, and Triton takes 1 at least", "set `num_stages=1`, which pipelines nothing"
    if warps is None:
        return
    help_ = f"set `num_warps` to a power of two, of at most {_MAX_WARPS}: most kernels take 4 or 8"
    if warps < 1 or warps & (warps - 1):
        ends = "" if warps < 1 else ": its compiler ends the process"
        yield f"`num_warps={warps}`, and Triton takes powers of two only{ends}", help_
    elif warps > _MAX_WARPS:
        yield f"`num_warps={warps}`, but a block has {_MAX_WARPS} warps at most: the launch fails", help_


def _not_lowered(launch: Launch) -> Iterator[tuple[str, str]]:
    """What other backends have."""
    if launch.prefetch_count:
        help_ = "pass the numbers as an operand, and load them in the kernel"
        yield "scalar prefetch does not lower on Triton", help_
    if any(_is_traced(size) for size in (launch.grid.items if launch.grid is not None else ())):
        help_ = "make the grid of shapes, or of static arguments of `jax.jit`"
        yield "a grid of traced numbers does not lower on Triton", help_


def _is_traced(size: Value) -> bool:
    return size.traced if isinstance(size, Sym) else isinstance(size, Array) and not size.host


def _pipeline_modes(launch: Launch, context: Context) -> Iterator[Finding]:
    for specs in (launch.in_specs, launch.out_specs):
        for spec in map(block_spec, specs.items if specs is not None else ()):
            if spec is None or spec.value.argument("pipeline_mode") in (None, NONE):
                continue
            versions = context.failing(lambda version: parse(version) >= (0, 6, 1))
            if versions:
                yield context.finding(
                    spec.value.site,
                    "a `pipeline_mode` does not lower on Triton",
                    help="leave it out: Triton pipelines loads in loops, `num_stages` deep",
                    certain=launch.path.certain,
                    only_in=versions,
                )


def _axes(launch: Launch, of: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a grid or a cluster."""
    sizes, names = _sequence(launch.argument(of)), _sequence(launch.argument(f"{of}_names"))
    if sizes is None or names is None:
        return
    if len(sizes) != len(names):
        axes = count_of(len(sizes), "axis")
        yield f"`{of}` has {axes}, but `{of}_names` has {len(names)}", f"name every axis in `{of}_names`"
    if of != "cluster":
        return
    if len(sizes) > _MAX_AXES:
        yield f"`cluster` has {len(sizes)} axes, of at most {_MAX_AXES}", "merge some of them into one"
    numbers = [integer(size) for size in sizes]
    blocks = None if None in numbers else math.prod(number for number in numbers if number is not None)
    if blocks is not None and blocks > _MAX_BLOCKS:
        help_ = "take clusters of 8, or of 16 where there is only Hopper and newer"
        yield f"a cluster of {blocks} blocks, and GPUs have {_MAX_BLOCKS} at most: the launch fails", help_


def _threads(launch: Launch) -> Iterator[tuple[str, str]]:
    count, name = launch.argument("num_threads"), launch.argument("thread_name")
    number = integer(count)
    if number is not None and name in (None, NONE):
        help_ = 'name their axis: `thread_name="wg"`'
        yield f"`num_threads={number}` without a `thread_name`", help_
    elif count in (None, NONE) and isinstance(name, Const) and name != NONE:
        yield (
            f'`thread_name="{name.value}"` without `num_threads`',
            "set the number of warpgroups: `num_threads=2`",
        )
    elif number is not None and number > _MAX_THREADS:
        help_ = "a thread of Mosaic GPU is a warpgroup, 128 threads of CUDA"
        yield f"`num_threads={number}`, but a block has {_MAX_THREADS} warpgroups at most", help_


def _sequence(value: Value | None) -> tuple[Value, ...] | None:
    """The items; none where nothing is given; None where they are not known."""
    if value in (None, NONE):
        return ()
    return value.items if isinstance(value, Seq) and not value.open else None
