"""Shapes that callers in the same file pass to a launcher."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

LAUNCHER = """
import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SHAPE = (8192, 4096)

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def double(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""


def found(caller: str) -> list[str]:
    return [
        finding.message
        for finding in lint(LAUNCHER.strip() + "\n\n" + caller, "0.12.0.1", "tpu:v5e")
        if finding.code == "PAL213"
    ]


@pytest.mark.parametrize(
    ("caller", "name"),
    [
        ("def main():\n    return double(jnp.ones((8192, 4096), jnp.float32))\n", "`main`"),
        ("def main(shape=SHAPE):\n    return double(jnp.zeros(SHAPE))\n", "`main`"),
        ("x = jnp.ones(SHAPE)\ny = double(x)\n", "line 20"),
        ("class TestDouble:\n    def test_large(self):\n        double(jnp.ones(SHAPE))\n", "`TestDouble.test_large`"),
        ("def twice(x):\n    return double(double(x))\n\ndef main():\n    twice(jnp.ones(SHAPE))\n", "`main`"),
        ("def main():\n    jax.jit(double)(jax.random.normal(jax.random.key(0), SHAPE))\n", "`main`"),
        ("def main():\n    double(jax.random.uniform(jax.random.key(0), shape=SHAPE, dtype=jnp.float32))\n", "`main`"),
        ("def test_it():\n    for shape in [(8, 128), SHAPE]:\n        double(jnp.ones(shape))\n", "`test_it`"),
    ],
)
def test_a_caller_gives_shapes(caller: str, name: str) -> None:
    (message,) = found(caller)
    assert f", with x: f32[8192,4096], as in {name}" in message


@pytest.mark.parametrize(
    "caller",
    [
        "def main(x):\n    return double(x)\n",
        "def main():\n    return double(jnp.ones((8, 128)))\n",
        "def test_it():\n    with pytest.raises(ValueError):\n        double(jnp.ones(SHAPE))\n",
        "class T:\n  def test(self):\n    with self.assertRaises(OSError):\n      double(jnp.ones(SHAPE))\n",
        "def main(flag):\n    if flag:\n        double(jnp.ones(SHAPE))\n",
    ],
)
def test_a_caller_gives_no_shapes(caller: str) -> None:
    assert not found(caller)


@pytest.mark.parametrize(
    ("handler", "severity"),
    [("pass", "INFO"), ("print('too large')", "INFO"), ("raise RuntimeError from None", "ERROR")],
)
def test_a_caller_that_goes_on_where_it_fails(handler: str, severity: str) -> None:
    caller = f"def main():\n    try:\n        double(jnp.ones(SHAPE))\n    except Exception:\n        {handler}\n"
    code = LAUNCHER.strip() + "\n\n" + caller
    found = [f.severity.name for f in lint(code, "0.12.0.1", "tpu:v5e") if f.code == "PAL213"]
    assert found == [severity]


def test_script() -> None:
    assert found('if __name__ == "__main__":\n    double(jnp.ones(SHAPE))\n')


def test_verdict_without_caller_stays() -> None:
    code = (
        LAUNCHER.replace("x_ref[...] * 2", "o_ref[...] + x_ref[...]")
        + "\ndef main():\n    double(jnp.ones((8, 128)))\n"
    )
    (finding,) = [finding for finding in lint(code, "0.12.0.1", "tpu") if finding.code == "PAL401"]
    assert finding.known_call is None
