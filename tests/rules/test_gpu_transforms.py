"""PAL214: transforms of shared memory that do not fit the buffer, and those that do."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def tiles(dtype, swizzle=128):
    columns = swizzle // jnp.dtype(dtype).itemsize
    return (plgpu.TilingTransform((8, columns)), plgpu.SwizzleTransform(swizzle))

T, S = plgpu.TilingTransform, plgpu.SwizzleTransform

def kernel(o, a, b):
{body}

def run():
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_types=[{a}, {b}],
    )()
"""
_PLAIN = "plgpu.SMEM((64, 128), jnp.bfloat16)"
_MULTIPLY = "    pl.run_scoped(lambda r: plgpu.wgmma(r, a, b), plgpu.ACC((64, 128)))"


def findings(a: str, b: str = _PLAIN, body: str = "    o[...] = a[...]") -> list[str]:
    return [found.message for found in lint(_MODULE.format(a=a, b=b, body=body), select="PAL214")]


# Lowered with jax 0.8.3, 0.10.2 and 0.12.0.1: each is refused by all of them.
REFUSED = {
    "another dtype": ("(64, 128), jnp.float32, transforms=(T((8, 64)), S(128))", "32 elements, and these have 64"),
    "a smaller swizzle": ("(64, 128), jnp.bfloat16, transforms=(T((8, 64)), S(64))", "32 elements, and these have 64"),
    "no tiles": ("(64, 128), jnp.bfloat16, transforms=(S(128),)", "64 elements, and these have 128"),
    "16 bytes": ("(64, 64), jnp.bfloat16, transforms=(T((8, 8)), S(16))", "only 32, 64 and 128 bytes"),
    "256 bytes": ("(64, 128), jnp.bfloat16, transforms=[T((8, 128)), S(256)]", "only 32, 64 and 128 bytes"),
    "columns": ("(64, 96), jnp.bfloat16, transforms=(T((8, 64)), S(128))", "96 is not a multiple of 64"),
    "rows": ("(60, 64), jnp.bfloat16, transforms=(T((8, 64)), S(128))", "60 is not a multiple of 8"),
    "tiles alone": ("(60, 64), jnp.bfloat16, transforms=(T((8, 64)),)", "60 is not a multiple of 8"),
    "made by a function": ("(64, 128), jnp.float32, transforms=tiles(jnp.bfloat16)", "32 elements, and these have 64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    declared, expected = REFUSED[name]
    [message] = findings(f"plgpu.SMEM({declared})")
    assert expected in message


# ... and these are taken.
TAKEN = {
    "none": "(64, 128), jnp.float32",
    "fitting": "(64, 128), jnp.bfloat16, transforms=(T((8, 64)), S(128))",
    "64 bytes": "(64, 96), jnp.bfloat16, transforms=(T((8, 32)), S(64))",
    "one row of tiles": "(64, 64), jnp.bfloat16, transforms=(S(128),)",
    "higher tiles": "(64, 64), jnp.bfloat16, transforms=(T((16, 64)), S(128))",
    "several slots": "(3, 64, 64), jnp.bfloat16, transforms=(T((8, 64)), S(128))",
    "8 bits": "(64, 128), jnp.float8_e4m3fn, transforms=(T((8, 128)), S(128))",
    "by a function": "(64, 128), jnp.float32, transforms=tiles(jnp.float32)",
    "unknown columns": "(64, o.shape[1]), jnp.float32, transforms=(T((8, 32)), S(128))",
    "unknown dtype": "(64, 128), o.dtype, transforms=(T((8, 64)), S(128))",
    "unknown swizzle": "(64, 96), jnp.float32, transforms=(T((8, n)), S(n * 4))",
    "another transform": "(64, 96), jnp.float32, transforms=(plgpu.TransposeTransform((1, 0)), T((8, 64)))",
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    assert not findings(f"plgpu.SMEM({TAKEN[name]})")


def test_scratch_of_a_scope() -> None:
    body = (
        "    def inner(s):\n        o[...] = s[...]\n"
        "    pl.run_scoped(inner, plgpu.SMEM((64, 96), jnp.bfloat16, transforms=(T((8, 64)), S(128))))"
    )
    [message] = findings(_PLAIN, body=body)
    assert "96 is not a multiple of 64" in message


_SWIZZLED = "plgpu.SMEM(({rows}, 128), jnp.bfloat16, transforms=(T((8, {columns})), S({swizzle})))"


@pytest.mark.parametrize(
    ("second", "found"), [((64, 128), 0), ((32, 64), 1), ((16, 32), 1)], ids=["alike", "half", "quarter"]
)
def test_operands_that_are_swizzled_differently(second: tuple[int, int], found: int) -> None:
    a = _SWIZZLED.format(rows=64, columns=64, swizzle=128)
    b = _SWIZZLED.format(rows=128, columns=second[0], swizzle=second[1])
    assert len(findings(a, b, _MULTIPLY)) == found
    assert len(findings(a, b, _MULTIPLY.replace("a, b)", "a.at[...], plgpu.transpose_ref(b, (1, 0)))"))) <= found


def test_operand_without_transforms_is_inferred() -> None:
    assert not findings(_SWIZZLED.format(rows=64, columns=64, swizzle=128), _PLAIN, _MULTIPLY)
