"""PAL407: aliases are refused exactly where a real `pallas_call` raises, and counted as it counts."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.rules.traced import outcomes

PRELUDE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = jax.ShapeDtypeStruct((256, 128), jnp.float32)
ROWS = jax.ShapeDtypeStruct((2,), jnp.int32)
OUT = jax.ShapeDtypeStruct((256, 128), jnp.float32)


"""
SPEC = "pl.BlockSpec((256, 128), lambda *_: (0, 0))"


def plain(aliases: str, out: str = "OUT", count: int = 2) -> str:
    """Two operands, both read."""
    stores = "; ".join(f"o{k}_ref[...] = (x_ref[...] + y_ref[...]).astype(o{k}_ref.dtype)" for k in range(count - 1))
    outputs = ", ".join(f"o{k}_ref" for k in range(count - 1))
    return (
        f"def kernel(x_ref, y_ref, {outputs}):\n    {stores}\n\n\n"
        f"def f(x):\n    return pl.pallas_call(kernel, out_shape={out}, input_output_aliases={aliases})"
        "(x, jnp.ones((256, 128), jnp.float32))\n"
    )


def prefetched(aliases: str) -> str:
    return (
        "def kernel(rows_ref, x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n\n\ndef f(x):\n"
        "    rows = jnp.zeros((2,), jnp.int32)\n    return pl.pallas_call(\n        kernel,\n"
        "        grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,),"
        f" in_specs=[{SPEC}], out_specs={SPEC}),\n"
        f"        out_shape=OUT,\n        input_output_aliases={aliases},\n    )(rows, x)\n"
    )


WRONG = {
    "operand out of range": plain("{2: 0}"),
    "output out of range": plain("{0: 1}"),
    "negative operand": plain("{-1: 0}"),
    "negative output": plain("{0: -1}"),
    "second pair": plain("{0: 0, 1: 2}", "[OUT, OUT]", 3),
    "other dtype": plain("{1: 0}", "jax.ShapeDtypeStruct((256, 128), jnp.bfloat16)"),
    "other kind": plain("{1: 0}", "jax.ShapeDtypeStruct((256, 128), jnp.int32)").replace(
        "jnp.ones((256, 128), jnp.float32)", "jnp.ones((256, 128), x.dtype) / 2"
    ),
    "prefetch not counted": prefetched("{0: 0}"),
    "prefetch counted twice": prefetched("{2: 0}"),
    "variable": plain("aliases").replace("    return", "    aliases = {5: 0}\n    return"),
}
RIGHT = {
    "first": plain("{0: 0}"),
    "second": plain("{1: 0}"),
    "crossed": plain("{0: 1, 1: 0}", "[OUT, OUT]", 3),
    "none": plain("{}"),
    "a kind of dtype": plain("{1: 0}").replace(
        "jnp.ones((256, 128), jnp.float32)", "jnp.ones((256, 128), x.dtype) / 2"
    ),
    "prefetch counted": prefetched("{1: 0}"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    findings = lint(PRELUDE + WRONG[name], select="PAL407")
    assert [finding.severity.value for finding in findings] == ["error"]


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    assert not lint(PRELUDE + RIGHT[name], select="PAL407")


@pytest.mark.slow
def test_jax_agrees() -> None:
    found = outcomes({**WRONG, **RIGHT})
    assert {name for name, error in found.items() if error} == set(WRONG)
    assert all("input_output_aliases contains the mapping" in str(found[name]) for name in WRONG)


@pytest.mark.parametrize(
    "code",
    [
        plain("{5: 0}").replace("(x, jnp.ones((256, 128), jnp.float32))", "(*x)"),
        plain("{3: 0}").replace("x_ref[...] + y_ref[...]", "unknown(x_ref, y_ref)"),  # x may be a tree
        plain("{n: 0}"),
        plain("made()"),
    ],
)
def test_what_is_not_known(code: str) -> None:
    assert not lint(PRELUDE + code, select="PAL407")


def test_help_counts_prefetch_operands() -> None:
    finding = lint(PRELUDE + prefetched("{0: 0}"), select="PAL407")[0]
    assert "scalar-prefetch" in finding.message
    assert "number 1" in finding.help


def test_output_claimed_twice() -> None:
    findings = lint(PRELUDE + plain("{0: 0, 1: 0}"), select="PAL407")
    assert [finding.severity.value for finding in findings] == ["warning"]


IN_PLACE = (
    "def kernel(slot_ref, new_ref, k_ref, v_ref, k_out_ref, v_out_ref):\n"
    "    k_out_ref[slot_ref[0], :] = jnp.ones((128,))\n    v_out_ref[slot_ref[0], :] = jnp.ones((128,))\n\n\n"
    "def f(slot, new, k, v):\n    return pl.pallas_call(kernel, out_shape=[OUT, OUT],"
    " input_output_aliases=ALIASES)(slot, new, k, v)\n"
)


def test_some_outputs_of_an_in_place_kernel() -> None:
    findings = lint(PRELUDE + IN_PLACE.replace("ALIASES", "{2: 0}"), select="PAL407")
    assert [finding.severity.value for finding in findings] == ["warning"]
    assert "`v_out_ref`" in findings[0].message
    assert not lint(PRELUDE + IN_PLACE.replace("ALIASES", "{2: 0, 3: 1}"), select="PAL407")


FOREIGN = "import jax\nimport jax.numpy as jnp\nfrom jax.interpreters import mlir\nimport jax_triton as jt\n\n\n"


@pytest.mark.parametrize(
    ("call", "flagged"),
    [
        ("jax.ffi.ffi_call('t', jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={1: 0})(x, y)", False),
        ("jax.ffi.ffi_call('t', jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={2: 0})(x, y)", True),
        ("jax.ffi.ffi_call('t', jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={0: 1})(x, y)", True),
        ("mlir.custom_call('t', result_types=[a], operands=[x, y], operand_output_aliases={1: 0})", False),
        ("mlir.custom_call('t', result_types=[a], operands=[x, y], operand_output_aliases={2: 0})", True),
        ("jt.triton_call(x, y, kernel=k, out_shape=jax.ShapeDtypeStruct((8,), jnp.float32), grid=1,"
         " input_output_aliases={-1: 0})", True),
        ("jt.triton_call(jnp.ones(8), 8, kernel=k, out_shape=jax.ShapeDtypeStruct((8,), jnp.float32), grid=1,"
         " input_output_aliases={1: 0})", True),
        ("jt.triton_call(jnp.ones(8), 8, kernel=k, out_shape=jax.ShapeDtypeStruct((8,), jnp.float32), grid=1,"
         " input_output_aliases={0: 0})", False),
        ("jt.triton_call(x, kernel=k, out_shape=jax.ShapeDtypeStruct((8,), jnp.float32), grid=1,"
         " zeroed_outputs=(0,), input_output_aliases={0: 0})", True),
        ("jt.triton_call(jnp.zeros(8), kernel=k, out_shape=jax.ShapeDtypeStruct((8,), jnp.float32), grid=1,"
         " zeroed_outputs=(0,), input_output_aliases={0: 0})", False),
    ],
)  # fmt: skip
def test_foreign_calls(call: str, flagged: bool) -> None:
    assert bool(lint(f"{FOREIGN}def f(x, y, a):\n    return {call}\n", select="PAL407")) is flagged


UNUSED = (
    "def kernel(_, x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n\n\ndef f(x, y):\n"
    "    return pl.pallas_call(kernel, out_shape=OUT, input_output_aliases={aliases})(x, {operand})\n"
)


@pytest.mark.parametrize(
    ("aliases", "operand", "message"),
    [
        ("{2: 0}", "y", "operand 2 does not exist, there are 2 operands"),
        ("{1: 0}", "jnp.zeros((32, 128))", "operand 1 and output 0 differ: shapes (32, 128) and"),
        ("{1: 0}", "jnp.zeros(OUT.shape, OUT.dtype)", None),
        ("{1: 0}", "y", None),
        ("{2: 0}", "*y", None),
    ],
)
def test_an_unused_ref_makes_it_a_warning(aliases: str, operand: str, message: str | None) -> None:
    code = PRELUDE + UNUSED.replace("{aliases}", aliases).replace("{operand}", operand)
    findings = lint(code, select="PAL407")
    assert [finding.severity.value for finding in findings] == ["warning"] * (message is not None)
    assert message is None or message in findings[0].message


TREE = """
class Pair(typing.NamedTuple):
    m: jax.Array
    v: jax.Array

def kernel(pair, out_ref):
    out_ref[...] = pair.m[...] + pair.v[...]

def f(pair):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, grid=(2,), in_specs=[jax.tree.map(lambda _: spec, pair)], out_specs=spec, out_shape=OUT,
        input_output_aliases={OPERAND: 0},
    )(pair)
"""


@pytest.mark.parametrize("test", ["", "def test(x):\n    f(Pair(x, jnp.zeros(OUT.shape, OUT.dtype)))\n"])
def test_operands_in_a_tree(test: str) -> None:
    code = f"import typing\n{PRELUDE}{TREE.replace('OPERAND', '1')}{test}"
    assert lint(code, select="PAL407") == []
    assert lint(code.replace("jax.tree.map(lambda _: spec, pair)", "spec"), select="PAL407") != []


NAMED = """
def kernel(rows_ref, new_ref, old_ref, out_ref, sem):
    pltpu.sync_copy(new_ref, out_ref.at[pl.ds(rows_ref[0], 8)])


def update(rows, new, old):
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (0, 0)), pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        ),
        out_shape=jax.ShapeDtypeStruct(SHAPE, old.dtype),
        input_output_aliases={OPERAND: 0},
    )(rows, new, old)
"""


@pytest.mark.parametrize(
    ("shape", "operand", "wrong"),
    [("old.shape", 1, True), ("old.shape", 2, False), ("new.shape", 1, False), ("(64, 128)", 1, False)],
)
def test_an_operand_counted_without_those_that_are_prefetched(shape: str, operand: int, wrong: bool) -> None:
    code = PRELUDE + NAMED.replace("SHAPE", shape).replace("OPERAND", str(operand))
    found = [each.message for each in lint(code, select="PAL407")]
    assert found == (["alias `1: 0`: output 0 has the shape of operand 2"] if wrong else [])
