"""PAL111: what `wgmma` and `tcgen05_mma` take, and what they do not."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

BF16, F16, F32, I8, I32 = jnp.bfloat16, jnp.float16, jnp.float32, jnp.int8, jnp.int32
E4, E5 = jnp.float8_e4m3fn, jnp.float8_e5m2

def flip(ref):
    return plgpu.transpose_ref(ref, (1, 0))

def kernel(o, a, b, done, {names}):
{body}

def run(n):
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_types=[plgpu.SMEM({a}), plgpu.SMEM({b}), {done}, {rest}],
    )()
"""


def wgmma(a: str, b: str, acc: str, call: str = "a, b", jax: str | None = None) -> list[str]:
    body = f"    o[...] = pl.run_scoped(lambda r: plgpu.wgmma(r, {call}), plgpu.ACC({acc}))"
    code = _MODULE.format(a=a, b=b, body=body, names="unused", rest="plgpu.Barrier()", done="plgpu.Barrier()")
    return [found.message for found in lint(code, select="PAL111", jax=jax)]


def tcgen05(
    a: str, b: str, acc: str, call: str = "a, b, done", done: str = "orders_tensor_core=True", left: str = ""
) -> list[str]:
    body = f"    plgpu.tcgen05_mma(acc, {call})"
    rest = f"plgpu.TMEM({acc}), plgpu.TMEM({left or acc})"
    code = _MODULE.format(a=a, b=b, body=body, names="acc, left", rest=rest, done=f"plgpu.Barrier({done})")
    return [found.message for found in lint(code, select="PAL111")]


# Lowered with jax 0.8.3, 0.10.2 and 0.12.0.1, with and without transforms that fit: refused by all.
WGMMA_REFUSES = {
    "12 columns": (("(64, 64), BF16", "(64, 12), BF16", "(64, 12), F32"), "12 columns"),
    "512 columns": (("(64, 64), BF16", "(64, 512), BF16", "(64, 512), F32"), "512 columns"),
    "8 columns in rows": (("(64, 64), BF16", "(64, 8), BF16", "(64, 8), F32"), "multiple of 16"),
    "72 columns in rows": (("(64, 64), BF16", "(64, 72), BF16", "(64, 72), F32"), "multiple of 16"),
    "32 rows": (("(32, 64), BF16", "(64, 128), BF16", "(32, 128), F32"), "32 rows"),
    "96 rows": (("(96, 64), BF16", "(64, 128), BF16", "(96, 128), F32"), "96 rows"),
    "8 deep": (("(64, 8), BF16", "(8, 128), BF16", "(64, 128), F32"), "K is a multiple of 16"),
    "24 deep": (("(64, 24), BF16", "(24, 128), BF16", "(64, 128), F32"), "K is a multiple of 16"),
    "mixed": (("(64, 64), BF16", "(64, 128), F16", "(64, 128), F32"), "one dtype"),
    "bfloat16 sum": (("(64, 64), BF16", "(64, 128), BF16", "(64, 128), BF16"), "summed in float32"),
    "float16 sum": (("(64, 64), BF16", "(64, 128), BF16", "(64, 128), F16"), "summed in float32"),
    "bfloat16 sum of float16": (("(64, 64), F16", "(64, 128), F16", "(64, 128), BF16"), "float32 or float16"),
    "float sum of integers": (("(64, 128), I8", "(128, 128), I8", "(64, 128), F32", "a, flip(b)"), "summed in int32"),
    "float32 in rows": (("(64, 64), F32", "(64, 128), F32", "(64, 128), F32"), "transposed"),
    "int8 in rows": (("(64, 128), I8", "(128, 128), I8", "(64, 128), I32"), "transposed"),
    "float8 in rows": (("(64, 128), E4", "(128, 128), E4", "(64, 128), F32"), "transposed"),
    "int16": (("(64, 64), jnp.int16", "(64, 128), jnp.int16", "(64, 128), I32"), "does not take int16"),
    "int32": (("(64, 64), I32", "(64, 128), I32", "(64, 128), I32"), "does not take int32"),
    "columns differ": (("(64, 64), BF16", "(64, 128), BF16", "(64, 64), F32"), "64 and 128 for N"),
    "depths differ": (("(64, 64), BF16", "(128, 128), BF16", "(64, 128), F32"), "64 and 128 for K"),
    "rows differ": (("(128, 64), BF16", "(64, 128), BF16", "(64, 128), F32"), "64 and 128 for M"),
    "all slots": (("(2, 64, 64), BF16", "(64, 128), BF16", "(64, 128), F32"), "matrices"),
}


@pytest.mark.parametrize("name", WGMMA_REFUSES)
def test_wgmma_refuses(name: str) -> None:
    case, expected = WGMMA_REFUSES[name]
    [message] = wgmma(*case)
    assert expected in message


# ... and these are taken.
WGMMA_TAKES = {
    "bfloat16": ("(64, 64), BF16", "(64, 128), BF16", "(64, 128), F32"),
    "256 columns": ("(128, 64), BF16", "(64, 256), BF16", "(128, 256), F32"),
    "16 deep": ("(64, 16), BF16", "(16, 128), BF16", "(64, 128), F32"),
    "float16 sum": ("(64, 64), F16", "(64, 128), F16", "(64, 128), F16"),
    "float16 sum of float8": ("(64, 128), E4", "(128, 128), E4", "(64, 128), F16", "a, flip(b)"),
    "float32 transposed": ("(64, 64), F32", "(128, 64), F32", "(64, 128), F32", "a, flip(b)"),
    "int8 transposed": ("(64, 128), I8", "(128, 128), I8", "(64, 128), I32", "a, flip(b)"),
    "72 columns transposed": ("(64, 64), BF16", "(72, 64), BF16", "(64, 72), F32", "a, flip(b)"),
    "one slot": ("(2, 64, 64), BF16", "(64, 128), BF16", "(64, 128), F32", "a.at[1], b"),
    "transposed slot": ("(64, 64), F32", "(2, 128, 64), F32", "(64, 128), F32", "a, b.at[0].T"),
    "rows of a buffer": ("(128, 64), BF16", "(64, 128), BF16", "(64, 128), F32", "a.at[pl.ds(64, 64)], b"),
    "unknown sizes": ("(64, o.n), BF16", "(o.n, 128), BF16", "(64, 128), F32"),
    "unknown dtype": ("(64, 64), o.dtype", "(64, 128), BF16", "(64, 128), F32"),
}


@pytest.mark.parametrize("name", WGMMA_TAKES)
def test_wgmma_takes(name: str) -> None:
    assert not wgmma(*WGMMA_TAKES[name])


def test_mixed_float8_since_jax_0_11() -> None:
    case = ("(64, 128), E4", "(128, 128), E5", "(64, 128), F32", "a, flip(b)")
    assert not wgmma(*case, jax="0.12.0.1")
    assert "one dtype" in wgmma(*case, jax="0.10.2")[0]


def test_unsigned_bytes_are_taken_for_signed_ones() -> None:
    [message] = wgmma("(64, 128), jnp.uint8", "(128, 128), jnp.uint8", "(64, 128), I32", "a, flip(b)")
    assert "negative" in message


TCGEN05_REFUSES = {
    "384 columns": (("(128, 64), BF16", "(64, 384), BF16", "(128, 384), F32"), "384 columns"),
    "mixed": (("(128, 64), BF16", "(64, 128), F16", "(128, 128), F32"), "one dtype"),
    "bfloat16 sum": (("(128, 64), BF16", "(64, 128), BF16", "(128, 128), BF16, packed=True"), "summed in float32"),
    "float32": (("(128, 64), F32", "(64, 128), F32", "(128, 128), F32"), "does not take float32"),
    "float sum of integers": (("(128, 64), I8", "(64, 128), I8", "(128, 128), F32"), "summed in int32"),
    "24 columns of integers": (("(128, 64), I8", "(24, 64), I8", "(128, 24), I32", "a, flip(b), done"), "of 16 up to"),
    "24 deep": (("(128, 24), BF16", "(24, 128), BF16", "(128, 128), F32"), "K is a multiple of 16"),
    "shapes": (("(128, 64), BF16", "(128, 128), BF16", "(128, 128), F32"), "64 and 128 for K"),
    "barrier": (("(128, 64), BF16", "(64, 128), BF16", "(128, 128), F32", "a, b, done", ""), "order the tensor core"),
    "64 rows in TMEM": (
        ("(64, 64), BF16", "(64, 128), BF16", "(64, 128), F32", "left, b, done", "orders_tensor_core=True",
         "(64, 64), BF16, packed=True"),
        "a first operand in TMEM has 128",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TCGEN05_REFUSES)
def test_tcgen05_refuses(name: str) -> None:
    case, expected = TCGEN05_REFUSES[name]
    [message] = tcgen05(*case)
    assert expected in message


TCGEN05_TAKES = {
    "bfloat16": ("(128, 64), BF16", "(64, 128), BF16", "(128, 128), F32"),
    "512 columns": ("(128, 64), BF16", "(64, 512), BF16", "(128, 512), F32"),
    "72 columns transposed": ("(128, 64), BF16", "(72, 64), BF16", "(128, 72), F32", "a, flip(b), done"),
    "int8 in rows": ("(128, 64), I8", "(64, 128), I8", "(128, 128), I32"),
    "float8 mixed": ("(128, 64), E4", "(64, 128), E5", "(128, 128), F32"),
    "no barrier": ("(128, 64), BF16", "(64, 128), BF16", "(128, 128), F32", "a, b", ""),
    "half a second operand": (
        "(128, 64), BF16", "(64, 128), BF16", "(128, 256), F32, collective=True", "a, b, done, collective_axis='x'"
    ),
    "sparse": ("(128, 64), BF16", "(128, 128), BF16", "(128, 128), F32", "a, b, done, a_sparse_metadata=left"),
    "unknown barrier": ("(128, 64), BF16", "(64, 128), BF16", "(128, 128), F32", "a, b, done", "orders_tensor_core=o"),
}  # fmt: skip


@pytest.mark.parametrize("name", TCGEN05_TAKES)
def test_tcgen05_takes(name: str) -> None:
    assert not tcgen05(*TCGEN05_TAKES[name])


def test_commit_on_a_barrier_that_does_not_order_the_tensor_core() -> None:
    case = ("(128, 64), BF16", "(64, 128), BF16", "(128, 128), F32", "a, b)\n    plgpu.tcgen05_commit_arrive(done")
    [message] = tcgen05(*case, done="num_arrivals=1")
    assert message.startswith("`tcgen05_commit_arrive`")
    assert not tcgen05(*case)
