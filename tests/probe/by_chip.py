"""Functions that look up the chip while they are traced."""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.extend.core import Primitive
from jax.interpreters import mlir


def generation():
    return pltpu.get_tpu_info().generation


def double_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def other_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 4


def launched(x, rows=8, kernel=double_kernel):
    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // rows,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def refused_on_v6e(x):
    if generation() == 6:
        raise ValueError("not on this chip")
    return launched(x)


def nowhere(x):
    raise ValueError(f"not on generation {generation()}")


def plain_on_v5e(x):
    return x * 2 if generation() == 5 else launched(x)


def large_on_v6e(x):
    return launched(x, 100000 if generation() == 6 else 8)


def large_on_v6e_by_device(x):
    return launched(x, 100000 if "v6" in jax.devices()[0].device_kind else 8)


def others_on_v6e(x):
    return launched(x, kernel=other_kernel if generation() == 6 else double_kernel)


def _lowered(x):
    return [launched(x)]


double_p = Primitive("double")
double_p.multiple_results = True
double_p.def_abstract_eval(lambda x: [x])
mlir.register_lowering(double_p, mlir.lower_fun(_lowered))


def primitive_of_its_own(x):
    (result,) = double_p.bind(x)
    return result
