"""Working TPU kernels on the cores of a chip and on several devices, with random numbers, for jax from 0.10.2 on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
# The mesh of a chip's cores, by the name that it has in this jax.
make_mesh = pltpu.create_tensorcore_mesh if jax.__version_info__ < (0, 11) else pltpu.TensorCoreMesh
CORES = make_mesh(axis_name="core", num_cores=1)


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _on_a_core(x_hbm, o_hbm, buffer, done):
    rows = x_hbm.shape[0] // lax.axis_size("core")
    mine = pl.ds(lax.axis_index("core") * rows, rows)
    pltpu.async_copy(x_hbm.at[mine], buffer, done).wait()
    buffer[...] = buffer[...] * 2
    pltpu.async_copy(buffer, o_hbm.at[mine], done).wait()


# pallas-lint: probe(f32[32,128])
def kernel_on_cores(x):
    return pl.kernel(
        _on_a_core,
        out_type=like(x),
        mesh=CORES,
        scratch_types=[pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA],
    )(x)


def expected_kernel_on_cores(x):
    return x * 2


def _pipeline_on_a_core(x_hbm, o_hbm):
    def step(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    pltpu.emit_pipeline(
        step,
        grid=(x_hbm.shape[0] // 8,),
        in_specs=[ROWS],
        out_specs=[ROWS],
        core_axis_name="core",
        dimension_semantics=(pltpu.PARALLEL,),
    )(x_hbm, o_hbm)


# pallas-lint: probe(f32[64,128])
def pipeline_shared_by_cores(x):
    return pl.kernel(_pipeline_on_a_core, out_type=like(x), mesh=CORES)(x)


def expected_pipeline_shared_by_cores(x):
    return x + 1


def _decorated(x):
    @functools.partial(
        pl.kernel,
        out_type=like(x),
        mesh=CORES,
        scratch_types={"buffer": pltpu.VMEM((8, 128), x.dtype), "done": pltpu.SemaphoreType.DMA},
    )
    def kernel(x_hbm, o_hbm, *, buffer, done):
        @pl.loop(0, x_hbm.shape[0] // 8)
        def _(step):
            rows = pl.ds(pl.multiple_of(step * 8, 8), 8)
            pltpu.async_copy(x_hbm.at[rows], buffer, done).wait()
            buffer[...] = -buffer[...]
            pltpu.async_copy(buffer, o_hbm.at[rows], done).wait()

    return kernel(x)


# pallas-lint: probe(f32[32,128])
def scratch_by_name(x):
    return _decorated(x)


def expected_scratch_by_name(x):
    return -x


def _double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


# pallas-lint: probe(f32[32,128])
def sharded_without_check(x):
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=False)
    def run(x):
        return pl.pallas_call(
            _double,
            grid=(x.shape[0] // 8,),
            in_specs=[ROWS],
            out_specs=ROWS,
            out_shape=like(x),
            compiler_params=pltpu.CompilerParams(),
        )(x)

    return run(x)


def expected_sharded_without_check(x):
    return x * 2


# pallas-lint: probe(f32[32,128])
def sharded_with_its_axes(x):
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",))

    def run(x):
        varying = jax.sharding.ManualAxisType(varying=frozenset({"x"}))
        out = jax.ShapeDtypeStruct(x.shape, x.dtype, manual_axis_type=varying)
        return pl.pallas_call(
            _double,
            grid=(x.shape[0] // 8,),
            in_specs=[ROWS],
            out_specs=ROWS,
            out_shape=out,
            compiler_params=pltpu.CompilerParams(),
        )(x)

    return jax.jit(jax.shard_map(run, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)))(x)


def expected_sharded_with_its_axes(x):
    return x * 2


def _dropped(seed_ref, x_ref, o_ref, *, rate):
    pltpu.prng_seed(seed_ref[0], pl.program_id(0))
    bits = pltpu.bitcast(pltpu.prng_random_bits(x_ref.shape), jnp.uint32)
    kept = bits >= jnp.uint32(int(rate * 2**32))
    o_ref[...] = jnp.where(kept, x_ref[...] / (1 - rate), 0.0)


# pallas-lint: probe(i32[1], f32[32,128])
def dropout_of_nothing(seed, x):
    return pl.pallas_call(
        functools.partial(_dropped, rate=0.0),
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), ROWS],
        out_specs=ROWS,
        out_shape=like(x),
    )(seed, x)


def expected_dropout_of_nothing(seed, x):
    return x


def _noisy(seed_ref, x_ref, o_ref):
    pltpu.prng_seed(seed_ref[0] + pl.program_id(0))
    noise = pltpu.stateful_uniform(shape=x_ref.shape, dtype=jnp.float32, minval=0.0, maxval=1.0)
    o_ref[...] = jnp.floor(x_ref[...] * 0 + noise)


# pallas-lint: probe(i32[1], f32[32,128])
def floor_of_uniform_numbers(seed, x):
    return pl.pallas_call(
        _noisy,
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), ROWS],
        out_specs=ROWS,
        out_shape=like(x),
    )(seed, x)


def expected_floor_of_uniform_numbers(seed, x):
    return jnp.zeros_like(x)


def _printed(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        pl.debug_print("the first block")

    pl.debug_print("step {}", pl.program_id(0))
    o_ref[...] = x_ref[...]


# pallas-lint: probe(f32[32,128])
def steps_that_are_printed(x):
    return pl.pallas_call(
        _printed,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ROWS,
        out_shape=like(x),
        compiler_params=pltpu.CompilerParams(),
    )(x)


def expected_steps_that_are_printed(x):
    return x


def _small_floats(x_ref, y_ref, scale_ref, o_ref):
    product = jnp.dot(
        x_ref[...].astype(jnp.bfloat16), y_ref[...].astype(jnp.bfloat16), preferred_element_type=jnp.float32
    )
    o_ref[...] = product * scale_ref[...]


# pallas-lint: probe(f8_e4m3fn[32,128], f8_e4m3fn[128,128], f32[1,128])
def matmul_of_small_floats(x, y, scale):
    return pl.pallas_call(
        _small_floats,
        grid=(1,),
        in_specs=[
            pl.BlockSpec((32, 128), lambda i: (i, 0)),
            pl.BlockSpec((128, 128), lambda i: (0, 0)),
            pl.BlockSpec((1, 128), lambda i: (0, 0)),
        ],
        out_specs=pl.BlockSpec((32, 128), lambda i: (i, 0)),
        out_shape=like(x, dtype=jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x, y, scale)


def expected_matmul_of_small_floats(x, y, scale):
    return jnp.dot(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), preferred_element_type=jnp.float32) * scale


def _rows_quantised(x_ref, o_ref, scale_ref):
    x = x_ref[...]
    scale = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127.0
    o_ref[...] = jnp.round(x / scale).astype(jnp.int8)
    scale_ref[...] = scale


# pallas-lint: probe(f32[64,128])
def quantised_by_rows(x):
    block = pl.BlockSpec((32, 128), lambda i: (i, 0))
    return pl.pallas_call(
        _rows_quantised,
        grid=(2,),
        in_specs=[block],
        out_specs=[block, pl.BlockSpec((32, 1), lambda i: (i, 0))],
        out_shape=[like(x, dtype=jnp.int8), like(x, (64, 1))],
        compiler_params=pltpu.CompilerParams(),
    )(x)


def expected_quantised_by_rows(x):
    scale = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127.0
    return [jnp.round(x / scale).astype(jnp.int8), scale]


if hasattr(pltpu, "run_on_first_core"):
    on_first_core = pltpu.run_on_first_core
else:

    def on_first_core(axis):
        return pl.when(lax.axis_index(axis) == 0)


def _on_the_first_core(x_hbm, o_hbm):
    @on_first_core("core")
    def _():
        pltpu.sync_copy(x_hbm, o_hbm)


# pallas-lint: probe(f32[32,128])
def copy_by_the_first_core(x):
    return pl.kernel(_on_the_first_core, out_type=like(x), mesh=CORES)(x)


def expected_copy_by_the_first_core(x):
    return x


def _doubled_in_scope(x_hbm, o_hbm):
    @pl.with_scoped(pltpu.VMEM((32, 128), jnp.float32))
    def doubled(source, buffer):
        pltpu.sync_copy(source, buffer)
        buffer[...] = buffer[...] * 2
        pltpu.sync_copy(buffer, o_hbm)

    doubled(x_hbm)


if hasattr(pl, "with_scoped"):
    # pallas-lint: probe(f32[32,128])
    def doubled_in_a_scope(x):
        return pl.kernel(_doubled_in_scope, out_type=like(x), mesh=CORES)(x)

    def expected_doubled_in_a_scope(x):
        return x * 2
