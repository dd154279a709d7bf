"""Prints what a block of each kernel here does, with the PTX of a file: `python -m tests.probe.gpu_work FILE`."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from pallas_lint.probe.worker.launches.launch import describe
from pallas_lint.probe.worker.launches.recorder import LaunchRecorder
from pallas_lint.probe.worker.stages import gpu_work

BF16, F32 = jnp.bfloat16, jnp.float32


def product(dtype=BF16, turns=8, *, dynamic=False, branches=False, twice=False, places=False):
    """(64, 32 * turns) times (32 * turns, 128), in blocks of 32 rows and 64 columns."""

    def kernel(a_ref, b_ref, o_ref):
        def turn(i, sums):
            a = a_ref[jnp.arange(32), pl.ds(0, 32)] if places else a_ref[:, pl.ds(i * 32, 32)]
            return sums + jnp.dot(a, b_ref[pl.ds(i * 32, 32), :], preferred_element_type=F32)

        end = pl.program_id(0) + 1 if dynamic else turns
        sums = lax.fori_loop(0, end, turn, jnp.zeros((32, 64), F32))
        if twice:
            sums = lax.fori_loop(0, end, turn, sums)
        if branches:
            sums = lax.cond(pl.program_id(0) > 0, lambda x: x, lambda x: -x, sums)
        o_ref[...] = sums.astype(o_ref.dtype)

    def call(a, b):
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((64, 128), dtype),
            grid=(2, 2),
            in_specs=[
                pl.BlockSpec((32, 32 * turns), lambda i, j: (i, 0)),
                pl.BlockSpec((32 * turns, 64), lambda i, j: (0, j)),
            ],
            out_specs=pl.BlockSpec((32, 64), lambda i, j: (i, j)),
        )(a, b)

    return call, [(64, 32 * turns), (32 * turns, 128)], dtype


def heads(turns=2):
    """Rows of one head, which lie apart, times a matrix whose rows lie together."""

    def kernel(a_ref, b_ref, o_ref):
        def turn(i, sums):
            return sums + jnp.dot(a_ref[pl.ds(i * 32, 32), :], b_ref[...], preferred_element_type=F32)

        o_ref[...] = lax.fori_loop(0, turns, turn, jnp.zeros((32, 32), F32)).astype(o_ref.dtype)

    def call(a, b):
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((32, 4, 32), BF16),
            grid=(4,),
            in_specs=[
                pl.BlockSpec((32 * turns, None, 32), lambda h: (0, h, 0)),
                pl.BlockSpec((32, 32), lambda h: (0, 0)),
            ],
            out_specs=pl.BlockSpec((32, None, 32), lambda h: (0, h, 0)),
        )(a, b)

    return call, [(32 * turns, 4, 32), (32, 32)], BF16


def sums():
    def kernel(a_ref, o_ref):
        o_ref[...] = a_ref[...] + 1

    def call(a):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((64, 32), BF16))(a)

    return call, [(64, 32)], BF16


def reported(call, shapes, dtype, text):
    recorder = LaunchRecorder()
    recorder.install()
    jax.make_jaxpr(call)(*(jnp.ones(shape, dtype) for shape in shapes))
    recorder.remove()
    (record,) = recorder.records.values()
    try:
        return gpu_work.of_block(describe(record), text)
    except gpu_work.UnknownWork as error:
        return str(error)


TEXT = Path(sys.argv[1]).read_text()
STRAIGHT = "".join(line for line in TEXT.splitlines(keepends=True) if "bra" not in line)
KERNELS = {
    "product": product(),
    "float32": product(F32),
    "dynamic": product(dynamic=True),
    "branches": product(branches=True),
    "twice": product(twice=True),
    "places": product(places=True),
    "sums": sums(),
    "heads": heads(),
}
found = {name: reported(*each, TEXT) for name, each in KERNELS.items()}
for name, turns in (("unrolled", 8), ("straight", 1)):
    found[name] = reported(*product(turns=turns), STRAIGHT)
print(json.dumps(found))
