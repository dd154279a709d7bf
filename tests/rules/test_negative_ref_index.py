"""PAL210: negative indices of refs, however they are spelled; where they are right, silence."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import fixed, lint
from tests.rules.kernels import launch

CODE = "PAL210"
_EXTRA = "grid=(4,), "


def found(body: str, prelude: str = "", backend: str | None = "tpu", jax: str = "0.12.0.1") -> list[Severity]:
    code = launch(body, backend, extra=_EXTRA, prelude=prelude, operand="jnp.ones((16, 128), jnp.float32)")
    return [finding.severity for finding in lint(code, jax, select=CODE)]


@pytest.mark.parametrize(
    ("body", "prelude"),
    [
        ("o_ref[...] = x_ref[-1]", ""),
        ("o_ref[...] = x_ref[0, -1]", ""),
        ("o_ref[...] = x_ref[..., -2, :]", ""),
        ("o_ref[...] = x_ref[(-1, slice(None))]", ""),
        ("index = (-1, slice(None))\no_ref[...] = x_ref[index]", ""),
        ("o_ref[...] = x_ref[pl.ds(-2, 2)]", ""),
        ("o_ref[...] = x_ref[pl.dslice(-2, size=2), :]", ""),
        ("o_ref[-1, :] = x_ref[0, :]", ""),
        ("o_ref[-1] += 2.0", ""),
        ("o_ref[...] = x_ref.at[-1][...]", ""),
        ("o_ref[...] = x_ref.at[0:8].at[-1][...]", ""),
        ("o_ref[...] = pl.load(x_ref, (-1, slice(None)))", ""),
        ("o_ref[...] = x_ref[jnp.int32(-1)]", ""),
        ("o_ref[...] = x_ref[LAST]", "LAST = -1"),
        ("o_ref[...] = row(x_ref)", "def row(ref, k=-1):\n    return ref[k]"),
        ("for t in range(4):\n    o_ref[t] = x_ref[t - 1]", ""),
        ("n = len(x_ref.shape)\no_ref[...] = x_ref[n - 3]", ""),
    ],
)
@pytest.mark.parametrize("backend", ["tpu", "triton", None])
def test_constant(body: str, prelude: str, backend: str | None) -> None:
    assert set(found(body, prelude, backend)) == {Severity.ERROR}


@pytest.mark.parametrize(
    "body",
    [
        "o_ref[...] = x_ref[...][-1]",
        "x = x_ref[...]\no_ref[...] = x[0, -1]",
        "o_ref[0:2] = x_ref[-2:]",
        "o_ref[0:15] = x_ref[:-1]",
        "o_ref[0:2] = x_ref.at[-3:-1][...]",
        "o_ref[...] = x_ref[x_ref.shape[0] - 1]",
        "o_ref[...] = x_ref[x_ref.shape[-1] - 1]",
        "o_ref[...] = jnp.sum(x_ref[...], axis=-1)",
        "i = pl.program_id(0)\no_ref[i] = x_ref[jnp.maximum(i - 1, 0)]",
        "i = pl.program_id(0)\n@pl.when(i > 0)\ndef _():\n    o_ref[i] = x_ref[i - 1]",
        "i = pl.program_id(0)\no_ref[i] = lax.cond(i > 0, lambda: x_ref[i - 1], lambda: x_ref[0])",
        "lax.fori_loop(1, 4, lambda j, c: c + x_ref[j - 1], jnp.zeros(128))",
        "o_ref[...] = x_ref[pl.program_id(0) - 1 + 1]",
    ],
)
def test_right(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("body", "severities"),
    [
        ("i = pl.program_id(0)\no_ref[i - 1, :] = x_ref[i, :]", [Severity.WARNING]),
        ("i = pl.program_id(0)\no_ref[i, :] = x_ref[i - 1, :]", [Severity.WARNING]),
        ("i = pl.program_id(0)\no_ref[i, :] = x_ref[i - 1, :]\no_ref[0, :] = x_ref[0, :]", [Severity.INFO]),
        ("i = pl.program_id(0)\no_ref[i, :] = x_ref[i - 1, :] * (i > 0)", [Severity.INFO]),
        ("i = pl.program_id(0)\no_ref[i, :] = jnp.where(i == 0, 0.0, x_ref[i - 1, :])", [Severity.INFO]),
        (
            "def step(t, _):\n    o_ref[pl.ds(t, 1), :] = o_ref[pl.ds(t - 1, 1), :] + x_ref[pl.ds(t, 1), :]\n"
            "lax.fori_loop(0, 16, step, None)",
            [Severity.WARNING],
        ),
        ("i = pl.program_id(0) * 8\no_ref[0:8, :] = x_ref[pl.ds(i - 8, 8), :]", [Severity.INFO]),
        ("o_ref[...] = lax.fori_loop(0, 4, lambda j, c: c + x_ref[j - 1], jnp.zeros(128))", [Severity.INFO]),
        ("i = pl.program_id(0) + 1\nbefore = i - 2\no_ref[before] = 0.0", [Severity.WARNING]),
    ],
)
def test_first_step(body: str, severities: list[Severity]) -> None:
    assert found(body) == severities


def test_tuple_of_refs() -> None:
    code = """
    import jax
    from jax.experimental import pallas as pl

    def kernel(*refs):
        refs[-1][...] = refs[0][...]

    def other(x_refs, o_ref):
        o_ref[...] = x_refs[-1][...]

    def run(xs):
        pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), "float32"))(*xs)
        return pl.pallas_call(other, out_shape=jax.ShapeDtypeStruct((8, 128), "float32"))([xs[0], xs[1]])
    """
    assert not lint(code, select=CODE)


@pytest.mark.parametrize(("jax", "flagged"), [("0.11.2", False), ("0.12.0.1", True)])
def test_slices_on_mosaic_gpu(jax: str, flagged: bool) -> None:
    code = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import mosaic_gpu as plgpu

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(-2, 2)]

    f = plgpu.kernel(kernel, out_shape=jax.ShapeDtypeStruct((2, 128), jnp.float32))
    """
    assert bool(lint(code, jax, select=CODE)) is flagged


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x_ref[0, -2]", "x_ref[0, x_ref.shape[1] - 2]"),
        ("x_ref[..., -1]", "x_ref[..., x_ref.shape[-1] - 1]"),
        ("x_ref[..., -1, :]", "x_ref[..., x_ref.shape[-2] - 1, :]"),
        ("x_ref.at[-1, :][...]", "x_ref.at[x_ref.shape[0] - 1, :][...]"),
        ("x_ref[pl.ds(-2, 2), :]", "x_ref[pl.ds(x_ref.shape[0] - 2, 2), :]"),
        ("pl.load(x_ref, (-1, slice(None)))", "pl.load(x_ref, (x_ref.shape[0] - 1, slice(None)))"),
    ],
)
def test_fix(before: str, after: str) -> None:
    code = launch(f"o_ref[...] = {before}", extra=_EXTRA)
    assert fixed(code, "0.8.3", select=CODE) == code.replace(before, after)


def test_no_fix_through_a_name() -> None:
    code = launch("o_ref[...] = x_ref[LAST]", prelude="LAST = -1")
    assert fixed(code, select=CODE) == code.rstrip() + "\n"


@pytest.mark.parametrize(
    ("condition", "severities"),
    [("i >= 0", [Severity.WARNING]), ("i > -1", [Severity.WARNING]), ("i >= 1", []), ("i > 0", []), ("i != 0", [])],
)
def test_conditions_around_a_load_of_the_row_before(condition: str, severities: list[Severity]) -> None:
    body = f"i = pl.program_id(0)\n@pl.when({condition})\ndef _():\n    o_ref[...] = x_ref[i - 1]"
    assert found(body) == severities


@pytest.mark.parametrize(
    ("start", "guard", "severity"),
    [
        ("i * 8 - 8", "if True:", Severity.WARNING),  # TPUs stop at a copy that leaves its array
        ("i * 8 - 8", "@pl.when(i > 0)\n    def _():", Severity.INFO),
        ("i * 8", "if True:", None),
    ],
)
def test_a_copy_from_before_the_array(start: str, guard: str, severity: Severity | None) -> None:
    code = f"""
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_hbm, o_ref, buf, sem):
    i = pl.program_id(0)
    copy = pltpu.make_async_copy(x_hbm.at[pl.ds({start}, 8)], buf, sem)

    {guard}
        copy.start()
        copy.wait()

    o_ref[...] = buf[...]

def run(x):
    return pl.pallas_call(
        kernel,
        grid=(8,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)
"""
    found = [finding.severity for finding in lint(code, target="tpu", select="PAL210")]
    assert found == ([] if severity is None else [severity])
