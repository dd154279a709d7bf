"""Keywords that come by `**options`, of versions that do not take them."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

CODE = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def copy(x, old=False):
    {options}
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(1,), {call})(x)
"""


def found(options: str, call: str, jax: str, code: str) -> list[str]:
    text = CODE.replace("{options}", options).replace("{call}", call)
    return [finding.message for finding in lint(text, jax) if finding.code == code]


@pytest.mark.parametrize(
    ("options", "call", "jax", "code"),
    [
        ('options = {"num_warps": 4, "num_stages": 2}', "**options", "0.8.3", "PAL701"),
        ("options = dict(num_warps=4)", "**options", "0.8.3", "PAL701"),
        (
            "mode = dict(indexing_mode=None)",
            "in_specs=[pl.BlockSpec((8, 128), lambda i: (0, 0), **mode)]",
            "0.12.0.1",
            "PAL701",
        ),
        ("metadata = dict(metadata={})", "**metadata", "0.5.3", "PAL703"),
    ],
)
def test_gone(options: str, call: str, jax: str, code: str) -> None:
    assert found(options, call, jax, code)


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ('options = {"interpret": False}', "**options"),
        ("options = {}\n    if old:\n        options['num_warps'] = 4", "**options"),
        ("options = dict(num_warps=4) if old else {}", "**options"),
        ("options = dict(num_warps=4) if jax.__version_info__ < (0, 5) else {}", "**options"),
        ("options = dict(num_warps=4) if not hasattr(pltpu, 'CompilerParams') else {}", "**options"),
    ],
)
def test_taken(options: str, call: str) -> None:
    assert not found(options, call, "0.8.3", "PAL701")


@pytest.mark.parametrize(("jax", "severity"), [("0.10.2", "error"), (None, "warning")])
def test_an_assumed_version_makes_no_error(jax: str | None, severity: str) -> None:
    text = CODE.replace("{options}", 'options = {"backend": "triton"}').replace("{call}", "**options")
    assert [f.severity.value for f in lint(text, jax, select="PAL701")] == [severity]
