"""PAL206: reductions that drop dimensions, against what libtpu compiled."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import fixed, lint
from tests.rules.kernels import launch

CODE = "PAL206"


def found(
    expression: str, jax: str = "0.12.0.1", shape: str = "(16, 128)", dtype: str = "jnp.float32", device: str = "v5e"
) -> set[Severity]:
    code = launch(f"x = x_ref[...]\no_ref[...] = x - {expression}", operand=f"jnp.ones({shape}, {dtype})")
    return {finding.severity for finding in lint(code, jax, f"tpu:{device}", select=CODE)}


MAX, SUM = "jnp.max(jnp.max(x, axis=-1), axis=-1)", "jnp.sum(jnp.sum(x, axis=-1), axis=-1)"
# expression, shape, the releases with which it did not compile for v5e
MEASURED = [
    (MAX, "(16, 128)", {"0.6.2"}),
    (SUM, "(16, 128)", {"0.6.2", "0.8.3", "0.9.2"}),
    (f"{MAX}[:, None, None]", "(4, 16, 128)", {"0.6.2", "0.7.2"}),
    (f"{SUM}[:, None, None]", "(4, 16, 128)", {"0.6.2", "0.7.2"}),
]


@pytest.mark.parametrize(("expression", "shape", "failing"), MEASURED)
@pytest.mark.parametrize("jax", ["0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.2", "0.12.0.1"])
def test_chains(expression: str, shape: str, failing: set[str], jax: str) -> None:
    assert (Severity.ERROR in found(expression, jax, shape)) is (jax in failing)


@pytest.mark.parametrize("expression", [MAX, SUM, "jnp.max(jnp.sum(x, -1), -1)"])
def test_chains_on_v4(expression: str) -> None:
    assert found(expression, device="v4") == {Severity.ERROR}
    assert found(expression) == {Severity.INFO}


def test_scalar_of_16_bits() -> None:
    assert found(MAX, dtype="jnp.bfloat16") == {Severity.ERROR}


@pytest.mark.parametrize(
    "expression",
    [
        "jnp.max(x, axis=-1, keepdims=True)",
        "jnp.max(x, axis=0)",
        "jnp.max(x)",
        "jnp.max(jnp.max(x, axis=0), axis=0)",
        "jnp.max(jnp.max(x, -1, keepdims=True), -2, keepdims=True)",
        "jnp.max(x, axis=-1)[None, :]",
    ],
)
def test_silent(expression: str) -> None:
    assert found(expression) == set()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("jnp.max(x, axis=-1)[:, None]", "jnp.max(x, axis=-1, keepdims=True)"),
        ("jnp.sum(x, 0)[None, :]", "jnp.sum(x, 0, keepdims=True)"),
        ("x.max(axis=1)[:, None]", "x.max(axis=1, keepdims=True)"),
        ("jnp.max(x, -1)[..., None]", "jnp.max(x, -1, keepdims=True)"),
    ],
)
def test_fix(before: str, after: str) -> None:
    code = launch(f"x = x_ref[...]\no_ref[...] = x - {before}", operand="jnp.ones((16, 128))")
    assert fixed(code, "0.12.0.1", select=CODE) == code.replace(before, after)


def test_no_fix_where_the_vector_is_used_otherwise() -> None:
    body = "x = x_ref[...]\nm = jnp.max(x, axis=-1)\no_ref[...] = x - m[:, None]\no_ref[:, 0] = m"
    code = launch(body, operand="jnp.ones((16, 128))")
    findings = lint(code, "0.12.0.1", select=CODE)
    assert findings
    assert not any(finding.fixes for finding in findings)


def test_code_of_several_lines_is_one_line_of_the_message() -> None:
    body = "x = x_ref[...]\no_ref[...] = x - jnp.max(x, axis=1)[:,\n                                     None]"
    code = launch(body, operand="jnp.ones((16, 128), jnp.float32)")
    (finding,) = lint(code, "0.12.0.1", "tpu:v5e", select=CODE)
    assert finding.message.endswith("that `jnp.max(x, axis=1)[:, None]` adds again")
