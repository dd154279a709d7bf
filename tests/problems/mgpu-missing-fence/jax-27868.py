# jax issue 27868: shared memory is copied out without a fence
# jax: 0.12.0.1
# target: mosaic-gpu
# expect: PAL416
# static: yes
# call: scale(f16(64, 128))
# fails: device

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def scale_kernel(x_gmem, o_gmem, smem):
    x = plgpu.load(x_gmem)
    smem[...] = x * jnp.float16(2)
    plgpu.copy_smem_to_gmem(smem, o_gmem)  #!
    plgpu.wait_smem_to_gmem(0)


def scale(x):
    kernel = plgpu.kernel(
        scale_kernel,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_types=[plgpu.SMEM(x.shape, x.dtype)],
    )
    return kernel(x)
