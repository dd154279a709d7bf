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


BY_INDEX = [
    "jax.vmap(lambda i: a_ref[i])(jnp.arange(8))",
    "jax.vmap(lambda i, b: a_ref[i, :] + b)(jnp.arange(8), b_ref[...])",
    "jax.vmap(lambda b, i: a_ref[i + 1] + b, in_axes=(None, 0))(b_ref[...], jnp.arange(8))",
]
BY_SLICE = "jax.vmap(lambda i: a_ref[pl.ds(i * 8, 8)])(jnp.arange(8))"
STORED = "jax.vmap(lambda i: a_ref.__setitem__(i, b_ref[0]))(jnp.arange(8))"


# Traced and lowered by jax 0.4.35, 0.6.2, 0.8.3 and 0.12.0.1.
@pytest.mark.parametrize("value", [*BY_INDEX, BY_SLICE, STORED])
def test_refs_are_not_indexed_by_mapped_numbers(value: str) -> None:
    assert found("0.12.0.1", value) == ["ERROR"]


@pytest.mark.parametrize("value", [BY_SLICE, STORED])
def test_slices_and_stores_fail_everywhere(value: str) -> None:
    assert found("0.12.0.1", value, target="triton") == ["ERROR"]


@pytest.mark.parametrize(
    "value",
    [
        "jax.vmap(lambda i: a_ref[0] + i)(jnp.arange(8))",
        "jax.vmap(lambda i, j: a_ref[j], in_axes=(0, None))(jnp.arange(8), 3)",
        "jnp.stack([a_ref[i] for i in range(8)])",
    ],
)
def test_other_indices(value: str) -> None:
    assert found("0.12.0.1", value) == []


@pytest.mark.parametrize(("value", "severities"), [(BY_SLICE, ["ERROR"]), (STORED, []), (BY_INDEX[0], [])])
def test_indices_in_an_old_release(value: str, severities: list[str]) -> None:
    assert found("0.4.35", value, target="triton") == severities
    assert found("0.4.35", value) == ["ERROR"]
