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
