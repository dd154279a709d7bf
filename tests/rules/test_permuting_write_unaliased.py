"""PAL408: kernels that move rows are reported from those that do not, and the fixed ones compute the same."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap

import pytest

from pallas_lint.testing import fixed, lint
from tests.rules.interpreted import ENVIRONMENT, python

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SHAPE = jax.ShapeDtypeStruct((16, 128), jnp.float32)


def put(target, at, row):
    target[at, :] = row


"""
PREFETCH = (
    "grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,),"
    " in_specs=[pl.BlockSpec((16, 128), lambda i, index: (0, 0))],"
    " out_specs=pl.BlockSpec((16, 128), lambda i, index: (0, 0)))"
)


def module(body: str, keywords: str = "", out: str = "SHAPE", more: str = "", outputs: str = "o_ref") -> str:
    parameters = f"index_ref, x_ref, {'b_ref, ' if more else ''}{outputs}"
    passed = f"{keywords}, interpret=True" if keywords else "interpret=True"
    return (
        f"{PRELUDE}def kernel({parameters}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n\n\n"
        f"def f(index, x{more}):\n    return pl.pallas_call(kernel, out_shape={out}, {passed})(index, x{more})\n"
    )


LOOP = "def body(i, carry):\n    {store}\n    return carry\nlax.fori_loop(0, 16, body, 0)"
MOVING: dict[str, str] = {
    "loop": module(LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]")),
    "grid": module("p = pl.program_id(0)\no_ref[index_ref[p], :] = x_ref[p, :] * 2.0", "grid=(16,)"),
    "slices": module(LOOP.format(store="o_ref[pl.ds(index_ref[i], 1), :] = x_ref[pl.ds(i, 1), :]")),
    "helper": module(LOOP.format(store="put(o_ref, index_ref[i], x_ref[i, :])")),
    "unrolled": module("for i in range(16):\n    row = x_ref[i]\n    at = index_ref[i]\n    o_ref[at] = row"),
    "array of rows": module("o_ref[index_ref[...], :] = x_ref[...]"),
    "prefetched": module(LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]"), PREFETCH),
    "specs": module(
        LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]"),
        "in_specs=[pl.BlockSpec((16,), lambda: (0,)), pl.BlockSpec((16, 128), lambda: (0, 0))],"
        " out_specs=pl.BlockSpec((16, 128), lambda: (0, 0))",
    ),
    "two outputs": module(
        LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]; p_ref[index_ref[i], :] = -x_ref[i, :]"),
        out="(SHAPE, jax.ShapeDtypeStruct((16, 128), jnp.float32))",
        outputs="o_ref, p_ref",
    ),
    "repeated shapes": module(
        LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]; p_ref[index_ref[i], :] = -x_ref[i, :]"),
        out="[jax.ShapeDtypeStruct((16, 128), jnp.float32)] * 2",
        outputs="o_ref, p_ref",
    ),
    "one of two aliased": module(
        LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]; p_ref[index_ref[i], :] = -x_ref[i, :]"),
        "input_output_aliases={2: 0}",
        out="[SHAPE, SHAPE]",
        more=", b",
        outputs="o_ref, p_ref",
    ),
    "named call": module("o_ref[index_ref[...], :] = x_ref[...]")
    .replace("return pl.pallas_call(", "call = pl.pallas_call(")
    .replace("interpret=True)(index, x)", "interpret=True)\n    return call(index, x)"),
}
STAYING: dict[str, str] = {
    "chosen by what is read": module(
        LOOP.format(
            store="kept = lax.cond(index_ref[i + 1] > 3, unknown, lambda: jnp.zeros(128))\n    "
            "o_ref[index_ref[i], :] = jnp.where(index_ref[i + 2] > 3, kept, 0.0)"
        )
    ),
    "same row": module(LOOP.format(store="o_ref[i, :] = x_ref[i, :] * 2.0")),
    "same slice": module(LOOP.format(store="o_ref[pl.ds(i, 1), :] = x_ref[pl.ds(i, 1), :]")),
    "same row by index": module(LOOP.format(store="o_ref[index_ref[i], :] = x_ref[index_ref[i], :]")),
    "gather": module(LOOP.format(store="o_ref[i, :] = x_ref[index_ref[i], :]")),
    "whole": module("o_ref[...] = x_ref[...]"),
    "filled before": module(
        "o_ref[...] = jnp.zeros_like(o_ref)\n" + LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]")
    ),
    "sum": module(LOOP.format(store="o_ref[i, :] = jnp.sum(x_ref[...], axis=0)")),
    "what the places give": module(
        "at = index_ref[...]\no_ref[at[:, None], at[None, :]] = (at[:, None] == at[None, :]).astype(jnp.float32)"
    ),
    "aliased": module(
        LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]"), "input_output_aliases={2: 0}", more=", b"
    ),
    "unknown aliases": module(
        LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]"), "input_output_aliases=ALIASES"
    ),
}


# How chunks of rows are read and written, where the places in a chunk come from a ref.
CHUNKS = {
    "split": ("x_ref[c * 4 + at, :]", "o_ref[c, at, :]"),
    "joined": ("x_ref[c, at, :]", "o_ref[c * 4 + at, :]"),
    "laid out": ("x_ref[c * 4 + at[:, None], at[None, :]]", "o_ref[c, at[:, None], at[None, :]]"),
    "laid out later": ("x_ref[(c * 4 + at)[:, None], at[None, :]]", "o_ref[c, at[:, None], at[None, :]]"),
    "two axes": ("x_ref[(c * 2 + d) * 4 + at, :]", "o_ref[c, d, at, :]"),
    "alike": ("x_ref[c * 4 + at, :]", "o_ref[c * 4 + at, :]"),
    "one by one": ("x_ref[c * 4 + d, :]", "o_ref[c, d, :]"),
}
MOVED_CHUNKS = {
    "of a table": ("x_ref[c * 4 + at, :]", "o_ref[index_ref[c], at, :]"),
    "of a table, alike": ("x_ref[c * 4 + at, :]", "o_ref[index_ref[c] * 4 + at, :]"),
    "places": ("x_ref[pl.ds(c * 4, 4), :]", "o_ref[c * 4 + at, :]"),
    "two tables": ("x_ref[index_ref[c], :]", "o_ref[index_ref[c + 1], :]"),
    "spread": ("x_ref[index_ref[c], :]", "o_ref[index_ref[c] * 2, :]"),
}


def chunked(read: str, write: str) -> str:
    body = f"c, d, at = pl.program_id(0), pl.program_id(1), b_ref[...]\n{write} = {read}"
    return module(body, "grid=(4, 2)", more=", b")


@pytest.mark.parametrize("name", CHUNKS)
def test_places_in_chunks(name: str) -> None:
    assert not lint(chunked(*CHUNKS[name]), select="PAL408")


@pytest.mark.parametrize("name", MOVED_CHUNKS)
def test_chunks_that_move(name: str) -> None:
    assert [f.severity.value for f in lint(chunked(*MOVED_CHUNKS[name]), select="PAL408")] == ["warning"]


def left(code: str) -> set[str]:
    """What the rules about aliases and refs still find."""
    return {finding.code for finding in lint(code, select="PAL4")} & {"PAL407", "PAL408", "PAL409", "PAL411"}


@pytest.mark.parametrize("name", MOVING)
def test_moving_rows(name: str) -> None:
    findings = lint(MOVING[name], select="PAL408")
    assert [finding.severity.value for finding in findings] == ["warning"]
    repaired = fixed(MOVING[name], select="PAL408")
    assert repaired != MOVING[name]
    assert not left(repaired)


@pytest.mark.parametrize("name", STAYING)
def test_rows_that_stay(name: str) -> None:
    assert not lint(STAYING[name], select="PAL408")


def test_reversal_is_advice() -> None:
    code = module(LOOP.format(store="o_ref[15 - i, :] = x_ref[i, :]"))
    assert [finding.severity.value for finding in lint(code, select="PAL408")] == ["info"]


def test_a_row_made_of_several_loads_is_advice() -> None:
    code = module(LOOP.format(store="o_ref[index_ref[i], :] = o_ref[index_ref[i], :] + x_ref[i, :]"))
    assert [finding.severity.value for finding in lint(code, select="PAL408")] == ["info"]


def test_a_row_and_what_a_loop_carries_is_advice() -> None:
    body = """\
        def body(i, state):
            state = lax.cond(index_ref[i] > 0, lambda _: jnp.zeros((128,)), lambda _: state, None)
            state = state * jnp.exp(x_ref[i, :])
            o_ref[index_ref[i], :] = state
            return state
        lax.fori_loop(0, 16, body, jnp.zeros((128,)))
    """
    assert [finding.severity.value for finding in lint(module(body), select="PAL408")] == ["info"]


@pytest.mark.parametrize(("spec", "expected"), [("memory_space=pltpu.SEMAPHORE", []), ("(16, 128)", ["output 1 has"])])
def test_semaphores_want_no_alias(spec: str, expected: list[str]) -> None:
    specs = f"input_output_aliases={{2: 0}}, out_specs=[pl.BlockSpec((16, 128)), pl.BlockSpec({spec})]"
    store = LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]")
    code = module(store, specs, "[SHAPE, pltpu.SemaphoreType.DMA((4,))]", more=", b", outputs="o_ref, s_ref")
    if expected:
        code = code.replace("pltpu.SemaphoreType.DMA((4,))", "SHAPE")
    found = [finding.message for finding in lint(code, select="PAL408")]
    assert len(found) == len(expected) and all(part in text for part, text in zip(expected, found, strict=True))


def test_filled_on_the_first_step_only_still_moves_rows() -> None:
    fill = "@pl.when(pl.program_id(0) == 1)\ndef _():\n    o_ref[...] = jnp.zeros_like(o_ref)\n"
    code = module(fill + LOOP.format(store="o_ref[index_ref[i], :] = x_ref[i, :]"))
    assert [finding.severity.value for finding in lint(code, select="PAL408")] == ["warning"]


def test_two_launches_of_one_kernel_are_not_rewritten() -> None:
    code = MOVING["loop"] + "\n\ndef g(index, x):\n    return pl.pallas_call(kernel, out_shape=SHAPE)(index, x)\n"
    findings = lint(code, select="PAL408")
    assert len(findings) == 2
    assert not any(finding.fixes for finding in findings)


_RUNNER = """
import json, sys
import numpy as np
results = {}
for name, codes in json.load(sys.stdin).items():
    results[name] = []
    for code in codes:
        scope = {}
        try:
            exec(code, scope)
            index = np.arange(16)[::-1].astype(np.int32)
            x = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
            jax = scope["jax"]
            operands = (index, x, x * 0)[: scope["f"].__code__.co_argcount]
            got = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(jax.jit(scope["f"])(*operands))]
            results[name].append([leaf.tobytes().hex() for leaf in got])
        except NotImplementedError as error:
            results[name].append(None)
print(json.dumps(results))
"""


@pytest.mark.nightly
def test_fixed_code_computes_the_same() -> None:
    """Of some cases, at night of all."""
    codes = {name: [code, fixed(code, select="PAL408")] for name, code in MOVING.items()}
    done = subprocess.run(
        [python(), "-c", _RUNNER], input=json.dumps(codes), capture_output=True, text=True,
        env={**os.environ, **ENVIRONMENT}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    for name, (before, after) in json.loads(done.stdout).items():
        assert before is not None, name
        assert before == after, name


# -- Triton kernels ------------------------------------------------------------------------------------------------

TRITON = """\
import jax
import jax.numpy as jnp
import jax_triton as jt
import triton
import triton.language as tl
"""
HEAD = "    row = tl.program_id(0)\n    columns = tl.arange(0, BLOCK)\n"
SCATTER = (
    f"@triton.jit\ndef kernel(x, index, out, stride, BLOCK: tl.constexpr):\n{HEAD}"
    "    target = tl.load(index + row)\n    values = tl.load(x + row * stride + columns)\n"
    "    tl.store(out + target * stride + columns, values)\n"
)
CALL = (
    "def run(x, index):\n    return jt.triton_call(x, index, x.shape[1], kernel=kernel,"
    " out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(x.shape[0],), BLOCK=128)\n"
)
CALL_ARRAYS = CALL.replace("index, x.shape[1], kernel", "index, kernel").replace("BLOCK=128", "BLOCK=128, stride=128")
REVERSE = (
    f"@triton.jit\ndef kernel(x, index, out, n, stride, BLOCK: tl.constexpr):\n{HEAD}"
    "    tl.store(out + (n - 1 - row) * stride + columns, tl.load(x + row * stride + columns))\n"
)
COPY = (
    f"@triton.jit\ndef kernel(x, index, out, n, stride, BLOCK: tl.constexpr):\n{HEAD}"
    "    tl.store(out + row * n + columns, 2 * tl.load(x + row * stride + columns))\n"
)
GATHER = (
    f"@triton.jit\ndef kernel(x, index, out, n, stride, BLOCK: tl.constexpr):\n{HEAD}"
    "    source = tl.load(index + row)\n"
    "    tl.store(out + row * n + columns, 2 * tl.load(x + source * stride + columns))\n"
)


def triton(kernel: str, call: str = CALL_ARRAYS, prelude: str = TRITON) -> str:
    return f"{prelude}\n\n{kernel}\n\n{call}"


@pytest.mark.parametrize(
    ("code", "severities"),
    [
        (triton(SCATTER), ["warning"]),
        (triton(REVERSE), ["warning"]),
        (triton(GATHER), ["warning"]),
        (triton(COPY), []),
        (triton(GATHER, CALL_ARRAYS.replace("x.shape, x.dtype", "(4, 128), x.dtype")), []),
        (triton(SCATTER, CALL_ARRAYS.replace("kernel=kernel", "kernel=kernel, zeroed_outputs=(0,)")), ["info"]),
        (triton(SCATTER, CALL_ARRAYS.replace("kernel=kernel", "kernel=kernel, input_output_aliases={0: 0}")), []),
        (triton(SCATTER, CALL_ARRAYS.replace("kernel=kernel", "kernel=kernel, input_output_aliases=made()")), []),
        (
            triton(SCATTER)
            .replace("import jax_triton as jt", "from jax_triton import triton_call")
            .replace("jt.triton_call", "triton_call"),
            ["warning"],
        ),
        (triton(SCATTER.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit")), ["warning"]),
    ],
)  # fmt: skip
def test_triton(code: str, severities: list[str]) -> None:
    findings = lint(code, select="PAL408")
    assert [finding.severity.value for finding in findings] == severities


def test_autotuning_is_reported() -> None:
    code = triton(SCATTER.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit"))
    assert "autotuner" in lint(code, select="PAL408")[0].help


def test_triton_fix_counts_arrays_only() -> None:
    kernel = SCATTER.replace("x, index, out, stride,", "x, index, stride, out,")
    after = fixed(triton(kernel, CALL), select="PAL408")
    assert "def kernel(x, index, stride, out_buffer, out, BLOCK: tl.constexpr):" in after
    assert "x.shape[1], jnp.zeros(x.shape, x.dtype), kernel=kernel" in after
    assert "input_output_aliases={2: 0}" in after
    assert not left(after)


def test_triton_fix_completes_the_aliases() -> None:
    kernel = (
        f"@triton.jit\ndef kernel(x, index, a, out, other, BLOCK: tl.constexpr):\n{HEAD}"
        "    target = tl.load(index + row)\n    values = tl.load(x + row * BLOCK + columns)\n"
        "    tl.store(out + target * BLOCK + columns, values)\n"
        "    tl.store(other + target * BLOCK + columns, values + tl.load(a + columns))\n"
    )
    call = (
        "def run(x, index, a):\n    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)\n    return jt.triton_call(x, index,"
        " a, kernel=kernel, out_shape=[shape, shape], grid=(4,), BLOCK=128, input_output_aliases={2: 0})\n"
    )
    findings = lint(triton(kernel, call), select="PAL408")
    assert "although others have one" in findings[0].message
    # Rows move to the aliased output only, and the other one is zeroed.
    apart = kernel.replace("other + target", "other + row")
    assert not lint(triton(apart, call.replace("BLOCK=128", "BLOCK=128, zeroed_outputs=(1,)")), select="PAL408")
    after = fixed(triton(kernel, call), select="PAL408")
    assert "input_output_aliases={2: 0, 3: 1}" in after
    assert "def kernel(x, index, a, other_buffer, out, other, BLOCK: tl.constexpr):" in after
    assert not left(after)


PACKED = (
    TRITON
    + """
@triton.jit
def packed(x_ptr, starts_ptr, chunks_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    place, columns = tl.program_id(0), tl.arange(0, BLOCK)
    sequence = tl.load(chunks_ptr + place * 2)
    start = tl.load(starts_ptr + sequence)
    end = tl.load(starts_ptr + sequence + 1)
    row = start + tl.load(chunks_ptr + place * 2 + 1)
    values = tl.load(x_ptr + row * stride + columns)
    tl.store(out_ptr + WRITTEN * stride + columns, tl.where(row < end, values, 0.0))


def run(x, starts, chunks):
    return jt.triton_call(
        x, starts, chunks, kernel=packed, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(chunks.shape[0],), stride=x.shape[1], BLOCK=128,
    )
"""
)
SEGMENTS = PACKED.replace(
    "    tl.store(out_ptr + WRITTEN",
    "    for i in range(4):\n        tl.store(out_ptr + (tl.load(starts_ptr + place) + i)",
).replace("x_ptr + row * stride", "x_ptr + place * stride")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (PACKED.replace("WRITTEN", "row"), 0),
        (PACKED.replace("WRITTEN", "end"), 1),
        (PACKED.replace("WRITTEN", "tl.load(chunks_ptr + row)"), 1),
        (SEGMENTS, 0),
        (SEGMENTS.replace(" + i)", ")"), 1),
    ],
)
def test_packed_sequences(code: str, found: int) -> None:
    """Tables say at which rows a sequence starts and ends; comparisons with its end only choose."""
    assert len(lint(code, select="PAL408")) == found
