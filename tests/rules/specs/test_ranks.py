"""PAL310 and PAL311: ranks of blocks and the number of dimension semantics, against jax's own errors."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lint

_BLOCKS = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from elsewhere import made

def kernel(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)

def run(x, flag):
    return pl.pallas_call(
        kernel,
        {grid}
        in_specs=[{spec}],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x)

def use(flag):
    return {use}
"""
_CALL = "run(jnp.ones({shape}), flag)"


def blocks(spec: str, shape: str = "(4, 16, 128)", grid: str = "grid=(2,),", use: str = _CALL) -> list[Severity]:
    code = _BLOCKS.format(spec=spec, grid=grid, use=use.format(shape=shape))
    return [finding.severity for finding in lint(code, "0.10.2", select="PAL310")]


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(4, 16, 128)"),
        ("pl.BlockSpec((1, 8, 128), lambda i: (0, i, 0))", "(16, 128)"),
        ("pl.BlockSpec((None, 8, 128), lambda i: (0, i, 0))", "(16, 128)"),
        ("pl.BlockSpec((pl.Squeezed(), 128), lambda i: (i, 0))", "(4, 16, 128)"),
        ("pl.BlockSpec((pl.Element(8), 128), lambda i: (i, 0))", "(4, 16, 128)"),
        ("pl.BlockSpec((128,), lambda i: (i,))", "(16, 128)"),
        ("pl.BlockSpec((), lambda i: ())", "(16, 128)"),
        ("pl.BlockSpec((8, 128))", "(4, 16, 128)"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pl.ANY)", "(4, 16, 128)"),
    ],
)
def test_other_rank(spec: str, shape: str) -> None:
    assert blocks(spec, shape) == [Severity.ERROR]
    assert blocks("pl.BlockSpec((8, 128))", grid="") == [Severity.ERROR]


@pytest.mark.parametrize(
    ("spec", "shape", "use"),
    [
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(16, 128)", _CALL),
        ("pl.BlockSpec((None, 8, 128), lambda i: (0, i, 0))", "(4, 16, 128)", _CALL),
        ("pl.BlockSpec(memory_space=pl.ANY)", "(4, 16, 128)", _CALL),
        ("pl.BlockSpec(made(flag), lambda i: (i, 0))", "(4, 16, 128)", _CALL),
        ("pl.BlockSpec((*made(flag), 128), lambda i: (i, 0))", "(4, 16, 128)", _CALL),
        ("made(flag)", "(4, 16, 128)", _CALL),
        # the mapped function sees one dimension less
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(4, 16, 128)",
         "jax.vmap(lambda y: run(y, flag))(jnp.ones({shape}))"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(4, 16, 128)",
         "jax.vmap(functools.partial(run, flag=flag))(jnp.ones({shape}))"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(4, 16, 128)",
         "jax.lax.map(lambda y: run(y, flag), jnp.ones({shape}))"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(4, 16, 128)",
         "jax.lax.scan(lambda c, y: (c, run(y, flag)), 0, jnp.ones({shape}))"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(4, 16, 128)", "run(jnp.ones({shape})[0], flag)"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(64, 128)", "run(jnp.ones({shape}).reshape(-1, *made(1)), flag)"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(64, 128)", "run(flag.reshape(-1, *flag.shape[-1:]), flag)"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(64, 128)", "run(jnp.ones((4, *made(1))), flag)"),
        ("pl.BlockSpec((8, 128), lambda i: (i, 0))", "(4, 16, 128)", "[run(y, flag) for y in jnp.ones({shape})]"),
    ],
)  # fmt: skip
def test_same_or_unknown_rank(spec: str, shape: str, use: str) -> None:
    assert blocks(spec, shape, use=use) == []


def test_one_of_several_specs() -> None:
    either = "pl.BlockSpec((8, 128)) if flag else pl.BlockSpec((None, 8, 128))"
    assert Severity.ERROR not in blocks(either)


_SEMANTICS = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from elsewhere import made

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def run(x, grid):
    return pl.pallas_call(
        kernel,
        grid={grid},
        in_specs=[pl.BlockSpec((8, 128), lambda *i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda *i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),{more}
        compiler_params=pltpu.CompilerParams(dimension_semantics={semantics}),
    )(x)
"""


def semantics(words: str, grid: str = "(2, 2)", jax: str = "0.10.2", more: str = "") -> list[str]:
    code = _SEMANTICS.format(semantics=words, grid=grid, more=more)
    found = lint(code, jax, select="PAL311")
    assert all(finding.severity is Severity.ERROR for finding in found)
    return [finding.message for finding in found]


@pytest.mark.parametrize(
    ("words", "grid"),
    [
        ('("parallel",)', "(2, 2)"), ('("parallel", "arbitrary")', "(2,)"), ("()", "(2,)"),
        ('("parallel",) * 3', "(2, 2)"),
        ('("parallel", "arbitrary")', "2"), ('["parallel"]', "(2, 2)"), ('("arbitrary",)', "()"),
        ('"parallel"', "(2,)"),
        ("(pltpu.PARALLEL, pltpu.ARBITRARY)", "(2,)"), ('("paralel", "arbitrary")', "(2, 2)"),
        ('("sequential", "arbitrary")', "(2, 2)"), ('("PARALLEL", "arbitrary")', "(2, 2)"),
        ('("arbitrary", "reduction")', "(2, 2)"),
    ],
)  # fmt: skip
def test_semantics_refused(words: str, grid: str) -> None:
    assert len(semantics(words, grid)) == 1
    assert semantics(words, grid, more="\n        interpret=True,") == []


@pytest.mark.parametrize(
    ("words", "grid"),
    [
        ('("parallel", "arbitrary")', "(2, 2)"), ('["parallel", "arbitrary"]', "(2, 2)"), ("None", "(2, 2)"),
        ('("parallel", None)', "(2, 2)"), ("(pltpu.PARALLEL, pltpu.GridDimensionSemantics.ARBITRARY)", "(2, 2)"),
        ('("parallel",) * 2', "(2, 2)"), ('("parallel",)', "2"), ('("parallel",)', "grid"), ("made(grid)", "(2, 2)"),
        ('("parallel", *made(grid))', "(2, 2)"), ('("parallel",) * len(made(grid))', "(2, 2)"),
        ('("parallel",)', "(2, *made(grid))"), ('("core_parallel", "subcore_parallel")', "(2, 2)"),
    ],
)  # fmt: skip
def test_semantics_accepted(words: str, grid: str) -> None:
    assert semantics(words, grid) == []


@pytest.mark.parametrize(
    ("word", "without", "since"), [("core_parallel", "0.5.3", "0.6.2"), ("subcore_parallel", "0.6.2", "0.7.2")]
)
def test_words_by_version(word: str, without: str, since: str) -> None:
    words = f'("{word}", "arbitrary")'
    assert len(semantics(words, jax=without)) == 1
    assert semantics(words, jax=since) == []


def test_words_are_corrected() -> None:
    code = _SEMANTICS.format(semantics="('paralel', \"ARBITRARY\")", grid="(2, 2)", more="")
    assert "dimension_semantics=('parallel', \"arbitrary\")" in fixed(code, "0.10.2", select="PAL311")


_MAPPED = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.shard_map import shard_map
from jax.sharding import PartitionSpec as P

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

{decorator}
def local(x):
    return pl.pallas_call(
        kernel, {specs} out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32)
    )(x)

def run(mesh):
    return {call}
"""


@pytest.mark.parametrize(
    ("decorator", "call"),
    [
        ("", "jax.shard_map(local, mesh=mesh, in_specs=P('x'), out_specs=P('x'))({x})"),
        ("", "jax.jit(shard_map(local, mesh=mesh, in_specs=P('x'), out_specs=P('x')))({x})"),
        ("@functools.partial(jax.shard_map, mesh=MESH, in_specs=P('x'), out_specs=P('x'))", "local({x})"),
        ("@jax.shard_map(mesh=MESH, in_specs=P('x'), out_specs=P('x'))", "local({x})"),
    ],
)
def test_what_is_mapped_sees_a_part(decorator: str, call: str) -> None:
    """The operands of the launch have other sizes than what the mapped function is called with, and the same rank."""
    specs = "in_specs=[pl.BlockSpec((8, 128), lambda: (0, 0))],"
    flat, deep = "jnp.ones((32, 128))", "jnp.ones((4, 8, 128))"
    for x, given, found in ((flat, "", set()), (flat, specs, set()), (deep, specs, {"PAL310"})):
        code = _MAPPED.format(decorator=decorator, call=call.format(x=x), specs=given)
        assert codes(lint(code, "0.12.0.1", select="PAL3")) == found
        assert not lint(code, "0.12.0.1", select="PAL506")
    direct = _MAPPED.format(decorator="", call="local(jnp.ones((32, 128)))", specs="")
    assert lint(direct, "0.12.0.1", select="PAL506")


@pytest.mark.parametrize(
    ("decorator", "call"),
    [
        ("", "jax.pmap(local)({x})"),
        ("@jax.pmap", "local({x})"),
        ("@functools.partial(jax.pmap, axis_name='x')", "local({x})"),
        ("", "jax.vmap(local)({x})"),
        ("@jax.vmap", "local({x})"),
    ],
)
def test_what_is_mapped_sees_one_of_many(decorator: str, call: str) -> None:
    specs = "in_specs=[pl.BlockSpec((8, 128), lambda: (0, 0))],"
    code = _MAPPED.format(decorator=decorator, call=call.format(x="jnp.ones((4, 8, 128))"), specs=specs)
    assert not lint(code, "0.12.0.1", select="PAL3") and not lint(code, "0.12.0.1", select="PAL506")
    refused = _MAPPED.format(decorator=decorator, call=call.format(x="jnp.ones((32, 128))"), specs="")
    assert lint(refused, "0.12.0.1", select="PAL506")


@pytest.mark.parametrize(
    "made",
    [
        "jnp.zeros_like(x)",
        "jnp.full_like(x, 0.5)",
        "jnp.empty_like(x, dtype=jnp.float32)",
        "jnp.float32(x)",
        "jnp.array([x, x])",
        "x + jnp.float32(1)",
        "jnp.float32(1) < x",
    ],
)
def test_what_is_made_from_an_argument_has_its_rank(made: str) -> None:
    code = _BLOCKS.format(spec="pl.BlockSpec((8, 128), lambda i: (i, 0))", grid="grid=(2,),", use="flag")
    changed = code.replace("    return pl.pallas_call(", f"    x = {made}\n    return pl.pallas_call(")
    assert changed != code
    assert not lint(changed, "0.10.2", select="PAL310")


def test_a_declared_shape_holds() -> None:
    code = _BLOCKS.format(spec="pl.BlockSpec((8, 128), lambda i: (i, 0))", grid="grid=(2,),", use="flag")
    made = "    x = jnp.zeros_like(x, shape=(4, 16, 128))\n"
    changed = code.replace("    return pl.pallas_call(", f"{made}    return pl.pallas_call(")
    assert lint(changed, "0.10.2", select="PAL310")


def test_a_wrong_rank_is_reported_once() -> None:
    """The number of blocks along a dimension means nothing where the block has another number of dimensions."""
    code = _BLOCKS.format(
        grid="grid=(4,),", spec="pl.BlockSpec((4,), lambda i: (i,))", use="run(jnp.ones((4, 4)), flag)"
    )
    assert codes(lint(code, "0.10.2", select="PAL3")) == {"PAL310"}
