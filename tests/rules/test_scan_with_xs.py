"""PAL108: loops and branches without a lowering. Every verdict was lowered with jax 0.4.35 to 0.12.0.1."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint
from tests.rules.kernels import launch
from tests.rules.test_sparse_core import HALF, on_subcores

CODE = "PAL108"


def kernel(body: str, backend: str | None = "tpu", extra: str = "") -> str:
    return launch(body, backend, operand="jnp.zeros((16, 128))", extra=extra)


def found(body: str, version: str = "0.12.0.1", backend: str | None = "tpu", extra: str = "") -> list[str]:
    return [f.severity.name for f in lint(kernel(body, backend, extra), version, None, CODE)]


EVERYWHERE = [
    "c, _ = lax.scan(lambda c, v: (c + v, None), jnp.zeros((128,)), x_ref[...])",
    "c, _ = lax.scan(lambda c, v: (c + v, None), jnp.zeros((128,)), xs=x_ref[...])",
    "c, _ = lax.scan(lambda c, v: (c + v, None), x_ref[...], jnp.arange(4.0))",
    "c, _ = jax.lax.scan(lambda c, v: (c + v[0], None), jnp.zeros((128,)), (x_ref[...], x_ref[...]))",
    "_, ys = lax.scan(lambda c, _: (c + 1.0, c), x_ref[0, :], None, length=16)\no_ref[...] = ys",
    "c, _ = lax.scan(lambda c, _: (c + 1.0, None), x_ref[...], None, length=4, reverse=True)",
    "o_ref[...] = lax.map(lambda r: r * 2, x_ref[...])",
    "o_ref[...] = lax.associative_scan(jnp.add, x_ref[...], axis=0)",
    "o_ref[...] = lax.cond(x_ref[...] > 0, lambda: x_ref[...], lambda: x_ref[...] * 2)",
    "def step(c, v):\n    return c + v, None\nc, _ = lax.scan(step, jnp.zeros((128,)), x_ref[...])",
    "@pl.when(x_ref[...] > 0)\ndef _():\n    o_ref[...] = x_ref[...]",
    "@pl.when(x_ref[:1, :1] > 0)\ndef _():\n    o_ref[...] = x_ref[...]",
]
TRACED = [
    "n = pl.program_id(0) + 2\no_ref[...] = lax.fori_loop(0, n, lambda k, c: c + k, x_ref[...], unroll=2)",
    "n = pl.program_id(0)\no_ref[...] = lax.fori_loop(n, n + 4, lambda k, c: c + k, x_ref[...], unroll=4)",
    "n = x_ref[0, 0].astype(jnp.int32)\no_ref[...] = lax.fori_loop(0, n, lambda k, c: c + k, x_ref[...], unroll=2)",
    "@pl.loop(0, pl.program_id(0), unroll=2)\ndef body(k):\n    o_ref[...] = x_ref[...]",
]


@pytest.mark.parametrize("body", EVERYWHERE + TRACED)
@pytest.mark.parametrize("version", ["0.6.2", "0.8.3", "0.12.0.1"])
@pytest.mark.parametrize("backend", ["tpu", "triton"])
def test_refused_everywhere(body: str, version: str, backend: str) -> None:
    assert found(body, version, backend, "grid=(1,), ") == ["ERROR"]


@pytest.mark.parametrize("body", TRACED)
def test_traced_bounds_whatever_the_backend(body: str) -> None:
    assert found(body, backend=None, extra="grid=(1,), ") == ["ERROR"]


FINE = [
    "c, _ = lax.scan(lambda c, _: (c + 1.0, None), x_ref[...], None, length=4)",
    "c, _ = lax.scan(lambda c, _: (c + 1.0, c), x_ref[...], length=4)",  # its results are not used
    "c, _ = lax.scan(lambda c, _: (c + 1.0, None), x_ref[...], (), length=4)",
    "o_ref[...] = lax.fori_loop(0, 4, lambda k, c: c + k, x_ref[...], unroll=1)",
    "o_ref[...] = lax.fori_loop(0, pl.program_id(0), lambda k, c: c + k, x_ref[...], unroll=True)",
    "o_ref[...] = lax.fori_loop(0, pl.num_programs(0), lambda k, c: c + k, x_ref[...])",
    "o_ref[...] = lax.cond(pl.program_id(0) == 0, lambda: x_ref[...], lambda: x_ref[...] * 2)",
    "o_ref[...] = lax.cond(jnp.sum(x_ref[...]) > 0, lambda: x_ref[...], lambda: x_ref[...] * 2)",
    "@pl.when(jnp.any(x_ref[...] > 0))\ndef _():\n    o_ref[...] = x_ref[...]",
    "@pl.when(x_ref[0, 0] > 0)\ndef _():\n    o_ref[...] = x_ref[...]",
    "o_ref[...] = lax.switch(pl.program_id(0), [lambda: x_ref[...], lambda: x_ref[...] * 2])",
    "_, c = lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + 1.0), (0, x_ref[...]))",
    "o_ref[...] = lax.associative_scan(jnp.add, x_ref[:1, :], axis=0)",
]


@pytest.mark.parametrize("body", FINE)
@pytest.mark.parametrize("backend", ["tpu", "triton"])
def test_fine(body: str, backend: str) -> None:
    assert found(body, "0.12.0.1", backend, "grid=(1,), ") == []


def test_scans_need_a_counter_before_0_9() -> None:
    body = "c, _ = lax.scan(lambda c, _: (c + 1.0, None), x_ref[...], None, length=4)"
    assert found(body, "0.8.3") == found(body, "0.4.35", "triton") == ["ERROR"]
    assert found(body, "0.9.2") == []
    counted = "(k, c), _ = lax.scan(lambda s, _: ((s[0] + 1, s[1] + 1.0), None), (0, x_ref[...]), None, length=4)"
    assert found(counted, "0.8.3") == []


def test_unrolling() -> None:
    body = "o_ref[...] = lax.fori_loop(0, 4, lambda k, c: c + k, x_ref[...], unroll={})"
    assert found(body.format(2), "0.12.0.1", "triton") == ["ERROR"]
    assert found(body.format(True), "0.12.0.1", "triton") == ["ERROR"]
    assert found(body.format(2), "0.9.2") == ["ERROR"]
    assert found(body.format(2), "0.10.2") == []
    assert found(body.format(4), "0.4.35") == found(body.format(True), "0.4.35") == []


def test_one_finding_a_call() -> None:
    findings = lint(kernel(EVERYWHERE[6]), "0.12.0.1")
    assert [f.code for f in findings if f.code in ("PAL101", CODE)] == [CODE]
    assert all(f.severity is Severity.ERROR for f in findings if f.code == CODE)


def test_an_array_as_condition_on_subcores() -> None:
    """Refused while the kernel is traced; what only lowering refuses elsewhere was not measured on subcores."""
    assert on_subcores(f"pl.when({HALF} > 0)(lambda: None)") == [("PAL108", "error")]
    assert on_subcores(f"pl.when({HALF}[0] > 0)(lambda: None)") == []
    assert ("PAL108", "error") not in on_subcores("lax.map(lambda v: v, idx[...])")
