"""PAL509 shape-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, KernelTrace, Op, Rule, Severity
from pallas_lint.kernels.facts.agreements import disagreement
from pallas_lint.kernels.facts.operand_shapes import (
    comes_of_mismatch,
    default_mismatch,
    dtype_mismatch,
    lost_dimension,
    named_mismatch,
    outer_product,
    shape_mismatch,
)
from pallas_lint.kernels.grid.block_counts import may_be_any, may_differ
from pallas_lint.kernels.library.operands import shape
from pallas_lint.kernels.model.values import from_dim
from pallas_lint.syntax.nesting import spelled_function

_HELP = {
    "dtypes": "cast one of them, `x.astype(y.dtype)`, or use the function of `jnp`",
    "carry": "start with a value of the type that the body returns, or give the body's result that of the start:"
    " `keepdims=True`, `.astype(...)`",
    "branches": "let all branches return values of the same shapes and dtypes",
}


class ShapeMismatch(Rule):
    """An operation whose operands have shapes, or dtypes, that jax refuses together.

    A kernel computes on blocks, so its sizes are those of BlockSpecs and scratch shapes, not those of the arrays. jax
    checks them while it traces the kernel, on every backend and in interpret mode: a `reshape` keeps the number of
    elements, operators and `where` broadcast sizes of 1 only, a product sums over dimensions of one size, and what is
    concatenated or stacked has equal sizes elsewhere. The carry of a loop has one type: the body returns what it was
    given, in shape and dtype, or as a ref. So do the branches of a `lax.cond`, which may not return refs.

    The functions of `lax` promote nothing: arithmetic, shifts and comparisons there take two arrays of one dtype, where
    operators and those of `jnp` find a common one.

    `jnp.dot` of operands with three dimensions is no batched product: it makes an array of four dimensions, each matrix
    of the left with each of the right. `jnp.matmul` multiplies them one by one. Where that array does not fit, the
    finding is at the product.

    ## How to fix

    Correct the size that is wrong, in the BlockSpec or in the kernel; write `jnp.matmul` for batched products.

    ## Known limits

    Sizes that are not known are assumed to fit. Those that have names are a warning where two would have to be one
    number while a transposed operand fits as it is, or the operands of a product exchanged, or an array with one more
    dimension of size 1; and where a reshape has a factor too many that is not 1 by default; not where the code compares
    them. A warning, too, is an array together with what a reduction made of it without `keepdims`: square ones
    broadcast, along the wrong dimension. Code after a Python branch that the text leaves open is not checked: its
    condition may be what the sizes are computed from.

    ## References

    - jax, `_src/lax/lax.py`: `broadcast_shapes`, `_reshape_shape_rule`, `_dot_general_shape_rule`,
      `_concatenate_shape_rule`, `_src/lax/control_flow/loops.py`: `_check_carry_type`; alike from 0.4.35 to 0.12.0.1.
    """

    code = "PAL509"
    name = "shape-mismatch"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(w_ref, o_ref):
                o_ref[...] = jnp.sum(w_ref[...].reshape(1, 256, 256), axis=0)  #!

            def run():
                return pl.pallas_call(
                    kernel,
                    grid=(3,),
                    in_specs=[pl.BlockSpec((384, 256), lambda k: (k, 0))],
                    out_specs=pl.BlockSpec((256, 256), lambda k: (k, 0)),
                    out_shape=jax.ShapeDtypeStruct((768, 256), jnp.float32),
                )(jnp.zeros((1152, 256), jnp.float32))
            """,
            run="run()",
        ),
        Example(
            """
            def kernel(x_ref, y_ref, o_ref, acc_ref):
                acc_ref[...] = jnp.zeros_like(acc_ref)
                acc_ref[...] += jnp.dot(x_ref[...], y_ref[...])  #!
                o_ref[...] = acc_ref[...]

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((4, 256, 256), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((4, 256, 256), jnp.float32)],
                )(jnp.zeros((4, 256, 128), jnp.float32), jnp.zeros((4, 128, 256), jnp.float32))
            """,
            run="run()",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                def add(i, total):
                    return total + jnp.sum(x_ref[pl.ds(i * 8, 8), :], axis=0, keepdims=True)

                total = lax.fori_loop(0, x_ref.shape[0] // 8, add, jnp.zeros((128,), jnp.float32))  #!
                o_ref[...] = jnp.broadcast_to(total, o_ref.shape)

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                )(jnp.zeros((64, 128), jnp.float32))
            """,
            run="run()",
        ),
        Example(
            """
            def kernel(y_ref, gate_ref, o_ref):
                o_ref[...] = jnp.sum(y_ref[...] * gate_ref[...][:, :, None], axis=0)  #!

            def combine(y, gate):
                experts, tokens, d = y.shape
                assert gate.shape == (tokens, experts)
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((tokens, d), y.dtype))(y, gate)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                codes = x_ref[...]
                shifts = lax.broadcasted_iota(jnp.int32, codes.shape, 0)
                o_ref[...] = lax.shift_right_logical(codes, shifts)  #!

            def run():
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.uint32))(
                    jnp.zeros((8, 128), jnp.uint32)
                )
            """,
            run="run()",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                codes = x_ref[...]
                shifts = lax.broadcasted_iota(jnp.uint32, codes.shape, 0)
                low = lax.shift_right_logical(codes, shifts) & 0xF
                o_ref[...] = jnp.add(low.astype(jnp.int32), jnp.int16(1))  # jnp finds a common dtype

            def run():
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32))(
                    jnp.zeros((8, 128), jnp.uint32)
                )
            """,
            run="run()",
        ),
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                x = x_ref[...].reshape(2, -1, 128)
                o_ref[...] = jnp.matmul(x, y_ref[...]) + jnp.sum(x, axis=-1, keepdims=True)

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((2, 256, 128), jnp.float32),
                )(jnp.zeros((512, 128), jnp.float32), jnp.zeros((2, 128, 128), jnp.float32))
            """,
            run="run()",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        for op in trace.ops():
            mismatch = shape_mismatch(op) if op.certain else None
            if mismatch is not None and not any(map(comes_of_mismatch, op.args)):
                yield _refused(op, mismatch.reason, mismatch.instead, context)
            elif mismatch is None and op.certain:
                yield from _of_two_dtypes(op, context)
                yield from _lost(op, context)
                yield from _named(op, context) if trace.launch.known_call is None else ()
        for agreement in trace.agreements():
            reason = disagreement(agreement) if agreement.certain else None
            if reason is not None:
                message = f"`{agreement.short}`: {reason}"
                yield context.finding(agreement.site, message, help=_HELP[agreement.kind])


def _refused(op: Op, reason: str, instead: str, context: Context, severity: Severity = Severity.ERROR) -> Finding:
    """Shapes that jax refuses: the operation, or the product that gave an operand dimensions too many."""
    message = f"`{spelled_function(op.site)}`: {reason}"
    growth = outer_product(op.args)
    if growth is None:
        return context.finding(op.site, message, help=instead, op=op, severity=severity)
    return context.finding(
        growth.op.site,
        f"{growth.reason}: {message}",
        help=growth.instead,
        op=growth.op,
        severity=severity,
        related=[(op.site, "where it does not fit")],
    )


def _of_two_dtypes(op: Op, context: Context) -> Iterator[Finding]:
    """A function of lax with arrays of two dtypes: it fails while the kernel is traced."""
    dtypes = dtype_mismatch(op)
    if dtypes is not None:
        reason = f"operands of {dtypes[0]} and {dtypes[1]}: functions of `lax` promote nothing"
        message = f"`{spelled_function(op.site)}`: {reason}"
        yield context.finding(op.site, message, help=_HELP["dtypes"], op=op)


def _lost(op: Op, context: Context) -> Iterator[Finding]:
    """What a reduction made, with its operand: they broadcast where sizes are equal, along the wrong dimension."""
    mismatch = lost_dimension(op)
    if mismatch is not None:
        message = f"`{spelled_function(op.site)}`: {mismatch.reason}"
        yield context.finding(op.site, message, help=mismatch.instead, op=op, severity=Severity.WARNING)


def _named(op: Op, context: Context) -> Iterator[Finding]:
    """Shapes of sizes that have only names, which the code does not compare."""
    mismatch = named_mismatch(op)
    if mismatch is None:
        yield from _by_default(op, context)
        return
    effects = context.analysis.outcome.effects
    sizes = [from_dim(size) for value in op.args for size in shape(value) or ()]
    pairs = [(from_dim(one), from_dim(other)) for one, other in mismatch.pairs]
    if any(may_differ(effects, *pair) for pair in pairs) if pairs else may_be_any(effects, *sizes):
        yield _refused(op, mismatch.reason, mismatch.instead, context, Severity.WARNING)


def _by_default(op: Op, context: Context) -> Iterator[Finding]:
    """Shapes of sizes that are parameters, with the defaults of these."""
    found = default_mismatch(op)
    if found is None or not may_be_any(context.analysis.outcome.effects, *found[1]):
        return
    mismatch, defaults = found
    listed = ", ".join(f"`{size.text}={number}`" for size, number in defaults.items())
    message = f"`{spelled_function(op.site)}`: by default ({listed}) {mismatch.reason}"
    yield context.finding(op.site, message, help=mismatch.instead, op=op, severity=Severity.WARNING)
