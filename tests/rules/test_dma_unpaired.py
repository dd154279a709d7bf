"""PAL415: copies without wait, waits without copy, however the descriptors travel."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import codes, lines, lint
from tests.rules.kernels import line_of

_MODULE = """\
import dataclasses
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

{prelude}

def kernel(x_ref, o_ref, buffer, other, sem, sems):
{body}

def run(x):
    return pl.pallas_call(
        kernel,
        {grid}
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[
            pltpu.VMEM((2, 8, 128), jnp.float32),
            pltpu.VMEM((2, 8, 128), jnp.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((2,)),
        ],
    )(x)
"""


def module(body: str, prelude: str = "", grid: str = "grid=(4,),") -> str:
    inner = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return _MODULE.format(body=inner, prelude=textwrap.dedent(prelude), grid=grid)


HELPER = """
def copy(x_ref, buffer, sem, slot=0):
    return pltpu.make_async_copy(x_ref, buffer.at[slot], sem)
"""
CLASS = """
class Fetch:
    def __init__(self, x_ref, buffer, sem):
        self._copy = pltpu.make_async_copy(x_ref, buffer.at[0], sem)

    def start(self):
        self._copy.start()

    def wait(self):
        self._copy.wait()
"""

UNPAIRED = {
    "start alone": ("pltpu.make_async_copy(x_ref, buffer.at[0], sem).start()", "", "start()"),
    "by name": ("c = pltpu.make_async_copy(x_ref, buffer.at[0], sem)\nc.start()", "", "c.start()"),
    "keywords": ("c = pltpu.make_async_copy(src_ref=x_ref, dst_ref=buffer.at[0], sem=sem)\nc.start()", "", "c.start()"),
    "async_copy": ("pltpu.async_copy(x_ref, buffer.at[0], sem)", "", "async_copy"),
    "helper": ("copy(x_ref, buffer, sem).start()", HELPER, "sem).start()"),
    "partial": ("c = functools.partial(copy, x_ref, buffer)\nc(sem).start()", HELPER, "c(sem).start()"),
    "method object": ("begin = copy(x_ref, buffer, sem).start\nbegin()", HELPER, "begin()"),
    "when": (
        "@pl.when(pl.program_id(0) == 0)\ndef _():\n    copy(x_ref, buffer, sem).start()",
        HELPER,
        "    copy(x_ref, buffer, sem).start()",
    ),
    "when on a method": ("pl.when(pl.program_id(0) == 0)(copy(x_ref, buffer, sem).start)", HELPER, "pl.when"),
    "cond": (
        "lax.cond(pl.program_id(0) == 0, lambda: copy(x_ref, buffer, sem).start(), lambda: None)",
        HELPER,
        "lax.cond",
    ),
    "list": (
        "cs = [pltpu.make_async_copy(x_ref, buffer.at[i], sems.at[i]) for i in range(2)]\nfor c in cs:\n    c.start()",
        "",
        "c.start()",
    ),
    "fori_loop": (
        "def body(i, _):\n    pltpu.make_async_copy(x_ref, buffer.at[i], sems.at[i]).start()\n"
        "lax.fori_loop(0, 2, body, None)",
        "",
        "sems.at[i]).start()",
    ),
    "other slot": (
        "pltpu.make_async_copy(x_ref, buffer.at[0], sems.at[0]).start()\n"
        "pltpu.make_async_copy(x_ref, buffer.at[1], sems.at[1]).start()\n"
        "pltpu.make_async_copy(x_ref, buffer.at[1], sems.at[1]).wait()\n",
        "",
        "sems.at[0]",
    ),
    "class": ("f = Fetch(x_ref, buffer, sem)\nf.start()", CLASS, "self._copy.start()"),
    "run_scoped": (
        "def inner(s):\n    pltpu.make_async_copy(x_ref, buffer.at[0], s).start()\n"
        "pl.run_scoped(inner, pltpu.SemaphoreType.DMA)",
        "",
        "s).start()",
    ),
    "remote without receive": (
        "c = pltpu.make_async_remote_copy(x_ref, buffer.at[0], sem, sems.at[0], device_id=(1,))\n"
        "c.start()\nc.wait_send()",
        "",
        "c.start()",
    ),
    "wait alone": ("pltpu.make_async_copy(x_ref, buffer.at[0], sem).wait()", "", "wait()"),
    "wait on another": (
        "pltpu.make_async_copy(x_ref, buffer.at[0], sem).start()\n"
        "pltpu.make_async_copy(x_ref, buffer.at[0], sem).wait()\n"
        "pltpu.make_async_copy(x_ref, buffer.at[1], sems.at[0]).wait()",
        "",
        "sems.at[0]",
    ),
    "never used": ("pltpu.make_async_copy(x_ref, buffer.at[0], sem)", "", "make_async_copy"),
    "named, never used": ("c = copy(x_ref, buffer, sem)", HELPER, "return pltpu.make"),
}


@pytest.mark.parametrize("name", UNPAIRED)
def test_unpaired(name: str) -> None:
    body, prelude, where = UNPAIRED[name]
    code = module(body, prelude)
    assert lines(lint(code, select="PAL415"), "PAL415") == {line_of(code, where)}


PAIRED = {
    "start and wait": ("c = copy(x_ref, buffer, sem)\nc.start()\nc.wait()", HELPER),
    "made anew": ("copy(x_ref, buffer, sem).start()\ncopy(x_ref, buffer, sem).wait()", HELPER),
    "wait with other refs": (
        "pltpu.make_async_copy(x_ref, buffer.at[0], sem).start()\n"
        "pltpu.make_async_copy(buffer.at[0], buffer.at[0], sem).wait()",
        "",
    ),
    "one wait for many": (
        "for i in range(2):\n    pltpu.make_async_copy(x_ref, buffer.at[i], sem).start()\n"
        "pltpu.make_async_copy(buffer, buffer, sem).wait()",
        "",
    ),
    "tree map": (
        "cs = [copy(x_ref, buffer, sems.at[i], i) for i in range(2)]\n"
        "jax.tree.map(lambda c: c.start(), cs)\njax.tree.map(lambda c: c.wait(), cs)",
        HELPER,
    ),
    "dictionary": (
        "cs = {'k': copy(x_ref, buffer, sem), 'v': copy(x_ref, other, sems.at[0])}\n"
        "for c in cs.values():\n    c.start()\ncs['k'].wait()\ncs['v'].wait()",
        HELPER,
    ),
    "choice": (
        "a, b = copy(x_ref, buffer, sem), copy(x_ref, other, sem)\n"
        "c = a if x_ref.shape[0] > 8 else b\nc.start()\nc.wait()",
        HELPER,
    ),
    "double buffer": (
        """
        i = pl.program_id(0)
        @pl.when(i == 0)
        def _():
            copy(x_ref, buffer, sems.at[0], 0).start()
        @pl.when(i + 1 < pl.num_programs(0))
        def _():
            copy(x_ref, buffer, sems.at[(i + 1) % 2], (i + 1) % 2).start()
        copy(x_ref, buffer, sems.at[i % 2], i % 2).wait()
        """,
        HELPER,
    ),
    "wait for the previous step": (
        """
        i = pl.program_id(0)
        @pl.when(i > 0)
        def _():
            copy(x_ref, buffer, sem).wait()
        copy(x_ref, buffer, sem).start()
        @pl.when(i == pl.num_programs(0) - 1)
        def _():
            copy(x_ref, buffer, sem).wait()
        """,
        HELPER,
    ),
    "same condition": (
        """
        ready = pl.program_id(0) == 0
        @pl.when(ready)
        def _():
            copy(x_ref, buffer, sem).start()
        @pl.when(ready)
        def _():
            copy(x_ref, buffer, sem).wait()
        """,
        HELPER,
    ),
    "python flag": (
        "if x_ref.dtype == jnp.int8:\n    copy(x_ref, buffer, sem).start()\n    copy(x_ref, buffer, sem).wait()",
        HELPER,
    ),
    "unknown helper": (
        "begin(x_ref, buffer, sem)\ncopy(x_ref, buffer, sem).wait()",
        f"from fetches import begin\n{HELPER}",
    ),
    "descriptor handed out": ("c = copy(x_ref, buffer, sem)\nfinish(c)", f"from fetches import finish\n{HELPER}"),
    "remote": (
        "c = pltpu.make_async_remote_copy(x_ref, buffer.at[0], sem, sems.at[0], device_id=(1,))\nc.start()\nc.wait()",
        "",
    ),
    "remote, waits apart": (
        "c = pltpu.make_async_remote_copy(x_ref, buffer.at[0], sem, sems.at[0], device_id=(1,))\n"
        "c.start()\nc.wait_recv()\nc.wait_send()",
        "",
    ),
    "sync_copy": ("pltpu.sync_copy(x_ref, buffer.at[0])", ""),
    "class": ("f = Fetch(x_ref, buffer, sem)\nf.start()\nf.wait()", CLASS),
    "counted by hand": (
        "copy(x_ref, buffer, sem).start()\npl.semaphore_wait(sem, 4096)",
        HELPER,
    ),
    "descriptors of unknown number": (
        "n = x_ref.shape[0]\ncs = [copy(x_ref, buffer, sem, i) for i in range(n)]\nfor c in cs:\n    c.start()\n"
        "for c in cs:\n    c.wait()",
        HELPER,
    ),
}


@pytest.mark.parametrize("name", PAIRED)
def test_paired(name: str) -> None:
    body, prelude = PAIRED[name]
    assert "PAL415" not in codes(lint(module(body, prelude), select="PAL415"))


def test_starts_always_waits_sometimes() -> None:
    code = module(
        "copy(x_ref, buffer, sem).start()\n"
        "@pl.when(pl.program_id(0) == 0)\ndef _():\n    copy(x_ref, buffer, sem).wait()",
        HELPER,
    )
    [finding] = lint(code, select="PAL415")
    assert finding.severity.value == "warning"
    assert finding.span.start.line == line_of(code, "sem).wait()")


def test_semaphore_of_two_copies() -> None:
    body = """
    a = pltpu.make_async_copy(x_ref, buffer.at[0], sem)
    b = pltpu.make_async_copy(x_ref, other.at[0], sem)
    a.start()
    b.start()
    a.wait()
    o_ref[...] = buffer[0]
    b.wait()
    """
    code = module(body)
    assert lines(lint(code, select="PAL415"), "PAL415") == {line_of(code, "a.wait()")}
    assert not lint(code.replace("    b.wait()", "").replace("a.wait()", "a.wait(); b.wait()"), select="PAL415")


def test_semaphore_parameter_of_unknown_role_is_a_warning() -> None:
    code = module("pltpu.make_async_copy(x_ref, buffer.at[0], sem).start()").replace(
        "scratch_shapes=[", "scratch_shapes=more() + ["
    )
    assert {finding.severity.value for finding in lint(code, select="PAL415")} <= {"warning"}


FLAG = """
def copy(x_ref, buffer, sem, slot=0, *, wait=False):
    c = pltpu.make_async_copy(x_ref, buffer.at[slot], sem)
    if wait:
        c.wait()
    else:
        c.start()
"""
MISCOUNTED = {
    "two starts": ("c = copy(x_ref, buffer, sem)\nc.start()\nc.start()  # too many\nc.wait()", HELPER),
    "two waits": ("c = copy(x_ref, buffer, sem)\nc.start()\nc.wait()\nc.wait()  # too many", HELPER),
    "two copies, one wait": (
        "copy(x_ref, buffer, sem, 0).start()\ncopy(x_ref, buffer, sem, 1).start()  # too many\n"
        "copy(x_ref, buffer, sem, 0).wait()",
        HELPER,
    ),
    "wait first": ("c = copy(x_ref, buffer, sem)\nc.wait()  # too many\nc.start()", HELPER),
    "flags, forgotten": (
        "copy(x_ref, buffer, sem)\ncopy(x_ref, buffer, sem, wait=True)\ncopy(x_ref, buffer, sem, wait=True)",
        FLAG.replace("c.wait()", "c.wait()  # too many"),
    ),
    "one slot of two": (
        "first, second = copy(x_ref, buffer, sems.at[0], 0), copy(x_ref, buffer, sems.at[1], 1)\n"
        "first.start()\nsecond.start()\nfirst.start()  # too many\nfirst.wait()\nsecond.wait()",
        HELPER,
    ),
    "half of it": (
        "pltpu.make_async_copy(x_ref, buffer, sem).start()  # too many\n"
        "pltpu.make_async_copy(buffer.at[0], buffer.at[0], sem).wait()",
        "",
    ),
    "under one condition": (
        "@pl.when(pl.program_id(0) == 0)\ndef _():\n    c = copy(x_ref, buffer, sem)\n    c.start()\n"
        "    c.start()  # too many\n    c.wait()",
        HELPER,
    ),
    "in a loop": (
        "def body(i, _):\n    c = copy(x_ref, buffer, sem)\n    c.start()\n    c.wait()\n    c.wait()  # too many\n"
        "lax.fori_loop(0, 4, body, None)",
        HELPER,
    ),
    "scoped": (
        "def inner(s):\n    c = copy(x_ref, buffer, s)\n    c.start()\n    c.start()  # too many\n    c.wait()\n"
        "pl.run_scoped(inner, pltpu.SemaphoreType.DMA)",
        HELPER,
    ),
}


@pytest.mark.parametrize("name", MISCOUNTED)
def test_miscounted(name: str) -> None:
    body, prelude = MISCOUNTED[name]
    code = module(body, prelude)
    findings = lint(code, select="PAL415")
    assert {finding.span.start.line for finding in findings} == {line_of(code, "# too many")}
    sure = name not in ("under one condition", "in a loop")
    assert [finding.severity.value for finding in findings] == ["error" if sure else "warning"]


COUNTED = {
    "flags": (
        "copy(x_ref, buffer, sem)\ncopy(x_ref, buffer, sem, wait=True)\ncopy(x_ref, buffer, sem)\n"
        "copy(x_ref, buffer, sem, wait=True)",
        FLAG,
    ),
    "two starts, then two waits": ("c = copy(x_ref, buffer, sem)\nc.start()\nc.start()\nc.wait()\nc.wait()", HELPER),
    "waits for the previous step of a loop": (
        "copy(x_ref, buffer, sem).start()\n"
        "def body(i, _):\n    copy(x_ref, buffer, sem).wait()\n    copy(x_ref, buffer, sem).start()\n"
        "lax.fori_loop(0, 4, body, None)\ncopy(x_ref, buffer, sem).wait()",
        HELPER,
    ),
    "starts in a loop, waits in another": (
        "n = x_ref.shape[0]\nfor i in range(n):\n    copy(x_ref, buffer, sem).start()\n"
        "for i in range(n):\n    copy(x_ref, buffer, sem).wait()\n",
        HELPER,
    ),
    "one start, a wait in each branch": (
        "copy(x_ref, buffer, sem).start()\nlax.cond(pl.program_id(0) == 0, lambda: copy(x_ref, buffer, sem).wait(),"
        " lambda: copy(x_ref, buffer, sem).wait())",
        HELPER,
    ),
    "dynamic slots": (
        "i = pl.program_id(0) % 2\ncopy(x_ref, buffer, sems.at[i], 0).start()\ncopy(x_ref, buffer, sems.at[1 - i], 1)"
        ".start()\nfor k in (0, 1):\n    copy(x_ref, buffer, sems.at[k], k).wait()",
        HELPER,
    ),
    "remote": (
        "c = pltpu.make_async_remote_copy(x_ref, buffer.at[0], sem, sems.at[0], device_id=(1,))\n"
        "c.start()\nc.wait()\nc.wait_recv()",
        "",
    ),
    "flag that the text leaves open": (
        "copy(x_ref, buffer, sem)\ncopy(x_ref, buffer, sem, wait=x_ref.shape[0] > 8)\n"
        "copy(x_ref, buffer, sem, wait=True)",
        FLAG,
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counted(name: str) -> None:
    body, prelude = COUNTED[name]
    assert not lint(module(body, prelude), select="PAL415")


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("pl.semaphore_signal(sem, device_id=1 - me)\n    pl.semaphore_wait(sem, 2)", True),
        ("pl.semaphore_signal(sem, device_id=1 - me)\n    pl.semaphore_wait(sem)", False),
        ("pl.semaphore_signal(sem, 2, device_id=1 - me)\n    pl.semaphore_wait(sem)", False),  # more are left
        (
            "@pl.when(me == 0)\n    def _():\n        pl.semaphore_signal(sem, 2, device_id=1 - me)\n"
            "    pl.semaphore_wait(sem, 2)",
            False,
        ),
        ("pl.semaphore_signal(sem, device_id=1 - me)\n    pl.semaphore_wait(sem, 2, decrement=False)", False),
    ],
)
def test_waits_for_more_than_all_devices_signal(body: str, flagged: bool) -> None:
    code = f"""
import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def kernel(x_gmem, o_gmem, sem):
    me = lax.axis_index("x")
    {body}
    o_gmem[...] = x_gmem[...]

def run(x):
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_types=[plgpu.SemaphoreType.REGULAR],
    )(x)
"""
    assert bool(lint(code, target="mosaic_gpu", select="PAL415")) is flagged


@pytest.mark.parametrize(
    ("signals", "wait", "severities"),
    [
        ("for peer in (left, right):\n        pl.semaphore_signal(ready, device_id=(peer,))", "1", ["warning"]),
        ("for peer in (left, right):\n        pl.semaphore_signal(ready, device_id=(peer,))", "2", []),
        ("for peer in (left, right):\n        pl.semaphore_signal(ready, device_id=(peer,))", "3", ["error"]),
        ("pl.semaphore_signal(ready, 2, device_id=(right,))", "2", []),
        (
            "@pl.when(me > 0)\n    def _():\n        pl.semaphore_signal(ready, device_id=(left,))\n"
            "    pl.semaphore_signal(ready, device_id=(right,))",
            "1",
            [],
        ),
        ("lax.fori_loop(0, me, lambda i, c: pl.semaphore_signal(ready, device_id=(right,)) or c, 0)", "1", []),
    ],
)
def test_barrier_semaphore_that_does_not_come_back_to_zero(signals: str, wait: str, severities: list[str]) -> None:
    code = f"""
import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    me, n = lax.axis_index("x"), lax.axis_size("x")
    left, right = lax.rem(me + n - 1, n), lax.rem(me + 1, n)
    ready = pltpu.get_barrier_semaphore()
    {signals}
    pl.semaphore_wait(ready, {wait})
    o_ref[...] = x_ref[...]


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )(x)
"""
    assert [finding.severity.value for finding in lint(code, target="tpu", select="PAL415")] == severities
