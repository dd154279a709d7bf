# jax issue 39179: the kernel writes the numbers that its index map reads
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL410
# static: yes
# call: walk(i32(4), f32(32, 128))
# fails: device

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _advance(ids, step):
    ids[step] = 3  #!


def walk_kernel(block_ids_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]

    @pl.when(pl.program_id(0) == 0)
    def _():
        _advance(block_ids_ref, 1)


def walk(block_ids, x):
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
