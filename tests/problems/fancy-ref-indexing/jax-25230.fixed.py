import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def tile_kernel(x_ref, o_ref):
    tile = pl.load(x_ref, (pl.ds(0, 8), pl.ds(0, 128)))
    o_ref[...] = tile * 2.0


@jax.jit
def take_tile(x):
    return pl.pallas_call(
        tile_kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
    )(x)
