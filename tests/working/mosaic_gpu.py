"""Working Mosaic GPU kernels for Hopper, for jax from 0.10.2 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

# What wgmma wants of 16-bit operands: rows of 64 elements, in tiles of 8 rows, swizzled.
FOR_WGMMA = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))

FOR_ROWS = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))  # the same of 32-bit values


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _copied_in(x_gmem, o_gmem, x_smem, o_smem, arrived):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
    plgpu.barrier_wait(arrived)
    o_smem[...] = x_smem[...] + 1
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[128,128])
def copied_in_and_out(x):
    buffer = plgpu.SMEM(x.shape, x.dtype)
    return plgpu.kernel(_copied_in, out_type=like(x), scratch_types=[buffer, buffer, plgpu.Barrier()])(x)


def expected_copied_in_and_out(x):
    return x + 1


def _rows(x_gmem, o_gmem, x_smem, o_smem, arrived):
    rows = pl.ds(lax.axis_index("rows") * 64, 64)
    plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
    plgpu.barrier_wait(arrived)
    o_smem[...] = jnp.maximum(x_smem[...], 0.0)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[rows])
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[256,128])
def rows_of_a_grid(x):
    buffer = plgpu.SMEM((64, 128), x.dtype)
    return plgpu.kernel(
        _rows,
        out_type=like(x),
        grid=(x.shape[0] // 64,),
        grid_names=("rows",),
        scratch_types={"x_smem": buffer, "o_smem": buffer, "arrived": plgpu.Barrier()},
    )(x)


def expected_rows_of_a_grid(x):
    return jnp.maximum(x, 0.0)


def _double(_, x_smem, o_smem):
    o_smem[...] = x_smem[...] * 2


def _pipelined(x_gmem, o_gmem):
    block = plgpu.BlockSpec((64, 128), lambda i: (i, 0))
    plgpu.emit_pipeline(
        _double, grid=(x_gmem.shape[0] // 64,), in_specs=[block], out_specs=[block], max_concurrent_steps=2
    )(x_gmem, o_gmem)


# pallas-lint: probe(f32[256,128])
def pipeline(x):
    return plgpu.kernel(_pipelined, out_type=like(x))(x)


def expected_pipeline(x):
    return x * 2


def _pipelined_part(x_gmem, o_gmem, *, steps):
    start = lax.axis_index("part") * steps
    block = plgpu.BlockSpec((64, 128), lambda i: (start + i, 0))
    plgpu.emit_pipeline(_double, grid=(steps,), in_specs=[block], out_specs=[block], max_concurrent_steps=2)(
        x_gmem, o_gmem
    )


# pallas-lint: probe(f32[512,128])
def pipeline_of_a_part(x):
    parts = 4
    return plgpu.kernel(
        functools.partial(_pipelined_part, steps=x.shape[0] // 64 // parts),
        out_type=like(x),
        grid=(parts,),
        grid_names=("part",),
    )(x)


def expected_pipeline_of_a_part(x):
    return x * 2


def _summed(x_gmem, o_gmem, o_smem):
    def step(_, x_smem, total):
        return total + x_smem[...]

    total = plgpu.emit_pipeline(
        step,
        grid=(x_gmem.shape[0] // 64,),
        in_specs=[plgpu.BlockSpec((64, 128), lambda i: (i, 0))],
        max_concurrent_steps=2,
        init_carry=plgpu.layout_cast(jnp.zeros((64, 128), jnp.float32), plgpu.Layout.WG_STRIDED((64, 128), vec_size=2)),
    )(x_gmem)
    o_smem[...] = total
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[256,128])
def sum_carried_through_a_pipeline(x):
    return plgpu.kernel(_summed, out_type=like(x, (64, 128)), scratch_types=[plgpu.SMEM((64, 128), x.dtype)])(x)


def expected_sum_carried_through_a_pipeline(x):
    return jnp.sum(x.reshape(4, 64, 128), axis=0)


def _ring(x_gmem, o_gmem, x_smem, o_smem, arrived, *, steps, slots):
    def fetch(step, slot):
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(step * 64, 64)], x_smem.at[slot], arrived.at[slot])

    for slot in range(slots):
        fetch(slot, slot)

    def body(step, _):
        slot = lax.rem(step, slots)
        plgpu.barrier_wait(arrived.at[slot])
        plgpu.wait_smem_to_gmem(0, wait_read_only=True)
        o_smem[...] = x_smem[slot] * 3
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[pl.ds(step * 64, 64)])

        @pl.when(step + slots < steps)
        def _():
            fetch(step + slots, slot)

        return _

    lax.fori_loop(0, steps, body, None)
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[512,128])
def ring_of_buffers(x):
    return plgpu.kernel(
        functools.partial(_ring, steps=x.shape[0] // 64, slots=2),
        out_type=like(x),
        scratch_types=[
            plgpu.SMEM((2, 64, 128), x.dtype),
            plgpu.SMEM((64, 128), x.dtype),
            plgpu.Barrier(num_barriers=2),
        ],
    )(x)


def expected_ring_of_buffers(x):
    return x * 3


def _scoped(x_gmem, o_gmem):
    def body(x_smem, arrived):
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
        plgpu.barrier_wait(arrived)
        x_smem[...] = -x_smem[...]
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(x_smem, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    pl.run_scoped(body, plgpu.SMEM(x_gmem.shape, x_gmem.dtype), plgpu.Barrier())


# pallas-lint: probe(f32[64,128])
def scoped_buffers(x):
    return plgpu.kernel(_scoped, out_type=like(x))(x)


def expected_scoped_buffers(x):
    return -x


def _two_warpgroups(x_gmem, o_gmem, x_smem, arrived):
    own = lax.axis_index("wg")
    rows = pl.ds(own * 64, 64)
    plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem.at[own], arrived.at[own])
    plgpu.barrier_wait(arrived.at[own])
    x_smem[own] = x_smem[own] * 2
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(x_smem.at[own], o_gmem.at[rows])
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[128,128])
def two_warpgroups(x):
    return plgpu.kernel(
        _two_warpgroups,
        out_type=like(x),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((2, 64, 128), x.dtype), plgpu.Barrier(num_barriers=2)],
    )(x)


def expected_two_warpgroups(x):
    return x * 2


def _straight_from_memory(x_gmem, y_gmem, o_gmem):
    o_gmem[...] = x_gmem[...] + y_gmem[...]


# pallas-lint: probe(f32[128,128], f32[128,128])
def straight_from_memory(x, y):
    return plgpu.kernel(_straight_from_memory, out_type=like(x))(x, y)


def expected_straight_from_memory(x, y):
    return x + y


def _product(x_smem, y_smem):
    def body(total):
        plgpu.wgmma(total, x_smem, y_smem)
        return total[...]

    return pl.run_scoped(body, plgpu.ACC((x_smem.shape[0], y_smem.shape[1]), jnp.float32))


def _one_product(x_gmem, y_gmem, o_gmem, x_smem, y_smem, o_smem, arrived):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
    plgpu.copy_gmem_to_smem(y_gmem, y_smem, arrived)
    plgpu.barrier_wait(arrived)
    o_smem[...] = _product(x_smem, y_smem).astype(o_smem.dtype)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f16[64,64], f16[64,128])
def one_product(x, y):
    return plgpu.kernel(
        _one_product,
        out_type=like(x, (64, 128)),
        scratch_types=[
            plgpu.SMEM((64, 64), x.dtype, transforms=FOR_WGMMA),
            plgpu.SMEM((64, 128), y.dtype, transforms=FOR_WGMMA),
            plgpu.SMEM((64, 128), x.dtype, transforms=FOR_WGMMA),
            plgpu.Barrier(num_arrivals=2),
        ],
    )(x, y)


def expected_one_product(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def _matmul(x_gmem, y_gmem, o_gmem, o_smem, total, *, delay):
    i, j = lax.axis_index("i"), lax.axis_index("j")

    def step(_, x_smem, y_smem):
        plgpu.wgmma(total, x_smem, y_smem)
        plgpu.wgmma_wait(delay)

    plgpu.emit_pipeline(
        step,
        grid=(x_gmem.shape[1] // 64,),
        in_specs=[
            plgpu.BlockSpec((64, 64), lambda k: (i, k), transforms=FOR_WGMMA, delay_release=delay),
            plgpu.BlockSpec((64, 128), lambda k: (k, j), transforms=FOR_WGMMA, delay_release=delay),
        ],
        max_concurrent_steps=3,
    )(x_gmem, y_gmem)
    o_smem[...] = total[...].astype(o_smem.dtype)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem.at[pl.ds(i * 64, 64), pl.ds(j * 128, 128)])
    plgpu.wait_smem_to_gmem(0)


def launch_matmul(x, y, delay):
    return plgpu.kernel(
        functools.partial(_matmul, delay=delay),
        out_type=like(x, (x.shape[0], y.shape[1])),
        grid=(x.shape[0] // 64, y.shape[1] // 128),
        grid_names=("i", "j"),
        scratch_types=[
            plgpu.SMEM((64, 128), x.dtype, transforms=FOR_WGMMA),
            plgpu.ACC((64, 128), jnp.float32),
        ],
    )(x, y)


# pallas-lint: probe(f16[128,256], f16[256,256])
def matmul(x, y):
    return launch_matmul(x, y, delay=0)


def expected_matmul(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


# pallas-lint: probe(bf16[128,256], bf16[256,256])
def matmul_that_releases_late(x, y):
    return launch_matmul(x, y, delay=1)


def expected_matmul_that_releases_late(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def _specialised(x_gmem, y_gmem, o_gmem, o_smem):
    own = lax.axis_index("wg")
    columns = pl.ds(lax.axis_index("j") * 128, 128)

    def compute(run_pipeline):
        total = plgpu.ACC((64, 128), jnp.float32)

        def with_total(total):
            run_pipeline(total)
            o_smem[own] = total[...].astype(o_smem.dtype)

        pl.run_scoped(with_total, total)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_smem.at[own], o_gmem.at[pl.ds(own * 64, 64), columns])
        plgpu.wait_smem_to_gmem(0)

    def step(_, x_smem, y_smem, total):
        plgpu.wgmma(total, x_smem.at[pl.ds(own * 64, 64)], y_smem)
        plgpu.wgmma_wait(0)
        return total

    plgpu.emit_pipeline_warp_specialized(
        step,
        grid=(x_gmem.shape[1] // 64,),
        in_specs=[
            plgpu.BlockSpec((128, 64), lambda k: (0, k), transforms=FOR_WGMMA),
            plgpu.BlockSpec((64, 128), lambda k: (k, lax.axis_index("j")), transforms=FOR_WGMMA),
        ],
        memory_registers=40,
        wg_axis="wg",
        num_compute_wgs=2,
        max_concurrent_steps=2,
        compute_context=compute,
    )(x_gmem, y_gmem)


# pallas-lint: probe(f16[128,256], f16[256,256])
def warp_specialised_matmul(x, y):
    return plgpu.kernel(
        _specialised,
        out_type=like(x, (128, 256)),
        grid=(2,),
        grid_names=("j",),
        num_threads=3,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((2, 64, 128), x.dtype, transforms=FOR_WGMMA)],
    )(x, y)


def expected_warp_specialised_matmul(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


if jax.__version_info__ < (0, 11):

    def in_rows(ref):
        return plgpu.load(ref, (), layout=plgpu.Layout.WGMMA)

else:

    def in_rows(ref):
        return plgpu.load(ref, layout=plgpu.Layout.WGMMA)


def _softmax(x_gmem, o_gmem, x_smem, arrived):
    rows = pl.ds(lax.axis_index("rows") * 64, 64)
    plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
    plgpu.barrier_wait(arrived)
    x = in_rows(x_smem)
    most = lax.broadcast_in_dim(jnp.max(x, axis=1), x.shape, [0])
    e = jnp.exp(x - most)
    x_smem[...] = e / lax.broadcast_in_dim(jnp.sum(e, axis=1), x.shape, [0])
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(x_smem, o_gmem.at[rows])
    plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[128,128])
def softmax(x):
    return plgpu.kernel(
        _softmax,
        out_type=like(x),
        grid=(x.shape[0] // 64,),
        grid_names=("rows",),
        scratch_types=[plgpu.SMEM((64, 128), x.dtype, transforms=FOR_ROWS), plgpu.Barrier()],
    )(x)


def expected_softmax(x):
    return jax.nn.softmax(x, axis=1)


def _persistent(x_gmem, o_gmem, x_smem, arrived):
    @plgpu.nd_loop((x_gmem.shape[0] // 64,), collective_axes="sm")
    def _(loop):
        rows = pl.ds(loop.index[0] * 64, 64)
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
        plgpu.barrier_wait(arrived)
        x_smem[...] = x_smem[...] * x_smem[...]
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(x_smem, o_gmem.at[rows])
        plgpu.wait_smem_to_gmem(0)


# pallas-lint: probe(f32[512,128])
def loop_shared_by_the_grid(x):
    return plgpu.kernel(
        _persistent,
        out_type=like(x),
        grid=(3,),
        grid_names=("sm",),
        scratch_types=[plgpu.SMEM((64, 128), x.dtype), plgpu.Barrier()],
    )(x)


def expected_loop_shared_by_the_grid(x):
    return x * x


@functools.partial(
    plgpu.kernel,
    out_type=(jax.ShapeDtypeStruct((128, 128), jnp.float32), jax.ShapeDtypeStruct((128, 128), jnp.float32)),
)
def _two_results(x_gmem, sum_gmem, square_gmem):
    x = x_gmem[...]
    sum_gmem[...] = x + x
    square_gmem[...] = x * x


# pallas-lint: probe(f32[128,128])
def several_outputs_of_a_decorated_kernel(x):
    return _two_results(x)


def expected_several_outputs_of_a_decorated_kernel(x):
    return x + x, x * x
