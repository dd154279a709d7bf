"""The parts of buffers that blocks cover at each point of the grid."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.kernels.grid.blocks import Block, Blocks, blocks_of
from pallas_lint.kernels.grid.grid_points import Point
from pallas_lint.kernels.model.trace import Op
from pallas_lint.kernels.model.values import Sym
from tests.kernels.test_discovery import run


def blocks(code: str, at: int = -1) -> Blocks:
    analysis = run(textwrap.dedent(code))
    found = blocks_of(analysis.launches[at], analysis)
    assert found is not None
    return found


def output(out_map: str, grid: str = "(2, 4)", before: str = "", shape: str = "(8, 128)") -> Block:
    launch = f"""
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x, n, m):
            return pl.pallas_call(kernel, grid={grid}, in_specs=[pl.BlockSpec((8, 128), lambda *_: (0, 0))],
                out_specs=pl.BlockSpec({shape}, {out_map}),
                out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16))(x)
    """
    found = blocks(textwrap.dedent(before) + textwrap.dedent(launch)).outputs
    assert found is not None and found[0] is not None
    return found[0]


# The output's index map over grid (2, 4), and whether it ignores each axis.
MAPS: dict[str, tuple[str, tuple[bool | None, ...]]] = {
    "both used": ("lambda i, j: (i, j)", (False, False)),
    "one ignored": ("lambda i, j: (i, 0)", (False, True)),
    "a name that is not used": ("lambda i, _: (i, 0)", (False, True)),
    "variadic, the rest not used": ("lambda i, *_: (i, 0)", (False, True)),
    "variadic, indexed": ("lambda *g: (g[1], 0)", (True, False)),
    "arithmetic": ("lambda i, j: (i * 4 + j, 0)", (False, False)),
    "times nothing": ("lambda i, j: (i, j * 0)", (False, True)),
    "a literal division that reaches over the axis": ("lambda i, j: (i, j // 4)", (False, True)),
    "a division by a name": ("lambda i, j: (i, j // n)", (False, None)),
    "plus a name": ("lambda i, j: (i, j + n)", (False, False)),
    "lax.div": ("lambda i, j: (lax.div(i, 2), lax.rem(j, 2))", (True, False)),
    "where and minimum": ("lambda i, j: (jnp.where(j > 1, i, 0), jnp.minimum(j, 0))", (False, False)),
    "a load": ("lambda i, j: (TABLE[i], 0)", (None, True)),
    "unknown code": ("lambda i, j: (unknown(j), 0)", (True, None)),
    "constant": ("lambda i, j: (0, 0)", (True, True)),
    "no map": ("None", (True, True)),
    "not seen": ("n", (None, None)),
}


@pytest.mark.parametrize("name", MAPS)
def test_ignored_axes(name: str) -> None:
    index_map, wanted = MAPS[name]
    block = output(index_map)
    assert tuple(block.ignores(axis) for axis in range(2)) == wanted


def test_maps_that_are_functions() -> None:
    helper = """
    def shifted(i): return i + 1
    def out_map(i, j):
        row = shifted(i)
        column = shifted(j) - 1
        return row, column
    """
    block = output("out_map", before=helper)
    assert block.ignored_axes == ()
    assert block.visits is not None
    assert [index for _, index in block.visits] == [(i + 1, j) for i in range(2) for j in range(4)]
    assert output("functools.partial(lambda b, i, j: (b, i), 3)").ignored_axes == (1,)


def test_visits_need_a_literal_grid() -> None:
    assert output("lambda i, j: (i, j)", grid="(n, 4)").visits is None
    assert output("lambda i, j: (i, n)").visits is None
    assert output("lambda i, j: (i, j)", grid="(1024, 1024)").visits is None
    block = output("lambda i, j: (i, 0)", grid="(n, n // 2)")
    assert block.ignored_axes == (1,)
    sizes = block.grid.sizes
    assert isinstance(sizes[0], Sym) and isinstance(sizes[1], Sym)
    symbols = block.grid.model((4, 2))
    assert symbols[sizes[0]] == 4 and symbols[sizes[1]] == 2
    points = list(block.grid.points((4, 2), symbols))
    assert len(points) == 8 and points[5].indices == (2, 1)


def test_shapes_and_sizes() -> None:
    block = output("lambda i, j: (i, j, 0)", shape="(None, pl.Element(16), pl.Squeezed(), 128)")
    assert block.dims is not None
    assert [dim.kind for dim in block.dims] == ["squeezed", "element", "squeezed", "blocked"]
    assert block.block_shape == (1, 16, 1, 128)
    assert block.array_shape == (1024, 1024)
    assert block.bytes == 16 * 128 * 2


def test_roles_spaces_and_buffers() -> None:
    found = blocks("""
        def kernel(rows, a, b, o, s, sem): o[...] = a[...]
        def f(rows):
            spec = pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(2, 4),
                in_specs=[
                    pl.BlockSpec((8, 128), lambda i, j, rows: (rows[i], j), pipeline_mode=pl.Buffered(3)),
                    pl.BlockSpec(memory_space=pltpu.SMEM),
                ],
                out_specs=[pl.BlockSpec((8, 128), lambda i, j, rows: (i, 0))],
                scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
            )
            return pl.pallas_call(kernel, grid_spec=spec, out_shape=[SHAPE])(rows, jnp.ones((64, 512)), jnp.ones(3))
    """)
    assert found.inputs is not None and found.outputs is not None and found.scratch is not None
    first, second = found.inputs
    assert first is not None and second is not None
    assert (first.buffers, first.array_shape, first.ignores(0), first.ignores(1)) == (3, (64, 512), None, False)
    assert (second.space, second.block_shape, second.ignored_axes) == ("smem", (3,), (0, 1))
    out, scratch = found.outputs[0], found.scratch[0]
    assert out is not None and out.ignored_axes == (1,)
    assert scratch is not None and (scratch.bytes, scratch.space, scratch.ignored_axes) == (4096, "vmem", (0, 1))


SEMANTICS = {
    "strings": 'compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary"))',
    "constants": "compiler_params=pltpu.CompilerParams(dimension_semantics=[pltpu.PARALLEL, pltpu.ARBITRARY])",
    "enumeration": "compiler_params=pltpu.TPUCompilerParams(dimension_semantics="
    "(pltpu.GridDimensionSemantics.PARALLEL, pltpu.GridDimensionSemantics.ARBITRARY))",
    "dict": 'compiler_params=dict(mosaic=dict(dimension_semantics=("parallel", "arbitrary")))',
    "repeated": 'compiler_params={"mosaic": {"dimension_semantics": ("parallel",) * 1 + ("arbitrary",) * 1}}',
}


@pytest.mark.parametrize("name", SEMANTICS)
def test_dimension_semantics(name: str) -> None:
    found = blocks(f"""
        def kernel(o_ref): o_ref[...] = 0.0
        def f(): return pl.pallas_call(kernel, grid=(2, 4), out_shape=SHAPE, {SEMANTICS[name]})()
    """)
    assert found.grid.semantics == ("parallel", "arbitrary")


def test_dimension_semantics_that_are_not_seen() -> None:
    for params, wanted in (("", "arbitrary"), ("compiler_params=params", None), ("**params", None)):
        found = blocks(f"""
            def kernel(o_ref): o_ref[...] = 0.0
            def f(params): return pl.pallas_call(kernel, grid=(2,), out_shape=SHAPE, {params})()
        """)
        assert found.grid.semantics == (wanted,)


def test_pipeline() -> None:
    found = blocks("""
        def body(x_ref, o_ref): o_ref[...] = x_ref[...]
        def kernel(a, o):
            spec = pl.BlockSpec((8, 128), lambda i, j: (j, 0))
            pltpu.emit_pipeline(body, grid=(2, 4), in_specs=[spec], out_specs=[spec],
                                dimension_semantics=(pltpu.PARALLEL, pltpu.ARBITRARY))(a, o)
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """)
    assert found.grid.semantics == ("parallel", "arbitrary")
    assert found.outputs is not None and found.outputs[0] is not None
    assert found.outputs[0].ignored_axes == (0,)
    assert found.outputs[0].array_shape == (8, 128)


# A condition on i = program_id(0) of 3 and j = program_id(1) of n, and where it holds when n is 4.
CONDITIONS = {
    "i == 0": lambda i, j: i == 0,
    "j == pl.num_programs(1) - 1": lambda i, j: j == 3,
    "j == n - 1": lambda i, j: j == 3,
    "jnp.logical_and(i == 0, j > 0)": lambda i, j: i == 0 and j > 0,
    "(i != 0) & ~(j == 0) | (i + j == 4)": lambda i, j: (i != 0 and j != 0) or i + j == 4,
    "is_first(j)": lambda i, j: j == 0,
    "jnp.logical_not(is_first(i))": lambda i, j: i != 0,
    "lax.eq(lax.rem(j, 2), 0)": lambda i, j: j % 2 == 0,
    "(i == 0) & (x_ref[0, 0] > 0)": lambda i, j: None if i == 0 else False,
    "x_ref[0, 0] > 0": lambda i, j: None,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions(text: str) -> None:
    analysis = run(f"""
        def is_first(index): return index == 0
        def kernel(x_ref, o_ref, *, n):
            i, j = pl.program_id(0), pl.program_id(axis=1)
            @pl.when({text})
            def _(): o_ref[...] = jnp.full_like(o_ref, 1)
        def f(x, n):
            return pl.pallas_call(functools.partial(kernel, n=n), grid=(3, n), out_shape=SHAPE)(x)
    """)
    launch = analysis.launches[0]
    found = blocks_of(launch, analysis)
    assert found is not None
    store = next(event for event in launch.traces[0].events if not isinstance(event, Op) and event.guards)  # type: ignore[union-attr]
    symbols = found.grid.model((3, 4))
    points = list(found.grid.points((3, 4), symbols))
    assert len(points) == 12
    for point in points:
        assert isinstance(point, Point)
        assert point.runs(store.guards) is CONDITIONS[text](*point.indices)  # type: ignore[union-attr]


# An entry of a block shape with 8 rows in it, and the shape of the ref that the kernel sees of a (2, 8, 128) array.
DIMS: dict[str, tuple[str, tuple[object, ...] | None]] = {
    "None": ("None, 8, 128", (8, 128)),
    "squeezed": ("pl.squeezed, 8, 128", (8, 128)),
    "Squeezed": ("pl.Squeezed(), 8, 128", (8, 128)),
    "Blocked": ("1, pl.Blocked(8), 128", (1, 8, 128)),
    "Blocked by name": ("1, pl.Blocked(block_size=8), 128", (1, 8, 128)),
    "Element": ("1, pl.Element(8, (0, 4)), 128", (1, 8, 128)),
    "BoundedSlice": ("1, pl.BoundedSlice(8), 128", (1, 8, 128)),
    "Indirect": ("1, pl.Indirect(8), 128", (1, 8, 128)),
    "computed": ("1, pick(8), 128", None),
}


@pytest.mark.parametrize("name", DIMS)
def test_dimensions_are_read_in_one_way(name: str) -> None:
    shape, seen = DIMS[name]
    analysis = run(
        textwrap.dedent(f"""
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(pick):
            return pl.pallas_call(kernel, grid=(2,), in_specs=[pl.BlockSpec(({shape}), lambda i: (i, 0, 0))],
                out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(jnp.zeros((2, 8, 128)))
    """)
    )
    launch = analysis.launches[-1]
    assert launch.traces[0].refs[0].shape == seen
    found = blocks_of(launch, analysis)
    assert found is not None and found.inputs is not None and found.inputs[0] is not None
    dims = found.inputs[0].dims
    if name in ("Indirect", "computed"):
        assert dims is None  # where it lies is not known
    else:
        assert dims is not None and seen is not None
        assert tuple(dim.size for dim in dims if dim.kind != "squeezed") == seen
