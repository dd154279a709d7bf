# jax issue 24404: a store that splits the lanes
# jax: 0.6.2
# target: tpu:v5e
# expect: PAL202
# static: partly
# call: split_heads(f32(8, 256))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


class SplitHeads:
    heads = 4

    def kernel(self, qkv_ref, o_ref):
        value = qkv_ref[...] * jnp.float32(0.125)
        rows, width = value.shape
        o_ref[...] = value.reshape(rows, self.heads, width // self.heads)  #!

    def run(self, x):
        rows, width = x.shape
        return pl.pallas_call(
            self.kernel,
            in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
            out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
            out_shape=jax.ShapeDtypeStruct((rows, self.heads, width // self.heads), x.dtype),
        )(x)


def split_heads(x):
    return SplitHeads().run(x)
