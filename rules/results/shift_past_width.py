"""PAL425 shift-past-width."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Array, Const, Context, Example, Finding, Op, Rule, Severity
from pallas_lint.kernels.model.dtypes import bits, is_integer, is_signed, long_name
from pallas_lint.kernels.model.known_names import integer

_RIGHT = ("jax.numpy.right_shift", "jax.numpy.bitwise_right_shift", "jax.lax.shift_right_arithmetic")


class ShiftPastWidth(Rule):
    """A shift by at least as many bits as the dtype has: none of them is left.

    A Python number takes the dtype of the array that it is combined with. `high << 8` of int8 is computed in int8 and
    is 0, whatever `high` is, where bytes are joined to wider numbers, and so is `word << 32` of int32. To the right,
    numbers without a sign become 0, and others 0 or -1. Nothing fails, in interpret mode or on a device.

    ## How to fix

    Cast to the wider dtype before the shift: `high.astype(jnp.int32) << 8`.

    ## Known limits

    Needs a known dtype and a shift given as a number.

    ## References

    - Run with jax 0.10.2 and 0.12.0.1: `jnp.int8(3) << 8` and `jnp.int32(5) << 32` are 0, `jnp.int8(-3) >> 8` is -1.
    """

    code = "PAL425"
    name = "shift-past-width"
    severity = Severity.WARNING
    ops = (
        *("jax.numpy.left_shift", "jax.numpy.bitwise_left_shift", "jax.lax.shift_left", "jax.lax.shift_right_logical"),
        *_RIGHT,
    )
    invalid = (
        Example(
            """
            def kernel(high_ref, low_ref, o_ref):
                low = low_ref[...].astype(jnp.int32) & 0xFF
                o_ref[...] = (high_ref[...] << 8) | low  #!

            def join(high, low):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(high.shape, jnp.int32))(high, low)

            def test_join():
                join(jnp.ones((32, 128), jnp.int8), jnp.ones((32, 128), jnp.int8))
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(high_ref, low_ref, o_ref):
                low = low_ref[...].astype(jnp.int32) & 0xFF
                o_ref[...] = (high_ref[...].astype(jnp.int32) << 8) | low

            def join(high, low):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(high.shape, jnp.int32))(high, low)

            def test_join():
                join(jnp.ones((32, 128), jnp.int8), jnp.ones((32, 128), jnp.int8))
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        result, by = op.result, integer(op.args[1]) if len(op.args) == 2 else None
        if by is None or not isinstance(result, Array) or result.dtype is None or not is_integer(result.dtype):
            return
        width = bits(result.dtype)
        if by < width or isinstance(op.args[0], Const):
            return
        keeps_sign = op.name in _RIGHT and is_signed(result.dtype)
        left = "only the sign is left" if keeps_sign else "every bit is lost"
        wider = "cast to a wider dtype before the shift: `x.astype(jnp.int32)`"
        yield context.finding(
            op.site,
            f"a shift of {long_name(result.dtype)} by {by} is computed in {width} bits: {left}",
            help=wider if width < 32 else "jax has no more bits unless `jax_enable_x64` is set: keep two words",
            op=op,
            dtype=result.dtype,
        )
