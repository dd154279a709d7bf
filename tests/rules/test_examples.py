"""Every rule's own examples: flagged where they report it, silent where they report it, fixed as they say."""

from __future__ import annotations

import pytest

from pallas_lint.ruleset.registry import all_rules
from pallas_lint.ruleset.rule import Example
from pallas_lint.testing import check_fine, check_fix, check_flagged

INVALID = [
    pytest.param(code, example, id=f"{code}-{at}")
    for code, entry in all_rules().items()
    for at, example in enumerate(entry.rule.invalid)
]
VALID = [
    pytest.param(code, example, id=f"{code}-{at}")
    for code, entry in all_rules().items()
    for at, example in enumerate(entry.rule.valid)
]


@pytest.mark.parametrize(("code", "example"), INVALID)
def test_flagged(code: str, example: Example) -> None:
    check_flagged(code, example)


@pytest.mark.parametrize(("code", "example"), VALID)
def test_fine(code: str, example: Example) -> None:
    check_fine(code, example)


@pytest.mark.parametrize(("code", "example"), [p for p in INVALID if p.values[1].fixed is not None])
def test_fix(code: str, example: Example) -> None:
    check_fix(code, example)


@pytest.mark.parametrize("code", [code for code, entry in all_rules().items() if not entry.rule.probe_only])
def test_has_examples(code: str) -> None:
    rule = all_rules()[code].rule
    assert rule.invalid and rule.valid
    if rule.fix is not None:
        assert any(example.fixed is not None for example in rule.invalid)


@pytest.mark.parametrize(
    ("code", "whole"),
    [
        ("x = jnp.ones(8)", "import jax.numpy as jnp\n\nx = jnp.ones(8)"),
        (
            """
            from jax.experimental.pallas import triton as plgpu

            pl.load(plgpu.x, y.jax.z)
            """,
            "from jax.experimental import pallas as pl\nfrom jax.experimental.pallas import triton as plgpu\n\n"
            "pl.load(plgpu.x, y.jax.z)",
        ),
        ("from jax import lax, numpy as jnp\n\njnp.add(lax.x)", "from jax import lax, numpy as jnp\n\njnp.add(lax.x)"),
        ("jax = 1", "jax = 1"),
    ],
    ids=["left out", "beside others", "written", "not used"],
)
def test_usual_imports_may_be_left_out(code: str, whole: str) -> None:
    assert Example(code).code == whole


def test_marks_show_what_the_fixes_change() -> None:
    example = Example(
        """
        x = f(1)  #!-
        x = f(2)  #+
        y = g(x)  #!
        #-
        z = 3  # kept
        """
    )
    assert example.code == "x = f(1)  #!\ny = g(x)  #!\n\nz = 3  # kept"
    assert example.fixed == "x = f(2)\ny = g(x)\nz = 3  # kept"
    assert Example("x = f(1)  #!").fixed is None
