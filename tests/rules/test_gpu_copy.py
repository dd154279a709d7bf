"""PAL216: copies between GMEM and SMEM, those that the copy engine makes and those that it does not."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))

def kernel(x, o, s, arrived):
{body}

def run():
    x = jnp.zeros({gmem})
    return plgpu.kernel(
        kernel,
        out_shape=jax.ShapeDtypeStruct({gmem}),
        scratch_shapes=[plgpu.SMEM({smem}), plgpu.Barrier()],{more}
    )(x)
"""
_IN = "    plgpu.copy_gmem_to_smem({gmem}, {smem}, arrived{more})\n    plgpu.barrier_wait(arrived)"
_OUT = "    plgpu.copy_smem_to_gmem({smem}, {gmem})\n    plgpu.wait_smem_to_gmem(0)"


def copied(
    gmem: str, smem: str, source: str = "x", part: str = "s", *, out: bool = False, jax: str | None = None,
    more: str = "", launch: str = "",
) -> list[tuple[str, str]]:  # fmt: skip
    body = (_OUT if out else _IN).format(gmem=source.replace("x", "o", 1) if out else source, smem=part, more=more)
    found = lint(_MODULE.format(body=body, gmem=gmem, smem=smem, more=launch), select="PAL216", jax=jax)
    return [(finding.severity.value, finding.message) for finding in found]


# Lowered with jax 0.8.3, 0.10.2 and 0.12.0.1 in both directions: refused by all.
REFUSED = {
    "dtypes": (("(64, 64), jnp.float32", "(64, 64), jnp.bfloat16"), "converts nothing"),
    "dtypes of one size": (("(64, 64), jnp.float16", "(64, 64), jnp.bfloat16"), "converts nothing"),
    "columns differ": (("(64, 64), jnp.float32", "(64, 32), jnp.float32"), "copy of shape"),
    "rows differ": (("(64, 64), jnp.float32", "(32, 64), jnp.float32"), "copy of shape"),
    "ranks differ": (("(1, 64, 64), jnp.float32", "(64, 64), jnp.float32"), "copy of shape"),
    "flat": (("(64, 64), jnp.float32", "(4096,), jnp.float32"), "copy of shape"),
    "rows of 252 bytes": (("(64, 63), jnp.float32", "(64, 63), jnp.float32"), "252 bytes"),
    "rows of 24 bytes": (("(64, 12), jnp.bfloat16", "(64, 12), jnp.bfloat16"), "24 bytes"),
    "part of such rows": (("(64, 66), jnp.float32", "(64, 64), jnp.float32", "x.at[:, :64]"), "264 bytes"),
    "a vector of 132 bytes": (("(33,), jnp.float32", "(33,), jnp.float32"), "132 bytes"),
    "half a tile down": (
        ("(64, 64), jnp.bfloat16", "(128, 64), jnp.bfloat16, transforms=TILES", "x", "s.at[pl.ds(4, 64)]"),
        "tiles of 8",
    ),
    "half a tile wide": (
        ("(64, 32), jnp.bfloat16", "(64, 64), jnp.bfloat16, transforms=TILES", "x", "s.at[:, pl.ds(32, 32)]"),
        "tiles of 64",
    ),
    "a slice in brackets": (
        ("(64, 64), jnp.bfloat16", "(128, 64), jnp.bfloat16, transforms=TILES", "x", "s.at[4:68, :]"),
        "tiles of 8",
    ),
    "steps in shared memory": (("(64, 64), jnp.float32", "(128, 64), jnp.float32", "x", "s.at[::2]"), "steps in SMEM"),
}


@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, out: bool) -> None:
    case, expected = REFUSED[name]
    [(severity, message)] = copied(*case, out=out)
    assert severity == "error"
    assert expected in message


# ... and these are taken by all.
TAKEN = {
    "alike": ("(64, 64), jnp.float32", "(64, 64), jnp.float32"),
    "rows of 16 bytes": ("(64, 8), jnp.bfloat16", "(64, 8), jnp.bfloat16"),
    "part of rows": ("(64, 68), jnp.float32", "(64, 64), jnp.float32", "x.at[:, :64]"),
    "one of several": ("(4, 64, 64), jnp.float32", "(64, 64), jnp.float32", "x.at[1]"),
    "into one of several": ("(64, 64), jnp.float32", "(4, 64, 64), jnp.float32", "x", "s.at[1]"),
    "whole tiles": ("(64, 64), jnp.bfloat16", "(128, 64), jnp.bfloat16, transforms=TILES", "x", "s.at[pl.ds(8, 64)]"),
    "off the tiles that are none": ("(64, 64), jnp.bfloat16", "(128, 64), jnp.bfloat16", "x", "s.at[pl.ds(4, 64)]"),
    "unknown place": (
        "(64, 64), jnp.bfloat16", "(128, 64), jnp.bfloat16, transforms=TILES", "x",
        "s.at[pl.ds(jax.lax.axis_index('i') * 4, 64)]",
    ),
    "unknown shape": ("(64, unknown), jnp.float32", "(64, 64), jnp.float32", "x.at[:, pl.ds(unknown, n)]", "s.at[n]"),
    "unknown dtype": ("(64, 64), unknown", "(64, 64), jnp.float32"),
    "float8": ("(64, 64), jnp.float8_e4m3fn", "(64, 64), jnp.float8_e4m3fn"),
}  # fmt: skip


@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str, out: bool) -> None:
    assert not copied(*TAKEN[name], out=out)


def test_long_boxes_are_a_warning_where_nothing_tiles_the_buffer() -> None:
    case = ("(1024, 64), jnp.float32", "(512, 64), jnp.float32", "x.at[:512]")
    [(severity, message)] = copied(*case)
    assert severity == "warning"
    assert "256 elements" in message
    assert not copied(*case, out=True)  # outwards it is split
    tiled = "(512, 64), jnp.bfloat16, transforms=TILES"
    assert not copied("(1024, 64), jnp.bfloat16", tiled, "x.at[:512]")


def test_short_copies_up_to_jax_0_10() -> None:
    case = ("(16,), jnp.float32", "(16,), jnp.float32")
    assert [severity for severity, _ in copied(*case, jax="0.10.2")] == ["error"]
    assert not copied(*case, jax="0.12.0.1")
    assert not copied(*case, jax="0.10.2", out=True)
    params = "plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Warpgroup)"
    assert not copied(*case, jax="0.10.2", launch=f"\n        compiler_params={params},")


def test_steps_in_global_memory_up_to_jax_0_10() -> None:
    case = ("(128, 64), jnp.float32", "(64, 64), jnp.float32", "x.at[pl.ds(0, 64, 2)]")
    assert [severity for severity, _ in copied(*case, jax="0.10.2")] == ["error"]
    assert not copied(*case, jax="0.12.0.1")


def test_collective_copies_are_divided() -> None:
    case = ("(64, 64), jnp.float32", "(32, 64), jnp.float32")
    cluster = "\n        cluster=(2,), cluster_names=('x',),"
    divided = ", collective_axes='x', leader_tracked=plgpu.CopyPartition.PARTITIONED(0)"
    assert not copied(*case, more=divided, launch=cluster)


def test_copies_of_older_chips_have_no_barrier() -> None:
    body = "    plgpu.copy_gmem_to_smem(x, s)"
    text = "(64, 63), jnp.float32"
    assert not lint(_MODULE.format(body=body, gmem=text, smem=text, more=""), select="PAL216")


def test_rows_that_an_array_picks() -> None:
    source = "x.at[jnp.arange(32)]"
    assert not copied("(64, 64), jnp.float32", "(32, 64), jnp.float32", source)
