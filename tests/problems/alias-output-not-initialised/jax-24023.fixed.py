import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def update_kernel(starts, sizes, x_ref, y_ref):
    del starts, sizes
    y_ref[...] = x_ref[...]


def touch_nothing(starts, sizes, x):
    return pl.pallas_call(
        update_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(2,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, *_: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, *_: (i, 0)),
        ),
        input_output_aliases={2: 0},
    )(starts, sizes, x)
