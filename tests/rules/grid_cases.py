"""Kernels that sum blocks over a grid, right and wrong, and what a real jax makes of them.

Each step of the grid has a block of its own of the input; the result is right where each output block is the sum of
the blocks of the steps that the output's index map sends to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import textwrap

from tests.rules.interpreted import ENVIRONMENT, python

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def clear(ref):
    ref[...] = jnp.zeros_like(ref)


def add(ref, value):
    ref[...] += value


def is_first(axis):
    return pl.program_id(axis) == 0


"""


def module(body: str, grid: tuple[int, ...], out_map: str, extra: str = "", size: str | None = None) -> str:
    """A module with `kernel(x_ref, o_ref, acc_ref)` and its launch `f(x)`. `size`: how the grid is spelled."""
    names = "ijkl"[: len(grid)]
    flat = names[0]
    for at in range(1, len(grid)):
        flat = f"({flat}) * {grid[at]} + {names[at]}"
    parameters = ", ".join(names)
    return f"""{PRELUDE}def kernel(x_ref, o_ref, acc_ref):
{textwrap.indent(body, "    ")}


def f(x, a=2, b=3, c=4):
    return pl.pallas_call(
        kernel,
        grid={size or grid},
        in_specs=[pl.BlockSpec((8, 128), lambda {parameters}: ({flat}, 0))],
        out_specs=pl.BlockSpec((8, 128), {out_map}),
        out_shape=jax.ShapeDtypeStruct(({OUT_BLOCKS} * 8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],{extra}
    )(x)
"""


OUT_BLOCKS = 24
_RUNNER = """
import dataclasses, json, sys, itertools
import numpy as np
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
try:
    from jax._src.pallas.mosaic.interpret import reset_tpu_interpret_mode_state as reset
except ImportError:
    from jax._src.pallas.mosaic.interpret.interpret_pallas_call import reset_tpu_interpret_mode_state as reset
real = pl.pallas_call
found = []
cores, plain, cases = json.load(sys.stdin)
fields = {field.name for field in dataclasses.fields(pltpu.InterpretParams)}
names = ("num_cores_or_threads", "num_cores_or_threads_per_device", "num_cores_per_device")
field = next(name for name in names if name in fields)
for code, grid, out_map in cases:
    scope = {}
    exec(code, scope)
    steps = list(itertools.product(*map(range, grid)))
    x = np.random.RandomState(0).randint(1, 9, (8 * len(steps), 128)).astype(np.float32)
    where = eval(out_map)
    wanted = {}
    for at, step in enumerate(steps):
        block = int(where(*step)[0])
        wanted[block] = wanted.get(block, 0) + x[at * 8 : at * 8 + 8]
    verdict = []
    interpreters = [pltpu.InterpretParams(uninitialized_memory="nan", **{field: cores})]
    for interpret in [True] * plain + interpreters:
        pl.pallas_call = lambda *args, **kw: real(*args, **{**kw, "interpret": interpret})
        try:
            out = np.asarray(scope["f"](jnp.asarray(x)))
            right = all(np.array_equal(out[b * 8 : b * 8 + 8], v) for b, v in wanted.items())
            verdict.append("right" if right else "wrong")
        except Exception as error:
            verdict.append("Revisited" if "Revisited" in str(error) else f"{type(error).__name__}: {error}"[:200])
        reset()
    pl.pallas_call = real
    found.append(verdict)
print(json.dumps([jax.__version__, found]))
"""


def run(
    cases: list[tuple[str, tuple[int, ...], str]], cores: int = 1, plain: bool = False
) -> tuple[str, list[tuple[str, ...]]]:
    """For each (code, grid, output map) what the TPU interpreter says: right, wrong, Revisited.

    Before it, with `plain`, what `interpret=True` says.
    """
    done = subprocess.run(
        [python(), "-c", _RUNNER],
        input=json.dumps([cores, plain, cases]),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    version, found = json.loads(done.stdout)
    return version, [tuple(verdicts) for verdicts in found]
