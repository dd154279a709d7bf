"""PAL409: empty arrays behind aliases, by what the kernel leaves unwritten and by what `empty` is in a jax version."""

from __future__ import annotations

import pytest

from pallas_lint.testing import fixed, lint

PRELUDE = (
    "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom jax import lax\n"
    "from jax.experimental import pallas as pl\n\n\n"
)
SHAPE = "(64, 128), jnp.float32"


def module(store: str, buffer: str = f"jnp.empty({SHAPE})") -> str:
    return (
        f"{PRELUDE}def kernel(index_ref, x_ref, _init_ref, o_ref):\n    {store}\n\n\ndef run(index, x):\n"
        f"    rows = {buffer}\n    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct({SHAPE}),"
        " input_output_aliases={2: 0})(index, x, rows)\n"
    )


SCATTER = "o_ref[index_ref[0], :] = x_ref[0, :]"


@pytest.mark.parametrize(
    ("code", "flagged"),
    [
        (module(SCATTER), True),
        (module("o_ref[0:8, :] = x_ref[0:8, :]"), True),
        (module("o_ref[...] += x_ref[...]"), True),
        (module(SCATTER, "jnp.empty_like(x)"), True),
        (module(SCATTER, f"lax.empty({SHAPE})"), True),
        (module(SCATTER, f"jnp.zeros({SHAPE})"), False),
        (module(SCATTER, "made(x)"), False),
        (module("o_ref[...] = x_ref[...]"), False),
        (module("o_ref[pl.program_id(0), :] = x_ref[0, :]"), False),
        (module("fill(o_ref)"), False),
    ],
)
def test_verdicts(code: str, flagged: bool) -> None:
    findings = lint(code, jax="0.12.0.1", select="PAL409")
    assert [finding.severity.value for finding in findings] == (["warning"] if flagged else [])
    if flagged:
        after = fixed(code, jax="0.12.0.1", select="PAL409")
        assert "zeros" in after
        assert not lint(after, jax="0.12.0.1", select="PAL409")


def test_empty_was_zeros_before_0_11() -> None:
    assert [f.severity.value for f in lint(module(SCATTER), jax="0.10.2", select="PAL409")] == ["info"]
    assert [f.severity.value for f in lint(module(SCATTER), jax="0.11.0", select="PAL409")] == ["warning"]


def test_triton() -> None:
    code = (
        "import jax\nimport jax.numpy as jnp\nimport jax_triton as jt\nimport triton\n"
        "import triton.language as tl\n\n\n@triton.jit\ndef count(x, _init, out, n: tl.constexpr):\n"
        "    at = tl.arange(0, n)\n"
        "    tl.atomic_add(out + tl.load(x + at), 1)\n\n\ndef run(x):\n    return jt.triton_call(x,"
        " jnp.empty((64,), jnp.int32), kernel=count, out_shape=jax.ShapeDtypeStruct((64,), jnp.int32), grid=1, n=64,"
        " input_output_aliases={1: 0})\n"
    )
    assert [finding.severity.value for finding in lint(code, jax="0.12.0.1", select="PAL409")] == ["warning"]


_IN_LOOPS = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(idx_ref, x_ref, buf_ref, o_ref):
    def body(i, c):
        o_ref[idx_ref[i], :] = x_ref[i, :]
        return c
    jax.lax.fori_loop(0, 16, body, None)

def step(idx, x, out):
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec((16, 128), lambda i, idx: (0, 0)), pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
        ),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        input_output_aliases={2: 0},
    )(idx, x, out)

def run(idx, x):
    out = jnp.empty((64, 128), jnp.float32)
    BODY
    return out
"""


@pytest.mark.parametrize("maker", ["empty", "zeros"])
@pytest.mark.parametrize(
    "body",
    [
        "for _ in range(4): out = step(idx, x, out)",
        "for _ in range(x.shape[0]): out = step(idx, x, out)",
        "out = jax.lax.fori_loop(0, 4, lambda k, o: step(idx, x, o), out)",
        "out, _ = jax.lax.fori_loop(0, 4, lambda k, c: (step(idx, x, c[0]), k), (out, 0))",
        "out, _ = jax.lax.scan(lambda c, k: (step(idx, x, c), None), out, jnp.arange(4))",
    ],
)
def test_an_empty_array_that_comes_through_a_loop(body: str, maker: str) -> None:
    code = _IN_LOOPS.replace("BODY", body).replace("jnp.empty", f"jnp.{maker}")
    assert bool(lint(code, "0.10.2", select="PAL409")) is (maker == "empty")
