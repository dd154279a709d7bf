"""Dead code in kernels: jax removes operations with unused results before a backend compiles them."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.rules.kernels import launch

# Each compiles with jax 0.10.2 and 0.12.0.1 for v5e, and does not with 0.6.2.
DROPPED = [
    "_ = jnp.sort(x_ref[...], axis=0)\no_ref[...] = x_ref[...]",
    "jnp.sort(x_ref[...], axis=0)\no_ref[...] = x_ref[...]",
    "a = jnp.sort(x_ref[...], axis=0)\nb = (a + 1)[:, None]\no_ref[...] = x_ref[...]",
    "a = jnp.exp(jnp.sort(x_ref[...], axis=0))\ndef inner():\n    b = a * 2\no_ref[...] = x_ref[...]",
]
USED = [
    "o_ref[...] = jnp.sort(x_ref[...], axis=0)",
    "a = jnp.sort(x_ref[...], axis=0)\no_ref[...] = a",
    "a = jnp.sort(x_ref[...], axis=0)\nb = a + 1\nif b.shape[0] > 1:\n    o_ref[...] = x_ref[...]",
    "a = jnp.sort(x_ref[...], axis=0)\ndef inner(i, c):\n    return c + a\no_ref[...] = inner(0, x_ref[...])",
    "a = o_ref[...] = jnp.sort(x_ref[...], axis=0)",
    "pl.debug_print('', jnp.sort(x_ref[...], axis=0))",
    "a = []\na.append(jnp.sort(x_ref[...], axis=0))\no_ref[...] = a[0]",
    "a = jnp.sort(x_ref[...], axis=0)\na = a + 1\no_ref[...] = a",
]


@pytest.mark.parametrize("body", DROPPED)
def test_what_nothing_uses_is_not_compiled(body: str) -> None:
    def severities(version: str) -> list[str]:
        return [finding.severity.value for finding in lint(launch(body), version, select="PAL101")]

    assert severities("0.12.0.1") == ["info"]
    assert "info" not in (*severities("0.6.2"), *severities(">=0.6.2"))


@pytest.mark.parametrize("body", USED)
def test_what_is_used(body: str) -> None:
    assert [finding.severity.value for finding in lint(launch(body), "0.12.0.1", select="PAL101")] == ["error"]


def test_plgpu_kernel_drops_no_operation_but_loads() -> None:
    code = """
import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

def kernel(x_ref, o_ref):
    a = x_ref[0]
    b = jnp.sort(x_ref[1])
    o_ref[...] = jnp.zeros((128,), jnp.float32)

def run():
    return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct((128,), jnp.float32))(jnp.zeros((4, 6)))
"""
    assert [found.span.start.line for found in lint(code, "0.12.0.1", select="PAL101")] == [7]
    assert [found.span.start.line for found in lint(code, "0.12.0.1", select="PAL113")] == [7]
    assert [found.span.start.line for found in lint(code, "0.10.2", select="PAL113")] == [6, 7]
