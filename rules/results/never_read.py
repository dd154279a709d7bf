"""PAL420 never-read."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Launch, Rule, Severity, blocks_of
from pallas_lint.kernels.facts.coverage import unmoved, unread


class NeverRead(Rule):
    """Blocks of an input are never read.

    Where a grid axis walks over the blocks of an input from the first one on, and no output depends on that axis, the
    axis is a reduction: if it stops before the last block, the rest of the array is left out of the result, silently.
    So it is where an index map returns a quotient, `head // 4`, although the array has as many blocks as there are
    steps.

    An input whose index map stays at the first block along a reduction that has a step for each of its blocks adds up
    that block again and again.

    ## How to fix

    Make the grid as long as the array has blocks: `pl.cdiv(size, block)`. Slice the operand where the rest is left out
    on purpose.

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
    )
    valid = (
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
                f" blocks, and the index map leaves out grid axis {walk.axis}, which is summed over with as many steps",
                help="return the index of that axis for the dimension",
            )
