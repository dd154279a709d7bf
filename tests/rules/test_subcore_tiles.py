"""Parts of arrays that copies on SparseCores take, by the tiles that they cut; each was compiled for v6e."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

COPY = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((8,), jnp.int32),
            mesh=plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", num_cores=2, num_subcores=16),
            scratch_types=[pltpu.VMEM(BUFFER, jnp.DTYPE), pltpu.SMEM((8,), jnp.int32)],
        )
        def kernel(x_hbm, o_hbm, buf, count):
            w = lax.axis_index("c") * 16 + lax.axis_index("s")
            BODY

        return kernel(jnp.zeros(SHAPE, jnp.DTYPE))
"""


def copied(body: str, shape: tuple[int, ...], buffer: tuple[int, ...], dtype: str) -> list[str]:
    """Messages of PAL217 for a kernel that copies a part of an array in HBM."""
    code = COPY.replace("BODY", body).replace("SHAPE", str(shape)).replace("BUFFER", str(buffer))
    found = lint(code.replace("DTYPE", dtype), "0.12.0.1", "tpu:v6e", "PAL217")
    return [finding.message for finding in found]


@pytest.mark.parametrize(
    ("dtype", "shape", "index", "buffer", "passes"),
    [
        ("bfloat16", (32, 256), "w", (256,), False),
        ("bfloat16", (32, 256), "8", (256,), False),
        ("float32", (32, 256), "w", (256,), True),
        ("bfloat16", (1, 128), "0", (128,), False),
        ("bfloat16", (64, 256), "pl.ds(2 * w, 2)", (2, 256), True),
        ("int8", (64, 256), "pl.ds(2 * w, 2)", (2, 256), False),
        ("int8", (128, 256), "pl.ds(4 * w, 4)", (4, 256), True),
        ("bfloat16", (5, 256), "pl.ds(0, 3)", (3, 256), False),
        ("bfloat16", (5, 256), "pl.ds(2, 3)", (3, 256), True),
        ("int8", (5, 256), "pl.ds(2, 3)", (3, 256), False),
        ("bfloat16", (32, 1, 256), "w", (1, 256), True),
        ("bfloat16", (32, 1, 256), "(w, 0)", (256,), False),
        ("bfloat16", (32, 8, 256), "(w, pl.ds(0, 1))", (1, 256), False),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(100 * w, 100))", (8, 100), False),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(24 * w, 16))", (8, 16), False),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(24 * w, 8))", (8, 8), True),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(64 * w, 128))", (8, 128), False),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(64, 128))", (8, 128), True),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(96, 64))", (8, 64), True),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(32, 128))", (8, 128), False),
        ("float32", (8, 8192), "(pl.ds(0, 8), pl.ds(100, 56))", (8, 56), False),
        ("float32", (8, 120), "(pl.ds(0, 8), pl.ds(20 * (w % 5), 20))", (8, 20), True),
    ],
)
def test_parts_that_are_copied(
    dtype: str, shape: tuple[int, ...], index: str, buffer: tuple[int, ...], *, passes: bool
) -> None:
    found = copied(f"pltpu.sync_copy(x_hbm.at[{index}], buf)", shape, buffer, dtype)
    assert bool(found) is not passes, found


def test_ends_of_a_copy_at_an_index_of_the_subcore() -> None:
    assert copied("pltpu.sync_copy(x_hbm.at[w], buf)", (32, 64), (32,), "float32") == ["a copy of (64,) to (32,)"]


@pytest.mark.parametrize(
    ("dtype", "shape", "block", "index", "passes"),
    [
        ("float32", (64, 256), "(8, 64)", "i, j", True),
        ("float32", (64, 400), "(8, 100)", "i, j", False),
        ("float32", (64, 400), "(8, 100)", "i, 0", True),
        ("float32", (64, 768), "(8, 192)", "i, j", False),
        ("float32", (64, 320), "(8, 128)", "i, j", True),
        ("bfloat16", (16, 128), "(1, 128)", "i, 0", False),
        ("bfloat16", (32, 128), "(2, 128)", "i, 0", True),
        ("bfloat16", (32, 128), "(None, 128)", "i, 0", False),
        ("bfloat16", (32, 8, 128), "(None, 8, 128)", "i, 0, 0", True),
        ("int8", (32, 128), "(2, 128)", "i, 0", False),
        ("bfloat16", (2048,), "(128,)", "i,", False),
        ("bfloat16", (4096,), "(256,)", "i,", True),
    ],
)
def test_blocks_that_a_pipeline_copies(
    dtype: str, shape: tuple[int, ...], block: str, index: str, *, passes: bool
) -> None:
    body = f"""pltpu.emit_pipeline(
                lambda x: count.__setitem__(0, 1), grid=(8, 4),
                in_specs=[pl.BlockSpec({block}, lambda i, j: ({index}))], core_axis_name="s",
                dimension_semantics=(pltpu.PARALLEL, pltpu.ARBITRARY))(x_hbm)"""
    found = copied(body, shape, (8,), dtype)
    assert bool(found) is not passes, found
