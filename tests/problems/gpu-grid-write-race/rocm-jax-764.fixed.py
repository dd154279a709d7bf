import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def sum_kernel(x_ref, o_ref):
    o_ref[0] = jnp.sum(x_ref[...])


def total(x, block=128):
    blocks = x.shape[0] // block
    partial = pl.pallas_call(
        sum_kernel,
        grid=(blocks,),
        in_specs=[pl.BlockSpec((block,), lambda i: (i,))],
        out_specs=pl.BlockSpec((1,), lambda i: (i,)),
        out_shape=jax.ShapeDtypeStruct((blocks,), x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
    return partial.sum()
