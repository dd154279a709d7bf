"""PAL510: `jax.vmap` over refs, by release and backend as traced and lowered."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import {module} as plx


def add(a_ref, b):
    return a_ref[...] + b


def kernel(a_ref, b_ref, o_ref):
    o_ref[...] = {value}


def run(a):
    out = jax.ShapeDtypeStruct(a.shape, a.dtype)
    return pl.pallas_call(kernel, out_shape=out, compiler_params=plx.{params}())(a, a)
"""
OF_REF = "jax.vmap(add)(a_ref, b_ref[...])"


def found(version: str, value: str = OF_REF, target: str = "tpu") -> list[str]:
    params = (
        "CompilerParams" if version >= "0.7" else "TPUCompilerParams" if target == "tpu" else "TritonCompilerParams"
    )
    source = _MODULE.format(value=value, module=target, params=params)
    return [f.severity.name for f in lint(source, version, target, "PAL510")]


@pytest.mark.parametrize("version", ["0.4.35", "0.5.3", "0.6.2", "0.7.2"])
def test_refused(version: str) -> None:
    assert found(version) == ["ERROR"]


@pytest.mark.parametrize("version", ["0.8.3", "0.9.2", "0.10.2", "0.11.2", "0.12.0.1"])
def test_lowers(version: str) -> None:
    assert found(version) == []


def test_triton_lowers_from_0_7_on() -> None:
    assert found("0.6.2", target="triton") == ["ERROR"]
    assert found("0.7.2", target="triton") == []


@pytest.mark.parametrize(
    "value",
    [
        "jax.vmap(jnp.sin)(a_ref[...])",
        "jax.vmap(lambda b: b + a_ref[0])(b_ref[...])",
        "jax.vmap(add, in_axes=(None, 0))(a_ref, b_ref[...])",
    ],
)
def test_values_can_be_mapped(value: str) -> None:
    assert found("0.6.2", value) == []
