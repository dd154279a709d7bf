"""PAL420 never-read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    Array,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Rule,
    Severity,
    Slice,
    blocks_of,
)
from pallas_lint.kernels.facts.coverage import unmoved, unread
from pallas_lint.kernels.grid.index_ranges import SliceUse, extents, number, parts_of, size_of, start_of
from pallas_lint.kernels.model.trace import LOOP_INDEX

if TYPE_CHECKING:
    from pallas_lint.kernels.grid.blocks import Blocks


class NeverRead(Rule):
    """Blocks of an input, or of what a loop in the kernel reads, are never read.

    Where a grid axis walks over the blocks of an input from the first one on, and no output depends on that axis, the
    axis is a reduction: if it stops before the last block, the rest of the array is left out of the result, silently.
    So it is where an index map returns a quotient, `head // 4`, although the array has as many blocks as there are
    steps.

    An input whose index map stays at the first block along a reduction that has a step for each of its blocks adds up
    that block again and again. Along an axis that moves the outputs in the same dimension, block by block, each block
    of the outputs is made of the first one of the input.

    `x_ref[pl.ds(i, 32)]` in a loop of `size // 32` iterations starts at the elements 0, 1, 2, ..., not at the blocks:
    its slices overlap, and most of the ref is left out. `pl.ds` counts elements, index maps count blocks.

    ## How to fix

    Make the grid as long as the array has blocks: `pl.cdiv(size, block)`. Slice the operand where the rest is left out
    on purpose. Multiply the index of a loop by the size of its slices: `pl.ds(i * 32, 32)`.

    ## Known limits

    From the text where grid, block and shape of the input are numbers, or both counts quotients of one size:
    `n // 256` or `n // 128 - 1` steps along `n // 128` blocks; the probe evaluates all index maps on the whole grid. An
    input is not checked if its index map reads prefetch operands, or starts behind the first block; if it is aliased to
    an output; if another operand of its shape, one that does not walk from the first block on, may have the other
    blocks; or if an output has no blocks of its own, as in HBM.
    """

    code = "PAL420"
    name = "never-read"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(1) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)
                o_ref[...] += x_ref[...]

            def total(x):
                m, n = x.shape
                return pl.pallas_call(
                    kernel,
                    grid=(m // 128, n // 256),
                    in_specs=[pl.BlockSpec((128, 128), lambda i, k: (i, k))],  #!
                    out_specs=pl.BlockSpec((128, 128), lambda i, k: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((m, 128), x.dtype),
                )(x)
            """
        ),
        Example(
            """
            def kernel(q_ref, k_ref, o_ref):
                o_ref[...] = q_ref[...] + k_ref[...]

            def heads(q, k):
                return pl.pallas_call(
                    kernel,
                    grid=(8,),
                    in_specs=[
                        pl.BlockSpec((1, 64, 128), lambda h: (h, 0, 0)),
                        pl.BlockSpec((1, 64, 128), lambda h: (h // 4, 0, 0)),  #!
                    ],
                    out_specs=pl.BlockSpec((1, 64, 128), lambda h: (h, 0, 0)),
                    out_shape=jax.ShapeDtypeStruct((8, 64, 128), q.dtype),
                )(q, k)

            heads(jnp.ones((8, 64, 128)), jnp.ones((8, 64, 128)))
            """
        ),
        Example(
            """
            def kernel(x_ref, w_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)

            def project(x, w):
                m, k = x.shape
                n = w.shape[1]
                return pl.pallas_call(
                    kernel,
                    grid=(m // 128, n // 128),
                    in_specs=[
                        pl.BlockSpec((128, k), lambda i, j: (i, 0)),
                        pl.BlockSpec((k, 128), lambda i, j: (0, 0)),  #!
                    ],
                    out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
                    out_shape=jax.ShapeDtypeStruct((m, n), jnp.float32),
                )(x, w)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                def add(i, total):
                    return total + x_ref[pl.ds(i * 8, 8)]

                o_ref[...] = lax.fori_loop(0, 8, add, jnp.zeros((8, 128)))

            def total(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)

            total(jnp.ones((64, 128)))
            """
        ),
        Example(
            """
            def kernel(q_ref, k_ref, o_ref):
                o_ref[...] = q_ref[...] + k_ref[...]

            def heads(q, k):
                return pl.pallas_call(
                    kernel,
                    grid=(8,),
                    in_specs=[
                        pl.BlockSpec((1, 64, 128), lambda h: (h, 0, 0)),
                        pl.BlockSpec((1, 64, 128), lambda h: (h // 4, 0, 0)),
                    ],
                    out_specs=pl.BlockSpec((1, 64, 128), lambda h: (h, 0, 0)),
                    out_shape=jax.ShapeDtypeStruct((8, 64, 128), q.dtype),
                )(q, k)

            heads(jnp.ones((8, 64, 128)), jnp.ones((2, 64, 128)))
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(1) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)
                o_ref[...] += x_ref[...]

            def total(x):
                m, n = x.shape
                return pl.pallas_call(
                    kernel,
                    grid=(m // 128, n // 128),
                    in_specs=[pl.BlockSpec((128, 128), lambda i, k: (i, k))],
                    out_specs=pl.BlockSpec((128, 128), lambda i, k: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((m, 128), x.dtype),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        if not trace.complete:
            return
        for part in parts_of(trace):
            found = _overlapping(part, trace) if part.ref.role == "in" and not part.ref.view else None
            if found is None or any(
                access.ref.buffer == part.ref.buffer and access.site.key != part.access.site.key
                for access in trace.accesses()
            ):
                continue
            count, size = found
            yield context.finding(
                part.access.site,
                f"slices of {size} elements of `{part.ref.parameter}` start at each of the first {count}"
                f" elements: they overlap, and what follows of the {count * size} is never read",
                help=f"multiply the index of the loop by {size}: `pl.ds` counts elements, not blocks",
                op=part.access,
            )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        blocks = blocks_of(launch, context.analysis) if launch.form.refs == "blocks" else None
        if blocks is None or not blocks.grid.rank:
            return
        for block, walk in unread(launch, blocks, context.analysis.outcome.effects):
            assert block.spec is not None
            summed = ", which is summed over," if walk.divisor == 1 else ""
            yield context.finding(
                block.spec.site,
                f"the last blocks of input {block.index}{summed} are never read: dimension {walk.dimension} has"
                f" {walk.blocks} blocks, and grid axis {walk.axis} {walk.spelled_steps}",
                help="make the grid as long as the array has blocks (`pl.cdiv`), or pass a slice of it"
                if walk.divisor == 1
                else "check the divisor: several steps read one block only where the array has fewer blocks than steps",
            )
        for block, walk in unmoved(launch, blocks, context.analysis.outcome.effects):
            assert block.spec is not None
            yield context.finding(
                block.spec.site,
                f"only the first block of input {block.index} is read: dimension {walk.dimension} has {walk.blocks}"
                f" blocks, and the index map leaves out grid axis {walk.axis}, {_of_axis(walk.axis, blocks)}",
                help="return the index of that axis for the dimension",
            )


def _of_axis(axis: int, blocks: Blocks) -> str:
    if all(output is not None and output.ignores(axis) for output in blocks.outputs or ()):
        return "which is summed over with as many steps"
    return "along which the output has as many"


def _overlapping(part: SliceUse, trace: KernelTrace) -> tuple[int, int] | None:
    """The iterations of a loop that has one for each block of a dimension, and the size of these, where its slices
    start at the index of the loop itself; else None.
    """
    start, size = start_of(part), number(size_of(part))
    loop = start.origin if isinstance(start, Array) else None
    if not isinstance(part.index, Slice) or loop is None or loop.name != LOOP_INDEX or loop.args[:1] != (Const(0),):
        return None
    length = next((known for known in map(number, extents(part, trace)) if known is not None), None)
    count = number(loop.args[1])
    if size is None or length is None or count is None or min(size, count) < 2 or size * count != length:
        return None
    return count, size
