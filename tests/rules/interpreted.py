"""Runs a module's `kernel` in interpret mode under a real jax, in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

_RUNNER = """
import json, sys
import numpy as np
code, operands, shape, dtype = json.load(sys.stdin)
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
scope = {}
exec(code.split("def run(")[0], scope)
inputs = [jnp.asarray(np.array(v, np.float64), getattr(jnp, d)).reshape(s) for v, s, d in operands]
out = jax.ShapeDtypeStruct(tuple(shape), getattr(jnp, dtype))
result = pl.pallas_call(scope["kernel"], out_shape=out, interpret=True)(*inputs)
print(json.dumps(np.asarray(result).tobytes().hex()))
"""


def python() -> str:
    """An interpreter with jax: $PALLAS_LINT_JAX_PYTHON, or the running one."""
    told = os.environ.get("PALLAS_LINT_JAX_PYTHON")
    if told:
        return told
    if importlib.util.find_spec("jax") is None:
        raise RuntimeError("no jax here: set PALLAS_LINT_JAX_PYTHON to an interpreter that has it")
    return sys.executable


def run(code: str, operands: list[tuple[list[float], tuple[int, ...], str]], shape: tuple[int, ...], dtype: str) -> str:
    """The bytes, in hex, that the kernel writes; each operand is (values, shape, dtype)."""
    done = subprocess.run(
        [python(), "-c", _RUNNER],
        input=json.dumps([code, operands, shape, dtype]),
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return str(json.loads(done.stdout))
