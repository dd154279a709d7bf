import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def copy_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def copy(x):
    spec = pl.BlockSpec((4, 16), lambda i: (i, 0))
    return pl.pallas_call(
        copy_kernel,
        grid=(2,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((8, 16), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=1),
    )(jnp.pad(x, ((0, 0), (0, 6))))[:, :10]
