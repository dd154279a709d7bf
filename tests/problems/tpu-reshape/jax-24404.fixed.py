import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


class SplitHeads:
    heads = 4

    def kernel(self, qkv_ref, o_ref):
        o_ref[...] = qkv_ref[...] * jnp.float32(0.125)

    def run(self, x):
        rows, width = x.shape
        out = pl.pallas_call(
            self.kernel,
            in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
            out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(x)
        return out.reshape(rows, self.heads, width // self.heads)


def split_heads(x):
    return SplitHeads().run(x)
