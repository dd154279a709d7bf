"""PAL312: ids of the barrier semaphore."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lines, lint
from tests.rules.kernels import line_of

COLLECTIVE = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def sync(axis):
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, device_id=(axis,))
    pl.semaphore_wait(barrier, 1)

def gather(x_ref, o_ref):
    {first}
    o_ref[...] = x_ref[...]

def scatter(x_ref, o_ref):
    {second}
    o_ref[...] = x_ref[...]

def run(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    y = pl.pallas_call(gather, out_shape=shape, compiler_params=pltpu.CompilerParams(collective_id={one}))(x)
    return pl.pallas_call(scatter, out_shape=shape, compiler_params=pltpu.CompilerParams(collective_id={other}))(y)
"""
_OWN = "barrier = pltpu.get_barrier_semaphore(); pl.semaphore_signal(barrier); pl.semaphore_wait(barrier, 1)"


def test_collective_id_of_two_kernels() -> None:
    code = COLLECTIVE.format(first=_OWN, second=_OWN, one=0, other=0)
    assert lines(lint(code, select="PAL312"), "PAL312") == {line_of(code, "pl.pallas_call(scatter")}


def test_collective_id_of_kernels_that_synchronise_alike_is_a_hint() -> None:
    code = COLLECTIVE.format(first="sync(1)", second="sync(1)", one=0, other=0)
    assert [finding.severity.value for finding in lint(code, select="PAL312")] == ["info"]


@pytest.mark.parametrize(("first", "second", "other"), [(_OWN, _OWN, 1), (_OWN, "pass", 0)])
def test_collective_ids_that_do_not_meet(first: str, second: str, other: int) -> None:
    found = lint(COLLECTIVE.format(first=first, second=second, one=0, other=other), select="PAL312")
    assert not [finding for finding in found if "used twice" in finding.message]


def test_collective_id_of_kernels_that_may_never_meet() -> None:
    code = COLLECTIVE.format(first=_OWN, second=_OWN, one=0, other=0)
    apart = code.replace("(x)\n    return pl", "(x)\n    return y\n\ndef other(y, shape):\n    return pl")
    [finding] = lint(apart, select="PAL312")
    assert finding.severity.value == "info"
    assert not lint(apart.replace("def other(", "def test_other("), select="PAL312")


@pytest.mark.parametrize("call", ["devices.meet()", "comms.meet(devices)", "meet(devices)"])
def test_a_barrier_in_code_that_is_not_there(call: str) -> None:
    code = f"""
import comms
import functools
import jax
import jax.numpy as jnp
from comms import meet
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref, *, devices):
    {call}
    o_ref[...] = x_ref[...]

def run(x, devices):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    kept = functools.partial(kernel, devices=devices)
    return pl.pallas_call(kept, out_shape=shape, compiler_params=pltpu.CompilerParams(collective_id=1))(x)
"""
    assert lint(code, select="PAL312") == []
    assert lint(code.replace(call, "pass"), select="PAL312") != []
    signals = code.replace(call, f"{call}; barrier = pltpu.get_barrier_semaphore(); pl.semaphore_wait(barrier, 1)")
    assert lint(signals, select="PAL415") == []
    assert lint(signals.replace(f"{call}; ", ""), select="PAL415") != []
