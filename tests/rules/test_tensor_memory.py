"""PAL215: what tensor memory holds, and in which order it is used."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

ZEROS = jnp.zeros

def kernel(o, a, b, done, t, u=None, *more):
{body}

def run(n):
    return plgpu.kernel(
        kernel,
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        scratch_shapes=[
            plgpu.SMEM((128, 64), jnp.bfloat16),
            plgpu.SMEM((64, 128), jnp.bfloat16),
            plgpu.Barrier(orders_tensor_core=True),
            {buffers},
        ],
    )()
"""
_ONE = "plgpu.TMEM((128, 128), jnp.float32)"


def findings(body: str, buffers: str = f"{_ONE}, {_ONE}", jax: str | None = None) -> list[tuple[str, str]]:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    found = lint(_MODULE.format(body=indented, buffers=buffers), select="PAL215", jax=jax)
    return [(finding.severity.value, finding.message) for finding in found]


# Lowered with jax 0.8.3, 0.10.2 and 0.12.0.1: refused by all.
REFUSED = {
    "256 rows": ("plgpu.TMEM((256, 128), jnp.float32)", "256 rows"),
    "32 rows": ("plgpu.TMEM((32, 128), jnp.float32)", "32 rows"),
    "256 rows, collective": ("plgpu.TMEM((256, 128), jnp.float32, collective=True)", "256 rows"),
    "a vector": ("plgpu.TMEM((128,), jnp.float32)", "a vector"),
    "1024 columns": ("plgpu.TMEM((128, 1024), jnp.float32)", "1024 columns"),
    "narrow": ("plgpu.TMEM((128, 512), jnp.bfloat16)", "whether it is packed"),
    "odd": ("plgpu.TMEM((128, 127), jnp.bfloat16, packed=True)", "packed by 2"),
    "two": ("plgpu.TMEM((128, 512), jnp.float32), plgpu.TMEM((128, 128), jnp.float32)", "640 columns"),
    "six": (", ".join(["plgpu.TMEM((128, 100), jnp.float32)"] * 6), "600 columns"),
    "three": (", ".join(["plgpu.TMEM((128, 256), jnp.float32)"] * 3), "768 columns"),
    "mixed": (f"plgpu.TMEM((128, 128), jnp.float32, collective=True), {_ONE}", "some buffers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    buffers, expected = REFUSED[name]
    [(severity, message)] = findings("pass", buffers)
    assert severity == "error"
    assert expected in message


# ... and these are taken by all.
TAKEN = {
    "64 rows": "plgpu.TMEM((64, 128), jnp.float32)",
    "all": "plgpu.TMEM((128, 512), jnp.float32)",
    "all in 64 rows": "plgpu.TMEM((64, 1024), jnp.float32)",
    "two halves": ", ".join(["plgpu.TMEM((128, 256), jnp.float32)"] * 2),
    "64 rows twice": ", ".join(["plgpu.TMEM((64, 512), jnp.float32)"] * 2),
    "packed": "plgpu.TMEM((128, 1024), jnp.bfloat16, packed=True)",
    "packed bytes": "plgpu.TMEM((128, 2048), jnp.float8_e4m3fn, packed=True)",
    "packed wide ones": "plgpu.TMEM((128, 128), jnp.float32, packed=True)",
    "narrow, not packed": "plgpu.TMEM((128, 128), jnp.float16, packed=False)",
    "four columns": "plgpu.TMEM((128, 4), jnp.float32)",
    "a layout": "plgpu.TMEM((128, 4), jnp.float8_e8m0fnu, layout=plgpu.TMEMLayout.SCALES_LAYOUT)",
    "unknown sizes": "plgpu.TMEM((n, 1024), jnp.float32)",
    "unknown packing": "plgpu.TMEM((128, 1024), jnp.bfloat16, packed=n)",
    "shared": "plgpu.RefUnion(plgpu.TMEM((128, 512), jnp.float32), plgpu.TMEM((128, 512), jnp.float32))",
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    assert not findings("pass", TAKEN[name])


def test_batches_since_jax_0_10() -> None:
    batch = "plgpu.TMEM((2, 128, 128), jnp.float32)"
    assert not findings("pass", batch, jax="0.12.0.1")
    assert "several matrices" in findings("pass", batch, jax="0.8.3")[0][1]
    assert "1024 columns" in findings("pass", "plgpu.TMEM((8, 128, 128), jnp.float32)", jax="0.12.0.1")[0][1]


def test_buffer_of_a_scope() -> None:
    body = "pl.run_scoped(lambda s: plgpu.async_store_tmem(s, 0.0), plgpu.TMEM((256, 128), jnp.float32))"
    [(_, message)] = findings(body)
    assert "256 rows" in message


_LOAD = "o[...] = plgpu.async_load_tmem(t)"
UNSET = {
    "default": "plgpu.tcgen05_mma(t, a, b, done)\nplgpu.barrier_wait(done)\n" + _LOAD,
    "collected": "plgpu.tcgen05_mma(t, a, b, done, accumulate=True)",
    "a slot": "plgpu.tcgen05_mma(t.at[:, pl.ds(0, 64)], a, b, done)",
    "another was set": "plgpu.tcgen05_mma(u, a, b, done, accumulate=False)\nplgpu.tcgen05_mma(t, a, b, done)",
}


@pytest.mark.parametrize("name", UNSET)
def test_unset(name: str) -> None:
    [(severity, message)] = findings(UNSET[name])
    assert severity == "warning"
    assert "adds to `t`" in message


SET = {
    "first replaces": "plgpu.tcgen05_mma(t, a, b, accumulate=False)\nplgpu.tcgen05_mma(t, a, b, done)",
    "by the step": (
        "def body(k, _):\n    plgpu.tcgen05_mma(t, a, b, done, accumulate=k > 0)\nlax.fori_loop(0, 4, body, None)"
    ),
    "stored": "plgpu.async_store_tmem(t, ZEROS((128, 128)))\nplgpu.commit_tmem()\nplgpu.tcgen05_mma(t, a, b, done)",
    "stored in part": (
        "plgpu.async_store_tmem(t.at[:, :64], ZEROS((128, 64)))\nplgpu.commit_tmem()\nplgpu.tcgen05_mma(t, a, b, done)"
    ),
    "copied": "plgpu.async_copy_smem_to_tmem(a, t)\nplgpu.tcgen05_mma(t, a, b, done)",
    "unseen code": "other(t)\nplgpu.tcgen05_mma(t, a, b, done)",
    "unseen arguments": "plgpu.tcgen05_mma(t, a, b, done, **other())",
}


@pytest.mark.parametrize("name", SET)
def test_set(name: str) -> None:
    assert not findings(SET[name])


_FILL = "plgpu.async_store_tmem(t, ZEROS((128, 128)))\n"
_MULTIPLY = "plgpu.tcgen05_mma(t, a, b, done, accumulate=False)\n"
UNAWAITED = {
    "product of a store": (_FILL + "plgpu.tcgen05_mma(t, a, b, done)", "stored to `t`: no `commit_tmem`"),
    "load of a store": (_FILL + _LOAD, "stored to `t`: no `commit_tmem`"),
    "operand": (_FILL + "plgpu.tcgen05_mma(u, t, b, done, accumulate=False)", "stored to `t`: no `commit_tmem`"),
    "part of a store": (_FILL + _LOAD.replace("(t)", "(t.at[:, :64])"), "stored to `t`: no `commit_tmem`"),
    "the wrong wait": (_FILL + "plgpu.wait_load_tmem()\n" + _LOAD, "no `commit_tmem`"),
    "product over a load": (
        _MULTIPLY + "plgpu.barrier_wait(done)\n" + _LOAD + "\n" + _MULTIPLY,
        "may overwrite `t` while it is read: no `wait_load_tmem`",
    ),
    "store over a load": (
        _FILL + "plgpu.commit_tmem()\n" + _LOAD + "\n" + _FILL,
        "may overwrite `t` while it is read: no `wait_load_tmem`",
    ),
}


@pytest.mark.parametrize("name", UNAWAITED)
def test_unawaited(name: str) -> None:
    body, expected = UNAWAITED[name]
    [(severity, message)] = findings(body)
    assert severity == "warning"
    assert expected in message


AWAITED = {
    "committed": _FILL + "plgpu.commit_tmem()\n" + _LOAD,
    "loaded twice": _FILL + "plgpu.commit_tmem()\n" + _LOAD + "\n" + _LOAD,
    "load awaited": _MULTIPLY + "plgpu.barrier_wait(done)\n" + _LOAD + "\nplgpu.wait_load_tmem()\n" + _MULTIPLY,
    "another buffer": _FILL + "plgpu.tcgen05_mma(u, a, b, done, accumulate=False)",
    "another part": (
        "plgpu.async_store_tmem(t.at[:, :64], ZEROS((128, 64)))\no[...] = plgpu.async_load_tmem(t.at[:, 64:])"
    ),
    "an operand that is loaded": (
        _FILL + "plgpu.commit_tmem()\n" + _LOAD + "\nplgpu.tcgen05_mma(u, t, b, done, accumulate=False)"
    ),
    "on another way": (
        "@pl.when(lax.axis_index('wg') == 0)\ndef _():\n    " + _FILL + "@pl.when(lax.axis_index('wg') == 1)\n"
        "def _():\n    " + _LOAD
    ),
    "unseen code": _FILL + "other()\n" + _LOAD,
}


@pytest.mark.parametrize("name", AWAITED)
def test_awaited(name: str) -> None:
    assert not findings(AWAITED[name])
