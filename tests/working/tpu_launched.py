"""Working TPU kernels by the way that they are launched: transformed, prefetched, aliased. From jax 0.10.2 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((8, 128), lambda i, *_: (i, 0))
PARAMS = pltpu.CompilerParams(dimension_semantics=("arbitrary",))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _halved(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 0.5


def halved(x, **options):
    return pl.pallas_call(
        _halved,
        grid=(x.shape[0] // 8,),
        in_specs=[ROWS],
        out_specs=ROWS,
        out_shape=like(x),
        compiler_params=PARAMS,
        **options,
    )(x)


# pallas-lint: probe(f32[3,16,128])
def vmap_of_jit(x):
    return jax.vmap(jax.jit(halved))(x)


def expected_vmap_of_jit(x):
    return x * 0.5


# pallas-lint: probe(f32[2,3,8,128])
def vmap_of_vmap(x):
    return jax.vmap(jax.vmap(halved))(x)


def expected_vmap_of_vmap(x):
    return x * 0.5


# pallas-lint: probe(f32[3,16,128])
def scan_over_launches(x):
    return lax.scan(lambda total, each: (total + halved(each), halved(total)), jnp.zeros_like(x[0]), x)


def expected_scan_over_launches(x):
    return lax.scan(lambda total, each: (total + each * 0.5, total * 0.5), jnp.zeros_like(x[0]), x)


@jax.custom_jvp
def squared(x):
    return pl.pallas_call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] * x_ref[...]), out_shape=like(x))(x)


@squared.defjvp
def _squared_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return squared(x), 2.0 * x * t


# pallas-lint: probe(f32[8,128])
def gradient_of_a_custom_jvp(x):
    return jax.grad(lambda x: jnp.sum(squared(x)))(x)


def expected_gradient_of_a_custom_jvp(x):
    return 2.0 * x


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def scaled(x, factor):
    return halved(x) * factor


def _scaled_backward(factor, residuals, g):
    del residuals
    return (halved(g) * factor,)


scaled.defvjp(lambda x, factor: (scaled(x, factor), None), _scaled_backward)


# pallas-lint: probe(f32[16,128])
def value_and_gradient_of_a_custom_vjp(x):
    return jax.value_and_grad(lambda x: jnp.sum(scaled(x, 4.0)))(x)


def expected_value_and_gradient_of_a_custom_vjp(x):
    return jnp.sum(x * 2.0), jnp.full_like(x, 2.0)


# pallas-lint: probe(f32[16,128])
def rematerialised(x):
    return jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda x: jnp.sin(scaled(x, 2.0)))(x)))(x)


def expected_rematerialised(x):
    return jnp.cos(x)


# Grids and blocks that operands decide.


# pallas-lint: probe(i32[]=2, f32[32,128])
def first_blocks_of_a_dynamic_grid(count, x):
    def _added(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    @jax.jit
    def launched(count, x):
        return pl.pallas_call(
            _added,
            grid=(count,),
            in_specs=[ROWS],
            out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
            out_shape=like(x, (8, 128)),
            compiler_params=PARAMS,
        )(x)

    return launched(count, x)


def expected_first_blocks_of_a_dynamic_grid(count, x):
    blocks = x.reshape(4, 8, 128)
    return jnp.sum(jnp.where(jnp.arange(4)[:, None, None] < count, blocks, 0.0), axis=0)


def _grouped(group_ref, x_ref, y_ref, o_ref):
    del group_ref
    o_ref[...] = jnp.dot(x_ref[...], y_ref[0], preferred_element_type=jnp.float32)


# pallas-lint: probe(i32[4]=[0,0,1,2], f32[32,128], f32[3,128,128])
def matmul_of_groups(groups, x, weights):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[ROWS, pl.BlockSpec((1, 128, 128), lambda i, groups: (groups[i], 0, 0))],
        out_specs=ROWS,
    )
    return pl.pallas_call(_grouped, grid_spec=spec, out_shape=like(x), compiler_params=PARAMS)(groups, x, weights)


def expected_matmul_of_groups(groups, x, weights):
    products = jnp.einsum("grk,gkc->grc", x.reshape(4, 8, 128), weights[groups])
    return products.reshape(32, 128)


def _kept_by_order(order_ref, x_ref, old_ref, o_ref):
    del order_ref, old_ref
    o_ref[...] = x_ref[...]


# pallas-lint: probe(i32[2]=[3,1], f32[16,128], f32[32,128])
def blocks_scattered_into_an_alias(order, x, old):
    target = pl.BlockSpec((8, 128), lambda i, order: (order[i], 0))
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[ROWS, target], out_specs=target)
    return pl.pallas_call(
        _kept_by_order, grid_spec=spec, out_shape=like(old), input_output_aliases={2: 0}, compiler_params=PARAMS
    )(order, x, old)


def expected_blocks_scattered_into_an_alias(order, x, old):
    return old.reshape(4, 8, 128).at[order].set(x.reshape(2, 8, 128)).reshape(32, 128)


# Launches that ask for an interpreter themselves.


# pallas-lint: probe(f32[16,128])
def in_the_interpreter_of_tpus(x):
    return halved(x, interpret=pltpu.InterpretParams())


def expected_in_the_interpreter_of_tpus(x):
    return x * 0.5


# pallas-lint: probe(f32[16,128])
def in_the_interpreter_that_looks_for_races(x):
    return halved(x, interpret=pltpu.InterpretParams(detect_races=True, uninitialized_memory="zero"))


def expected_in_the_interpreter_that_looks_for_races(x):
    return x * 0.5


# pallas-lint: probe(f32[16,128])
def interpreted_by_argument(x):
    return halved(x, interpret=True)


def expected_interpreted_by_argument(x):
    return x * 0.5


# Pipelines inside of kernels.


def _two_pipelines(x_ref, y_ref, o_ref, total):
    def add(x_ref):
        total[...] += x_ref[...]

    total[...] = jnp.zeros_like(total)
    steps = x_ref.shape[0] // 8
    pltpu.emit_pipeline(add, grid=(steps,), in_specs=[ROWS])(x_ref)

    def scale(y_ref, o_ref):
        o_ref[...] = y_ref[...] * total[...]

    pltpu.emit_pipeline(scale, grid=(steps,), in_specs=[ROWS], out_specs=[ROWS])(y_ref, o_ref)


# pallas-lint: probe(f32[32,128], f32[32,128])
def pipeline_that_needs_the_sum_of_another(x, y):
    return pl.pallas_call(
        _two_pipelines,
        in_specs=[ANYWHERE, ANYWHERE],
        out_specs=ANYWHERE,
        out_shape=like(y),
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
        compiler_params=pltpu.CompilerParams(),
    )(x, y)


def expected_pipeline_that_needs_the_sum_of_another(x, y):
    total = jnp.sum(x.reshape(4, 8, 128), axis=0)
    return (y.reshape(4, 8, 128) * total).reshape(32, 128)
