import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def _scale(q_ref, o_ref, *, sm_scale: float):
    o_ref[...] = q_ref[...] * sm_scale


def scale_queries(q, block_q: int = 64):
    batch, seq, heads, dim = q.shape

    def q_index_map(s, h, b):
        return (b, s, h, 0)

    def out_index_map(s, h, b):
        return (b, s, h, 0)

    return pl.pallas_call(
        functools.partial(_scale, sm_scale=dim**-0.5),
        grid=(seq // block_q, heads, batch),
        in_specs=[pl.BlockSpec((None, block_q, None, dim), q_index_map)],
        out_specs=pl.BlockSpec((None, block_q, None, dim), out_index_map),
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=2),
    )(q)
