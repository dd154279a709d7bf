"""What `with` runs in a kernel: `__enter__` and `__exit__` of the kernel's own classes."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import codes, lint_text

PRELUDE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

class Accumulator:
    def __init__(self, acc_ref, out_ref):
        self.acc_ref, self.out_ref = acc_ref, out_ref

    def __enter__(self):
        @pl.when(pl.program_id(0) == 0)
        def _():
            self.acc_ref[...] = jnp.zeros_like(self.acc_ref)

        return self.acc_ref

    def __exit__(self, *_):
        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            self.out_ref[...] = self.acc_ref[...]

class Plain:
    def __init__(self, acc_ref, out_ref):
        self.acc_ref, self.out_ref = acc_ref, out_ref

class Copied:
    def __init__(self, source, target, sem):
        self.copy = pltpu.make_async_copy(source, target, sem)

    def __enter__(self):
        self.copy.start()

    def __exit__(self, *_):
        self.copy.wait()

"""
RUN = """
def run(x):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x)
"""
COPY = """
def run(x):
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)
"""
CASES: dict[str, tuple[str, str, set[str]]] = {
    "what enter gives": (
        "def kernel(x_ref, o_ref, acc_ref):\n    with Accumulator(acc_ref, o_ref) as acc:\n"
        "        acc[...] += x_ref[...]\n",
        RUN,
        set(),
    ),
    "not entered": (
        "def kernel(x_ref, o_ref, acc_ref):\n    acc = Accumulator(acc_ref, o_ref).acc_ref\n"
        "    acc[...] += x_ref[...]\n",
        RUN,
        {"PAL401", "PAL411"},
    ),
    "no such methods": (
        "def kernel(x_ref, o_ref, acc_ref):\n    with Plain(acc_ref, o_ref) as plain:\n"
        "        plain.acc_ref[...] += x_ref[...]\n        plain.out_ref[...] = x_ref[...]\n",
        RUN,
        {"PAL401"},
    ),
    "a copy": (
        "def kernel(x_ref, o_ref, buffer, sem):\n    with Copied(x_ref, buffer, sem):\n        pass\n"
        "    o_ref[...] = buffer[...]\n",
        COPY,
        set(),
    ),
    "a copy made only": (
        "def kernel(x_ref, o_ref, buffer, sem):\n    Copied(x_ref, buffer, sem).copy.start()\n"
        "    o_ref[...] = jnp.zeros_like(o_ref)\n",
        COPY,
        {"PAL415"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_with(name: str) -> None:
    kernel, run, expected = CASES[name]
    found = lint_text(PRELUDE + textwrap.dedent(kernel) + run, jax="0.12.0.1", target="tpu")
    assert codes([finding for finding in found if finding.severity.rank]) == expected
