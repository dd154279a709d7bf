"""Working Mosaic GPU kernels with slots of memory in turn and branches for interpret mode, for jax from 0.12 on."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

FOR_WGMMA = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def in_rows(ref):
    return plgpu.load(ref, layout=plgpu.Layout.WGMMA)


def _two_slots(x_gmem, o_gmem, slots):
    slot = 0
    for row in range(2):
        for column in range(3):
            place = pl.ds(row * 64, 64), pl.ds(column * 64, 64)
            plgpu.wait_smem_to_gmem(1, wait_read_only=True)
            slots.at[slot][...] = in_rows(x_gmem.at[place]) + 1
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(slots.at[slot], o_gmem.at[place])
            slot = 1 - slot
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[128,192])
def tiles_through_two_slots(x):
    return plgpu.kernel(_two_slots, out_type=like(x), scratch_types=[plgpu.SMEM((2, 64, 64), x.dtype)])(x)


def expected_tiles_through_two_slots(x):
    return x + 1


def _twice(interpret, x_gmem, y_gmem, o_gmem, x_smem, y_smem, staged, arrived):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
    plgpu.copy_gmem_to_smem(y_gmem, y_smem, arrived)
    plgpu.barrier_wait(arrived)
    left = in_rows(x_smem)

    def products(first, second):
        for total, factor in ((first, 1), (second, 2)):
            if interpret:  # there operands have to be in memory, and a product is done at once
                staged[...] = left * factor
                plgpu.commit_smem()
                plgpu.wgmma(total, staged, y_smem)
            else:
                plgpu.wgmma(total, left * factor, y_smem)
        plgpu.wgmma_wait(0)
        return first[...] + second[...]

    o_gmem[...] = pl.run_scoped(products, *[plgpu.ACC((64, 64), jnp.float32)] * 2)


# pallas-lint: probe(bf16[64,64], bf16[64,64])
def product_twice(x, y, interpret=False):
    return plgpu.kernel(
        functools.partial(_twice, interpret),
        out_type=like(x, dtype=jnp.float32),
        scratch_types=[*[plgpu.SMEM((64, 64), x.dtype, transforms=FOR_WGMMA)] * 3, plgpu.Barrier(num_arrivals=2)],
    )(x, y)


def expected_product_twice(x, y):
    return 3 * jnp.dot(x, y, preferred_element_type=jnp.float32)
