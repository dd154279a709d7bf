"""PAL401: a buffer is flagged exactly where interpret mode shows that unwritten memory got into the result."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import textwrap

import pytest

from pallas_lint.testing import fixed, lines, lint
from tests.rules.interpreted import ENVIRONMENT, python
from tests.rules.kernels import line_of

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def add(ref, value):
    ref[...] += value


def clear(ref):
    ref[...] = jnp.zeros_like(ref)


"""
LAUNCH = """

def f(x):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        interpret=True,
    )(x)
"""
FIRST = "pl.program_id(0) == 0"
# The body of kernel(x_ref, o_ref, s_ref), and the text of the flagged line (None: fine).
CASES: dict[str, tuple[str, str | None]] = {
    "sum without a start": ("o_ref[...] += x_ref[...]", "+="),
    "sum spelled out": ("o_ref[...] = o_ref[...] + x_ref[...]", "o_ref[...] ="),
    "maximum": ("o_ref[...] = jnp.maximum(o_ref[...], x_ref[...])", "maximum"),
    "sum in a helper": ("add(o_ref, x_ref[...])", "ref[...] += value"),
    "sum in a loop": ("lax.fori_loop(0, 2, lambda i, c: (add(o_ref, x_ref[...]), c)[1], 0)", "ref[...] += value"),
    "sum through a view": ("view = o_ref.at[0:8]\nview[...] += x_ref[...]", "view[...] +="),
    "sum after the first step only": ("@pl.when(pl.program_id(0) > 0)\ndef _():\n    o_ref[...] += x_ref[...]", "+="),
    "scratch": ("s_ref[...] += x_ref[...]\no_ref[...] = s_ref[...]", "s_ref[...] +="),
    "scratch of a scope": (
        "def body(acc):\n    acc[...] += x_ref[...]\n    o_ref[...] = acc[...]\n"
        "pl.run_scoped(body, pltpu.VMEM((8, 128), jnp.float32))",
        "acc[...] +=",
    ),
    "read, then replaced": (
        "before = s_ref[...]\ns_ref[...] = x_ref[...]\no_ref[...] = before + s_ref[...]",
        "before =",
    ),
    "start under when": (f"@pl.when({FIRST})\ndef _():\n    clear(o_ref)\no_ref[...] += x_ref[...]", None),
    "start under cond": (f"lax.cond({FIRST}, lambda: clear(o_ref), lambda: None)\nadd(o_ref, x_ref[...])", None),
    "start in a called when": (f"pl.when({FIRST})(lambda: clear(o_ref))\nadd(o_ref, x_ref[...])", None),
    "start at every step": ("o_ref[...] = jnp.zeros_like(o_ref[...])\no_ref[...] += x_ref[...]", None),
    "start through a view": ("o_ref.at[...].set(x_ref[...])\no_ref[...] += x_ref[...]", None),
    "start in a loop over refs": ("for ref in (o_ref, s_ref):\n    clear(ref)\no_ref[...] += x_ref[...]", None),
    "start by a copy": (
        f"@pl.when({FIRST})\ndef _():\n    pltpu.sync_copy(x_ref, s_ref)\no_ref[...] = s_ref[...]",
        None,
    ),
    "chosen with where": (f"o_ref[...] = jnp.where({FIRST}, x_ref[...], o_ref[...] + x_ref[...])", None),
    "chosen with select": (
        f"before = o_ref[...]\no_ref[...] = lax.select({FIRST}, x_ref[...], before + x_ref[...])",
        None,
    ),
    "chosen with cond": (
        f"o_ref[...] = x_ref[...] + lax.cond({FIRST}, lambda: jnp.zeros((8, 128)), lambda: o_ref[...])",
        None,
    ),
    "two cases, the later one first": (
        "@pl.when(pl.program_id(0) > 0)\ndef _():\n    o_ref[...] = o_ref[...] + x_ref[...]\n"
        f"@pl.when({FIRST})\ndef _():\n    o_ref[...] = x_ref[...]",
        None,
    ),
    "the first step decides without it": (
        f"better = ({FIRST}) | (jnp.min(x_ref[...]) < s_ref[0, 0])\n"
        "@pl.when(better)\ndef _():\n    s_ref[...] = x_ref[...]\no_ref[...] = s_ref[...]",
        None,
    ),
    "only the shape is read": ("o_ref[...] = x_ref[...] + jnp.ones(o_ref[...].shape)", None),
}
NO_COPIES = frozenset({"start by a copy"})  # `interpret=True` of old releases has no DMA
ONCE = frozenset({"read, then replaced"})  # garbage in the first step, which the last one overwrites here


def module(name: str) -> str:
    body, _ = CASES[name]
    return f"{PRELUDE}def kernel(x_ref, o_ref, s_ref):\n{textwrap.indent(body, '    ')}\n{LAUNCH}"


@pytest.mark.parametrize("name", CASES)
def test_flagged(name: str) -> None:
    code = module(name)
    _, where = CASES[name]
    kernel = code.index("def add(") if where == "ref[...] += value" else code.index("def kernel(")
    expected = {code[:kernel].count("\n") + line_of(code[kernel:], where)} if where else set()
    findings = lint(code, select="PAL401")
    assert lines(findings, "PAL401") == expected
    assert {finding.severity.value for finding in findings} <= {"warning" if name in ONCE else "error"}


_RUNNER = """
import json, sys
import numpy as np
found = {}
for name, code in json.load(sys.stdin).items():
    scope = {}
    exec(code, scope)
    found[name] = bool(np.isnan(np.asarray(scope["f"](np.ones((32, 128), np.float32)))).any())
print(json.dumps(found))
"""


def poisoned(modules: dict[str, str]) -> dict[str, bool]:
    done = subprocess.run(
        [python(), "-c", _RUNNER], input=json.dumps(modules), capture_output=True, text=True,
        env={**os.environ, **ENVIRONMENT}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, bool] = json.loads(done.stdout)
    return found


@pytest.mark.nightly
def test_interpret_mode_shows_nan_where_flagged() -> None:
    found = poisoned({name: module(name) for name in CASES if name not in NO_COPIES | ONCE})
    assert {name for name, nan in found.items() if nan} == {
        name for name, (_, where) in CASES.items() if where and name not in ONCE
    }


@pytest.mark.nightly
def test_the_fix_removes_the_nan() -> None:
    sums = ("sum without a start", "sum spelled out", "scratch", "sum through a view")
    repaired = {name: fixed(module(name), select="PAL401") for name in sums}
    assert not any(poisoned(repaired).values())


def launched(kernel: str, **arguments: str) -> str:
    values = {
        "grid": "(4,)",
        "in_specs": "[pl.BlockSpec((8, 128), lambda i: (i, 0))]",
        "out_specs": "pl.BlockSpec((8, 128), lambda i: (0, 0))",
        "out_shape": "jax.ShapeDtypeStruct((8, 128), jnp.float32)",
        **arguments,
    }
    spelled = ", ".join(f"{name}={value}" for name, value in values.items() if value)
    return f"{PRELUDE}{kernel}\n\n\ndef f(x, start):\n    return pl.pallas_call(kernel, {spelled})(x)\n"


SUM = "def kernel(x_ref, o_ref):\n    o_ref[...] += x_ref[...]"


@pytest.mark.parametrize(
    ("aliases", "flagged"), [("{1: 0}", False), ("{0: 1}", True), ("start", False), ("{start: 0}", False), ("{}", True)]
)
def test_aliases(aliases: str, flagged: bool) -> None:
    assert bool(lint(launched(SUM, input_output_aliases=aliases), select="PAL401")) is flagged


def test_unknown_keywords_may_alias() -> None:
    code = (
        launched(SUM)
        .replace("def f(x, start):", "def f(x, **options):")
        .replace("kernel, grid", "kernel, **options, grid")
    )
    assert not lint(code, select="PAL401")


@pytest.mark.parametrize(
    ("before", "flagged"),
    [
        ("unknown.prepare(o_ref)", False),
        ("unknown.prepare(x_ref)", False),  # it is not known what else it writes
        ("unknown_refs[0][...] = 0.0", False),
        ("jnp.sum(x_ref[...])", True),
        ("del x_ref", True),
    ],
)
def test_code_that_is_not_seen(before: str, flagged: bool) -> None:
    kernel = f"def kernel(x_ref, o_ref):\n    {before}\n    o_ref[...] += 1.0"
    assert bool(lint(launched(kernel), select="PAL401")) is flagged


def test_undecided_initialisation_counts() -> None:
    kernel = "def kernel(x_ref, o_ref, *, start):\n    if start:\n        clear(o_ref)\n    o_ref[...] += x_ref[...]"
    code = launched(kernel).replace("kernel, grid", "functools.partial(kernel, start=start), grid")
    assert not lint(code, select="PAL401")


def test_pipeline_body_and_outer_scratch() -> None:
    code = PRELUDE + inspect.cleandoc("""
        def kernel(x_ref, o_ref, acc_ref):
            def body(x_ref, out_ref):
                acc_ref[...] += x_ref[...]
                out_ref[...] += x_ref[...]
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            clear(acc_ref)
            pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)

        def f(x):
            return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                                  scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])(x)
    """)
    assert lines(lint(code, select="PAL401"), "PAL401") == {line_of(code, "out_ref[...] +=")}


def test_fix_by_grid() -> None:
    plain = fixed(launched(SUM, grid="", in_specs="", out_specs=""), select="PAL401")
    assert "    o_ref[...] = jnp.zeros_like(o_ref)\n    o_ref[...] += x_ref[...]" in plain
    assert "pl.when" not in plain
    two = fixed(
        launched(SUM, grid="(2, 2, 2)", in_specs="", out_specs="pl.BlockSpec((8, 128), lambda i, j, k: (j, 0))"),
        select="PAL401",
    )
    assert "@pl.when((pl.program_id(0) == 0) & (pl.program_id(2) == 0))" in two
    largest = launched("def kernel(x_ref, o_ref):\n    o_ref[...] = jnp.maximum(o_ref[...], x_ref[...])")
    assert fixed(largest, select="PAL401").strip() == largest.strip()
