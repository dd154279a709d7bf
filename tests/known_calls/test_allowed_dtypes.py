"""Cases of the dtypes that a launcher compares those of its parameters with."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.kernels.model.values import Array
from pallas_lint.testing import lint
from pallas_lint.text.source import Source

KERNEL = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ALLOWED = (jnp.float32, jnp.bfloat16)

def kernel(x_ref, o_ref):
    def step(i, total):
        return total * 0.5 + x_ref[...].astype(jnp.float32)

    o_ref[...] = lax.fori_loop(0, 4, step, x_ref[...]).astype(o_ref.dtype)

def launch(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def carries(code: str) -> list[tuple[Severity, str]]:
    found = lint(KERNEL + code, "0.12.0.1", select="PAL509")
    return [(finding.severity, finding.message.partition(", where ")[2]) for finding in found]


GUARDS = [
    "    if x.dtype not in ALLOWED:\n        raise TypeError(x.dtype)\n",
    "    assert x.dtype in {jnp.dtype('float32'), jnp.dtype('bfloat16')}\n",
    "    if x.dtype.name not in ('float32', 'bfloat16'):\n        raise TypeError(x.dtype)\n",
    "    if not (x.dtype == jnp.float32 or x.dtype == jnp.bfloat16):\n        raise TypeError(x.dtype)\n",
    "    tile = 16 if x.dtype == jnp.bfloat16 else 8\n",
]


@pytest.mark.parametrize("guard", GUARDS)
def test_one_of_the_dtypes_that_the_code_allows_fails(guard: str) -> None:
    found = carries(f"\ndef checked(x):\n{guard}    return launch(x)\n")
    assert found == [(Severity.WARNING, "`x.dtype` is bf16, which the code allows")]


def test_a_helper_that_checks() -> None:
    helper = "\ndef check(x):\n    if x.dtype not in ALLOWED:\n        raise TypeError(x.dtype)\n"
    assert (
        len(carries(f"{helper}\nclass Sums:\n    def run(self, x):\n        check(x)\n        return launch(x)\n")) == 1
    )


@pytest.mark.parametrize(
    "guard",
    [
        "",
        "    assert x.dtype in (jnp.float32, jnp.float64)\n",
        "    if x.dtype == jnp.bfloat16:\n        raise TypeError(x.dtype)\n",
        "    if x.dtype == jnp.bfloat16:\n        x = x.astype(jnp.float32)\n",
        "    assert x.dtype in ALLOWED\n    x = x.astype(jnp.float32)\n",
    ],
)
def test_dtypes_that_are_not_allowed_or_work(guard: str) -> None:
    assert not carries(f"\ndef checked(x):\n{guard}    return launch(x)\n")


def test_a_parameter_that_is_a_dtype() -> None:
    code = """
def checked(n, dtype, mode):
    if dtype not in ALLOWED or mode not in ("bfloat16", "fast"):
        raise TypeError(dtype)
    return launch(jnp.zeros((n, 128), dtype))
"""
    assert carries(code) == [(Severity.WARNING, "`dtype` is bf16, which the code allows")]


def test_a_dtype_that_a_call_has_is_named_by_the_call() -> None:
    guard = "    assert x.dtype in ALLOWED\n"
    call = "\ndef main():\n    checked(jnp.ones((8, 128), jnp.bfloat16))\n"
    (finding,) = lint(f"{KERNEL}\ndef checked(x):\n{guard}    return launch(x)\n{call}", "0.12.0.1", select="PAL509")
    assert finding.severity is Severity.ERROR
    assert "as in `main`" in finding.message


def test_only_one_dtype_is_allowed() -> None:
    found = carries(
        "\ndef checked(x):\n    if x.dtype != jnp.bfloat16:\n        raise TypeError\n    return launch(x)\n"
    )
    assert found == [(Severity.ERROR, "")]


def test_what_a_case_is_launched_with() -> None:
    code = "\ndef checked(x):\n    rows, columns = x.shape\n    assert x.dtype in ALLOWED\n    return launch(x)\n"
    found = [
        launch.operands[0] if launch.operands else None
        for launch in analyse(ModuleGraph().add(Source("k.py", KERNEL + code), None), ("0.12.0.1",)).launches
        if launch.known_call is not None and launch.known_call.kind == "dtype"
    ]
    assert sorted((array.dtype or "", array.rank or 0) for array in found if isinstance(array, Array)) == [
        ("bf16", 2),
        ("f32", 2),
    ]
