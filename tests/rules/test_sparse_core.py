"""Kernels on SparseCores are judged for the SparseCore of the target, and for nothing else."""

from __future__ import annotations

import json

import pytest

from pallas_lint.report.json import finding_document
from pallas_lint.testing import fixed, lint

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
            scratch_types=[
                pltpu.VMEM((ROWS, 128), jnp.float32), pltpu.VMEM((8,), jnp.int32), pltpu.VMEM((8, WIDTH), jnp.DTYPE)
            ],
            compiler_params=pltpu.CompilerParams(PARAMS),
        )
        def kernel(x_hbm, o_hbm, buf, idx, whole):
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


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        ("jnp.floor(x)", "floor"), ("x ** 2", "integer_pow"), ("x ** x", "pow"), ("x * x", ""),
        ("jnp.floor(x.astype(jnp.int32)).astype(x.dtype)", ""),
    ],
)  # fmt: skip
def test_what_lowers_for_integers_only(value: str, missing: str) -> None:
    """The table knows of these functions that they lower for integers."""
    assert on_subcores(f"x = {HALF}; {HALF} = {value}", "tpu:v6e") == ([("PAL101", "error")] if missing else [])


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
    [(480, "tpu:v6e", True), (512, "tpu:v6e", False), (512, "tpu:tpu7x", True), (1024, "tpu", False)],
)
def test_memory_of_a_subcore(rows: int, target: str, fits: bool) -> None:
    """There are two small buffers beside the rows."""
    found = [code for code, _ in on_subcores(f"{HALF} = {HALF} * 2.0", target, rows=rows)]
    assert found == ([] if fits else ["PAL213"])


MEMORIES = """
    import functools
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        mesh = MESH

        @pl.kernel(out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32), mesh=mesh, scratch_types=[SCRATCH])
        def kernel(x_hbm, o_hbm, buf, *more):
            BODY

        return kernel(jnp.zeros((256, 128)))
"""
VECTORS = 'plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", num_cores=2, num_subcores=16)'
SCALARS = 'plsc.ScalarSubcoreMesh(axis_name="c", num_cores=2)'


def with_scratch(
    scratch: str, body: str = "pltpu.sync_copy(x_hbm, o_hbm)", target: str = "tpu:v6e", mesh: str = VECTORS
) -> list[str]:
    """Codes of the findings of rules on lowering and layout."""
    code = MEMORIES.replace("MESH", mesh).replace("SCRATCH", scratch).replace("BODY", body)
    return [finding.code for finding in lint(code, "0.12.0.1", target) if finding.code[:4] in ("PAL1", "PAL2")]


@pytest.mark.parametrize(
    ("scratch", "target", "mesh", "fits"),
    [
        ("pltpu.VMEM_SHARED((8192, 128), jnp.float32)", "tpu:v6e", VECTORS, True),
        ("pltpu.VMEM_SHARED((8193, 128), jnp.float32)", "tpu:v6e", VECTORS, False),
        ("pltpu.VMEM_SHARED((8193, 128), jnp.float32)", "tpu:v6e", SCALARS, False),
        ("pltpu.VMEM_SHARED((16384, 128), jnp.float32)", "tpu:tpu7x", VECTORS, True),
        ("pltpu.VMEM_SHARED((16384, 128), jnp.float32), pltpu.VMEM((8, 128), jnp.float32)", "tpu:v5p", VECTORS, False),
        ("pltpu.VMEM_SHARED((6144, 128), jnp.float32), pltpu.VMEM((128, 128), jnp.float32)", "tpu:v6e", VECTORS, True),
        ("pltpu.VMEM_SHARED((6145, 128), jnp.float32), pltpu.VMEM((128, 128), jnp.float32)", "tpu:v6e", VECTORS, False),
        ("pltpu.SMEM((1920,), jnp.int32)", "tpu:v6e", VECTORS, True),
        ("pltpu.SMEM((1921,), jnp.int32)", "tpu:v6e", VECTORS, False),
        ("pltpu.SMEM((8, 64), jnp.int32)", "tpu:v6e", VECTORS, True),
        ("pltpu.SMEM((9, 64), jnp.int32)", "tpu:v6e", VECTORS, False),
        ("pltpu.SMEM((2, 5, 64), jnp.int32)", "tpu:v6e", VECTORS, False),
        ("pltpu.SMEM((16256,), jnp.int32)", "tpu:v6e", SCALARS, True),
        ("pltpu.SMEM((16257,), jnp.int32)", "tpu:v6e", SCALARS, False),
    ],
)
def test_memories_of_a_sparse_core(scratch: str, target: str, mesh: str, fits: bool) -> None:
    """The VMEM of the subcores is a part of what they share."""
    assert with_scratch(scratch, target=target, mesh=mesh) == ([] if fits else ["PAL213"])


@pytest.mark.parametrize(("rows", "target", "fits"), [(128, "tpu:v6e", True), (256, "tpu:v6e", False)])
def test_pipelines_keep_two_of_each_block(rows: int, target: str, fits: bool) -> None:
    blocks = f"[pl.BlockSpec(({rows}, 128), lambda i: (i, 0))]"
    body = (
        f"pltpu.emit_pipeline(lambda x, o: None, grid=({256 // rows},), in_specs={blocks}, out_specs={blocks},"
        " core_axis_name='c', dimension_semantics=(pltpu.PARALLEL,))(x_hbm, o_hbm)"
    )
    assert with_scratch("pltpu.SMEM((8,), jnp.int32)", body, target) == ([] if fits else ["PAL213"])


@pytest.mark.parametrize(("rows", "fits"), [(256, True), (257, False)])
def test_buffers_of_scopes_count_beside_scratch(rows: int, fits: bool) -> None:
    body = f"pl.run_scoped(lambda more: pltpu.sync_copy(buf, more.at[0:256]), pltpu.VMEM(({rows}, 128), jnp.float32))"
    assert with_scratch("pltpu.VMEM((256, 128), jnp.float32)", body) == ([] if fits else ["PAL213"])


@pytest.mark.parametrize(
    ("scratch", "body", "code"),
    [
        ("pltpu.VMEM((8, 128), jnp.float32)", "buf[0, pl.ds(0, 8)] = buf[1, pl.ds(0, 8)] * buf[2, pl.ds(0, 8)][3]", ""),
        ("pltpu.VMEM((8, 128), jnp.float32)", "buf[0, pl.ds(0, 8)] = buf[1, pl.ds(0, 8)] * buf[2, 3]", "PAL211"),
        ("pltpu.VMEM((8, 128), jnp.float32)", "buf[0, 0] = 1.0", "PAL211"),
        ("pltpu.VMEM_SHARED((8, 128), jnp.float32)", "jnp.exp(buf[0, pl.ds(0, 8)])", "PAL212"),
        ("pltpu.SMEM((8,), jnp.int32)", "buf[0] = buf[1] + 1", ""),
        ("pltpu.SMEM((8,), jnp.int32)", "buf[...] = buf[...] + 1", "PAL211"),
    ],
)
def test_memories_that_are_loaded_from(scratch: str, body: str, code: str) -> None:
    assert set(with_scratch(scratch, body)) == ({code} if code else set())
    if "SMEM" in scratch:
        assert set(with_scratch(scratch, body, mesh=SCALARS)) == ({code} if code else set())


COPIED = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32),
            mesh=MESH,
            scratch_types=[
                pltpu.VMEM((64,), jnp.int32), pltpu.SMEM((64,), jnp.int32), pltpu.VMEM((2, 8), jnp.int32),
                pltpu.VMEM((16, 128), jnp.float32), pltpu.VMEM_SHARED((256, 100), jnp.float32),
                pltpu.VMEM((16, 100), jnp.float32), pltpu.VMEM_SHARED((64,), jnp.int32),
            ],
        )
        def kernel(x, numbers, wide, o, idx, smem, table, rows, shared, narrow, shared_numbers):
            BODY

        return kernel(jnp.zeros((256, 128)), jnp.zeros((64,), jnp.int32), jnp.zeros((256, 512)))
"""


@pytest.mark.parametrize(
    ("source", "target", "refused"),
    [
        ("x.at[idx.at[pl.ds(0, 16)]]", "rows", False),
        ("x.at[table.at[0]]", "rows.at[pl.ds(0, 8)]", False),
        ("x.at[table]", "rows", True),
        ("x.at[smem]", "rows", True),
        ("x.at[numbers]", "rows", True),
        ("x.at[pl.ds(0, 16)]", "rows.at[idx]", True),
        ("x.at[idx]", "o.at[pl.ds(0, 64)]", True),
        ("x.at[idx[pl.ds(0, 8)]]", "rows.at[pl.ds(0, 8)]", False),
        ("x.at[idx[pl.ds(0, 16)]]", "rows", True),
        ("x.at[plsc.Indices(idx.at[pl.ds(0, 16)], ignored_value=-1)]", "rows", False),
        ("x.at[plsc.Indices(smem, ignored_value=-1)]", "rows", True),
        ("shared.at[idx.at[pl.ds(0, 16)]]", "narrow", False),
        ("wide.at[idx.at[pl.ds(0, 16)], pl.ds(0, 128)]", "rows", False),
        ("wide.at[idx.at[pl.ds(0, 16)], pl.ds(0, 64)]", "rows.at[:, pl.ds(0, 64)]", True),
        ("rows", "o.at[idx.at[pl.ds(0, 16)]]", False),
        ("numbers", "smem", True),
        ("smem", "idx", True),
        ("shared_numbers", "smem", False),
        ("numbers", "idx", False),
        ("idx", "shared_numbers", False),
        ("x.at[pl.ds(0, 8)]", "rows", True),
        ("x.at[idx.at[pl.ds(0, 8)]]", "rows", True),
        ("numbers.at[pl.ds(0, 16)]", "rows.at[0, pl.ds(0, 16)]", True),
    ],
)
def test_ends_of_copies(source: str, target: str, refused: bool) -> None:
    """Compiled for v6e and v7x with jax 0.10.2 and 0.12.0.1."""
    code = COPIED.replace("MESH", VECTORS).replace("BODY", f"pltpu.sync_copy({source}, {target})")
    assert len(lint(code, "0.12.0.1", "tpu:v6e", "PAL217")) == refused


def test_scalar_subcores_copy_to_their_smem() -> None:
    body = "pltpu.sync_copy(x_hbm.at[0, pl.ds(0, 64)], buf)"
    assert with_scratch("pltpu.SMEM((64,), jnp.float32)", body, mesh=SCALARS) == []
    assert with_scratch("pltpu.SMEM((64,), jnp.float32)", body) == ["PAL217"]


@pytest.mark.parametrize(
    ("mesh", "target", "refused"),
    [
        (VECTORS, "tpu:v6e", False),
        (VECTORS.replace("num_cores=2", "num_cores=4"), "tpu:v6e", True),
        (VECTORS.replace("num_cores=2", "num_cores=4"), "tpu:v5p", False),
        (VECTORS.replace("num_cores=2", "num_cores=4"), "tpu", False),
        (VECTORS.replace("num_cores=2", "num_cores=8"), "tpu", True),
        (VECTORS.replace("num_subcores=16", "num_subcores=32"), "tpu:tpu7x", True),
        (VECTORS.replace("num_subcores=16", "num_subcores=1"), "tpu:tpu7x", False),
        (SCALARS, "tpu:v5p", True),
        (SCALARS, "tpu", False),
        (SCALARS.replace("num_cores=2", "num_cores=4"), "tpu:v5p", False),
        (SCALARS.replace("num_cores=2", "num_cores=3"), "tpu:tpu7x", True),
    ],
)
def test_meshes_of_more_cores_than_there_are(mesh: str, target: str, refused: bool) -> None:
    found = with_scratch("pltpu.SMEM((8,), jnp.int32)", target=target, mesh=mesh)
    assert found == (["PAL217"] if refused else [])


def test_pipelines_need_the_vmem_of_a_vector_subcore() -> None:
    blocks = "[pl.BlockSpec((8, 128), lambda i: (i, 0))]"
    body = f"pltpu.emit_pipeline(lambda x, o: None, grid=(32,), in_specs={blocks}, out_specs={blocks})(x_hbm, o_hbm)"
    assert with_scratch("pltpu.SMEM((8,), jnp.int32)", body) == []
    assert with_scratch("pltpu.SMEM((8,), jnp.int32)", body, mesh=SCALARS) == ["PAL217"]


def test_operands_of_a_pipeline_that_lie_in_vmem() -> None:
    code = """
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import tpu as pltpu

        def run():
            def kernel(x_ref, o_ref):
                def body(x, o):
                    o[...] = x[...]

                blocks = [pl.BlockSpec((8, 128), lambda i: (i, 0))]
                pltpu.emit_pipeline(body, grid=(4,), in_specs=blocks, out_specs=blocks)(x_ref, o_ref)

            return pl.pallas_call(
                kernel,
                out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                in_specs=[pl.BlockSpec(SPACE)],
                out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
                compiler_params=pltpu.CompilerParams(kernel_type=pltpu.KernelType.SC_VECTOR_SUBCORE),
            )(jnp.zeros((32, 128)))
    """
    assert len(lint(code.replace("SPACE", ""), "0.9.2", "tpu:tpu7x", "PAL217")) == 1
    assert lint(code.replace("SPACE", "memory_space=pltpu.HBM"), "0.9.2", "tpu:tpu7x", "PAL217") == []


def test_scalar_subcores_have_no_vmem_and_no_barrier() -> None:
    assert with_scratch("pltpu.VMEM((8,), jnp.int32)", mesh=SCALARS) == ["PAL217"]
    assert with_scratch("pltpu.SMEM((8,), jnp.int32)", "plsc.subcore_barrier()", mesh=SCALARS) == ["PAL217"]
    assert with_scratch("pltpu.SMEM((8,), jnp.int32)", "plsc.subcore_barrier()") == []


@pytest.mark.parametrize(
    ("target", "dtype", "index", "passes", "refused"),
    [
        ("tpu:v6e", "float32", "0, pl.ds(0, 8)", "False", False),
        ("tpu:v6e", "float32", "0, pl.ds(0, 16)", "False", True),
        ("tpu:v6e", "float32", "0, pl.ds(0, 16)", "True", False),
        ("tpu:v6e", "float32", "0, pl.ds(0, 16)", "FLAG", False),
        ("tpu:tpu7x", "float32", "0, pl.ds(0, 8)", "False", True),
        ("tpu:tpu7x", "float32", "0, pl.ds(0, 16)", "False", False),
        ("tpu", "float32", "0, pl.ds(0, 16)", "False", False),
        ("tpu", "float32", "0, pl.ds(0, 32)", "False", True),
        ("tpu:v6e", "bfloat16", "0, pl.ds(0, 8)", "False", True),
        ("tpu:v6e", "bfloat16", "pl.ds(0, 2), pl.ds(0, 8)", "False", False),
        ("tpu:tpu7x", "bfloat16", "pl.ds(0, 2), pl.ds(0, 16)", "False", False),
        ("tpu:v6e", "int8", "pl.ds(0, 4), pl.ds(0, 8)", "False", False),
        ("tpu:v6e", "int8", "pl.ds(0, 2), pl.ds(0, 8)", "False", True),
    ],
)
def test_registers_without_layout_passes(target: str, dtype: str, index: str, passes: str, refused: bool) -> None:
    code = MEMORIES.replace("MESH", VECTORS).replace("SCRATCH", f"pltpu.VMEM((8, 128), jnp.{dtype})")
    code = code.replace("mesh=mesh", f"mesh=mesh, compiler_params=pltpu.CompilerParams(needs_layout_passes={passes})")
    found = lint(
        code.replace("BODY", f"buf[{index}] = -buf[{index}]").replace("run()", "run(FLAG)"), "0.12.0.1", target
    )
    assert ("PAL217" in [finding.code for finding in found]) is refused


@pytest.mark.parametrize(
    ("shape", "dtype", "index", "target", "refused"),
    [
        ("2048,", "bfloat16", "pl.ds(8 * i, 8)", "tpu:v6e", False),
        ("2048,", "bfloat16", "pl.ds(8 * i, 8)", "tpu:tpu7x", True),
        ("2048,", "bfloat16", "pl.ds(16 * i, 16)", "tpu:v6e", True),
        ("2048,", "bfloat16", "pl.ds(16 * i, 16)", "tpu:tpu7x", False),
        ("2048,", "bfloat16", "pl.ds(16 * i, 16)", "tpu", False),
        ("2048,", "bfloat16", "pl.ds(256 * i, 256)", "tpu:v6e", False),
        ("2048,", "bfloat16", "pl.ds(32 * i, 32)", "tpu", True),
        ("2048,", "int8", "pl.ds(8 * i, 8)", "tpu:v6e", False),
        ("2048,", "int8", "pl.ds(32 * i, 32)", "tpu:v6e", True),
        ("2048,", "float32", "pl.ds(4 * i, 32)", "tpu:v6e", False),
        ("32, 256", "float32", "i, pl.ds(0, 16)", "tpu:v6e", False),
        ("32, 256", "float32", "0, pl.ds(8 * i, 16)", "tpu:v6e", False),
        ("32, 256", "float32", "0, pl.ds(8 * i, 16)", "tpu:tpu7x", True),
        ("32, 128", "float32", "0, pl.ds(8 * i, 16)", "tpu:tpu7x", False),
        ("32, 128", "bfloat16", "0, pl.ds(4 * i, 16)", "tpu:tpu7x", False),
        ("32, 192", "float32", "0, pl.ds(8 * i, 16)", "tpu:tpu7x", True),
        ("32, 256", "bfloat16", "i, pl.ds(0, 16)", "tpu:v6e", True),
        ("32, 256", "bfloat16", "i", "tpu:v6e", True),
        ("32, 256", "bfloat16", "2 * i, pl.ds(0, 16)", "tpu:v6e", False),
        ("32, 256", "bfloat16", "pl.ds(2 * i, 2), pl.ds(0, 16)", "tpu:v6e", False),
        ("32, 256", "bfloat16", "3, pl.ds(16 * i, 16)", "tpu:v6e", False),
        ("4, 8, 256", "bfloat16", "i, 0, pl.ds(0, 16)", "tpu:v6e", False),
        ("4, 8, 256", "bfloat16", "0, i, pl.ds(0, 16)", "tpu:v6e", True),
    ],
)
def test_indices_that_move(shape: str, dtype: str, index: str, target: str, refused: bool) -> None:
    """Compiled for v6e and v7x with jax 0.10.2 and 0.12.0.1; the older one takes no packed vectors at all."""
    loop = f"@pl.loop(0, 4)\n            def _(i):\n                buf[{index}] = buf[{index}] * 2"
    scratch = f"pltpu.VMEM(({shape}), jnp.{dtype})"
    assert set(with_scratch(scratch, loop, target)) == ({"PAL217"} if refused else set())
    code = MEMORIES.replace("MESH", VECTORS).replace("SCRATCH", scratch).replace("BODY", loop)
    untiled = code.replace("mesh=mesh,", "mesh=mesh, compiler_params=pltpu.CompilerParams(use_tc_tiling_on_sc=False),")
    assert lint(untiled, "0.12.0.1", target, "PAL217") == []


@pytest.mark.parametrize(
    ("index", "refused"),
    [
        ("pl.ds(0, 8), 3", True), (":, 3", True), ("3, pl.ds(0, 8)", False), ("pl.ds(3, 1), 3", False),
        (":, pl.ds(0, 8)", False),
    ],
)  # fmt: skip
def test_elements_behind_a_slice(index: str, refused: bool) -> None:
    found = with_scratch("pltpu.VMEM((8, 128), jnp.float32)", f"buf[{index}] = buf[{index}] * 2.0")
    assert ("PAL217" in found) is refused


def test_steps_of_loops_count() -> None:
    loop = (
        "@pl.loop(0, 2048, step=STEP)\n            def _(i):\n"
        "                buf[pl.ds(i, STEP)] = -buf[pl.ds(i, STEP)]"
    )
    for step, found in ((8, set()), (16, {"PAL217"})):
        body = loop.replace("STEP", str(step))
        assert set(with_scratch("pltpu.VMEM((2048,), jnp.bfloat16)", body)) == found


@pytest.mark.parametrize(
    ("value", "target", "refused"),
    [
        ("lax.iota(jnp.int32, 8)", "tpu:v6e", False),
        ("lax.iota(jnp.int32, 16)", "tpu:v6e", True),
        ("lax.iota(jnp.float32, 16)", "tpu:tpu7x", True),
        ("jnp.arange(16)", "tpu:tpu7x", False),
        ("jnp.sort(buf[0, pl.ds(0, 16)])", "tpu:v6e", True),
        ("jnp.sort(buf[0, pl.ds(0, 16)])", "tpu:tpu7x", False),
        ("plsc.sort_key_val(buf[0, pl.ds(0, 16)], buf[0, pl.ds(0, 16)])[0]", "tpu:v6e", True),
        ("jnp.concatenate([buf[0, pl.ds(0, 8)], buf[1, pl.ds(0, 8)]])", "tpu:tpu7x", True),
        ("jnp.roll(buf[0, pl.ds(0, 16)], 1)", "tpu:tpu7x", True),
    ],
)
def test_vectors_of_one_register(value: str, target: str, refused: bool) -> None:
    body = f"buf[0, pl.ds(0, 16)] = {value}.astype(jnp.float32)"
    found = with_scratch("pltpu.VMEM((8, 128), jnp.float32)", body, target)
    assert found == (["PAL217"] if refused else [])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("", "compiler_params=pltpu.CompilerParams(needs_layout_passes=False)"),
        ("compiler_params=pltpu.CompilerParams(),", "pltpu.CompilerParams(needs_layout_passes=False)"),
        (
            "compiler_params=pltpu.CompilerParams(use_tc_tiling_on_sc=False),",
            "pltpu.CompilerParams(use_tc_tiling_on_sc=False, needs_layout_passes=False)",
        ),
        (
            "compiler_params=pltpu.CompilerParams(needs_layout_passes=True),",
            "pltpu.CompilerParams(needs_layout_passes=False)",
        ),
        ("compiler_params=PARAMS,", ""),
    ],
)
def test_layout_passes_are_turned_off(params: str, expected: str) -> None:
    code = MEMORIES.replace("MESH", VECTORS).replace("SCRATCH", "pltpu.VMEM((8, 128), jnp.float32)")
    body = "buf[0, pl.ds(0, 16)] = jnp.cumsum(buf[0, pl.ds(0, 16)])"
    code = code.replace("mesh=mesh,", f"mesh=mesh, {params}").replace("BODY", body)
    after = fixed(code, "0.12.0.1", "tpu:tpu7x", "PAL217")
    assert expected in after if expected else "needs_layout_passes" not in after
    assert lint(after, "0.12.0.1", "tpu:tpu7x", "PAL217") == [] or not expected
    # On v6e a register has 8 numbers: without layout passes the load would be refused instead.
    assert "needs_layout_passes=False" not in fixed(code, "0.12.0.1", "tpu:v6e", "PAL217")


@pytest.mark.parametrize(
    ("start", "size", "width", "cut"),
    [
        ("0", 192, 512, True), ("64", 192, 512, True), ("320", 192, 512, True), ("0", 256, 512, False),
        ("1536", 1344, 2880, False), ("0", 2880, 2880, False), ("100", 29, 512, True), ("0", 64, 256, False),
        ("lax.axis_index('c')", 192, 512, True), ("lax.axis_index('c')", 1344, 2880, True),
    ],
)  # fmt: skip
def test_parts_of_rows(start: str, size: int, width: int, cut: bool) -> None:
    part = f"at[pl.ds(0, 8), pl.ds({start}, {size})]"
    body = f"pltpu.sync_copy(x_hbm.{part}, o_hbm.{part})"
    assert on_subcores(body, width=width) == ([("PAL217", "error")] if cut else [])
    assert on_subcores(body, width=width, params="use_tc_tiling_on_sc=False") == []
    assert on_subcores(body, width=width, jax="0.10.1") == []


ONE_DIMENSION = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run(unknown):
        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((WIDTH,), jnp.DTYPE),
            mesh=plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s"),
            scratch_types=[pltpu.VMEM((SIZE,), jnp.DTYPE)],
            compiler_params=pltpu.CompilerParams(PARAMS),
        )
        def kernel(x_hbm, o_hbm, part):
            pltpu.sync_copy(x_hbm.at[pl.ds(START, SIZE)], part)

        return kernel(jnp.zeros((WIDTH,), jnp.DTYPE))
"""


# Each was compiled for v5p, v6e or v7x, but for those at a place that the text does not have.
@pytest.mark.parametrize(
    ("dtype", "width", "start", "size", "refused"),
    [
        ("bfloat16", 4096, "0", 128, True), ("bfloat16", 4096, "0", 256, False), ("bfloat16", 4096, "0", 384, True),
        ("bfloat16", 4096, "128", 256, True), ("bfloat16", 4096, "512", 1024, False), ("int16", 8192, "0", 128, True),
        ("bfloat16", 1000, "768", 232, False), ("bfloat16", 200, "128", 72, True), ("bfloat16", 200, "0", 200, False),
        ("bfloat16", 64, "0", 16, True), ("float16", 8192, "0", 128, True), ("int8", 8192, "0", 256, True),
        ("int8", 8192, "512", 512, False), ("int8", 8192, "256", 512, True), ("uint8", 8192, "7680", 512, False),
        ("float8_e4m3fn", 8192, "0", 256, True), ("float8_e4m3fn", 8192, "512", 512, False),
        ("bfloat16", 4096, "lax.axis_index('s') * 128", 128, True), ("float32", 4096, "4", 8, False),
        ("bfloat16", 4096, "lax.axis_index('s') * 128", 256, True),
        ("bfloat16", 8192, "lax.axis_index('s') * 256", 256, False),
        ("bfloat16", 16384, "(lax.axis_index('c') * 16 + lax.axis_index('s')) * 128", 256, True),
        ("bfloat16", 16384, "(lax.axis_index('c') * 16 + lax.axis_index('s')) * 256", 256, False),
        ("bfloat16", 16384, "pl.multiple_of(lax.axis_index('s') * 128, 256)", 256, False),
        ("bfloat16", 4096, "unknown", 128, True), ("bfloat16", 4096, "unknown", 256, False),
        ("bfloat16", 1000, "unknown", 232, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["tpu:v5p", "tpu:v6e", "tpu:tpu7x"])
def test_parts_of_packed_arrays(dtype: str, width: int, start: str, size: int, target: str, refused: bool) -> None:
    code = ONE_DIMENSION.replace("DTYPE", dtype).replace("WIDTH", str(width)).replace("START", start)
    code = code.replace("SIZE", str(size))
    found = [finding.severity.value for finding in lint(code.replace("PARAMS", ""), "0.12.0.1", target, "PAL217")]
    assert found == (["error"] if refused else [])
    assert lint(code.replace("PARAMS", "use_tc_tiling_on_sc=False"), "0.12.0.1", target, "PAL217") == []


@pytest.mark.parametrize(
    ("width", "dtype", "refused"), [(128, "float32", False), (100, "float32", True), (128, "bfloat16", True)]
)
def test_rows_that_are_gathered(width: int, dtype: str, refused: bool) -> None:
    body = "pltpu.sync_copy(x_hbm.at[idx], whole)"
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


SHARED = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32),
            mesh=plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", num_cores=1, num_subcores=16),
            scratch_types=[
                pltpu.VMEM_SHARED((256, 128), jnp.float32), pltpu.VMEM((16, 128), jnp.float32),
                pltpu.SemaphoreType.REGULAR,
            ],
        )
        def kernel(x_hbm, o_hbm, shared, rows, free):
            s = lax.axis_index("s")
            own = pl.ds(s * 16, 16)
            BODY
            pltpu.sync_copy(rows, o_hbm.at[own])

        return kernel(jnp.zeros((256, 128)))
"""
OWN = "pltpu.sync_copy(rows, shared.at[own])"
MIRRORED = "pltpu.sync_copy(shared.at[pl.ds((15 - s) * 16, 16)], rows)"
BARRIER = "plsc.subcore_barrier()"


@pytest.mark.parametrize(
    ("body", "meets"),
    [
        ((OWN, BARRIER, MIRRORED), False),
        ((OWN, MIRRORED), True),
        ((OWN, "pltpu.sync_copy(shared.at[own], rows)"), False),
        ((OWN, BARRIER, MIRRORED, BARRIER, OWN), False),
        ((OWN, BARRIER, MIRRORED, OWN), True),  # what another subcore still reads is written
        (("pl.when(s == 0)(lambda: pltpu.sync_copy(x_hbm, shared))", BARRIER, MIRRORED), False),
        (("pl.when(s == 0)(lambda: pltpu.sync_copy(x_hbm, shared))", MIRRORED), True),
        (("pl.when(s == 0)(lambda: pltpu.sync_copy(x_hbm.at[0:16], shared.at[0:16]))", MIRRORED), True),
        (
            (
                "pl.when(s == 15)(lambda: pltpu.sync_copy(x_hbm.at[pl.ds(0, 16)], shared.at[pl.ds(0, 16)]))",
                "pl.when(s == 15)(lambda: pltpu.sync_copy(shared.at[pl.ds(0, 16)], rows))",
            ),
            False,
        ),
        ((OWN, "pl.semaphore_wait(free, 1)", MIRRORED), False),
    ],
)
def test_barriers_between_subcores(body: tuple[str, ...], meets: bool) -> None:
    code = SHARED.replace("BODY", "\n            ".join(body))
    assert len(lint(code, "0.12.0.1", "tpu:v6e", "PAL422")) == meets


@pytest.mark.parametrize(
    ("condition", "stuck"), [("s < 8", True), ("s < 16", False), ('lax.axis_index("c") == 0', False), ("FLAG", False)]
)
def test_barriers_that_some_subcores_do_not_come_to(condition: str, stuck: bool) -> None:
    code = SHARED.replace("BODY", f"pl.when({condition})(lambda: plsc.subcore_barrier())").replace("run()", "run(FLAG)")
    assert len(lint(code, "0.12.0.1", "tpu:v6e", "PAL422")) == stuck


@pytest.mark.parametrize(
    ("mesh", "start", "target", "leaves"),
    [
        ("num_cores=2", '(lax.axis_index("c") * 16 + lax.axis_index("s")) * 8', "tpu:v6e", False),
        ("num_cores=2", '(lax.axis_index("c") * 16 + lax.axis_index("s")) * 16', "tpu:v6e", True),
        ("num_cores=1", '(lax.axis_index("c") * 16 + lax.axis_index("s")) * 16', "tpu:v6e", False),
        ("num_subcores=16", '(lax.axis_index("c") * 16 + lax.axis_index("s")) * 8', "tpu:v6e", False),
        ("num_subcores=16", '(lax.axis_index("c") * 16 + lax.axis_index("s")) * 9', "tpu:v5p", True),
        ("num_cores=CORES", '(lax.axis_index("c") * 16 + lax.axis_index("s")) * 16', "tpu:v6e", False),
    ],
)
def test_slices_past_the_end_on_some_subcore(mesh: str, start: str, target: str, leaves: bool) -> None:
    """A mesh that leaves its size to the chip has at least 2 cores."""
    made = f'plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", {mesh})'
    code = MEMORIES.replace("MESH", made).replace("SCRATCH", "pltpu.VMEM((8, 128), jnp.float32)")
    code = code.replace("BODY", f"pltpu.sync_copy(x_hbm.at[pl.ds({start}, 8)], buf)").replace("run()", "run(CORES)")
    assert len(lint(code, "0.12.0.1", target, "PAL412")) == leaves
    guarded = code.replace("pltpu.sync_copy(", f"pl.when({start} < 249)(lambda: pltpu.sync_copy(").replace(
        "buf)", "buf))"
    )
    assert lint(guarded, "0.12.0.1", target, "PAL412") == []


@pytest.mark.parametrize(
    ("index", "found"),
    [
        ('lax.axis_index("s")', []),
        ('lax.axis_index("subcore")', ["PAL504"]),
        ('lax.axis_index(("c", "s"))', []),
        ("pl.program_id(0)", ["PAL504"]),
    ],
)
def test_indices_of_subcores_are_those_of_the_mesh(index: str, found: list[str]) -> None:
    code = SHARED.replace("BODY", f"pltpu.sync_copy(x_hbm.at[pl.ds({index} * 8, 16)], rows)")
    assert [each.code for each in lint(code, "0.12.0.1", "tpu:v6e", "PAL504")] == found


def test_an_axis_of_a_shard_map_around_the_kernel() -> None:
    code = SHARED.replace("BODY", 'lax.axis_index("x")').replace(
        "return kernel(", "return jax.shard_map(kernel, mesh=M)("
    )
    assert lint(code, "0.12.0.1", "tpu:v6e", "PAL504") == []


GATHERED = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run(x, index):
        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
            mesh=plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", num_cores=2, num_subcores=16),
            scratch_types=[
                pltpu.VMEM((64,), jnp.int32), pltpu.VMEM((64, 128), jnp.float32), pltpu.SemaphoreType.DMA
            ],
        )
        def kernel(x_hbm, index_hbm, o_hbm, places, rows, sem):
            pltpu.sync_copy(index_hbm, places)
            BODY
            pltpu.sync_copy(rows, o_hbm)

        return kernel(x, index)

    run(jnp.ones((512, 128)), jnp.zeros((64,), jnp.int32))
"""
GATHER = "copy = pltpu.async_copy(x_hbm.at[places], rows, sem)"
SCATTER = "copy = pltpu.async_copy(rows, o_hbm.at[places], sem)"
DOUBLED = "rows[0, pl.ds(0, 16)] = rows[0, pl.ds(0, 16)] * 2.0"
MOVED = "places[pl.ds(0, 16)] = places[pl.ds(0, 16)] + 1"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ((GATHER, DOUBLED, "copy.wait()"), 2),
        ((GATHER, "copy.wait()", DOUBLED), 0),
        ((GATHER, MOVED, "copy.wait()"), 1),  # their numbers may be read while they are copied, and not be written
        ((GATHER, "copy.wait()", MOVED), 0),
        (("rows[...] = jnp.zeros_like(rows)", SCATTER, DOUBLED, "copy.wait()"), 1),
        (("rows[...] = jnp.zeros_like(rows)", SCATTER, "copy.wait()", DOUBLED), 0),
    ],
)
def test_rows_that_are_touched_while_they_are_gathered(body: tuple[str, ...], count: int) -> None:
    code = GATHERED.replace("BODY", "\n            ".join(body))
    found = lint(code, "0.12.0.1", "tpu:tpu7x", "PAL422")
    assert len(found) == count, found
