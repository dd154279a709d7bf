"""PAL509: operands whose shapes do not fit, against what jax traced."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.rules.test_store_mismatch import Case, module, traced

_SHAPES = ["(8, 128)", "(1, 128)", "(8, 1)", "(128,)", "(8,)", "(2, 8, 128)", "(1, 8, 128)", "(2, 4, 128)", "()"]
_ONE = "x = jnp.zeros({0}, jnp.float32)\n"
_TWO = _ONE + "y = jnp.zeros({1}, jnp.float32)\n"
_OF_TWO = """\
x + y
x * y - 1.0
jnp.maximum(x, y)
lax.max(x, x) + y
x < y
jnp.where(x > 0, y, 0.0)
jnp.where(y > 0, x, y)
jnp.dot(x, y)
x @ y
jnp.matmul(y.T, x)
lax.dot_general(x, y, (((x.ndim - 1,), (y.ndim - 1,)), ((), ())))
jnp.inner(x, y)
jnp.tensordot(x, y, axes=1)
jnp.tensordot(x, y, axes=((0,), (0,)))
jnp.einsum('ij,kj->ik', x, y)
jnp.einsum('ij,jk', x, y)
jnp.einsum('bij,bkj->bik', x, y)
jnp.concatenate([x, y])
jnp.concatenate([x, y, x], axis=-1)
jnp.stack([x, y])
jnp.stack([x, y], axis=1)
lax.concatenate([x, y], 0)""".splitlines()
_OF_ONE = [
    f"{form.format(sizes)}"
    for sizes in ("8, 128", "1024", "-1", "8, -1", "16, 64", "3, -1", "2, -1, 64", "7, 100", "1, 128", "0, -1")
    for form in ("x.reshape({0})", "x.reshape(({0},))", "jnp.reshape(x, ({0},))")
]
_AXES = """\
jnp.sum(x, axis=1)
x.max(axis=-2, keepdims=True)
jnp.mean(x, (0, 2))
x.argmax(1)
jnp.squeeze(x, 0)
x.squeeze(axis=(0, -1))
lax.squeeze(x, (1,))
jnp.cumsum(x, axis=2)
jnp.transpose(x, (1, 0))
x.transpose(2, 0, 1)
x.transpose((0, 1))
jnp.transpose(x)
lax.transpose(x, (1, 0))
jnp.split(x, 2)[0]
jnp.split(x, 3, axis=-1)[0]
jnp.split(x, [3])[0]
jnp.array_split(x, 3)[0]
jnp.broadcast_to(x, (8, 128))
jnp.broadcast_to(x, (128,))
jnp.broadcast_to(x, (2, 8, 128))""".splitlines()
_CARRIES = ["x", "jnp.zeros((8, 128))", "jnp.full((8, 1), -jnp.inf)", "0.0", "0", "jnp.int32(0)", "jnp.float32(0)"]
_BODIES = """\
c
c + 1
c * 1.5
c + x
x
0
0.0
None
jnp.sum(x)
jnp.sum(x, axis=1)
jnp.sum(x, axis=1, keepdims=True)
c.astype(jnp.bfloat16)
jnp.maximum(c, x.max())""".splitlines()
_LOOPS = [
    "x = jnp.ones((8, 128), jnp.bfloat16)\n" + form
    for one in _CARRIES
    for other in _BODIES
    for form in (
        f"lax.fori_loop(0, 3, lambda i, c: {other}, {one})",
        f"lax.fori_loop(0, 3, lambda i, t: (t[0], (lambda c: {other})(t[1])), (0, {one}))",
        f"lax.while_loop(lambda c: False, lambda c: {other}, {one})",
        f"lax.scan(lambda c, _: ({other}, None), {one}, None, length=3)",
        f"lax.cond(x[0, 0] > 0, lambda c: {other}, lambda c: c, {one})",
        f"lax.switch(jnp.int32(1), [lambda c: {other}, lambda c: c, lambda c: c], {one})",
    )
]
CASES: list[Case] = [
    *(("(8, 128)", "float32", f"{_ONE.format(one)}{value}") for one in _SHAPES for value in _AXES),
    *(("(8, 128)", "float32", loop) for loop in _LOOPS),
    *(
        ("(8, 128)", "float32", f"{_TWO.format(one, other)}{value}")
        for one in _SHAPES
        for other in _SHAPES
        for value in _OF_TWO
    ),
    *(("(8, 128)", "float32", f"{_ONE.format(one)}{value}") for one in _SHAPES for value in _OF_ONE),
]


def found(case: Case, version: str) -> bool:
    return bool(lint(module(case), version, select="PAL509"))


@pytest.mark.nightly
def test_as_traced() -> None:
    """What is flagged is refused by jax; nearly all that it refuses is flagged."""
    version, (errors,) = traced(CASES, ["float32"])
    judged = [(case, error, found(case, version)) for case, error in zip(CASES, errors, strict=True)]
    assert [(case, error) for case, error, flagged in judged if flagged and not error] == []
    refused = [case for case, error, _ in judged if error]
    missed = [(case, error) for case, error, flagged in judged if error and not flagged]
    assert len(missed) <= len(refused) * 0.1, missed


@pytest.mark.parametrize(
    ("shapes", "value"),
    [
        (("(8, 128)", "(2, 4, 128)"), "x + y"),
        (("(8, 128)", "(8, 128)"), "x @ y"),
        (("(8, 128)", "(128,)"), "jnp.concatenate([x, y])"),
        (("(8, 128)", "(2, 8, 128)"), "jnp.einsum('ij,kj->ik', x, y)"),
        (("(8, 128)", "()"), "x.reshape(7, -1)"),
    ],
)
def test_flagged(shapes: tuple[str, str], value: str) -> None:
    assert found(("(8, 128)", "float32", f"{_TWO.format(*shapes)}{value}"), "0.12.0.1")


def test_a_failure_is_reported_once() -> None:
    """What is computed from a value that jax refuses to make is no further mistake, nor is storing it."""
    body = "x = x_ref[...].reshape(3, 128)\ny = x.reshape(8, 128) @ x\no_ref[...] = y"
    findings = lint(module(("(8, 128)", "float32", body)), "0.12.0.1")
    assert [finding.code for finding in findings if finding.code in ("PAL506", "PAL509")] == ["PAL509"]


def test_unknown_sizes_are_taken_to_fit() -> None:
    body = "n = x_ref.shape[0] * m\nx = jnp.zeros((n, 128))\no_ref[...] = x.reshape(8, 128) + jnp.zeros((n, 1))"
    source = module(("(8, 128)", "float32", body)).replace("def run(x):", "def run(x, m):")
    assert lint(source, "0.12.0.1", select="PAL509") == []


def test_dot_of_three_dimensions_is_no_batched_product() -> None:
    body = "x = jnp.zeros((4, 8, 128))\no_ref[...] = x + jnp.dot(x, jnp.zeros((4, 128, 128)))"
    (finding,) = lint(module(("(4, 8, 128)", "float32", body)), "0.12.0.1", select="PAL509")
    assert "(4, 8, 4, 128)" in finding.message and "jnp.matmul" in finding.help


def test_a_broadcast_of_both_operands_is_found_itself() -> None:
    body = "x = jnp.max(x_ref[...], axis=1, keepdims=True)\ny = x + jnp.sum(x_ref[...], axis=1)\no_ref[...] = 2 * y"
    source = module(("(8, 1)", "float32", body)).replace("128", "8")
    (finding,) = (each for each in lint(source, "0.12.0.1") if each.code == "PAL506")
    lines = source.splitlines()
    assert lines[finding.span.start.line - 1].strip().startswith("y = x + ")
    assert lines[finding.related[0].span.start.line - 1].strip() == "o_ref[...] = 2 * y"
    assert "`+` makes (8, 8) of (8, 1) and (8,): " in finding.message and "keepdims" in finding.help


@pytest.mark.parametrize(
    ("used", "code"),
    [("o_ref[...] = y * 2", "PAL506"), ("o_ref[...] = x + jnp.max(y, axis=-1, keepdims=True)", "PAL509")],
)
def test_a_product_with_dimensions_too_many_is_found_itself(used: str, code: str) -> None:
    body = f"x = jnp.zeros((4, 8, 128))\ny = jnp.dot(x, jnp.zeros((4, 128, 128)))\ny = y.astype(x.dtype)\n{used}"
    source = module(("(4, 8, 128)", "float32", body))
    (finding,) = (each for each in lint(source, "0.12.0.1") if each.code in ("PAL506", "PAL509"))
    lines = source.splitlines()
    assert (finding.code, lines[finding.span.start.line - 1].strip()[:7]) == (code, "y = jnp")
    assert lines[finding.related[0].span.start.line - 1].strip() == used
    matmul = source.replace("jnp.dot", "jnp.matmul")
    assert not {"PAL506", "PAL509"} & {each.code for each in lint(matmul, "0.12.0.1")}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("lax.fori_loop(0, 3, lambda i, c: c + x.sum(0), jnp.zeros((1,)))", "(1,) as it enters and (128,)"),
        (
            "lax.fori_loop(0, 3, lambda i, c: (c[0] + x, c[1] * 2.0), (x, jnp.int32(0)))[0]",
            "f32 as the body returns it",
        ),
        ("lax.fori_loop(0, 3, lambda i, c: None, x)", "`None` as the body returns it"),
        ("lax.while_loop(lambda c: False, lambda c: c.max(), x)", "() as the body returns it"),
        ("lax.cond(x[0, 0] > 0, lambda: x, lambda: x.max(1))", "(8, 128) and another (8,)"),
        ("lax.fori_loop(0, 3, lambda i, r: r[...] * 2.0, x_ref)", "a ref as it enters and an array as the body"),
        ("lax.fori_loop(0, 3, lambda i, c: x_ref, x)[...]", "an array as it enters and a ref as the body"),
        ("lax.while_loop(lambda c: False, lambda c: (c[0], None), (x, x_ref))[0]", "a ref as it enters and `None`"),
        ("lax.cond(x[0, 0] > 0, lambda: x_ref, lambda: x_ref)[...]", "a branch returns a ref"),
        ("x.max(axis=2)", "has no dimension 2"),
        ("jnp.split(x, 3)[0]", "no 3 equal parts"),
        ("jnp.broadcast_to(x, (8, 256))", "does not broadcast to (8, 256)"),
        ("jnp.transpose(x, (0, 2, 1))", "3 axes are given"),
    ],
)
def test_carries_branches_and_axes(value: str, reason: str) -> None:
    (finding,) = lint(module(("(8, 128)", "float32", f"{_ONE.format('(8, 128)')}{value}")), "0.12.0.1", select="PAL509")
    assert reason in finding.message


@pytest.mark.parametrize(
    "value",
    [
        "lax.fori_loop(0, 3, lambda i, c: c + x.max(), 0.0)",  # a weak carry takes the body's type
        "lax.fori_loop(0, 3, lambda i, c: c + 1, jnp.int32(0))",
        "lax.fori_loop(0, 3, lambda i, c: (c[0] + x, x.max()), (x, -jnp.inf))[0]",
        "lax.cond(x[0, 0] > 0, lambda: 0.0, lambda: x.max())",
        "lax.fori_loop(0, 3, lambda i, c: (c[0] + c[1][...], c[1]), (x, x_ref))[0]",
        "lax.cond(x[0, 0] > 0, lambda r: r[...], lambda r: r[...] * 2.0, x_ref)",
    ],
)
def test_carries_and_branches_of_one_type(value: str) -> None:
    assert not found(("(8, 128)", "float32", f"{_ONE.format('(8, 128)')}{value}"), "0.12.0.1")


_NAMED = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

def kernel(x_ref, y_ref, o_ref, *, heads):
    x, y = x_ref[...], y_ref[...]
    o_ref[...] = {value}

def run(x, y, bm=64, bn=32, heads=4):
    m, k = x.shape
    n, _ = y.shape
    {before}
    return pl.pallas_call(
        lambda *refs: kernel(*refs, heads=heads),
        grid=(m // bm, n // bn),
        in_specs=[pl.BlockSpec((bm, k), lambda i, j: (i, 0)), pl.BlockSpec({block}, lambda i, j: (j, 0))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.float32),
    )(x, y)
"""


@pytest.mark.parametrize(
    ("value", "block", "before", "text"),
    [
        ("jnp.dot(x, y)", "(bn, k)", "", "x.shape[1] is summed with bn"),
        ("x @ y", "(bn, k)", "", "x.shape[1] is summed with bn"),
        ("x @ y", "(bn, k)", "assert bn == k", None),
        ("x @ y", "(bn, k)", "assert bn == m and m == k", None),
        ("x @ y", "(bn, k)", "assert bn == 128 and k == 128", None),
        ("x @ y", "(bn, k)", "assert x.shape == (m, bn)", None),
        ("x @ y", "(bn, k)", "assert k == y.shape[1]", "x.shape[1] is summed with bn"),
        ("x @ y", "(bn, bm)", "", "x.shape[1] is summed with bn"),  # y @ x fits
        ("x @ y", "(bn, bm)", "assert k == bn", None),
        ("x @ y", "(y.shape[0], bm)", "", None),  # the two may be one
        ("y @ x", "(bn, bm)", "", None),
        ("jnp.zeros((x.shape[0], 8, x.shape[1])) * x", "(bm, 1)", "", "broadcast only where bm is 8"),
        ("x + jnp.zeros((x.shape[0], y.shape[0], x.shape[1]))", "(bn, 1)", "", "broadcast only where bm is bn"),
        ("x + jnp.zeros((x.shape[0], y.shape[0], x.shape[1]))", "(bn, 1)", "assert bm == bn", None),
        ("x + jnp.zeros((8, *x.shape))", "(bm, 1)", "", None),
        ("x[:, None] + jnp.zeros((x.shape[0], 8, x.shape[1]))", "(bm, 1)", "", None),
        ("jnp.einsum('mk,kn->mn', x, y)", "(bn, k)", "", "x.shape[1] is summed with bn"),
        ("jnp.einsum('mk,nk->mn', x, y)", "(bn, k)", "", None),
        ("jnp.einsum('mk,kn->mn', x, y)", "(bm, k)", "", None),  # of one shape: square
        ("jnp.where(y.T > 0, x, 0.0)", "(bm, k)", "", "broadcast only where x.shape[1] is bm"),
        ("jnp.where(y > 0, x, 0.0)", "(bm, k)", "", None),
        ("x @ y.T", "(bn, k)", "", None),
        ("x @ y", "(y.shape[0], bn)", "", None),  # the two may be one
        ("x @ y", "(bm, k)", "", None),  # of one shape: square
        ("x * y.T", "(bm, 1)", "", "broadcast only where x.shape[1] is bm"),
        ("x * y", "(bm, 1)", "", None),
        ("x * y", "(1, bn)", "", None),
        ("x.reshape(bm, heads, k)", "(bm, 1)", "", None),
        ("x.reshape(x.shape[0], heads, x.shape[1])", "(bm, 1)", "", "is another number of elements"),
        ("x.reshape(x.shape[0], heads, x.shape[1] // heads)", "(bm, 1)", "", None),
        ("x.reshape(x.shape[0], 2, x.shape[1])", "(bm, 1)", "", "is another number of elements"),
        ("x.reshape(x.shape[0], 1, x.shape[1])", "(bm, 1)", "", None),
        ("x.reshape(x.shape[1], x.shape[0])", "(bm, 1)", "", None),
        ("jnp.squeeze(y, axis=0)", "(bm, 1)", "", "dimension 0 of shape (bm, 1) is not 1"),
        ("jnp.squeeze(x[:, 7:8], axis=0)", "(bm, 1)", "", "dimension 0 of shape (bm, 1) is not 1"),
        ("lax.squeeze(x[:, -1:], (0,))", "(bm, 1)", "", "dimension 0 of shape (bm, 1) is not 1"),
        ("jnp.squeeze(x[:, :8], axis=0)", "(bm, 1)", "", "by default (`bm=64`)"),
        ("jnp.squeeze(y, axis=0)", "(bm, 1)", "assert bm == 1 or bm == 8", None),
        ("jnp.squeeze(y, axis=0)", "(bm, 1)", "assert bm in (1, 8)", None),
        ("jnp.squeeze(y, axis=0)", "(bm, k)", "", "by default (`bm=64`)"),
        ("jnp.squeeze(y, axis=1)", "(bm, 1)", "", None),
    ],
)
def test_sizes_that_have_only_names(value: str, block: str, before: str, text: str | None) -> None:
    code = _NAMED.format(value=value, block=block, before=before or "pass").replace("(bm, heads, k)", "(64, 4, -1)")
    found = [f"{f.severity.name} {f.message}" for f in lint(code, "0.12.0.1", select="PAL509")]
    assert len(found) == (text is not None)
    assert all(each.startswith("WARNING") and text is not None and text in each for each in found)


@pytest.mark.parametrize(
    ("shape", "value", "wrong"),
    [
        ("(128, 128)", "x - jnp.max(x, axis=-1)", True),
        ("(128, 128)", "x / jnp.sum(x, axis=1)", True),
        ("(128, 128, 128)", "x - jnp.max(x, axis=1)", True),
        ("(128, 128)", "x - jnp.max(x, axis=-1, keepdims=True)", False),
        ("(128, 128)", "x - jnp.max(x, axis=-1)[:, None]", False),
        ("(128, 128)", "x - jnp.mean(x, axis=0)", False),
        ("(128, 128)", "x - jnp.mean(x)", False),
        ("(1, 128)", "x - jnp.max(x, axis=-1)", False),
        ("(128, 128)", "jnp.sum(x * x, axis=-1) - 2 * x @ x.T", False),  # distances of rows
    ],
)
def test_a_reduction_without_the_dimension_it_lost(shape: str, value: str, wrong: bool) -> None:
    """A square array and the maxima of its rows broadcast, along the columns."""
    found = lint(module((shape, "float32", f"{_ONE.format(shape)}{value}")), "0.12.0.1", select="PAL509")
    assert [each.severity.name for each in found] == ["WARNING"] * wrong


_TILED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, y_ref, o_ref, acc_ref):
    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...])
    o_ref[...] = acc_ref[...]

def run(x, y, bm=128, bn=128, bk=256):
    {before}
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // bm, y.shape[1] // bn, x.shape[1] // bk),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32),
        scratch_shapes=[pltpu.VMEM({scratch}, jnp.float32)],
    )(x, y)
"""


@pytest.mark.parametrize(
    ("scratch", "before", "text"),
    [
        (
            "(bm, bk)",
            "pass",
            "by default (`bm=128`, `bk=256`, `bn=128`) shapes (128, 256) and (128, 128) do not broadcast",
        ),
        ("(bm, 2 * bn)", "pass", "shapes (128, 256) and (128, 128) do not broadcast"),
        ("(bm, bn)", "pass", None),
        ("(bn, bn)", "pass", None),  # of one size by default
        ("(bm, bk)", "assert bk == bn", None),
        ("(bm, bk)", "bk = min(bk, bn)", None),
    ],
)
def test_sizes_that_are_parameters_with_defaults(scratch: str, before: str, text: str | None) -> None:
    found = lint(_TILED.format(scratch=scratch, before=before), "0.12.0.1", select="PAL509")
    assert [f.severity.name for f in found] == ["WARNING"] * (text is not None)
    assert all(text is not None and text in f.message for f in found)


# The functions alone were traced with jax 0.6.2, 0.9.2, 0.10.2 and 0.12.0.1.
@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("lax.add(x, x.astype(jnp.bfloat16))", True),
        ("lax.max(x, lax.broadcasted_iota(jnp.int32, x.shape, 0))", True),
        ("lax.lt(x, jnp.float16(2) * jnp.ones(x.shape, jnp.float16))", True),
        ("lax.add(x, x.astype(y_ref.dtype))", False),
        ("lax.add(x, 2.0)", False),
        ("lax.pow(x, lax.broadcasted_iota(jnp.int32, x.shape, 0))", False),
        ("jnp.add(x, x.astype(jnp.bfloat16))", False),
    ],
)
def test_lax_promotes_nothing(value: str, wrong: bool) -> None:
    code = f"""
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

def kernel(x_ref, y_ref, o_ref):
    x = x_ref[...].astype(jnp.float32)
    o_ref[...] = {value}

def run(x, y):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x, y)
"""
    found = lint(code, "0.12.0.1", select="PAL509")
    assert ["lax` promote nothing" in each.message for each in found] == [True] * wrong
