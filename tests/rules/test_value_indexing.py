"""PAL208: what of indexing a value lowers where, as measured."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lint
from tests.rules.kernels import launch

CODE = "PAL208"
I32 = "i = pl.program_id(0)\nx = x_ref[...]\nrows = lax.broadcasted_iota(jnp.int32, (16, 128), 0)\n"


def found(
    expression: str, backend: str | None = "tpu", jax: str = "0.12.0.1", operand: str = "jnp.ones((16, 128))"
) -> set[Severity]:
    code = launch(f"{I32}o_ref[...] = {expression}", backend, extra="grid=(4,), ", operand=operand)
    return {finding.severity for finding in lint(code, jax, select=CODE)}


NOWHERE = [
    "x[i]",
    "x[i, :]",
    "x[:, i]",
    "x[i, i]",
    "x_ref[...][i]",
    "(x * 2)[i]",
    "x[None, i]",
    "x[jnp.int32(3)]",
    "x[i : i + 8]",
    "x[pl.ds(i * 8, 8)]",
    "x[::2]",
    "x[:, ::2]",
    "x[::-1]",
    "x.at[0].set(1.0)",
    "x.at[i].add(1.0)",
    "x.at[:, 0].multiply(2.0)",
    "jnp.take(x, i, axis=0)",
    "x.take(2, axis=0)",
    "lax.dynamic_slice(x, (i, 0), (8, 128))",
    "lax.dynamic_index_in_dim(x, i, 0)",
    "lax.dynamic_slice_in_dim(x, i, 8)",
    "lax.dynamic_update_slice(x, x, (i, 0))",
    "lax.dynamic_update_index_in_dim(x, x[0], i, 0)",
    "lax.fori_loop(0, 4, lambda t, c: c + x[t], jnp.zeros(128))",
    "x[jnp.arange(8)]",
    "x[rows, rows]",
    "(x * 2)[rows]",
    "x[x > 0]",
    "x[i / 2]",
]


@pytest.mark.parametrize("expression", NOWHERE)
@pytest.mark.parametrize(("backend", "jax"), [("tpu", "0.4.35"), ("tpu", "0.12.0.1"), ("triton", "0.12.0.1")])
def test_lowers_nowhere(expression: str, backend: str, jax: str) -> None:
    assert Severity.ERROR in found(expression, backend, jax)


@pytest.mark.parametrize("expression", ["x[i]", "lax.dynamic_slice(x, (i, 0), (8, 128))", "x.at[i].set(1.0)"])
def test_whatever_the_backend(expression: str) -> None:
    assert found(expression, None) == {Severity.ERROR}


@pytest.mark.parametrize(
    "expression", ["x[3]", "x[:8]", "x[:, 3]", "x[..., 3]", "x[-8:]", "lax.slice(x, (0, 0), (8, 128))", "x[0, 0]"]
)
def test_known_bounds_are_fine_on_tpu(expression: str) -> None:
    assert found(expression, "tpu", "0.4.35") == set()
    assert found(expression, "tpu") == set()


@pytest.mark.parametrize("expression", ["x[3]", "x[:8]", "x[:, 3]", "x[..., 3]", "x[-8:]", "x[-1]", "x[0, 0]"])
def test_known_bounds_on_triton(expression: str) -> None:
    assert found(expression, "triton") == {Severity.ERROR}


@pytest.mark.parametrize("expression", ["x", "x[:16]", "x[:]", "x[None]", "x[:, None, :]", "x[...]", "x[::1]"])
@pytest.mark.parametrize("backend", ["tpu", "triton"])
def test_nothing_cut_off(expression: str, backend: str) -> None:
    assert found(expression, backend) == set()


def test_dimension_of_size_one() -> None:
    assert found("x[0]", "triton", operand="jnp.ones((1, 128))") == set()


def test_unknown_size_on_triton() -> None:
    code = launch("n = x_ref.shape[0] // 2\no_ref[...] = x_ref[...][:n]", "triton", operand="jnp.ones((m, 128))")
    severities = {finding.severity for finding in lint(code, select=CODE)}
    assert severities <= {Severity.WARNING}


@pytest.mark.parametrize(("jax", "flagged"), [("0.4.35", True), ("0.8.3", True), ("0.9.2", False), ("0.12.0.1", False)])
def test_negative_integer_on_tpu(jax: str, flagged: bool) -> None:
    assert bool(found("x[-1]", "tpu", jax)) is flagged
    assert bool(found("x[pl.ds(8, 8)]", "tpu", jax)) is flagged


def test_one_finding_for_one_call() -> None:
    code = launch("o_ref[...] = lax.dynamic_slice(x_ref[...], (pl.program_id(0), 0), (8, 128))")
    assert "PAL101" not in codes(lint(code, select="PAL101"))


def test_loop_over_known_rows() -> None:
    code = launch("x = x_ref[...]\nfor t in range(4):\n    o_ref[t] = x[t]", operand="jnp.ones((16, 128))")
    assert CODE not in codes(lint(code, select=CODE))


def test_tuples_are_not_values() -> None:
    body = "pair = (x_ref[...], 2)\no_ref[...] = lax.fori_loop(0, 2, lambda t, c: (c[1], c[0]), pair)[0]"
    assert CODE not in codes(lint(launch(body, "triton"), select=CODE))


@pytest.mark.parametrize(
    ("before", "after", "backend"),
    [
        ("x[i]", "x_ref[i]", "tpu"),
        ("x[i, 0:8]", "x_ref[i, 0:8]", "tpu"),
        ("x_ref[...][i]", "x_ref[i]", "tpu"),
        ("x[:8]", "x_ref[:8]", "triton"),
        ("x[::2]", "x_ref[::2]", "triton"),
        ("x[:, ::2]", "x[:, ::2]", "tpu"),
        ("x[None, i]", "x[None, i]", "tpu"),
        ("lax.dynamic_slice(x, (i, 0), (8, 128))", "x_ref[pl.ds(i, 8), pl.ds(0, 128)]", "tpu"),
        ("lax.dynamic_index_in_dim(x, i, 1, keepdims=False)", "x_ref[:, i]", "tpu"),
        ("lax.dynamic_index_in_dim(x, i)", "x_ref[pl.ds(i, 1)]", "tpu"),
        ("lax.dynamic_slice_in_dim(x, i * 8, 8)", "x_ref[pl.ds(i * 8, 8)]", "tpu"),
        (
            "lax.fori_loop(0, 4, lambda t, c: c + x[t], 0.0)",
            "lax.fori_loop(0, 4, lambda t, c: c + x_ref[t], 0.0)",
            "tpu",
        ),
    ],
)
def test_fix(before: str, after: str, backend: str) -> None:
    code = launch(f"{I32}o_ref[...] = {before}", backend, extra="grid=(4,), ", operand="jnp.ones((16, 128))")
    assert fixed(code, "0.12.0.1", select=CODE) == code.replace(before, after)


def kinds(body: str, extra: str = "grid=(4,), ") -> list[str]:
    code = launch(body, "tpu", extra=extra, operand="jnp.ones((16, 128))")
    return [fix.applicability for finding in lint(code, select=CODE) for fix in finding.fixes]


def test_fix_safety() -> None:
    assert kinds("x = x_ref[...]\no_ref[...] = x[pl.program_id(0)]") == ["safe"]
    assert kinds("x = x_ref[...]\no_ref[...] = x[pl.program_id(0) - 1]") == ["unsafe"]
    assert kinds("x = x_ref[...]\nx_ref[0] = 1.0\no_ref[...] = x[pl.program_id(0)]") == []
    assert kinds("o_ref[...] = x_ref[...]\nx = o_ref[...]\no_ref[...] = x[pl.program_id(0)]") == []
    assert kinds("x = x_ref[0:8]\no_ref[...] = x[pl.program_id(0)]") == []
    aliased = "grid=(4,), input_output_aliases={0: 0}, "
    assert kinds("x = x_ref[...]\no_ref[...] = x[pl.program_id(0)]", aliased) == []


def test_no_fix_where_the_ref_is_out_of_sight() -> None:
    prelude = "def row(value, i):\n    return value[i]\n"
    code = launch("o_ref[...] = row(x_ref[...], pl.program_id(0))", prelude=prelude, extra="grid=(4,), ")
    findings = lint(code, select=CODE)
    assert len(findings) == 1
    assert not findings[0].fixes


@pytest.mark.parametrize(
    "index", ["rows_ref[0] / 2", "rows_ref[0] * 0.5", "jnp.exp(rows_ref[0])", "rows_ref[0] // 0.5"]
)
def test_a_float_whatever_the_operand(index: str) -> None:
    """Of `rows_ref` the dtype is not known; the message does not request a table."""
    body = f"i = {index}\no_ref[...] = x_ref[...][i]"
    code = launch(body, "tpu", operand="x, rows").replace("(x_ref, o_ref)", "(x_ref, rows_ref, o_ref)")
    (finding,) = lint(code.replace("run(x)", "run(x, rows)"), "0.12.0.1", select=CODE)
    assert "float" in finding.message


def test_a_known_start_is_not_called_traced() -> None:
    code = launch("x = x_ref[...]\no_ref[...] = lax.dynamic_slice_in_dim(x, 8, 8)", "tpu", extra="grid=(4,), ")
    (finding,) = lint(code, "0.12.0.1", select=CODE)
    assert "traced" not in finding.message
