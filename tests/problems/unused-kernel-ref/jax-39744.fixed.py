import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def copy_kernel(used_hbm, out_hbm, sem):
    copy = pltpu.make_async_copy(used_hbm, out_hbm, sem)
    copy.start()
    copy.wait()


@jax.jit
def copy_first(used, other):
    del other
    return pl.pallas_call(
        copy_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
        out_shape=jax.ShapeDtypeStruct(used.shape, used.dtype),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(used)
