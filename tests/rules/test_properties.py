"""Properties with setters, on the kernel's own classes: what is assigned to them is stored."""

from __future__ import annotations

import pytest

from pallas_lint.testing import codes, lint_text

MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

class Tile:
    def __init__(self, ref):
        self.ref = ref

    @property
    def value(self):
        return self.ref[...]
{setter}
def kernel(x_ref, o_ref):
    {body}

def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)
"""
SETTER = """
    @value.setter
    def value(self, new):
        self.ref[...] = new
"""


@pytest.mark.parametrize(
    ("setter", "body", "expected"),
    [
        (SETTER, "Tile(o_ref).value = Tile(x_ref).value + 1", set()),
        (SETTER, "Tile(o_ref).value = jnp.sort(Tile(x_ref).value)", {"PAL101"}),
        (SETTER, "o_ref[...] = jnp.sort(Tile(x_ref).value)", {"PAL101"}),
        (SETTER, "Tile(o_ref).other = x_ref[...]", {"PAL411"}),
        ("", "o_ref[...] = jnp.sort(Tile(x_ref).value)", {"PAL101"}),
        (SETTER.replace("self.ref[...] = new", "pass"), "Tile(o_ref).value = x_ref[...]", {"PAL411"}),
    ],
)
def test_setter(setter: str, body: str, expected: set[str]) -> None:
    assert codes(lint_text(MODULE.format(setter=setter, body=body), jax="0.12.0.1", target="tpu")) == expected
