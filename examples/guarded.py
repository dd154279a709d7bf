"""A division with a check that the project's jax refuses in kernels."""

import jax
from jax.experimental import checkify
from jax.experimental import pallas as pl


def divide_kernel(x_ref, y_ref, o_ref):
    checkify.check(y_ref[0, 0] != 0, "division by zero")
    o_ref[...] = x_ref[...] / y_ref[...]


def divide(x, y):
    # `pallas_call` took part in checkify until jax 0.10.0. Since then the check stays in the kernel, and no backend
    # lowers it.
    @checkify.checkify
    def checked(x, y):
        return pl.pallas_call(divide_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)

    error, result = checked(x, y)
    error.throw()
    return result
