# jax issue 22817: a number for each program, into VMEM
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL211
# static: yes
# call: program_numbers()
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def iota_kernel(o_ref):
    i = pl.program_id(0)
    o_ref[i] = i  #!


def program_numbers(size=8):
    return pl.pallas_call(
        iota_kernel,
        out_shape=jax.ShapeDtypeStruct((size,), jnp.int32),
        grid=(size,),
        out_specs=pl.BlockSpec((size,), lambda i: (0,)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )()
