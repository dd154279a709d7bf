"""Traces functions with a real jax, in one process of its own, and tells which of them raise."""

from __future__ import annotations

import json
import os
import subprocess

from tests.rules.interpreted import ENVIRONMENT, python

# Abstract operands; the linter reads the same text.
PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = jax.ShapeDtypeStruct((256, 128), jnp.float32)
V = jax.ShapeDtypeStruct((1024,), jnp.float32)
ROWS = jax.ShapeDtypeStruct((2,), jnp.int32)
OUT = jax.ShapeDtypeStruct((256, 128), jnp.float32)
VMEM = pltpu.VMEM((8, 128), jnp.float32)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


"""
_RUNNER = """
import json, sys
prelude, cases = json.load(sys.stdin)
found = {}
for name, code in cases.items():
    scope = {}
    try:
        exec(prelude + code, scope)
        scope["jax"].eval_shape(scope["f"], *scope.get("args", (scope["X"],)))
        found[name] = None
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"[:300]
print(json.dumps(found))
"""


def outcomes(cases: dict[str, str]) -> dict[str, str | None]:
    """The error of each piece of code (which defines `f`, and `args` if not `(X,)`), or None where it traces."""
    done = subprocess.run(
        [python(), "-c", _RUNNER],
        input=json.dumps([PRELUDE, cases]),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str | None] = json.loads(done.stdout)
    return found
