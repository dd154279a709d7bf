"""What the README tells that `interpret=True` does not show: a function for each row of its table, in that order.

As a program it runs them all under `interpret=True`, and prints for each whether the numbers are right.
"""

import functools
import inspect

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def running_sum(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def cumsum(x=(8, 128)):
    return pl.pallas_call(running_sum, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def elements(x=(32, 128)):
    return pl.pallas_call(
        copy,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i * 8, 0))],
        out_specs=ROWS,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def bare_sum(x_ref, o_ref):
    o_ref[...] += x_ref[...]


def uninitialised(x=(32, 128)):
    return pl.pallas_call(
        bare_sum,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32),
    )(x.astype(jnp.int32))


def whole_sum(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def parallel(x=(32, 128)):
    return pl.pallas_call(
        whole_sum,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


def large(x=(32768, 1024)):
    whole = pl.BlockSpec((32768, 1024), lambda i: (0, 0))
    return pl.pallas_call(
        copy,
        grid=(1,),
        in_specs=[whole],
        out_specs=whole,
        out_shape=jax.ShapeDtypeStruct((32768, 1024), jnp.float32),
    )(x.astype(jnp.float32))


def columns(x=(8, 200)):
    spec = pl.BlockSpec((8, 100), lambda i: (0, i))
    return pl.pallas_call(
        copy,
        grid=(2,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((8, 200), x.dtype),
    )(x)


def start(x_ref, o_ref, sem):
    pltpu.make_async_copy(x_ref, o_ref, sem).start()


def unwaited(x=(8, 128)):
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        start,
        in_specs=[anywhere],
        out_specs=anywhere,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(x)


def added(x):
    return x.reshape(4, 8, 128).sum(0)


RIGHT = {
    cumsum: lambda x: jnp.cumsum(x, axis=1),
    elements: lambda x: x,
    uninitialised: added,
    parallel: added,
    large: lambda x: x,
    columns: lambda x: x,
    unwaited: lambda x: x,
}

if __name__ == "__main__":
    pl.pallas_call = functools.partial(pl.pallas_call, interpret=True)
    for function, right in RIGHT.items():
        shape = inspect.signature(function).parameters["x"].default
        x = jax.lax.broadcasted_iota(jnp.float32, shape, 0) % 7
        print("right" if (function(x) == right(x)).all() else "wrong")
