"""PAL211 and PAL212: scalars and vectors in VMEM and SMEM, refs in HBM and TMEM, against what jax lowered."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, lint

_MODULE = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(i_ref, x_ref, o_ref):
{body}

def run(i, flag):
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space={x_space})],
        out_specs=pl.BlockSpec(memory_space={o_space}),
        out_shape=jax.ShapeDtypeStruct({out}, jnp.{dtype}),
    )(i, jnp.ones((8, 128), jnp.{dtype}))
"""


def found(
    body: str,
    *,
    x_space: str = "pltpu.VMEM",
    o_space: str = "pltpu.VMEM",
    out: str = "(8, 128)",
    dtype: str = "float32",
    version: str = "0.12.0.1",
    target: str | None = None,
) -> set[str]:
    code = _MODULE.format(body=textwrap.indent(body, "    "), x_space=x_space, o_space=o_space, out=out, dtype=dtype)
    findings = lint(code, version, target, "PAL211") + lint(code, version, target, "PAL212")
    assert all(finding.severity is Severity.ERROR for finding in findings), findings
    return codes(findings)


SCALAR = {"PAL211"}
REFUSED = [
    "o_ref[0, 0] = x_ref[0, 0]",
    "o_ref[0, 0] = jnp.sum(x_ref[...])",
    "o_ref[0, 0] = 0.0",
    "o_ref[0, 0] += x_ref[0, 0]",
    "o_ref[i_ref[0], 0] = 1.0",
    "o_ref.at[0, 0][...] = jnp.sum(x_ref[...])",
    "o_ref.at[0][0] = jnp.sum(x_ref[...])",
    "def body(j, c):\n    o_ref[0, j] = x_ref[0, j] * 2\n    return c\nlax.fori_loop(0, 8, body, 0)",
    "def put(ref, v):\n    ref[0, 0] = v\nput(o_ref, i_ref[0])",
    "pl.debug_print('', i_ref[0:4])",
    "pl.debug_print('', i_ref[pl.ds(0, 4)])",
]


@pytest.mark.parametrize("body", REFUSED)
@pytest.mark.parametrize("version", ["0.4.35", "0.12.0.1"])
def test_scalars_and_vectors(body: str, version: str) -> None:
    assert found(body, version=version) == SCALAR


@pytest.mark.parametrize(
    "body",
    [
        "o_ref[...] = x_ref[...] + i_ref[0]",
        "o_ref[0:1, 0:1] = jnp.sum(x_ref[...]).reshape(1, 1)",
        "o_ref[0, :] = x_ref[0, :]",
        "o_ref[pl.ds(0, 1), 0] = jnp.sum(x_ref[...]).reshape(1)",
        "o_ref[...] += 1.0",
        "o_ref[...] = jnp.full(o_ref.shape, i_ref[0])",
        "pltpu.sync_copy(x_ref, o_ref)",
        "o_ref[unknown] = x_ref[unknown]",
    ],
)
def test_fine(body: str) -> None:
    assert not found(body)


def test_smem_output() -> None:
    assert not found("o_ref[0, 0] = jnp.sum(x_ref[...])", o_space="pltpu.SMEM", out="(1, 1)")
    assert found("o_ref[...] = jnp.zeros_like(o_ref)", o_space="pltpu.SMEM", out="(2, 4)") == SCALAR
    assert found("o_ref[0] = x_ref[0, 0:4]", o_space="pltpu.SMEM", out="(2, 4)") == SCALAR


def test_unknown_space() -> None:
    assert not found("o_ref[0, 0] = jnp.sum(x_ref[...])", o_space="space_of(flag)")
    assert not found("o_ref[0, 0] = jnp.sum(x_ref[...])", o_space="pltpu.SMEM if flag else pltpu.VMEM")


def test_packed_scalar_load() -> None:
    assert found("pl.debug_print('', x_ref[0, 0])", dtype="bfloat16") == SCALAR
    assert not found("pl.debug_print('', x_ref[0, 0])")


def test_only_on_tpu() -> None:
    code = _MODULE.format(
        body="    pl.store(o_ref, (0, 0), 1.0)", x_space="None", o_space="None", out="(8, 128)", dtype="float32"
    )
    assert not lint(code.replace("pltpu.SMEM", "None"), "0.8.3", "triton", "PAL211")


@pytest.mark.parametrize("space", ["pl.ANY", "pltpu.HBM", "pltpu.MemorySpace.HBM"])
@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ("o_ref[...] = x_ref[...]", True),
        ("o_ref[0, :] = x_ref[0, :]", True),
        ("pl.debug_print('', x_ref.at[0:4][...])", True),
        ("pltpu.sync_copy(x_ref, o_ref)", False),
        ("pltpu.sync_copy(x_ref.at[0:8], o_ref)", False),
        ("o_ref[...] = jnp.full(o_ref.shape, x_ref.shape[0], x_ref.dtype)", False),
        ("def body(s):\n    pltpu.sync_copy(x_ref, s)\n    o_ref[...] = s[...]\n"
         "pl.run_scoped(body, pltpu.VMEM((8, 128), jnp.float32))", False),
    ],
)  # fmt: skip
def test_hbm(space: str, body: str, refused: bool) -> None:
    assert found(body, x_space=space) == ({"PAL212"} if refused else set())


def test_hbm_output() -> None:
    assert found("o_ref[...] = x_ref[...]", o_space="pltpu.HBM") == {"PAL212"}


def test_tensor_memory() -> None:
    code = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import mosaic_gpu as plgpu

    def kernel(x_gmem, o_gmem, acc_tmem):
        o_gmem[...] = acc_tmem[...] + x_gmem[...]

    def run(x):
        return plgpu.kernel(
            kernel,
            out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
            scratch_shapes=[plgpu.TMEM((128, 128), jnp.float32)],
        )(x)
    """
    assert codes(lint(code, "0.7.2", None, "PAL212")) == {"PAL212"}
    assert not lint(code, "0.6.2", None, "PAL212")


PASSED = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run(x):
        @pl.kernel(out_type=jax.ShapeDtypeStruct((512,), jnp.float32), scratch_types=[pltpu.VMEM((16,), jnp.float32)],
                   mesh=plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore"))
        def kernel(x_hbm, o_hbm, row):
            row[...] = x_hbm[pl.ds(0, 16)]
            pltpu.sync_copy(row, o_hbm.at[pl.ds(0, 16)])
        return kernel(x)
"""


@pytest.mark.parametrize(
    ("call", "severity"), [("", "warning"), ("\n    run(jnp.zeros((512,), jnp.float32))", "error")]
)
def test_loads_of_an_array_that_is_passed(call: str, severity: str) -> None:
    found = lint(PASSED + call, "0.12.0.1", "tpu:tpu7x", "PAL212")
    assert [str(each.severity.value) for each in found] == [severity]


@pytest.mark.parametrize(
    ("body", "severities"),
    [
        ("o_ref[...] = x_ref[...] * jnp.sum(i_ref[...])", [Severity.WARNING]),
        ("pl.debug_print('', i_ref[...])\no_ref[...] = x_ref[...] * i_ref[0]", [Severity.ERROR]),
        ("pl.debug_print('', i_ref[:])", [Severity.ERROR]),
        ("o_ref[...] = x_ref[...] * i_ref[...]", []),  # it may be one number
    ],
)
def test_all_of_a_ref_of_unknown_rank_in_smem(body: str, severities: list[Severity]) -> None:
    code = _MODULE.format(
        body=textwrap.indent(body, "    "), x_space="pltpu.VMEM", o_space="pltpu.VMEM", out="(8, 128)", dtype="float32"
    )
    assert [finding.severity for finding in lint(code, "0.12.0.1", select="PAL211")] == severities
