"""Working TPU kernels inside of `shard_map`: on meshes of every kind, between collectives. For jax from 0.10.2 on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
PARAMS = pltpu.CompilerParams(dimension_semantics=("arbitrary",))
MEETING = pltpu.CompilerParams(collective_id=0)


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def line_of_devices(count=4):
    return Mesh(np.array(jax.devices()[:count]), ("x",))


def on_each(function, mesh, spec, out_spec=None):
    out_spec = spec if out_spec is None else out_spec
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=out_spec, check_vma=False))


def _tripled(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 3.0


def tripled(part):
    return pl.pallas_call(
        _tripled,
        grid=(part.shape[0] // 8,),
        in_specs=[ROWS],
        out_specs=ROWS,
        out_shape=like(part),
        compiler_params=PARAMS,
    )(part)


# pallas-lint: probe(f32[64,128])
def rows_of_each_device(x):
    return on_each(tripled, line_of_devices(), P("x"))(x)


def expected_rows_of_each_device(x):
    return x * 3.0


# pallas-lint: probe(f32[32,256])
def blocks_of_a_square_of_devices(x):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
    return on_each(tripled, mesh, P("x", "y"))(x)


def expected_blocks_of_a_square_of_devices(x):
    return x * 3.0


def _summed(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def summed(part):
    return pl.pallas_call(
        _summed,
        grid=(part.shape[0] // 8,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=like(part, (8, 128)),
        compiler_params=PARAMS,
    )(part)


# pallas-lint: probe(f32[64,128])
def sum_over_all_devices(x):
    return on_each(lambda part: lax.psum(summed(part), "x"), line_of_devices(), P("x"), P())(x)


def expected_sum_over_all_devices(x):
    return jnp.sum(x.reshape(-1, 8, 128), axis=0)


# pallas-lint: probe(f32[32,128])
def gathered_before_and_scattered_after(x):
    def local(part):
        return lax.psum_scatter(tripled(lax.all_gather(part, "x", tiled=True)), "x", tiled=True)

    return on_each(local, line_of_devices(), P("x"))(x)


def expected_gathered_before_and_scattered_after(x):
    return x * 12.0


# pallas-lint: probe(f32[32,128])
def launched_in_a_loop_of_each_device(x):
    return on_each(lambda part: lax.fori_loop(0, 3, lambda _, each: tripled(each), part), line_of_devices(), P("x"))(x)


def expected_launched_in_a_loop_of_each_device(x):
    return x * 27.0


# pallas-lint: probe(f32[32,128])
def device_number_as_an_operand(x):
    def _shifted(number_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + number_ref[0].astype(jnp.float32)

    def local(part):
        return pl.pallas_call(
            _shifted,
            in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
            out_shape=like(part),
            compiler_params=pltpu.CompilerParams(),
        )(lax.axis_index("x").reshape(1), part)

    return on_each(local, line_of_devices(), P("x"))(x)


def expected_device_number_as_an_operand(x):
    return x + jnp.repeat(jnp.arange(4.0), 8)[:, None]


# Meshes with explicit axes, as `jax.make_mesh` gives them: the types of arrays say how they are sharded.


def explicit_mesh(shape, names):
    devices = jax.devices()[: int(np.prod(shape))]
    return jax.make_mesh(shape, names, axis_types=(AxisType.Explicit,) * len(names), devices=devices)


def put(x, mesh, *names):
    return jax.device_put(x, NamedSharding(mesh, P(*names)))


# pallas-lint: probe(f32[32,128])
def argument_that_the_caller_has_sharded(x):
    mesh = explicit_mesh((4,), ("x",))
    return jax.shard_map(tripled, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=False)(x)


def expected_argument_that_the_caller_has_sharded(x):
    return x * 3.0


def case_argument_that_the_caller_has_sharded():
    mesh = explicit_mesh((4,), ("x",))
    x = jax.random.normal(jax.random.key(0), (32, 128))
    return (put(x, mesh, "x", None),), expected_argument_that_the_caller_has_sharded(x)


# pallas-lint: probe(f32[32,256])
def argument_sharded_over_two_explicit_axes(x):
    mesh = explicit_mesh((2, 2), ("rows", "columns"))
    spec = P("rows", "columns")
    return jax.shard_map(tripled, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)


def expected_argument_sharded_over_two_explicit_axes(x):
    return x * 3.0


def case_argument_sharded_over_two_explicit_axes():
    mesh = explicit_mesh((2, 2), ("rows", "columns"))
    x = jax.random.normal(jax.random.key(1), (32, 256))
    return (put(x, mesh, "rows", "columns"),), expected_argument_sharded_over_two_explicit_axes(x)


def _product(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


# pallas-lint: probe(f32[32,128], f32[128,128])
def sharded_and_replicated_arguments(x, weights):
    mesh = explicit_mesh((4,), ("x",))

    def local(part, weights):
        return pl.pallas_call(_product, out_shape=like(part), compiler_params=pltpu.CompilerParams())(part, weights)

    return jax.shard_map(
        local, mesh=mesh, in_specs=(P("x", None), P(None, None)), out_specs=P("x", None), check_vma=False
    )(x, weights)


def expected_sharded_and_replicated_arguments(x, weights):
    return jnp.dot(x, weights, preferred_element_type=jnp.float32)


def case_sharded_and_replicated_arguments():
    mesh = explicit_mesh((4,), ("x",))
    x, weights = jax.random.normal(jax.random.key(3), (32, 128)), jax.random.normal(jax.random.key(4), (128, 128))
    wanted = expected_sharded_and_replicated_arguments(x, weights)
    return (put(x, mesh, "x", None), put(weights, mesh, None, None)), wanted


# pallas-lint: probe(f32[32,128])
def resharded_inside_of_the_function(x):
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    sharded = lax.with_sharding_constraint(x + 1.0, NamedSharding(mesh, P("x")))
    return on_each(tripled, mesh, P("x"))(sharded)


def expected_resharded_inside_of_the_function(x):
    return (x + 1.0) * 3.0


# Kernels that copy from device to device.


def _meet(neighbours):
    barrier = pltpu.get_barrier_semaphore()
    for neighbour in neighbours:
        pl.semaphore_signal(barrier, 1, device_id={"x": neighbour})
    pl.semaphore_wait(barrier, len(neighbours))


def _pass_on(x_ref, o_ref, sent, received):
    own, count = lax.axis_index("x"), lax.axis_size("x")
    right, left = lax.rem(own + 1, count), lax.rem(own + count - 1, count)
    _meet([left, right])
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id={"x": right})
    copy.start()
    copy.wait()


def passed_on(part):
    return pl.pallas_call(
        _pass_on,
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        out_shape=like(part),
        scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
        compiler_params=MEETING,
    )(part)


# pallas-lint: probe(f32[32,128])
def passed_to_the_right_neighbour(x):
    return on_each(passed_on, line_of_devices(), P("x"))(x)


def expected_passed_to_the_right_neighbour(x):
    return jnp.roll(x, 8, axis=0)


# pallas-lint: probe(f32[32,128])
def passed_on_over_an_explicit_axis(x):
    mesh = explicit_mesh((4,), ("x",))
    return jax.shard_map(passed_on, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=False)(x)


def expected_passed_on_over_an_explicit_axis(x):
    return jnp.roll(x, 8, axis=0)


def case_passed_on_over_an_explicit_axis():
    mesh = explicit_mesh((4,), ("x",))
    x = jax.random.normal(jax.random.key(2), (32, 128))
    return (put(x, mesh, "x", None),), expected_passed_on_over_an_explicit_axis(x)


def _gather_around(x_ref, o_ref, own_done, sent, received):
    own, count = lax.axis_index("x"), lax.axis_size("x")
    right, left = lax.rem(own + 1, count), lax.rem(own + count - 1, count)
    _meet([left, right])
    pltpu.async_copy(x_ref, o_ref.at[own], own_done).wait()
    for step in range(3):
        slot = lax.rem(own + count - step, count)
        copy = pltpu.make_async_remote_copy(
            o_ref.at[slot],
            o_ref.at[slot],
            sent.at[step],
            received.at[step],
            device_id={"x": right},
        )
        copy.start()
        copy.wait()


# pallas-lint: probe(f32[32,128])
def gathered_around_a_ring(x):
    def local(part):
        return pl.pallas_call(
            _gather_around,
            in_specs=[ANYWHERE],
            out_specs=ANYWHERE,
            out_shape=like(part, (4, 8, 128)),
            scratch_shapes=[pltpu.SemaphoreType.DMA, *[pltpu.SemaphoreType.DMA((3,))] * 2],
            compiler_params=MEETING,
        )(part)

    return on_each(local, line_of_devices(), P("x"))(x)


def expected_gathered_around_a_ring(x):
    return jnp.tile(x.reshape(4, 8, 128), (4, 1, 1))


def _exchange(x_ref, o_ref, sent, received):
    other = {"x": lax.axis_index("x"), "y": 1 - lax.axis_index("y")}
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=other)
    pl.semaphore_wait(barrier, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=other)
    copy.start()
    copy.wait()


# pallas-lint: probe(f32[32,128])
def exchanged_along_one_axis_of_two(x):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))

    def local(part):
        return pl.pallas_call(
            _exchange,
            in_specs=[ANYWHERE],
            out_specs=ANYWHERE,
            out_shape=like(part),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
            compiler_params=MEETING,
        )(part)

    return on_each(local, mesh, P(("x", "y")))(x)


def expected_exchanged_along_one_axis_of_two(x):
    return x.reshape(2, 2, 8, 128)[:, ::-1].reshape(32, 128)


# pallas-lint: probe(f32[32,128])
@functools.partial(jax.jit)
def part_of_a_larger_program(x):
    scale = jnp.mean(x, axis=0, keepdims=True)
    own = on_each(tripled, line_of_devices(), P("x"))(x - scale)
    return jax.nn.relu(own) + scale


def expected_part_of_a_larger_program(x):
    scale = jnp.mean(x, axis=0, keepdims=True)
    return jax.nn.relu((x - scale) * 3.0) + scale
