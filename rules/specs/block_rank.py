"""PAL310 block-rank."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    Block,
    BlockSpec,
    Const,
    Context,
    Example,
    Finding,
    Launch,
    Rule,
    Severity,
    Site,
    blocks_of,
    nodes,
)
from pallas_lint.syntax.definitions import sole_definition
from pallas_lint.text.wording import count_of


class BlockRank(Rule):
    """A block that has more or fewer dimensions than the array that it is cut from, or a dimension of size 0.

    A `block_shape` has one entry for each dimension of the operand, or of the output in `out_shape`. Dimensions that
    the kernel is not to see are entries too: `None` (`pl.Squeezed()`) takes one element of a dimension and leaves it
    out of the ref. Anything else is refused while the launch is traced, on every backend and in interpret mode: `Block
    shape ... must have the same number of dimensions as the array shape`.

    A block dimension of 0, mostly a quotient that was rounded down to it, has no element to load or store: the
    interpreter divides by zero, and TPU and GPU refuse the first access.

    ## How to fix

    Keep a size that is computed from falling to 0: `max(size // parts, 1)`, or `pl.cdiv`. Write `None`, or 1 where the
    kernel is to keep the dimension, for each leading dimension that is missing, and return an index for it from the
    index map. Under `jax.vmap` the function that is mapped sees one dimension less.

    ## Known limits

    Silent where the rank of the array (which unpacking its shape shows) or of the block is not seen, for operands that
    are trees of arrays, and in pipelines.

    ## References

    - jax documentation, "Grids and BlockSpecs".
    - Traced with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: the same error in all of
      them, for operands and outputs, blocks of more and of fewer dimensions, with and without a grid, an index map,
      squeezed dimensions, `pl.Element` and `memory_space=pl.ANY`.
    """

    code = "PAL310"
    name = "block-rank"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),  #!
                    out_shape=jax.ShapeDtypeStruct((4, 8, 128), jnp.float32),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run():
                rows = 8 // 16  #!
                spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[spec],
                    out_specs=spec,
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                )(jnp.zeros((32, 128)))
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run(x):
                batch, rows, columns = x.shape
                return pl.pallas_call(
                    kernel,
                    grid=(batch, rows // 128),
                    in_specs=[pl.BlockSpec((128, columns), lambda b, i: (i, 0))],  #!
                    out_specs=pl.BlockSpec((None, 128, columns), lambda b, i: (b, i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))],
                    out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
                    out_shape=jax.ShapeDtypeStruct((4, 8, 128), jnp.float32),
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        blocks = blocks_of(launch, context.analysis) if launch.form.is_over_blocks else None
        if blocks is None or not launch.is_pallas:
            return
        for block in blocks.operands:
            entries = block.spec.block_shape if block is not None and block.spec is not None else None
            if block is None or block.spec is None or block.array_shape is None or entries is None or entries.open:
                continue
            if len(entries.items) == len(block.array_shape):
                yield from _empty(block, context)
                continue
            yield context.finding(
                block.spec.site,
                f"block of {count_of(len(entries.items), 'dimension')} for {_what(block)},"
                f" which has {len(block.array_shape)}",
                help="give one entry for each dimension of the array; `None` takes one element and hides the dimension",
                certain=block.sure and launch.path.certain,
            )


def _what(block: Block) -> str:
    return f"{'operand' if block.role == 'in' else 'output'} {block.index}"


def _empty(block: Block, context: Context) -> Iterator[Finding]:
    """Dimensions of size 0 of a block that is cut from an array with elements, where the 0 is computed."""
    spec = block.spec
    if spec is None or spec.block_shape is None or 0 in (block.array_shape or ()):
        return
    at = next((at for at, size in enumerate(spec.block_shape.items) if size == Const(0)), None)
    if at is not None:
        yield context.finding(
            _computed_at(spec, at),
            f"dimension {at} of the block for {_what(block)} is 0: there is nothing to load or store",
            help="keep the size from being rounded down to 0: `max(size // parts, 1)`, or `pl.cdiv(size, parts)`",
            certain=block.sure,
            related=[(spec.site, "the block")],
        )


def _computed_at(spec: BlockSpec, at: int) -> Site:
    """Where the size is computed: the only assignment of the variable that the block shape has there."""
    site, call = spec.site, spec.site.node
    arguments = call.args if isinstance(call, nodes.Call) else ()
    shapes = (arg.value for arg in arguments if isinstance(arg.value, nodes.Tuple) and len(arg.value.elements) > at)
    written = next(shapes, None)
    size = written.elements[at].value if written is not None else None
    definition = sole_definition(size, site) if isinstance(size, nodes.Name) else None
    return Site(site.piece, definition.value) if definition is not None else site
