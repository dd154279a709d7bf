"""Blocks of one launch: the part of each input, output and scratch buffer at each point of the grid."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import TYPE_CHECKING

from pallas_lint.identity import iter_unique
from pallas_lint.kernels.grid.grid_points import Point, axes_in, terms_in
from pallas_lint.kernels.grid.index_maps import IndexMap, maps_of
from pallas_lint.kernels.launches.dimension_semantics import semantics_of
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import bits, dtype_of
from pallas_lint.kernels.model.known_names import PROGRAM_ID, declares_array
from pallas_lint.kernels.model.launch import BlockDim, block_spec
from pallas_lint.kernels.model.refs import scratch_ref
from pallas_lint.kernels.model.run import TOO_MUCH
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.trace import KernelTrace, Op
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    OneOf,
    Ref,
    Seq,
    Shape,
    Sym,
    Value,
    dim,
    options,
    shape_of,
)
from pallas_lint.records import define, field, frozen
from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import BlockSpec, Launch, Role
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.kernels.model.values import Dim

MAX_POINTS = 4096  # grid points over which index maps are evaluated
_UNPLACED = ("indirect", "computed", "unknown")  # dimensions along which the position of a block is not known
_FREE_SYMBOL = 7  # replaces an unknown symbol where only the dependence on the grid matters


@frozen
class Grid:
    """The grid of a launch. `semantics`: of each axis, None where not known; "arbitrary" is jax's default on TPU."""

    launch: Launch
    sizes: tuple[Dim, ...]
    semantics: tuple[str | None, ...]

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def literal(self) -> tuple[int, ...] | None:
        """The sizes, where all are known."""
        known = tuple(size for size in self.sizes if isinstance(size, int))
        return known if len(known) == len(self.sizes) else None

    def points(self, sizes: tuple[int, ...] | None = None, symbols: dict[Sym, int] | None = None) -> Iterator[Point]:
        """Every step in the order in which a TPU runs them, for these sizes or the literal ones."""
        sizes = self.literal if sizes is None else sizes
        if sizes is None:
            return
        for indices in itertools.product(*(range(size) for size in sizes)):
            yield Point(indices, sizes, symbols or {}, self.launch)

    def corners(self, sizes: tuple[int, ...]) -> Iterator[Point]:
        """The first and last step of each axis; of very many axes only of all together."""
        ends = [dict.fromkeys((0, size - 1)) for size in sizes]
        many = math.prod(map(len, ends)) > MAX_POINTS
        steps = zip(*((0, size - 1) for size in sizes), strict=True) if many else itertools.product(*ends)
        known = tuple(size if isinstance(size, int) else None for size in self.sizes)
        for indices in steps:
            yield Point(indices, known, launch=self.launch)

    def model(self, sizes: tuple[int, ...]) -> dict[Sym, int]:
        """What the symbols among the sizes have to be for the grid to have these `sizes`."""
        symbols: dict[Sym, int] = {}
        for known, size in zip(self.sizes, sizes, strict=True):
            if isinstance(known, Sym):
                symbols.setdefault(known, size)
                # Sizes are whole multiples here: rounding up and rounding down are the same.
                if known.operation is not None and known.operation[0] in ("//", "cdiv"):
                    symbol, left, right = known.operation
                    other = arithmetic("cdiv" if symbol == "//" else "//", left, right)
                    if isinstance(other, Sym):
                        symbols.setdefault(other, size)
        return symbols


@define(eq=False, slots=False)
class Block:
    """One operand, output or scratch buffer of a launch, as one kernel parameter sees it.

    `array_shape` and `dtype` are those of the whole array, None where not known. `dims` describe the block, None
    where not known. Scratch is one block that no grid axis moves.
    """

    role: Role
    index: int
    grid: Grid
    array_shape: Shape | None
    dtype: str | None
    dims: tuple[BlockDim, ...] | None
    space: str | None
    buffers: int | None = None  # `pipeline_mode=pl.Buffered(n)`; None: left to the backend
    revisitable: bool = False  # `pl.Buffered(revisit=...)`: any order of visits may be meant
    spec: BlockSpec | None = None
    index_map: IndexMap | None = None  # None: the block stays where it is, or the map is not known (see `known_map`)
    known_map: bool = True
    sure: bool = True  # False: one of several specs that a branch chooses from
    _ignored: dict[int, bool | None] = field(factory=dict, init=False, repr=False)

    @property
    def block_shape(self) -> Shape | None:
        return None if self.dims is None else tuple(dim.size for dim in self.dims)

    @property
    def bytes(self) -> int | None:
        """The size of one buffer without padding; None where shape or dtype is not known."""
        return self._bytes_of(self.block_shape)

    @property
    def array_bytes(self) -> int | None:
        """The size of the array without padding; None where shape or dtype is not known."""
        return self._bytes_of(self.array_shape)

    def _bytes_of(self, sizes: Shape | None) -> int | None:
        if sizes is None or self.dtype is None or self.dtype == "semaphore":
            return None
        known = [size for size in sizes if isinstance(size, int)]
        return math.prod(known) * bits(self.dtype) // 8 if len(known) == len(sizes) else None

    @cached_property
    def indices(self) -> tuple[Value, ...] | None:
        """What the index map returns for each dimension, in terms of `program_id`; None where that is not known."""
        if self.index_map is None:
            return (Const(0),) * len(self.dims or ()) if self.known_map else None
        return traced_results(self.index_map, self.grid.rank)

    def ignores(self, axis: int) -> bool | None:
        """Whether the block stays the same along a grid axis; None where that is not known."""
        if axis not in self._ignored:
            self._ignored[axis] = self._ignores(axis)
        return self._ignored[axis]

    def _ignores(self, axis: int) -> bool | None:
        if self.indices is None:
            referenced = self.index_map is None or _mentions(self.index_map, axis, self.grid.rank)
            return None if referenced else True
        found = [axes_in(value, self.grid.launch) for value in self.indices]
        if all(axis not in axes for axes, _ in found):
            surely = all(complete for _, complete in found)
            unmentioned = self.index_map is not None and not _mentions(self.index_map, axis, self.grid.rank)
            return True if surely or unmentioned else None
        return self._stays(axis, [value for value, (axes, _) in zip(self.indices, found, strict=True) if axis in axes])

    def _stays(self, axis: int, values: list[Value]) -> bool | None:
        """Whether values in which the axis occurs stay the same along it, by trying."""
        literal = self.grid.literal
        sizes = tuple(min(size, 5) if isinstance(size, int) else 3 for size in self.grid.sizes)
        exact = literal == sizes
        symbols = {**dict.fromkeys(symbols_in(values), _FREE_SYMBOL), **self.grid.model(sizes)}
        terms = [terms_in(value) for value in values]
        used_axes = {at for term in terms for at in (*term.axes, *term.sized)}
        sizes = tuple(size if at in used_axes else 1 for at, size in enumerate(sizes))
        if math.prod(sizes) > MAX_POINTS:
            return None
        by_rest: dict[tuple[int, ...], set[object]] = {}
        for point in self.grid.points(sizes, symbols):
            here = tuple(point.value(value) for value in values)
            rest = (*point.indices[:axis], *point.indices[axis + 1 :])
            by_rest.setdefault(rest, set()).add(here)
        found = [here for seen in by_rest.values() for here in seen]
        if any(len({here[at] for here in seen} - {None}) > 1 for seen in by_rest.values() for at in range(len(values))):  # type: ignore[index]
            return False
        known = all(None not in here for here in found)  # type: ignore[operator]
        return True if exact and known and not symbols_in(values) else None

    @property
    def ignored_axes(self) -> tuple[int, ...] | None:
        """The grid axes along which the block stays the same; None where one is not known."""
        found = [self.ignores(axis) for axis in range(self.grid.rank)]
        return None if None in found else tuple(axis for axis, ignored in enumerate(found) if ignored)

    def at(self, point: Point) -> tuple[int, ...] | None:
        """The index map's results at a point; None where one is not known."""
        if self.indices is None:
            return None
        found = tuple(point.value(value) for value in self.indices)
        return None if any(not isinstance(value, int) for value in found) else found  # type: ignore[return-value]

    @cached_property
    def visits(self) -> list[tuple[Point, tuple[int, ...]]] | None:
        """The index map's results over the literal grid, in order; None where the grid or a result is not known."""
        literal = self.grid.literal
        if literal is None or math.prod(literal) > MAX_POINTS:
            return None
        visited = []
        for point in self.grid.points():
            here = self.at(point)
            if here is None:
                return None
            visited.append((point, here))
        return visited


@frozen(eq=False)
class Blocks:
    """The blocks of one launch, by role and position. None: their number is not known."""

    grid: Grid
    inputs: tuple[Block | None, ...] | None
    outputs: tuple[Block | None, ...] | None
    scratch: tuple[Block | None, ...] | None

    @property
    def operands(self) -> tuple[Block | None, ...]:
        """The blocks of inputs and outputs, as far as their number is known."""
        return (*(self.inputs or ()), *(self.outputs or ()))

    def of(self, ref: Ref) -> Block | None:
        """The block behind a kernel parameter; None where it is not known (or is a tree of several)."""
        group = {"in": self.inputs, "out": self.outputs}.get(ref.role or "")
        if group is None or ref.index is None or ref.index >= len(group):
            return None
        return group[ref.index]


def blocks_of(launch: Launch, analysis: Analysis) -> Blocks | None:
    """The blocks of a launch that has been analysed; None where its grid is not known. Without a grid: one step."""
    return analysis.memo.get_or_compute(("blocks", launch), lambda: _blocks_of(launch, analysis.interpreter)).value


def _blocks_of(launch: Launch, interpreter: Tracer) -> Blocks | None:
    grid = grid_of(launch)
    if grid is None:
        return None
    inputs = None
    count = launch.input_count
    if count is not None:
        inputs = tuple(
            _block(launch, interpreter, grid, "in", at, launch.operand(at) or UNKNOWN) for at in range(count)
        )
    outputs = None
    count_out = launch.output_count
    if count_out is not None:
        shapes = launch.out_shapes.items if launch.out_shapes is not None else None
        if launch.form.outputs == "operands":
            shapes = None if count is None else tuple(launch.operand(count + at) or UNKNOWN for at in range(count_out))
        outputs = tuple(_block(launch, interpreter, grid, "out", at, _element(shapes, at)) for at in range(count_out))
    scratch = None
    if isinstance(launch.scratch, Seq):
        scratch = tuple(_scratch(grid, at, item) for at, item in enumerate(launch.scratch.items))
    return Blocks(grid, inputs, outputs, scratch)


def grid_of(launch: Launch) -> Grid | None:
    """The grid with the semantics of its axes; None where it is not known how many axes there are."""
    if launch.has_grid is False and launch.form.grid == "argument":
        return Grid(launch, (), ())
    seq = launch.grid
    if seq is None and isinstance(launch.argument("grid"), Sym):
        return None  # a number or a tuple
    if seq is None or seq.open:
        return None
    return Grid(launch, tuple(dim(item) for item in seq.items), semantics_of(launch, len(seq.items)))


def _element(values: tuple[Value, ...] | None, at: int) -> Value:
    return UNKNOWN if values is None or at >= len(values) else values[at]


def _block(launch: Launch, interpreter: Tracer, grid: Grid, role: Role, at: int, declared: Value) -> Block | None:
    specs = launch.in_specs if role == "in" else launch.out_specs
    argument = launch.argument("in_specs" if role == "in" else "out_specs")
    shape, dtype = _array(declared)
    if isinstance(declared, Seq | Dictionary):
        return None  # a tree of blocks behind one parameter
    if argument in (None, NONE):
        # No specs: each step sees the whole array.
        return None if launch.open else _whole(role, at, grid, shape, dtype, None)
    if specs is None or specs.open or at >= len(specs.items):
        return None
    found = [block_spec(option, role) for option in options(specs.items[at])]
    if any(spec is None for spec in found):
        return None
    spec = found[0]
    assert spec is not None
    maps = [] if spec.index_map is None else list(maps_of(spec, interpreter, launch))
    return Block(
        role,
        at,
        grid,
        shape,
        dtype,
        _dims(spec, shape),
        spec.memory_space,
        _buffers(spec),
        _is_revisitable(spec),
        spec,
        maps[0] if len(maps) == 1 else None,
        spec.index_map is None or len(maps) == 1,
        len(found) == 1 and not isinstance(spec.index_map, OneOf),
    )


def _whole(role: Role, at: int, grid: Grid, shape: Shape | None, dtype: str | None, space: str | None) -> Block:
    dims = None if shape is None else tuple(BlockDim("whole", size) for size in shape)
    return Block(role, at, grid, shape, dtype, dims, space)


def _scratch(grid: Grid, at: int, declared: Value) -> Block | None:
    if isinstance(declared, Seq | Dictionary) or declared == NONE:
        return None
    ref = scratch_ref(f"#{at}", declared)
    return _whole("scratch", at, grid, ref.shape, ref.dtype, ref.space)


def _array(declared: Value) -> tuple[Shape | None, str | None]:
    if isinstance(declared, Array | Ref):
        return declared.shape, declared.dtype
    if declares_array(declared):
        return shape_of(declared.argument("shape", 0) or UNKNOWN), dtype_of(declared.argument("dtype", 1))
    return None, None


def _dims(spec: BlockSpec, shape: Shape | None) -> tuple[BlockDim, ...] | None:
    if not spec.has_block_shape:
        return None if shape is None else tuple(BlockDim("whole", size) for size in shape)
    dims = spec.dims
    return None if dims is None or any(dim.kind in _UNPLACED for dim in dims) else dims


def _buffers(spec: BlockSpec) -> int | None:
    mode = spec.value.argument("pipeline_mode")
    if not isinstance(mode, CallResult) or mode.short != "Buffered":
        return None
    count = dim(mode.argument("buffer_count", 0) or UNKNOWN)
    return count if isinstance(count, int) else None


def _is_revisitable(spec: BlockSpec) -> bool:
    mode = spec.value.argument("pipeline_mode")
    if mode in (None, NONE):
        return spec.value.open
    return not isinstance(mode, CallResult) or mode.open or mode.argument("revisit", 2) not in (None, NONE)


# -- running index maps --------------------------------------------------------------------------------------------


def traced_results(index_map: IndexMap, rank: int) -> tuple[Value, ...] | None:
    """What the map returns, run on `program_id`s and unknown prefetch refs; None where that is no plain tuple."""
    interpreter, func = index_map.interpreter, index_map.func
    site, launch = index_map.site_of(func.node), index_map.launch
    own = (Op(PROGRAM_ID, site, (Const(axis),), (), launch=launch) for axis in range(rank))
    arguments: list[Value] = [Array((), "i32", origin=op) for op in own]
    prefetch = launch.prefetch_count if launch is not None else None
    arguments += [Ref(f"#prefetch{at}", "prefetch", at, space="smem") for at in range(prefetch or 0)]
    result = _run(interpreter, index_map, Arguments(arguments, open=prefetch is None))
    if isinstance(result, Seq):
        return None if result.open else result.items
    return (result,) if isinstance(result, Array | Const | Sym) else None


def table_reads(block: Block) -> KernelTrace | None:
    """What the index map of a block does, run on `program_id`s and on prefetched arrays of known shape."""
    launch, index_map = block.grid.launch, block.index_map
    count = launch.prefetch_count
    if index_map is None or index_map.launch is not launch or not count or launch.operands_open:
        return None
    tables = (launch.operands or [])[:count]
    if len(tables) < count:
        return None
    site = index_map.site_of(index_map.func.node)
    own = (Op(PROGRAM_ID, site, (Const(axis),), (), launch=launch) for axis in range(block.grid.rank))
    arguments: list[Value] = [Array((), "i32", origin=op) for op in own]
    names = [parameter.name.value for parameter in index_map.parameters][block.grid.rank :]
    for at, table in enumerate(tables):
        name = names[at] if at < len(names) else f"#prefetch{at}"
        shape = table.shape if isinstance(table, Array) else None
        arguments.append(Ref(name, "prefetch", at, shape=shape, space="smem"))
    trace = KernelTrace(index_map.func.name, site, launch)
    _run(index_map.interpreter, index_map, Arguments(arguments), trace)
    return trace


def _run(interpreter: Tracer, index_map: IndexMap, arguments: Arguments, trace: KernelTrace | None = None) -> Value:
    if index_map.launch is None:
        return UNKNOWN
    with interpreter.reading(index_map.func, index_map.launch):
        # Operations keep where they came from in kernels only.
        interpreter.frame.kernel = trace or KernelTrace(
            index_map.func.name, index_map.site_of(index_map.func.node), index_map.launch
        )
        try:
            return interpreter.call_function(index_map.func, arguments)
        except TOO_MUCH:
            return UNKNOWN


def _mentions(index_map: IndexMap, axis: int, rank: int) -> bool:
    """Whether the parameter for a grid axis occurs in the map at all."""
    names = [parameter.name.value for parameter in index_map.parameters]
    star = index_map.func.node.params.star_arg
    if axis < len(names):
        name = names[axis]
    elif isinstance(star, nodes.Param):
        name = star.name.value
    else:
        return True
    return any(nodes.is_name(node, name) for node in walk(index_map.func.node.body))


def symbols_in(values: Iterable[Value]) -> set[Sym]:
    """The named values of which nothing is known that go into these."""
    found: set[Sym] = set()
    stack = list(values)
    for value in iter_unique(stack):
        if isinstance(value, Sym):
            if value.operation is None:
                found.add(value)
            else:
                stack.extend(value.operation[1:])
        elif isinstance(value, Array) and value.origin is not None:
            stack.extend((*value.origin.args, *(item for _, item in value.origin.keywords)))
        elif isinstance(value, OneOf):
            stack.extend(value.options)
    return found
