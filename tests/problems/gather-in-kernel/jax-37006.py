# jax issue 37006: one number a row picked along an axis
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL209
# static: yes
# call: picked_logits(f32(16, 256), i32(16, 1))
# fails: compile

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def picked(logits, labels):
    return jnp.take_along_axis(logits, labels, axis=1)  #!


def cross_entropy_kernel(logits_ref, labels_ref, loss_ref):
    logits = logits_ref[...]
    lse = jax.nn.logsumexp(logits, axis=1, keepdims=True)
    loss_ref[...] = lse - picked(logits, labels_ref[...])


@functools.partial(jax.jit, static_argnames="rows")
def picked_logits(logits, labels, rows=8):
    n, vocab = logits.shape
    return pl.pallas_call(
        cross_entropy_kernel,
        grid=(n // rows,),
        in_specs=[pl.BlockSpec((rows, vocab), lambda i: (i, 0)), pl.BlockSpec((rows, 1), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((rows, 1), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((n, 1), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(logits, labels)
