# folx issue 33: warps and stages as arguments of pallas_call
# jax: 0.7.2
# target: triton
# expect: PAL701
# static: yes
# call: mha(f32(128, 64), f32(128, 64))
# fails: trace

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def mha_kernel(q_ref, k_ref, o_ref, *, scale):
    scores = jnp.dot(q_ref[...], k_ref[...].T, preferred_element_type=jnp.float32)
    o_ref[...] = jax.nn.softmax(scale * scores, axis=-1)


def mha(q, k, num_warps=4, num_stages=2, interpret=False):
    kernel = functools.partial(mha_kernel, scale=q.shape[-1] ** -0.5)
    n, m = q.shape[0], k.shape[0]
    fn = pl.pallas_call(
        kernel,
        grid=(n // 64,),
        in_specs=[pl.BlockSpec((64, 64), lambda i: (i, 0)), pl.BlockSpec((m, 64), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((64, m), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((n, m), jnp.float32),
        num_warps=num_warps,  #!
        num_stages=num_stages,
        interpret=interpret,
        name="mha_forward",
    )
    return fn(q, k)
