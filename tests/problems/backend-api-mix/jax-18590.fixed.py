import jax
from jax.experimental.pallas.ops.tpu import flash_attention


@jax.jit
def self_attention(q, k, v):
    return flash_attention.flash_attention(q, k, v)
