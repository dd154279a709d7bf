"""PAL310 block-rank."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Launch, Rule, Severity, blocks_of
from pallas_lint.kernels.launches.signatures import count_of


class BlockRank(Rule):
    """A block that has more or fewer dimensions than the array that it is cut from.

    A `block_shape` has one entry for each dimension of the operand, or of the output in `out_shape`. Dimensions that
    the kernel is not to see are entries too: `None` (`pl.Squeezed()`) takes one element of a dimension and leaves it
    out of the ref. Anything else is refused while the launch is traced, on every backend and in interpret mode: `Block
    shape ... must have the same number of dimensions as the array shape`.

    ## How to fix

    Write `None`, or 1 where the kernel is to keep the dimension, for each leading dimension that is missing, and return
    an index for it from the index map. Under `jax.vmap` the function that is mapped sees one dimension less.

    ## Known limits

    Silent where the rank of the array or of the block is not seen, for operands that are trees of arrays, and in
    pipelines.

    ## References

    - jax documentation, "Grids and BlockSpecs".
    - Traced with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: the same error in all of
      them, for operands and outputs, blocks of more and of fewer dimensions, with and without a grid, an index map,
      squeezed dimensions, `pl.Element` and `memory_space=pl.ANY`.
    """

    code = "PAL310"
    name = "block-rank"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),  #!
                    out_shape=jax.ShapeDtypeStruct((4, 8, 128), jnp.float32),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))],
                    out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
                    out_shape=jax.ShapeDtypeStruct((4, 8, 128), jnp.float32),
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        blocks = blocks_of(launch, context.analysis) if launch.form.is_over_blocks else None
        if blocks is None or not launch.is_pallas:
            return
        for block in (*(blocks.inputs or ()), *(blocks.outputs or ())):
            entries = block.spec.block_shape if block is not None and block.spec is not None else None
            if block is None or block.spec is None or block.array_shape is None or entries is None or entries.open:
                continue
            if len(entries.items) == len(block.array_shape):
                continue
            what = f"{'operand' if block.role == 'in' else 'output'} {block.index}"
            yield context.finding(
                block.spec.site,
                f"block of {count_of(len(entries.items), 'dimension')} for {what}, which has {len(block.array_shape)}",
                help="give one entry for each dimension of the array; `None` takes one element and hides the dimension",
                severity=Severity.ERROR if block.sure and launch.certain else Severity.WARNING,
            )
