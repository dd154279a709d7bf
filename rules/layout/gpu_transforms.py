"""PAL214 gpu-transforms."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Dim, Example, Finding, KernelTrace, Op, Ref, Rule, Severity
from pallas_lint.kernels.facts.gpu_buffers import SWIZZLES, buffers, elements, swizzle, tiling, transforms, whole
from pallas_lint.kernels.model.dtypes import long_name
from pallas_lint.kernels.model.known_names import PALLAS


class GpuTransforms(Rule):
    """Mosaic GPU: the `transforms` of a buffer in shared memory do not fit its shape or dtype, or each other.

    `TilingTransform` cuts the last dimensions of a buffer into tiles, which have to divide them: where they do not, jax
    stops at an assertion without a message. `SwizzleTransform(n)` permutes rows of `n` bytes, 32, 64 or 128, and wants
    the last dimension of what it is given, after tiling that of the tile, to be exactly that long. How many elements
    that are depends on the dtype: a tile of `(8, 64)` is right for 128 bytes of bfloat16 and wrong for float32.

    The operands of one `wgmma` have to be swizzled alike.

    ## How to fix

    Take tiles of `(8, n // itemsize)` for `SwizzleTransform(n)`, and make the buffer a multiple of them, or swizzle
    fewer bytes. `swizzle = plgpu.find_swizzle(columns * bits)` gives the largest that fits. From jax 0.11 on
    transforms may be left out: they are inferred.

    ## Known limits

    Transforms, shapes and dtypes that are not known are not checked, nor are transforms other than these two.

    ## References

    - Lowered for H100 with jax 0.6.2, 0.8.3, 0.10.2 and 0.12.0.1, with lane and with warpgroup semantics: "Swizzle 128
      requires the trailing dimension to be of size 32, but got shape: (8, 1, 8, 64)", "Swizzle 16 is not supported.
      Only 32, 64 and 128 are accepted.", for tiles that do not divide a bare `AssertionError` (0.8.3: "Expected GMEM
      slice shape (64, 96) suffix to be a multiple of tiling (8, 64)").
    - The same of operands that are swizzled differently: "WGMMA rhs swizzle must match lhs swizzle" (lane semantics),
      "Failed to infer a possible set of layouts" (warpgroup semantics, the default from jax 0.11 on).
    """

    code = "PAL214"
    name = "gpu-transforms"
    severity = Severity.ERROR
    backends = frozenset({"mosaic_gpu"})
    ops = (f"{PALLAS}.mosaic_gpu.wgmma",)
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))

            def kernel(x_gmem, o_gmem, x_smem, arrived):
                plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
                plgpu.barrier_wait(arrived)
                plgpu.copy_smem_to_gmem(x_smem, o_gmem)
                plgpu.wait_smem_to_gmem(0)

            def identity(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    scratch_types=[
                        plgpu.SMEM((64, 128), jnp.float32, transforms=TILES),  #!
                        plgpu.Barrier(),
                    ],
                )(x)
            """
        ),
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))

            def double(_, x_smem, o_smem):
                o_smem[...] = x_smem[...] * 2

            def kernel(x_gmem, o_gmem):
                plgpu.emit_pipeline(
                    double,
                    grid=(4,),
                    in_specs=[plgpu.BlockSpec((64, 96), lambda i: (i, 0), transforms=TILES)],  #!
                    out_specs=[plgpu.BlockSpec((64, 96), lambda i: (i, 0))],
                    max_concurrent_steps=2,
                )(x_gmem, o_gmem)

            def run(x):
                return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct((256, 96), jnp.bfloat16))(x)
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            TILES = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))

            def kernel(x_gmem, o_gmem, x_smem, arrived):
                plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
                plgpu.barrier_wait(arrived)
                plgpu.copy_smem_to_gmem(x_smem, o_gmem)
                plgpu.wait_smem_to_gmem(0)

            def identity(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    scratch_types=[plgpu.SMEM((64, 128), jnp.float32, transforms=TILES), plgpu.Barrier()],
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        for buffer in buffers(trace):
            refused = _refused(buffer)
            if refused is not None and buffer.declared is not None:
                message, instead = refused
                yield context.finding(buffer.declared.site, message, help=instead)

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        left, right = (_swizzled(op.argument(name, at)) for name, at in (("a", 1), ("b", 2)))
        if left is not None and right is not None and left != right:
            yield context.finding(
                op.site,
                f"operands are swizzled by {left} and {right} bytes: `wgmma` needs the same for both",
                help="give both buffers the same `SwizzleTransform`, with tiles that fit it",
                op=op,
            )


def _refused(buffer: Ref) -> tuple[str, str] | None:
    """What jax refuses of the transforms of a buffer, and what to write instead."""
    shape: list[Dim] | None = None if buffer.shape is None else list(buffer.shape)
    for transform in transforms(buffer) or ():
        tile, bytes_ = tiling(transform), swizzle(transform)
        if bytes_ is not None:
            if bytes_ not in SWIZZLES:
                return f"`SwizzleTransform({bytes_})`: only 32, 64 and 128 bytes are swizzled", _UNSWIZZLED
            if buffer.dtype is None or not shape:
                continue
            wanted, last = elements(bytes_, buffer.dtype), shape[-1]
            if isinstance(last, int) and last != wanted:
                what = f"of {long_name(buffer.dtype)} needs rows of {wanted} elements, and these have {last}"
                instead = f"tile before: `plgpu.TilingTransform((8, {wanted})), plgpu.SwizzleTransform({bytes_})`"
                return f"`SwizzleTransform({bytes_})` {what}", instead
        elif tile is not None and shape is not None and 0 < len(tile) <= len(shape):
            for size, step in zip(shape[-len(tile) :], tile, strict=True):
                if isinstance(size, int) and step > 0 and size % step:
                    what = f"tiles of {tile} do not divide the buffer: {size} is not a multiple of {step}"
                    return what, "make the buffer a multiple of the tile, or take smaller tiles and a smaller swizzle"
            counts: list[Dim] = [
                size // step if isinstance(size, int) and step > 0 else None
                for size, step in zip(shape[-len(tile) :], tile, strict=True)
            ]
            shape = [*shape[: -len(tile)], *counts, *tile]
        else:
            return None
    return None


_UNSWIZZLED = "leave the transform out where rows are shorter than 32 bytes: nothing is swizzled then"


def _swizzled(operand: object) -> int | None:
    """By how many bytes an operand's buffer is declared to be swizzled."""
    buffer = whole(operand) if isinstance(operand, Ref) else None
    found = [swizzle(transform) for transform in transforms(buffer) or ()] if buffer is not None else []
    return next((bytes_ for bytes_ in found if bytes_ is not None), None)
