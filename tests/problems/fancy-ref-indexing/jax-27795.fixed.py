import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def qk_kernel(q_ref, o_ref, *, block_m):
    b, h = pl.program_id(0), pl.program_id(1)
    q = q_ref[b, h, pl.ds(0, block_m), :]
    o_ref[0, 0] = q * 0.5


def gather_heads(q, block_m=8):
    batch, heads, _, dim = q.shape

    def kernel(q_ref, o_ref):
        qk_kernel(q_ref, o_ref, block_m=block_m)

    return pl.pallas_call(
        kernel,
        grid=(batch, heads),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec((1, 1, block_m, dim), lambda b, h: (b, h, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((batch, heads, block_m, dim), q.dtype),
    )(q)
