"""PAL109: products that a backend refuses. Every verdict was lowered with jax 0.4.35 to 0.12.0.1."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.rules.kernels import launch

CODE = "PAL109"
SETUP = """\
m = x_ref[...]
v = x_ref[0, :]
b = jnp.zeros((2, 128, 128))
h = m.astype(jnp.bfloat16)
u = m.astype(jnp.uint8)
i = m.astype(jnp.int32)
b8 = m.astype(jnp.int8)
s = jnp.zeros((8, 8))
"""


def found(expression: str, backend: str, version: str = "0.12.0.1", target: str | None = None) -> list[str]:
    code = launch(f"{SETUP}o_ref[...] = {expression}", backend, operand="jnp.zeros((128, 128))", shape="(128, 128)")
    findings = [f for f in lint(code, version, target, CODE) if f.code == CODE]
    return [f.severity.name[0] for f in findings if f.severity.name != "INFO"]


EVERYWHERE = [
    "jnp.dot(v, v)",
    "jnp.vdot(m, m)",
    "jnp.einsum('i,j->ij', v, v)",
    "lax.dot_general(m, m, (((0, 1), (0, 1)), ((), ())))",
    "jnp.dot(u, u, preferred_element_type=jnp.int32)",
    "jnp.dot(u, b8, preferred_element_type=jnp.int32)",
    "lax.dot_general(m, m, (((1,), (0,)), ((), ())), precision=lax.DotAlgorithm(m.dtype, m.dtype, m.dtype))",
    "lax.dot_general(m, m, (((1,), (0,)), ((), ())), algorithm=lax.DotAlgorithmPreset.F32_F32_F32)",
    "jnp.dot(m, m, precision=lax.DotAlgorithmPreset.F64_F64_F64)",
]
TRITON = [
    "jnp.dot(m, v)",
    "m @ v",
    "v @ m",
    "jnp.einsum('ij,j->i', m, v)",
    "b @ b",
    "jnp.matmul(b, b)",
    "jnp.einsum('bij,bjk->bik', b, b)",
    "jnp.einsum('bij,jk->bik', b, m)",
    "lax.dot_general(b, b, (((2,), (1,)), ((0,), (0,))))",
    "lax.dot_general(b, b, dimension_numbers=(((1,), (1,)), ((0,), (0,))))",
    "jnp.dot(m, h)",
    "jnp.dot(b8, h, preferred_element_type=jnp.float32)",
    "jnp.einsum('ij,jk->ik', h, m)",
    "plgpu.dot(m, h)",
]
TPU = [
    "jnp.dot(m, m, precision=lax.DotAlgorithmPreset.BF16_BF16_F32)",
    "jnp.dot(m, m, precision=jax.lax.DotAlgorithmPreset.DEFAULT)",
    "jnp.dot(m, m, precision=(lax.Precision.HIGHEST, lax.Precision.DEFAULT))",
    "jnp.dot(m, m, preferred_element_type=jnp.bfloat16)",
    "jnp.dot(b8, h)",
    "jnp.dot(m > 0, m > 0)",
]


@pytest.mark.parametrize("expression", EVERYWHERE)
@pytest.mark.parametrize("backend", ["tpu", "triton"])
def test_refused_by_both(expression: str, backend: str) -> None:
    assert found(expression, backend) == ["E"]


@pytest.mark.parametrize("expression", TRITON)
def test_refused_by_triton(expression: str) -> None:
    assert found(expression, "triton") == ["E"]


@pytest.mark.parametrize("expression", TPU)
def test_refused_by_tpu(expression: str) -> None:
    assert found(expression, "tpu") == ["E"]


FINE = [
    "jnp.dot(m, m)",
    "m @ m",
    "m.dot(m)",
    "jnp.dot(m, m, precision=lax.Precision.HIGHEST)",
    "jnp.dot(h, h, preferred_element_type=jnp.float32)",
    "jnp.dot(b8, b8, preferred_element_type=jnp.int32)",
    "lax.dot_general(m, m, (((1,), (1,)), ((), ())))",
    "jnp.einsum('ij,kj->ik', m, m)",
    "jnp.dot(m, 2.0)",
    "m @ h",  # matmul promotes floats
    "s @ s",
    "jnp.outer(v, v)",
    "jnp.dot(x_ref[pl.ds(0, 16), :], m)",
]


@pytest.mark.parametrize("expression", FINE)
@pytest.mark.parametrize("backend", ["tpu", "triton"])
def test_fine(expression: str, backend: str) -> None:
    assert found(expression, backend) == []


VERSIONS = [
    ("tpu", "b @ b", {"0.4.35": "E", "0.5.3": ""}),
    ("tpu", "m @ v", {"0.6.2": "E", "0.7.2": ""}),
    ("tpu", "v @ m", {"0.9.2": "E", "0.10.2": ""}),
    ("tpu", "jnp.tensordot(b.reshape(128, 2, 128), b, 2)", {"0.10.2": "E", "0.11.2": ""}),
    ("tpu", "jnp.dot(m, m, precision='high')", {"0.10.2": "E", "0.11.2": ""}),
    ("tpu", "jnp.dot(u, u, preferred_element_type=jnp.int32)", {"0.8.3": "", "0.9.2": "E"}),
    ("triton", "jnp.dot(u, u, preferred_element_type=jnp.int32)", {"0.8.3": "", "0.9.2": "E"}),
    ("triton", "s @ s", {"0.4.35": "E", "0.8.3": "E", "0.9.2": ""}),
    ("triton", "jnp.dot(x_ref[pl.ds(0, 8), :], m)", {"0.4.35": "E", "0.5.3": ""}),
    ("triton", "v @ m", {"0.11.2": "W", "0.12.0.1": "E"}),
    ("triton", "jnp.dot(m, m, precision=lax.DotAlgorithmPreset.TF32_TF32_F32)", {"0.4.35": "E", "0.8.3": ""}),
]


@pytest.mark.parametrize(("backend", "expression", "expected"), VERSIONS)
def test_versions(backend: str, expression: str, expected: dict[str, str]) -> None:
    assert {version: "".join(found(expression, backend, version)) for version in expected} == expected


@pytest.mark.parametrize(
    "expression",
    [
        "jnp.dot(i, i, preferred_element_type=jnp.int32)",
        "jnp.dot(h, h, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)",
    ],
)
def test_what_only_the_compiler_refuses(expression: str) -> None:
    for target in ("tpu:v5e", "tpu:v6e", None):
        assert found(expression, "tpu", target=target) == found(expression, "tpu", "0.4.35", target) == ["E"]
    assert found(expression, "tpu", target="tpu:v4") == ["W"]


def test_tf32_is_reported() -> None:
    code = launch("o_ref[...] = jnp.dot(x_ref[...], x_ref[...])", "triton", operand="jnp.zeros((128, 128))")
    assert [f.severity.name for f in lint(code, "0.12.0.1", None, CODE)] == ["INFO"]


@pytest.mark.parametrize("first", ["b8", "i", "b8.astype(jnp.int16)"])
@pytest.mark.parametrize("second", ["b8", "i", "b8.astype(jnp.int16)"])
def test_integers_of_two_widths_on_triton(first: str, second: str) -> None:
    # "a and b must have the same element type" in jax 0.10.2.
    codes = found(f"jnp.dot({first}, {second}, preferred_element_type=jnp.int32)", "triton", "0.10.2")
    assert codes == ([] if first == second else ["E"])


@pytest.mark.parametrize("version", ["0.8.3", "0.10.2", "0.11.2", "0.12.0.1"])
@pytest.mark.parametrize(
    "expression",
    [
        "jnp.dot(b8, b8, preferred_element_type=jnp.float32)",
        "jnp.dot(b8, m.astype(jnp.int4), preferred_element_type=jnp.int32)",
        "jnp.dot(h, h, preferred_element_type=jnp.int32)",
        "jnp.dot(m, m, preferred_element_type=jnp.int32)",
        "jnp.dot(h, b8, preferred_element_type=jnp.int32)",
    ],
)
def test_tpu7x_sums_in_the_other_kind_of_number(expression: str, version: str) -> None:
    """Compiled for each device; where none is named, it may be the one that takes it."""
    assert found(expression, "tpu", version, "tpu:tpu7x") == []
    assert [found(expression, "tpu", version, f"tpu:{device}") for device in ("v5e", "v6e", "v4")] == [
        ["E"],
        ["E"],
        ["W"],
    ]
    assert found(expression, "tpu", version) == ["W"]
    assert found("jnp.dot(i, i, preferred_element_type=jnp.float32)", "tpu", version) == ["E"]


@pytest.mark.parametrize("version", ["0.6.2", "0.9.2", "0.12.0.1"])
@pytest.mark.parametrize(
    ("operands", "devices"),
    [
        ("b8, h", {"v4": "E", "v5e": "E", "v6e": "E", "tpu7x": "E"}),
        ("h, b8.astype(jnp.int4)", {"v5e": "E", "tpu7x": "E"}),
        ("b8, m", {"v5e": "", "v6e": "", "tpu7x": "E"}),
    ],
)
def test_narrow_integers_at_a_high_precision(operands: str, devices: dict[str, str], version: str) -> None:
    product = f"jnp.dot({operands}, precision=lax.Precision.HIGHEST, preferred_element_type=jnp.float32)"
    assert {device: "".join(found(product, "tpu", version, f"tpu:{device}")) for device in devices} == devices
    assert found(f"jnp.dot({operands}, preferred_element_type=jnp.float32)", "tpu", version, "tpu:v6e") == []


def set_around(body: str, before: str = "", around: str = "") -> str:
    return f"""
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
{before}
def kernel(x_ref, y_ref, o_ref):
{body}
{around}
def run(x, y):
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32), compiler_params=pltpu.CompilerParams()
    )(x, y)

run(jnp.ones((128, 128)), jnp.ones((128, 128), jnp.bfloat16))
"""


PRODUCT = "    o_ref[...] = x_ref[...] @ y_ref[...]"
IN_CONTEXT = '    with jax.default_matmul_precision("{0}"):\n        o_ref[...] = jnp.dot(x_ref[...], y_ref[...]{1})'


# Compiled for v5e by jax 0.12.0.1: those with a finding are refused (`Bad rhs type`).
@pytest.mark.parametrize(
    ("code", "count"),
    [
        (set_around(IN_CONTEXT.format("highest", "")), 1),
        (set_around(IN_CONTEXT.format("highest", ", precision=None")), 1),
        (set_around(IN_CONTEXT.format("highest", ", precision=jax.lax.Precision.DEFAULT")), 0),
        (set_around(IN_CONTEXT.format("default", "")), 0),
        (set_around(IN_CONTEXT.format("highest", "").replace("y_ref[...]", "y_ref[...].astype(jnp.float32)")), 0),
        (set_around(PRODUCT, around='@jax.default_matmul_precision("float32")'), 1),
        (set_around(PRODUCT, before='jax.config.update("jax_default_matmul_precision", "highest")'), 1),
        (set_around(PRODUCT, before='jax.config.jax_default_matmul_precision = "highest"'), 1),
        (set_around(PRODUCT, before='# jax.config.update("jax_default_matmul_precision", "highest")'), 0),
        (set_around(PRODUCT), 0),
    ],
)
def test_the_precision_that_is_set_around_a_product(code: str, count: int) -> None:
    assert len([f for f in lint(code, "0.12.0.1", "tpu:v5e", CODE) if f.code == CODE]) == count


@pytest.mark.parametrize(
    ("left", "right", "version", "severity"),
    [
        ("h[:, :8]", "h[:8]", "0.11.2", "E"),
        ("h[:, :8]", "h[:8]", "0.12.0.1", "W"),
        ("h[:, :8]", "h[:8]", "0.9.2", "W"),
        ("m[:, :4]", "m[:4]", "0.11.2", "E"),
        ("b8[:, :16]", "b8[:16]", "0.11.2", "E"),
        ("m.astype(jnp.float8_e5m2)[:, :8]", "m.astype(jnp.float8_e5m2)[:8]", "0.11.2", "E"),
        ("h[:, :16]", "h[:16]", "0.11.2", ""),
        ("h[:8]", "h[:, :8]", "0.11.2", ""),
        ("m[:, :8]", "m[:8]", "0.11.2", ""),
        ("b8[:, :32]", "b8[:32]", "0.11.2", ""),
        ("m.astype(jnp.float8_e5m2)[:, :16]", "m.astype(jnp.float8_e5m2)[:16]", "0.11.2", ""),
    ],
)
def test_sums_that_are_too_short_for_tensor_cores(left: str, right: str, version: str, severity: str) -> None:
    assert found(f"{left} @ {right}", "triton", version) == [*severity]


def test_short_sums_in_full_precision() -> None:
    assert found("jnp.dot(m[:, :4], m[:4])", "triton", "0.11.2") == ["E"]
    assert not found("jnp.dot(m[:, :4], m[:4], precision=lax.Precision.HIGHEST)", "triton", "0.11.2")
    assert not found("jnp.dot(m[:, :4], m[:4])", "triton", "0.11.2", "triton:rocm")
    numbers = "(((1,), (1,)), ((), ()))"
    assert found(f"lax.dot_general(h[:, :8], h[:, :8], {numbers})", "triton", "0.11.2") == ["E"]
    assert found("plgpu.dot(h[:, :8], h[:8])", "triton", "0.11.2") == ["E"]
