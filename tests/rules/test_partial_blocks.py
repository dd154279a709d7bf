"""PAL413 and PAL414: padding of partial blocks that gets into sums and products."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import fixed, lint
from tests.rules.kernels import line_of

_MODULE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

K = {length}
B = 128

def kernel(x_ref, y_ref, o_ref):
    j = pl.program_id(0)

    @pl.when(j == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

{body}

def run(x, y):
    x = x.reshape(16, K)
    y = y.reshape(K, 128)
    return pl.pallas_call(
        kernel,
        grid={grid},
        in_specs=[pl.BlockSpec((16, B), lambda j: (0, j)), pl.BlockSpec((B, 128), lambda j: (j, 0))],
        out_specs=pl.BlockSpec((16, 128), lambda j: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
    )(x, y)
"""
COLUMN = "column = j * B + lax.broadcasted_iota(jnp.int32, (16, B), 1)\n"
ROW = "row = j * B + lax.broadcasted_iota(jnp.int32, (B, 128), 0)\n"


def module(body: str, length: str = "300", grid: str = "(pl.cdiv(K, B),)") -> str:
    return _MODULE.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "), length=length, grid=grid)


def found(code: str) -> list[tuple[str, str, int]]:
    return [
        (finding.code, finding.severity.value, finding.span.start.line)
        for finding in lint(code, select="PAL41")
        if finding.code in ("PAL413", "PAL414")
    ]


MIXED = {
    "sum": "o_ref[...] += jnp.sum(x_ref[...], axis=1, keepdims=True)  #!",
    "method, last axis": "o_ref[...] += x_ref[...].sum(axis=-1, keepdims=True)  #!",
    "sum of everything": "o_ref[...] += jnp.sum(x_ref[...])  #!",
    "maximum": "o_ref[...] = jnp.maximum(o_ref[...], jnp.max(x_ref[...], axis=1, keepdims=True))  #!",
    "after arithmetic": "x = x_ref[...].astype(jnp.float32) * 2 + 1\no_ref[...] += jnp.sum(x * x, axis=1)[:, None]  #!",
    "first axis": "o_ref[...] += jnp.sum(y_ref[...], axis=0, keepdims=True)  #!",
    "dot": "o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)  #!",
    "matmul operator": "o_ref[...] += x_ref[...] @ y_ref[...]  #!",
    "dot_general": (
        "o_ref[...] += lax.dot_general(x_ref[...], y_ref[...], (((1,), (0,)), ((), ())),"
        " preferred_element_type=jnp.float32)  #!"
    ),
    "einsum": "o_ref[...] += jnp.einsum('mk,kn->mn', x_ref[...], y_ref[...])  #!",
    "helper": "o_ref[...] += (lambda v: jnp.sum(v, axis=1, keepdims=True))(x_ref[...])  #!",
}


@pytest.mark.parametrize("name", MIXED)
def test_padding_is_summed(name: str) -> None:
    code = module(MIXED[name])
    assert set(found(code)) == {("PAL413", "error", line_of(code, "#!"))}


WEIGHTED = {
    "weights masked": COLUMN + "p = jnp.where(column < K, x_ref[...], 0.0)\no_ref[...] += jnp.dot(p, y_ref[...])  #!",
    "weights from exp": (
        COLUMN + "s = jnp.where(column < K, x_ref[...], -1e30)\np = jnp.exp(s - jnp.max(s, axis=1, keepdims=True))\n"
        "o_ref[...] += p @ y_ref[...]  #!"
    ),
    "times a mask": ROW + "o_ref[...] += jnp.sum(jnp.where(row < K, 1.0, 0.0) * y_ref[...], axis=0, keepdims=True)  #!",
    "times a cast mask": ROW
    + "m = (row < K).astype(jnp.float32)\no_ref[...] += jnp.sum(y_ref[...] * m, axis=0)[None]  #!",
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_masked_weights_do_not_help(name: str) -> None:
    code = module(WEIGHTED[name])
    assert set(found(code)) == {("PAL414", "error", line_of(code, "#!"))}


FINE = {
    "masked": COLUMN + "o_ref[...] += jnp.sum(jnp.where(column < K, x_ref[...], 0.0), axis=1, keepdims=True)",
    "both masked": (
        COLUMN
        + ROW
        + "o_ref[...] += jnp.dot(jnp.where(column < K, x_ref[...], 0.0), jnp.where(row < K, y_ref[...], 0.0))"
    ),
    "select": COLUMN
    + "x = x_ref[...]\no_ref[...] += lax.select(column < K, x, jnp.zeros_like(x)).sum(1, keepdims=True)",
    "the other axis": "o_ref[...] = o_ref[...] + x_ref[...].sum(axis=0, keepdims=True)",
    "elementwise": "o_ref[...] = x_ref[...] * 2",
    "a part": "o_ref[...] += x_ref[:, :4].sum(axis=1, keepdims=True)",
}


@pytest.mark.parametrize("name", FINE)
def test_fine(name: str) -> None:
    assert not found(module(FINE[name]))


@pytest.mark.parametrize(
    ("condition", "wrong"),
    [("j == pl.cdiv(K, B) - 1", True), ("j < K // B", False), ("j == 0", False), ("j > 0", True)],
)
def test_only_the_last_step_reads_padding(condition: str, wrong: bool) -> None:
    body = f"@pl.when({condition})\ndef _():\n    o_ref[...] += jnp.dot(x_ref[...], y_ref[...])"
    assert bool(found(module(body))) is wrong


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("length", ["300", "100"])
def test_the_last_step_is_masked_apart(masked: bool, length: str) -> None:
    body = f"""
def masked(v, dim):
    return jnp.where(lax.broadcasted_iota(jnp.int32, v.shape, dim) < K % B, v, 0)

def accumulate(last):
    x, y = x_ref[...], y_ref[...]
    if last and {masked}:
        x, y = masked(x, 1), masked(y, 0)
    o_ref[...] += jnp.dot(x, y)

last = j == pl.num_programs(0) - 1
lax.cond(last, lambda: accumulate(True), lambda: accumulate(False))
"""
    assert bool(found(module(body, length))) is not masked


def test_block_divides() -> None:
    assert not found(module(MIXED["sum"], length="384"))


def test_last_block_is_not_visited() -> None:
    assert not found(module(MIXED["sum"], grid="(K // B,)"))


def test_array_is_padded() -> None:
    code = module(MIXED["sum"]).replace("x.reshape(16, K)", "jnp.pad(x, ((0, 0), (0, -x.shape[1] % B)))")
    assert not found(code)


_NAMED = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.sum(x_ref[...], axis=1, keepdims=True)

def run(x, block):
    m, k = x.shape
    x = x.reshape(m, k)
    {before}
    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(k, block),),
        in_specs=[pl.BlockSpec((m, block), lambda j: (0, j))],
        out_specs=pl.BlockSpec((m, 1), lambda j: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((m, 1), jnp.float32),
    )(x)
"""


def test_names_are_a_hint() -> None:
    assert [(code, severity) for code, severity, _ in found(_NAMED.format(before="pass"))] == [("PAL413", "info")]
    assert not found(_NAMED.format(before="assert k % block == 0"))
    assert not found(_NAMED.format(before="if k % block:\n        raise ValueError"))


def test_checks_of_another_functions_name_do_not_count() -> None:
    code = _NAMED.format(before="pass")
    querying = _NAMED.format(before="assert k % block == 0").partition("def run")[2]
    assert found(f"{code}\n\ndef other{querying}") == found(code) != []
    checked = _NAMED.format(before="check(k, block)") + "\n\ndef check(size, part):\n    assert size % part == 0\n"
    assert not found(checked)  # a condition on the arguments of the function


def test_fix_masks_both_operands() -> None:
    after = fixed(module(MIXED["dot"]), select="PAL413")
    assert after.count("jnp.where(") == 2
    assert not found(after)
    assert "-jnp.inf" in fixed(module(MIXED["maximum"]), select="PAL413")


def test_mosaic_gpu_fills_with_zeros() -> None:
    code = module(MIXED["sum"]).replace(
        "from jax import lax", "from jax import lax\nfrom jax.experimental.pallas import mosaic_gpu as plgpu"
    )
    assert not found(code.replace("        grid=", "        compiler_params=plgpu.CompilerParams(),\n        grid="))


_MASKED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref, *, n):
    x = x_ref[...]
    column = {column}
    o_ref[...] = jnp.max(jnp.where({mask}, x, -1e30), axis=1, keepdims=True)

def run(x):
    n = x.shape[1]
    return pl.pallas_call(
        lambda *refs: kernel(*refs, n=n),
        grid=(16, pl.cdiv(n, 256)),
        in_specs=[pl.BlockSpec((8, 256), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 1), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((128, pl.cdiv(n, 256)), jnp.float32),
    )(x)

run(jnp.ones((128, {n})))
"""
_COLUMN = "pl.program_id(1) * 256 + jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)"


# A log-sum-exp with the first mask gives NaN with `InterpretParams()` of jax 0.12.0.1, with `<` it is right.
@pytest.mark.parametrize(
    ("mask", "column", "n", "wrong"),
    [
        ("column <= n", _COLUMN, 1000, True),
        ("column <= n", _COLUMN, 1024, False),  # no padding
        ("column < n", _COLUMN, 1000, False),
        ("column <= n - 1", _COLUMN, 1000, False),
        ("column <= n", f"{_COLUMN} + 1", 1000, False),
        ("column <= n", _COLUMN.replace("shape, 1", "shape, 0"), 1000, False),
        ("(column <= n) & (column < n)", _COLUMN, 1000, False),
    ],
)
def test_a_mask_that_lets_one_element_through(mask: str, column: str, n: int, wrong: bool) -> None:
    code = _MASKED.format(mask=mask, column=column, n=n)
    found = lint(code, "0.12.0.1", "tpu", select="PAL413")
    assert ["lets padding through" in each.message for each in found] == [True] * wrong
    assert all(each.severity.name == "WARNING" for each in found)


@pytest.mark.parametrize(
    ("weights", "values", "flagged"),
    [
        ("p", "v_ref[0]", "PAL414"),
        ("p", "v_ref[0, ...]", "PAL414"),
        ("p", "jnp.where(rows < 300, v_ref[0], 0)", None),
        ("jnp.exp(p_ref[...])", "v_ref[0]", "PAL413"),
        ("p", "v_ref[0, pl.ds(0, 128)]", None),  # a slice may leave the padding out
    ],
)
def test_blocks_read_at_an_index(weights: str, values: str, flagged: str | None) -> None:
    code = f"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

MASK = -0.7 * float(np.finfo(np.float32).max)

def kernel(p_ref, v_ref, o_ref):
    j = pl.program_id(1)
    columns = j * 128 + lax.broadcasted_iota(jnp.int32, (16, 128), 1)
    rows = j * 128 + lax.broadcasted_iota(jnp.int32, (128, 128), 0)
    p = jnp.exp(jnp.where(columns < 300, p_ref[...], MASK))
    o_ref[0] = jnp.dot({weights}, {values}, preferred_element_type=jnp.float32)

def run():
    return pl.pallas_call(
        kernel,
        grid=(2, 3),
        in_specs=[pl.BlockSpec((16, 128), lambda b, j: (0, 0)), pl.BlockSpec((1, 128, 128), lambda b, j: (b, j, 0))],
        out_specs=pl.BlockSpec((1, 16, 128), lambda b, j: (b * 3 + j, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((6, 16, 128), jnp.float32),
    )(jnp.ones((16, 128)), jnp.ones((2, 300, 128)))
"""
    assert [each for each, _, _ in found(code)] == ([] if flagged is None else [flagged])
