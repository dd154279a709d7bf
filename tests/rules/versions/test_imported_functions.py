"""What functions are given is judged however they were imported."""

from __future__ import annotations

import pytest

from pallas_lint.testing import codes, fixed, lint

SWAPPED = "lambda i: (i, 0), (8, 128)"
RIGHT = "(8, 128), lambda i: (i, 0)"


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from jax.experimental import pallas as pl", "pl.BlockSpec"),
        ("from jax.experimental.pallas import BlockSpec", "BlockSpec"),
        ("from jax.experimental.pallas import BlockSpec as BS", "BS"),
        ("import jax.experimental.pallas", "jax.experimental.pallas.BlockSpec"),
    ],
)
def test_order_of_arguments(statement: str, name: str) -> None:
    before, after = (f"{statement}\n\nspec = {name}({arguments})\n" for arguments in (SWAPPED, RIGHT))
    (finding,) = lint(before, "0.12.0.1", select="PAL701")
    assert finding.span.start.line == 3
    assert fixed(before, "0.12.0.1", None, "PAL701") == after


@pytest.mark.parametrize("called", ["pallas_call", "call"])
def test_keywords(called: str) -> None:
    imported = "pallas_call" if called == "pallas_call" else f"pallas_call as {called}"
    code = f"from jax.experimental.pallas import {imported}\n\n\ndef run(kernel, x):\n    return {called}("
    for arguments, wanted in (
        ("out_shape=x, num_warps=4", {"PAL701"}),
        ("out_shapes=x, out_shape=x", {"PAL305"}),
        ("out_shape=x, name='k'", set()),
    ):
        found = codes(lint(f"{code}kernel, {arguments})(x)\n", "0.8.3"))
        assert found & {"PAL701", "PAL305"} == wanted


def test_keywords_that_are_to_come() -> None:
    code = "from jax.experimental.pallas import kernel\n\nrun = kernel(print, out_type=None, mesh=None)\n"
    (finding,) = lint(code, "0.9.2", select="PAL703")
    assert "out_type" in finding.message
