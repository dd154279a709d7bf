"""A kernel that takes too long in jax's TPU interpreter, and one behind it: `python -m tests.probe.ended`.

Prints what becomes of the first, whether it still runs, and what the second computes.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from pallas_lint.probe.worker.budget import EachAlone, TooLong
from pallas_lint.probe.worker.stages import compile_process, interpret

compile_process.interpret_time.least_seconds = lambda launch: 0.0  # what it knows of the launch
compile_process._ENDING = 300.0  # it may have to compile first


def repeat(n_ref, x_ref, o_ref):
    def add(step):
        o_ref[...] += x_ref[...]
        return step + 1

    o_ref[...] = x_ref[...]
    lax.while_loop(lambda step: step < n_ref[0], add, 0)


def run(times):
    x = jnp.ones((8, 128), jnp.float32)
    call = pl.pallas_call(repeat, out_shape=x, interpret=interpret.tpu_interpreter())
    return jax.block_until_ready(jax.jit(call)(jnp.full((1,), times, jnp.int32), x))


stages = compile_process.CompileProcess("")
try:
    stages.within(EachAlone(5.0), None, partial(run, 100_000_000))
except TooLong as error:
    print(error)
print("stuck" if stages.stuck else "ended")
interpret.reset()
print(stages.within(EachAlone(300.0), None, partial(run, 2))[0, 0])
