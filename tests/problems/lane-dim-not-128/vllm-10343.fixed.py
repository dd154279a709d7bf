import jax
import jax.experimental.pallas as pl
import jax.experimental.pallas.tpu as pltpu
import jax.numpy as jnp


def decode_kernel(kv_ref, out_ref):
    out_ref[:] = jnp.tanh(kv_ref[:])


def decode(kv, *, head_size=128):
    num_heads = 1024 // head_size
    return pl.pallas_call(
        decode_kernel,
        grid=(num_heads,),
        in_specs=[pl.BlockSpec((32, head_size), lambda h: (0, h), memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec((32, head_size), lambda h: (0, h), memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((32, 1024), jnp.float32),
    )(kv)
