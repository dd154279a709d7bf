# jax issue 39744: an operand in HBM that the kernel never touches
# jax: 0.10.2
# target: tpu:v5e
# expect: PAL411
# static: yes
# call: copy_first(f32(16, 128), f32(16, 128))
# fails: device

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def copy_kernel(used_hbm, unused_hbm, out_hbm, sem):  #!
    copy = pltpu.make_async_copy(used_hbm, out_hbm, sem)
    copy.start()
    copy.wait()


@jax.jit
def copy_first(used, other):
    scaled = other * 2.0
    return pl.pallas_call(
        copy_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM), pl.BlockSpec(memory_space=pltpu.HBM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
        out_shape=jax.ShapeDtypeStruct(used.shape, used.dtype),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(used, scaled)
