"""PAL205: boolean vectors that get a dimension behind, against what libtpu compiled."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import fixed, lint
from tests.rules.kernels import launch

CODE = "PAL205"
FAILING = ("0.6.2", "0.8.3", "0.9.2", "0.10.2", "0.12.0.1")


def found(expression: str, jax: str = "0.12.0.1", operand: str = "jnp.ones((16, 128))") -> set[Severity]:
    code = launch(f"x = x_ref[...]\no_ref[...] = jnp.where({expression}, 1.0, 0.0)", operand=operand)
    return {finding.severity for finding in lint(code, jax, select=CODE)}


ALONG_LANES = [
    "(x[0, :] > 0)[:, None]",
    "(x_ref[0] > 0)[:, None]",
    "(x_ref[0, :] == x_ref[1, :])[:, None]",
    "(jnp.arange(128) < 5)[:, None]",
    "(jnp.max(x, axis=0) > 0)[:, None]",
    "(~(x[0] > 0))[:, None]",
    "((x[0] > 0) & (x[1] < 3))[:, None]",
    "(x[0] > 0).reshape(128, 1)",
    "(x[0] > 0).reshape(-1, 1)",
    "jnp.expand_dims(x[0] > 0, 1)",
    "jnp.expand_dims(x[0] > 0, -1)",
    "lax.broadcast_in_dim(x[0] > 0, (128, 128), (0,))",
    "(x > 0)[:, :, None]",
    "(x > 0)[..., None]",
]


@pytest.mark.parametrize("expression", ALONG_LANES)
@pytest.mark.parametrize("jax", FAILING)
def test_along_lanes(expression: str, jax: str) -> None:
    assert found(expression, jax) == {Severity.ERROR}


@pytest.mark.parametrize("expression", ["(x[0, :] > 0)[:, None]", "(x > 0)[:, :, None]"])
def test_simple_comparisons_compiled_once(expression: str) -> None:
    assert found(expression, "0.4.35") == set()


@pytest.mark.parametrize("expression", ["(~(x[0] > 0))[:, None]", "((x[0] > 0) & (x[1] < 3))[:, None]"])
def test_masks_of_masks_never_did(expression: str) -> None:
    assert found(expression, "0.4.35") == {Severity.ERROR}


@pytest.mark.parametrize(
    "expression",
    [
        "(x[0, :] > 0)[None, :]",
        "(x[0] > 0)[None]",
        "(jnp.max(x, axis=1) > 0)[:, None]",
        "(jnp.max(x, axis=-1) > 0)[:, None]",
        "(x[:, 0] > 0)[:, None]",
        "(jnp.arange(128) < 5)[None, :]",
        "(x > 0)[:, None, :]",
        "(x > 0)[None]",
        "jnp.expand_dims(x[0] > 0, 0)",
        "lax.broadcast_in_dim(x[0] > 0, (16, 128), (1,))",
        "x[0][:, None] > 0",
        "x > 0",
    ],
)
@pytest.mark.parametrize("jax", ["0.4.35", "0.12.0.1"])
def test_compiles(expression: str, jax: str) -> None:
    assert found(expression, jax) == set()


def test_guessed_rank_is_a_warning() -> None:
    assert found("(x_ref[0, :] > 0)[:, None]", operand="x") == {Severity.WARNING}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(x[0] > 0)[:, None]", "x[0][:, None] > 0"),
        ("(x[0] + 1 > x[1])[:, None]", "(x[0] + 1)[:, None] > x[1][:, None]"),
        ("(x > 0)[:, :, None]", "x[:, :, None] > 0"),
        ("(jnp.arange(16) < 5)[:, None]", "jnp.arange(16)[:, None] < 5"),
    ],
)
def test_fix_in_place(before: str, after: str) -> None:
    code = launch(f"x = x_ref[...]\no_ref[...] = jnp.where({before}, 1.0, 0.0)", operand="jnp.ones((16, 128))")
    assert fixed(code, "0.12.0.1", select=CODE) == code.replace(before, after)


def test_fix_through_a_variable() -> None:
    body = "mask = x_ref[0, :] > 0\no_ref[...] = jnp.where(mask[:, None], 1.0, mask[:, None])"
    code = launch(body, operand="jnp.ones((16, 128))")
    after = code.replace("x_ref[0, :] > 0", "x_ref[0, :][:, None] > 0").replace("mask[:, None]", "mask")
    assert fixed(code, "0.12.0.1", select=CODE) == after


@pytest.mark.parametrize(
    "body",
    [
        "mask = x_ref[0, :] > 0\no_ref[...] = jnp.where(mask[:, None], 1.0, 0.0) + mask[None, :]",
        "mask = x_ref[0, :] > 0\nmask = mask & True\no_ref[...] = jnp.where(mask[:, None], 1.0, 0.0)",
        "mask = (x_ref[0, :] > 0) & (x_ref[1, :] > 0)\no_ref[...] = jnp.where(mask[:, None], 1.0, 0.0)",
    ],
)
def test_no_fix(body: str) -> None:
    findings = lint(launch(body, operand="jnp.ones((16, 128))"), "0.12.0.1", select=CODE)
    assert findings
    assert not any(finding.fixes for finding in findings)


def test_unknown_shape_of_what_is_expanded() -> None:
    code = """
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import tpu as pltpu

        def kernel(ids_ref, x_ref, o_ref):
            mask = jnp.expand_dims(ids_ref[...] != 0, {axis})
            o_ref[...] = jnp.where(mask, x_ref[...], 0.0)

        def run(ids, x):
            out = jax.ShapeDtypeStruct(x.shape, x.dtype)
            return pl.pallas_call(kernel, out_shape=out, compiler_params=pltpu.CompilerParams())(ids, x)
    """
    for axis, expected in ((-1, {Severity.INFO}), (0, set())):
        findings = lint(code.format(axis=axis), "0.12.0.1")
        assert {finding.severity for finding in findings if finding.code == CODE} == expected
