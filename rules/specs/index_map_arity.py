"""PAL302 index-map-arity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Const, Context, Example, Finding, Fix, IndexMap, Launch, Rule, Severity, Span, nodes
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.grid.index_maps import index_maps_of
from pallas_lint.kernels.launches.signatures import signature_of
from pallas_lint.syntax.descent import walk
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from pallas_lint.text.source import Source

_UNUSED_SINCE = (0, 10)  # the jax whose pipelines call no index map where one step takes the whole array


class IndexMapArity(Rule):
    """An index map with more or fewer parameters than the grid has dimensions.

    Pallas calls every index map with one index for each grid dimension and, under `pltpu.PrefetchScalarGridSpec`, with
    the scalar-prefetch refs after them. It does so while it traces the launch, so that a wrong number is a plain
    `TypeError` from inside jax, on every backend and in interpret mode. Without a grid the map gets no argument at
    all: `lambda: (0, 0)`. The maps of a pipeline (`emit_pipeline`) get the pipeline's grid indices, not the kernel's.

    The usual causes are a grid that gained a dimension while the maps did not, and a `grid` replaced by
    `PrefetchScalarGridSpec`: each map then needs a parameter for each prefetch operand, used or not. A map with the
    prefetch ref first has the right number, and indexes a grid index, a scalar: `IndexError: Too many indices`. A map
    that names two prefetch refs in another order than the other maps gets each for the other: a warning.

    ## How to fix

    Give the map one parameter for each grid dimension and one for each prefetch operand; `*_` takes any number that
    the map does not use: `lambda i, *_: (i, 0)`.

    ## Fix safety

    Unsafe: unused parameters are added at the end or taken away there. Which index a missing parameter should have
    been is the author's to know. None is taken away from a map that reads a prefetch operand: the one too many may
    stand before it.

    ## Known limits

    Silent where the grid, `num_scalar_prefetch` or the launch that uses the spec is not seen, and for launching
    functions of other libraries. Defaults, `*args` and arguments bound by `functools.partial` are honoured. From jax
    0.10 on, a pipeline of one step calls no index map of a block that is the whole array: a warning there.

    ## References

    - jax documentation, "Grids and BlockSpecs" and "Scalar prefetch and block-sparse computation".
    - Traced with jax 0.4.35 to 0.12.0: the same `TypeError` in all of them. `emit_pipeline` with `grid=(1,)`: none with
      0.10.2, 0.11.2 and 0.12.0.1 where the block is the array; with 0.8.3 and 0.9.2, smaller blocks or more steps, too.
    """

    code = "PAL302"
    name = "index-map-arity"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 4),
                    in_specs=[pl.BlockSpec((128, 128), lambda i, j: (i, j))],
                    out_specs=pl.BlockSpec((128, 128), lambda i: (i, 0)),  #!-
                    out_specs=pl.BlockSpec((128, 128), lambda i, _: (i, 0)),  #+
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)
            """,
            run="run(f32(512, 128))",
        ),
        Example(
            """
            def kernel(rows_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def gather(rows, x):
                spec = pltpu.PrefetchScalarGridSpec(
                    num_scalar_prefetch=1,
                    grid=(8,),
                    in_specs=[pl.BlockSpec((1, 128), lambda i, rows_ref: (rows_ref[i], 0))],
                    out_specs=pl.BlockSpec((1, 128), lambda i: (i, 0)),  #!
                )
                out = jax.ShapeDtypeStruct((8, 128), x.dtype)
                return pl.pallas_call(kernel, grid_spec=spec, out_shape=out)(rows, x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(rows_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def gather(rows, x):
                spec = pltpu.PrefetchScalarGridSpec(
                    num_scalar_prefetch=1,
                    grid=(8,),
                    in_specs=[pl.BlockSpec((1, 128), lambda i, rows_ref: (rows_ref[i], 0))],
                    out_specs=pl.BlockSpec((1, 128), lambda i, rows_ref: (i, 0)),
                )
                out = jax.ShapeDtypeStruct((8, 128), x.dtype)
                return pl.pallas_call(kernel, grid_spec=spec, out_shape=out)(rows, x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 4),
                    in_specs=[pl.BlockSpec((128, 128), lambda i, *_: (i, 0))],
                    out_specs=pl.BlockSpec((128, 128), lambda i, j, first=0: (i, j + first)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)
            """
        ),
    )

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        launch = index_map.launch
        if launch is None or not launch.is_pallas:
            return
        rank, prefetch = _grid_rank(launch), launch.prefetch_count
        if rank is None or prefetch is None:
            return
        if launch.form.is_inner and not index_map.spec.has_block_shape:
            return  # a ref that is passed on whole needs no index
        func = index_map.func
        signature = signature_of(func)
        if getattr(func.node, "decorators", ()):
            return
        if signature.takes(rank + prefetch) is not False:
            yield from _indexed_grid_indices(index_map, rank, prefetch, context)
            yield from _exchanged(index_map, launch, rank, prefetch, context)
            return
        if signature.keyword_only:
            names = ", ".join(f"`{name}`" for name in signature.keyword_only)
            message = f"index map needs {names} by keyword: Pallas passes grid indices by position only"
        else:
            what = count_of(rank, "grid dimension") if launch.has_grid else "no grid"
            if prefetch:
                what += f" and {count_of(prefetch, 'scalar-prefetch operand')}"
            message = f"index map takes {signature.spelled()}, but gets {rank + prefetch}: the launch has {what}"
        where = index_map.site_of(func.node if isinstance(func.node, nodes.Lambda) else func.node.name)
        yield context.finding(
            where,
            message,
            help="one parameter for each grid axis, then one for each scalar-prefetch operand: `lambda i, j, *_: ...`",
            severity=None if index_map.sure and not _may_be_unused(launch, context) else Severity.WARNING,
            related=[(index_map.spec.site, "used by this spec"), (launch.called_at, "launched here")],
            fixes=_fixes(index_map, rank, prefetch, context),
        )


def _indexed_grid_indices(index_map: IndexMap, rank: int, prefetch: int, context: Context) -> Iterator[Finding]:
    """Parameters that are indexed like a ref, but get a grid index, since these come first."""
    body = index_map.func.node.body
    if not prefetch or index_map.returned is None:
        return
    lines = body.body if isinstance(body, nodes.IndentedBlock) else []
    if len(lines) > 1 or any(len(line.body) > 1 for line in lines if isinstance(line, nodes.SimpleStatementLine)):
        return  # a parameter may be bound anew
    indices = {param.name.value for param in index_map.parameters[:rank]}
    for node in index_map.subscripts:
        if isinstance(node.value, nodes.Name) and node.value.value in indices:
            yield context.finding(
                index_map.site_of(node),
                f"`{node.value.value}` is indexed, but is a grid index: "
                f"{count_of(prefetch, 'scalar-prefetch operand')} follow{'s' if prefetch == 1 else ''} these",
                help="one parameter for each grid axis, then one for each scalar-prefetch operand",
                severity=None if index_map.sure else Severity.WARNING,
                related=[(index_map.spec.site, "used by this spec")],
            )
            return


def _exchanged(index_map: IndexMap, launch: Launch, rank: int, prefetch: int, context: Context) -> Iterator[Finding]:
    """Prefetched operands that are named in another order than in the other index maps and the kernel."""
    mine = _prefetched(index_map, rank, prefetch)
    if prefetch < 2 or mine is None:
        return
    orders = [_prefetched(each, rank, prefetch) for each in index_maps_of(launch, context.analysis)]
    for body in launch.bodies:
        parameters = body.node.params.positional[len(body.bound) :][:prefetch]
        orders.append(tuple(parameter.name.value for parameter in parameters))
    counts = Counter(order for order in orders if order is not None and set(order) == set(mine))
    usual = counts.most_common(1)[0][0]  # of those that are equally many the first
    moved = {name for name, other in zip(mine, usual, strict=True) if name != other}
    for node in index_map.subscripts:
        if isinstance(node.value, nodes.Name) and node.value.value in moved:
            name = node.value.value
            yield context.finding(
                index_map.site_of(node),
                f"`{name}` is prefetched operand {mine.index(name)} here, and {usual.index(name)} in the other index"
                " maps: they come by position",
                help=f"name them in one order, that of the operands: `{', '.join(usual)}`",
                severity=Severity.WARNING,
                related=[(index_map.spec.site, "used by this spec")],
            )
            return


def _prefetched(index_map: IndexMap, rank: int, prefetch: int) -> tuple[str, ...] | None:
    """The names that an index map gives to the prefetched operands; None where it does not name each."""
    names = tuple(param.name.value for param in index_map.parameters[rank:])
    return names if len(names) == prefetch and len(set(names)) == prefetch else None


def _grid_rank(launch: Launch) -> int | None:
    if launch.has_grid is False:
        return 0
    grid = launch.grid
    return None if grid is None or grid.open else len(grid.items)


def _may_be_unused(launch: Launch, context: Context) -> bool:
    """Whether a pipeline of one step may take the array whole, without its index map."""
    grid = launch.grid
    one = launch.form.is_inner and grid is not None and all(size == Const(1) for size in grid.items)
    return one and any(parse(version) >= _UNUSED_SINCE for version in context.versions)


def _fixes(index_map: IndexMap, rank: int, prefetch: int, context: Context) -> list[Fix]:
    """Unused parameters added or taken away at the end, where nothing but plain ones is there."""
    node = index_map.func.node
    parameters = node.params
    rest = (parameters.posonly_params, parameters.kwonly_params)
    plain = all(param.default is None and param.annotation is None for param in parameters.params)
    if any(rest) or not plain or isinstance(parameters.star_arg, nodes.Param) or parameters.star_kwarg is not None:
        return []
    if index_map.func.bound or index_map.func.keywords or not parameters.params:
        return []
    piece = index_map.func.piece
    spans = [piece.span(param.name) for param in parameters.params]
    text, starts, ends = _places(piece.source, spans)
    if "#" in text[starts[0] : ends[-1]] or re.compile(r"\s*(?:,[ \t]*)?#").match(text, ends[-1]):
        return []  # it is not known what the comments are about
    names = [param.name.value for param in parameters.params]
    count = rank + prefetch
    missing = count - len(names)
    if missing > 0:
        spare = "_"
        while spare in names:
            spare += "_"
        separator = text[ends[-2] : starts[-1]] if len(names) > 1 else _separator(text, starts[0])
        added, dropped = f"{separator}{spare}" if missing == 1 else f"{separator}*{spare}", spans[-1].end
        title = "add unused parameters to the index map"
    else:
        used = _names_in(node.body)
        # Where a prefetch operand is read, the one that is not passed may come before it: its name would get another.
        if count == 0 or not used.isdisjoint(names[rank:]):
            return []
        added, dropped = "", spans[count - 1].end
        title = "drop the unused parameters of the index map"
    edit = context.replace(Span(spans[-1].path, dropped, spans[-1].end), added)
    return [context.unsafe(title, edit)]


def _places(source: Source, spans: list[Span]) -> tuple[str, list[int], list[int]]:
    """The text, and where in it each of these begins and ends."""
    return source.text, [source.offset(each.start) for each in spans], [source.offset(each.end) for each in spans]


def _separator(text: str, start: int) -> str:
    """The separator of parameters, the first of which begins at `start`: each may be on a line of its own."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return ", " if before.strip() else f",\n{before}"


def _names_in(node: nodes.Node) -> set[str]:
    return {each.value for each in walk(node) if isinstance(each, nodes.Name)}
