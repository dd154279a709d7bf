"""PAL416: SMEM written, then read by a copy or an MMA, without a fence."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import fixed, lines, lint
from tests.rules.kernels import line_of

_MODULE = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def fence():
    plgpu.commit_smem()

def send(smem, gmem):
    plgpu.copy_smem_to_gmem(smem, gmem)

def fill(smem, value):
    smem[...] = value

def kernel(x_gmem, o_gmem, a, b, barrier):
{body}

def run(x):
    return plgpu.kernel(
        kernel,
        out_shape=jax.ShapeDtypeStruct((128,), jnp.float32),
        scratch_shapes=[plgpu.SMEM((128,), jnp.float32), plgpu.SMEM((128,), jnp.float32), plgpu.Barrier()],
    )(x)
"""


def module(body: str) -> str:
    return _MODULE.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))


_END = "\nplgpu.wait_smem_to_gmem(0)"
UNFENCED = {
    "plain": ("a[...] = jnp.zeros(128)\nplgpu.copy_smem_to_gmem(a, o_gmem)", "(a, o_gmem)"),
    "keywords": ("a[...] = jnp.zeros(128)\nplgpu.copy_smem_to_gmem(src=a, dst=o_gmem)", "src=a"),
    "helpers": ("fill(a, 0.0)\nsend(a, o_gmem)", "plgpu.copy_smem_to_gmem(smem, gmem)"),
    "view": ("a[...] = jnp.zeros(128)\nplgpu.copy_smem_to_gmem(a.at[pl.ds(0, 64)], o_gmem)", "pl.ds(0, 64)"),
    "part": ("a[pl.ds(0, 64)] = jnp.zeros(64)\nplgpu.copy_smem_to_gmem(a, o_gmem)", "(a, o_gmem)"),
    "accumulated": ("a[...] += 1\nplgpu.copy_smem_to_gmem(a, o_gmem)", "(a, o_gmem)"),
    "fence too early": (
        "plgpu.commit_smem()\na[...] = jnp.zeros(128)\nplgpu.copy_smem_to_gmem(a, o_gmem)",
        "(a, o_gmem)",
    ),
    "in a loop": (
        "def body(i, _):\n    a[...] = jnp.zeros(128)\n    plgpu.copy_smem_to_gmem(a, o_gmem)\n"
        "    plgpu.wait_smem_to_gmem(0)\nlax.fori_loop(0, 4, body, None)",
        "(a, o_gmem)",
    ),
    "run_scoped": (
        "def inner(s):\n    s[...] = jnp.zeros(128)\n    plgpu.copy_smem_to_gmem(s, o_gmem)\n"
        "pl.run_scoped(inner, plgpu.SMEM((128,), jnp.float32))",
        "(s, o_gmem)",
    ),
    "wgmma": (
        "a[...] = jnp.zeros(128)\npl.run_scoped(lambda r: plgpu.wgmma(r, a, b), plgpu.ACC((64, 64)))",
        "plgpu.wgmma(r",
    ),
    "wgmma transposed": (
        "a[...] = jnp.zeros(128)\n"
        "pl.run_scoped(lambda r: plgpu.wgmma(r, b, plgpu.transpose_ref(a, (1, 0))), plgpu.ACC((64, 64)))",
        "plgpu.wgmma(r",
    ),
    "after unseen code": ("other()\na[...] = jnp.zeros(128)\nplgpu.copy_smem_to_gmem(a, o_gmem)", "(a, o_gmem)"),
}


@pytest.mark.parametrize("name", UNFENCED)
def test_unfenced(name: str) -> None:
    body, where = UNFENCED[name]
    code = module(body + _END)
    assert lines(lint(code, select="PAL416"), "PAL416") == {line_of(code, where)}


FENCED = {
    "fence": "a[...] = jnp.zeros(128)\nplgpu.commit_smem()\nplgpu.copy_smem_to_gmem(a, o_gmem)",
    "fence in a helper": "a[...] = jnp.zeros(128)\nfence()\nplgpu.copy_smem_to_gmem(a, o_gmem)",
    "helper called twice": (
        "a[...] = jnp.zeros(128)\nfence()\nplgpu.copy_smem_to_gmem(a, o_gmem)\nplgpu.wait_smem_to_gmem(0)\n"
        "a[...] = jnp.ones(128)\nfence()\nplgpu.copy_smem_to_gmem(a, o_gmem)"
    ),
    "another buffer": "b[...] = jnp.zeros(128)\nplgpu.copy_smem_to_gmem(a, o_gmem)",
    "filled by a copy": (
        "plgpu.copy_gmem_to_smem(x_gmem, a, barrier)\nplgpu.barrier_wait(barrier)\nplgpu.copy_smem_to_gmem(a, o_gmem)"
    ),
    "unseen code in between": "a[...] = jnp.zeros(128)\nother()\nplgpu.copy_smem_to_gmem(a, o_gmem)",
    "conditional fence": (
        "a[...] = jnp.zeros(128)\nif x_gmem.dtype == jnp.float32:\n    plgpu.commit_smem()\n"
        "plgpu.copy_smem_to_gmem(a, o_gmem)"
    ),
    "written after waiting": (
        "plgpu.copy_smem_to_gmem(a, o_gmem)\nplgpu.wait_smem_to_gmem(0, wait_read_only=True)\na[...] = jnp.zeros(128)"
    ),
}


@pytest.mark.parametrize("name", FENCED)
def test_fenced(name: str) -> None:
    assert not lint(module(FENCED[name] + _END), select="PAL416")


def test_overwritten_while_it_is_read() -> None:
    code = module("plgpu.copy_smem_to_gmem(a, o_gmem)\na[...] = jnp.zeros(128)" + _END)
    [finding] = lint(code, select="PAL416")
    assert finding.severity.value == "warning"
    assert finding.span.start.line == line_of(code, "a[...] =")


def test_fix_keeps_indentation_and_line_ends() -> None:
    code = module(
        "if True:\n    a[...] = jnp.zeros(128)\n    plgpu.copy_smem_to_gmem(\n        a, o_gmem\n    )" + _END
    )
    after = fixed(code, select="PAL416")
    assert "        plgpu.commit_smem()\n        plgpu.copy_smem_to_gmem(\n" in after
    assert not lint(after, select="PAL416")


_SLOTS = (
    "wg = lax.axis_index('wg')\na[wg] = 0.0\nplgpu.commit_smem()\nplgpu.copy_smem_to_gmem(a.at[wg], o_gmem.at[wg])\n"
    "{then}\nplgpu.wait_smem_to_gmem(0)"
)


@pytest.mark.parametrize(
    ("then", "flagged"),
    [
        ("a[wg] = 1.0  # again", True),
        ("a.at[wg][...] = 1.0  # again", True),
        ("a[1 - wg] = 1.0  # again", False),
        ("plgpu.wait_smem_to_gmem(0)\na[wg] = 1.0  # again", False),
        ("b[wg] = 1.0  # again", False),
    ],
)
def test_a_slot_that_is_still_sent(then: str, flagged: bool) -> None:
    code = _MODULE.format(body=textwrap.indent(_SLOTS.format(then=then), "    ")).replace("(128,)", "(2, 128)")
    found = [each for each in lint(code, select="PAL416") if "is overwritten" in each.message]
    assert [each.span.start.line for each in found] == ([line_of(code, "# again")] if flagged else [])


_RING = """\
def body(i, _):
    slot = lax.rem(i, {slots})
{before}
    a[slot] = 0.0  # again
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(a.at[slot], o_gmem.at[i])
{after}
    return _

lax.fori_loop(0, 8, body, None)
plgpu.wait_smem_to_gmem(0)"""
_WAIT = "    plgpu.wait_smem_to_gmem({})"


@pytest.mark.parametrize(
    ("slots", "before", "after", "flagged"),
    [
        (2, _WAIT.format(1), "", False),
        (2, "", _WAIT.format(1), False),
        (2, _WAIT.format(2), "", True),
        (2, "", _WAIT.format("2, wait_read_only=True"), True),
        (3, _WAIT.format(2), "", False),
        (3, _WAIT.format(3), "", True),
        (2, "", "", True),
        (2, _WAIT.format("slots"), "", False),
        (2, "    @pl.when(i >= 2)\n    def _():\n        plgpu.wait_smem_to_gmem(1)", "", False),
        (2, _WAIT.format(1), "    plgpu.copy_smem_to_gmem(b, o_gmem.at[0])", False),  # one more, which pushes it out
    ],
)
def test_a_ring_of_slots(slots: int, before: str, after: str, flagged: bool) -> None:
    code = module(_RING.format(slots=slots, before=before, after=after)).replace("(128,)", "(3, 128)")
    found = [each for each in lint(code, select="PAL416") if "is overwritten" in each.message]
    assert [each.span.start.line for each in found] == ([line_of(code, "# again")] if flagged else [])


def test_a_wait_that_leaves_a_copy_is_named() -> None:
    code = module(_RING.format(slots=2, before=_WAIT.format(2), after="")).replace("(128,)", "(3, 128)")
    [found] = [each for each in lint(code, select="PAL416") if "is overwritten" in each.message]
    assert found.message.endswith("`wait_smem_to_gmem(2)` leaves it")


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("a[...] = x_gmem[i]  # again\nplgpu.commit_smem()\nplgpu.copy_smem_to_gmem(a, o_gmem.at[i])", True),
        (
            "plgpu.wait_smem_to_gmem(0)\na[...] = x_gmem[i]  # again\nplgpu.commit_smem()\n"
            "plgpu.copy_smem_to_gmem(a, o_gmem.at[i])", False,
        ),
        (
            "a[...] = x_gmem[i]  # again\nplgpu.commit_smem()\nplgpu.copy_smem_to_gmem(a, o_gmem, commit_group=False)\n"
            "plgpu.wait_smem_to_gmem(0)", False,
        ),
    ],
)  # fmt: skip
def test_the_next_turn(body: str, flagged: bool) -> None:
    loop = f"@pl.loop(0, 4)\ndef _(i):\n{textwrap.indent(body, '    ')}{_END}"
    code = module(loop)
    found = [each for each in lint(code, select="PAL416") if "is overwritten" in each.message]
    assert [each.span.start.line for each in found] == ([line_of(code, "# again")] if flagged else [])


_ACC = "plgpu.ACC((64, 64), jnp.float32)"
_EPILOGUE = """\
def step(indices, l, r, carry):
    plgpu.wgmma(acc, l, r)
    plgpu.wgmma_wait(0)
    return carry

def context(run):
    run(())
    a[...] = acc[...]
    {fence}
    plgpu.copy_smem_to_gmem(a, o_gmem)
    plgpu.wait_smem_to_gmem(0)

plgpu.emit_pipeline_warp_specialized(
    step, grid=(8,),
    in_specs=[plgpu.BlockSpec((64, 64), lambda k: (0, k)), plgpu.BlockSpec((64, 64), lambda k: (k, 0))],
    memory_registers=40, wg_axis="wg", num_compute_wgs=1, compute_context=context,
)(x_gmem, x_gmem)"""


@pytest.mark.parametrize(("fence", "flagged"), [("pass", True), ("plgpu.commit_smem()", False)])
def test_the_end_of_a_compute_context(fence: str, flagged: bool) -> None:
    code = module(_EPILOGUE.format(fence=fence)).replace("barrier):", "acc):").replace("plgpu.Barrier()", _ACC)
    assert lines(lint(code, select="PAL416"), "PAL416") == ({line_of(code, "(a, o_gmem)")} if flagged else set())


_SEND = """\
plgpu.wait_smem_to_gmem({left}, wait_read_only=True)
a[{slot}] = 0.0  # again
plgpu.commit_smem()
plgpu.copy_smem_to_gmem(a.at[{slot}], o_gmem.at[i])
{toggle}"""
# Loops of Python around the sending of a slot, and what comes before them.
_LOOPS = {
    "one": "slot = 0\nfor i in range(3):\n",
    "two": "slot = 0\nfor i in range(2):\n  for j in range(2):\n",
    "odd": "slot = 0\nfor i in range(3):\n  for j in range(3):\n",
    "three": "slot = 0\nfor i in range(2):\n  for j in range(2):\n    for k in range(2):\n",
    "many": "slot = 0\nfor i in range(10):\n  for j in range(2):\n",
    "while": "slot = i = 0\nwhile i < 2:\n  i += 1\n  for j in range(2):\n",
    "in a loop of jax": "slot = 0\n@pl.loop(0, 4)\ndef _(i):\n  slot = 0\n  for j in range(2):\n",
}


def _in_loops(loops: str, send: str) -> str:
    depth = len(loops.splitlines()[-1]) - len(loops.splitlines()[-1].lstrip()) + 2
    code = module(f"{loops}{textwrap.indent(send, ' ' * depth)}{_END}").replace("(128,)", "(3, 128)")
    return "\n".join(str(each.span.start.line) for each in lint(code, select="PAL416") if "is over" in each.message)


@pytest.mark.parametrize("toggle", ["slot = 1 - slot", "slot ^= 1", "slot = (slot + 1) % 2", "slot = not slot"])
@pytest.mark.parametrize("name", _LOOPS)
def test_slots_in_turn(name: str, toggle: str) -> None:
    slot = "int(slot)" if "not" in toggle else "slot"
    assert not _in_loops(_LOOPS[name], _SEND.format(left=1, slot=slot, toggle=toggle))
    assert _in_loops(_LOOPS[name], _SEND.format(left=1, slot=slot, toggle="pass"))
    assert _in_loops(_LOOPS[name], _SEND.format(left=2, slot=slot, toggle=toggle))


def test_two_sends_need_no_third_slot() -> None:
    loops = "slot = 0\nfor i in range(1):\n  for j in range(2):\n"
    for left in (1, 2):
        assert not _in_loops(loops, _SEND.format(left=left, slot="slot", toggle="slot = 1 - slot"))


def test_three_slots_in_turn() -> None:
    turn = "slot = (slot + 1) % 3"
    assert not _in_loops(_LOOPS["odd"], _SEND.format(left=2, slot="slot", toggle=turn))
    assert _in_loops(_LOOPS["odd"], _SEND.format(left=3, slot="slot", toggle=turn))


# One like the first raises with the GPU interpreter of jax 0.12.0.1 (`detect_races=True`), with the wait not.
@pytest.mark.parametrize(
    ("body", "early"),
    [
        ("{copy}\no_gmem[...] = a[...]\n{wait}", True),
        ("{copy}\nplgpu.copy_smem_to_gmem(a, o_gmem)\n{wait}", True),
        ("{copy}\n{wait}\no_gmem[...] = a[...]", False),
        ("{copy}\no_gmem[...] = b[...]\n{wait}", False),
        ("{copy}\nplgpu.wait_gmem_to_smem(x_gmem, a, barrier)\no_gmem[...] = a[...]", False),
        ("o_gmem[...] = a[...]\n{copy}\n{wait}", False),
        ("pl.when(x_gmem[0] > 0)(lambda: {copy})\no_gmem[...] = a[...]", True),
        ("pl.when(x_gmem[0] > 0)(lambda: {copy})\npl.when(x_gmem[1] > 0)(lambda: pl.debug_print('', a[0]))", False),
        ("plgpu.copy_gmem_to_smem(x_gmem.at[0:64], a.at[0:64], barrier)\no_gmem[...] = a[...]\n{wait}", False),
    ],
)
def test_a_read_before_the_copy_was_waited_for(body: str, early: bool) -> None:
    code = module(body.format(copy="plgpu.copy_gmem_to_smem(x_gmem, a, barrier)", wait="plgpu.barrier_wait(barrier)"))
    found = lint(code, "0.12.0.1", "mosaic-gpu", "PAL416")
    assert ["before the copy into it was waited for" in each.message for each in found] == [True] * early


_PREFETCH = """
def start(k):
    slot = lax.rem(k, 2)
    plgpu.copy_gmem_to_smem(x_gmem.at[k], a.at[slot], barrier.at[slot])

for k in range(2):
    start(k)

@pl.loop(0, 8)
def _(k):
    slot = lax.rem(k, 2)
    plgpu.barrier_wait(barrier.at[WAIT])
    BODY
"""


@pytest.mark.parametrize(
    ("body", "wait", "early"),
    [
        ("o_gmem[k] = a[slot]\n    pl.when(k + 2 < 8)(lambda: start(k + 2))", "slot", False),
        ("pl.when(k + 2 < 8)(lambda: start(k + 2))\n    o_gmem[k] = a[slot]", "slot", True),
        ("pl.when(k + 2 < 8)(lambda: start(k + 2))\n    o_gmem[k] = a[1 - slot]", "slot", True),  # of the prologue
        ("o_gmem[k] = a[slot]\n    pl.when(k + 2 < 8)(lambda: start(k + 2))", "1 - slot", True),
        ("o_gmem[k] = a[slot]\n    pl.when(k + 2 < 8)(lambda: start(k + 2))", "x_gmem[k]", False),  # it may be any
    ],
)
def test_slots_are_read_once_their_copy_was_waited_for(body: str, wait: str, early: bool) -> None:
    code = module(_PREFETCH.replace("BODY", body).replace("WAIT", wait)).replace("(128,)", "(2, 128)")
    found = lint(code, "0.12.0.1", "mosaic-gpu", "PAL416")
    assert ["before the copy into it was waited for" in each.message for each in found] == [True] * early


# The probe's model of the first has no order in which the copies do not meet.
@pytest.mark.parametrize(
    ("body", "twice"),
    [
        ("start(k + 1, slot)\n    plgpu.barrier_wait(barrier.at[slot])", True),
        ("start(k + 1, 1 - slot)\n    plgpu.barrier_wait(barrier.at[slot])", False),
        ("plgpu.barrier_wait(barrier.at[slot])\n    start(k + 1, slot)", False),
        ("plgpu.barrier_wait(b)\n    start(k + 1, slot)", False),  # another barrier, which others may arrive at
        ("pl.when(x_gmem[0] > 0)(lambda: start(k + 1, slot))\n    pl.when(x_gmem[0] < 0)(lambda: start(k + 1, slot))"
         "\n    plgpu.barrier_wait(barrier.at[slot])", True),  # the one in the prologue
    ],
)  # fmt: skip
def test_slots_that_two_copies_fill(body: str, twice: bool) -> None:
    start = "plgpu.copy_gmem_to_smem(x_gmem.at[k], a.at[slot], barrier.at[slot])"
    loop = f"start(0, 0)\n\n@pl.loop(0, 8)\ndef _(k):\n    slot = lax.rem(k, 2)\n    {body}"
    code = module(f"def start(k, slot):\n    {start}\n\n{loop}").replace("(128,)", "(2, 128)")
    found = lint(code, "0.12.0.1", "mosaic-gpu", "PAL416")
    assert ["is filled again" in each.message for each in found] == [True] * twice
