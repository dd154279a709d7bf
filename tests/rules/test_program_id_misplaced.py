"""PAL504: axes that a grid has, and launches of which it is not known."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

CODE = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id({axis})

    def run(x):
        return pl.pallas_call(kernel, grid={grid}, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32))(x)
    """


@pytest.mark.parametrize(
    ("axis", "grid", "meant"),
    [
        ("-1", "(4,)", "write `pl.program_id(0)`"),
        ("-2", "(4, 2)", "write `pl.program_id(0)`"),
        ("-1", "(4, 2)", "write `pl.program_id(1)`"),
    ],
)
def test_negative_axes_of_any_grid(axis: str, grid: str, meant: str) -> None:
    (finding,) = lint(CODE.format(axis=axis, grid=grid), "0.10.2", "tpu", select="PAL504")
    assert finding.help == meant


@pytest.mark.parametrize(("axis", "grid"), [("0", "(4,)"), ("1", "(4, 2)"), ("axis", "(4,)"), ("0", "grid")])
def test_axes_that_the_grid_has_or_may_have(axis: str, grid: str) -> None:
    assert not lint(CODE.format(axis=axis, grid=grid), "0.10.2", "tpu", select="PAL504")


@pytest.mark.parametrize("mesh", ["mesh", "make_mesh()", "None"])
def test_an_unknown_mesh(mesh: str) -> None:
    code = f"""
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl

        def run(x, mesh, make_mesh):
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + pl.program_id(0)

            return pl.kernel(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32), mesh={mesh})(x)
        """
    assert not lint(code, "0.12.0", select="PAL504")
