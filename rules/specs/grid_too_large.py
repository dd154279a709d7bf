"""PAL306 grid-too-large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Example, Finding, Launch, Rule, Seq, Severity, dim
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.grid.blocks import grid_of

if TYPE_CHECKING:
    from pallas_lint.kernels.grid.blocks import Grid

_MAX_X = 2**31 - 1
_MAX_YZ = 2**16 - 1


class GridTooLarge(Rule):
    """A grid that CUDA cannot launch.

    A CUDA grid has three dimensions: x may have 2147483647 blocks, y and z 65535 each. Pallas has to fit its grid into
    these. On Triton, axes are merged into x where y or z would be too large, and lowering fails with "Cannot fix
    pallas kernel launch grid within CUDA limits" when x gets 2147483647 blocks or more. On Mosaic GPU nothing is
    merged except the leading ones of more than three axes, and nothing is checked: a y or z that is too large fails
    when the kernel is launched. There the last axis is x since jax 0.7, and the first was before.

    ## How to fix

    Larger blocks, or a loop in the kernel. On Mosaic GPU put the long axis where x comes from: last, or first in jax
    up to 0.6.

    ## Known limits

    Looks at literal sizes only, and not at axes that `vmap` adds.

    ## References

    - CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; jax issue 18386.
    - Triton: lowered with jax 0.4.35 and 0.8.3; the function that merges axes is the same from 0.4.35 to 0.12.0.
      Mosaic GPU: the lowering of jax 0.5.3, 0.6.2, 0.7.2 to 0.12.0 as it is written; not run.
    """

    code = "PAL306"
    name = "grid-too-large"
    severity = Severity.ERROR
    backends = frozenset({"triton", "mosaic_gpu"})
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(o_ref):
                o_ref[...] = jnp.zeros_like(o_ref)

            def zeros():
                return pl.pallas_call(  #!
                    kernel,
                    grid=(70000, 70000),
                    out_specs=pl.BlockSpec((16,), lambda i, j: (i,)),
                    out_shape=jax.ShapeDtypeStruct((70000 * 16,), jnp.float32),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )()
            """,
            jax="0.8.3",
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_ref, o_ref):
                plgpu.copy_gmem_to_smem(x_ref, o_ref)

            def copy(x):
                return plgpu.kernel(  #!
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128,), jnp.float32),
                    grid=(100000, 4),
                    grid_names=("row", "column"),
                )(x)
            """,
            jax="0.8.3",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(o_ref):
                o_ref[...] = jnp.zeros_like(o_ref)

            def zeros():
                return pl.pallas_call(
                    kernel,
                    grid=(4, 70000),
                    out_specs=pl.BlockSpec((16,), lambda i, j: (i * 70000 + j,)),
                    out_shape=jax.ShapeDtypeStruct((4 * 70000 * 16,), jnp.float32),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )()
            """,
            jax="0.8.3",
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        target = context.target
        if target is None or not launch.form.is_program:
            return
        grid = grid_of(launch)
        sizes = None if grid is None else grid.literal
        if not sizes or grid is None:
            return
        if target.backend == "triton":
            blocks = _triton_x(sizes)
            if blocks >= _MAX_X:
                yield context.finding(
                    launch.called_at,
                    f"grid {sizes} needs {blocks} blocks in CUDA's first dimension: the limit is {_MAX_X - 1}",
                    help="use larger blocks, or loop in the kernel with `lax.fori_loop`",
                )
            return
        parallel = _launched(grid, sizes, launch)
        if parallel is None:
            return
        cluster = _cluster(launch)

        def fails(version: str) -> bool:
            return all(_excess(dims) for dims in _cuda(parallel, cluster, version))

        failing = context.failing(fails)
        if not failing:
            return
        excess = next(found for dims in _cuda(parallel, cluster, failing[-1]) if (found := _excess(dims)) is not None)
        name, size, limit = excess
        yield context.finding(
            launch.called_at,
            f"grid {sizes} has {size} blocks in CUDA's dimension {name}: the limit is {limit}",
            help=f"make the {'first' if _is_first_x(failing[-1]) else 'last'} grid axis the long one: it is CUDA's x",
            certain=len(failing) == len(context.versions),
            only_in=() if context.everywhere(fails) else failing,
        )


def _triton_x(sizes: tuple[int, ...]) -> int:
    """The size of the first CUDA dimension, after axes are merged into it."""
    merged = max(len(sizes) - 2, 0)
    rest = sizes[merged:]
    if len(rest) > 1 and rest[1] > _MAX_YZ:
        merged += 2
    elif rest and rest[0] > _MAX_YZ:
        merged += 1
    return math.prod(sizes[:merged]) if merged else 0


def _launched(grid: Grid, sizes: tuple[int, ...], launch: Launch) -> tuple[int, ...] | None:
    """The axes that become CUDA's: sequential ones are loops. None where that is not known."""
    if launch.form.grid == "mesh" or not launch.is_pallas:
        return sizes
    if None in grid.semantics:
        return None
    given = any(name != "arbitrary" for name in grid.semantics)
    return tuple(size for size, name in zip(sizes, grid.semantics, strict=True) if not given or name == "parallel")


def _cluster(launch: Launch) -> tuple[int, ...]:
    value = launch.argument("cluster")
    if not isinstance(value, Seq) or value.open:
        return ()
    known = [dim(item) for item in value.items]
    return tuple(size if isinstance(size, int) else 1 for size in known)


def _is_first_x(version: str) -> bool:
    return parse(version) < parse("0.7")


def _cuda(sizes: tuple[int, ...], cluster: tuple[int, ...], version: str) -> list[tuple[int, ...]]:
    """CUDA's (x, y, z); both orders for the releases in which it changed."""
    last_is_x = (math.prod(sizes[:-2]), *sizes[-2:]) if len(sizes) > 3 else sizes
    last_is_x = (*(1,) * (3 - len(last_is_x)), *last_is_x)
    wide = (*(1,) * (3 - len(cluster)), *cluster)[:3]
    last_is_x = tuple(a * b for a, b in zip(last_is_x, wide, strict=True))[::-1]
    first_is_x = (math.prod(sizes[:-2]), *sizes[-2:]) if len(sizes) > 3 else (*sizes, *(1,) * (3 - len(sizes)))
    if _is_first_x(version):
        return [first_is_x]
    return [first_is_x, last_is_x] if parse(version) < parse("0.7.2") else [last_is_x]


def _excess(dims: tuple[int, ...]) -> tuple[str, int, int] | None:
    for name, size, limit in zip("xyz", dims, (_MAX_X, _MAX_YZ, _MAX_YZ), strict=True):
        if size > limit:
            return name, size, limit
    return None
