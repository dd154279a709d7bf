"""Working TPU kernels, for jax from 0.8.3 on."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


def like(x, shape=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype)


def _double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def _matmul(x_ref, y_ref, o_ref, total):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = total[...].astype(o_ref.dtype)


# pallas-lint: probe(bf16[256,256], bf16[256,256])
def matmul_with_scratch(x, y):
    return pl.pallas_call(
        _matmul,
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=like(x),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


def expected_matmul_with_scratch(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def _quantised(x_ref, y_ref, scale_ref, o_ref):
    product = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.int32)
    o_ref[...] = product.astype(jnp.float32) * scale_ref[0]


# pallas-lint: probe(i8[32,128], i8[128,128], f32[1])
def quantised_matmul(x, y, scale):
    whole = pl.BlockSpec(memory_space=pltpu.VMEM)
    return pl.pallas_call(
        _quantised,
        in_specs=[whole, whole, pl.BlockSpec(memory_space=pltpu.SMEM)],
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(x, y, scale)


def expected_quantised_matmul(x, y, scale):
    return jnp.dot(x, y, preferred_element_type=jnp.int32).astype(jnp.float32) * scale[0]


def _prefetched(rows_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


# pallas-lint: probe(i32[4]=[3,1,0,2], f32[32,128])
def gather_by_prefetch(rows, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (rows[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, rows: (i, 0)),
    )
    return pl.pallas_call(_prefetched, grid_spec=spec, out_shape=like(x))(rows, x)


def expected_gather_by_prefetch(rows, x):
    return x.reshape(4, 8, 128)[rows].reshape(32, 128)


def _copied(x_ref, o_ref, buffer, done):
    def copy(at, slot):
        return pltpu.make_async_copy(x_ref.at[pl.ds(at * 8, 8)], buffer.at[slot], done.at[slot])

    steps = x_ref.shape[0] // 8
    copy(0, 0).start()
    o_ref[...] = jnp.zeros_like(o_ref)

    @pl.loop(0, steps)
    def _(at):
        slot = lax.rem(at, 2)

        @pl.when(at + 1 < steps)
        def _():
            copy(at + 1, 1 - slot).start()

        copy(at, slot).wait()
        o_ref[...] += buffer[slot]


# pallas-lint: probe(f32[32,128])
def double_buffered(x):
    return pl.pallas_call(
        _copied,
        in_specs=[ANYWHERE],
        out_shape=like(x, (8, 128)),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def expected_double_buffered(x):
    return jnp.sum(x.reshape(4, 8, 128), axis=0)


def _scoped(x_ref, o_ref):
    def body(buffer, done):
        copy = pltpu.make_async_copy(x_ref, buffer, done)
        copy.start()
        copy.wait()
        o_ref[...] = buffer[...] + 1

    pl.run_scoped(body, pltpu.VMEM((32, 128), jnp.float32), pltpu.SemaphoreType.DMA)


# pallas-lint: probe(f32[32,128])
def scoped_buffers(x):
    return pl.pallas_call(_scoped, in_specs=[ANYWHERE], out_shape=like(x))(x)


def expected_scoped_buffers(x):
    return x + 1


def _pipelined(x_ref, o_ref):
    pltpu.emit_pipeline(_double, grid=(4,), in_specs=[ROWS], out_specs=[ROWS])(x_ref, o_ref)


# pallas-lint: probe(f32[32,128])
def pipeline(x):
    return pl.pallas_call(_pipelined, in_specs=[ANYWHERE], out_specs=ANYWHERE, out_shape=like(x))(x)


def expected_pipeline(x):
    return x * 2


def _pipeline_of_a_part(x_ref, o_ref):
    outer = pl.program_id(0)
    block = pl.BlockSpec((8, 128), lambda j: (outer * 2 + j, 0))
    pltpu.emit_pipeline(_double, grid=(2,), in_specs=[block], out_specs=[block])(x_ref, o_ref)


# pallas-lint: probe(f32[64,128])
def pipeline_that_knows_the_outer_grid(x):
    return pl.pallas_call(_pipeline_of_a_part, grid=(4,), in_specs=[ANYWHERE], out_specs=ANYWHERE, out_shape=like(x))(x)


def expected_pipeline_that_knows_the_outer_grid(x):
    return x * 2


def _scaled(scale_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...] * scale_ref[pl.program_id(0)]


# pallas-lint: probe(f32[4], f32[32,128])
def scalars_in_smem(scale, x):
    return pl.pallas_call(
        _scaled,
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), ROWS],
        out_specs=ROWS,
        out_shape=like(x),
    )(scale, x)


def expected_scalars_in_smem(scale, x):
    return x * jnp.repeat(scale, 8)[:, None]


def _attention(q_ref, k_ref, v_ref, o_ref, most, total, values):
    @pl.when(pl.program_id(1) == 0)
    def _():
        most[...] = jnp.full_like(most, -jnp.inf)
        total[...] = jnp.zeros_like(total)
        values[...] = jnp.zeros_like(values)

    scores = lax.dot_general(q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
    now = jnp.maximum(most[...], jnp.max(scores, axis=1, keepdims=True))
    weights = jnp.exp(scores - now[:, :1])
    fade = jnp.exp(most[...] - now)
    total[...] = total[...] * fade + jnp.sum(weights, axis=1, keepdims=True)
    values[...] = values[...] * fade + jnp.dot(weights, v_ref[...], preferred_element_type=jnp.float32)
    most[...] = now

    @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
    def _():
        o_ref[...] = values[...] / total[...]


# pallas-lint: probe(f32[256,128], f32[256,128], f32[256,128])
def flash_attention(q, k, v):
    return pl.pallas_call(
        _attention,
        grid=(2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j: (i, 0)),
            pl.BlockSpec((128, 128), lambda i, j: (j, 0)),
            pl.BlockSpec((128, 128), lambda i, j: (j, 0)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, 0)),
        out_shape=like(q),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)] * 3,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(q, k, v)


def expected_flash_attention(q, k, v):
    return jax.nn.softmax(q @ k.T, axis=1) @ v


def _shifted(x_ref, o_ref):
    o_ref[...] = pltpu.roll(x_ref[...], 1, 1)


# pallas-lint: probe(f32[32,128])
def rolled(x):
    return pl.pallas_call(
        _shifted, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x), compiler_params=pltpu.CompilerParams()
    )(x)


def expected_rolled(x):
    return jnp.roll(x, 1, axis=1)


def _second(x_ref, y_ref, o_ref):
    o_ref[...] = y_ref[...]


# pallas-lint: probe(f32[32,128], f32[16,128])
def other_blocks_from_the_alias(x, y):
    every_other = pl.BlockSpec((8, 128), lambda i: (2 * i, 0))
    return pl.pallas_call(
        _second,
        grid=(2,),
        in_specs=[every_other, ROWS],
        out_specs=every_other,
        out_shape=like(x),
        input_output_aliases={0: 0},
        compiler_params=pltpu.CompilerParams(),
    )(x, y)


def expected_other_blocks_from_the_alias(x, y):
    return x.reshape(2, 2, 8, 128).at[:, 0].set(y.reshape(2, 8, 128)).reshape(32, 128)


def _windows(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


# pallas-lint: probe(f32[40,128])
def overlapping_windows(x):
    return pl.pallas_call(
        _windows,
        grid=(3,),
        in_specs=[pl.BlockSpec((pl.Element(16), pl.Element(128)), lambda i: (8 * i, 0))],
        out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
        out_shape=like(x, (48, 128)),
        compiler_params=pltpu.CompilerParams(),
    )(x)


def expected_overlapping_windows(x):
    return jnp.concatenate([x[8 * i : 8 * i + 16] for i in range(3)]) * 2
