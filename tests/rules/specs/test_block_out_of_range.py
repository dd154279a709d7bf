"""PAL307: index maps that leave the array, and those that only come near its end."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from pallas_lint.testing import lint
from tests.rules.interpreted import ENVIRONMENT, python


def module(in_map: str, block: str = "(8, 128)", shape: str = "(32, 256)", grid: str = "(4, 2)") -> str:
    return f"""\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl


def half(i):
    return lax.div(i, 2)


def kernel(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)


def f():
    return pl.pallas_call(
        kernel,
        grid={grid},
        in_specs=[pl.BlockSpec({block}, {in_map})],
        out_specs=pl.BlockSpec((8, 128), lambda *g: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(jnp.ones({shape}, jnp.float32))
"""


# (arguments of module, whether a block is outside)
CASES: dict[str, tuple[tuple[str, ...], bool]] = {
    "as many blocks as there are": (("lambda i, j: (i, j)",), False),
    "axes exchanged": (("lambda i, j: (j, i)",), True),
    "one too far": (("lambda i, j: (i + 1, j)",), True),
    "one before": (("lambda i, j: (i - 1, j)",), True),
    "clamped": (("lambda i, j: (jnp.minimum(i + 1, 3), jnp.maximum(j - 1, 0))",), False),
    "clipped": (("lambda i, j: (jnp.clip(i + 1, 0, 3), j)",), False),
    "wrapped": (("lambda i, j: (lax.rem(i + 1, 4), j)",), False),
    "chosen": (("lambda i, j: (jnp.where(i == 3, 0, i + 1), j)",), False),
    "a helper": (("lambda i, j: (half(i) * 2, j)",), False),
    "a helper, too far": (("lambda i, j: (half(i) + 3, j)",), True),
    "reversed": (("lambda i, j: (3 - i, 1 - j)",), False),
    "reversed from the count": (("lambda i, j: (4 - i, j)",), True),
    "the last block is partial": (("lambda i, j: (i, j)", "(8, 128)", "(26, 130)"), False),
    "the last block is empty": (("lambda i, j: (i, j)", "(8, 128)", "(24, 256)"), True),
    "one for the only block": (("lambda i, j: (1, i, j)", "(1, 8, 128)", "(1, 32, 256)"), True),
    "one for a squeezed dimension": (("lambda i, j: (1, i, j)", "(None, 8, 128)", "(1, 32, 256)"), True),
    "the second of two": (("lambda i, j: (1, i, j)", "(None, 8, 128)", "(2, 32, 256)"), False),
    "the whole dimension": (("lambda i, j: (i, 0)", "(8, 256)"), False),
    "every fourth": (("lambda i, j: (i * 4, j)",), True),
    "a partial": (("functools.partial(lambda k, i, j: (i + k, j), 0)",), False),
    "no map": (("None",), False),
}


@pytest.mark.parametrize("name", CASES)
def test_flagged(name: str) -> None:
    arguments, wrong = CASES[name]
    found = lint(module(*arguments), select="PAL307")
    assert [finding.severity.value for finding in found] == (["warning"] if wrong else []), found


@pytest.mark.parametrize(
    ("backend", "columns", "severity"),
    [
        ("tpu", 256, "warning"),
        ("tpu", 1_500_000, "warning"),  # less than 192 MiB
        ("tpu", 1_600_000, "error"),
        ("triton", 1_600_000, "warning"),
    ],
)
def test_only_an_input_in_hbm_is_checked(backend: str, columns: int, severity: str) -> None:
    """As compiled for v6e: operations around the launch keep others in VMEM. As run on an H200: it reads on."""
    code = module("lambda i, j: (i + 1, j)", shape=f"(32, {columns})")
    code = code.replace("import functools", f"import functools\nfrom jax.experimental.pallas import {backend}")
    assert [finding.severity.value for finding in lint(code, select="PAL307")] == [severity]


def test_an_output_is_never_right() -> None:
    code = module("lambda i, j: (0, 0)").replace("lambda *g: (0, 0)", "lambda i, j: (i, 0)")
    assert [finding.severity.value for finding in lint(code, select="PAL307")] == ["error"]


def test_what_is_not_known_is_not_judged() -> None:
    assert not lint(module("lambda i, j: (i + TABLE[j], j)"), select="PAL307")
    assert not lint(module("lambda i, j: (unknown(i), j)"), select="PAL307")
    assert not lint(module("lambda i, j: (i + 9, j)", shape="UNKNOWN"), select="PAL307")
    assert not lint(module("lambda i, j: (i, j)", grid="(N, 2)"), select="PAL307")
    assert lint(module("lambda i, j: (7, j)", grid="(N, 2)"), select="PAL307")
    assert not lint(module("lambda i, j: (i * 4, j)", block="(pl.Element(8, (8, 8)), 128)"), select="PAL307")


@pytest.mark.parametrize(
    ("index_map", "found"),
    [
        ("lambda i, j: (i * 8, j)", ["PAL301"]),
        ("lambda i, j: (i * 8, j + 1)", ["PAL301", "PAL307"]),
        ("lambda i, j: (i * 8 + 1, j)", ["PAL307"]),
        ("lambda i, j: (i * 4, j)", ["PAL307"]),
    ],
)
def test_an_offset_in_elements_is_reported_once(index_map: str, found: list[str]) -> None:
    codes = {finding.code for finding in lint(module(index_map))}
    assert sorted(codes & {"PAL301", "PAL307"}) == found


def test_pipeline() -> None:
    code = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def kernel(x_hbm, o_hbm):
        pltpu.emit_pipeline(
            body,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
            out_specs=[pl.BlockSpec((8, 128), lambda i: (i + 1, 0))],
        )(x_hbm, o_hbm)

    def f(x):
        return pl.pallas_call(
            kernel,
            in_specs=[pl.BlockSpec(memory_space=pltpu.ANY)],
            out_specs=pl.BlockSpec(memory_space=pltpu.ANY),
            out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        )(x)
    """
    assert len(lint(code, select="PAL307")) == 1
    assert not lint(code.replace("i + 1", "i"), select="PAL307")


@pytest.mark.parametrize(
    ("call", "severity"),
    [("{}(x)", "error"), ("jax.make_jaxpr({})(x)", "warning"), ("jax.eval_shape({}, x)", "warning")],
)
def test_what_is_only_traced_cannot_go_wrong(call: str, severity: str) -> None:
    code = f"""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def kernel(x_hbm, o_hbm):
        specs = {{"in_specs": [pl.BlockSpec((8, 128), lambda i: (i, 1))], "out_specs": [pl.BlockSpec((8, 128))]}}
        pltpu.emit_pipeline(body, grid=(4,), **specs)(x_hbm, o_hbm)

    x = jnp.ones((32, 128))
    pipelined = pl.pallas_call(kernel, out_shape=x)
    {call.format("pipelined")}
    copied = pl.pallas_call(
        body, grid=(5,), in_specs=[pl.BlockSpec((8, 128))], out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=x,
    )
    {call.format("copied")}
    """
    assert [each.severity.value for each in lint(code, select="PAL307")] == [severity] * 2


_RUNNER = """
import json, sys
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
try:
    from jax._src.pallas.mosaic.interpret import reset_tpu_interpret_mode_state as reset
except ImportError:
    from jax._src.pallas.mosaic.interpret.interpret_pallas_call import reset_tpu_interpret_mode_state as reset
real = pl.pallas_call
pl.pallas_call = lambda *args, **kw: real(*args, **kw, interpret=pltpu.InterpretParams())
found = []
for code in json.load(sys.stdin):
    scope = {}
    try:
        exec(code, scope)
        jax.block_until_ready(scope["f"]())
        found.append("fine")
    except Exception as error:
        found.append("outside" if "ut-of-bounds" in str(error) else str(error)[:300])
    reset()
print(json.dumps(found))
"""


@pytest.mark.nightly
def test_as_in_the_tpu_interpreter() -> None:
    """Of some cases, at night of all."""
    done = subprocess.run(
        [python(), "-c", _RUNNER],
        input=json.dumps([module(*arguments) for arguments, _ in CASES.values()]),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    got = dict(zip(CASES, json.loads(done.stdout), strict=True))
    assert got == {name: "outside" if wrong else "fine" for name, (_, wrong) in CASES.items()}
