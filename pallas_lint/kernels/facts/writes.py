"""Writes of a kernel to its outputs: parts, grid steps, and uses of the outputs by the caller."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.facts.aliases import aliased_outputs
from pallas_lint.kernels.facts.named_axes import axis_points, gpu_axes_in
from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.kernels.grid.grid_points import Point, loops_in
from pallas_lint.kernels.grid.row_permutations import is_data_dependent, row_permutations
from pallas_lint.kernels.launches.backend import STRONG
from pallas_lint.kernels.model.known_names import declares_array, integer
from pallas_lint.kernels.model.launch import block_spec
from pallas_lint.kernels.model.trace import Access, Op, is_full_index
from pallas_lint.kernels.model.values import ELLIPSIS, NONE, Array, Const, Ref, Seq, Shape, Slice, Sym, Value, options
from pallas_lint.records import frozen
from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace

Box = tuple[tuple[int, int], ...]  # first and last + 1 of each dimension
_MAX_STEPS = 2048  # of grid times stores
_MAX_LOOPS = 512
_MAX_CELLS = 40_000
_SAMPLE = 3  # steps along a grid axis of unknown size
_STORES = ("store", "accumulate")


def outputs_of(trace: KernelTrace) -> list[Ref]:
    """The outputs of the launch itself that the kernel gets as single refs, semaphores left out.

    None where another kernel of the launch may write them.
    """
    if trace.launch.runs_several:
        return []
    shapes = trace.launch.out_shapes
    return [
        ref
        for ref in trace.refs
        if ref.role == "out" and ref.index is not None and ref.owner is None and not ref.in_tree
        if ref.dtype != "semaphore" and ref.space != "semaphore" and not ref.optional
        if shapes is not None and ref.index < len(shapes.items) and _is_array(shapes.items[ref.index])
    ]


def _is_array(declared: Value) -> bool:
    return isinstance(declared, Array | Sym) or declares_array(declared)


def all_seen(trace: KernelTrace) -> bool:
    """Whether everything that the kernel does to its refs was seen."""
    return trace.complete and trace.tracked_until is None


def writes_to(trace: KernelTrace, ref: Ref) -> list[Access] | None:
    """Every store to a buffer; None where something else may have written it."""
    if not all_seen(trace):
        return None
    found = []
    for event in trace.events:
        if not isinstance(event, Access) or event.ref.buffer != ref.buffer:
            continue
        if event.kind == "escape":
            return None
        if event.kind in _STORES:
            found.append(event)
    return found


@frozen
class Gap:
    """A part of an output that no store reaches. `certain`: the text decides all sizes.

    "part": each visit leaves it out; "blocks": some blocks are never written, because of the guards.
    """

    kind: Literal["part", "blocks"]
    access: Access
    certain: bool
    block: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    written: Box | None = None  # where there is one store only


def gap(trace: KernelTrace, ref: Ref, analysis: Analysis, axes: dict[str, int] | None = None) -> Gap | None:
    """What of an output is certainly, or very likely, left unwritten; None where all may be written.

    `axes`: the named axes along which the kernel runs, where it is not over blocks.
    """
    stores = writes_to(trace, ref)
    if not stores or any(_region(store) is None for store in stores):
        return None
    if any(_is_whole(store) and not store.guards for store in stores):
        return None
    shape = ref.shape
    if shape is None:
        return None
    steps, certain = _steps(trace, ref, analysis, gpu_axes_in(trace) if axes is None else axes)
    if len(steps) * len(stores) > _MAX_STEPS:
        return None
    sizes, exact, symbols = _sizes(shape, stores)
    if sizes is None:
        return None
    written: dict[tuple[int, ...], list[Box]] = {}
    anywhere: list[Box] = []
    for point, block in steps:
        boxes = written.setdefault(block, [])
        for store in stores:
            here = _boxes(store, point, sizes, symbols)
            if here is None:
                return None
            anywhere.extend(here)
            if point.runs(store.guards) is not False:
                boxes.extend(here)
    for block, boxes in written.items():
        if _covers(boxes, sizes) is not False:
            continue
        blind = _covers(anywhere, sizes) is False
        only = anywhere[0] if len(set(anywhere)) == 1 and blind else None
        kind: Literal["part", "blocks"] = "part" if blind or boxes else "blocks"
        return Gap(kind, stores[0], exact and (certain or blind), block, sizes, only)
    return None


def _is_whole(store: Access) -> bool:
    return is_full_index(store.index) and store.ref.indexer is None


def _region(store: Access) -> tuple[Value, Shape | None] | None:
    """The index of a store into the buffer itself, and the shape of what it indexes; None where views hide it."""
    ref = store.ref
    if ref.indexer is None:
        return store.index, None
    if not is_full_index(store.index) or ref.parent is None or ref.parent.view:
        return None
    return ref.indexer, ref.parent.shape


def _steps(
    trace: KernelTrace, ref: Ref, analysis: Analysis, axes: dict[str, int]
) -> tuple[list[tuple[Point, tuple[int, ...]]], bool]:
    """The grid steps with the block of `ref` that each sees, and whether they are those that really run."""
    blind: list[tuple[Point, tuple[int, ...]]] = [(Point((), ()), ())]
    if axes:
        places = axis_points([], trace.launch, axes)
        return [(place, ()) for place in places] or blind, bool(places)
    blocks = blocks_of(trace.launch, analysis)
    block = blocks.of(ref) if blocks is not None else None
    if blocks is None or block is None or not block.sure:
        return blind, False
    visits = block.visits
    if visits is not None:
        return list(visits), True
    sizes = tuple(size if isinstance(size, int) else _SAMPLE for size in blocks.grid.sizes)
    if math.prod(sizes) > _MAX_STEPS:
        return blind, False
    found = []
    for point in blocks.grid.points(sizes, blocks.grid.model(sizes)):
        here = block.at(point)
        if here is None:
            return blind, False
        found.append((point, here))
    return found, False


def _sizes(shape: Shape, stores: list[Access]) -> tuple[tuple[int, ...] | None, bool, dict[Sym, int]]:
    """The assumed sizes, whether they are the real ones, and the values that were assumed for symbols among them.

    A dimension that every store takes whole may have any size. One of which only the name is known gets its default,
    or an even number where the stores address parts of it.
    """
    symbols: dict[Sym, int] = {}
    sizes: list[int] = []
    exact = True
    for at, size in enumerate(shape):
        if isinstance(size, int):
            sizes.append(size)
            continue
        components = [_component(store, at, len(shape)) for store in stores]
        if any(component is None for component in components):
            return None, False, {}
        if all(_is_all(component) for component in components if component is not None):
            sizes.append(1)
            continue
        if not isinstance(size, Sym):
            return None, False, {}
        exact = False
        for symbol in _symbols(size):
            default = symbol.default
            known = default.value if isinstance(default, Const) and type(default.value) is int else None
            if symbol.is_chosen:
                numbers = [integer(option) or 0 for option in options(symbol.default or NONE)]
                known = min(numbers)  # the least that a branch chooses; 0 where one is not known
            if known is None and not all(_mentions(component, symbol) for component in components):
                return None, False, {}
            symbols[symbol] = known if known is not None else 24
        taken = Point((), (), symbols).value(size)
        if not isinstance(taken, int) or taken <= 0:
            return None, False, {}
        sizes.append(taken)
    return tuple(sizes), exact, symbols


def _symbols(value: Value) -> Iterator[Sym]:
    if isinstance(value, Sym):
        if value.operation is None:
            yield value
        else:
            yield from _symbols(value.operation[1])
            yield from _symbols(value.operation[2])
    elif isinstance(value, Slice):
        for part in (value.start, value.stop, value.size):
            if part is not None:
                yield from _symbols(part)


def _mentions(component: Value | None, symbol: Sym) -> bool:
    return component is not None and (_is_all(component) or symbol in set(_symbols(component)))


def _is_all(component: Value) -> bool:
    return component == ELLIPSIS or (
        isinstance(component, Slice)
        and component.size is None
        and (component.start, component.stop, component.step) == (NONE, NONE, NONE)
    )


def _components(store: Access, rank: int) -> list[Value] | None:
    """The index of a store, one element a dimension; None where it is not that plain."""
    region = _region(store)
    if region is None:
        return None
    index = region[0]
    if isinstance(index, Seq) and (index.open or index.kind == "list"):
        return None
    parts = list(index.items) if isinstance(index, Seq) else [index]
    if any(part == NONE for part in parts) or parts.count(ELLIPSIS) > 1:
        return None
    if ELLIPSIS not in parts:
        parts.append(ELLIPSIS)
    at = parts.index(ELLIPSIS)
    missing = rank - (len(parts) - 1)
    if missing < 0:
        return None
    return [*parts[:at], *[ELLIPSIS] * missing, *parts[at + 1 :]]


def _component(store: Access, at: int, rank: int) -> Value | None:
    found = _components(store, rank)
    return None if found is None else found[at]


def _boxes(store: Access, point: Point, sizes: tuple[int, ...], symbols: dict[Sym, int]) -> list[Box] | None:
    """What a store writes at a step; None where that is not known."""
    parts = _components(store, len(sizes))
    if parts is None:
        return None
    loops: dict[Op, range] = {}
    for part in parts:
        for op in loops_in(part):
            bounds = [Point((), (), symbols).value(bound) for bound in op.args]
            if len(bounds) != 2 or not all(isinstance(bound, int) for bound in bounds):
                return None
            loops[op] = range(bounds[0], bounds[1])  # type: ignore[arg-type]
    if math.prod(len(steps) for steps in loops.values()) > _MAX_LOOPS:
        return None
    found = []
    for values in itertools.product(*loops.values()):
        inner = point.in_loops(dict(zip(loops, values, strict=True)), {**symbols, **point.symbols})
        box = [_interval(part, size, inner) for part, size in zip(parts, sizes, strict=True)]
        if any(interval is None for interval in box):
            return None
        found.append(tuple(interval for interval in box if interval is not None))
    return found


def _interval(part: Value, size: int, point: Point) -> tuple[int, int] | None:
    if _is_all(part):
        return 0, size
    if isinstance(part, Slice):
        if part.step not in (NONE, Const(1)):
            return None
        start = 0 if part.start == NONE else point.value(part.start)
        stop: int | float | None = size if part.stop == NONE else point.value(part.stop)
        if part.size is not None:
            length = point.value(part.size)
            stop = start + length if isinstance(start, int) and isinstance(length, int) else None
        if not isinstance(start, int) or not isinstance(stop, int) or start < 0 or stop < 0:
            return None
        return min(start, size), min(stop, size)
    at = point.value(part)
    return (at, at + 1) if type(at) is int and at >= 0 else None


def _covers(boxes: list[Box], sizes: tuple[int, ...]) -> bool | None:
    """Whether the boxes fill an array of these sizes; None where that takes too long to find out."""
    whole = tuple((0, size) for size in sizes)
    distinct = set(boxes)
    if whole in distinct:
        return True
    if sum(math.prod(stop - start for start, stop in box) for box in distinct) < math.prod(sizes):
        return False
    edges = [sorted({0, size, *(bound for box in distinct for bound in box[at])}) for at, size in enumerate(sizes)]
    cells = list(itertools.islice(itertools.product(*(edge[:-1] for edge in edges)), _MAX_CELLS))
    if len(cells) * len(distinct) > _MAX_CELLS:
        return None
    return all(
        any(all(start <= at < stop for at, (start, stop) in zip(cell, box, strict=True)) for box in distinct)
        for cell in cells
    )


def rows_kept(trace: KernelTrace) -> Iterator[tuple[Ref, Access]]:
    """Outputs without alias that are written in data-dependent rows, while others of that kind have an alias."""
    taken = aliased_outputs(trace.launch)
    outputs = outputs_of(trace)
    if not taken or all(ref.index in taken for ref in outputs):
        return
    partial: dict[int, Access] = {}
    for ref in outputs:
        stores = writes_to(trace, ref)
        if stores and all(store.kind == "store" and is_data_dependent(store, trace) for store in stores):
            assert ref.index is not None
            partial[ref.index] = stores[0]
    if not taken & set(partial):
        return
    moved = {permutation.output.buffer for permutation in row_permutations(trace)}
    for ref in outputs:
        if ref.index in partial and ref.index not in taken and ref.buffer not in moved:
            yield ref, partial[ref.index]


# -- what the caller makes of an output ----------------------------------------------------------------------------


def use_of(launch: Launch, output: int) -> Literal["whole", "part", "dropped"] | None:
    """What the caller takes of an output, as far as the function around the launch shows; None: not known."""
    statement = _statement(launch)
    outer = None if statement is None else _outermost_call(statement, launch.site.node)
    if statement is None or outer is None:
        return None
    if isinstance(statement, nodes.Expr) and statement.value is outer:
        return "dropped"
    if isinstance(statement, nodes.Return):
        return "whole" if statement.value is outer else "part"
    if not isinstance(statement, nodes.Assign) or statement.value is not outer:
        return "part"
    target: nodes.BaseExpression = statement.targets[0].target
    single = isinstance(target, nodes.Name)
    if isinstance(target, nodes.Tuple | nodes.List):
        elements = target.elements
        if output >= len(elements) or any(isinstance(element, nodes.StarredElement) for element in elements):
            return None
        target = elements[output].value
    if not isinstance(target, nodes.Name):
        return None
    if target.value.startswith("_") and not single:
        return "dropped"
    assert launch.site.piece.module is not None
    own = {*walk(statement)}
    rest = [node for node in walk(launch.site.piece.module) if node not in own]
    if any(isinstance(node, nodes.Subscript) and nodes.is_name(node.value, target.value) for node in rest):
        return "part"
    return "whole" if any(nodes.is_name(node, target.value) for node in rest) else "dropped"


def operand_call(launch: Launch) -> nodes.Call | None:
    """The call that passes the operands: `pallas_call(...)(x)`, or `f(x)` where `f` is called once; None otherwise."""
    statement = _statement(launch)
    found = None if statement is None else _outermost_call(statement, launch.site.node)
    if found is not None or not isinstance(statement, nodes.Assign) or statement.value is not launch.site.node:
        return found
    target = statement.targets[0].target
    if not isinstance(target, nodes.Name) or len(statement.targets) != 1:
        return None
    uses: list[nodes.Node] = []
    calls: list[nodes.Call] = []
    for node in (inner for statement in launch.site.piece.body for inner in walk(statement)):
        if nodes.is_name(node, target.value) and node is not target:
            uses.append(node)
        elif isinstance(node, nodes.Call):
            calls.append(node)
    return next((call for call in calls if call.func is uses[0]), None) if len(uses) == 1 else None


def _statement(launch: Launch) -> nodes.BaseSmallStatement | None:
    """The smallest statement around the launching call."""
    stack: list[tuple[nodes.Node, nodes.BaseSmallStatement | None]] = [(node, None) for node in launch.site.piece.body]
    while stack:
        node, around = stack.pop()
        if node is launch.site.node:
            return around
        inner = node if isinstance(node, nodes.BaseSmallStatement) else around
        stack.extend((child, inner) for child in node.children)
    return None


def _outermost_call(statement: nodes.Node, node: nodes.Node) -> nodes.Call | None:
    """The call of what the launching call returns: `pallas_call(...)(x)`; None where it is called elsewhere."""
    return next((inner for inner in walk(statement) if isinstance(inner, nodes.Call) and inner.func is node), None)


# -- blocks on TPU -------------------------------------------------------------------------------------------------

_IN_PLACE = ("any", "hbm", "gmem", "host", "vmem_shared", "cmem")


def is_copied(ref: Ref) -> bool:
    """Whether on TPU the kernel sees a copy of a block, not the array itself."""
    return ref.space not in _IN_PLACE


def alias_not_fetched(ref: Ref, launch: Launch, *, for_tpu: bool) -> Literal["sure", "likely"] | None:
    """Whether the block of an aliased output starts without what the aliased operand holds: so on TPU.

    Output blocks are written back after the kernel, nothing is fetched into them. `for_tpu`: TPU is a target.
    """
    if launch.interpret or launch.core is not None or not is_copied(ref):
        return None
    if launch.backend == "tpu":
        strong = launch.evidence in STRONG or for_tpu
    elif launch.backend is None and for_tpu:
        strong = True
    else:
        return None
    specs = launch.out_specs
    spec = (
        block_spec(specs.items[ref.index])
        if specs is not None and ref.index is not None and not specs.open and ref.index < len(specs.items)
        else None
    )
    if launch.has_grid is not True or spec is None or not spec.has_block_shape:
        return None  # a single step without blocks: an operand that is in VMEM itself may be the output
    return "sure" if strong else "likely"
