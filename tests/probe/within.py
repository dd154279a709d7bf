"""Kernels that need more VMEM alone than they may take, and functions around them in which XLA keeps arrays there."""

import inspect

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _add(x_ref, o_ref, *scratch):
    for ref in scratch:
        ref[...] = jnp.zeros_like(ref)
    o_ref[...] = x_ref[...] + sum(ref[0:1, :] for ref in scratch)


def _launch(x, *scratch, limit=4 << 20):
    params = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
    rows = pl.BlockSpec((512, 1024), lambda i: (i, 0))
    return pl.pallas_call(
        _add, grid=(2,), in_specs=[rows], out_specs=rows, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=scratch, compiler_params=params(vmem_limit_bytes=limit),
    )(x)  # fmt: skip


def alone(x):
    return _launch(x)


def between(x):
    return jnp.sin(_launch(jnp.cos(x)))


def with_scratch(x):
    return jnp.sin(_launch(jnp.cos(x), pltpu.VMEM((2048, 1024), jnp.float32)))


def of_columns(x):
    columns = pl.BlockSpec((x.shape[0], 512), lambda i: (0, i))
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    params = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
    limited = params(vmem_limit_bytes=4 << 20)
    launch = pl.pallas_call(
        _add, grid=(2,), in_specs=[columns], out_specs=columns, out_shape=out, compiler_params=limited
    )
    return jnp.sin(launch(jnp.cos(x)))


def in_two_places(x):
    """The second launch does not compile: nothing is known of the first."""
    return of_columns(jnp.concatenate([between(x), x]))


def _copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def _copied(x):
    return pl.pallas_call(_copy, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


_TAKES_OPTIONS = "compiler_options" in inspect.signature(jax.jit).parameters  # from 0.5 on
_OPTIONS = {"compiler_options": {"xla_tpu_scoped_vmem_limit_kib": "65536"}} if _TAKES_OPTIONS else {}
with_a_higher_limit = jax.jit(_copied, **_OPTIONS)


def _scratched(x):
    scratch = pltpu.VMEM((6144, 1024), jnp.float32)
    return pl.pallas_call(_add, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_shapes=[scratch])(x)


scratch_with_a_higher_limit = jax.jit(_scratched, **_OPTIONS)
