"""Code that Python runs unseen: what decorators of the project return, and methods for operators of objects."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import lint

_CODE = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

{code}

def run(x):
    return pl.pallas_call(
        kernel, grid=(4,), in_specs=[pl.BlockSpec((8, 128), {index_map})],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32), compiler_params=pltpu.CompilerParams(),
    )(x)

run(jnp.ones((32, 128)))
"""
_KERNEL = """\
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]
"""
_VALUES = """\
def with_values(kernel):
    @functools.wraps(kernel)
    def run(x_ref, *refs, **options):
        kernel(x_ref[...], *refs, **options)
    return run
"""
_ADDED = """\
def added(kernel):
    def run(*refs):
        refs[-1][...] = kernel(*refs[:-1])
    return run
"""
_WITHIN = """\
def within(limit):
    def wrap(function):
        def guarded(i):
            @pl.when(i < limit)
            def _():
                function(i)
        return guarded
    return wrap
"""
_CLIPPED = """\
def clipped(blocks):
    def wrap(index_map):
        def inner(*grid):
            row, *rest = index_map(*grid)
            return jnp.clip(row, 0, blocks - 1), *rest
        return inner
    return wrap
"""


def found(code: str, index_map: str = "lambda i: (i, 0)") -> set[str]:
    text = _CODE.format(code=textwrap.dedent(code), index_map=index_map)
    return {finding.code for finding in lint(text, "0.12.0.1", "tpu:v6e") if finding.severity.name != "INFO"}


@pytest.mark.parametrize(
    ("kernel", "codes"),
    [
        ("@with_values\ndef kernel(x, o_ref):\n    o_ref[...] = jnp.sin(x) + x * 2\n", set()),
        ("@with_values\ndef kernel(x, o_ref):\n    o_ref[...] = jnp.sin(x)[:4]\n", {"PAL506"}),
        ("def kernel(x, o_ref):\n    o_ref[...] = jnp.sin(x) + x * 2\n", {"PAL511"}),
    ],
)
def test_a_kernel_that_is_given_values(kernel: str, codes: set[str]) -> None:
    assert found(_VALUES + kernel) == codes


def test_a_kernel_whose_result_is_stored() -> None:
    assert found(f"{_ADDED}@added\ndef kernel(x_ref):\n    return x_ref[...] * 2\n") == set()
    assert found(f"{_ADDED}@added\ndef kernel(x_ref):\n    return x_ref[:4] * 2\n") == {"PAL506"}


@pytest.mark.parametrize(("limit", "codes"), [(7, set()), (9, {"PAL412"})])
def test_a_guard_around_a_helper(limit: int, codes: set[str]) -> None:
    kernel = f"""
def kernel(x_ref, o_ref):
    @within({limit})
    def store(i):
        o_ref[i] = x_ref[i]
    @pl.loop(0, 10)
    def _(i):
        store(i)
"""
    assert found(_WITHIN + kernel) == codes


@pytest.mark.parametrize(("blocks", "codes"), [(4, set()), (5, {"PAL307"})])
def test_an_index_map_that_is_kept_inside(blocks: int, codes: set[str]) -> None:
    ahead = f"@clipped({blocks})\ndef ahead(i):\n    return i + 1, 0\n"
    assert found(f"{_KERNEL}{_CLIPPED}{ahead}", "ahead") == codes


def test_launches_are_followed_through_decorators() -> None:
    wrapped = _CODE.format(code=_KERNEL.replace("x_ref[...]", "x_ref[pl.ds(4, 8), :]"), index_map="lambda i: (i, 0)")
    call = "def call(*args):\n        print(args)\n        return function(*args)"
    noted = f"def noted(function):\n    {call}\n    return call\n"
    code = wrapped.replace("def run(x)", f"{noted}\n@noted\ndef run(x)")
    assert {finding.code for finding in lint(code, "0.12.0.1", "tpu:v6e")} == {"PAL412"}


def test_operators_of_objects_run_their_methods() -> None:
    total = """
class Total:
    def __init__(self, ref):
        self.ref = ref

    def {method}(self, value):
        self.ref[...] = value[:{rows}]
        return self

def kernel(x_ref, o_ref):
    total = Total(o_ref)
    {statement}
"""
    for method, statement in (
        ("__iadd__", "total += x_ref[...]"),
        ("__add__", "total += x_ref[...]"),
        ("__matmul__", "total @ x_ref[...]"),
        ("__rmul__", "x_ref[...] * total"),
    ):
        assert found(total.format(method=method, statement=statement, rows=8)) == set()
        assert found(total.format(method=method, statement=statement, rows=4)) == {"PAL506"}


_STAGE = """
@contextlib.contextmanager
def stage(first, ref, last):
    first[...] = ref[:{before}]
    {repeated}yield first
    last[...] = ref[:{after}]

def kernel(x_ref, o_ref):
    with {contexts}:
        o_ref[...] = x_ref[:{within}]
"""


@pytest.mark.parametrize("contexts", ["stage(o_ref, x_ref, o_ref)", "other(), stage(o_ref, x_ref, o_ref) as part"])
@pytest.mark.parametrize("wrong", ["before", "within", "after"])
def test_a_generator_runs_around_the_body_of_its_with(contexts: str, wrong: str) -> None:
    rows = {"before": 8, "within": 8, "after": 8}
    code = "import contextlib\nfrom elsewhere import other\n" + _STAGE.replace(
        "pl.store(o_ref.at[...], ", "o_ref[...] = ("
    )
    for repeated in ("", "for _ in (1, 2): "):
        assert found(code.format(contexts=contexts, repeated=repeated, **rows)) == set()
        assert found(code.format(contexts=contexts, repeated=repeated, **{**rows, wrong: 4})) == {"PAL506"}


def test_what_comes_after_the_yield_comes_after_the_body() -> None:
    code = """
import contextlib

@contextlib.contextmanager
def fetched(x_ref, buffer, sem):
    copy = pltpu.make_async_copy(x_ref, buffer, sem)
    {first}
    yield
    {last}

def kernel(x_ref, o_ref, buffer, sem):
    with fetched(x_ref, buffer, sem):
        o_ref[...] = buffer[...]
"""
    scratch = "scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA], out_shape"
    for first, last, codes in (
        ("copy.start(); copy.wait()", "pass", set()),
        ("copy.start()", "copy.wait()", {"PAL422"}),
    ):
        text = _CODE.format(code=code.format(first=first, last=last), index_map="lambda i: (i, 0)")
        text = text.replace("out_shape", scratch)
        assert {each.code for each in lint(text, "0.12.0.1", "tpu:v6e") if each.severity.name != "INFO"} == codes


def test_a_grid_of_unknown_rank_is_no_empty_one() -> None:
    code = """
    def kernel(x_ref, o_ref):
        o_ref[pl.program_id(0)] = x_ref[pl.program_id(0)]

    def copy(x):
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, grid=x.shape, out_shape=out)(x)
    """
    assert "PAL504" not in found(f"{_KERNEL}\n{textwrap.dedent(code)}")


def test_a_generator_that_enters_itself_is_not_followed_for_ever() -> None:
    code = """
import contextlib

@contextlib.contextmanager
def nested(ref, depth):
    with nested(ref, depth - 1):
        yield

def kernel(x_ref, o_ref):
    with nested(o_ref, 3):
        o_ref[...] = x_ref[:4]
"""
    assert found(code) == {"PAL506"}
