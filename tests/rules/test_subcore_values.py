"""Functions of values, accesses by indices and semaphores on SparseCores: each case was compiled or traced."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.sampling import by_day

VECTOR = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((512,), jnp.float32),
            mesh=plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", num_cores=2, num_subcores=16),
            scratch_types=[
                pltpu.VMEM((512,), jnp.float32), pltpu.VMEM((512,), jnp.int32), pltpu.VMEM((512,), jnp.bfloat16),
                pltpu.VMEM((512,), jnp.int16), pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA,
                pltpu.SemaphoreType.DMA((2,)), pltpu.SemaphoreType.REGULAR,
            ],
            compiler_params=pltpu.CompilerParams(needs_layout_passes=PASSES),
        )
        def kernel(x_hbm, table_hbm, o_hbm, f_ref, i_ref, h_ref, s_ref, wide, sem, sems, count):
            pltpu.sync_copy(x_hbm, f_ref)
            v = f_ref[pl.ds(0, 16)]
            n = i_ref[pl.ds(0, 16)]
            h = h_ref[pl.ds(0, 32)]
            s = s_ref[pl.ds(0, 32)]
            BODY
            pltpu.sync_copy(f_ref, o_hbm)

        return kernel(jnp.zeros((512,)), jnp.zeros((512, 128)))
"""
SCALAR = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((512,), jnp.float32),
            mesh=plsc.ScalarSubcoreMesh(axis_name="c", num_cores=2),
            scratch_types=[pltpu.SMEM((512,), jnp.float32), pltpu.SMEM((512,), jnp.int32)],
        )
        def kernel(x_hbm, n_hbm, o_hbm, f_ref, i_ref):
            pltpu.sync_copy(x_hbm, f_ref)
            pltpu.sync_copy(n_hbm, i_ref)
            a, i = f_ref[0], i_ref[0]
            BODY
            pltpu.sync_copy(f_ref, o_hbm)

        return kernel(jnp.zeros((512,)), jnp.zeros((512,), jnp.int32))
"""


def found(body: str, code: str = VECTOR, passes: bool = True, target: str = "tpu:tpu7x", jax: str = "0.12.0.1") -> str:
    """Codes of the errors in a kernel with this body."""
    findings = lint(code.replace("BODY", body).replace("PASSES", str(passes)), jax, target)
    return " ".join(sorted({finding.code for finding in findings if finding.severity.value == "error"} - {"PAL401"}))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("v * jnp.exp(v)[0]", ""), ("v * jnp.exp(v[0])", "PAL217"), ("v * jnp.sqrt(v[0])", "PAL217"),
        ("v * lax.rsqrt(v[0])", "PAL217"), ("v * jnp.tanh(v[0])", "PAL217"), ("v * jnp.log(v[0])", "PAL217"),
        ("v * (v[0] % 2.0)", "PAL217"), ("v * lax.rem(v, v)", ""), ("v * (n[0] % 3).astype(jnp.float32)", ""),
        ("v * (v[0] / v[1])", ""), ("v * jnp.maximum(v[0], v[1])", ""), ("jnp.full((16,), v[3])", ""),
        ("v * v[0].astype(jnp.bfloat16).astype(jnp.float32)", "PAL217"),
        ("v * v[0].astype(jnp.int32).astype(jnp.float32)", ""),
        ("v * v[lax.axis_index('s')]", "PAL217"), ("v.at[0].set(1.0)", "PAL217"),
        ("v[jnp.arange(16) ^ 1]", ""), ("v[::-1]", ""), ("v.reshape(2, 8).reshape(16)", ""),
        ("(v[:, None] * v[None, :])[0]", "PAL217"), ("jnp.outer(v, v)[0]", "PAL217"),
        ("jnp.repeat(v[0:8], 2)", "PAL217"), ("v.reshape(4, 4).T.reshape(16)", "PAL217"),
        ("lax.broadcasted_iota(jnp.int32, (2, 16), 1)[0].astype(jnp.float32)", "PAL217"),
        ("jnp.eye(16)[0]", "PAL217"), ("jnp.linspace(0.0, 1.0, 16)", "PAL217"), ("jnp.ones((16,))", ""),
        ("lax.scan(lambda a, b: (a + b, a), 0.0, v)[1]", "PAL217"),
        ("lax.scan(lambda a, _: (a * 2, None), v, None, length=3)[0]", ""),
        ("v ** 2", "PAL101"), ("(n ** 2).astype(jnp.float32)", "PAL101"), ("pltpu.reciprocal(v)", "PAL101"),
        ("jnp.round(v)", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("passes", [True, False])
def test_functions_of_numbers_and_vectors(value: str, code: str, passes: bool) -> None:
    assert found(f"f_ref[pl.ds(0, 16)] = {value}", passes=passes) == code


def test_rounding_needs_an_instruction() -> None:
    """Only v7x has it."""
    body = "f_ref[pl.ds(0, 8)] = jnp.round(f_ref[pl.ds(0, 8)])"
    assert [found(body, target=target) for target in ("tpu:v6e", "tpu:v5p", "tpu:tpu7x", "tpu")] == ["PAL217"] * 2 + [
        ""
    ] * 2


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("h_ref[pl.ds(0, 32)] = h * h", ""), ("h_ref[pl.ds(0, 32)] = jnp.exp(h)", ""),
        ("h_ref[pl.ds(0, 32)] = lax.rem(h, h + 1)", "PAL217"),
        ("f_ref[pl.ds(0, 16)] = v * h[3].astype(jnp.float32)", "PAL217"),
        ("h_ref[pl.ds(0, 32)] = jnp.where(h > 0, h, -h)", ""),
        ("f_ref[pl.ds(0, 16)] = jnp.where((v > 0) & (v < 3), v, -v)", ""),
        ("s_ref[pl.ds(0, 32)] = s + s", ""), ("s_ref[pl.ds(0, 32)] = s << 2", "PAL217"),
        ("s_ref[pl.ds(0, 32)] = jnp.abs(s)", "PAL217"), ("s_ref[pl.ds(0, 32)] = s // 3", "PAL217"),
        ("f_ref[pl.ds(0, 32)] = h.astype(jnp.float32)", ""), ("f_ref[pl.ds(0, 32)] = s.astype(jnp.float32)", "PAL217"),
        ("i_ref[pl.ds(0, 32)] = s.astype(jnp.int32)", ""), ("i_ref[pl.ds(0, 32)] = h.astype(jnp.int32)", "PAL217"),
        ("h_ref[pl.ds(0, 32)] = s.astype(jnp.bfloat16)", ""),
    ],
)  # fmt: skip
def test_packed_vectors(statement: str, code: str) -> None:
    assert found(statement) == code


@pytest.mark.parametrize("value", ["h.astype(jnp.float32)[:16]", "v * jnp.max(h).astype(jnp.float32)"])
def test_packed_vectors_without_layout_passes(value: str) -> None:
    assert "PAL217" in found(f"f_ref[pl.ds(0, 16)] = {value}", passes=False)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("a * 2.0", ""), ("jnp.exp(a)", "PAL217"), ("a % 2.0", "PAL217"), ("a / 3.0", "PAL217"), ("a / 2.0", ""),
        ("1.0 / a", "PAL217"), ("(i % 3).astype(jnp.float32)", ""), ("lax.div(i, 3).astype(jnp.float32)", ""),
        ("jnp.log(a)", "PAL101"), ("a.astype(jnp.bfloat16).astype(jnp.float32)", "PAL217"),
        ("i.astype(jnp.int8).astype(jnp.float32)", "PAL217"), ("(a > 0).astype(jnp.int8).astype(jnp.float32)", ""),
        ("(i ** 2).astype(jnp.float32)", "PAL101"),
    ],
)  # fmt: skip
def test_numbers_on_a_scalar_subcore(value: str, code: str) -> None:
    assert found(f"f_ref[1] = {value}", SCALAR) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("pltpu.bitcast(v, jnp.int32)", "PAL101"), ("pltpu.bitcast(v, jnp.int32, -2)", "PAL101"),
        ("pltpu.bitcast(v, jnp.int32, dim=-1)", ""), ("plsc.bitcast(v, jnp.int32)", ""),
        ("pltpu.bitcast(v.reshape(1, 16), jnp.int32)[0]", ""),
        ("lax.select_n(jnp.minimum(n, 2), n, n + 1, n * 2)", "PAL101"),
    ],
)  # fmt: skip
def test_bits_and_cases_of_a_vector(value: str, code: str) -> None:
    assert found(f"i_ref[pl.ds(0, 16)] = {value}") == code


NARROW = [
    ("h + g", "PAL217"), ("h + 3", "PAL217"), ("lax.mul(h, g)", "PAL217"), ("-h", "PAL217"), ("~h", "PAL217"),
    ("jnp.abs(h)", "PAL217"), ("h // 3", "PAL217"), ("lax.rem(h, g)", "PAL217"), ("h << 2", "PAL217"),
    ("h & g", "PAL217"), ("jnp.clip(h, 0, 3)", "PAL217"), ("h < g", "PAL217"), ("jnp.where(i > 0, h, g)", "PAL217"),
    ("lax.cond(i > 0, lambda: h + g, lambda: g)", "PAL217"), ("jnp.sign(h)", "PAL217"), ("h + i", ""), ("h", ""),
    ("h.astype(jnp.int32) + g.astype(jnp.int32)", ""), ("h.astype(jnp.int8)", ""), ("lax.max(h, h)", ""), ("h - h", ""),
    ("h + h", "PAL217"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int16", "int8", "uint16"])
@pytest.mark.parametrize(("value", "code"), by_day(NARROW))
def test_numbers_of_fewer_bits(value: str, code: str, dtype: str) -> None:
    """Of abs of unsigned numbers, which is nothing to do, this is not true."""
    made = f"h, g = i.astype(jnp.{dtype}), j.astype(jnp.{dtype})"
    code = "" if value == "jnp.abs(h)" and dtype == "uint16" else code
    assert found(f"j = i_ref[1]; {made}; i_ref[2] = ({value}).astype(jnp.int32)", SCALAR) == code
    body = f"i, j = n[0], n[1]; {made}; i_ref[pl.ds(0, 16)] = n + ({value}).astype(jnp.int32)"
    assert found(body) == code


def test_scalar_subcores_gather_nothing() -> None:
    assert found("pltpu.sync_copy(x_hbm.at[i_ref], f_ref)", SCALAR) == "PAL217"


INDICES = "i = lax.iota(jnp.int32, 16); "
LOADED = "f_ref[pl.ds(0, 16)] = plsc.load_gather"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (f"{LOADED}(wide, [i & 7, i])", ""), (f"{LOADED}(wide, [i & 7, i], mask=i > 3)", ""),
        (f"{LOADED}(wide, [i])", "PAL217"), (f"{LOADED}(wide, [0, i])", "PAL217"),
        (f"{LOADED}(f_ref, [i.astype(jnp.float32)])", "PAL217"), (f"{LOADED}(f_ref, [i])", ""),
        (f"{LOADED}(wide, [i[0:8], i])", "PAL217"), (f"{LOADED}(wide, [i & 7, i], mask=i)", "PAL217"),
        (f"{LOADED}(h_ref, [i]).astype(jnp.float32)", "PAL217"), (f"{LOADED}(table_hbm, [i, i])", "PAL212"),
        ("plsc.store_scatter(wide, [i & 7, i], v)", ""), ("plsc.store_scatter(o_hbm, [i], v)", "PAL212"),
        ("plsc.store_scatter(wide, [i & 7, i], i)", "PAL217"), ("plsc.addupdate(o_hbm.at[pl.ds(0, 16)], v)", "PAL212"),
        ("plsc.store_scatter(wide, [i & 7, i], f_ref[pl.ds(0, 32)])", "PAL217"),
        ("plsc.addupdate(f_ref.at[pl.ds(0, 16)], v)", ""), ("f_ref[pl.ds(0, 16)] = f_ref[pl.ds(0, 16, 2)]", "PAL217"),
        ("plsc.store_compressed(f_ref.at[pl.ds(0, 16)], v, mask=v > 0)", ""),
        ("plsc.store_compressed(f_ref.at[pl.ds(0, 16)], v, mask=v)", "PAL217"),
    ],
)  # fmt: skip
def test_accesses_by_indices_and_masks(statement: str, code: str) -> None:
    assert found(INDICES + statement) == code


ROWS = "wide.at[pl.ds(0, 8)]"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (f"pltpu.sync_copy(table_hbm.at[i_ref.at[pl.ds(0, 8)]], {ROWS})", ""),
        (f"pltpu.sync_copy(table_hbm.at[i_ref.at[pl.ds(0, 8)]], {ROWS}, add=True)", ""),
        (f"pltpu.sync_copy(table_hbm.at[s_ref.at[pl.ds(0, 8)]], {ROWS})", "PAL217"),
        (f"pltpu.sync_copy(table_hbm.at[pl.ds(0, 8), i_ref.at[pl.ds(0, 128)]], {ROWS})", "PAL217"),
        (f"pltpu.sync_copy(table_hbm.at[i_ref].at[pl.ds(0, 8)], {ROWS})", "PAL217"),
        (f"pltpu.async_copy(table_hbm.at[i_ref.at[pl.ds(0, 8)]], {ROWS}, sem).wait()", ""),
        (f"pltpu.async_copy(table_hbm.at[i_ref.at[pl.ds(0, 8)]], {ROWS}, None).wait()", "PAL217"),
        (f"pltpu.sync_copy({ROWS}, table_hbm.at[i_ref.at[pl.ds(0, 8)]], add=True)", "PAL217"),
        (f"pltpu.sync_copy(table_hbm.at[pl.ds(0, 8)], {ROWS}, add=True)", "PAL217"),
    ],
)
def test_indirect_copies(statement: str, code: str) -> None:
    assert found(statement) == code


COPY = "pltpu.async_copy(x_hbm, f_ref, {}).wait()"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (COPY.format("sem"), ""),
        (COPY.format("sems.at[1]"), ""),
        (COPY.format("count"), "PAL415"),
        ("pltpu.async_copy(x_hbm, f_ref, count); pl.semaphore_wait(count, 512)", ""),
        (COPY.format("sems"), "PAL415"),
        (COPY.format("sems.at[2]"), "PAL415"),
        ("pl.semaphore_signal(count, 1); pl.semaphore_wait(count, 1)", ""),
        ("pl.semaphore_signal(sem, 1); pl.semaphore_wait(sem, 1)", "PAL415"),
        ("pl.semaphore_wait(count, 1)", "PAL415"),
        ("pl.semaphore_signal(count, 1); pl.semaphore_wait(count, 2)", "PAL415"),
        ("pl.semaphore_signal(count, 1, core_index=0); pl.semaphore_wait(count, 2)", ""),
        ("pl.loop(0, 2)(lambda _: pl.semaphore_signal(count, 1)); pl.semaphore_wait(count, 2)", ""),
    ],
)
def test_semaphores(statement: str, code: str) -> None:
    assert found(statement) == code


def test_signals_that_nobody_waits_for() -> None:
    code = VECTOR.replace("BODY", "pl.semaphore_signal(count, 2); pl.semaphore_wait(count, 1)").replace(
        "PASSES", "True"
    )
    assert [each.severity.value for each in lint(code, "0.12.0.1", "tpu:v6e", "PAL415")] == ["warning"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("core_axis_name='s', dimension_semantics=(pltpu.PARALLEL,)", ""),
        ("core_axis_name=('c', 's'), dimension_semantics=(pltpu.PARALLEL,)", ""),
        ("core_axis_name='core', dimension_semantics=(pltpu.PARALLEL,)", "PAL217"),
        ("core_axis_name=('c', 's'), dimension_semantics=(pltpu.ARBITRARY,)", "PAL217"),
        ("core_axis_name='s'", "PAL217"), ("dimension_semantics=(pltpu.ARBITRARY,)", ""),
        ("core_axis_name='s', dimension_semantics=(pltpu.PARALLEL, pltpu.ARBITRARY)", "PAL217"),
    ],
)  # fmt: skip
def test_pipelines_that_subcores_share(options: str, code: str) -> None:
    blocks = "[pl.BlockSpec((64,), lambda i: (i,))]"
    body = f"pltpu.emit_pipeline(body, grid=(8,), in_specs={blocks}, out_specs={blocks}, {options})(x_hbm, o_hbm)"
    inner = "\n            ".join(["def body(x, o):", "    o[pl.ds(0, 16)] = x[pl.ds(0, 16)]", body])
    assert found(inner) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("lax.cond(i > 0, lambda: jnp.int16(1), lambda: jnp.int16(2))", "PAL217"),
        ("lax.cond(i > 0, lambda: jnp.int16(-1), lambda: jnp.int16(0))", "PAL217"),
        ("lax.cond(i > 0, lambda: jnp.int16(1), lambda: jnp.int16(0))", ""),
        ("lax.cond(i > 0, lambda: jnp.int32(1), lambda: jnp.int32(2))", ""),
        ("lax.cond(i > 0, lambda: i.astype(jnp.int16), lambda: jnp.int16(5))", ""),
        ("lax.cond(i > 0, lambda: jnp.bfloat16(1), lambda: jnp.bfloat16(0))", "PAL217"),
        ("lax.switch(i, [lambda: jnp.int16(1), lambda: jnp.int16(2), lambda: jnp.int16(3)])", "PAL217"),
        ("lax.switch(i, [lambda: i.astype(jnp.int16), lambda: (i + 1).astype(jnp.int16)])", ""),
    ],
)
def test_branches_that_give_narrow_numbers(value: str, code: str) -> None:
    """Compiled for v6e and v7x with jax 0.12.0.1: `'arith.select' op uses unsupported type 'i16'`."""
    assert found(f"i_ref[1] = {value}.astype(jnp.int32)", SCALAR) == code
    body = f"i = n[0]\n            i_ref[pl.ds(0, 16)] = n + {value}.astype(jnp.int32)"
    assert found(body) == code


BOTH = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run(x):
        def scalar(x_hbm, o_hbm):
            pass

        def vector(x_hbm, o_hbm):
            own = pl.ds((lax.axis_index("core") * 16 + lax.axis_index("subcore")) * 8, 8)
            BODY

        meshes = [
            plsc.ScalarSubcoreMesh(axis_name="core", num_cores=2),
            plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=2),
        ]
        return pl.kernel([scalar, vector], out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), mesh=meshes)(x)

    run(jnp.zeros((256, 128)))
"""


@pytest.mark.parametrize(
    ("body", "code"),
    [("pltpu.sync_copy(x_hbm.at[own], o_hbm.at[own])", ""), ("o_hbm[own] = x_hbm[own]", "PAL212")],
)
def test_two_kernels_of_a_launch(body: str, code: str) -> None:
    """One writes the output that the other leaves alone, and neither loads from HBM."""
    assert found(body, BOTH) == code
