"""PAL203: transposes on TPU, against what libtpu compiled; dots of transposed operands."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import fixed, lint
from tests.rules.kernels import launch

CODE = "PAL203"
VERSIONS = ("0.4.35", "0.6.2", "0.8.3", "0.12.0.1")


def severity(expression: str, shape: tuple[int, ...], version: str, dtype: str = "float32") -> Severity | None:
    code = launch(f"pl.debug_print('', {expression})", operand=f"jnp.ones({shape}, jnp.{dtype})")
    found = [f.severity for f in lint(code, version, None, CODE)]
    return found[0] if found else None


# (expression, shape, dtype): in which of VERSIONS it compiled for v5e and v6e.
COMPILED = [
    ("x_ref[...].T", (128, 128), "float32", "yyyy"),
    ("x_ref[...].T", (100, 60), "bfloat16", "yyyy"),
    ("x_ref[...].T", (128, 64), "int16", "yyyy"),
    ("x_ref[...].T", (128, 128), "int8", "nyyy"),
    ("jnp.transpose(x_ref[...])", (128, 128), "uint8", "nyyy"),
    ("lax.transpose(x_ref[...], (1, 0))", (128, 128), "float8_e4m3fn", "nnyy"),
    ("jnp.swapaxes(x_ref[...], 0, 1)", (128, 128), "bool_", "nnny"),
    ("jnp.swapaxes(x_ref[...], -1, -2)", (4, 8, 128), "float32", "nnyy"),
    ("x_ref[...].transpose(0, 2, 1)", (4, 8, 128), "bfloat16", "nnyy"),
    ("jnp.moveaxis(x_ref[...], 0, -1)", (4, 8, 128), "float32", "nnyy"),
    ("jnp.transpose(x_ref[...], (1, 0, 2))", (4, 8, 128), "float32", "nnyy"),
    ("jnp.transpose(x_ref[...], (1, 0, 2))", (8, 16, 128), "float32", "nyyy"),
    ("jnp.transpose(x_ref[...], (1, 0, 2))", (8, 16, 128), "bfloat16", "nnyy"),
    ("jnp.transpose(x_ref[...], (1, 0, 2))", (8, 16, 128), "bool_", "nnnn"),
    ("jnp.transpose(x_ref[...], (0, 1, 2))", (4, 8, 128), "float32", "yyyy"),
]


@pytest.mark.parametrize(("expression", "shape", "dtype", "compiled"), COMPILED)
@pytest.mark.parametrize("version", VERSIONS)
def test_error_exactly_where_it_did_not_compile(
    expression: str, shape: tuple[int, ...], dtype: str, compiled: str, version: str
) -> None:
    compiles = compiled[VERSIONS.index(version)] == "y"
    assert severity(expression, shape, version, dtype) is (None if compiles else Severity.ERROR)


def test_unknown() -> None:
    code = launch("o_ref[...] = x_ref[...].T")
    assert not lint(code, "0.4.35", None, CODE)


@pytest.mark.parametrize("spelled", ["jnp.dot(x_ref[...], x_ref[...].T)", "x_ref[...] @ jnp.transpose(x_ref[...])"])
def test_folded(spelled: str) -> None:
    code = launch(f"o_ref[...] = {spelled}", operand="jnp.ones((16, 128), jnp.float32)")
    assert [finding.severity for finding in lint(code, "0.12.0.1", None, CODE)] == [Severity.INFO]
    after = fixed(code, "0.12.0.1", None, CODE)
    assert "lax.dot_general(x_ref[...], x_ref[...], (((1,), (1,)), ((), ())))" in after


@pytest.mark.parametrize("spelled", ["jnp.dot(x_ref[...].T, x_ref[...])", "jnp.dot(x_ref[...], x_ref[...])"])
def test_not_folded(spelled: str) -> None:
    code = launch(f"v = {spelled}", operand="jnp.ones((128, 128), jnp.float32)")
    assert not lint(code, "0.12.0.1", None, CODE)
