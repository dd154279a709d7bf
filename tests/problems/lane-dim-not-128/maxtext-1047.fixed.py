import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


@dataclasses.dataclass(frozen=True)
class Config:
    head_dim: int = 128  # two heads of 64
    num_heads: int = 4
    block_q: int = 128


def head_spec(config):
    return pl.BlockSpec((config.block_q, config.head_dim), lambda h, i: (i, h))


def rotate_kernel(x_ref, o_ref, *, sign):
    o_ref[...] = sign * x_ref[...].astype(jnp.float32)


def rotate(x, config=Config()):
    seq = 512
    return pl.pallas_call(
        functools.partial(rotate_kernel, sign=-1.0),
        grid=(config.num_heads, seq // config.block_q),
        in_specs=[head_spec(config)],
        out_specs=head_spec(config),
        out_shape=jax.ShapeDtypeStruct((seq, config.num_heads * config.head_dim), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)
