# jax issue 27227: scratch is read before anything is in it
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL401
# static: partly
# call: smooth(f32(32, 128))
# fails: wrong

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


class EMA:
    def __init__(self, alpha):
        self.alpha = alpha

    def kernel(self, x_ref, o_ref, state_ref):
        previous = state_ref[...]  #!
        current = self.alpha * previous + (1.0 - self.alpha) * x_ref[...]
        state_ref[...] = current
        o_ref[...] = current

    def __call__(self, x):
        return pl.pallas_call(
            self.kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=0,
                grid=(x.shape[0] // 8,),
                in_specs=[pl.BlockSpec((8, 128), lambda t: (t, 0))],
                out_specs=pl.BlockSpec((8, 128), lambda t: (t, 0)),
                scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
            ),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(x)


def smooth(x):
    return EMA(0.9)(x)
