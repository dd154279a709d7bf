# jax issue 19292: element by element into VMEM
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL211
# static: yes
# call: triangle()
# fails: lowering

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

N = 128


def triangle_kernel(o_ref):
    def body(at, _):
        row, col = at // N, at % N
        o_ref[row, col] = jnp.where(row <= col, 1, -1)  #!
        return _

    lax.fori_loop(0, N * N, body, None)


def triangle():
    return pl.pallas_call(
        triangle_kernel,
        out_shape=jax.ShapeDtypeStruct((N, N), jnp.int32),
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=16 * 2**20),
    )()
