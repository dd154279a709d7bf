"""PAL207: counting on TPU, against what was lowered and compiled."""

from __future__ import annotations

import pytest

from pallas_lint.testing import codes, fixed, lint
from tests.rules.kernels import launch

CODE = "PAL207"


def flagged(expression: str, jax: str, backend: str = "tpu") -> bool:
    return CODE in codes(lint(launch(f"o_ref[...] = x_ref[...] + {expression}", backend), jax, select=CODE))


@pytest.mark.parametrize(
    "expression",
    [
        "jnp.arange(128, dtype=jnp.float32)",
        "jnp.arange(16, dtype=jnp.bfloat16)[:, None]",
        "jnp.arange(0.0, 128.0)",
        "lax.iota(jnp.float32, 128)",
        "lax.broadcasted_iota(jnp.float32, (16, 128), 1)",
        "jnp.linspace(0.0, 1.0, 128)",
    ],
)
def test_floats(expression: str) -> None:
    for jax in ("0.6.2", "0.7.2", "0.8.3", "0.10.2", "0.12.0.1"):
        assert flagged(expression, jax)
    assert not flagged(expression, "0.12.0.1", "triton")


@pytest.mark.parametrize("expression", ["jnp.arange(128)", "lax.iota(jnp.int32, 128)", "jnp.arange(16)[:, None]"])
def test_integers_of_rank_one(expression: str) -> None:
    for jax in ("0.4.35", "0.5.3"):
        assert flagged(expression, jax)
    for jax in ("0.6.2", "0.8.3", "0.12.0.1"):
        assert not flagged(expression, jax)


def test_matrices_of_integers() -> None:
    for jax in ("0.4.35", "0.12.0.1"):
        assert not flagged("lax.broadcasted_iota(jnp.int32, (16, 128), 1)", jax)


@pytest.mark.parametrize(("expression", "last"), [("jnp.arange(1, 129)", "0.7.2"), ("jnp.arange(0, 256, 2)", "0.9.2")])
@pytest.mark.parametrize("jax", ["0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.2", "0.12.0.1"])
def test_constants(expression: str, last: str, jax: str) -> None:
    order = ["0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.2", "0.12.0.1"]
    assert flagged(expression, jax) is (order.index(jax) <= order.index(last))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("jnp.arange(128, dtype=jnp.float32)", "jnp.arange(128).astype(jnp.float32)"),
        ("jnp.arange(n, dtype=jnp.float32)[None, :]", "lax.broadcasted_iota(jnp.int32, (1, n), 1).astype(jnp.float32)"),
        ("jnp.arange(n, dtype=jnp.float32)[None]", "lax.broadcasted_iota(jnp.int32, (1, n), 1).astype(jnp.float32)"),
        ("lax.iota(jnp.float32, 16)[:, None]", "lax.broadcasted_iota(jnp.int32, (16, 1), 0).astype(jnp.float32)"),
        (
            "lax.broadcasted_iota(jnp.float32, (16, 128), 1)",
            "lax.broadcasted_iota(jnp.int32, (16, 128), 1).astype(jnp.float32)",
        ),
        ("jnp.arange(0.0, 128.0)", "jnp.arange(0.0, 128.0)"),
    ],
)
def test_fix(before: str, after: str) -> None:
    code = launch(f"n = x_ref.shape[1]\no_ref[...] = x_ref[...] + {before}")
    assert fixed(code, "0.12.0.1", select=CODE) == code.replace(before, after)
