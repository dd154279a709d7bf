"""PAL414 mask-after-multiply."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, KernelTrace, Rule, Severity
from pallas_lint.fixes.masking import LEVELS, masking_fix
from pallas_lint.kernels.facts.padding import mixed_padding


class MaskAfterMultiply(Rule):
    """Weights that are masked to 0 times values that may be NaN: 0 times NaN is NaN.

    In the last, partial block of an array the padding is not specified: NaN in interpret mode, old memory on a
    device. Attention kernels mask the weights and leave the values alone, as if a weight of 0 took them out of the sum.
    It does for numbers, but not for NaN or infinity, and whether old memory holds those changes from run to run.

    ## How to fix

    Mask the values as well: `jnp.where(valid, v, 0)` before the product.

    ## Fix safety

    Unsafe: results change, from garbage to what they should be, and the mask costs time on every block.

    ## Known limits

    As for unmasked-partial-block (PAL413): an error only where block, array and grid are given in numbers; a hint where
    the grid is `pl.cdiv(n, block)`. Silent where the values went through any `where`.

    ## References

    - vllm issue 936: NaN from rows of V beyond the context, whose weights were 0.
    - Run with jax 0.8.3, 0.10.2 and 0.12.0.1, `interpret=True` and `InterpretParams()`: NaN everywhere for
      `dot(where(mask, p, 0), v)` and `sum(where(mask, 1, 0) * v)` over a partial block; right with both masked.
    """

    code = "PAL414"
    name = "mask-after-multiply"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(p_ref, v_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                column = pl.program_id(0) * 128 + lax.broadcasted_iota(jnp.int32, (16, 128), 1)
                p = jnp.where(column < 300, p_ref[...], 0.0)
                v = v_ref[...]  #-
                v = jnp.where(pl.program_id(0) * 128 + lax.broadcasted_iota(jnp.int32, v_ref.shape, 0) < 300, v_ref[...], 0)  #+
                o_ref[...] += jnp.dot(p, v, preferred_element_type=jnp.float32)  #!

            def weighted_sum(p, v):
                p, v = p.reshape(16, 300), v.reshape(300, 128)
                return pl.pallas_call(
                    kernel,
                    grid=(3,),
                    in_specs=[pl.BlockSpec((16, 128), lambda j: (0, j)), pl.BlockSpec((128, 128), lambda j: (j, 0))],
                    out_specs=pl.BlockSpec((16, 128), lambda j: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                )(p, v)
            """,  # noqa: E501
            run="weighted_sum(f32(16, 300), f32(300, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(p_ref, v_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                start = pl.program_id(0) * 128
                column = start + jax.lax.broadcasted_iota(jnp.int32, (16, 128), 1)
                row = start + jax.lax.broadcasted_iota(jnp.int32, (128, 128), 0)
                p = jnp.where(column < 300, p_ref[...], 0.0)
                v = jnp.where(row < 300, v_ref[...], 0.0)
                o_ref[...] += jnp.dot(p, v, preferred_element_type=jnp.float32)

            def weighted_sum(p, v):
                p, v = p.reshape(16, 300), v.reshape(300, 128)
                return pl.pallas_call(
                    kernel,
                    grid=(3,),
                    in_specs=[pl.BlockSpec((16, 128), lambda j: (0, j)), pl.BlockSpec((128, 128), lambda j: (j, 0))],
                    out_specs=pl.BlockSpec((16, 128), lambda j: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                )(p, v)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        for mixed in mixed_padding(trace, context.analysis):
            if not mixed.masked:
                continue
            first = mixed.padded[0]
            name = first.load.ref.parameter
            yield context.finding(
                mixed.op.site,
                f"weights of 0 do not mask the padding of `{name}`: 0 times NaN is NaN",
                help=f"mask `{name}` too, with `jnp.where`: the last block reaches past dimension {first.dimension}",
                severity=LEVELS[first.certainty],
                op=mixed.op,
                related=[(first.load.site, "read here without a mask")],
                fixes=masking_fix(mixed, context),
            )
