"""Kernels that the compilers of TPUs refuse; `#!` ends the line of the operation that they refuse."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _launch(kernel, x, shape, *scratch, **options):
    out = jax.ShapeDtypeStruct(shape, x.dtype)
    return pl.pallas_call(kernel, out_shape=out, scratch_shapes=scratch, **options)


IN_HBM = {"in_specs": [pl.BlockSpec(memory_space=pl.ANY)]}
ON_LANES = (((1,), (0,)), ((), ()))


# pallas-lint: probe(i8[32,128])
def bytes_divided(x):
    def kernel(x_ref, o_ref):
        values = x_ref[...]
        o_ref[...] = values // 3  #!

    return _launch(kernel, x, x.shape)(x)


# pallas-lint: probe(bf16[16,128])
def remainder(x):
    def kernel(x_ref, o_ref):
        values = x_ref[...]
        o_ref[...] = jnp.remainder(values, 3)  #!

    return _launch(kernel, x, x.shape)(x)


# pallas-lint: probe(f32[8,128])
def part_of_a_row(x):
    def kernel(x_hbm, o_ref, row):
        pltpu.sync_copy(x_hbm.at[3, pl.ds(0, 100)], row)  #!
        o_ref[...] = jnp.zeros_like(o_ref)

    return _launch(kernel, x, (4, 128), pltpu.VMEM((100,), jnp.float32), **IN_HBM)(x)


# pallas-lint: probe(f32[128,1536])
def columns_between_tiles(x):
    def kernel(x_hbm, o_ref, part, sem):
        copy = pltpu.make_async_copy(x_hbm.at[:, pl.ds(100, 1000)], part, sem)
        copy.start()  #!
        copy.wait()
        o_ref[...] = part[...]

    scratch = (pltpu.VMEM((128, 1000), jnp.float32), pltpu.SemaphoreType.DMA)
    return _launch(kernel, x, (128, 1000), *scratch, **IN_HBM)(x)


# pallas-lint: probe(f32[64,256], i32[1]=[3])
def columns_from_anywhere(x, at):
    def kernel(x_ref, at_ref, o_ref):
        o_ref[...] = x_ref[:, pl.ds(at_ref[0], 128)]  #!

    specs = [pl.BlockSpec(), pl.BlockSpec(memory_space=pltpu.SMEM)]
    return _launch(kernel, x, (64, 128), in_specs=specs)(x, at)


# pallas-lint: probe(f32[64,256])
def reshaped(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].reshape(256, 64)  #!

    return _launch(kernel, x, (256, 64))(x)


# pallas-lint: probe(f32[8,128])
def every_other_column(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[:, ::2]  #!

    return _launch(kernel, x, (8, 64))(x)


# pallas-lint: probe(f32[256,256], bf16[256,256])
def product_of_two_types(x, y):
    def kernel(x_ref, y_ref, o_ref):
        product = functools.partial(lax.dot_general, precision=lax.Precision.HIGHEST)
        o_ref[...] = product(x_ref[...], y_ref[...], ON_LANES, preferred_element_type=jnp.float32)  #!

    return _launch(kernel, x, (256, 256))(x, y)


# pallas-lint: probe(f16[16,128])
def halves(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2  #!

    return _launch(kernel, x, x.shape)(x)


# pallas-lint: probe(f32[256,256])
def index_of_64_bits(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    rows = pl.BlockSpec((128, 256), lambda i: (i, 0))  #!
    with jax.enable_x64(True):
        return _launch(kernel, x, x.shape, grid=(2,), in_specs=[rows], out_specs=rows)(x)


# pallas-lint: probe(f32[1024,1024])
def more_than_it_may_use(x):
    def kernel(x_ref, o_ref):
        values = x_ref[...]
        once = lax.dot_general(values, values, ON_LANES, preferred_element_type=jnp.float32)
        twice = lax.dot_general(once, values, ON_LANES, preferred_element_type=jnp.float32)
        o_ref[...] = once + twice

    limit = pltpu.CompilerParams(vmem_limit_bytes=9 << 20)
    return _launch(kernel, x, x.shape, compiler_params=limit)(x)  #!
