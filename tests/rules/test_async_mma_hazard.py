"""PAL418: memory that is used while tensor cores still read or write it."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import lines, lint
from tests.rules.kernels import line_of

_MODULE = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from elsewhere import extern

def settle(n=0):
    plgpu.wgmma_wait(n)

def multiply(acc, a, b):
    plgpu.wgmma(acc, a, b)

def kernel(x, y, o_gmem, a, b, ring, tmem, acc, other, barrier, done):
{body}

def run(x, y):
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        scratch_types=[
            plgpu.SMEM((64, 64), jnp.float16),
            plgpu.SMEM((64, 64), jnp.float16),
            plgpu.SMEM((2, 64, 64), jnp.float16),
            plgpu.TMEM((128, 64), jnp.float32),
            plgpu.ACC((64, 64), jnp.float32),
            plgpu.ACC((64, 64), jnp.float32),
            plgpu.Barrier(),
            plgpu.Barrier(orders_tensor_core=True),
        ],
    )(x, y)
"""


def module(body: str) -> str:
    return _MODULE.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))


_FILL = "plgpu.copy_gmem_to_smem(x, a, barrier)"
_RING = """
@pl.loop(0, 8)
def step(k):
    slot = lax.rem(k, 2)
    plgpu.copy_gmem_to_smem(x.at[k], ring.at[slot], barrier)
    plgpu.barrier_wait(barrier)
    plgpu.wgmma(acc, ring.at[slot], b)
    plgpu.wgmma_wait({n})
"""
FLAGGED = {
    "a copy": (f"plgpu.wgmma(acc, a, b)\n{_FILL}", _FILL),
    "a store": ("plgpu.wgmma(acc, a, b)\nb[...] = jnp.zeros((64, 64))", "b[...] ="),
    "through helpers": (f"multiply(acc, a, b)\nsettle(1)\n{_FILL}", _FILL),
    "one may still run": (f"plgpu.wgmma(acc, a, b)\nplgpu.wgmma_wait(1)\n{_FILL}", _FILL),
    "a view": (f"plgpu.wgmma(acc, a.at[...], plgpu.transpose_ref(b, (1, 0)))\n{_FILL}", _FILL),
    "in a condition": (f"plgpu.wgmma(acc, a, b)\n@pl.when(x[0, 0] > 0)\ndef _():\n    {_FILL}", _FILL),
    "a read in the last turn only": (
        f"plgpu.wgmma(acc, a, b)\n@pl.when(x[0, 0] > 0)\ndef _():\n    o_gmem[...] = acc[...]\n{_FILL}", _FILL
    ),
    "the next turn": (
        f"def body(k, _):\n    {_FILL}\n    plgpu.barrier_wait(barrier)\n    plgpu.wgmma(acc, a, b)\n"
        "lax.fori_loop(0, 4, body, None)", _FILL
    ),
    "a slot": ("plgpu.wgmma(acc, ring.at[0], b)\nring[0] = jnp.zeros((64, 64))", "ring[0] ="),
    "a ring of two": (_RING.format(n=2), "plgpu.copy_gmem_to_smem(x.at[k]"),
    "accumulator without a wait": (
        "plgpu.wgmma(acc, a, b)\no_gmem[...] = plgpu.wgmma_accumulator_load(acc, wait_n=None)", "wait_n=None"
    ),
    "accumulator with too short a wait": (
        "plgpu.wgmma(acc, a, b)\no_gmem[...] = plgpu.wgmma_accumulator_load(acc, wait_n=1)", "wait_n=1"
    ),
    "tcgen05 operand": (f"plgpu.tcgen05_mma(tmem, a, b, done)\n{_FILL}", _FILL),
    "tcgen05 accumulator": (
        "plgpu.tcgen05_mma(tmem, a, b, done)\no_gmem[...] = plgpu.async_load_tmem(tmem)", "plgpu.async_load_tmem"
    ),
    "tcgen05 without a barrier": (
        "plgpu.tcgen05_mma(tmem, a, b)\nplgpu.barrier_wait(barrier)\no_gmem[...] = plgpu.async_load_tmem(tmem)",
        "plgpu.async_load_tmem",
    ),
    "tcgen05 after a wait on another barrier": (
        f"{_FILL}\nplgpu.tcgen05_mma(tmem, a, b, done)\nplgpu.barrier_wait(barrier)\n"
        "o_gmem[...] = plgpu.async_load_tmem(tmem)", "plgpu.async_load_tmem",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGGED)
def test_used_while_it_runs(name: str) -> None:
    body, at = FLAGGED[name]
    code = module(body)
    assert lines(lint(code, target="mosaic_gpu", select="PAL418"), "PAL418") == {line_of(code, at)}


SILENT = {
    "a wait": f"plgpu.wgmma(acc, a, b)\nplgpu.wgmma_wait(0)\n{_FILL}",
    "a helper waits": f"multiply(acc, a, b)\nsettle()\n{_FILL}",
    "a wait for an unknown number": f"plgpu.wgmma(acc, a, b)\nplgpu.wgmma_wait(extern)\n{_FILL}",
    "a wait in a condition": f"plgpu.wgmma(acc, a, b)\n@pl.when(x[0, 0] > 0)\ndef _():\n    settle()\n{_FILL}",
    "the accumulator is read": f"plgpu.wgmma(acc, a, b)\no_gmem[...] = acc[...]\n{_FILL}",
    "the accumulator is read first where it matters": (
        "plgpu.wgmma(acc, a, b)\n@pl.when(x[0, 0] > 0)\ndef _():\n    o_gmem[...] = acc[...]\n"
        f"    {_FILL}"
    ),
    "the accumulator is loaded": f"plgpu.wgmma(acc, a, b)\nc = plgpu.wgmma_accumulator_load(acc)\n{_FILL}",
    "another accumulator's products run": (
        "plgpu.wgmma(acc, a, b)\nplgpu.wgmma(other, a, b)\nc = plgpu.wgmma_accumulator_load(acc, wait_n=1)"
    ),
    "another operand": "plgpu.wgmma(acc, a, b)\nring[0] = jnp.zeros((64, 64))",
    "another slot": "plgpu.wgmma(acc, ring.at[0], b)\nring[1] = jnp.zeros((64, 64))",
    "the one before is waited for": (
        "plgpu.wgmma(acc, a, b)\nplgpu.wgmma(acc, ring.at[0], b)\nplgpu.wgmma_wait(1)\n"
        + _FILL
    ),
    "an operand in registers": f"plgpu.wgmma(acc, a[...], b)\n{_FILL}",
    "a ring of two, one running": _RING.format(n=1),
    "a ring that is waited for": _RING.format(n=0),
    "threads": (
        f"@pl.when(lax.axis_index('wg') == 0)\ndef _():\n    plgpu.wgmma(acc, a, b)\n"
        f"@pl.when(lax.axis_index('wg') == 1)\ndef _():\n    {_FILL}"
    ),
    "branches": (
        f"lax.cond(x[0, 0] > 0, lambda: plgpu.wgmma(acc, a, b), lambda: {_FILL})"
    ),
    "code that is not seen": f"plgpu.wgmma(acc, a, b)\nextern(lambda: settle())\n{_FILL}",
    "run_state waits": (
        "c = pl.run_state(lambda acc: plgpu.wgmma(acc, a, b))(plgpu.ACC.init(jnp.zeros((64, 64))))\n" + _FILL
    ),
    "a loop with a carry over slots": (
        "def body(k, c):\n    plgpu.copy_gmem_to_smem(x, ring.at[k], barrier)\n    plgpu.barrier_wait(barrier)\n"
        "    plgpu.wgmma(acc, ring.at[k], b)\n    return c + 1.0\nlax.fori_loop(0, 2, body, 0)"
    ),
    "tcgen05 and its barrier": (
        f"plgpu.tcgen05_mma(tmem, a, b, done)\nplgpu.barrier_wait(done)\n{_FILL}\nc = plgpu.async_load_tmem(tmem)"
    ),
    "tcgen05 and a commit": (
        "plgpu.tcgen05_mma(tmem, a, b)\nplgpu.tcgen05_commit_arrive(done)\nplgpu.barrier_wait(done)\n" + _FILL
    ),
    "tcgen05 and a later one's barrier": (
        "plgpu.tcgen05_mma(tmem, a, b)\nplgpu.tcgen05_mma(tmem, ring.at[0], b, done)\nplgpu.barrier_wait(done)\n"
        + _FILL
    ),
    "tcgen05 in order": (
        "plgpu.tcgen05_mma(tmem, a, b)\nplgpu.async_copy_smem_to_tmem(a, tmem)\nplgpu.tcgen05_mma(tmem, a, b)"
    ),
    "tcgen05, barrier not seen": f"plgpu.tcgen05_mma(tmem, a, b, extern)\nplgpu.barrier_wait(done)\n{_FILL}",
}  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_over_by_then(name: str) -> None:
    assert not lines(lint(module(SILENT[name]), target="mosaic_gpu", select="PAL418"), "PAL418")


_PIPELINE = """
def step(indices, l, r):
{body}

plgpu.emit_pipeline(
    step,
    grid=({grid},),
    in_specs=[plgpu.BlockSpec((64, 64), lambda k: (0, k){spec}), plgpu.BlockSpec((64, 64), lambda k: (k, 0){spec})],
    max_concurrent_steps={slots},
)(x, y)
o_gmem[...] = acc[...]
"""


def pipeline(body: str, spec: str = "", *, grid: object = 8, slots: object = 3) -> str:
    return module(_PIPELINE.format(body=textwrap.indent(body, "    "), spec=spec, grid=grid, slots=slots))


_PRODUCT = "plgpu.wgmma(acc, l, r)"
_DELAYED = ", delay_release=1"
REFILLED = {
    "no wait": pipeline(_PRODUCT),
    "one may run": pipeline(f"{_PRODUCT}\nplgpu.wgmma_wait(1)"),
    "no wait, with a delay": pipeline(_PRODUCT, _DELAYED),
    "two may run, with a delay": pipeline(f"{_PRODUCT}\nplgpu.wgmma_wait(2)", _DELAYED),
    "read in the last step": pipeline(f"{_PRODUCT}\n@pl.when(indices[0] == 7)\ndef _():\n    o_gmem[...] = acc[...]"),
    "an unknown number of steps": pipeline(_PRODUCT, grid="x.shape[1] // 64"),
}
KEPT = {
    "a wait": pipeline(f"{_PRODUCT}\nplgpu.wgmma_wait(0)"),
    "a wait at the start, with a delay": pipeline(f"plgpu.wgmma_wait(0)\n{_PRODUCT}", _DELAYED),
    "one may run, with a delay": pipeline(f"{_PRODUCT}\nplgpu.wgmma_wait(1)", _DELAYED),
    "two a step, two may run, with a delay": pipeline(f"{_PRODUCT}\n{_PRODUCT}\nplgpu.wgmma_wait(2)", _DELAYED),
    "the accumulator is read": pipeline(f"{_PRODUCT}\no_gmem[...] = acc[...]"),
    "an unknown delay": pipeline(f"{_PRODUCT}\nplgpu.wgmma_wait(1)", ", delay_release=extern"),
    "no more steps than slots": pipeline(_PRODUCT, grid=2),
    "inputs in registers": pipeline("plgpu.wgmma(acc, l[...], b)"),
    "the same block each time": pipeline(_PRODUCT).replace("(0, k)", "(0, 0)").replace("(k, 0)", "(0, 0)"),
}


@pytest.mark.parametrize("name", REFILLED)
def test_a_slot_is_filled_again_too_early(name: str) -> None:
    code = REFILLED[name]
    assert lines(lint(code, target="mosaic_gpu", select="PAL418"), "PAL418") == {line_of(code, _PRODUCT)}


@pytest.mark.parametrize("name", KEPT)
def test_a_slot_is_kept_long_enough(name: str) -> None:
    assert not lines(lint(KEPT[name], target="mosaic_gpu", select="PAL418"), "PAL418")


_CONTEXT = """
def step(indices, l, r, carry):
    plgpu.wgmma(acc, l, r)
    plgpu.wgmma_wait({left})
    return carry

def context(run):
    run(())
    o_gmem[...] = acc[...]

plgpu.emit_pipeline_warp_specialized(
    step,
    grid=(8,),
    in_specs=[plgpu.BlockSpec((64, 64), lambda k: (0, k)), plgpu.BlockSpec((64, 64), lambda k: (k, 0))],
    max_concurrent_steps=4,
    memory_registers=40,
    wg_axis="wg",
    num_compute_wgs=2,
    compute_context=context,{more}
)(x, y)
"""


def test_pipelines_of_several_warpgroups() -> None:
    code = module(_CONTEXT.format(left=1, more=""))
    assert lines(lint(code, target="mosaic_gpu", select="PAL418"), "PAL418") == {
        line_of(code, "plgpu.wgmma(acc, l, r)")
    }
    assert not lines(lint(module(_CONTEXT.format(left=0, more="")), target="mosaic_gpu", select="PAL418"), "PAL418")
    by_hand = module(_CONTEXT.format(left=1, more="\n    manual_consumed_barriers=True,"))
    assert not lines(lint(by_hand, target="mosaic_gpu", select="PAL418"), "PAL418")
