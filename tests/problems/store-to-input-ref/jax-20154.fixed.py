import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def add_one_kernel(x_ref, o_ref):
    mine = pl.ds(0, x_ref.shape[0])
    o_ref[mine] = x_ref[mine] + 1.0


def add_one(x):
    return pl.pallas_call(
        add_one_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(1,),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
