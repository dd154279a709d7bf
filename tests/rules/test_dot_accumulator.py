"""PAL106: products that accumulate in 16 or 8 bits."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lint
from tests.rules.interpreted import run
from tests.rules.kernels import launch

CODE = "PAL106"


def product(expression: str, dtype: str = "bfloat16") -> str:
    return f"a = x_ref[...].astype(jnp.{dtype})\no_ref[...] = {expression}"


PRODUCTS = [
    "jnp.dot(a, a.T)",
    "a @ a.T",
    "jnp.matmul(a, a.T)",
    "jnp.einsum('ij,kj->ik', a, a)",
    "lax.dot_general(a, a, (((1,), (1,)), ((), ())))",
    "lax.dot(a, a.T)",
    "a.dot(a.T)",
    "jnp.dot(a, a.T, preferred_element_type=jnp.bfloat16)",
    "lax.dot_general(a, a, (((1,), (1,)), ((), ())), preferred_element_type=a.dtype)",
]


@pytest.mark.parametrize("expression", PRODUCTS)
@pytest.mark.parametrize("version", ["0.4.35", "0.12.0.1", None])
def test_every_spelling_in_every_version(expression: str, version: str | None) -> None:
    found = lint(launch(product(expression)), version, select=CODE)
    assert [f.severity for f in found] == [Severity.ERROR]


@pytest.mark.parametrize("dtype", ["float16", "int8", "float8_e4m3fn"])
def test_other_narrow_types(dtype: str) -> None:
    assert CODE in codes(lint(launch(product("jnp.dot(a, a.T)", dtype)), select=CODE))


@pytest.mark.parametrize(
    "expression",
    [
        "jnp.dot(a, a.T, preferred_element_type=jnp.float32)",
        "lax.dot_general(a, a, (((1,), (1,)), ((), ())), None, jnp.float32)",
        "lax.dot(a, a.T, None, jnp.float32)",
        "pl.dot(a, a.T)",  # 32 bits by itself
        "jnp.dot(a.astype(jnp.float32), a.T.astype(jnp.float32))",
        "jnp.dot(a, x_ref[...].T.astype(jnp.float32))",  # promotes to float32
        "jnp.dot(x_ref[...], x_ref[...].T)",  # of unknown dtype
        "a * a",
    ],
)
def test_fine(expression: str) -> None:
    assert CODE not in codes(lint(launch(product(expression)), select=CODE))


def test_other_backends_only_lose_precision() -> None:
    def severities(backend: str | None) -> list[Severity]:
        return [f.severity for f in lint(launch(product("a @ a.T"), backend), select=CODE)]

    assert severities("triton") == [Severity.INFO]
    assert severities(None) == [Severity.INFO]


WIDE = "preferred_element_type=jnp.float32"
FIXES = [
    ("o_ref[...] = jnp.dot(a, a.T)", f"o_ref[...] = jnp.dot(a, a.T, {WIDE})"),
    ("o_ref[...] = a @ a.T", f"o_ref[...] = jnp.matmul(a, a.T, {WIDE})"),
    ("o_ref[...] += (a @ a.T)", f"o_ref[...] += (jnp.matmul(a, a.T, {WIDE}))"),
    (
        "o_ref[...] = jnp.dot(a, a.T).astype(jnp.float32)",
        f"o_ref[...] = jnp.dot(a, a.T, {WIDE}).astype(jnp.float32)",
    ),
    (
        "s = jnp.dot(a, a.T)\no_ref[...] = jnp.exp(s)",
        f"s = jnp.dot(a, a.T, {WIDE}).astype(jnp.bfloat16)\no_ref[...] = jnp.exp(s)",
    ),
    (
        "o_ref[...] = jnp.dot(a, (a.T),)",
        f"o_ref[...] = jnp.dot(a, (a.T), {WIDE},)",
    ),
    (
        "o_ref[...] = jnp.dot(a, a.T, preferred_element_type=jnp.bfloat16)",
        f"o_ref[...] = jnp.dot(a, a.T, {WIDE})",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXES)
def test_fix(before: str, after: str) -> None:
    start = "a = x_ref[...].astype(jnp.bfloat16)\n"
    code = launch(start + before, shape="(16, 16)")
    assert fixed(code, None, None, CODE) == launch(start + after, shape="(16, 16)")


def test_fix_of_integers() -> None:
    start = "a = x_ref[...].astype(jnp.int8)\n"
    code = launch(start + "o_ref[...] = a @ a.T", shape="(16, 16)", dtype="jnp.int32")
    after = start + "o_ref[...] = jnp.matmul(a, a.T, preferred_element_type=jnp.int32)"
    assert fixed(code, None, None, CODE) == launch(after, shape="(16, 16)", dtype="jnp.int32")


def test_in_a_helper() -> None:
    code = launch(
        "o_ref[...] = scores(x_ref[...].astype(jnp.bfloat16))",
        prelude="""
        def scores(q):
            return q @ q.T
        """,
    )
    assert [f.span.start.line for f in lint(code, select=CODE)] == [
        next(n for n, line in enumerate(code.splitlines(), 1) if "q @ q.T" in line)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), FIXES[:2])
def test_fixed_kernel_runs(before: str, after: str) -> None:
    code = launch(product("jnp.dot(a, a.T)"), shape="(2, 2)")
    repaired = fixed(code, None, None, CODE)
    operands = [([1.0, 2.0, 3.0, 4.0], (2, 2), "float32")]
    assert run(repaired, operands, (2, 2), "float32")
