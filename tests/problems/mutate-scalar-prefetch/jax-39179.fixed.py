import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def walk_kernel(block_ids_ref, x_ref, o_ref):
    del block_ids_ref
    o_ref[...] = x_ref[...]


def walk(block_ids, x):
    block_ids = block_ids.at[1].set(3)
    return pl.pallas_call(
        walk_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, ids: (ids[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, ids: (i, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(block_ids, x)
