"""PAL101: forms that a backend refuses although it has the primitive. Lowered with jax 0.4.35 to 0.12.0.1."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.rules.kernels import launch

CODE = "PAL101"


def found(expression: str, backend: str, version: str = "0.12.0.1") -> list[str]:
    body = f"x = x_ref[...]\ncolumn = x_ref[:, 0:1]\no_ref[...] = jnp.sum({expression}) + jnp.zeros((16, 128))"
    code = launch(body, backend, operand="jnp.zeros((16, 128))")
    return [f.severity.name for f in lint(code, version, None, CODE)]


@pytest.mark.parametrize(
    "expression",
    [
        "jnp.concatenate([x, x], axis=1)",
        "jnp.concatenate([x, x])",
        "jnp.concatenate([column, column], axis=0)",
        "jnp.concatenate([x] * 4, axis=0)",
        "jnp.concatenate([x[0], x[1]])",
        "lax.concatenate([x, x], 0)",
        "jnp.hstack([x, x])",
        "jnp.vstack([x, x])",
        "jnp.append(x[0], x[1])",
        "jnp.stack([x, x])",
        "jnp.stack((x, x), axis=1)",
        "jnp.stack([x] * 4, -1)",
    ],
)
@pytest.mark.parametrize("version", ["0.6.2", "0.8.3", "0.12.0.1"])
def test_joins_on_triton(expression: str, version: str) -> None:
    assert found(expression, "triton", version) == ["ERROR"]
    assert found(expression, "tpu", version) == []


@pytest.mark.parametrize(
    "expression",
    [
        "jnp.concatenate([column, column], axis=1)",
        "jnp.concatenate([column, column], axis=-1)",
        "jnp.concatenate([x])",
        "jnp.stack([x, x], -1)",
        "jnp.stack([x, x], axis=2)",
        "jnp.stack([x[0], x[1]], axis=1)",
        "lax.bitcast_convert_type(x, jnp.int32)",
        "lax.bitcast_convert_type(x.astype(jnp.bfloat16), jnp.int16)",
        "jnp.argmax(x, axis=1)",
        "lax.platform_dependent(x, default=lambda v: v)",
        "lax.select_n(x > 0, x, x + 1)",
    ],
)
@pytest.mark.parametrize("backend", ["tpu", "triton"])
def test_fine(expression: str, backend: str) -> None:
    assert found(expression, backend) == []


@pytest.mark.parametrize(
    "expression",
    [
        "lax.bitcast_convert_type(x, jnp.uint16)",
        "x.view(jnp.int8)",
        "lax.bitcast_convert_type(x.astype(jnp.bfloat16).reshape(16, 64, 2), jnp.uint32)",
        "jnp.argmax(x, axis=(0, 1))",
        "x.argmin(axis=(0, 1))",
        "lax.select_n(jnp.minimum(x, 2).astype(jnp.int32), x, x + 1, x * 2)",
    ],
)
@pytest.mark.parametrize("backend", ["tpu", "triton"])
@pytest.mark.parametrize("version", ["0.8.3", "0.12.0.1"])
def test_refused_everywhere(expression: str, backend: str, version: str) -> None:
    assert found(expression, backend, version) == ["ERROR"]


@pytest.mark.parametrize("version", ["0.4.35", "0.8.3", "0.12.0.1"])
@pytest.mark.parametrize("backend", ["tpu", "triton"])
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("jnp.linalg.inv(x)", ["ERROR"]),
        ("jnp.linalg.cholesky(x)", ["ERROR"]),
        ("jax.scipy.linalg.solve_triangular(x, x)", ["ERROR"]),
        ("jnp.fft.fft(x).real", ["ERROR"]),
        ("jnp.linalg.norm(x)", []),
        ("jnp.linalg.matrix_power(x, 2)", []),
    ],
)
def test_linear_algebra(expression: str, expected: list[str], backend: str, version: str) -> None:
    assert found(expression, backend, version) == expected


@pytest.mark.parametrize(
    ("expression", "tpu", "triton"),
    [
        ("jax.nn.gelu(x)", [], []),
        ("jax.nn.gelu(x, approximate=True)", [], []),
        ("jax.nn.gelu(x, approximate=False)", ["ERROR"], ["ERROR"]),
        ("functools.partial(jax.nn.gelu, approximate=False)(x)", ["ERROR"], ["ERROR"]),
        ("jnp.roll(x, 1, axis=0)", [], ["ERROR"]),
        ("jnp.roll(x, pl.program_id(0), axis=0)", ["ERROR"], []),
        ("lax.top_k(x, 4)[0]", ["WARNING"], ["ERROR"]),
    ],
)
def test_ways_of_calling(expression: str, tpu: list[str], triton: list[str]) -> None:
    assert found(expression, "tpu") == tpu
    assert found(expression, "triton") == triton


UNKNOWN_SHAPE = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = {expression}

def run(x):
    params = plgpu.CompilerParams()
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=params)(x)
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("jnp.concatenate([x, -x], axis=-1)", ["PAL101 warning"]),
        ("x[:, :32] + x[:, 32:]", ["PAL208 warning", "PAL208 warning"]),
        ("x[:, :] + x[0:]", []),
        ("jnp.round(x / 2)", ["PAL102 error"]),
        ("jnp.round(x)", ["PAL102 warning"]),
        ("jnp.floor(x + 0.5)", []),
        ("jnp.round(x.astype(jnp.int32))", []),
    ],
)
def test_shapes_and_dtypes_that_are_not_known(expression: str, expected: list[str]) -> None:
    findings = lint(UNKNOWN_SHAPE.format(expression=expression), "0.12.0.1", "triton")
    assert [f"{f.code} {f.severity.value}" for f in findings if f.code in ("PAL101", "PAL102", "PAL208")] == expected
