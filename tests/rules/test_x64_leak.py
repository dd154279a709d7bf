"""PAL105: 64-bit types in kernels. Every verdict was lowered with jax 0.4.35 to 0.12.0.1."""

from __future__ import annotations

import pytest

from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.lint import lint_source
from pallas_lint.testing import fixed, lint, settings
from pallas_lint.text.source import Source
from tests.known_calls.projects import NOWHERE, ProjectWithCalls
from tests.rules.kernels import launch

CODE = "PAL105"
FLAG = 'jax.config.update("jax_enable_x64", True)'


def kernel(expression: str, flag: str = FLAG, backend: str = "tpu", extra: str = "") -> str:
    body = f"o_ref[...] = (x_ref[...] + {expression}).astype(jnp.float32)"
    return launch(body, backend, operand="jnp.zeros((16, 128), jnp.float32)", prelude=f"import numpy as np\n{flag}",
                  extra=extra)  # fmt: skip


def found(code: str, version: str = "0.12.0.1") -> list[str]:
    return [f.severity.name for f in lint(code, version, None, CODE)]


LEAKS = [
    "jnp.zeros((16, 128))",
    "jnp.ones((16, 128), dtype=float)",
    "jnp.zeros((16, 128), jnp.float64)",
    "jnp.sum(x_ref[...] > 0)",
    "jnp.sum((x_ref[...] > 0).astype(jnp.int32), axis=1, keepdims=True)",
    "jnp.argmax(x_ref[...], axis=1, keepdims=True)",
    "x_ref[...].argmax()",
    "x_ref[...].astype(int)",
    "x_ref[...].astype('float64')",
    "jnp.arange(128)[None, :]",
    "lax.broadcasted_iota(int, (16, 128), 1)",
    "jax.nn.one_hot(jnp.zeros((16,), jnp.int32), 128)",
    "x_ref[...] * np.sqrt(2.0)",
    "x_ref[...] * np.float64(2)",
    "jnp.dot(x_ref[...], x_ref[...].T, preferred_element_type=jnp.float64)",
]


@pytest.mark.parametrize("expression", LEAKS)
def test_leaks_on_tpu(expression: str) -> None:
    assert found(kernel(expression)) == ["ERROR"]


FINE = [
    "jnp.arange(128, dtype=jnp.int32)[None, :]",
    "jnp.zeros((16, 128), jnp.float32)",
    "jnp.full((16, 128), -jnp.inf)",  # weak: it gives way
    "jnp.sum(x_ref[...] > 0, dtype=jnp.int32)",
    "lax.argmax(x_ref[...], 1, jnp.int32)[:, None]",
    "pl.program_id(0) * 2",
    "np.float32(2)",
    "np.pi",
    "2 * 0.5",
    "jnp.where(x_ref[...] > 0, 1.0, 0.0)",
    "jnp.mean(x_ref[...], axis=1, keepdims=True)",
]


@pytest.mark.parametrize("expression", FINE)
@pytest.mark.parametrize("flag", ["", FLAG])
def test_fine(expression: str, flag: str) -> None:
    assert found(kernel(expression, flag)) == []


@pytest.mark.parametrize("expression", ["jnp.zeros((16, 128))", "jnp.arange(128)[None, :]", "x_ref[...].astype(int)"])
def test_without_the_flag_defaults_have_32_bits(expression: str) -> None:
    assert found(kernel(expression, "")) == []


@pytest.mark.parametrize(
    "expression",
    [
        "jnp.zeros((16, 128), jnp.float64)",
        "x_ref[...].astype(jnp.int64)",
        "jnp.float64(2)",
        "np.float64(2) * jnp.uint64(1)",
    ],
)
def test_without_the_flag_a_name_is_wrong(expression: str) -> None:
    assert found(kernel(expression, "")) == ["INFO"]


@pytest.mark.parametrize(
    ("flag", "severity"),
    [
        (FLAG, "ERROR"),
        ("jax.config.jax_enable_x64 = True", "ERROR"),
        ('import os\nos.environ["JAX_ENABLE_X64"] = "1"', "ERROR"),
        ("from jax import config\nconfig.update('jax_enable_x64', True)", "ERROR"),
        ("def main():\n    jax.config.update('jax_enable_x64', True)", "WARNING"),
        ("if __name__ == '__main__':\n    jax.config.update('jax_enable_x64', True)", "WARNING"),
    ],
)
def test_the_flag(flag: str, severity: str) -> None:
    assert found(kernel("jnp.sum(x_ref[...] > 0)", flag)) == [severity]


@pytest.mark.parametrize("flag", ["jax.config.update('jax_enable_x64', False)", f"# {FLAG}"])
def test_no_flag(flag: str) -> None:
    assert found(kernel("jnp.sum(x_ref[...] > 0)", flag)) == []


def test_triton_takes_64_bits() -> None:
    assert found(kernel("jnp.zeros((16, 128))", backend="triton")) == ["INFO"]
    assert found(kernel("jnp.arange(128)[None, :]", backend="triton")) == []
    assert found(kernel("jnp.argmax(x_ref[...], axis=1, keepdims=True)", backend="triton")) == ["ERROR"]


def test_index_maps() -> None:
    specs = "grid=(2,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))], out_specs=pl.BlockSpec((8, 128), {}), "
    code = kernel("1", extra=specs.format("lambda i: (i, i * 0)"))
    assert found(code) == ["ERROR"]
    assert found(code, "0.10.2") == ["WARNING"]
    assert found(kernel("1", "", extra=specs.format("lambda i: (i, 0)"))) == []


def test_outputs() -> None:
    body = "o_ref[...] = x_ref[...].astype(o_ref.dtype)"
    assert "ERROR" in found(launch(body, "tpu", dtype="jnp.float64"))
    assert found(launch(body, "triton", dtype="jnp.float64", prelude=FLAG)) == ["INFO"]


def test_a_caller_that_passes_64_bits_has_set_the_flag() -> None:
    code = launch("o_ref[...] = x_ref[...]", "triton", dtype="x.dtype")
    call = KnownCall("k.py::run", (("x", "f64[16,128]"),), "tests/test_k.py:3")
    project = ProjectWithCalls(NOWHERE, given=(call,))
    assert not lint_source(Source("k.py", code), settings("0.12.0.1", None, CODE), project).findings


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("jnp.zeros((16, 128))", "jnp.zeros((16, 128), dtype=jnp.float32)"),
        ("jnp.arange(128)[None, :]", "jnp.arange(128, dtype=jnp.int32)[None, :]"),
        ("x_ref[...].astype(int)", "x_ref[...].astype(jnp.int32)"),
        ("jnp.sum(x_ref[...] > 0, axis=1)", "jnp.sum(x_ref[...] > 0, axis=1, dtype=jnp.int32)"),
        ("lax.broadcasted_iota(int, (16, 128), 1)", "lax.broadcasted_iota(jnp.int32, (16, 128), 1)"),
        ("jnp.zeros((16, 128), dtype=jnp.float64)", "jnp.zeros((16, 128), dtype=jnp.float32)"),
    ],
)  # fmt: skip
def test_fix(before: str, after: str) -> None:
    assert fixed(kernel(before), "0.12.0.1", None, CODE) == kernel(after)
