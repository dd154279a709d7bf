"""PAL102: operations that lack some dtypes, by spelling, device and version."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.rules.kernels import launch

CODE = "PAL102"


def found(expression: str, dtype: str, target: str = "tpu:v5e", version: str = "0.8.3") -> list[str]:
    body = f"a = x_ref[...].astype(jnp.{dtype})\no_ref[...] = ({expression}).astype(jnp.float32)"
    code = launch(body, target.partition(":")[0])
    return [f.severity.name for f in lint(code, version, target, CODE)]


@pytest.mark.parametrize(
    "expression",
    [
        "a == 0",
        "a > 0.0",
        "jnp.where(a == 0, a, 1)",
        "jnp.round(a)",
        "a.round()",
        "lax.rsqrt(a)",
        "jnp.sqrt(a)",
        "jnp.floor(a)",
        "a // 2",
    ],
)
def test_bfloat16_in_the_vector_unit_of_v5e(expression: str) -> None:
    assert found(expression, "bfloat16") == ["ERROR"]
    assert found(expression, "float32") == []


@pytest.mark.parametrize("expression", ["a >> 4", "a << 1", "a + a", "a * 2", "a - 1", "jnp.right_shift(a, 4)"])
def test_int8_in_the_vector_unit_of_v5e(expression: str) -> None:
    assert found(expression, "int8") == ["ERROR"]
    assert found(expression, "int32") == []


@pytest.mark.parametrize("expression", ["a.sum(axis=1, keepdims=True)", "jnp.max(a, axis=1, keepdims=True)"])
@pytest.mark.parametrize("version", ["0.8.3", "0.12.0.1"])
def test_unsigned_reductions(expression: str, version: str) -> None:
    assert found(expression, "uint32", "tpu", version) == ["ERROR"]


@pytest.mark.parametrize("expression", ["a / a", "a / 2", "1.0 / a", "lax.div(a, a)"])
def test_bfloat16_division_on_triton(expression: str) -> None:
    assert found(expression, "bfloat16", "triton", "0.12.0.1") == ["ERROR"]


def test_float16_cannot_be_loaded_on_tpu() -> None:
    code = launch("o_ref[...] = x_ref[...]", "tpu", operand="jnp.zeros((16, 128), jnp.float16)", dtype="jnp.float16")
    for target, version in (("tpu:v5e", "0.8.3"), ("tpu:v6e", "0.12.0.1"), ("tpu", "0.12.0.1")):
        assert {f.severity.name for f in lint(code, version, target, CODE)} == {"ERROR"}
    assert lint(code, "0.4.35", "tpu:v5e", CODE) == []
    assert lint(code.replace("float16", "bfloat16"), "0.12.0.1", "tpu", CODE) == []
