# helion issue 2753: a copy that starts anywhere in the lanes
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL204
# static: partly
# call: window(i32(1), f32(8, 1024))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def window_kernel(start_ref, x_hbm, o_ref, sem):
    start = start_ref[0]
    copy = pltpu.make_async_copy(x_hbm.at[:, pl.ds(start, 128)], o_ref, sem)  #!
    copy.start()
    copy.wait()


def window(start, x):
    return pl.pallas_call(
        window_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((8, 128), lambda i, start: (0, 0)),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        ),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(start, x)
