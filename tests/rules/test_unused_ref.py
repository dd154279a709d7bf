"""PAL411: refs that nothing touches, and all the ways in which a ref is touched or meant to be left alone."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import lint

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def ignore(ref):
    pass


def use(ref):
    return ref[...]


"""


def module(body: str, parameters: str = "x_ref, y_ref, o_ref", keywords: str = "", before: str = "") -> str:
    return (
        f"{PRELUDE}{before}def kernel({parameters}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n\n\n"
        f"def run(x, y):\n    return pl.pallas_call(kernel, out_shape=OUT{keywords})(x, y)\n"
    )


STORE = "o_ref[...] = x_ref[...]"


@pytest.mark.parametrize(
    ("code", "severities"),
    [
        (module(STORE), ["info"]),
        (module(f"width = y_ref.shape[-1]\n{STORE}"), ["info"]),
        (module(f"del y_ref\n{STORE}"), []),
        (module(STORE, "x_ref, _y_ref, o_ref"), []),
        (module(STORE, "x_ref, _, o_ref"), []),
        (module(f"ignore(y_ref)\n{STORE}"), []),
        (module(f"use(y_ref)\n{STORE}"), []),
        (module(f"unknown(y_ref)\n{STORE}"), []),
        (module(f"if y_ref is not None:\n    pass\n{STORE}"), []),
        (module(f"refs = (x_ref, y_ref)\nunknown(refs)\n{STORE}"), []),
        (module(f"if FLAG:\n    y_ref[...]\n{STORE}"), []),
        (module(f"if flag:\n    y_ref[...]\n{STORE}", "x_ref, y_ref, o_ref, flag=False"), []),
        (module("x_ref, y_ref, o_ref = refs\no_ref[...] = x_ref[...]", "*refs"), ["info"]),
        (module("x_ref, _, o_ref = refs\no_ref[...] = x_ref[...]", "*refs"), []),
        (module("x_ref, y_ref, o_ref = refs\nx_ref[...] + y_ref[...]", "*refs"), ["error"]),
        (module("run_all(*refs)", "*refs"), []),
        (module(STORE, keywords=", input_output_aliases={1: 0}"), []),
        (module(STORE, keywords=", input_output_aliases=aliases"), []),
        (module("x_ref[...] + y_ref[...]"), ["error"]),
        (module("del o_ref\nx_ref[...] + y_ref[...]"), []),
        (module("x_ref[...] + y_ref[...]", "x_ref, y_ref, _o_ref"), []),
        (module("pl.debug_print('x')\nx_ref[...] + y_ref[...]"), ["info"]),
        (module("def never():\n    o_ref[...] = 0.0\nx_ref[...] + y_ref[...]"), ["warning"]),
        (module("pltpu.sync_copy(x_ref, o_ref)\ny_ref[...]"), []),
        (module("o_ref.at[0:8].set(x_ref[...] + y_ref[...])"), []),
        (module(STORE + "\ny_ref[...]", "x_ref, y_ref, o_ref, s_ref",
                ", scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)]"), ["info"]),
        (module(STORE + "\ny_ref[...]", "x_ref, y_ref, o_ref, sem",
                ", scratch_shapes=[pltpu.SemaphoreType.DMA]"), []),
    ],
)  # fmt: skip
def test_verdicts(code: str, severities: list[str]) -> None:
    assert [finding.severity.value for finding in lint(code, select="PAL411")] == severities


def test_another_launch_uses_it() -> None:
    kernel = "x_ref[...]\nif second:\n    o_ref[...] = y_ref[...]\nelse:\n    o_ref[...] = x_ref[...]"
    code = module(kernel, "x_ref, y_ref, o_ref, *, second").replace(
        "(kernel,", "(functools.partial(kernel, second=True),"
    )
    code += (
        "\n\ndef g(x, y):\n    return pl.pallas_call(functools.partial(kernel, second=False), out_shape=OUT)(x, y)\n"
    )
    assert not lint(code, select="PAL411")


def test_an_output_that_the_caller_drops_is_advice() -> None:
    code = module("p_ref[...] = x_ref[...] + y_ref[...]", "x_ref, y_ref, o_ref, p_ref").replace("=OUT", "=[OUT, OUT]")
    assert [finding.severity.value for finding in lint(code, select="PAL411")] == ["error"]
    dropped = code.replace("return pl.pallas_call", "_, out = pl.pallas_call") + "    return out\n"
    assert [finding.severity.value for finding in lint(dropped, select="PAL411")] == ["info"]


FLAG = """\
def kernel(x_ref, o_ref, stats_ref, *, with_stats):
    o_ref[...] = x_ref[...] * 2
    if with_stats:
        stats_ref[...] = x_ref[...]


def run(x, with_stats):
    return pl.pallas_call(functools.partial(kernel, with_stats=with_stats), out_shape=[OUT, OUT])(x)


def main(x):
    out, _ = run(x, False)
    return out
"""


def test_a_flag_that_leaves_an_output_out() -> None:
    assert not lint(PRELUDE + FLAG, select="PAL411")
    assert not lint(PRELUDE + FLAG + "\n\ndef full(x):\n    return run(x, True)\n", select="PAL411")
    always_off = FLAG.replace("def run(x, with_stats):", "def run(x, with_stats=False):").replace(
        "=with_stats)", "=False)"
    )
    assert [finding.severity.value for finding in lint(PRELUDE + always_off, select="PAL411")] == ["warning"]


@pytest.mark.parametrize(
    "body",
    [
        "    # load x, double it\n    pass",
        '    """Double x."""',
        "    ...",
        '    """Double x."""\n    # your code here\n    raise NotImplementedError("exercise")',
    ],
)
def test_exercises_are_still_to_be_written(body: str) -> None:
    code = "def kernel(x_ref, o_ref):\n{}\n\ndef run(x):\n    return pl.pallas_call(kernel, out_shape=OUT)(x)\n"
    assert not lint(PRELUDE + code.format(body), select="PAL411")
    assert lint(PRELUDE + code.format(body + "\n    x = x_ref[...]"), select="PAL411")


# Functions that are given to what runs them: `{}` is what they do.
BODIES = {
    "the first core": "@pltpu.run_on_first_core('core')\ndef _():\n    {}",
    "the first core, called": "def body():\n    {}\npltpu.run_on_first_core('core')(body)",
    "the first core, named": "first = pltpu.run_on_first_core('core')\n@first\ndef _():\n    {}",
    "within": "@pltpu.run_on_first_core('core')\ndef _():\n    @pl.when(x_ref[0, 0] > 0)\n    def _():\n        {}",
    "a scope": "@pl.with_scoped(pltpu.VMEM((8, 128), jnp.float32))\ndef body(buffer):\n    {}\nbody()",
    "a decorator": "@on_core(0)\ndef _():\n    {}",
    "an object": "@OnCore()\ndef _():\n    {}",
    "an object that is run": "pl.when(x_ref[0, 0] > 0)(Body(lambda: [{}]))",
    "a platform": "jax.lax.platform_dependent(default=lambda: [{}])",
    "a partial": "def body(value):\n    {}\npl.when(x_ref[0, 0] > 0)(functools.partial(body, 1))",
}
RUNNING = """\
def on_core(which):
    def run(body):
        @pl.when(jax.lax.axis_index("core") == which)
        def _():
            body()

    return run


class OnCore:
    def __call__(self, body):
        pl.when(jax.lax.axis_index("core") == 0)(body)


class Body:
    def __init__(self, body):
        self.body = body

    def __call__(self):
        self.body()


"""


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_are_run(name: str) -> None:
    store, read = "pltpu.sync_copy(x_ref, o_ref)", "pltpu.sync_copy(x_ref, x_ref)"
    codes = [module(BODIES[name].format(does), "x_ref, y_ref, o_ref", before=RUNNING) for does in (store, read)]
    reported = [[f for f in lint(code, select="PAL411") if "never written" in f.message] for code in codes]
    assert (len(reported[0]), len(reported[1])) == (0, 1)


def test_a_body_that_a_scope_holds_runs_when_it_is_called() -> None:
    code = module(BODIES["a scope"].format("pltpu.sync_copy(x_ref, o_ref)"), "x_ref, y_ref, o_ref")
    assert [f for f in lint(code.replace("\n    body()\n", "\n"), select="PAL411") if "never written" in f.message]
