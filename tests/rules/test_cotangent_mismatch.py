"""PAL512: cotangents that jax refuses, and those that it takes."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

CODE = """\
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, w_ref, o_ref):
    o_ref[...] = x_ref[...] * w_ref[...]

@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def scale(x, w, block=8):
    row = pl.BlockSpec((block, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // block,),
        in_specs=[row, pl.BlockSpec((1, 128), lambda i: (0, 0))],
        out_specs=row,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x, w)

def forward(x, w, block):
    return scale(x, w, block), (x, w)

def backward(block, kept, g):
    x, w = kept
    BODY

scale.defvjp(forward, backward)

def run():
    return jax.grad(lambda x: jnp.sum(scale(x, jnp.ones((1, 128)), 8)))(jnp.ones((64, 128)))
"""
RETURNED = next(number for number, line in enumerate(CODE.splitlines(), 1) if "BODY" in line)


def messages(body: str) -> list[str]:
    found = lint(CODE.replace("BODY", body), select="PAL512")
    assert all(finding.span.start.line == RETURNED for finding in found)
    return [finding.message for finding in found]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return w, x", "the cotangent of `x` has shape (1, 128), and the argument (64, 128)"),
        ("return g * w, g * x", "the cotangent of `w` has shape (64, 128), and the argument (1, 128)"),
        ("return (g * w,)", "1 cotangent for 2 arguments that are differentiated"),
        ("return g * w, w, None", "3 cotangents for 2 arguments that are differentiated"),
        ("return g * w", "an array is returned, and not a tuple of cotangents for 2 arguments"),
    ],
)
def test_what_jax_refuses(body: str, message: str) -> None:
    assert messages(body) == [message]


@pytest.mark.parametrize(
    "body",
    [
        "return g * w, jnp.sum(g * x, axis=0, keepdims=True)",
        "return [g * w, None]",
        "return (g * w).astype(jnp.bfloat16), w",
        "return helper(g, kept)",
        "return (g * w, w) if block > 8 else (g, w)",
    ],
)
def test_what_jax_takes_or_is_not_known(body: str) -> None:
    assert messages(body) == []


def test_sizes_with_names_are_not_compared() -> None:
    code = CODE.replace("BODY", "return w, x").partition("def run()")[0]
    assert "PAL512" not in {finding.code for finding in lint(code)}


def test_it_is_not_reported_where_the_failure_is_expected() -> None:
    code = CODE.replace("BODY", "return w, x").replace(
        "    return jax.grad", "    import pytest\n    with pytest.raises(ValueError):\n        return jax.grad"
    )
    assert "PAL512" not in {finding.code for finding in lint(code)}


def test_in_the_place_of_integers_anything_may_be_returned() -> None:
    code = CODE.replace("BODY", "return g * w, jnp.zeros(3)").replace("jnp.ones((1, 128))", "jnp.ones((1, 128), int)")
    assert "PAL512" not in {finding.code for finding in lint(code)}
