import os

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

os.environ.setdefault("LIBTPU_INIT_ARGS", "--xla_tpu_scoped_vmem_limit_kib=65536")


def combine_kernel(a_ref, b_ref, o_ref, acc_ref):
    acc_ref[...] = a_ref[...] * b_ref[...]
    o_ref[...] = acc_ref[...] + a_ref[...]


def combine(a, b):
    rows = 1024
    spec = pl.BlockSpec((rows, 2048), lambda i: (i, 0))
    return pl.pallas_call(
        combine_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            grid=(4096 // rows,),
            in_specs=[spec, spec],
            out_specs=spec,
            scratch_shapes=[pltpu.VMEM((rows, 2048), jnp.float32)],
        ),
        out_shape=jax.ShapeDtypeStruct((4096, 2048), jnp.float32),
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=64 * 2**20),
    )(a, b)


def main():
    a = jnp.zeros((4096, 2048), jnp.float32)
    return combine(a, a)
