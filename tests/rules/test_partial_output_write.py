"""PAL406 and PAL411: outputs are flagged exactly where interpret mode shows that nothing was written."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import textwrap

import pytest

from pallas_lint.testing import lint
from tests.rules.interpreted import ENVIRONMENT, python

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def clear(ref):
    ref[...] = jnp.zeros_like(ref)


"""


def module(body: str, output: str = "(i, 0)", block: str = "(8, 128)", shape: str = "(32, 128)") -> str:
    return (
        f"{PRELUDE}def kernel(x_ref, o_ref):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n\n\n"
        "def f(x):\n    return pl.pallas_call(\n        kernel,\n        grid=(4,),\n"
        "        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],\n"
        f"        out_specs=pl.BlockSpec({block}, lambda i: {output}),\n"
        f"        out_shape=jax.ShapeDtypeStruct({shape}, jnp.float32),\n        interpret=True,\n    )(x)\n"
    )


WHEN = "@pl.when({})\ndef _():\n    {}"
P = "pl.program_id(0)"
PARTIAL = {
    "one row": module("o_ref[0, :] = x_ref[0, :]"),
    "slice": module("o_ref[0:4, :] = x_ref[0:4, :]"),
    "dynamic slice": module("o_ref[pl.ds(0, 4), :] = x_ref[0:4, :]"),
    "columns": module("o_ref[:, 0:64] = x_ref[:, 0:64]"),
    "view": module("half = o_ref.at[0:4]\nhalf[...] = x_ref[0:4, :]"),
    "two rows": module("o_ref[0, :] = x_ref[0, :]\no_ref[1, :] = x_ref[1, :]"),
    "loop that ends early": module(
        "def body(i, c):\n    o_ref[i, :] = x_ref[i, :]\n    return c\nlax.fori_loop(0, 7, body, 0)"
    ),
    "range that ends early": module("for i in range(7):\n    o_ref[i, :] = x_ref[i, :]"),
    "first step only": module(WHEN.format(f"{P} == 0", "o_ref[...] = x_ref[...]")),
    "odd steps": module(WHEN.format(f"{P} % 2 == 1", "o_ref[...] = x_ref[...]")),
    "all but the last": module(WHEN.format(f"{P} < pl.num_programs(0) - 1", "o_ref[...] = x_ref[...]")),
    "first under cond": module(f"lax.cond({P} == 0, lambda: clear(o_ref), lambda: None)"),
    "array in one row a step": module(
        f"o_ref[{P}, :] = x_ref[0, :]", output="(0, 0)", block="(8, 128)", shape="(8, 128)"
    ),
}
WHOLE = {
    "whole": module("o_ref[...] = x_ref[...]"),
    "halves": module("o_ref[0:4, :] = x_ref[0:4, :]\no_ref[4:8, :] = x_ref[4:8, :]"),
    "quarters": module("for k in range(2):\n    o_ref[4 * k:4 * k + 4, :] = x_ref[0:4, :]"),
    "cleared first": module("clear(o_ref)\no_ref[0, :] = x_ref[0, :]"),
    "loop": module("def body(i, c):\n    o_ref[i, :] = x_ref[i, :]\n    return c\nlax.fori_loop(0, 8, body, 0)"),
    "loop of slices": module(
        "def body(i, c):\n    o_ref[pl.ds(i * 2, 2), :] = x_ref[pl.ds(i * 2, 2), :]\n    return c\n"
        "lax.fori_loop(0, 4, body, 0)"
    ),
    "first and others": module(
        WHEN.format(f"{P} == 0", "o_ref[...] = x_ref[...]") + "\n" + WHEN.format(f"{P} > 0", "clear(o_ref)")
    ),
    "last step of one block": module(
        WHEN.format(f"{P} == pl.num_programs(0) - 1", "o_ref[...] = x_ref[...]"), output="(0, 0)", shape="(8, 128)"
    ),
    "cond with both branches": module(f"lax.cond({P} == 0, lambda: clear(o_ref), lambda: clear(o_ref))"),
    "one row a step": module(
        f"o_ref[pl.ds(2 * {P}, 2), :] = x_ref[0:2, :]", output="(0, 0)", block="(8, 128)", shape="(8, 128)"
    ),
    "row block": module("o_ref[0, :] = x_ref[0, :]", block="(1, 128)", shape="(4, 128)"),
    "whole view": module("o_ref.at[:, :][...] = x_ref[...]"),
}
NEVER = {
    "nothing": module("x_ref[...]"),
    "only a local": module("result = x_ref[...] * 2.0"),
    "only the shape": module("result = jnp.zeros(o_ref.shape) + x_ref[...]"),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_partial(name: str) -> None:
    assert [finding.severity.value for finding in lint(PARTIAL[name], select="PAL406")] == ["error"]


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    assert not lint(WHOLE[name], select="PAL406")
    assert not [finding for finding in lint(WHOLE[name], select="PAL411") if finding.severity.value != "info"]


@pytest.mark.parametrize("name", NEVER)
def test_never(name: str) -> None:
    assert not lint(NEVER[name], select="PAL406")
    assert [finding.severity.value for finding in lint(NEVER[name], select="PAL411")] == ["error"]


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


@pytest.mark.nightly
def test_interpret_mode_shows_nan_where_flagged() -> None:
    """Of some cases, at night of all."""
    modules = {**PARTIAL, **WHOLE, **NEVER}
    done = subprocess.run(
        [python(), "-c", _RUNNER], input=json.dumps(modules), capture_output=True, text=True,
        env={**os.environ, **ENVIRONMENT}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert {name for name, nan in found.items() if nan} == {*PARTIAL, *NEVER} & {*modules}


@pytest.mark.parametrize(
    ("before", "after", "severities"),
    [
        ("interpret=True,", "", ["error"]),
        ("return pl.pallas_call", "out = pl.pallas_call", ["warning"]),  # it is not seen what becomes of it
        ("return pl.pallas_call", "a = 1\n    return 2 * pl.pallas_call", ["warning"]),
        ("grid=(4,)", "grid=(n,)", ["error"]),  # each step leaves the rest out
        ("interpret=True", "input_output_aliases={0: 0}", []),  # the backend may be one where that helps
        ("interpret=True", "input_output_aliases=aliases", []),
    ],
)
def test_variants(before: str, after: str, severities: list[str]) -> None:
    code = PARTIAL["one row"].replace("from jax.experimental.pallas import tpu as pltpu\n", "")
    assert before in code
    found = lint(code.replace(before, after), select="PAL406")
    assert [finding.severity.value for finding in found] == severities


def test_part_of_the_result_is_a_warning() -> None:
    code = PARTIAL["one row"].replace(")(x)", ")(x)[0]")
    assert [finding.severity.value for finding in lint(code, select="PAL406")] == ["warning"]


@pytest.mark.parametrize("block", ["bm // 2", "bm - 8"])
def test_symbolic_part(block: str) -> None:
    code = inspect.cleandoc(f"""
        import jax
        from jax.experimental import pallas as pl

        def run(x, bm):
            def kernel(x_ref, o_ref):
                o_ref[:{block}, :] = x_ref[:{block}, :]

            return pl.pallas_call(
                kernel, grid=(4,), in_specs=[pl.BlockSpec((bm, 128), lambda i: (i, 0))],
                out_specs=pl.BlockSpec((bm, 128), lambda i: (i, 0)),
                out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    """)
    assert [finding.severity.value for finding in lint(code, select="PAL406")] == ["warning"]


ALIASED = PARTIAL["one row"].replace(
    "interpret=True", "input_output_aliases={0: 0}, compiler_params=pltpu.CompilerParams()"
)


def test_an_alias_does_not_fill_a_block_on_tpu() -> None:
    assert [finding.severity.value for finding in lint(ALIASED, select="PAL406")] == ["error"]
    whole = ALIASED.replace("o_ref[0, :] = x_ref[0, :]", "o_ref[...] = x_ref[...]")
    assert not lint(whole, select="PAL406")
    untouched = ALIASED.replace("o_ref[0, :] = x_ref[0, :]", "x_ref[0, :]")
    assert "error" in [finding.severity.value for finding in lint(untouched, select="PAL411")]


def test_an_alias_in_place_does() -> None:
    code = ALIASED.replace("pl.BlockSpec((8, 128), lambda i: (i, 0))", "pl.BlockSpec(memory_space=pl.ANY)")
    assert not lint(code, select="PAL406")
    assert not [f for f in lint(code, select="PAL411") if f.severity.value != "info"]
    triton = ALIASED.replace("import tpu as pltpu", "import triton as pltpu")
    assert not lint(triton, select="PAL406")


def test_an_aliased_block_that_is_read_first() -> None:
    code = ALIASED.replace("o_ref[0, :] = x_ref[0, :]", "o_ref[...] += x_ref[...]")
    assert [finding.severity.value for finding in lint(code, select="PAL401")] == ["warning"]
    copied = ALIASED.replace("o_ref[0, :] = x_ref[0, :]", "o_ref[...] = x_ref[...]\n    o_ref[...] += 1.0")
    assert not lint(copied, select="PAL401")
    assert not lint(code.replace("import tpu as pltpu", "import triton as pltpu"), select="PAL401")
