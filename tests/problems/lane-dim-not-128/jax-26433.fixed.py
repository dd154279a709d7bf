import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SEQ, HEADS, HEAD_DIM = 256, 4, 192
PADDED = 256


def head_kernel(q_ref, o_ref):
    o_ref[...] = q_ref[...] * HEAD_DIM**-0.5


def scale_heads(q):
    q = jnp.pad(q.reshape(SEQ, HEADS, HEAD_DIM), ((0, 0), (0, 0), (0, PADDED - HEAD_DIM))).reshape(SEQ, -1)
    block = pl.BlockSpec((128, PADDED), lambda h, i: (i, h))
    return pl.pallas_call(
        head_kernel,
        grid=(HEADS, SEQ // 128),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((SEQ, HEADS * PADDED), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
    )(q)
