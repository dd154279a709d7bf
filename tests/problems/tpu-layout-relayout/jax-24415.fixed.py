import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def widen_kernel(x_ref, o_ref, *, times):
    o_ref[...] = jnp.concatenate([x_ref[...]] * times, axis=1)


def widen(x, times=2):
    return pl.pallas_call(
        functools.partial(widen_kernel, times=times),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], times * x.shape[1]), x.dtype),
    )(x)
