"""The call cache: repeated calls of a helper are replayed with the new arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.kernels.model.trace import Access, Op
from pallas_lint.kernels.model.values import Array, Const, Slice
from pallas_lint.lint import check_file
from pallas_lint.run.project import Project
from pallas_lint.testing import settings
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Value

_TEXT = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

{helpers}

def kernel(x_ref, y_ref, o_ref):
{body}

def run(x, y):
    return pl.pallas_call(kernel, grid=(4, 4, 4), out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x, y)
"""
_UNDER = "    @pl.when(pl.program_id(2) == {at})\n    def _():\n        {call}\n"


def _trace(helpers: str, *calls: str) -> KernelTrace:
    """Of a kernel that makes each of the calls under a condition of its own: else they are one."""
    body = "".join(_UNDER.format(at=at, call=call) for at, call in enumerate(calls))
    file_analysis = check_file(
        Source("k.py", _TEXT.format(helpers=helpers, body=body)), settings(), Project(Path("/nonexistent"))
    )
    assert file_analysis.analysis is not None
    (trace,) = file_analysis.analysis.traces
    assert trace.complete
    assert not trace.untracked_at
    return trace


def _axis(value: Value) -> object:
    """The axis of the grid index in which arithmetic on one ends."""
    while isinstance(value, Array) and value.origin is not None:
        if value.origin.name.endswith("program_id"):
            axis = value.origin.args[0]
            return axis.value if isinstance(axis, Const) else None
        value = value.origin.args[0]
    return None


_CALLS = [f"write(x_ref, o_ref, pl.program_id({axis}))" for axis in (0, 1, 0)]


@pytest.mark.parametrize(
    "helper",
    [
        "def write(x_ref, o_ref, i):\n    o_ref[pl.ds(i * 8, 8)] = x_ref[...]\n",
        "def eight(i):\n    return i * 8\ndef write(x_ref, o_ref, i):\n    o_ref[pl.ds(eight(i), 8)] = x_ref[...]\n",
        "def write(x_ref, o_ref, i):\n"
        "    @pl.when(i == 0)\n    def _():\n        o_ref[pl.ds(i * 8, 8)] = x_ref[...]\n",
    ],
    ids=["directly", "by a helper of its own", "in a closure"],
)
def test_values_from_arguments_are_from_the_new_ones(helper: str) -> None:
    stores = [event for event in _trace(helper, *_CALLS).accesses("o_ref") if event.kind == "store"]
    starts = [store.index.start for store in stores if isinstance(store.index, Slice)]
    assert [_axis(start) for start in starts] == [0, 1, 0]
    for store, start in zip(stores, starts, strict=True):
        for guard in store.guards[1:]:
            assert isinstance(guard.condition, Array)
            assert _axis(guard.condition) == _axis(start)


def test_the_operations_are_in_the_trace() -> None:
    trace = _trace("def write(x_ref, o_ref, i):\n    o_ref[pl.ds(i * 8, 8)] = x_ref[...]\n", *_CALLS)
    made = {id(op) for op in trace.ops()}
    for store in trace.accesses("o_ref"):
        assert isinstance(store.index, Slice)
        assert isinstance(store.index.start, Array)
        assert id(store.index.start.origin) in made


def test_events_name_the_calls_that_lead_to_them() -> None:
    helper = (
        "def eight(i):\n    return i * 8\ndef write(x_ref, o_ref, i):\n    o_ref[pl.ds(eight(i), 8)] = x_ref[...] + 1\n"
    )
    trace = _trace(helper, *_CALLS)
    stores = [event for event in trace.accesses("o_ref") if event.kind == "store"]
    assert [[call.span.start.line for call in store.calls] for store in stores] == [[14], [17], [20]]
    products = trace.ops("jax.numpy.multiply")
    assert [[call.span.start.line for call in op.calls] for op in products] == [[14, 8], [17, 8], [20, 8]]


def test_results_come_from_the_new_arguments() -> None:
    helper = "def shift(i):\n    return i + 1\n"
    calls = [f"o_ref[shift(pl.program_id({axis}))] = x_ref[...]" for axis in (0, 1, 0)]
    assert [_axis(store.index) for store in _trace(helper, *calls).accesses("o_ref")] == [0, 1, 0]


def test_views_are_distinguished() -> None:
    helper = "def copy(a_ref, b_ref):\n    b_ref[...] = a_ref[...]\n"
    calls = [f"copy(x_ref.at[pl.program_id({axis})], o_ref.at[pl.program_id({axis})])" for axis in (0, 1)]
    accesses = [event for event in _trace(helper, *calls).events if isinstance(event, Access)]
    assert [(event.kind, _axis(event.ref.indexer)) for event in accesses if event.ref.indexer is not None] == [
        ("load", 0),
        ("store", 0),
        ("load", 1),
        ("store", 1),
    ]


def test_equal_guards_do_not_make_views_equal() -> None:
    helpers = "def put(ref, value):\n    ref[...] = value\n"
    body = "".join(f"    put({ref}.at[{at}:{at + 4}], x_ref[0:4])\n" for ref in ("o_ref", "y_ref") for at in (0, 4))
    file_analysis = check_file(
        Source("k.py", _TEXT.format(helpers=helpers, body=body)), settings(), Project(Path("/nonexistent"))
    )
    assert file_analysis.analysis is not None
    (trace,) = file_analysis.analysis.traces
    stores = [event.ref for event in trace.accesses() if event.kind == "store"]
    assert [(ref.parameter, ref.indexer.start) for ref in stores if isinstance(ref.indexer, Slice)] == [
        ("o_ref", Const(0)),
        ("o_ref", Const(4)),
        ("y_ref", Const(0)),
        ("y_ref", Const(4)),
    ]
    assert "PAL406" not in {finding.code for finding in file_analysis.result.findings}


def test_a_loaded_value_has_one_access() -> None:
    helper = "def double(ref, at):\n    return ref[at] * 2\n"
    calls = [f"o_ref[{at}] = double({ref}, pl.program_id({at}))" for at, ref in enumerate(["x_ref", "x_ref", "y_ref"])]
    trace = _trace(helper, *calls)
    loads = {id(event.value): event for event in trace.accesses() if event.kind == "load"}
    assert len(loads) == 3
    products = [op for op in trace.ops() if op.name == "jax.numpy.multiply"]
    assert [loads[id(op.args[0])].ref.parameter for op in products] == ["x_ref", "x_ref", "y_ref"]
    assert [_axis(loads[id(op.args[0])].index) for op in products] == [0, 1, 2]


def test_one_array_twice_is_not_replayed_for_two() -> None:
    helper = "def add(a, b):\n    return a + b\n"
    calls = [
        "i = pl.program_id(0); o_ref[add(i, i)] = x_ref[...]",
        "o_ref[add(pl.program_id(0), pl.program_id(1))] = x_ref[...]",
    ]
    sums: list[Op] = [op for op in _trace(helper, *calls).ops() if op.name == "jax.numpy.add"]
    assert [[_axis(value) for value in op.args] for op in sums] == [[0, 0], [0, 1]]


def test_captured_variables_stay() -> None:
    helper = "def unused():\n    pass\n"
    body = [
        "    i = pl.program_id(0)",
        "    j = pl.program_id(1)",
        "    def add(k):",
        "        o_ref[k + i] = x_ref[...]",
        "    add(i)",
        "    add(j)",
    ]
    text = _TEXT.format(helpers=helper, body="\n".join(body))
    file_analysis = check_file(Source("k.py", text), settings(), Project(Path("/nonexistent")))
    assert file_analysis.analysis is not None
    (trace,) = file_analysis.analysis.traces
    sums = [op for op in trace.ops() if op.name == "jax.numpy.add"]
    assert [[_axis(value) for value in op.args] for op in sums] == [[0, 0], [1, 0]]


def test_methods_belong_to_their_objects() -> None:
    helper = (
        "class Part:\n    def __init__(self, at):\n        self.at = at\n\n"
        "    def store(self, x_ref, o_ref):\n        o_ref[self.at] = x_ref[...]\n"
    )
    body = "    first, second = Part(1), Part(2)\n    first.store(x_ref, o_ref)\n    second.store(x_ref, o_ref)\n"
    file_analysis = check_file(
        Source("k.py", _TEXT.format(helpers=helper, body=body)), settings(), Project(Path("/nonexistent"))
    )
    assert file_analysis.analysis is not None
    (trace,) = file_analysis.analysis.traces
    assert [store.index for store in trace.accesses("o_ref") if store.kind == "store"] == [Const(1), Const(2)]


def test_closures_capture_what_their_own_call_was_given() -> None:
    helper = "def adder(k):\n    return lambda i: k + i\n"
    calls = [
        "i = pl.program_id(0); o_ref[adder(i)(i)] = x_ref[...]",
        "i = pl.program_id(0); o_ref[adder(pl.program_id(1))(i)] = x_ref[...]",
    ]
    sums: list[Op] = [op for op in _trace(helper, *calls).ops() if op.name == "jax.numpy.add"]
    assert [[_axis(value) for value in op.args] for op in sums] == [[0, 0], [1, 0]]
