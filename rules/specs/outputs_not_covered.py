"""PAL308 outputs-not-covered."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    Access,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Op,
    Rule,
    Severity,
    Site,
    blocks_of,
    nodes,
)
from pallas_lint.kernels.facts.aliases import aliased_outputs
from pallas_lint.kernels.facts.coverage import Tail, Unvisited, unwritten
from pallas_lint.kernels.facts.named_axes import gpu_axes_in, indices_in
from pallas_lint.kernels.facts.subcores.mesh import axes_of_subcores
from pallas_lint.kernels.facts.writes import gap, outputs_of
from pallas_lint.kernels.model.values import as_tuple
from pallas_lint.syntax.definitions import sole_definition


class OutputsNotCovered(Rule):
    """Blocks of an output that no grid point writes.

    The grid and the output's index map decide which blocks are written. A grid that is too small, or an index map that
    gives one block for several grid points, leaves others as the memory was: in interpret mode NaN, on a device
    whatever lay there before. The usual cause is a size that the block does not divide: `1000 // 128` steps leave the
    last 104 rows out, and `64 // 128` is no step at all.

    ## How to fix

    Make the grid `pl.cdiv(size, block)` in each dimension that the index map uses. Where only some blocks are meant to
    change, alias an input that holds the others with `input_output_aliases`.

    ## Known limits

    From the text where grid, block and shape of the output are numbers, with a known call for instance, or where both
    counts are quotients of one size: `n // 256` or `n // 128 - 1` steps along `n // 128` blocks. Of `n // 64` steps,
    rounded down, where the code itself asks for multiples of a smaller number, `n % 8 == 0`; not where it asks for
    nothing. Silent where the index map reads a prefetch operand whose values are not known, and for outputs that alias
    an input. Of kernels that take their rows by the names of axes, on Mosaic GPU and on the vector subcores of a
    SparseCore, all stores and copies to the output have to be understood.

    ## References

    - `interpret=True` on jax 0.4.35 to 0.12.0: the blocks that are left out hold NaN.
    - Run on an H200 with jax 0.11.2: a Mosaic GPU kernel that a grid of half the size runs leaves the other rows as
      the memory was.
    """

    code = "PAL308"
    name = "outputs-not-covered"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def copy(x):
                return pl.pallas_call(
                    kernel,
                    grid=(x.shape[0] // 128,),  #!
                    in_specs=[pl.BlockSpec((128, 256), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)

            copy(jnp.ones((1000, 256)))
            """
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                rows = pl.ds(lax.axis_index("row") * 64, 64)
                o_gmem[rows] = x_gmem[rows] * 2  #!

            def double(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    grid=(x.shape[0] // 128,),
                    grid_names=("row",),
                )(x)

            double(jnp.ones((256, 128)))
            """,
            target="mosaic_gpu",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[:128]

            def halves(x):
                n = x.shape[0]
                return pl.pallas_call(
                    kernel,
                    grid=(n // 256,),  #!
                    in_specs=[pl.BlockSpec((256, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((128, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((n, 128), x.dtype),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                rows, columns = x.shape
                assert rows % 8 == 0
                block = pl.BlockSpec((64, columns), lambda i: (i, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(rows // 64,),  #!
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((rows, columns), x.dtype),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def copy(x):
                return pl.pallas_call(
                    kernel,
                    grid=(pl.cdiv(x.shape[0], 128),),
                    in_specs=[pl.BlockSpec((128, 256), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)

            copy(jnp.ones((1000, 256)))
            """
        ),
        Example(
            """
            def kernel(x_ref, old_ref, o_ref):
                o_ref[...] = x_ref[...]

            def head(x, old):
                return pl.pallas_call(
                    kernel,
                    grid=(2,),
                    in_specs=[
                        pl.BlockSpec((128, 256), lambda i: (i, 0)),
                        pl.BlockSpec(memory_space=pl.ANY),
                    ],
                    out_specs=pl.BlockSpec((128, 256), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((1024, 256), x.dtype),
                    input_output_aliases={1: 0},
                )(x, old)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                rows, columns = x.shape
                if rows % 8 or rows % 128:
                    raise ValueError(rows)
                block = pl.BlockSpec((64, columns), lambda i: (i, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(rows // 64,),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((rows, columns), x.dtype),
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        blocks = blocks_of(launch, context.analysis) if launch.form.refs == "blocks" else None
        if blocks is None or not blocks.grid.rank:
            return
        sizes = blocks.grid.literal or ()
        for block, missing in unwritten(launch, blocks, context.analysis.outcome.effects):
            if 0 in sizes:
                message = f"output {block.index} is never written: axis {sizes.index(0)} of the grid has no step"
            elif isinstance(missing, Unvisited):
                message = f"{missing.count} of {missing.total} blocks of output {block.index} are never written"
            elif isinstance(missing, Tail):
                walk = missing.walk
                message = (
                    f"the end of output {block.index} is never written where its dimension {walk.dimension} is"
                    f" {missing.size}: grid axis {walk.axis} has {walk.steps} steps, rounded down, and the guards let"
                    " this size through"
                )
            elif missing.excess == 0:
                message = (
                    f"output {block.index} stays at its first block in dimension {missing.dimension}, which has"
                    f" {missing.blocks} blocks, one for each step of grid axis {missing.axis}"
                )
            else:
                message = (
                    f"the last blocks of output {block.index} are never written: dimension {missing.dimension} has"
                    f" {missing.blocks} blocks, and grid axis {missing.axis} {missing.spelled_steps}"
                )
            place = missing.walk if isinstance(missing, Tail) else missing
            grid = _grid_site(launch, None if isinstance(place, Unvisited) else place.axis)
            yield context.finding(
                grid,
                message,
                help="they keep whatever the memory held; cover them, or alias an input that holds their values",
                related=[
                    *([(block.spec.site, "block shape given here")] if block.spec is not None else []),
                    *([(launch.called_at, "launched here")] if grid.key is not launch.called_at.key else []),
                ],
            )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """Parts of an output that a kernel, which takes them by the names of its axes, never writes."""
        subcores = _subcores(trace, context)
        axes, aliased = subcores or gpu_axes_in(trace), aliased_outputs(trace.launch)
        if not axes or aliased is None:
            return
        for ref in outputs_of(trace):
            found = gap(trace, ref, context.analysis, axes) if ref.index not in aliased else None
            if found is None or not found.certain:
                continue
            sizes = ", ".join(f"{axis}: {size}" for axis, size in axes.items())
            writing = f"all subcores together ({sizes}) write" if subcores else f"the whole grid ({sizes}) writes"
            number = _worker(found.access, axes) if subcores else None
            yield context.finding(
                found.access.site if number is None else number.site,
                f"{writing} a part of output `{ref.parameter}` only"
                + ("" if number is None else ": their number leaves an axis out"),
                help="it keeps whatever the memory held; cover it, or alias an input that holds its values"
                if number is None
                else f"number the subcores along {' and '.join(f'`{axis}`' for axis in axes)}",
                related=[] if number is None else [(found.access.site, "stored here")],
            )


def _grid_site(launch: Launch, axis: int | None) -> Site:
    """Where the steps are computed, if a variable holds them, along an axis if it is known; else the grid."""
    site = launch.argument_site("grid")
    node = site.node.value if isinstance(site.node, nodes.Arg) else None
    for _ in range(2):  # a variable with the tuple, and one in the tuple
        if isinstance(node, nodes.Tuple) and (len(node.elements) == 1 or axis is not None):
            at = axis if axis is not None else 0
            node = node.elements[at].value if at < len(node.elements) else None
        definition = sole_definition(node, site) if isinstance(node, nodes.Name) else None
        if definition is None:
            break
        node = definition.value
        site = Site(site.piece, node)
    return site


def _subcores(trace: KernelTrace, context: Context) -> dict[str, int] | None:
    """The axes of a mesh of subcores, where their sizes are those of the mesh or of the chip that is the target."""
    devices = {target.device for target in context.settings.target}
    return axes_of_subcores(trace.launch, devices.pop() if len(devices) == 1 else None, exact=True)


def _worker(access: Access, axes: dict[str, int]) -> Op | None:
    """The only index along an axis that goes into a store, where another axis has more than one subcore."""
    index = access.index if access.ref.indexer is None else access.ref.indexer
    found = {each.origin for part in as_tuple(index) for each in indices_in(part) if each.origin is not None}
    if len(found) != 1:
        return None
    (op,) = found
    axis = op.argument("axis_name", 0)
    named = axis.value if isinstance(axis, Const) else None
    return op if named in axes and any(size > 1 for each, size in axes.items() if each != named) else None
