"""PAL209: indices that are arrays, floats, lists, or too many; where each fails, as measured."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, lint
from tests.rules.kernels import launch
from tests.rules.test_sparse_core import HALF, on_subcores

CODE = "PAL209"
_BODY = "i = pl.program_id(0)\nrows = lax.broadcasted_iota(jnp.int32, (16, 128), 0)\n"


def found(line: str, backend: str | None = "tpu", jax: str = "0.12.0.1", extra: str = "grid=(4,), ") -> set[Severity]:
    code = launch(_BODY + line, backend, extra=extra, operand="jnp.ones((16, 128))")
    return {finding.severity for finding in lint(code, jax, select=CODE)}


ARRAYS = [
    "o_ref[...] = x_ref[jnp.arange(16)]",
    "o_ref[...] = x_ref[jnp.arange(16), :]",
    "o_ref[...] = x_ref[jnp.arange(16)[:, None], jnp.arange(128)[None, :]]",
    "o_ref[...] = x_ref[rows, rows]",
    "o_ref[...] = x_ref[i * 16 + jnp.arange(16)]",
    "o_ref[jnp.arange(16)] = x_ref[...]",
    "o_ref[...] = x_ref.at[jnp.arange(16)][...]",
    "o_ref[...] = pl.load(x_ref, (jnp.arange(16), slice(None)))",
    "o_ref[jnp.arange(16)] += 1.0",
]


@pytest.mark.parametrize("line", ARRAYS)
def test_arrays(line: str) -> None:
    assert found(line) == {Severity.ERROR}
    assert found(line, jax="0.4.35") == {Severity.ERROR}
    assert found(line, "triton") == set()
    assert found(line, None) == {Severity.INFO}


@pytest.mark.parametrize(
    "line",
    [
        "o_ref[...] = x_ref[i.astype(jnp.float32)]",
        "o_ref[...] = x_ref[i / 2]",
        "o_ref[...] = x_ref[2.0]",
        "o_ref[0:8] = x_ref[pl.ds(i / 2 * 8, 8)]",
        "n = x_ref.shape[0] / 2\no_ref[...] = x_ref[n]",
    ],
)
def test_floats(line: str) -> None:
    assert found(line) == {Severity.ERROR}
    assert found(line, "triton") == set()


@pytest.mark.parametrize(
    "line",
    [
        "o_ref[0:8] = x_ref[pl.ds(0, 16 / 2)]",
        "o_ref[...] = x_ref[[0, 1]]",
        "o_ref[...] = x_ref[0, 0, 0]",
        "o_ref[...] = x_ref[0, :, :]",
        "o_ref[0, :, :] = x_ref[...]",
        "o_ref[...] = x_ref.at[0, 0, 0][...]",
        "o_ref[...] = x_ref[0, ..., 0, 0]",
        "o_ref[...] = x_ref[0][...][0] + x_ref.at[0][0, 0]",
        "o_ref[...] = x_ref[..., ...]",
        "o_ref[...] = x_ref[:, None, :]",
    ],
)
@pytest.mark.parametrize("backend", ["tpu", "triton", None])
def test_wherever(line: str, backend: str | None) -> None:
    assert Severity.ERROR in found(line, backend)


@pytest.mark.parametrize(
    "line",
    [
        "o_ref[...] = x_ref[i]",
        "o_ref[...] = x_ref[i, 0:64]",
        "o_ref[...] = x_ref[i // 2]",
        "o_ref[...] = x_ref[jnp.argmax(x_ref[0])]",
        "o_ref[...] = x_ref[jnp.max(rows)]",
        "o_ref[...] = x_ref[pl.ds(i * 8, 8), :]",
        "o_ref[...] = x_ref[..., 0]",
        "o_ref[...] = x_ref[()]",
        "o_ref[...] = x_ref[...][:, None]",
        "o_ref[0, 0] = x_ref[0, 0]",
        "o_ref[0:4] = x_ref[2 : 2 + 4]",
    ],
)
def test_fine(line: str) -> None:
    assert found(line) == set()


@pytest.mark.parametrize(("indices", "flagged"), [("rows", False), ("rows[:, :1]", True), ("rows[:, :8]", True)])
def test_take_along_axis(indices: str, flagged: bool) -> None:
    line = f"o_ref[...] = jnp.take_along_axis(x_ref[...], {indices}, axis=1)"
    assert found(line) == ({Severity.ERROR} if flagged else set())
    assert found(line, "tpu", "0.4.35") == set()  # there it is PAL101's


def test_indices_of_unknown_shape() -> None:
    body = "o_ref[...] = x_ref[i_ref[...] // 2]\no_ref[0] = x_ref[i_ref[pl.program_id(0)]]\no_ref[1] = x_ref[s_ref[0]]"
    code = launch(body, operand="x, x, x").replace("(x_ref, o_ref)", "(x_ref, i_ref, s_ref, o_ref)")
    code = code.replace("kernel, comp", "kernel, in_specs=[pl.BlockSpec(), pl.BlockSpec(), SMEM], comp")
    code = code.replace("\n\n\ndef run", "\n\n\nSMEM = pl.BlockSpec(memory_space=pltpu.SMEM)\n\n\ndef run")
    findings = lint(code, select=CODE)
    assert [finding.severity for finding in findings] == [Severity.WARNING, Severity.WARNING]
    assert all("loaded from VMEM" in finding.message and "SMEM" in (finding.help or "") for finding in findings)
    # A number at a constant offset compiles; a row does not.
    for index, severities in (("0", [Severity.WARNING, Severity.INFO]), ("0, 0", [Severity.WARNING])):
        findings = lint(code.replace("i_ref[pl.program_id(0)]", f"i_ref[{index}]"))
        assert [finding.severity for finding in findings if finding.code == CODE] == severities


@pytest.mark.parametrize(
    ("index", "flagged"),
    [("i_ref[0] / 2", True), ("i_ref[0] * 0.5", True), ("i_ref[0] // 2", False), ("i_ref[0] * s_ref[0]", False)],
)
def test_a_float_whatever_the_operand(index: str, flagged: bool) -> None:
    """A quotient is a float, whatever is divided; a product may be either."""
    specs = "in_specs=[pl.BlockSpec(), SMEM, SMEM], "
    code = launch(f"o_ref[...] = x_ref[{index}]", operand="x, y, z", extra=specs)
    code = code.replace("(x_ref, o_ref)", "(x_ref, i_ref, s_ref, o_ref)").replace("run(x)", "run(x, y, z)")
    code = code.replace("\n\n\ndef run", "\n\n\nSMEM = pl.BlockSpec(memory_space=pltpu.SMEM)\n\n\ndef run")
    found = lint(code, select=CODE)
    assert ["a float as index" in finding.message for finding in found] == ([True] if flagged else [])


def test_squeezed_dimension() -> None:
    spec = "grid=(4,), in_specs=[pl.BlockSpec(({}, 16, 128), lambda i: (i, 0, 0))], "
    for backend in ("tpu", "triton"):
        assert found("o_ref[...] = x_ref[0, :, :]", backend, extra=spec.format("None")) == {Severity.ERROR}
        assert found("o_ref[...] = x_ref[0, :, :]", backend, extra=spec.format("1")) == set()


def test_a_name_in_the_block_shape_may_be_none() -> None:
    extra = "grid=(4,), in_specs=[pl.BlockSpec((rows, 16, 128), lambda i: (i, 0, 0))], "
    code = launch("o_ref[...] = x_ref[0, 0, :, :]", extra=extra).replace("def run(x)", "def run(x, rows=None)")
    assert CODE not in codes(lint(code, select=CODE))


def test_reshaped_ref_of_unknown_rank() -> None:
    assert found("y_ref = x_ref.reshape(*x_ref.shape[:1], 1, 128)\no_ref[...] = y_ref[0, 0, 0:1]") == set()


def test_compare_and_swap_has_no_index() -> None:
    code = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton as plgpu

    def kernel(lock_ref, o_ref):
        o_ref[...] = plgpu.atomic_cas(lock_ref, 0, 1)

    def run():
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((), jnp.int32))(jnp.zeros((), jnp.int32))
    """
    assert CODE not in codes(lint(code, select=CODE))


def test_one_number_of_an_operand_of_kernel() -> None:
    """`pl.kernel` has no specs: where an operand lies, and of what rank it is, only the caller knows."""
    code = """
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import tpu as pltpu

        def kernel(offset_ref, sizes_ref, x_ref, o_ref, sem):
            group = offset_ref[0] + 1
            pltpu.sync_copy(x_ref.at[sizes_ref[group]], o_ref)

        def run(offset, sizes, x):
            mesh = pltpu.create_tensorcore_mesh("core")
            out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
            return pl.kernel(kernel, out_shape=out, mesh=mesh, scratch_shapes=[pltpu.SemaphoreType.DMA])(
                offset, sizes, x
            )
    """
    assert CODE not in codes(lint(code, "0.10.2", "tpu", select=CODE))


def test_a_slice_with_traced_bounds_is_one_finding() -> None:
    code = launch(f"{_BODY}o_ref[0:8] = x_ref[i : i + 8]", "tpu", extra="grid=(4,), ", operand="jnp.ones((16, 128))")
    assert codes(lint(code)) & {CODE, "PAL502"} == {"PAL502"}


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (f"{HALF} = buf[idx[...], 0]", ["PAL209"]),
        (f"{HALF} = buf[0, jnp.arange(8)]", ["PAL209"]),
        (f"buf[0, idx[...]] = {HALF}", ["PAL209"]),
        (f"{HALF} = plsc.load_gather(buf, [idx[...], idx[...]])", []),
        (f"{HALF} = buf[0, pl.ds(idx[...][0], 8)]", []),
        ("pltpu.sync_copy(x_hbm.at[idx, pl.ds(0, 128)], buf)", []),
        ("pltpu.sync_copy(x_hbm.at[idx[...], pl.ds(0, 128)], buf)", []),
    ],
)
def test_arrays_on_subcores(body: str, codes: list[str]) -> None:
    assert [code for code, _ in on_subcores(body)] == codes
