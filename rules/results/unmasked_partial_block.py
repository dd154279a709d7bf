"""PAL413 unmasked-partial-block."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, KernelTrace, Rule, Severity
from pallas_lint.fixes.masking import LEVELS, masking_fix
from pallas_lint.kernels.facts.padding import mixed_padding


class UnmaskedPartialBlock(Rule):
    """A sum, maximum or product over a block dimension that the block does not divide, without a mask.

    The last block of an array of 300 columns in blocks of 128 has 84 columns that are not the array's. What is in
    them is not specified: NaN in interpret mode, zeros on a good day, old memory on others. Elementwise kernels
    do not care, because stores beyond the array are dropped. A reduction over that dimension mixes them in.

    ## How to fix

    Replace the padding before reducing, by what does not change the result (0 for sums and products, `-inf` for
    maxima), or pad the array, or choose a block that divides it.

    ## Fix safety

    Unsafe: results change, from garbage to what they should be, and the mask costs time on every block.

    ## Known limits

    An error only where block, array and grid are given in numbers and the last block is visited, a hint where the grid
    is `pl.cdiv(n, block)` for names and nothing takes a remainder of `n`. Whatever goes through a `where` or `select`
    counts as masked, except under `index <= n` (a warning), which lets the first element of the padding through.
    Blocks of which slices are read, and those that are reshaped or handed to unseen code, are not followed. Silent for
    Mosaic GPU, whose copies fill with zeros.

    ## References

    - jax issue 22370: the content of out-of-bounds parts of a block is not specified.
    - jax/_src/pallas/mosaic_gpu/primitives.py, `copy_gmem_to_smem`: out-of-bounds elements are zeros by default.
    - Run with jax 0.8.3, 0.10.2 and 0.12.0.1, `interpret=True` and `InterpretParams()`: NaN for a sum over the
      padded axis and for a product that contracts it, also with one operand masked; right with both masked, for
      elementwise kernels and for reductions over the other axis.
    """

    code = "PAL413"
    name = "unmasked-partial-block"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            from jax import lax  #-
            from jax.experimental import pallas as pl  #-
            #-
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += jnp.sum(x_ref[...], axis=1, keepdims=True)  #!-
                o_ref[...] += jnp.sum(jnp.where(pl.program_id(0) * 128 + lax.broadcasted_iota(jnp.int32, x_ref.shape, 1) < 300, x_ref[...], 0), axis=1, keepdims=True)  #+

            def row_sums(x):
                x = x.reshape(16, 300)
                return pl.pallas_call(
                    kernel,
                    grid=(3,),
                    in_specs=[pl.BlockSpec((16, 128), lambda j: (0, j))],
                    out_specs=pl.BlockSpec((16, 1), lambda j: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 1), jnp.float32),
                )(x)
            """,  # noqa: E501
            run="row_sums(f32(16, 300))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                column = pl.program_id(0) * 128 + jax.lax.broadcasted_iota(jnp.int32, (16, 128), 1)
                o_ref[...] += jnp.sum(jnp.where(column < 300, x_ref[...], 0), axis=1, keepdims=True)

            def row_sums(x):
                x = x.reshape(16, 300)
                return pl.pallas_call(
                    kernel,
                    grid=(3,),
                    in_specs=[pl.BlockSpec((16, 128), lambda j: (0, j))],
                    out_specs=pl.BlockSpec((16, 1), lambda j: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 1), jnp.float32),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        for mixed in mixed_padding(trace, context.analysis):
            if mixed.masked:
                continue
            first = mixed.padded[0]
            block = first.block.dims[first.dimension].size if first.block.dims is not None else None
            length = first.block.array_shape[first.dimension] if first.block.array_shape is not None else None
            short = mixed.op.short
            if first.passed_by is not None:
                yield context.finding(
                    first.passed_by.site,
                    f"the mask lets padding through: dimension {first.dimension} of `{first.load.ref.parameter}` has"
                    f" {_spelled(length)} elements, the last is at {_spelled(length)} - 1",
                    help="compare with `<`",
                    severity=min(LEVELS[first.certainty], Severity.WARNING, key=lambda level: level.rank),
                    op=mixed.op,
                    related=[(mixed.op.site, "mixed into the result here")],
                )
                continue
            yield context.finding(
                mixed.op.site,
                f"`{short}` runs over padding: dimension {first.dimension} of `{first.load.ref.parameter}` has size"
                f" {_spelled(length)}, in blocks of {_spelled(block)}",
                help=f"mask the last block first, `jnp.where(index < {_spelled(length)}, x, ...)`: "
                "what its padding holds is not specified",
                severity=LEVELS[first.certainty],
                op=mixed.op,
                related=[(first.load.site, "read here")],
                fixes=masking_fix(mixed, context),
            )


def _spelled(size: object) -> str:
    return str(getattr(size, "text", size))
