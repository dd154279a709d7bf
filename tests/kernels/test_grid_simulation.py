"""Simulated grids: values that depend on a few axes are computed once for these."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.kernels.grid.blocks import Grid
from pallas_lint.kernels.grid.grid_points import NUM_PROGRAMS, PROGRAM_ID
from pallas_lint.kernels.grid.grid_simulation import SimulationCache, Steps, _column
from pallas_lint.kernels.model.trace import Op
from pallas_lint.kernels.model.values import UNKNOWN, Array, Const, Sym, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Site

_SITE = cast("Site", None)
_NAMED = Sym("n", "owner")
_FUNCTIONS = ("add", "subtract", "multiply", "floor_divide", "remainder", "minimum", "maximum", "left_shift")


def computed(name: str, *operands: Value) -> Array:
    return Array((), "i32", origin=Op(name, _SITE, operands, ()))


def arithmetic(parts: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    two = st.tuples(st.sampled_from(_FUNCTIONS), parts, parts)
    three = st.tuples(parts, parts, parts)
    return two.map(lambda each: computed(f"jax.numpy.{each[0]}", *each[1:])) | three.map(
        lambda each: computed("jax.numpy.where", computed("jax.numpy.less", each[0], Const(1)), *each[1:])
    )


_AXES = st.integers(0, 3).map(Const)
_LEAVES: st.SearchStrategy[Value] = (
    st.integers(-3, 9).map(Const)
    | _AXES.map(lambda axis: computed(PROGRAM_ID, axis))
    | _AXES.map(lambda axis: computed(NUM_PROGRAMS, axis))
    | st.sampled_from([_NAMED, UNKNOWN])
)


@given(
    value=st.recursive(_LEAVES, arithmetic, max_leaves=8),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    symbols=st.sampled_from([{}, {_NAMED: 7}]),
)
def test_a_column_is_what_the_value_is_at_each_step(
    value: Value, sizes: tuple[int, ...], symbols: dict[Sym, int]
) -> None:
    grid = Grid(cast("Launch", None), sizes, (None,) * len(sizes))
    walked = [point.value(value) for point in grid.points(sizes, symbols)]
    known = all(isinstance(each, int) for each in walked)
    assert _column(value, Steps(grid, sizes, {}, SimulationCache()), symbols) == (walked if known else None)


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), data=st.data())
def test_indices_along_axes_are_those_of_the_steps(sizes: tuple[int, ...], data: st.DataObject) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(sizes) - 1)))))
    steps = Steps(Grid(cast("Launch", None), sizes, (None,) * len(sizes)), sizes, {}, SimulationCache())
    assert steps.along(axes) == [tuple(point.indices[axis] for axis in axes) for point in steps.points()]
