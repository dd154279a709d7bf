"""PAL511: refs where arrays are wanted, each traced with jax 0.4.35 to 0.12.0.1."""

from __future__ import annotations

import pytest

from pallas_lint.testing import fixed, lint

_MODULE = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = {value}


def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32))(x)
"""


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("x_ref + 1.0", "x_ref[...] + 1.0"),
        ("1 - x_ref", "1 - x_ref[...]"),
        ("x_ref @ x_ref", "x_ref[...] @ x_ref[...]"),
        ("(x_ref > 0).astype(jnp.float32)", "(x_ref[...] > 0).astype(jnp.float32)"),
        ("jnp.maximum(x_ref, 0.0)", "jnp.maximum(x_ref[...], 0.0)"),
        ("jnp.where(x_ref[...] > 0, x_ref, 0.0)", "jnp.where(x_ref[...] > 0, x_ref[...], 0.0)"),
        ("lax.dot_general(x_ref, x_ref[...], DIMENSIONS)", "lax.dot_general(x_ref[...], x_ref[...], DIMENSIONS)"),
        ("jax.nn.softmax(x_ref, axis=-1)", "jax.nn.softmax(x_ref[...], axis=-1)"),
    ],
)
def test_what_takes_arrays(value: str, right: str) -> None:
    messages = [each.message for each in lint(_MODULE.format(value=value), select="PAL511")]
    assert len(messages) == 1
    assert messages[0].endswith("takes arrays, and `x_ref` is a ref")
    assert f"o_ref[...] = {right}\n" in fixed(_MODULE.format(value=value), select="PAL511")


def test_the_rows_of_a_ref_that_vmap_maps_over() -> None:
    values = {"jax.vmap(lambda row, y: row * y)(x_ref, x_ref[...])": 1, "jax.vmap(lambda row: row[...])(x_ref)": 0}
    for value, count in values.items():
        assert len(lint(_MODULE.format(value=value), select="PAL511")) == count


@pytest.mark.parametrize(
    "value",
    [
        "jnp.zeros_like(x_ref)",
        "jnp.full_like(x_ref, 2.0)",
        "jnp.full(jnp.shape(x_ref), 1.0)",
        "x_ref[...] + 1.0",
        "x_ref.at[0][...] + x_ref.at[1][...]",
        "lax.cond(True, lambda ref: ref[...], lambda ref: -ref[...], x_ref)",
    ],
)
def test_what_takes_refs(value: str) -> None:
    assert not lint(_MODULE.format(value=value), select="PAL511")


def test_what_a_pipeline_carries_is_no_ref() -> None:
    code = """
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import mosaic_gpu as plgpu

        def step(_, x_smem, total):
            return total + x_smem[...]

        def kernel(x_gmem, o_gmem):
            o_gmem[...] = plgpu.emit_pipeline(
                step, grid=(4,), in_specs=[plgpu.BlockSpec((64, 128), lambda i: (i, 0))], init_carry=0.0
            )(x_gmem)

        def run(x):
            return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32))(x)
    """
    assert not lint(code, select="PAL511")
