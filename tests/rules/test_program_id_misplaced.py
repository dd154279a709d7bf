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


SHARDED = """
    import functools
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.sharding import PartitionSpec as P

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + lax.axis_index({axis})

    def local(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    def run(x, mesh):
        return jax.shard_map({mapped}, mesh={mesh}, in_specs=P("a"), out_specs=P("a"), check_vma=False)(x)
    """


# jax 0.12.0.1: "Found an unbound axis name: model".
@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, True),
        ({"axis": "('a', 'model')"}, True),
        ({"axis": "'a'"}, False),
        ({"axis": "('a', 'b')"}, False),
        ({"mesh": "mesh"}, False),
        ({"mapped": "jax.vmap(local, axis_name='model')"}, False),
    ],
)
def test_axes_of_the_mesh_around_a_launch(given: dict[str, str], wrong: bool) -> None:
    mesh = "jax.make_mesh((2, 2), ('a', 'b'))"
    code = SHARDED.format(**{"axis": "'model'", "mesh": mesh, "mapped": "local"} | given)
    found = lint(code, "0.12.0.1", "tpu", select="PAL504")
    assert [finding.message for finding in found if "of the `shard_map`" not in finding.message] == []
    assert bool(found) == wrong
