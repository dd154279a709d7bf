"""PAL705: what `pallas_call` still takes for Mosaic GPU, by version."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

CODE = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import mosaic_gpu as plgpu

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def run(x):
        return pl.pallas_call(kernel, out_shape=x{})(x)
    """
PARAMS = ", compiler_params=plgpu.CompilerParams()"


@pytest.mark.parametrize(
    ("jax", "severity"), [("0.10.1", None), ("0.10.2", "info"), ("0.11.1", "info"), ("0.11.2", "error")]
)
def test_parameters_are_refused_where_they_are_gone(jax: str, severity: str | None) -> None:
    # jax 0.10.2 lowers this launch; 0.12.0.1 ends in an AssertionError without a text.
    found = lint(CODE.format(PARAMS), jax, select="PAL705")
    assert [finding.severity.value for finding in found] == ([severity] if severity else [])


@pytest.mark.parametrize("jax", ["0.10.2", "0.11.2"])
def test_a_launch_without_signs_of_mosaic_gpu_is_left_alone(jax: str) -> None:
    assert not lint(CODE.format(""), jax, select="PAL705")
