"""Runs a module's `kernel` in interpret mode under a real jax, in a process that serves all tests."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

ENVIRONMENT = {"JAX_PLATFORMS": "cpu"}
_RUNNER = """
import json, sys
import numpy as np
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl

def written(code, operands, shape, dtype):
    scope = {}
    exec(code.split("def run(")[0], scope)
    inputs = [jnp.asarray(np.array(v, np.float64), getattr(jnp, d)).reshape(s) for v, s, d in operands]
    out = jax.ShapeDtypeStruct(tuple(shape), getattr(jnp, dtype))
    result = pl.pallas_call(scope["kernel"], out_shape=out, interpret=True)(*inputs)
    return np.asarray(result).tobytes().hex()

for line in sys.stdin:
    try:
        found = {"bytes": written(*json.loads(line))}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"[:2000]}
    print(json.dumps(found), flush=True)
"""


def python() -> str:
    """An interpreter with jax: $PALLAS_LINT_JAX_PYTHON, or the running one."""
    configured = os.environ.get("PALLAS_LINT_JAX_PYTHON")
    if configured:
        return configured
    if importlib.util.find_spec("jax") is None:
        raise RuntimeError("no jax here: set PALLAS_LINT_JAX_PYTHON to an interpreter that has it")
    return sys.executable


@cache
def _runner() -> subprocess.Popen[str]:
    """It ends when its input does, with the process that started it."""
    return subprocess.Popen(
        [python(), "-c", _RUNNER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip


def run(code: str, operands: list[tuple[list[float], tuple[int, ...], str]], shape: tuple[int, ...], dtype: str) -> str:
    """The bytes, in hex, that the kernel writes; each operand is (values, shape, dtype)."""
    runner = _runner()
    assert runner.stdin is not None and runner.stdout is not None
    runner.stdin.write(json.dumps([code, operands, shape, dtype]) + "\n")
    runner.stdin.flush()
    found: dict[str, Any] = json.loads(runner.stdout.readline() or '{"error": "it ended"}')
    assert "bytes" in found, found
    return str(found["bytes"])
