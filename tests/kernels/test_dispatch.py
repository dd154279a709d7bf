"""`functools.singledispatch`: calls enter the function that is registered for the type."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_lint.run.project import Project
from tests.kernels.test_ways_of_calling import X, shapes
from tests.test_incremental import from_scratch, reported, result

DISPATCHING = """
import functools

class Dense: pass
class Sparse(Dense): pass

@functools.singledispatch
def rows_of(config, x):
    raise NotImplementedError(config)

REGISTERED
def _(config: Dense, x):
    return twice(x[:24])

@rows_of.register(Sparse)
def _(config, x):
    return twice(x[:48])

@rows_of.register(int)
def _(config, x):
    return twice(x[:config])
"""


@pytest.mark.parametrize("registered", ["@rows_of.register", "@rows_of.register(Dense)"])
@pytest.mark.parametrize(
    ("given", "rows"), [("Dense()", 24), ("Sparse()", 48), ("72", 72), ("jnp.ones(8)", None), ("unknown", None)]
)
def test_functions_that_are_registered_for_a_type(registered: str, given: str, rows: int | None) -> None:
    code = DISPATCHING.replace("REGISTERED", registered)
    found = shapes(f"from configs import unknown\n{code}\ndef main():\n    rows_of({given}, {X})\n")
    assert found == ([] if rows is None else [(rows, 512)])


def test_arguments_that_a_partial_binds_are_dispatched_by() -> None:
    code = DISPATCHING.replace("REGISTERED", "@rows_of.register")
    assert shapes(f"{code}\ndef main():\n    functools.partial(rows_of, Sparse())({X})\n") == [(48, 512)]


@pytest.mark.parametrize(("old", "new"), [(".register(int)", ".register(str)"), ("@rows_of.register(int)\n", "")])
def test_registered_functions_are_dependencies(old: str, new: str) -> None:
    text = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + jnp.ones((7, 7))


@functools.singledispatch
def rows_of(config, x):
    return x


@rows_of.register(int)
def _(config, x):
    x = x[:config]
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def main():
    return rows_of(24, jnp.ones((64, 128)))
"""
    project = Project(Path("/nonexistent"), incremental=True)
    for version in (text, text.replace(old, new), text):
        assert reported(result(version, project)) == reported(from_scratch(version))
