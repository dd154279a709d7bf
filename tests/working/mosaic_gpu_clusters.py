"""Working Mosaic GPU kernels of clusters, rings of buffers and several warpgroups, for jax from 0.10.2 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _ones_of_each(o_gmem, met):
    plgpu.barrier_arrive(met)
    plgpu.barrier_wait(met)
    o_gmem[...] = jnp.ones((128,), jnp.int32)


# pallas-lint: probe()
def same_ones_by_both_blocks_of_a_cluster():
    return plgpu.kernel(
        _ones_of_each,
        out_type=jax.ShapeDtypeStruct((128,), jnp.int32),
        cluster=(2,),
        cluster_names=("c",),
        scratch_types=[plgpu.ClusterBarrier(collective_axes=("c",), num_arrivals=1)],
    )()


def expected_same_ones_by_both_blocks_of_a_cluster():
    return jnp.ones((128,), jnp.int32)


def _own_half(x_gmem, o_gmem, buffer, arrived, met):
    half = pl.ds(lax.axis_index("c") * 64, 64)
    plgpu.copy_gmem_to_smem(x_gmem.at[half], buffer, arrived)
    plgpu.barrier_wait(arrived)
    buffer[...] = buffer[...] * 2.0
    plgpu.commit_smem()
    plgpu.barrier_arrive(met)
    plgpu.barrier_wait(met)
    plgpu.copy_smem_to_gmem(buffer, o_gmem.at[half])
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[128,128])
def half_for_each_block_of_a_cluster(x):
    return plgpu.kernel(
        _own_half,
        out_type=like(x),
        cluster=(2,),
        cluster_names=("c",),
        scratch_types=[
            plgpu.SMEM((64, 128), x.dtype),
            plgpu.Barrier(),
            plgpu.ClusterBarrier(collective_axes=("c",), num_arrivals=1),
        ],
    )(x)


def expected_half_for_each_block_of_a_cluster(x):
    return x * 2.0


def _around(x_gmem, o_gmem, came, went, arrived, *, steps, slots):
    def fetch(step):
        slot = lax.rem(step, slots)
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(step * 64, 64)], came.at[slot], arrived.at[slot])

    for step in range(slots):
        fetch(step)

    def body(step, _):
        slot = lax.rem(step, slots)
        plgpu.barrier_wait(arrived.at[slot])
        plgpu.wait_smem_to_gmem(slots - 1, wait_read_only=True)
        went[slot] = came[slot] - 1.0
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(went.at[slot], o_gmem.at[pl.ds(step * 64, 64)])

        @pl.when(step + slots < steps)
        def _():
            fetch(step + slots)

        return _

    lax.fori_loop(0, steps, body, None)
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[384,128])
def ring_both_ways(x):
    buffers = plgpu.SMEM((3, 64, 128), x.dtype)
    return plgpu.kernel(
        functools.partial(_around, steps=x.shape[0] // 64, slots=3),
        out_type=like(x),
        scratch_types=[buffers, buffers, plgpu.Barrier(num_barriers=3)],
    )(x)


def expected_ring_both_ways(x):
    return x - 1.0


def _handed_over(x_gmem, o_gmem, buffer, full, empty, *, steps):
    own = lax.axis_index("wg")

    @pl.when(own == 0)
    def _produce():
        def body(step, _):
            @pl.when(step > 0)
            def _():
                plgpu.barrier_wait(empty)

            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(step * 64, 64)], buffer, full)
            return _

        lax.fori_loop(0, steps, body, None)

    @pl.when(own == 1)
    def _consume():
        def body(step, _):
            plgpu.barrier_wait(full)
            o_gmem[pl.ds(step * 64, 64)] = buffer[...] + 3.0

            @pl.when(step + 1 < steps)
            def _():
                plgpu.barrier_arrive(empty)

            return _

        lax.fori_loop(0, steps, body, None)


# pallas-lint: probe(f32[256,128])
def handed_from_one_warpgroup_to_the_other(x):
    return plgpu.kernel(
        functools.partial(_handed_over, steps=x.shape[0] // 64),
        out_type=like(x),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((64, 128), x.dtype), plgpu.Barrier(), plgpu.Barrier()],
    )(x)


def expected_handed_from_one_warpgroup_to_the_other(x):
    return x + 3.0


# pallas-lint: probe(f32[128])
def asserts_what_the_gpu_can(x):
    assert tuple(map(int, jax.devices()[0].compute_capability.split("."))) >= (9, 0)

    def kernel(x_gmem, o_gmem):
        o_gmem[...] = x_gmem[...] * 2.0

    return plgpu.kernel(kernel, out_type=like(x))(x)


def expected_asserts_what_the_gpu_can(x):
    return x * 2.0
