"""PAL306: grids against CUDA's limits, by backend and jax version."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

TRITON = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def kernel(o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)


def f():
    return pl.pallas_call(
        kernel,
        grid={grid},
        out_specs=pl.BlockSpec((16,), lambda *g: (0,)),
        out_shape=jax.ShapeDtypeStruct((16,), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )()
"""
# What jax 0.4.35 and 0.8.3 lower, and what they refuse: each grid was lowered.
LOWERED = {
    "(4, 70000)": False, "(70000, 4)": False, "70000": False, "(2, 70000, 3)": False, "(2, 3, 70000)": False,
    "(70000, 70000)": True, "(2**31 - 2,)": False, "(2**31 - 1,)": True, "(65536, 32768, 3)": False,
    "(65536, 2, 65536)": True, "(32768, 32768, 3)": False, "(16384, 32768, 32768)": False,
    "(65535, 65535)": False, "(65536, 2, 2, 65535)": False,
}  # fmt: skip


@pytest.mark.parametrize("grid", LOWERED)
def test_triton(grid: str) -> None:
    found = lint(TRITON.format(grid=grid), jax="0.8.3", select="PAL306")
    assert [finding.severity.value for finding in found] == (["error"] if LOWERED[grid] else [])


MOSAIC = """\
import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def kernel(x_ref, o_ref):
    plgpu.copy_gmem_to_smem(x_ref, o_ref)


def f(x):
    return plgpu.kernel(kernel, out_shape=jax.ShapeDtypeStruct((128,), jnp.float32), grid={grid}, grid_names=N)(x)
"""
# Whether each grid is too large where the last axis is x (jax 0.7.2 on), and where the first is (to 0.6.2).
SHAPES = {
    "(4, 70000)": (False, True),
    "(70000, 4)": (True, False),
    "(4, 70000, 4)": (True, True),
    "(65535, 65535, 65535)": (False, False),
    "(300, 300, 4, 4)": (True, False),
}


@pytest.mark.parametrize("grid", SHAPES)
def test_mosaic_gpu(grid: str) -> None:
    code = MOSAIC.format(grid=grid)
    last_is_x, first_is_x = SHAPES[grid]
    assert bool(lint(code, jax="0.10.2", select="PAL306")) is last_is_x
    assert bool(lint(code, jax="0.6.2", select="PAL306")) is first_is_x
    assert bool(lint(code, jax="0.7.1", select="PAL306")) is (last_is_x and first_is_x)


def test_other_targets() -> None:
    code = TRITON.format(grid="(70000, 70000)").replace("plgpu.CompilerParams(num_warps=4)", "None")
    code = code.replace("from jax.experimental.pallas import triton as plgpu\n", "")
    assert not lint(code, target="tpu", select="PAL306")
    assert lint(code, target="triton", select="PAL306")
    assert not lint(TRITON.format(grid="(n, 70000)"), jax="0.8.3", select="PAL306")


CLUSTER = """\
import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu


def run(n):
    def kernel(o_ref):
        o_ref[...] = jnp.zeros((64,), jnp.float32)

    return plgpu.kernel(
        kernel,
        out_shape=jax.ShapeDtypeStruct((64,), jnp.float32),
        grid={grid},
        grid_names=("a", "b", "c")[: {rank}],
        cluster={cluster},
        cluster_names=("x", "y", "z")[: {axes}],
    )()
"""


@pytest.mark.parametrize(
    ("grid", "cluster", "too_large"),
    [
        ("(65535, 1)", "(1,)", False),
        ("(65535, 1)", "(n,)", False),  # it may well be 1
        ("(65535, 1)", "(n, 1)", False),
        ("(65535, 1)", "(2,)", False),  # the last axis is CUDA's x
        ("(65535, 1)", "(1, 2)", False),
        ("(65535, 1)", "(2, 1)", True),
        ("(65535, 1, 1)", "(2, 1, 1)", True),
        ("(65535, 1, 1)", "(n, 1, 1)", False),
    ],
)
def test_clusters_multiply_their_axes(grid: str, cluster: str, too_large: bool) -> None:
    code = CLUSTER.format(grid=grid, cluster=cluster, rank=grid.count(",") + 1, axes=len(cluster.split(",")))
    found = lint(code, jax="0.10.2", target="mosaic-gpu", select="PAL306")
    assert [finding.severity.value for finding in found] == (["error"] if too_large else [])
