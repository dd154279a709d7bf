"""PAL103: where `is_finite` has no lowering, and what replaces it."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lines, lint
from tests.rules.interpreted import run
from tests.rules.kernels import launch, line_of

CODE = "PAL103"
BODY = "o_ref[...] = jnp.where(jnp.isfinite(x_ref[...]), x_ref[...], 0.0)"
BFLOAT = """
x = x_ref[...].astype(jnp.bfloat16)
o_ref[...] = jnp.where(jnp.isfinite(x), 1.0, 0.0)
"""


@pytest.mark.parametrize(
    ("backend", "version", "flagged"),
    [
        ("triton", "0.4.35", True),
        ("triton", "0.8.1", True),
        ("triton", "0.8.2", False),
        ("triton", "0.12.0.1", False),
        ("tpu", "0.4.35", True),
        ("tpu", "0.4.37", True),
        ("tpu", "0.4.38", False),
        ("tpu", "0.12.0.1", False),
    ],
)
def test_float32_by_version(backend: str, version: str, flagged: bool) -> None:
    assert (CODE in codes(lint(launch(BODY, backend), version, select=CODE))) is flagged


@pytest.mark.parametrize("version", ["0.4.35", "0.8.3", "0.12.0.1"])
def test_bfloat16_on_tpu_in_every_version(version: str) -> None:
    (finding,) = lint(launch(BFLOAT), version, select=CODE)
    assert finding.severity is Severity.ERROR
    assert finding.dtype in ("bf16", None)


def test_bfloat16_needs_no_version() -> None:
    (finding,) = lint(launch(BFLOAT), select=CODE)
    assert finding.severity is Severity.ERROR


def test_range_names_the_failing_versions() -> None:
    (finding,) = lint(launch(BODY, "triton"), ">=0.7.2,<0.10", select=CODE)
    assert finding.jax == "0.7.2 to 0.8.1"


def test_integers_are_always_finite() -> None:
    body = "o_ref[...] = jnp.where(jnp.isfinite(x_ref[...].astype(jnp.int32)), 1.0, 0.0)"
    assert CODE not in codes(lint(launch(body), "0.4.35", select=CODE))


@pytest.mark.parametrize("call", ["jnp.isinf", "jnp.isnan"])
def test_relatives_lower_everywhere(call: str) -> None:
    body = f"o_ref[...] = jnp.where({call}(x_ref[...]), 0.0, 1.0)"
    for backend in ("tpu", "triton"):
        assert CODE not in codes(lint(launch(body, backend), "0.4.35", select=CODE))


def test_unknown_backend() -> None:
    def severities(version: str) -> list[Severity]:
        return [f.severity for f in lint(launch(BODY, None), version, select=CODE)]

    assert severities("0.4.35") == [Severity.ERROR]  # on all three
    assert severities("0.7.2") == [Severity.INFO]  # on Triton and Mosaic GPU
    assert severities("0.12.0.1") == []  # on Mosaic GPU alone


def test_names() -> None:
    code = launch(
        "o_ref[...] = jnp.where(finite(x_ref[...]), 0.0, 1.0) + jnp.where(lax.is_finite(x_ref[...]), 0.0, 1.0)",
        "triton",
        prelude="from jax.numpy import isfinite as finite\n",
    )
    found = lint(code, "0.4.35", select=CODE)
    assert {f.message.split("`")[1] for f in found} == {"finite", "lax.is_finite"}


def test_helper_partial_and_nested_kernels() -> None:
    code = launch(
        """
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = guard(x_ref[...])
        """,
        "triton",
        prelude="""
        def guard(value, limit=0.0):
            return jnp.where(jnp.isfinite(value), value, limit)
        """,
    ).replace("pallas_call(kernel,", "pallas_call(functools.partial(kernel),")
    assert lines(lint(code, "0.4.35", select=CODE), CODE) == {line_of(code, "jnp.isfinite")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("jnp.isfinite(x)", "jnp.abs(x) < jnp.inf"),
        ("~jnp.isfinite(x)", "~(jnp.abs(x) < jnp.inf)"),
        ("jnp.isfinite(x + 1) & (x > 0)", "(jnp.abs(x + 1) < jnp.inf) & (x > 0)"),
        ("(jnp.isfinite(x))", "(jnp.abs(x) < jnp.inf)"),
        ("jnp.logical_not(jnp.isfinite(x))", "jnp.logical_not(jnp.abs(x) < jnp.inf)"),
        ("jnp.isfinite(x).astype(jnp.float32) > 0", "(jnp.abs(x) < jnp.inf).astype(jnp.float32) > 0"),
    ],
)
def test_fix_keeps_the_meaning(before: str, after: str) -> None:
    template = "x = x_ref[...]\nmask = {}\no_ref[...] = jnp.where(mask, 1.0, 0.0)"
    code = launch(template.format(before), "triton")
    assert fixed(code, "0.4.35", None, CODE) == launch(template.format(after), "triton")


def test_explicit_form_only_where_it_compiles() -> None:
    def titles(code: str, version: str) -> list[str]:
        return [fix.title for f in lint(code, version, select=CODE) for fix in f.fixes]

    assert len(titles(launch(BODY, "triton"), "0.4.35")) == 2
    assert len(titles(launch(BODY, "tpu"), "0.4.35")) == 1  # Mosaic of 0.4.35 has no layout for the conjunction
    assert len(titles(launch(BFLOAT, "tpu"), "0.12.0.1")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fix_gives_the_same_bits(dtype: str) -> None:
    values = [0.0, -0.0, 1.5, float("inf"), -float("inf"), float("nan"), 3e38, 1e-40]
    body = f"x = x_ref[...].astype(jnp.{dtype})\no_ref[...] = jnp.where(jnp.isfinite(x), 1.0, 0.0)"
    code = launch(body)
    repaired = fixed(code, "0.4.35", None, CODE)
    assert repaired != code
    operands = [(values, (1, 8), "float32")]
    assert run(code, operands, (1, 8), "float32") == run(repaired, operands, (1, 8), "float32")
