"""PAL704: launches on a GPU that leave the backend to the jax version."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint
from tests.rules.traced import PRELUDE

TRITON = "from jax.experimental.pallas import triton as plt\n"
BODY = "def k(x_ref, o_ref):\n    o_ref[...] = plt.load(x_ref)\n"


def launch(keywords: str = "", body: str = BODY) -> str:
    return PRELUDE + TRITON + body + f"def f(x):\n    return pl.pallas_call(k, out_shape=OUT{keywords})(x)\n"


@pytest.mark.parametrize(
    ("jax", "found"),
    [
        ("0.8.3", False),
        ("0.9.0", True),
        ("0.10.2", True),
        ("0.11.1", True),
        ("0.11.2", False),
        ("0.12.0", False),
        (">=0.8,<0.9", False),
        (">=0.8,<0.11", True),
        (">=0.10", True),
        (">=0.11.2", False),
    ],
)
def test_versions(jax: str, found: bool) -> None:
    severities = [f.severity for f in lint(launch(), jax, select="PAL704")]
    assert severities == ([Severity.WARNING] if found else [])


@pytest.mark.parametrize(
    "keywords",
    [", compiler_params=plt.CompilerParams()", ", interpret=True", ", **options", ", compiler_params=params"],
)
def test_silent_where_something_names_the_backend(keywords: str) -> None:
    assert not lint(launch(keywords), ">=0.8,<0.11", select="PAL704")


def test_an_info_where_the_device_is_not_known() -> None:
    code = PRELUDE.replace("from jax.experimental.pallas import tpu as pltpu\n", "").replace(
        "VMEM = pltpu", "VMEM = pl"
    )
    code += "def f(x):\n    return pl.pallas_call(copy, out_shape=OUT)(x)\n"
    assert [f.severity for f in lint(code, ">=0.8,<0.11", select="PAL704")] == [Severity.INFO]
    assert not lint(code, "0.10.2", select="PAL704")
    assert not lint(code, ">=0.8,<0.9", select="PAL704")
    assert [f.severity for f in lint(code, "0.10.2", "triton", select="PAL704")] == [Severity.INFO]


def test_silent_on_tpu() -> None:
    code = PRELUDE + "def k(x_ref, o_ref, s_ref):\n    o_ref[...] = x_ref[...]\n"
    code += "def f(x):\n    return pl.pallas_call(k, out_shape=OUT, scratch_shapes=[VMEM])(x)\n"
    assert not lint(code, ">=0.8,<0.12", select="PAL704")


WRAPPED = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

def launch(*args, **kwargs):
    {change}
    return pl.pallas_call(*args, **kwargs)

def kernel(x_ref, o_ref):
    o_ref[...] = plgpu.load(x_ref)

def run(x):
    return launch(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype){given})(x)
"""
GIVEN = ", compiler_params=plgpu.CompilerParams()"


@pytest.mark.parametrize(
    ("change", "given", "reported"),
    [
        ("pass", "", True),
        ("kwargs.setdefault('compiler_params', plgpu.CompilerParams())", "", False),
        ("kwargs.setdefault('compiler_params', None)", GIVEN, False),
        ("kwargs.update(compiler_params=plgpu.CompilerParams())", "", False),
        ("kwargs.update({'compiler_params': plgpu.CompilerParams()})", "", False),
        ("kwargs.update(unknown())", "", False),
        ("kwargs.pop('compiler_params')", GIVEN, True),
        ("kwargs.pop(unknown())", GIVEN, False),
    ],
)
def test_a_wrapper_that_changes_its_keywords(change: str, given: str, reported: bool) -> None:
    assert bool(lint(WRAPPED.format(change=change, given=given), "0.10.2", select="PAL704")) is reported
