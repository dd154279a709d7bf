"""Kernels on SparseCores are judged for the SparseCore of the target, and for nothing else."""

from __future__ import annotations

import json

import pytest

from pallas_lint.report.json import finding_document
from pallas_lint.testing import lint

KERNEL = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        mesh = plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s")

        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((8192, WIDTH), jnp.DTYPE),
            mesh=mesh,
            scratch_types=[pltpu.VMEM((ROWS, 128), jnp.float32), pltpu.VMEM((8,), jnp.int32)],
            compiler_params=pltpu.CompilerParams(PARAMS),
        )
        def kernel(x_hbm, o_hbm, buf, idx):
            BODY

        return kernel(jnp.zeros((8192, WIDTH), jnp.DTYPE))
"""
HALF = "buf[0, pl.ds(0, 8)]"


def on_subcores(
    body: str, target: str | None = "tpu:v6e", jax: str = "0.12.0.1", rows: int = 8, width: int = 256,
    dtype: str = "float32", params: str = "",
) -> list[tuple[str, str]]:  # fmt: skip
    """Codes and severities of the findings of rules on lowering and layout."""
    code = KERNEL.replace("BODY", body).replace("ROWS", str(rows)).replace("WIDTH", str(width))
    found = lint(code.replace("DTYPE", dtype).replace("PARAMS", params), jax, target)
    assert all(finding.core == "sparse" for finding in found if finding.backend is not None)
    return [(finding.code, finding.severity.value) for finding in found if finding.code[:4] in ("PAL1", "PAL2")]


@pytest.mark.parametrize("target", [None, "tpu", "tpu:v6e", "tpu:v6e/sc", "tpu:tpu7x"])
def test_what_lowers_on_a_subcore(target: str | None) -> None:
    assert on_subcores(f"{HALF} = jnp.exp({HALF})", target) == []
    found = on_subcores(f"{HALF} = lax.erf({HALF})", target)
    assert found == [("PAL101", "warning" if target is None else "error")] or found == [("PAL101", "error")]


@pytest.mark.parametrize("target", ["tpu:v5e", "tpu:v4", "triton"])
def test_targets_without_sparse_cores(target: str) -> None:
    assert [code for code, _ in on_subcores(f"{HALF} = lax.erf({HALF})", target) if code == "PAL101"] == []


def test_tensor_core_kernels_are_not_judged_for_sparse_cores() -> None:
    kernel = """
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import tpu as pltpu

        def kernel(x_ref, o_ref):
            o_ref[...] = jnp.cumsum(x_ref[...])

        def run(x):
            params = pltpu.CompilerParams()
            shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
            return pl.pallas_call(kernel, out_shape=shape, compiler_params=params)(x)
    """
    assert lint(kernel, "0.12.0.1", "tpu:v6e/sc", "PAL101") == []
    [finding] = lint(kernel, "0.12.0.1", "tpu:v6e/tc", "PAL101")
    assert json.loads(json.dumps(finding_document(finding)))["core"] == "tensor"


@pytest.mark.parametrize(
    ("rows", "target", "fits"),
    [(496, "tpu:v6e", True), (512, "tpu:v6e", False), (512, "tpu:tpu7x", True), (1024, "tpu", False)],
)
def test_memory_of_a_subcore(rows: int, target: str, fits: bool) -> None:
    """There is an index buffer beside the rows."""
    found = [code for code, _ in on_subcores(f"{HALF} = {HALF} * 2.0", target, rows=rows)]
    assert found == ([] if fits else ["PAL213"])


@pytest.mark.parametrize(
    ("start", "size", "width", "cut"),
    [
        ("0", 192, 512, True), ("64", 192, 512, True), ("320", 192, 512, True), ("0", 256, 512, False),
        ("1536", 1344, 2880, False), ("0", 2880, 2880, False), ("100", 29, 512, True), ("0", 64, 256, False),
        ("lax.axis_index('c')", 192, 512, True), ("lax.axis_index('c')", 1344, 2880, False),
    ],
)  # fmt: skip
def test_parts_of_rows(start: str, size: int, width: int, cut: bool) -> None:
    body = f"pltpu.sync_copy(x_hbm.at[pl.ds(0, 8), pl.ds({start}, {size})], buf)"
    assert on_subcores(body, width=width) == ([("PAL217", "error")] if cut else [])
    assert on_subcores(body, width=width, params="use_tc_tiling_on_sc=False") == []
    assert on_subcores(body, width=width, jax="0.10.1") == []


@pytest.mark.parametrize(
    ("width", "dtype", "refused"), [(128, "float32", False), (100, "float32", True), (128, "bfloat16", True)]
)
def test_rows_that_are_gathered(width: int, dtype: str, refused: bool) -> None:
    body = "pltpu.sync_copy(x_hbm.at[idx], buf)"
    assert on_subcores(body, width=width, dtype=dtype) == ([("PAL217", "error")] if refused else [])
    assert on_subcores(body, width=width, dtype=dtype, params="use_tc_tiling_on_sc=False") == []


@pytest.mark.parametrize("name", ["sum", "max", "min", "cumsum"])
def test_reductions_and_layout_passes(name: str) -> None:
    body = f"{HALF} = {HALF} * jnp.{name}({HALF})"
    assert on_subcores(body) == [("PAL217", "error")]
    assert on_subcores(body, params="needs_layout_passes=False") == []
    assert on_subcores(body, jax="0.9.2") == []


def test_loads_from_hbm() -> None:
    assert [code for code, _ in on_subcores(f"{HALF} = x_hbm[0, pl.ds(0, 8)]")] == ["PAL212"]
    assert on_subcores(f"o_hbm[0, pl.ds(0, 8)] = {HALF}") == [("PAL212", "error")]


def test_parameters_that_are_copied() -> None:
    body = f"{HALF} = jnp.cumsum({HALF})"
    changed = KERNEL.replace("CompilerParams(PARAMS)", "CompilerParams(needs_layout_passes=False).replace(PARAMS)")
    code = changed.replace("BODY", body).replace("ROWS", "8").replace("WIDTH", "128").replace("DTYPE", "float32")
    assert lint(code.replace("PARAMS", "use_tc_tiling_on_sc=True"), "0.12.0.1", "tpu:v6e", "PAL217") == []
