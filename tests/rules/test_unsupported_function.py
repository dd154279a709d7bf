"""PAL101 and PAL102: what the measured tables say about calls in kernels."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lint
from tests.rules.kernels import launch


def errors(body: str, backend: str | None, version: str, code: str = "PAL101") -> list[str]:
    return [f.message for f in lint(launch(body, backend), version) if f.code == code]


@pytest.mark.parametrize(
    ("body", "backend", "version", "flagged"),
    [
        ("o_ref[...] = jnp.cumsum(x_ref[...], axis=1)", "tpu", "0.10.2", True),
        ("o_ref[...] = jnp.cumsum(x_ref[...], axis=1)", "triton", "0.10.2", False),
        ("o_ref[...] = jnp.sort(x_ref[...])", "tpu", "0.12.0.1", True),
        ("o_ref[...] = x_ref[...].sort()", "triton", "0.12.0.1", True),
        ("o_ref[...] = jnp.exp(x_ref[...])", "tpu", "0.4.35", False),
        ("o_ref[...] = jnp.tile(x_ref[...], (2, 1))", "triton", "0.12.0.1", True),
        ("o_ref[...] = jnp.tile(x_ref[...], (2, 1))", "tpu", "0.12.0.1", False),
        # Forms decide: Triton takes two operands whose last dimension is 1.
        ("o_ref[...] = jnp.concatenate([x_ref[...], x_ref[...]])", "triton", "0.12.0.1", False),
        ("a, b = jnp.unstack(x_ref[...], axis=-1)\no_ref[...] = a", "triton", "0.12.0.1", False),
        # Questions about types, no operations.
        ("o_ref[...] = x_ref[...] + jnp.finfo(x_ref.dtype).eps", "tpu", "0.4.35", False),
    ],
)
def test_functions(body: str, backend: str, version: str, flagged: bool) -> None:
    assert bool(errors(body, backend, version)) is flagged


def test_the_message_has_primitive_backend_and_where_it_works() -> None:
    (finding,) = lint(launch("o_ref[...] = jnp.cumsum(x_ref[...], axis=1)"), "0.10.2", select="PAL101")
    assert finding.severity is Severity.ERROR
    assert "`cumsum`" in finding.message and "TPU" in finding.message
    assert finding.help.startswith("instead: `jnp.dot(x, jnp.triu(")


def test_unknown_backend() -> None:
    def severities(body: str) -> list[Severity]:
        return [f.severity for f in lint(launch(body, None), "0.12.0.1", select="PAL101")]

    assert severities("o_ref[...] = jnp.sort(x_ref[...])") == [Severity.ERROR]  # on all three
    assert severities("o_ref[...] = jnp.tile(x_ref[...], (2, 1))") == [Severity.INFO]
    assert severities("o_ref[...] = jnp.exp(x_ref[...])") == []


def test_outside_kernels_and_in_interpret_mode() -> None:
    code = launch("o_ref[...] = x_ref[...]", operand="jnp.sort(x)")
    assert "PAL101" not in codes(lint(code, "0.12.0.1", select="PAL101"))
    for backend in ("tpu", None):
        code = launch("o_ref[...] = jnp.sort(x_ref[...])", backend, extra="interpret=True, ")
        assert "PAL101" not in codes(lint(code, "0.12.0.1", select="PAL101"))


def test_specialists_have_the_word() -> None:
    body = "o_ref[...] = jnp.where(jnp.isfinite(x_ref[...]), 1.0, 0.0)"
    assert codes(lint(launch(body, "triton"), "0.4.35")) & {"PAL101", "PAL102", "PAL103"} == {"PAL103"}
    body = "x = x_ref[...].astype(jnp.bfloat16)\no_ref[...] = jnp.where(jnp.mod(x, 2) == 0, 1.0, 0.0)"
    assert codes(lint(launch(body), "0.12.0.1")) & {"PAL101", "PAL102", "PAL104"} == {"PAL104"}


@pytest.mark.parametrize(
    ("body", "backend", "flagged"),
    [
        ("o_ref[...] = jax.nn.silu(x_ref[...].astype(jnp.bfloat16))", "triton", True),
        ("o_ref[...] = jax.nn.silu(x_ref[...].astype(jnp.float32))", "triton", False),
        ("o_ref[...] = jax.nn.silu(x_ref[...])", "triton", False),
        ("o_ref[...] = jnp.argmax(x_ref[...].astype(jnp.int32), axis=1)", "tpu", True),
        ("o_ref[...] = jnp.argmax(x_ref[...].astype(jnp.float32), axis=1)", "tpu", False),
        ("o_ref[...] = lax.fori_loop(0, 3, lambda i, a: a, x_ref[...].astype(jnp.int8))", "tpu", False),
    ],
)
def test_dtypes(body: str, backend: str, flagged: bool) -> None:
    assert bool(errors(body, backend, "0.12.0.1", "PAL102")) is flagged


def test_dtype_fix() -> None:
    body = "o_ref[...] = jax.nn.silu(x_ref[...].astype(jnp.bfloat16))"
    after = "o_ref[...] = jax.nn.silu(x_ref[...].astype(jnp.bfloat16).astype(jnp.float32)).astype(jnp.bfloat16)"
    assert fixed(launch(body, "triton"), "0.12.0.1", None, "PAL102") == launch(after, "triton")


SPARSE = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=1)

@functools.partial(pl.kernel, out_type=jax.ShapeDtypeStruct((16,), jnp.int32), mesh=mesh)
def sums(x_hbm, o_hbm):
    def step(x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...])

    pltpu.emit_pipeline(step, grid=(1,), in_specs=[pl.BlockSpec()], out_specs=[pl.BlockSpec()])(x_hbm, o_hbm)
"""


@pytest.mark.parametrize("target", [None, "tpu"])
def test_a_pipeline_on_sparse_cores(target: str | None) -> None:
    """It runs where the kernel around it does, whose vector subcore has a rule that the tensor core lacks."""
    assert not lint(SPARSE, "0.11.1", target, "PAL101")
    dense = SPARSE.replace("plsc.VectorSubcoreMesh", "pltpu.TensorCoreMesh").replace(
        ', subcore_axis_name="subcore"', ""
    )
    assert lint(dense, "0.11.1", "tpu", "PAL101")


_ERF = """
    import jax
    import jax.numpy as jnp
    from jax.experimental.pallas import mosaic_gpu as plgpu

    def kernel(x_ref, o_ref):
        o_ref[...] = jax.lax.erf(x_ref[...])

    def run(x):
        shape = jax.ShapeDtypeStruct((64, 128), jnp.float32)
        return plgpu.kernel(kernel, out_type=shape, compiler_params=plgpu.CompilerParams(PARAMS))(x)
"""


@pytest.mark.parametrize(
    ("params", "jax", "fails"),
    [
        ("", "0.10.2", False),  # Lane until then
        ("", "0.11.0", True),
        ("", "0.12.0.1", True),
        ("lowering_semantics=plgpu.LoweringSemantics.Lane", "0.12.0.1", False),
        ("lowering_semantics=plgpu.LoweringSemantics.Warpgroup", "0.10.2", True),
        ("lowering_semantics=chosen()", "0.12.0.1", False),
    ],
)
def test_lowering_semantics_of_mosaic_gpu(params: str, jax: str, fails: bool) -> None:
    found = lint(_ERF.replace("PARAMS", params), jax=jax, select="PAL101")
    assert bool(found) is fails
    for finding in found:
        assert finding.message.endswith("with Warpgroup semantics: no rule for `erf`")
        assert "`plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane)`" in (finding.help or "")
