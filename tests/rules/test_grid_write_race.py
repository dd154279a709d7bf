"""PAL405: several steps of a GPU grid that write one place."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

PRELUDE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def add(ref, value):
    ref[...] += value


"""


def module(body: str, out_spec: str | None, grid: str = "(4, 8)") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    out = "" if out_spec is None else f"\n        out_specs={out_spec},"
    return f"""{PRELUDE}def kernel(x_ref, o_ref):
{lines}

def f(x, n):
    return pl.pallas_call(
        kernel,
        grid={grid},
        in_specs=[pl.BlockSpec((16, 128), lambda i, j: (i, j))],{out}
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
"""


ROW = "pl.BlockSpec((16, 128), lambda i, j: (i, 0))"
OWN = "pl.BlockSpec((16, 128), lambda i, j: (i, j))"
# (kernel body, the output's spec, whether steps race)
CASES: dict[str, tuple[str, str | None, bool]] = {
    "sum": ("o_ref[...] += x_ref[...]", ROW, True),
    "sum in a helper": ("add(o_ref, x_ref[...])", ROW, True),
    "sum spelled out": ("o_ref[...] = o_ref[...] + x_ref[...]", ROW, True),
    "sum of one, spelled out with pl.load": (
        "plgpu.store(o_ref, plgpu.load(o_ref) + 1)",
        ROW,
        True,
    ),
    "last value wins": ("o_ref[...] = jnp.exp(x_ref[...])", ROW, True),
    "value of an index": ("o_ref[...] = jnp.full((16, 128), pl.program_id(1))", ROW, True),
    "the same value": ("o_ref[...] = jnp.zeros((16, 128), jnp.float32)", ROW, False),
    "value of another axis": ("o_ref[...] = jnp.full((16, 128), pl.program_id(0))", ROW, False),
    "blocks of their own": ("o_ref[...] += x_ref[...]", OWN, False),
    "atomic": ("plgpu.atomic_add(o_ref, ..., x_ref[...])", ROW, False),
    "a lock": (
        "lax.while_loop(lambda _: plgpu.atomic_cas(o_ref, 0, 1) == 1, lambda a: a, 0)\no_ref[...] += x_ref[...]",
        ROW,
        False,
    ),
    "lone writer": ("@pl.when(pl.program_id(1) == 0)\ndef _():\n    o_ref[...] = x_ref[...]", ROW, False),
    "all but one write": ("@pl.when(pl.program_id(1) > 0)\ndef _():\n    o_ref[...] = x_ref[...]", ROW, True),
    "a condition on data": ("@pl.when(x_ref[0, 0] > 0)\ndef _():\n    o_ref[...] = x_ref[...]", ROW, False),
    "no specs": ("o_ref[...] = x_ref[...]", None, True),
    "no specs, parts of their own": (
        "j = pl.program_id(1)\ni = pl.program_id(0)\no_ref[pl.ds((i * 8 + j) * 2, 2), :] = x_ref[0:2, :]",
        None,
        False,
    ),
    "no specs, computed indices": (
        "rows = (pl.program_id(0) * 8 + pl.program_id(1)) * 2 + jnp.arange(2)\n"
        "plgpu.store(o_ref.at[rows, :], x_ref[0:2, :])",
        None,
        False,
    ),
    "no specs, parts by one axis only": (
        "o_ref[pl.ds(pl.program_id(0) * 16, 16), :] = x_ref[...]",
        None,
        True,
    ),
    "an index in a loop": (
        "lax.fori_loop(0, 4, lambda r, c: (add(o_ref.at[r], x_ref[0]), c)[1], 0)",
        OWN,
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_flagged(name: str) -> None:
    body, spec, wrong = CASES[name]
    found = lint(module(body, spec), jax="0.8.3", select="PAL405")
    assert [finding.severity.value for finding in found] == (["error"] if wrong else []), found


def test_sizes() -> None:
    body = "o_ref[...] += x_ref[...]"
    assert [f.severity.value for f in lint(module(body, ROW, "(4, n)"), jax="0.8.3", select="PAL405")] == ["warning"]
    assert not lint(module(body, ROW, "(4, 1)"), jax="0.8.3", select="PAL405")


def test_sequential_axes_of_mosaic_gpu() -> None:
    code = module("o_ref[...] += x_ref[...]", ROW).replace("triton as plgpu", "mosaic_gpu as plgpu")
    params = "plgpu.CompilerParams(dimension_semantics=({}))"
    parallel = code.replace("plgpu.CompilerParams(num_warps=4)", params.format('"parallel", "parallel"'))
    sequential = code.replace("plgpu.CompilerParams(num_warps=4)", params.format('"parallel", "sequential"'))
    assert lint(parallel, jax="0.8.3", select="PAL405")
    assert not lint(sequential, jax="0.8.3", select="PAL405")


def test_only_on_gpus() -> None:
    code = module("o_ref[...] += x_ref[...]", ROW).replace("plgpu.CompilerParams(num_warps=4)", "None")
    code = code.replace("from jax.experimental.pallas import triton as plgpu\n", "")
    assert not lint(code, jax="0.8.3", target="tpu", select="PAL405")
    assert not lint(code, jax="0.8.3", select="PAL405")
    assert lint(code, jax="0.8.3", target="triton", select="PAL405")


ONE_AXIS = """
    i = pl.program_id(0)
    {body}


def f(x):
    return pl.pallas_call(
        kernel,
        grid=({steps},),
        out_shape=jax.ShapeDtypeStruct((64, 16), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
"""


@pytest.mark.parametrize(
    ("body", "severities"),
    [
        ("o_ref[i] = x_ref[i] + o_ref[jnp.maximum(i - 1, 0)]", ["error"]),
        ("o_ref[i, :] = x_ref[i, :] + o_ref[63 - i, :]", ["error"]),
        ("o_ref[i] = x_ref[i] + jnp.where(i > 0, o_ref[jnp.maximum(i - 1, 0)], 0.0)", ["warning"]),
        ("@pl.when(i > 0)\n    def _():\n        o_ref[i] = x_ref[i] + o_ref[i - 1]", ["error"]),
        ("o_ref[i] = x_ref[i] + o_ref[i]", []),
        ("o_ref[i] = x_ref[jnp.maximum(i - 1, 0)]", []),
        # What the upper half stores, no step reads.
        ("@pl.when(i >= 32)\n    def _():\n        o_ref[i] = x_ref[i] + o_ref[i - 32]", []),
        ("o_ref[i] = x_ref[i] + o_ref[x_ref[0, 0].astype(jnp.int32)]", []),
    ],
)
def test_a_load_of_what_another_step_stores(body: str, severities: list[str]) -> None:
    code = f"{PRELUDE}def kernel(x_ref, o_ref):{ONE_AXIS.format(body=body, steps=64)}"
    found = lint(code, jax="0.8.3", target="triton", select="PAL405")
    assert [finding.severity.value for finding in found] == severities, found
    assert not lint(code.replace("grid=(64,)", "grid=(n,)"), jax="0.8.3", target="triton", select="PAL405")


def test_steps_that_write_one_value_to_two_places() -> None:
    # What is stored by step stays the same value: the second output gets it from every step.
    code = f"""{PRELUDE}def kernel(x_ref, o_ref, each_ref):
    value = x_ref[...]
    each_ref[pl.program_id(0), :] = value
    o_ref[...] = value


def f(x):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((64,), lambda i: (0,))],
        out_specs=[pl.BlockSpec((64,), lambda i: (0,)), pl.BlockSpec((4, 64), lambda i: (0, 0))],
        out_shape=[jax.ShapeDtypeStruct((64,), jnp.float32), jax.ShapeDtypeStruct((4, 64), jnp.float32)],
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
"""
    assert not [f for f in lint(code, jax="0.8.3", select="PAL405") if "o_ref" in f.message or "output 0" in f.message]
    by_step = code.replace("    o_ref[...] = value", "    o_ref[...] = value * pl.program_id(0)")
    assert lint(by_step, jax="0.8.3", select="PAL405")
