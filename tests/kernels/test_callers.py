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
        for finding in lint(LAUNCHER.strip() + "\n\n" + caller, "0.12.0.1", "tpu:v5e", select="PAL213")
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


CHECKS = """
def check(x, most=4096):
    if isinstance(x, (list, tuple)):
        for each in x:
            check(each, most)
    else:
        assert x.shape[0] <= most

def checked(x):
    if x.shape[0] > 4096:
        raise ValueError(x.shape)
    return x

class Launcher:
    def check(self, x):
        if x.shape[0] > 4096:
            raise ValueError(x.shape)

    def double(self, x):
        raise NotImplementedError

    def run(self, x):
        self.check(x)
        return double(x)
"""


@pytest.mark.parametrize(
    "caller",
    [
        "def launch(x):\n    check(x)\n    return double(x)\n",
        "def launch(x):\n    if x is not None:\n        check(x)\n    return double(x)\n",
        "def launch(x):\n    y = checked(x)\n    return double(y)\n",
        "def ready(x):\n    return checked(x)\n\ndef launch(x):\n    x = ready(x)\n    return double(x)\n",
        "def launch(x):\n    return Launcher().run(x)\n",
    ],
)
def test_a_call_that_a_helper_refuses(caller: str) -> None:
    assert not found(f"{CHECKS}\n{caller}\ndef main():\n    launch(jnp.ones(SHAPE))\n")


@pytest.mark.parametrize(
    "caller",
    [
        "def launch(x):\n    check(x, 8192)\n    return double(x)\n",
        "def launch(x):\n    y = checked if x.shape[0] == 1 else double\n    return double(x)\n",
        "def launch(x):\n    if x.shape[0] == 1:\n        check(x)\n    return double(x)\n",
        "def launch(x):\n    Launcher().double(x)\n    return double(x)\n",
        "@unknown.dispatch\ndef ready(x):\n    raise TypeError\n\ndef launch(x):\n    ready(x)\n    return double(x)\n",
        "def launch(x):\n    try:\n        check(x)\n    except AssertionError:\n        pass\n    return double(x)\n",
    ],
)
def test_a_call_that_a_helper_does_not_refuse(caller: str) -> None:
    assert found(f"{CHECKS}\n{caller}\ndef main():\n    launch(jnp.ones(SHAPE))\n")


@pytest.mark.parametrize(
    ("caught", "handler", "severity"),
    [
        ("Exception", "pass", "INFO"),
        ("(KeyError, ValueError)", "print('too large')", "INFO"),
        ("unknown.Refused", "pass", "INFO"),
        ("Exception", "raise RuntimeError from None", "ERROR"),
        ("KeyError", "pass", "ERROR"),  # which jax does not raise for a kernel
        ("(ImportError, OSError)", "pass", "ERROR"),
    ],
)
def test_a_caller_that_goes_on_where_it_fails(caught: str, handler: str, severity: str) -> None:
    caller = f"def main():\n    try:\n        double(jnp.ones(SHAPE))\n    except {caught}:\n        {handler}\n"
    code = LAUNCHER.strip() + "\n\n" + caller
    found = [f.severity.name for f in lint(code, "0.12.0.1", "tpu:v5e", select="PAL213")]
    assert found == [severity]


def test_script() -> None:
    assert found('if __name__ == "__main__":\n    double(jnp.ones(SHAPE))\n')


def test_verdict_without_caller_stays() -> None:
    code = (
        LAUNCHER.replace("x_ref[...] * 2", "o_ref[...] + x_ref[...]")
        + "\ndef main():\n    double(jnp.ones((8, 128)))\n"
    )
    (finding,) = lint(code, "0.12.0.1", "tpu", select="PAL401")
    assert finding.known_call is None
