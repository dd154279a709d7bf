"""Functions to probe, good and bad; read by the tests in this folder, run only by the probe's worker."""

import functools
import inspect
import os
import pathlib
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as plgpu

Params = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def add(x_ref, o_ref):
    o_ref[...] += x_ref[...]


def _launch(kernel, x, imap, omap, grid=(4,), semantics=("arbitrary",), shape=None):
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[pl.BlockSpec((8, 128), imap)],
        out_specs=pl.BlockSpec((8, 128), omap),
        out_shape=jax.ShapeDtypeStruct(shape or x.shape, x.dtype),
        compiler_params=Params(dimension_semantics=semantics),
    )(x)


def good(x):
    return _launch(copy, x, lambda i: (i, 0), lambda i: (i, 0))


_TAKES_OPTIONS = "compiler_options" in inspect.signature(jax.jit).parameters  # from 0.5 on
_OPTIONS = {"compiler_options": {"xla_tpu_scoped_vmem_limit_kib": "65536"}} if _TAKES_OPTIONS else {}
with_compiler_options = jax.jit(good, **_OPTIONS)


@jax.jit
def with_options_within(x):
    return with_compiler_options(x) + 1


def out_of_range(x):
    return _launch(copy, x, lambda i: (i * 8, 0), lambda i: (i, 0))


def block_behind_the_last(x):
    return _launch(copy, x, lambda i: (x.shape[0] // 8 + i, 0), lambda i: (i, 0), shape=(32, 128))


def uncovered(x):
    return _launch(copy, x, lambda i: (i, 0), lambda i: (i // 2, 0))


def _sum(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def parallel_sum(x):
    return _launch(_sum, x, lambda i: (i, 0), lambda i: (0, 0), semantics=("parallel",), shape=(8, 128))


def _scratch_sum(x_ref, scratch_ref, o_ref):
    @pl.when(pl.program_id(1) == 0)
    def _():
        scratch_ref[...] = jnp.zeros_like(scratch_ref)

    scratch_ref[...] += x_ref[...]

    @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
    def _():
        o_ref[...] = scratch_ref[...]


def scratch_among_outputs(x):
    """As attention kernels have it that were written before scratch_shapes: no step needs what another one left."""
    return pl.pallas_call(
        _scratch_sum,
        grid=(4, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, k: (i, k))],
        out_specs=[pl.BlockSpec((8, 128), lambda i, k: (0, 0)), pl.BlockSpec((8, 128), lambda i, k: (i, 0))],
        out_shape=[jax.ShapeDtypeStruct((8, 128), x.dtype), jax.ShapeDtypeStruct((32, 128), x.dtype)],
        compiler_params=Params(dimension_semantics=("parallel", "arbitrary")),
    )(x)[1]


def never_initialised(x):
    return _launch(add, x, lambda i: (i, 0), lambda i: (i, 0))


def revisited(x):
    two = ("arbitrary", "arbitrary")
    return _launch(add, x, lambda k, i: (i, 0), lambda k, i: (i, 0), grid=(2, 4), semantics=two)


def _total(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=0, keepdims=True) * jnp.ones((8, 1), x_ref.dtype)


def ragged(x):
    return _launch(_total, x, lambda i: (i, 0), lambda i: (i, 0), grid=(4,), shape=(32, 128))


def _halved(x_ref, o_ref):
    o_ref[...] = x_ref[...] // 2


def halved(x):
    return _launch(_halved, x, lambda i: (i, 0), lambda i: (i, 0), grid=(4,), shape=(32, 128))


def _half_written(x_ref, o_ref):
    o_ref[:4] = x_ref[:4]


def half_written(x):
    return _launch(_half_written, x, lambda i: (i, 0), lambda i: (i, 0), grid=(4,), shape=(32, 128))


def _cumsum(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def no_lowering(x):
    return pl.pallas_call(_cumsum, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=Params())(x)


def _not_a_number(x_ref, o_ref):
    o_ref[...] = (x_ref[...] - x_ref[...]) / (x_ref[...] - x_ref[...])


def nan(x):
    return pl.pallas_call(_not_a_number, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=Params())(x)


def _surprise(share_ref, o_ref):
    o_ref[...] = -jnp.log(1 - share_ref[...])


def shares(x):
    """All below one, which no random operands are."""
    share = jnp.abs(x) / (1 + jnp.sum(jnp.abs(x)))
    return pl.pallas_call(_surprise, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=Params())(share)


def _decide(x_ref, o_ref):
    if x_ref[0, 0] > 0:
        o_ref[...] = x_ref[...]


def python_if(x):
    return pl.pallas_call(_decide, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def _crash(x_ref, o_ref):
    best = jnp.argmax(x_ref[...], axis=1, keepdims=True)
    o_ref[...] = jnp.broadcast_to(best, x_ref.shape).astype(jnp.bfloat16)


def crash(x):
    return pl.pallas_call(_crash, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=Params())(x)


def too_large(x):
    return pl.pallas_call(copy, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=Params())(x)


def _prefetched(rows_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


def gather(rows, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (rows[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, rows: (i, 0)),
    )
    return pl.pallas_call(_prefetched, grid_spec=spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(rows, x)


def matmul_kernel(a_ref, b_ref, o_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)


@functools.partial(jax.jit, static_argnames=("bm",))
def matmul(a, b, *, bm):
    return pl.pallas_call(
        matmul_kernel,
        grid=(a.shape[0] // bm, b.shape[1] // bm, a.shape[1] // bm),
        in_specs=[pl.BlockSpec((bm, bm), lambda i, j, k: (i, k)), pl.BlockSpec((bm, bm), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((bm, bm), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((a.shape[0], b.shape[1]), jnp.float32),
        compiler_params=Params(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(a, b)


def product(a, b, *, bm):
    return a @ b


def shifted(a, b, *, bm):
    return a @ b + 1


def forever(x):
    while True:
        pass


def leaves(x):
    os._exit(7)


def eats(x):
    held = []
    while True:
        held.append(bytearray(1 << 24))


def chatters(x):
    for _ in range(2_000):
        print("x" * 1_000)
    return good(x)


def forks(x):
    os.fork()
    return good(x)


# -- one mistake each, and the line that it is in ---------------------------------------------------------------------


def map_of_another_grid(x):
    return _launch(copy, x, lambda i: (i, 0), lambda i, j: (i, 0))  # map_of_another_grid


def _past_the_end(x_ref, o_ref):
    o_ref[...] = x_ref[pl.ds(pl.program_id(0) * 8 + 4, 8), :]  # past_the_end


def past_the_end(x):
    whole = pl.BlockSpec(x.shape, lambda i: (0, 0))
    row = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(_past_the_end, grid=(4,), in_specs=[whole], out_specs=row, out_shape=x, **_FOR_TPU)(x)


_FOR_TPU = {"compiler_params": Params()}


def _early(x_ref, o_ref, buffer, done):
    copying = pltpu.make_async_copy(x_ref, buffer, done)
    copying.start()
    o_ref[...] = buffer[...]  # read_too_early
    copying.wait()


def read_too_early(x):
    anywhere = pl.BlockSpec(memory_space=getattr(pl, "ANY", None) or pltpu.TPUMemorySpace.ANY)
    scratch = [pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA]
    return pl.pallas_call(_early, in_specs=[anywhere], out_shape=x, scratch_shapes=scratch, **_FOR_TPU)(x)


def _copied_in_parts(x_ref, o_ref, *, load_to, store_to):
    at = pl.program_id(0) * 64 + jnp.arange(64)
    x = plgpu.load(x_ref.at[at], mask=at < load_to, other=0)  # mask_of_a_load
    plgpu.store(o_ref.at[pl.ds(pl.program_id(0) * 64, 64)], x, mask=at < store_to)  # mask_of_a_store


def copied_in_parts(x, *, load_to, store_to):
    kernel = functools.partial(_copied_in_parts, load_to=load_to, store_to=store_to)
    return pl.pallas_call(kernel, grid=(3,), out_shape=x, compiler_params=plgpu.CompilerParams())(x)


def _strided(x_ref, o_ref):
    o_ref[...] = x_ref[...][:, ::2]  # strided


def strided(x):
    return pl.pallas_call(_strided, out_shape=jax.ShapeDtypeStruct((32, 64), x.dtype), **_FOR_TPU)(x)


# -- what the worker has to contain -----------------------------------------------------------------------------------


def _wait(x_ref, o_ref, never):
    (getattr(pl, "semaphore_wait", None) or pltpu.semaphore_wait)(never, 1)
    o_ref[...] = x_ref[...]


def waits_for_ever(x):
    return pl.pallas_call(_wait, out_shape=x, scratch_shapes=[pltpu.SemaphoreType.REGULAR], **_FOR_TPU)(x)


def _wait_if(x_ref, o_ref, never):
    pl.when(jnp.sum(x_ref[...]) < 1e30)(functools.partial(_wait, x_ref, o_ref, never))


def waits_for_ever_if_set(x):
    return pl.pallas_call(_wait_if, out_shape=x, scratch_shapes=[pltpu.SemaphoreType.REGULAR], **_FOR_TPU)(x)


def leaves_others_behind(x):
    for _ in range(2):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", os.environ["MARK"]])
    pathlib.Path(os.environ["MARK"]).touch()
    time.sleep(600)


def swarms(x):
    for _ in range(400):
        subprocess.Popen(["sleep", "600"])
    time.sleep(600)


def in_two_memories(x):
    """One line launches a kernel twice, on equal shapes in other memories."""
    y = x
    for space in (pltpu.VMEM, pltpu.SMEM):
        scale = pl.BlockSpec(memory_space=space)
        y = pl.pallas_call(scaled_kernel, in_specs=[scale, pl.BlockSpec()], out_shape=x)(jnp.ones((1, 1)), y)
    return y


def scaled_kernel(scale_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...] * scale_ref[0, 0]


def tuned(x):
    kind = jax.devices()[0].device_kind
    rows = {"TPU v5 lite": 8, "TPU v6 lite": 16, "NVIDIA H100 80GB HBM3": 32}[kind]
    jax.make_mesh((jax.device_count(),), ("x",))  # of the devices that are there
    row = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(copy, grid=(x.shape[0] // rows,), in_specs=[row], out_specs=row, out_shape=x)(x)
