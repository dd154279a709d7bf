"""A pipeline in a kernel has a grid of its own: an index of the grid around it is not one of its own."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

PIPELINE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def row():
    return pl.program_id(0)


def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def kernel(x_hbm, o_hbm):
    i, n = pl.program_id(0), pl.num_programs(0)
    spec = pl.BlockSpec((64, 128), {index_map})
    pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(x_hbm, o_hbm)


def run(x):
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel, grid=(2,), in_specs=[hbm], out_specs=hbm, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(x)


if __name__ == "__main__":
    run(jnp.ones((128, 512), jnp.float32))
"""


@pytest.mark.parametrize(
    "index_map",
    ["lambda s: (i, s)", "lambda s: (n - 1 - i, s)", "lambda s, row=row(): (row, s)", "lambda s: (i * 4 // 4, 3 - s)"],
)
def test_the_outer_index_is_no_index_of_the_pipeline(index_map: str) -> None:
    assert not lint(PIPELINE.format(index_map=index_map), select="PAL3")


@pytest.mark.parametrize("index_map", ["lambda s: (i, s + 1)", "lambda s: (s, s)"])
def test_the_pipelines_own_index_is(index_map: str) -> None:
    found = lint(PIPELINE.format(index_map=index_map), select="PAL307")
    assert {finding.severity.value for finding in found} == {"error"}


NESTED = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def kernel(x_hbm, o_hbm):
    def outer(x_rows, o_rows):
        j = pl.program_id(0)
        spec = pl.BlockSpec((8, 128), lambda s: {inner})
        pltpu.emit_pipeline(body, grid=(2,), in_specs=[spec], out_specs=[spec])(x_rows, o_rows)

    rows = pl.BlockSpec((16, 512), lambda s: (s, 0))
    pltpu.emit_pipeline(outer, grid=(4,), in_specs=[rows], out_specs=[rows])(x_hbm, o_hbm)


def run():
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel, in_specs=[hbm], out_specs=hbm, out_shape=jax.ShapeDtypeStruct((64, 512), jnp.float32)
    )(jnp.ones((64, 512), jnp.float32))
"""


def test_pipelines_in_pipelines() -> None:
    assert not lint(NESTED.format(inner="(s, j)"), select="PAL3")
    assert [finding.code for finding in lint(NESTED.format(inner="(s + 1, j)"), select="PAL307")] == ["PAL307"]


GUARDED = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_hbm, o_hbm):
    first = pl.program_id(0) == 0

    def body(x_ref, o_ref):
        @pl.when({guard})
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    pltpu.emit_pipeline(
        body,
        grid=(4, 4),
        in_specs=[pl.BlockSpec((64, 128), lambda r, s: (r, s))],
        out_specs=[pl.BlockSpec((64, 128), lambda r, s: (r, 0))],
    )(x_hbm, o_hbm)


def run():
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel, grid=(2,), in_specs=[hbm], out_specs=hbm, out_shape=jax.ShapeDtypeStruct((256, 128), jnp.float32)
    )(jnp.ones((256, 512), jnp.float32))
"""


def test_program_id_in_the_body_of_a_pipeline_is_the_pipelines() -> None:
    assert not lint(GUARDED.format(guard="pl.program_id(1) == 0"), select="PAL4")
    assert not lint(GUARDED.format(guard="first"), select="PAL4"), "the outer grid's index tells nothing of a step"


OUT_OF_AXES = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_hbm, o_hbm):
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(1)

    i = pl.program_id({axis})
    spec = pl.BlockSpec((64, 128), lambda r, s: (r, s))
    pltpu.emit_pipeline(body, grid=(1, 4), in_specs=[spec], out_specs=[spec])(x_hbm.at[i], o_hbm.at[i])


def run():
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel, grid=(2,), in_specs=[hbm], out_specs=hbm, out_shape=jax.ShapeDtypeStruct((2, 64, 512), jnp.int32)
    )(jnp.ones((2, 64, 512), jnp.int32))
"""


def test_axes_are_counted_in_the_grid_at_hand() -> None:
    assert not lint(OUT_OF_AXES.format(axis=0), select="PAL504")
    (found,) = lint(OUT_OF_AXES.format(axis=1), select="PAL504")
    assert "program_id(1)" in found.message and "1 axis" in found.message
