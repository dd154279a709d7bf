"""Rows of a table that stays in HBM, scaled: each copy runs while the row before it is worked on."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = 8


def gather_kernel(index_ref, scale_ref, table_ref, out_ref, buffer_ref, arrived):
    first = pl.program_id(0) * ROWS

    def fetch(row, slot):
        source = table_ref.at[index_ref[first + row]]
        return pltpu.make_async_copy(source, buffer_ref.at[slot], arrived.at[slot])

    fetch(0, 0).start()
    for row in range(ROWS):
        slot = row % 2
        if row + 1 < ROWS:
            fetch(row + 1, 1 - slot).start()
        fetch(row, slot).wait()
        out_ref[row, :] = buffer_ref[slot, 0, :] * scale_ref[0, :]


# pallas-lint: probe(i32[64], f32[1, 256], f32[512, 1, 256])
def gather(index: jax.Array, scale: jax.Array, table: jax.Array) -> jax.Array:
    width = table.shape[-1]
    return pl.pallas_call(
        gather_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(index.shape[0] // ROWS,),
            in_specs=[
                pl.BlockSpec((1, width), lambda i, index: (0, 0)),
                pl.BlockSpec(memory_space=pl.ANY),
            ],
            out_specs=pl.BlockSpec((ROWS, width), lambda i, index: (i, 0)),
            scratch_shapes=[
                pltpu.VMEM((2, 1, width), jnp.float32),
                pltpu.SemaphoreType.DMA((2,)),
            ],
        ),
        out_shape=jax.ShapeDtypeStruct((index.shape[0], width), jnp.float32),
    )(index, scale, table)
