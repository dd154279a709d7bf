"""Kernels that are wrong whatever mesh, device or operands they are given, beside ones like them that are right."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

SPLIT = P("rows")


def launch(kernel, x, *more, **named):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), **named)(x, *more)  # launch


def _twice(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def _summed(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)  # sums on several devices


def sums_on_devices(x):
    mesh = Mesh(np.array(jax.devices()[:4]), ("rows",))
    local = lambda v: launch(_summed, v)  # noqa: E731
    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=SPLIT, out_specs=SPLIT, check_vma=False))(x)


def made_elsewhere(x):
    """What the function makes itself lies nowhere, and no caller has placed it."""
    mesh = jax.make_mesh((2,), ("rows",), devices=jax.devices()[:2])
    made = jnp.zeros(x.shape)
    local = lambda v: launch(_twice, v)  # noqa: E731
    return jax.shard_map(local, mesh=mesh, in_specs=SPLIT, out_specs=SPLIT, check_vma=False)(made)  # made elsewhere


def odd_rows(x):
    assert x.shape[0] % 16 == 0  # odd rows
    return launch(_twice, x)


def of_gpus(x):
    if jax.default_backend() != "gpu":
        raise NotImplementedError(f"not on {jax.devices()[0].device_kind}")  # of GPUs
    return launch(_twice, x)


def needs_rocm(x):
    return launch(_twice, jax.device_put(x, jax.devices("rocm")[0]))


def _stored(x_ref, mask_ref, o_ref, *, masked):
    o_ref[...] = jnp.where(mask_ref[...], x_ref[...], 0)
    at = pl.program_id(0) + 8
    pltpu.store(o_ref.at[pl.ds(at, 16), :], x_ref[...], mask=mask_ref[...] if masked else None)  # stores


def stores(x, mask, masked=False):
    return launch(functools.partial(_stored, masked=masked), x, mask, grid=(1,))


def _rooted(x_ref, o_ref):
    o_ref[...] = jnp.sqrt(-1 - x_ref[...] * x_ref[...])


def roots(x):
    return launch(_rooted, x)


def _added(x_ref, mask_ref, o_ref, sums):
    sums[...] += jnp.where(mask_ref[...], x_ref[...], 0)  # adds
    o_ref[...] = sums[...]


def adds(x, mask):
    return launch(_added, x, mask, scratch_shapes=[pltpu.VMEM(x.shape, x.dtype)])


def _left(x_ref, mask_ref, o_ref):
    @pl.when(jnp.all(mask_ref[...]))
    def _():
        o_ref[...] = x_ref[...]


def leaves(x, mask):
    return launch(_left, x, mask)


def of_wide_numbers(x):
    with jax.enable_x64(True):
        return launch(_twice, x.astype(jnp.float64))


if __name__ == "__main__":
    x = jnp.sin(jnp.arange(16.0 * 128)).reshape(16, 128)
    sums_on_devices(jnp.tile(x, (4, 1)))
    adds(x, jnp.where(x > 0, True, False))
    leaves(x, jnp.full(x.shape, True))
    jax.jit(stores)(x, x > 0)
    roots(x)
    jax.jit(lambda x: launch(_twice, x)).trace(x).lower(lowering_platforms=("tpu",))  # as without capture
    of_wide_numbers(x)
    jax.set_mesh(jax.make_mesh((4,), ("rows",)))  # which launches before it did not stand in
    print("the end")
