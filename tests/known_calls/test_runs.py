"""Runs of functions with the arguments of known calls."""

from __future__ import annotations

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.lint import lint_source
from pallas_lint.text.source import Source
from tests.known_calls.projects import NOWHERE, ProjectWithCalls

KERNEL = """
import functools
from typing import NamedTuple
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x + jnp.sum(x.reshape(x.shape[0] * 4, x.shape[1] // 4))

"""
LAUNCH = """
    spec = pl.BlockSpec((bm, n), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(m // bm,), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=pltpu.CompilerParams())(x)
"""
ROWS = KERNEL + "def rows(x, *, bm=64):\n    m, n = x.shape" + LAUNCH


def findings(text: str, *known_calls: KnownCall):
    finder = SettingsFinder(Overrides({"jax-version": "0.10.2"}, isolated=True))
    return lint_source(
        Source("k.py", text), finder.for_folder(NOWHERE), ProjectWithCalls(NOWHERE, given=known_calls)
    ).findings


def called(function: str = "rows", on: str = "trace", source: str = "tests/test_k.py:3", **arguments: str) -> KnownCall:
    return KnownCall(f"k.py::{function}", tuple(arguments.items()), source, on, "file")


def reshapes(text: str, *known_calls: KnownCall):
    return [finding for finding in findings(text, *known_calls) if finding.code == "PAL202"]


def test_arguments_give_shapes_and_are_reported() -> None:
    assert not reshapes(ROWS)
    (finding,) = reshapes(ROWS, called(x="f32[256,200]", bm="64"))
    assert finding.known_call is not None
    assert finding.message.endswith(", with x: f32[256,200], bm=64, as in tests/test_k.py:3")


def test_arrays_of_no_use() -> None:
    assert not reshapes(ROWS, called(x="f32[1000000,1000000,10]"), called(x="?"))


def test_an_interpreted_call_is_no_evidence_of_layouts() -> None:
    assert not reshapes(ROWS, called(x="f32[256,200]", bm="64", on="interpret"))
    flagged = ROWS.replace("*, bm=64", "*, bm=64, interpret=False")
    flagged = flagged.replace("pallas_call(", "pallas_call(interpret=interpret, kernel=")
    assert reshapes(flagged, called(x="f32[256,200]", interpret="False"))
    assert not reshapes(flagged, called(x="f32[256,200]", interpret="True"))


@pytest.mark.parametrize(
    "known_call", [called("columns", x="f32[256,200]"), called(y="f32[256,200]"), called(x="f32[256,200]", gone="1")]
)
def test_what_the_function_does_not_take_is_no_call(known_call: KnownCall) -> None:
    assert not reshapes(ROWS, known_call)


def test_equal_findings_are_one() -> None:
    assert len(reshapes(ROWS, called(x="f32[256,200]", bm="64"), called(x="f32[512,200]", bm="32"))) == 1


@pytest.mark.parametrize(
    ("definition", "function", "arguments"),
    [
        ("class Op:\n    def rows(self, x):\n        m, n, bm = *x.shape, 64", "Op.rows", {"x": "f32[256,200]"}),
        (
            "class Op:\n    @staticmethod\n    def rows(x):\n        m, n, bm = *x.shape, 64",
            "Op.rows",
            {"x": "f32[256,200]"},
        ),
        (
            "class Op:\n    def __init__(self, bm):\n        self.bm = bm\n"
            "    def rows(self, x):\n        (m, n), bm = x.shape, self.bm",
            "Op.rows",
            {"self": "k:Op(bm=64)", "x": "f32[256,200]"},
        ),
        ("@jax.jit\ndef rows(x):\n    m, n, bm = *x.shape, 64", "rows", {"x": "f32[256,200]"}),
        ("def rows(*xs, bm):\n    x = xs[0]\n    m, n = x.shape", "rows", {"*0": "f32[256,200]", "bm": "8"}),
        ("def rows(pair):\n    x, bm = pair\n    m, n = x.shape", "rows", {"pair": "(f32[256,200], 64)"}),
        ("def rows(tree):\n    x, bm = tree['x'], 64\n    m, n = x.shape", "rows", {"tree": "{'x': f32[256,200]}"}),
        (
            "def rows(m, n, dtype):\n    x, bm = jnp.ones((m, n), dtype), 64",
            "rows",
            {"m": "256", "n": "200", "dtype": "dtype:f32"},
        ),
    ],
)
def test_ways_of_calling(definition: str, function: str, arguments: dict[str, str]) -> None:
    body = LAUNCH.replace("\n    ", "\n        ") if definition.startswith("class") else LAUNCH
    (finding,) = reshapes(KERNEL + definition + body, called(function, **arguments))
    assert finding.known_call is not None


def test_a_comment_gives_shapes() -> None:
    text = ROWS.replace("def rows", "# pallas-lint: probe(f32[256,200], bm=32)\ndef rows")
    (finding,) = reshapes(text)
    assert finding.message.endswith("with x: f32[256,200], bm=32, as in line 13")


def test_an_unreadable_comment_gives_no_shapes() -> None:
    assert not reshapes(ROWS.replace("def rows", "# pallas-lint: probe(f32[256,)\ndef rows"))


def test_for_how_many_of_the_known_calls_it_holds() -> None:
    wide = called(x="f32[256,200]", bm="64")
    (finding,) = reshapes(ROWS, wide, called(x="f32[512,200]", bm="32"))
    assert finding.message.endswith("(all 2 known calls)")
    guarded = ROWS.replace(
        "jnp.sum(x.reshape(x.shape[0] * 4, x.shape[1] // 4))",
        "(jnp.sum(x.reshape(-1, 50)) if x.shape[1] == 200 else 0)",
    )
    (finding,) = reshapes(guarded, wide, called(x="f32[512,256]", bm="32"), called(x="f32[512,384]", bm="32"))
    assert finding.message.endswith(", with x: f32[256,200], bm=64, as in tests/test_k.py:3 (1 of 3 known calls)")


def test_a_call_leaves_open_what_it_does_not_pass() -> None:
    text = KERNEL.replace("o_ref[...] = x + jnp.sum(x.reshape(x.shape[0] * 4, x.shape[1] // 4))", "pass") + (
        "def many(x, chunk):\n"
        "    def body(x_ref, o_ref):\n"
        "        def step(i, _):\n"
        "            o_ref[...] += x_ref[pl.ds(i * chunk, chunk), :]\n"
        "        jax.lax.fori_loop(0, pl.cdiv(x.shape[0], chunk), step, None)\n"
        "    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((chunk, 128), jnp.float32))(x)\n"
    )
    whole = called("many", x="f32[40,128]", chunk="16")
    part = called("many", x="?[?,128]", chunk="16")
    assert [each.message for each in findings(text, whole) if each.code == "PAL412" and each.known_call]
    assert not [each for each in findings(text, part) if each.code == "PAL412" and each.known_call]


def test_a_call_that_was_only_tried_hides_no_real_one() -> None:
    tried, real = (called(x="f32[256,200]", bm="64", on=on) for on in ("interpret", "TPU v5e"))
    assert not reshapes(ROWS, tried)
    assert reshapes(ROWS, tried, real)
    assert reshapes(ROWS, real, tried)


def test_a_pipeline_made_on_the_host_is_a_kernel_of_the_call() -> None:
    text = (
        KERNEL
        + """
def rows(x):
    spec = pl.BlockSpec((64, 200), lambda i: (i, 0))
    whole = pl.BlockSpec(memory_space=pltpu.HBM)
    pipelined = pltpu.emit_pipeline(kernel, grid=(4,), in_specs=[spec], out_specs=[spec])
    return pl.pallas_call(pipelined, in_specs=[whole], out_specs=whole,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=pltpu.CompilerParams())(x)

def rows_of_a_model():
    return rows(jnp.ones((256, 200)))
"""
    )
    (finding,) = reshapes(text)  # known without the call
    assert finding.known_call is None
