# jax issue 24209: a product by a named algorithm
# jax: 0.4.35
# target: tpu
# expect: PAL109
# static: yes
# call: project(f32(128, 128), f32(128, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def project_kernel(x_ref, w_ref, o_ref):
    o_ref[...] = jnp.dot(  #!
        x_ref[...],
        w_ref[...],
        precision=lax.DotAlgorithmPreset.BF16_BF16_F32_X3,
        preferred_element_type=jnp.float32,
    )


def project(x, w):
    return pl.pallas_call(
        project_kernel,
        out_shape=jax.ShapeDtypeStruct((x.shape[0], w.shape[1]), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)] * 2,
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
    )(x, w)
