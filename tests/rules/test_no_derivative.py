"""PAL505: which derivatives jax has no rule for, and what brings its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from pallas_lint.lint import lint_source
from pallas_lint.run.project import Project
from pallas_lint.testing import lint, settings
from pallas_lint.text.source import Source
from tests.rules.traced import PRELUDE, outcomes

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = "def g(x):\n    return pl.pallas_call(copy, out_shape=OUT)(x)\n"
GRID = (
    "def k(x_ref, o_ref):\n    o_ref[...] = x_ref[...] * pl.program_id(0)\n"
    "def g(x):\n    return pl.pallas_call(k, grid=(1,), out_shape=OUT)(x)\n"
)
ALIASED = "def g(x):\n    return pl.pallas_call(copy, out_shape=OUT, input_output_aliases={0: 0})(x)\n"
SCRATCH = (
    "def k(x_ref, o_ref, s_ref):\n    o_ref[...] = x_ref[...]\n"
    "def g(x):\n    return pl.pallas_call(k, out_shape=OUT, scratch_shapes=[VMEM])(x)\n"
)
CUSTOM = "@jax.custom_vjp\n" + PLAIN + "g.defvjp(lambda x: (g(x), None), lambda _, t: (t,))\n"
PARTIAL_CUSTOM = (
    "@functools.partial(jax.custom_vjp, nondiff_argnums=())\n"
    + PLAIN
    + "g.defvjp(lambda x: (g(x), None), lambda _, t: (t,))\n"
)
INNER_CUSTOM = CUSTOM + "def h(x):\n    return g(x) * 2\n"
CASES: dict[str, tuple[str, bool]] = {
    "grad": (PLAIN + "def f(x):\n    return jax.grad(lambda x: jnp.sum(g(x)))(x)\n", True),
    "grad of a def": (
        PLAIN + "def loss(x):\n    y = g(x * 2)\n    return jnp.sum(y)\ndef f(x):\n    return jax.grad(loss)(x)\n",
        True,
    ),
    "value_and_grad": (PLAIN + "def f(x):\n    return jax.value_and_grad(lambda x: jnp.sum(g(x)))(x)\n", True),
    "vjp": (PLAIN + "def f(x):\n    return jax.vjp(g, x)[0]\n", True),
    "linearize": (PLAIN + "def f(x):\n    return jax.linearize(g, x)[0]\n", True),
    "jacrev": (PLAIN + "def f(x):\n    return jax.jacrev(g)(x)\n", True),
    "hessian": (PLAIN + "def f(x):\n    return jax.hessian(lambda x: jnp.sum(g(x)))(x)\n", True),
    "grad of jit": (PLAIN + "def f(x):\n    return jax.jit(jax.grad(lambda x: jnp.sum(jax.jit(g)(x))))(x)\n", True),
    "jvp": (PLAIN + "def f(x):\n    return jax.jvp(g, (x,), (x,))\n", False),
    "jvp with a program id": (GRID + "def f(x):\n    return jax.jvp(g, (x,), (x,))\n", True),
    "jvp with aliases": (ALIASED + "def f(x):\n    return jax.jvp(g, (x,), (x,))\n", True),
    "jvp with scratch": (SCRATCH + "def f(x):\n    return jax.jvp(g, (x,), (x,))\n", True),
    "jacfwd": (PLAIN + "def f(x):\n    return jax.jacfwd(g)(x)\n", True),
    "jacfwd of vmap": (PLAIN + "def f(x):\n    return jax.vmap(lambda t: jax.jvp(g, (x,), (t,))[1])(x[None])\n", False),
    "custom_vjp": (CUSTOM + "def f(x):\n    return jax.grad(lambda x: jnp.sum(g(x)))(x)\n", False),
    "custom_vjp by partial": (PARTIAL_CUSTOM + "def f(x):\n    return jax.grad(lambda x: jnp.sum(g(x)))(x)\n", False),
    "custom_vjp further in": (INNER_CUSTOM + "def f(x):\n    return jax.grad(lambda x: jnp.sum(h(x)))(x)\n", False),
    "custom_vjp as a call": (
        PLAIN + "d = jax.custom_vjp(g)\nd.defvjp(lambda x: (g(x), None), lambda _, t: (t,))\n"
        "def f(x):\n    return jax.grad(lambda x: jnp.sum(d(x)))(x)\n",
        False,
    ),
    "stop_gradient": (
        PLAIN + "def f(x):\n    return jax.grad(lambda x: jnp.sum(g(lax.stop_gradient(x)) * x))(x)\n",
        False,
    ),
    "grad of something else": (PLAIN + "def f(x):\n    return g(x) + jax.grad(lambda x: jnp.sum(x))(x)\n", False),
    "checkpoint": (PLAIN + "def f(x):\n    return jax.checkpoint(g)(x)\n", False),
}
MUL = (
    "def mul(x_ref, w_ref, o_ref):\n    o_ref[...] = x_ref[...] * w_ref[...]\n"
    "def g(x, w):\n    return pl.pallas_call(mul, out_shape=OUT)(x, w)\n"
)
# `f` is traced, and lowered for TPU: what has no tangent is noticed there.
SOME_OPERANDS: dict[str, tuple[str, bool]] = {
    "closed over": ("def f(x, w):\n    return jax.jvp(lambda x: g(x, w), (x,), (x,))\n", True),
    "closed over by a def": (
        "def f(x, w):\n    def inner(y):\n        return g(y, w)\n    return jax.jvp(inner, (x,), (x,))\n",
        True,
    ),
    "made around it": (
        "def f(x, w):\n    v = jnp.ones((256, 128))\n    return jax.jvp(lambda x: g(x, v), (x,), (x,))\n",
        True,
    ),
    "of the module": (
        "W = jnp.ones((256, 128))\ndef f(x, w):\n    return jax.jvp(lambda x: g(x, W), (x,), (x,))\n",
        True,
    ),
    "of the module, with a tangent": (
        "W = jnp.ones((256, 128))\ndef f(x, w):\n    return jax.jvp(g, (x, W), (x, jnp.zeros_like(W)))\n",
        False,
    ),
    "bound by keyword": ("def f(x, w):\n    return jax.jvp(functools.partial(g, w=w), (x,), (x,))\n", True),
    "integers": ("def f(x, w):\n    return jax.jvp(lambda x: g(x, x.astype(jnp.int32)), (x,), (x,))\n", True),
    "both": ("def f(x, w):\n    return jax.jvp(g, (x, w), (x, x))\n", False),
    "the same twice": ("def f(x, w):\n    return jax.jvp(lambda x: g(x, x), (x,), (x,))\n", False),
    "depends on it": ("def f(x, w):\n    return jax.jvp(lambda x: g(x, w + x), (x,), (x,))\n", False),
    "passed on and added": ("def f(x, w):\n    return jax.jvp(lambda x: g(x, lax.add(w, x)), (x,), (x,))\n", False),
    "none has one": ("def f(x, w):\n    return jax.jvp(lambda y: g(x, w) + y, (x,), (x,))\n", False),
    "called with integers beside": (
        "def f(x, w):\n    g(x, w.astype(jnp.int32))\n    return jax.jvp(g, (x, w), (x, x))\n",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_verdict(name: str) -> None:
    code, expected = CASES[name]
    assert bool(lint(PRELUDE + code, "0.12.0", select="PAL505")) is expected


@pytest.mark.parametrize("name", SOME_OPERANDS)
def test_operands_without_a_tangent(name: str) -> None:
    code, expected = SOME_OPERANDS[name]
    assert bool(lint(PRELUDE + MUL + code, "0.12.0", select="PAL505")) is expected


@pytest.mark.nightly
def test_jax_refuses_operands_without_a_tangent() -> None:
    lowered = "jax.jit(f).trace(X, X).lower(lowering_platforms=('tpu',))\n"
    found = outcomes({name: f"{MUL}{code}{lowered}args = X, X\n" for name, (code, _) in SOME_OPERANDS.items()})
    assert {name: error is not None for name, error in found.items()} == {
        name: expected for name, (_, expected) in SOME_OPERANDS.items()
    }


@pytest.mark.nightly
def test_jax_agrees() -> None:
    found = outcomes({name: code for name, (code, _) in CASES.items()})
    wrong = {name: error for name, error in found.items() if (error is not None) != CASES[name][1]}
    assert not wrong


def test_an_error_where_the_argument_itself_is_the_operand() -> None:
    severities = {
        name: {f.severity for f in lint(PRELUDE + CASES[name][0], "0.12.0", select="PAL505")}
        for name in ("grad", "grad of a def")
    }
    assert severities == {"grad": {Severity.ERROR}, "grad of a def": {Severity.WARNING}}


@pytest.mark.parametrize(("decorator", "expected"), [("", True), ("@jax.custom_vjp\n", False)])
def test_a_launch_in_another_module(tmp_path: Path, decorator: str, expected: bool) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "pallas_ops.py").write_text(
        PRELUDE + decorator + PLAIN + "\n".join("# filler" for _ in range(20)) + "\n"
    )
    user = tmp_path / "train.py"
    user.write_text(
        "import jax\nimport jax.numpy as jnp\nfrom pallas_ops import g\n\ndef step(x):\n"
        "    return jax.grad(lambda x: jnp.sum(g(x)))(x)\n"
    )
    source = Source(str(user), user.read_text())
    result = lint_source(source, settings("0.12.0", None, "PAL505"), Project(tmp_path))
    assert [f.severity for f in result.findings] == ([Severity.WARNING] if expected else [])


ATTEMPTED = """
def show(x):
    try:
        print(jax.grad(lambda x: jnp.sum(g(x)))(x))
    except {handler}
"""


@pytest.mark.parametrize(
    ("handler", "flagged"),
    [
        ("Exception as error:\n        print('expected', error)", False),
        ("(ValueError, AssertionError):\n        pass", False),
        ("ValueError as error:\n        print(error)\n        raise", True),
        ("ValueError as error:\n        raise RuntimeError from error", True),
    ],
)
def test_a_failure_that_is_expected_is_a_demonstration(handler: str, flagged: bool) -> None:
    found = lint(PRELUDE + PLAIN + ATTEMPTED.format(handler=handler), "0.12.0", select="PAL505")
    assert bool(found) is flagged


def test_a_failure_that_is_suppressed() -> None:
    code = "\nimport contextlib\ndef show(x):\n    with contextlib.{manager}:\n        jax.grad(g)(x)\n"
    assert not lint(PRELUDE + PLAIN + code.format(manager="suppress(Exception)"), select="PAL505")
    assert lint(PRELUDE + PLAIN + code.format(manager="nullcontext()"), select="PAL505")
