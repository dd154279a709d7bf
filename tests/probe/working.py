"""Kernels that work on their devices, each hard to judge in one way; run only by the probe's worker."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

Params = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
ANY = getattr(pl, "ANY", None) or pltpu.TPUMemorySpace.ANY
ROWS = pl.BlockSpec((8, 128), lambda i, *_: (i, 0))
LONG = pl.BlockSpec((16, 128), lambda i, *_: (i, 0))


def like(x, shape=None):
    return jax.ShapeDtypeStruct(shape or x.shape, x.dtype)


def _log(x_ref, o_ref):
    o_ref[...] = jnp.log(x_ref[...])


def of_positive_numbers(x):
    return pl.pallas_call(_log, out_shape=like(x))(x)


def _overflow(x_ref, o_ref):
    o_ref[...] = jnp.exp(x_ref[...] * 100)


def of_small_numbers(x):
    return pl.pallas_call(_overflow, out_shape=like(x))(x)


def _double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def partial_block_in_no_result(x):
    return pl.pallas_call(_double, grid=(pl.cdiv(x.shape[0], 16),), in_specs=[LONG], out_specs=LONG, out_shape=like(x))(
        x
    )


def partial_block_masked(x):
    rows = x.shape[0]

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        at = pl.program_id(0) * 16 + lax.broadcasted_iota(jnp.int32, (16, 128), 0)
        o_ref[...] += jnp.sum(jnp.where(at < rows, x_ref[...], 0.0), axis=0, keepdims=True)

    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(rows, 16),),
        in_specs=[LONG],
        out_specs=pl.BlockSpec((1, 128), lambda i: (0, 0)),
        out_shape=like(x, (1, 128)),
        compiler_params=Params(dimension_semantics=("arbitrary",)),
    )(x)


def _second(x_ref, y_ref, o_ref):
    o_ref[...] = y_ref[...]


def other_blocks_from_the_alias(x, y):
    every_other = pl.BlockSpec((8, 128), lambda i: (2 * i, 0))
    return pl.pallas_call(
        _second,
        grid=(2,),
        in_specs=[every_other, ROWS],
        out_specs=every_other,
        out_shape=like(x),
        input_output_aliases={0: 0},
    )(x, y)


def _moved(at_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


def _move(at, x, source, target):
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[source], out_specs=target)
    return pl.pallas_call(_moved, grid_spec=spec, out_shape=like(x))(at, x)


def rows_by_index(at, x):
    return _move(at, x, ROWS, pl.BlockSpec((8, 128), lambda i, at: (at[i], 0)))


def divided_by_a_length(length, x):
    def kernel(length_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] / length_ref[0].astype(jnp.float32)

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,), in_specs=[ROWS], out_specs=ROWS)
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=like(x))(length, x)


def page_counted_from_one(page, x):
    def kernel(page_ref, x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(page_ref[0] * 8 - 8, 8), :]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1,),
        in_specs=[pl.BlockSpec(x.shape, lambda i, *_: (0, 0))],
        out_specs=ROWS,
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=like(x, (8, 128)))(page, x)


def grid_from_an_argument(count, x):
    @jax.jit
    def launched(count, x):
        return pl.pallas_call(_double, grid=(count,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x))(x)

    return launched(count, x)


def _upper(x_ref, o_ref):
    o_ref[0:8, :] = x_ref[...]


def padding_cut_off(x):
    return pl.pallas_call(_upper, out_shape=like(x, (16, 128)))(x)[:8]


def batched(x):
    one = pl.BlockSpec((8, 128), lambda i: (0, 0))
    return jax.vmap(
        pl.pallas_call(
            _double,
            grid=(1,),
            in_specs=[one],
            out_specs=one,
            out_shape=like(x, x.shape[1:]),
            compiler_params=Params(dimension_semantics=("arbitrary",)),
        )
    )(x)


def copies_in_flight(x):
    count = x.shape[0] // 8

    def kernel(x_ref, o_ref, buffer, done):
        def copy(at, slot):
            return pltpu.make_async_copy(x_ref.at[pl.ds(at * 8, 8)], buffer.at[slot], done.at[slot])

        copy(0, 0).start()
        o_ref[...] = jnp.zeros_like(o_ref)

        def body(at, _):
            slot = lax.rem(at, 2)

            @pl.when(at + 1 < count)
            def _():
                copy(at + 1, 1 - slot).start()

            copy(at, slot).wait()
            o_ref[...] += buffer[slot]

        lax.fori_loop(0, count, body, None)

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=ANY)],
        out_shape=like(x, (8, 128)),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), x.dtype), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def pipeline(x):
    def kernel(x_ref, o_ref):
        pltpu.emit_pipeline(_double, grid=(4,), in_specs=[ROWS], out_specs=[ROWS])(x_ref, o_ref)

    anywhere = pl.BlockSpec(memory_space=ANY)
    return pl.pallas_call(kernel, in_specs=[anywhere], out_specs=anywhere, out_shape=like(x))(x)


def to_the_neighbour(x):
    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
    ids = getattr(pl, "DeviceIdType", None) or pltpu.DeviceIdType
    anywhere = pl.BlockSpec(memory_space=ANY)

    def kernel(x_ref, o_ref, sent, received):
        neighbour = lax.rem(lax.axis_index("d") + 1, 4)
        copy = pltpu.make_async_remote_copy(
            x_ref, o_ref, sent, received, device_id=(neighbour,), device_id_type=ids.MESH
        )
        copy.start()
        copy.wait()

    def launched(part):
        return pl.pallas_call(
            kernel,
            in_specs=[anywhere],
            out_specs=anywhere,
            out_shape=like(part),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
        )(part)

    if hasattr(jax, "shard_map"):
        return jax.shard_map(launched, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)(x)
    from jax.experimental.shard_map import shard_map

    return shard_map(launched, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_rep=False)(x)
