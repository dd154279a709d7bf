"""Working kernels on the SparseCores of a TPU: each of their subcores has its part. For jax from 0.10.2 on."""

import functools

import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

SUBCORES = functools.partial(
    plsc.VectorSubcoreMesh, core_axis_name="core", subcore_axis_name="subcore", num_cores=2, num_subcores=16
)
LANES = 16


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def own_part():
    return lax.axis_index("core") * 16 + lax.axis_index("subcore")


# pallas-lint: probe(f32[256,128])
def copied_by_all_subcores(x):
    rows = x.shape[0] // 32

    @pl.kernel(out_type=like(x), mesh=SUBCORES(), scratch_types=[pltpu.VMEM((rows, x.shape[1]), x.dtype)])
    def kernel(x_hbm, o_hbm, buffer):
        own = pl.ds(own_part() * rows, rows)
        pltpu.sync_copy(x_hbm.at[own], buffer)
        pltpu.sync_copy(buffer, o_hbm.at[own])

    return kernel(x)


def expected_copied_by_all_subcores(x):
    return x


# pallas-lint: probe(f32[4096])
def doubled_in_vectors_of_lanes(x):
    count = x.shape[0] // 32

    @pl.kernel(out_type=like(x), mesh=SUBCORES(), scratch_types=[pltpu.VMEM((count,), x.dtype)])
    def kernel(x_hbm, o_hbm, buffer):
        own = pl.ds(own_part() * count, count)
        pltpu.sync_copy(x_hbm.at[own], buffer)

        @pl.loop(0, count, step=LANES)
        def _(at):
            lanes = pl.ds(at, LANES)
            buffer[lanes] = buffer[lanes] * 2.0

        pltpu.sync_copy(buffer, o_hbm.at[own])

    return kernel(x)


def expected_doubled_in_vectors_of_lanes(x):
    return x * 2.0


# pallas-lint: probe(i32[256], f32[512,128])
def rows_gathered_by_their_numbers(rows, table):
    count = rows.shape[0] // 32

    @pl.kernel(
        out_type=like(table, (rows.shape[0], table.shape[1])),
        mesh=SUBCORES(),
        scratch_types=[
            pltpu.VMEM((count,), rows.dtype),
            pltpu.VMEM((count, table.shape[1]), table.dtype),
            pltpu.SemaphoreType.DMA,
        ],
    )
    def kernel(rows_hbm, table_hbm, o_hbm, numbers, buffer, done):
        own = pl.ds(own_part() * count, count)
        pltpu.sync_copy(rows_hbm.at[own], numbers)
        pltpu.async_copy(table_hbm.at[numbers], buffer, done).wait()
        pltpu.sync_copy(buffer, o_hbm.at[own])

    return kernel(rows, table)


def case_rows_gathered_by_their_numbers():
    rows = jax.random.permutation(jax.random.key(0), 512)[:256]
    table = jax.random.normal(jax.random.key(1), (512, 128))
    return (rows, table), table[rows]
