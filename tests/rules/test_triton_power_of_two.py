"""PAL107: array sizes that Triton does not know. Every verdict was lowered with jax 0.4.35 to 0.12.0.1."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint
from tests.rules.kernels import launch

CODE = "PAL107"


def kernel(body: str, size: str = "(64,)", out: str = "(8,)", backend: str | None = "triton", extra: str = "") -> str:
    return launch(body, backend, operand=f"jnp.zeros({size})", shape=out, extra=extra)


def found(code: str, target: str | None = None) -> list[Severity]:
    return [f.severity for f in lint(code, "0.12.0.1", target, CODE)]


REFUSED = [
    kernel("o_ref[...] = jnp.full((8,), x_ref[2:5].sum())"),
    kernel("o_ref[...] = jnp.full((8,), x_ref[pl.ds(2, 5)].sum())"),
    kernel("n = 5\no_ref[...] = jnp.full((8,), x_ref[pl.ds(0, n)].sum())"),
    kernel("o_ref[...] = jnp.full((8,), x_ref[:48].sum())"),
    kernel("o_ref[...] = jnp.full((8,), x_ref[jnp.arange(48)].sum())"),
    kernel("o_ref[...] = x_ref[...]", "(5,)", "(5,)"),
    kernel("o_ref[...] = x_ref[...] + 1", "(5, 5)", "(5, 5)"),
    kernel("o_ref[...] = jnp.zeros((8,)) + jnp.arange(5).sum()"),
    kernel("o_ref[...] = jnp.zeros((8,)) + jnp.ones((5, 16)).sum()"),
    kernel("o_ref[...] = jnp.zeros((8,)) + lax.iota(jnp.int32, 48).sum()"),
    kernel("o_ref[...] = jnp.zeros((8,)) + lax.broadcasted_iota(jnp.int32, (5, 8), 0).sum()"),
    kernel("o_ref[...] = jnp.broadcast_to(x_ref[0], (5,))", "(8,)", "(5,)"),
    kernel("o_ref[...] = jnp.zeros_like(o_ref)", "(8,)", "(5,)"),
    kernel("o_ref[pl.ds(0, 5)] = 0.0", "(8,)", "(64,)"),
    kernel("x = x_ref[...]\no_ref[...] = jnp.ones_like(x)", "(5,)", "(5,)"),
    kernel("x = x_ref[...]\no_ref[...] = jnp.zeros((8,)) + lax.fori_loop(0, 3, lambda i, c: c + i, x).sum()", "(5,)"),
    kernel("x = x_ref[...]\no_ref[...] = jnp.where(jnp.arange(8) < 4, x[0], 1.0)", "(5,)"),
    kernel("o_ref[...] = jnp.sum(x_ref[...], axis=0)", "(5, 8)"),
    kernel("o_ref[...] = 2.0", "(8,)", "(3, 4)"),
]


@pytest.mark.parametrize("code", REFUSED)
def test_refused(code: str) -> None:
    assert found(code) == [Severity.ERROR]


def test_more_than_triton_has() -> None:
    large = kernel("o_ref[...] = x_ref[...] * 2", "(2048, 1024)", "(2048, 1024)")
    assert found(large) == [Severity.ERROR]
    assert "2097152 elements: Triton arrays have 1048576 at most" in lint(large, "0.12.0.1", None, CODE)[0].message
    assert not found(kernel("o_ref[...] = x_ref[...] * 2", "(1024, 1024)", "(1024, 1024)"))
    assert not found(kernel("o_ref[0] = x_ref[0] * 2", "(2048, 1024)", "(2048, 1024)"))
    (odd,) = lint(kernel("o_ref[...] = x_ref[...]", "(1100, 1024)", "(1100, 1024)"), "0.12.0.1", None, CODE)
    assert "a power of two" in odd.message and odd.help is not None and "a grid" in odd.help


FINE = [
    kernel("o_ref[...] = x_ref[:8] * 2"),
    kernel("o_ref[0, :] = x_ref[3, :]", "(5, 64)", "(5, 64)"),  # rows of 64
    kernel("for k in range(5):\n    o_ref[k] = x_ref[k] * 2", "(5,)", "(5,)"),
    kernel("unused = jnp.zeros((5,))\no_ref[...] = x_ref[:8]"),
    kernel("o_ref[...] = jnp.full((8,), x_ref[0])", "(5,)"),
    kernel("o_ref[...] = jnp.zeros((8,))", "(5,)"),
    kernel("k = jnp.arange(8)\no_ref[...] = plgpu.load(x_ref.at[k], mask=k < 5, other=0.0)", "(5,)"),
    kernel("n = x_ref.shape[0]\no_ref[...] = x_ref[pl.ds(0, n)]", "(8,)"),
    # What nothing takes but for its shape is not loaded.
    kernel("x = x_ref[...]\no_ref[...] = jnp.zeros((8,)) + x.shape[0]", "(5,)"),
    kernel("x = x_ref[...]\ny = x_ref[pl.ds(0, 4)]\no_ref[...] = jnp.zeros(8) + y.sum() * x.ndim", "(5,)"),
    launch("o_ref[...] = x_ref[...]", "triton"),  # of whatever shape the caller passes
]


@pytest.mark.parametrize("code", FINE)
def test_fine(code: str) -> None:
    assert found(code) == []


def test_other_backends_take_every_size() -> None:
    body = "o_ref[...] = x_ref[2:5].sum() + jnp.zeros((8,))"
    assert found(kernel(body, backend="tpu")) == []
    assert found(kernel(body, backend=None), "mosaic-gpu") == []
    assert found(kernel(body, backend=None), "triton") == [Severity.ERROR]


def test_blocks() -> None:
    spec = "pl.BlockSpec((48,), lambda i: (i,))"
    specs = f"grid=(5,), in_specs=[{spec}], out_specs={spec}, "
    assert found(kernel("o_ref[...] = x_ref[...] * 2", "(240,)", "(240,)", extra=specs)) == [Severity.ERROR]
    assert found(kernel("o_ref[0] = x_ref[0] * 2", "(240,)", "(240,)", extra=specs)) == []


def test_in_a_helper_and_behind_a_branch() -> None:
    helper = """
    def third(ref, stop=5):
        return ref[2:stop].sum()
    """
    assert found(launch("o_ref[...] = jnp.full((8,), third(x_ref))", "triton", operand="jnp.zeros((64,))",
                        shape="(8,)", prelude=helper)) == [Severity.ERROR]  # fmt: skip
    branch = "if FLAG:\n    o_ref[...] = jnp.full((8,), x_ref[2:5].sum())"
    assert found(kernel(branch)) == [Severity.WARNING]


_BY_DEFAULT = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

def kernel(x_ref, o_ref, *, width):
    o_ref[...] = x_ref[pl.ds(pl.program_id(0) * width, width)] * 2.0

def double(x, {parameter}):
    return pl.pallas_call(
        functools.partial(kernel, width=block),
        grid=(5,),
        out_specs=pl.BlockSpec((block,), lambda i: (i,)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(),
    )(x)
"""


@pytest.mark.parametrize("parameter", ["block=48", "*, block: int = 48", "size=24, block=48"])
def test_a_size_by_default_is_a_warning(parameter: str) -> None:
    (finding,) = lint(_BY_DEFAULT.format(parameter=parameter), "0.12.0.1", None, CODE)
    assert finding.severity is Severity.WARNING
    assert "has 48 elements (by default: `block=48`)" in finding.message


def test_a_size_from_two_defaults() -> None:
    code = _BY_DEFAULT.format(parameter="rows=3, columns=16").replace("width=block", "width=rows * columns")
    (finding,) = lint(code.replace("(block,)", "(rows * columns,)"), "0.12.0.1", None, CODE)
    assert "(by default: `columns=16`, `rows=3`)" in finding.message


@pytest.mark.parametrize("parameter", ["block=64", "block", "block=None", "*, block: int"])
def test_other_defaults_and_none_are_fine(parameter: str) -> None:
    assert not found(_BY_DEFAULT.format(parameter=parameter))


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("3 * x.shape[0]", "has 3 x x.shape[0] elements"),
        ("x.shape[0] * 6", "has 6 x x.shape[0] elements"),
        ("4 * x.shape[0]", None),
        ("x.shape[0]", None),
        ("x.shape[0] + 3", None),
    ],
)
def test_a_factor_that_no_power_of_two_has(size: str, message: str | None) -> None:
    code = _BY_DEFAULT.format(parameter="block").replace("    return", f"    block = {size}\n    return")
    found = [finding.message for finding in lint(code, "0.12.0.1", None, CODE)]
    assert len(found) == (message is not None) and all(message is not None and message in each for each in found)
