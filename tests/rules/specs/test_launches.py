"""PAL304 and PAL305 beyond what jax's verdict alone shows: fixes, messages, what is not seen."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import codes, fixed, lint

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
VMEM = pltpu.VMEM((8, 128), jnp.float32)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


"""


def module(code: str) -> str:
    return PRELUDE + textwrap.dedent(code).strip() + "\n"


def messages(code: str, rule: str) -> list[str]:
    return [finding.message for finding in lint(module(code)) if finding.code == rule]


# -- PAL304 --------------------------------------------------------------------------------------------------------


def test_message_counts_by_role() -> None:
    assert messages(
        """
        def f(rows, x, y):
            spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), scratch_shapes=[VMEM])
            return pl.pallas_call(copy, grid_spec=spec, out_shape=OUT)(rows, x, y)
        """,
        "PAL304",
    ) == [
        "`copy` takes 2 arguments, but the launch passes 5 "
        "(1 scalar-prefetch operand, 2 inputs, 1 output and 1 scratch)"
    ]


@pytest.mark.parametrize(
    "code",
    [
        "def f(*xs): return pl.pallas_call(copy, out_shape=OUT)(*xs)",
        "def f(x, specs): return pl.pallas_call(copy, out_shape=OUT, in_specs=specs)(x)",
        "def f(x, out): return pl.pallas_call(copy, out_shape=out)(x)",
        "def f(x, scratch): return pl.pallas_call(copy, out_shape=OUT, scratch_shapes=scratch)(x)",
        "def f(x, **options): return pl.pallas_call(copy, out_shape=OUT, **options)(x)",
        "def f(x, **options): return pl.pallas_call(functools.partial(copy, **options), out_shape=OUT)(x, x)",
        "def f(x, flag): return pl.pallas_call(copy if flag else (lambda *r: None), out_shape=OUT)(x, x)",
        "def f(x, kernel): return pl.pallas_call(kernel, out_shape=OUT)(x, x)",
        "@unknown\ndef kernel(x_ref): pass\ndef f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)",
        "import library\ndef f(x): return library.pallas_call(copy, out_shape=OUT)(x, x)",
        "def f(x): return jax.vmap(pl.pallas_call(copy, out_shape=OUT))(x)",
        "def f(x, y, b):\n    ops = [x]\n    if b: ops.append(y)\n    return pl.pallas_call(copy, out_shape=OUT)(*ops)",
        "def f(x, n): return pl.pallas_call(copy, out_shape=OUT, scratch_shapes=[VMEM] * n)(x)",
    ],
)
def test_arity_is_not_seen(code: str) -> None:
    assert not messages(code, "PAL304")


@pytest.mark.parametrize(
    "code",
    [
        "@jax.named_scope('k')\ndef kernel(x_ref): pass\ndef f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)",
        "@functools.partial(pl.pallas_call, out_shape=OUT)\ndef kernel(x_ref): pass\ndef f(x): return kernel(x)",
        "class Op:\n    def kernel(self, x_ref): pass\n"
        "    def run(self, x): return pl.pallas_call(self.kernel, out_shape=OUT)(x)",
        "def f(x):\n    def kernel(x_ref): pass\n    call = pl.pallas_call(kernel, out_shape=OUT)\n    return call(x)",
        "def f(x):\n    kernel = functools.partial(copy, n=1)\n    return pl.pallas_call(kernel, out_shape=OUT)(x, x)",
        "def f(x): return jax.jit(pl.pallas_call(copy, out_shape=OUT, scratch_shapes=[VMEM]))(x)",
        "def launch(kernel, x): return pl.pallas_call(kernel, out_shape=OUT)(x, x)\ndef f(x): return launch(copy, x)",
    ],
)
def test_arity_is_seen(code: str) -> None:
    assert len(messages(code, "PAL304")) == 1


def test_kernels_of_one_name_at_two_launches() -> None:
    code = module("""
        def f(x): return pl.pallas_call(copy, out_shape=OUT)(x)
        def g(x): return pl.pallas_call(copy, out_shape=OUT)(x, x)
        def h(x): return pl.pallas_call(copy, out_shape=[OUT, OUT])(x)
    """)
    assert sum(finding.code == "PAL304" for finding in lint(code)) == 2


# -- PAL305 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "@pl.pallas_call(out_shape=OUT)\ndef k(x_ref, o_ref): pass",
            "@functools.partial(pl.pallas_call, out_shape=OUT)\n",
        ),
        ("def f(x): return pl.pallas_call(copy, out_shapes=OUT)(x)", None),
        (
            "def f(x): return pl.pallas_call(copy, out_shape=OUT, in_spec=[pl.BlockSpec()])(x)",
            "in_specs=[pl.BlockSpec()]",
        ),
        ("SPEC = pl.BlockSpec((8, 128), index_maps=lambda i: (i, 0))", "index_map=lambda i: (i, 0)"),
    ],
)
def test_fix(before: str, after: str | None) -> None:
    assert "PAL305" in codes(lint(module(before), select="PAL305"))
    repaired = fixed(module(before), select="PAL305")
    if after is not None:
        assert after in repaired
        assert "PAL305" not in codes(lint(repaired, select="PAL305"))


def test_all_keywords_of_a_call_are_one_finding() -> None:
    code = """
        def scaled(x_ref, y_ref, o_ref, *, by):
            o_ref[...] = x_ref[...] * by

        def f(x, y):
            return pl.pallas_call(scaled, out_shape=OUT)(x, y=y, by=3, tile=8)
        """
    (finding,) = [each for each in lint(PRELUDE + textwrap.dedent(code)) if each.code == "PAL305"]
    assert finding.message.endswith("and here `y=`, `by=`, `tile=`")
    assert "functools.partial(kernel, by=...)" in finding.help
    assert "pass `y`, `tile` by position" in finding.help


@pytest.mark.parametrize(
    "code",
    [
        "def f(x, **options): return pl.pallas_call(copy, **options)(x)",
        "def f(x, *options): return pl.pallas_call(*options)(x)",
        "call = functools.partial(pl.pallas_call, interpret=True)",
        "import pytest\ndef test():\n    with pytest.raises(TypeError):\n        pl.pallas_call(copy)",
        "def f(x, grid, spec): return pl.pallas_call(copy, out_shape=OUT, grid=grid, grid_spec=spec)(x)",
        "def f(x, shape): return pl.pallas_call(copy, out_shape=shape)(x)",
        "def f(x, specs): return pl.pallas_call(copy, out_shape=OUT, in_specs=[*specs])(x, x)",
        "def f(x): return jax.vmap(pl.pallas_call(copy, out_shape=OUT, in_specs=[pl.BlockSpec()]))(x)",
        "PARAMS = pltpu.CompilerParams(dimension_semantics=('parallel',), vmem_limit_bytes=2**20)",
        "BUFFER = pltpu.VMEM(shape=(8, 128), dtype=jnp.float32)",
        "def f(x): return pl.pallas_call(copy, out_shape=OUT, in_specs=pl.no_block_spec)(x)",
        "def f(x): return pl.pallas_call(copy, out_shape=[OUT], out_specs=pl.no_block_spec)(x)",
        "SPEC = pltpu.PrefetchScalarGridSpec(0, in_specs=pl.no_block_spec, out_specs=pl.no_block_spec)\n"
        "def f(x): return pl.pallas_call(copy, grid_spec=SPEC, out_shape=[OUT], in_specs=pl.no_block_spec)(x)",
        "def f(x): return pl.pallas_call(f=copy, out_shape=OUT)(x)",
    ],
)
def test_misuse_is_not_seen(code: str) -> None:
    assert not messages(code, "PAL305")


def test_the_kernel_was_called_otherwise_once() -> None:
    code = module("def f(x): return pl.pallas_call(f=copy, out_shape=OUT)(x)")
    assert "`pl.pallas_call` takes no `f`" in next(found.message for found in lint(code) if found.code == "PAL701")
    assert "pl.pallas_call(kernel=copy, out_shape=OUT)" in fixed(code, select="PAL701")


@pytest.mark.parametrize(
    ("call", "lacking"),
    [
        ("pltpu.roll(x, 1)", "`axis`"),
        ("pl.num_programs()", "`axis`"),
        ("pltpu.make_async_copy(x)", "`dst_ref`"),
        ("pltpu.roll(x, shift=1, axis=0)", ""),
        ("pltpu.roll(*x)", ""),
        ("pltpu.roll(x, **x)", ""),
        ("functools.partial(pltpu.roll, x)", ""),
        ("pl.ds(x)", ""),
    ],
)
def test_functions_need_their_arguments(call: str, lacking: str) -> None:
    found = messages(f"def kernel(x):\n    {call}", "PAL305")
    assert [message.partition(" without ")[2] for message in found] == [lacking][: bool(lacking)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pltpu.roll(x, -1, axis=1)", "`pltpu.roll` by -1: the shift has to be 0 or more"),
        ("pltpu.roll(x, shift=-3, axis=0)", "`pltpu.roll` by -3: the shift has to be 0 or more"),
        ("pltpu.roll(x, 1, -1)", "`pltpu.roll` along axis -1 of an array of 2 dimensions: axes are counted from 0 on"),
        ("pltpu.roll(x, 1, 2)", "`pltpu.roll` along axis 2 of an array of 2 dimensions: axes are counted from 0 on"),
        ("pltpu.roll(x, x.shape[1] - 1, 1)", None),
        ("pltpu.roll(x, 300, 1)", None),
        ("pltpu.roll(x, pl.program_id(0) - 1, 1)", None),
        ("jnp.roll(x, -1, axis=-1)", None),
    ],
)
def test_roll(call: str, message: str | None) -> None:
    code = f"""
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = {call}

def run():
    return pl.pallas_call(kernel, grid=(2,), out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(jnp.ones((8, 128)))
"""
    found = [finding.message for finding in lint(code, target="tpu", select="PAL305")]
    assert found == ([] if message is None else [message])
