"""PAL412: slices that reach past the end of a ref."""

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
from jax.experimental.pallas import tpu as pltpu

ROWS = {rows}
BLOCK = {block}

def kernel(x_ref, o_ref, buffer, sem, *, n=None, block=None):
{body}

def run(x{more}):
    {before}
    return pl.pallas_call(
        {kernel},
        {specs}
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)
"""
_WHOLE = "in_specs=[pl.BlockSpec((ROWS, 128), lambda: (0, 0))],"


def module(
    body: str,
    rows: int = 1000,
    block: int = 128,
    specs: str = _WHOLE,
    before: str = "pass",
    more: str = "",
    kernel: str = "kernel",
) -> str:
    inner = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return _MODULE.format(body=inner, rows=rows, block=block, specs=specs, before=before, more=more, kernel=kernel)


PAST = {
    "constant": ("o_ref[0:16, :] = x_ref[pl.ds(992, 16), :]", "x_ref["),
    "plain slice": ("o_ref[0:16, :] = x_ref[1000:1016, :]", "x_ref["),
    "plain slice without an end": ("o_ref[...] = jnp.sum(x_ref[1004:]) + jnp.zeros_like(o_ref)", "x_ref["),
    "plain slice to store": ("o_ref[128:144] = jnp.zeros((16, 128))", "o_ref["),
    "index": ("o_ref[0, :] = x_ref[1000, :]", "x_ref["),
    "store": ("o_ref[pl.ds(120, 16), :] = jnp.zeros((16, 128))", "o_ref["),
    "view": ("o_ref[0:16, :] = x_ref.at[pl.ds(992, 16), :][...]", "x_ref.at"),
    "later dimension": ("o_ref[0:8, :] = x_ref[0:8, pl.ds(64, 128)]", "x_ref["),
    "after an ellipsis": ("o_ref[0:8, :] = x_ref[..., pl.ds(64, 128)]", "x_ref["),
    "fori_loop": (
        "def body(i, c):\n    return c + x_ref[pl.ds(i * BLOCK, BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, pl.cdiv(ROWS, BLOCK), body, jnp.zeros((128, 128)))",
        "x_ref[",
    ),
    "multiple_of": (
        "def body(i, c):\n    return c + x_ref[pl.ds(pl.multiple_of(i * BLOCK, BLOCK), BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, pl.cdiv(ROWS, BLOCK), body, jnp.zeros((128, 128)))",
        "x_ref[",
    ),
    "dslice, start by name": (
        "def body(i, c):\n    start = BLOCK * i\n    return c + x_ref[pl.dslice(start, BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, (ROWS + BLOCK - 1) // BLOCK, body, jnp.zeros((128, 128)))",
        "x_ref[",
    ),
    "pl.loop": (
        "@pl.loop(0, pl.cdiv(ROWS, BLOCK))\ndef _(i):\n    o_ref[...] += x_ref[pl.ds(i * BLOCK, BLOCK), :]",
        "x_ref[",
    ),
    "range": ("for i in range(pl.cdiv(ROWS, BLOCK)):\n    o_ref[...] += x_ref[pl.ds(i * BLOCK, BLOCK), :]", "x_ref["),
    "long range": ("for i in range(16):\n    o_ref[...] += x_ref[pl.ds(i * 64, 64), :]", "x_ref["),
    "pl.loop in steps": (
        "@pl.loop(0, ROWS, step=BLOCK)\ndef _(start):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]",
        "x_ref[",
    ),
    "pl.loop in steps, from a later start": (
        "@pl.loop(8, 904, step=BLOCK)\ndef _(start):\n    o_ref[...] += x_ref[pl.ds(start + 100, BLOCK), :]",
        "x_ref[",
    ),
    "range in steps": (
        "for start in range(0, ROWS, BLOCK):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]",
        "x_ref[",
    ),
    "after a loop that is left early": (
        "for i in range(9):\n    if i >= 7:\n        break\no_ref[...] = x_ref[pl.ds(992, BLOCK), :]",
        "x_ref[pl.ds(992",
    ),
    "after a check": (
        "for i in range(9):\n    if i > 9:\n        raise ValueError(i)\n"
        "    o_ref[...] += x_ref[pl.ds(i * BLOCK, BLOCK), :]",
        "x_ref[",
    ),
    "copy": (
        "def body(i, _):\n    c = pltpu.make_async_copy(x_ref.at[pl.ds(i * BLOCK, BLOCK)], buffer, sem)\n"
        "    c.start()\n    c.wait()\nlax.fori_loop(0, pl.cdiv(ROWS, BLOCK), body, None)",
        "make_async_copy",
    ),
}


@pytest.mark.parametrize("name", PAST)
def test_past_the_end(name: str) -> None:
    body, where = PAST[name]
    code = module(body)
    found = lint(code, select="PAL412")
    assert {finding.span.start.line for finding in found} == {line_of(code, where)}
    assert {finding.severity.value for finding in found} == {"error"}


SYMBOLIC = {
    "ref's shape": (
        "n = x_ref.shape[0]\ndef body(i, c):\n    return c + x_ref[pl.ds(i * BLOCK, BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, pl.cdiv(n, BLOCK), body, jnp.zeros((128, 128)))",
        {"specs": ""},
    ),
    "operand's shape, by partial": (
        "def body(i, c):\n    return c + x_ref[pl.ds(i * block, block), :]\n"
        "o_ref[...] = lax.fori_loop(0, pl.cdiv(n, block), body, jnp.zeros((128, 128)))",
        {"specs": "", "more": ", b", "kernel": "functools.partial(kernel, n=x.shape[0], block=b)"},
    ),
    "grid": (
        "i = pl.program_id(0)\no_ref[...] = x_ref[pl.ds(i * BLOCK, BLOCK), :]",
        {"specs": "grid=(pl.cdiv(x.shape[0], BLOCK),),"},
    ),
    "rounded up by hand": (
        "n = x_ref.shape[0]\ndef body(i, c):\n    return c + x_ref[pl.ds(i * BLOCK, BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, (n + BLOCK - 1) // BLOCK, body, jnp.zeros((128, 128)))",
        {"specs": ""},
    ),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_rounded_up(name: str) -> None:
    body, rest = SYMBOLIC[name]
    code = module(body, **rest)
    [finding] = lint(code, select="PAL412")
    assert finding.severity.value == "warning"
    assert finding.span.start.line == line_of(code, "x_ref[pl.ds")
    block = ", 128" if "b" in rest.get("more", "") else ""
    for sizes, severity in (("(512, 128)", "info"), ("(rows, 128)", "warning")):
        called = f"{code}\ndef test(rows):\n    run(jnp.ones({sizes}){block})\n"
        assert {finding.severity.value for finding in lint(called, select="PAL412")} == {severity}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_divisibility_is_checked(name: str) -> None:
    body, rest = SYMBOLIC[name]
    checked = "assert x.shape[0] % BLOCK == 0"
    if name in ("ref's shape", "rounded up by hand"):
        body = f"assert x_ref.shape[0] % BLOCK == 0\n{body}"
    assert not lint(module(body, before=checked, **rest), select="PAL412")


FINE = {
    "plain slice that is cut short": "o_ref[0:8, :] = x_ref[992:1008, :]",
    "plain slices from the end": "o_ref[-8:, :] = x_ref[-8:, :]",
    "fits": "o_ref[0:16, :] = x_ref[pl.ds(984, 16), :]",
    "floor": (
        "def body(i, c):\n    return c + x_ref[pl.ds(i * BLOCK, BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, ROWS // BLOCK, body, jnp.zeros((128, 128)))"
    ),
    "pl.loop in steps": (
        "@pl.loop(0, 896, step=BLOCK)\ndef _(start):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]"
    ),
    "pl.loop in steps, from a later start": (
        "@pl.loop(104, ROWS, step=BLOCK)\ndef _(start):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]"
    ),
    "pl.loop in steps that are not known": (
        "@pl.loop(0, ROWS, step=n)\ndef _(start):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]"
    ),
    "pl.loop downwards": (
        "@pl.loop(872, -1, step=-BLOCK)\ndef _(start):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]"
    ),
    "range in steps": ("for start in range(0, 896, BLOCK):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]"),
    "range downwards": ("for start in range(872, -1, -BLOCK):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]"),
    "range in steps that are not known": (
        "for start in range(0, ROWS, n):\n    o_ref[...] += x_ref[pl.ds(start, BLOCK), :]"
    ),
    "a loop that never turns": (
        "def body(i, c):\n    return c + x_ref[pl.ds((i + 8) * BLOCK, BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, 896 // BLOCK - 7, body, jnp.zeros((128, 128)))"
    ),
    "a loop left early": (
        "for i in range(9):\n    if i >= 7:\n        break\n    o_ref[...] += x_ref[pl.ds(i * BLOCK, BLOCK), :]"
    ),
    "turns left out": (
        "for i in range(9):\n    if i * BLOCK + BLOCK > ROWS:\n        continue\n"
        "    o_ref[...] += x_ref[pl.ds(i * BLOCK, BLOCK), :]"
    ),
    "a helper left early": (
        "def add(i):\n    if i >= 7:\n        return\n    o_ref[...] += x_ref[pl.ds(i * BLOCK, BLOCK), :]\n"
        "for i in range(9):\n    add(i)"
    ),
    "clamped": (
        "def body(i, c):\n    return c + x_ref[pl.ds(jnp.minimum(i * BLOCK, ROWS - BLOCK), BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, pl.cdiv(ROWS, BLOCK), body, jnp.zeros((128, 128)))"
    ),
    "under a condition": (
        "def body(i, c):\n    @pl.when(i * BLOCK + BLOCK <= ROWS)\n    def _():\n"
        "        o_ref[...] += x_ref[pl.ds(i * BLOCK, BLOCK), :]\n"
        "lax.fori_loop(0, pl.cdiv(ROWS, BLOCK), body, None)"
    ),
    "python slice": "o_ref[0:8, :] = x_ref[992:1008, :]",
    "another size": (
        "def body(i, c):\n    return c + x_ref[pl.ds(i * BLOCK, BLOCK), :]\n"
        "o_ref[...] = lax.fori_loop(0, pl.cdiv(n, BLOCK), body, jnp.zeros((128, 128)))"
    ),
    "offset by something unknown": "k = pl.program_id(0)\no_ref[...] = x_ref[pl.ds(k * BLOCK + n, BLOCK), :]",
}


@pytest.mark.parametrize("name", FINE)
def test_fine(name: str) -> None:
    assert not lint(module(FINE[name]), select="PAL412")


def test_block_divides() -> None:
    body, _ = PAST["fori_loop"]
    assert not lint(module(body, rows=1024), select="PAL412")


def test_masked_loads() -> None:
    body = (
        "i = pl.program_id(0)\nindex = i * 128 + jnp.arange(128)\n"
        "pl.store(o_ref, (pl.ds(0, 128),), pl.load(x_ref, (pl.ds(i * 128, 128),), mask=index < 1000))"
    )
    code = module(body, specs="grid=(8,), in_specs=[pl.BlockSpec((1000,), lambda i: (0,))],")
    assert not lint(code, jax="0.8.3", select="PAL412")
    assert lines(lint(code.replace(", mask=index < 1000", ""), jax="0.8.3", select="PAL412"), "PAL412")


def test_a_masked_row_in_a_block_of_a_power_of_two() -> None:
    """jax refuses its constant slice from 0.12 on; until then the mask makes it right."""
    body = "pl.store(o_ref, (pl.ds(0, 1024),), pl.load(x_ref, (pl.ds(0, 1024),), mask=jnp.arange(1024) < 1000))"
    code = module(body, specs="in_specs=[pl.BlockSpec((1000,), lambda: (0,))],").replace("(128, 128), j", "(1024,), j")
    for versions in ("0.4.35", "0.11.2", ">=0.8,<0.12"):
        assert not lint(code, jax=versions, select="PAL412")
        assert lines(lint(code.replace(", mask=jnp.arange(1024) < 1000", ""), jax=versions, select="PAL412"), "PAL412")
    [finding] = lint(code, jax="0.12.0.1", select="PAL412")
    assert (finding.severity.value, finding.jax) == ("error", "0.12.0.1")


@pytest.mark.parametrize(
    ("before", "flagged"),
    [
        ("pass", True),
        ("assert y.shape[1] % b == 0", False),  # another spelling of the same size, as far as one can tell
        ("assert y.shape[1] % 128 == 0", True),
        ("rows, *rest = y.shape\n    assert rows % b == 0", False),
        ("n = x.shape[0]\n    assert n == b", False),
        ("n = x.shape[0]\n    assert n > b", True),
    ],
)
def test_what_the_launcher_asserts_of_a_block(before: str, flagged: bool) -> None:
    body, rest = SYMBOLIC["operand's shape, by partial"]
    code = module(body, before=before, specs="", more=", b, y", kernel=str(rest["kernel"]))
    assert bool(lint(code, select="PAL412")) is flagged


_UNCHECKED = """\
import functools
import jax
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref, *, bm):
    def body(i, carry):
        o_ref[pl.ds(i * bm, bm), :] = x_ref[pl.ds(i * bm, bm), :] * 2
        return carry

    jax.lax.fori_loop(0, pl.cdiv(x_ref.shape[0], bm), body, 0)

def double(x, bm):
    return pl.pallas_call(
        functools.partial(kernel, bm=bm), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(x)
"""
_ELSEWHERE = """
def copy{number}(y, bm):
    assert y.shape[1] % bm == 0
    return pl.pallas_call(
        lambda y_ref, o_ref: None, out_shape=jax.ShapeDtypeStruct(y.shape, y.dtype)
    )(y)
"""


@pytest.mark.parametrize("others", [0, 1, 2, 5])
def test_checks_of_another_functions_parameter_do_not_count(others: int) -> None:
    # Both functions have a `bm`; the memory of the one's scope is used again for the other's.
    code = _UNCHECKED + "".join(_ELSEWHERE.format(number=number) for number in range(others))
    assert [finding.span.start.line for finding in lint(code, select="PAL412")] == [7]
    same_names = (
        "def checked(x_ref, o_ref):\n    assert x_ref.shape[0] % 8 == 0\n    o_ref[...] = x_ref[...]\n\n\n"
        "def other(x):\n    return pl.pallas_call(checked, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)\n"
    )
    assert [finding.span.start.line for finding in lint(code + same_names, select="PAL412")] == [7]
    checked = code.replace(
        "    return pl.pallas_call(\n        functools",
        "    assert x.shape[0] % bm == 0\n    return pl.pallas_call(\n        functools",
    )
    assert not lint(checked, select="PAL412")


_PREFETCH = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_hbm, o_ref, buf, sems):
    n = x_hbm.shape[0] // 128

    def fetch(i):
        return pltpu.make_async_copy(x_hbm.at[pl.ds(i * 128, 128)], buf.at[i % 2], sems.at[i % 2])

    fetch(0).start()
    o_ref[...] = jnp.zeros_like(o_ref)

    @pl.loop(0, n)
    def _(i):
        @pl.when({condition})
        def _():
            fetch(i + 1).start()

        fetch(i).wait()
        o_ref[...] += buf[i % 2]

def run():
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((2, 128, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )(jnp.zeros((1024, 128), jnp.float32))
"""


@pytest.mark.parametrize("condition", ["i < n", "i + 1 <= n", "i >= 0", "(i % 2 == 0) | (i == n - 1)", "i != n"])
def test_conditions_that_let_the_last_step_through(condition: str) -> None:
    (finding,) = lint(_PREFETCH.format(condition=condition), "0.12.0.1", "tpu", "PAL412")
    assert "the condition lets a slice through that ends at 1152" in finding.message
    assert (finding.span.start.line, finding.related[0].span.start.line) == (17, 10)


@pytest.mark.parametrize("condition", ["i + 1 < n", "i < n - 1", "i != n - 1", "(i < n) & (i < 7)", "o_ref[0, 0] > i"])
def test_conditions_that_hold_the_last_step_back(condition: str) -> None:
    assert lint(_PREFETCH.format(condition=condition), "0.12.0.1", "tpu", "PAL412") == []


@pytest.mark.parametrize("steps", ["pl.cdiv(n, 128)", "-(-n // 128)", "-(-n // 128) + 0"])
def test_quotients_that_are_rounded_up(steps: str) -> None:
    code = f"""
    import jax
    from jax.experimental import pallas as pl

    def kernel(x_ref, o_ref):
        n = x_ref.shape[0]
        for i in range({steps}):
            o_ref[...] = x_ref[pl.ds(i * 128, 128)]

    def run(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), x.dtype))(x)
    """
    assert [f.severity.name for f in lint(code, "0.12.0.1", select="PAL412")] == ["WARNING"]


@pytest.mark.parametrize(
    ("condition", "found"),
    [("i < n", True), ("i + 1 <= n", True), ("n > i", True), ("i + 1 < n", False), ("i < n - 1", False)],
)
def test_conditions_on_a_number_of_steps_that_has_only_a_name(condition: str, *, found: bool) -> None:
    code = f"""
    import functools
    import jax
    from jax.experimental import pallas as pl

    def kernel(x_ref, o_ref, *, rows):
        n = x_ref.shape[0] // rows
        o_ref[...] = x_ref[pl.ds(0, rows), :]

        @pl.loop(0, n)
        def _(i):
            @pl.when({condition})
            def _():
                o_ref[...] += x_ref[pl.ds((i + 1) * rows, rows), :]

    def total(x, rows):
        out_shape = jax.ShapeDtypeStruct((rows, x.shape[1]), x.dtype)
        return pl.pallas_call(functools.partial(kernel, rows=rows), out_shape=out_shape)(x)
    """
    assert [f.severity.name for f in lint(code, "0.12.0.1", select="PAL412")] == ["WARNING"] * found


_COUNTING = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    n = x_ref.shape[0]

    @pl.loop({first}, n{more})
    def _(i):
        @pl.when({condition})
        def _():
            o_ref[i] = x_ref[i{ahead}]

def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


@pytest.mark.parametrize(
    ("first", "more", "condition", "ahead", "wrong"),
    [
        (0, "", "i >= 0", "", False),
        (1, "", "i >= 1", "", False),
        (1, " + 1", "i >= 0", "", True),
        (0, "", "i + 1 < n + 1", " + 1", True),
        (0, "", "i + 1 < n", " + 1", False),
        (0, "", "n > i", " + 1", True),
        (0, "", "n != i", " + 1", True),
        (0, "", "i <= n - 1", " + 1", True),
        (0, "", "i < n - 1", " + 1", False),
        (0, " - 1", "i != n - 1", " + 1", False),
        (0, " - 1", "i < n", " + 1", False),
        (1, " + 1", "i > 0", " - 1", False),
    ],
)
def test_an_index_that_counts_to_a_named_size(first: int, more: str, condition: str, ahead: str, wrong: bool) -> None:
    code = _COUNTING.format(first=first, more=more, condition=condition, ahead=ahead)
    found = lint(code, "0.12.0.1", "tpu", "PAL412")
    assert bool(found) is wrong and all("is past the end" in finding.message for finding in found)


def on_triton(body: str, steps: str = "4", shape: str = "(1000,)") -> list[str]:
    code = f"""\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

def kernel(x_ref, o_ref):
    step = pl.program_id(0)
{textwrap.indent(body, "    ")}

def run(x):
    return pl.pallas_call(
        kernel,
        grid=({steps},),
        out_shape=jax.ShapeDtypeStruct({shape}, jnp.float32),
        compiler_params=plgpu.CompilerParams(),
    )(x)
"""
    return [finding.message for finding in lint(code, "0.10.2", "triton", "PAL412")]


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("o_ref[step * 256 + jnp.arange(256)] = 0.0", "(1000,)"),
        ("o_ref[jnp.arange(256) + step * 256] = 0.0", "(1000,)"),
        ("rows = step * 256 + lax.iota(jnp.int32, 256)\nplgpu.store(o_ref.at[rows], rows * 1.0)", "(1000,)"),
        ("o_ref[(step * 256 + jnp.arange(256))[:, None], jnp.arange(16)[None, :]] = 0.0", "(1000, 16)"),
        ("o_ref[step * 256 + jnp.arange(256)[:, None], jnp.arange(16)[None, :]] = 0.0", "(1000, 16)"),
        ("o_ref[step * 256 + jnp.expand_dims(jnp.arange(256), 1), jnp.arange(16)[None]] = 0.0", "(1000, 16)"),
        ("o_ref[lax.broadcasted_iota(jnp.int32, (256, 1), 0) + step * 256, jnp.arange(16)[None]] = 0.0", "(1000, 16)"),
    ],
)
def test_ranges_of_indices(body: str, shape: str) -> None:
    assert on_triton(body, shape=shape) == [
        "the last range of indices ends at 1024, but dimension 0 of `o_ref` has size 1000"
    ]
    assert on_triton(body, shape=shape.replace("1000", "1024")) == on_triton(body, "3", shape) == []


@pytest.mark.parametrize(
    "body",
    [
        "rows = step * 256 + jnp.arange(256)\nplgpu.store(o_ref.at[rows], rows * 1.0, mask=rows < 1000)",
        "o_ref[jnp.minimum(step * 256 + jnp.arange(256), 999)] = 0.0",
        "o_ref[(step * 256 + jnp.arange(256)) % 1000] = 0.0",
        "o_ref[step + 4 * jnp.arange(256)] = 0.0",
        "o_ref[step * 256 + jnp.arange(0, 256, 2)] = 0.0",
        "o_ref[step * 256 + jnp.arange(256) + jnp.arange(256)] = 0.0",
        "@pl.when(step < 3)\ndef _():\n    o_ref[step * 256 + jnp.arange(256)] = 0.0",
    ],
)
def test_ranges_that_end_in_time_or_are_not_known(body: str) -> None:
    assert on_triton(body) == []


def test_a_range_of_indices_under_a_condition() -> None:
    (message,) = on_triton("@pl.when(step < 4)\ndef _():\n    o_ref[step * 256 + jnp.arange(256)] = 0.0")
    assert message.startswith("the condition lets a range of indices through that ends at 1024")


_OFFSETS = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(other_ref, starts_ref, x_ref, o_ref):
    i = pl.program_id(0)
    count = starts_ref[i + 1] - starts_ref[i]
    o_ref[...] = x_ref[...] * count

def run(other, starts, x):
    block = pl.BlockSpec((8, 128), lambda i, other, starts: (i, 0))
    grid_spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=2, grid=({steps},), in_specs=[block], out_specs=block)
    return pl.pallas_call(kernel, grid_spec=grid_spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))({given})
"""


@pytest.mark.parametrize(
    ("steps", "given", "wrong"),
    [
        ("starts.shape[0]", "other, starts, x", True),
        ("starts.shape[0] - 1", "other, starts, x", False),
        ("other.shape[0]", "other, starts, x", False),
        ("starts.shape[0]", "*other, starts, x", False),
    ],
)
def test_an_array_of_offsets_has_one_more_than_there_are_groups(steps: str, given: str, wrong: bool) -> None:
    found = lint(_OFFSETS.format(steps=steps, given=given), "0.12.0.1", "tpu", "PAL412")
    assert bool(found) is wrong


@pytest.mark.parametrize("specs", ["", "in_specs=[pl.no_block_spec], out_specs=pl.no_block_spec,"])
def test_a_range_in_arrays_without_blocks(specs: str) -> None:
    code = f"""
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    here = pl.program_id(0) * 256 + jnp.arange(256)
    o_ref[here] = x_ref[here] * 2

def run():
    return pl.pallas_call(
        kernel, grid=(4,), {specs} out_shape=jax.ShapeDtypeStruct((1000,), jnp.float32)
    )(jnp.ones((1000,)))
"""
    assert len(lint(code, target="triton", select="PAL412")) == 2


@pytest.mark.parametrize(
    ("condition", "wrong"),
    [
        ("True", True),
        ("scales.shape == (x.shape[1] // 128, 256)", True),
        ("x.shape[1] == 128", False),
        ("x.shape[1] // 128 <= limit()", False),
        ("scales.shape == (x.shape[1] // 128, 256) and scales.shape[0] == 1", False),
    ],
)
def test_an_index_past_a_dimension_of_one(condition: str, wrong: bool) -> None:
    code = f"""
import jax
from jax.experimental import pallas as pl

def kernel(x_ref, scales_ref, o_ref):
    o_ref[...] = x_ref[...] * scales_ref[pl.program_id(0)]

def run(x, scales):
    assert {condition}
    return pl.pallas_call(
        kernel, grid=(x.shape[1] // 128,),
        in_specs=[pl.BlockSpec((64, 128), lambda i: (0, i)), pl.BlockSpec((1, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((64, 128), lambda i: (0, i)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x, scales)
"""
    assert bool(lint(code, "0.12.0.1", "tpu", "PAL412")) is wrong
