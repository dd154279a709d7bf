"""PAL303 index-map-rank."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import NONE, Const, Context, Example, Finding, Fix, IndexMap, Rule, Severity, Sym, Value, nodes
from pallas_lint.text.wording import count_of

_ARITHMETIC = frozenset(("+", "-", "*", "//", "%", "**"))


class IndexMapRank(Rule):
    """An index map that does not return one integer for each dimension of the block.

    The map returns the position of the block, so Pallas needs exactly as many integers as `block_shape` has entries.
    Entries of `None` (`pl.Squeezed`) count: the dimension vanishes from the ref that the kernel sees, not from the
    index. A bare scalar is taken for a tuple of one, so `lambda i: i` fits a block of rank 1 and no other. True
    division gives a float32, also of integers: it is no index, even where the result is whole.

    All of this is checked while the launch is traced, on every backend and in interpret mode: `ValueError: Index map
    function ... must return 2 values to match block_shape` or `must return integer scalars`.

    ## How to fix

    Return one block index for each entry of `block_shape`, 0 for dimensions that the block covers whole; divide with
    `//`.

    ## Fix safety

    `/` becomes `//`: safe, since the map cannot be traced with a float. A missing index is not guessed.

    ## Known limits

    Silent for maps with several returns, for results and block shapes of which the length is not seen, and where the
    block has no shape of its own.

    ## References

    - jax documentation, "Grids and BlockSpecs".
    - Traced with jax 0.4.35 to 0.12.0: the same errors in all of them.
    """

    code = "PAL303"
    name = "index-map-rank"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def specs(bm):
                rows = pl.BlockSpec((bm, 128), lambda i: i)  #!
                heads = pl.BlockSpec((None, bm, 128), lambda h, i: (i, 0))  #!
                return rows, heads
            """
        ),
        Example(
            """
            GROUP = 4

            def kv_spec(bm):
                return pl.BlockSpec((1, bm, 128), lambda h, i: (h / GROUP, i, 0))  #!-
                return pl.BlockSpec((1, bm, 128), lambda h, i: (h // GROUP, i, 0))  #+
            """,
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def specs(bm):
                vector = pl.BlockSpec((bm,), lambda i: i)
                heads = pl.BlockSpec((None, bm, 128), lambda h, i: (h // 4, i, 0))
                return vector, heads
            """
        ),
    )

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        if index_map.func.module is not context.module and index_map.launch is None:
            return
        block, node = index_map.spec.block_shape, index_map.returned
        if block is None or node is None or getattr(index_map.func.node, "decorators", None):
            return
        count = index_map.result_count
        if not block.open and count is not None and count != len(block.items):
            yield context.finding(
                index_map.site_of(node),
                f"index map returns {count_of(count, 'value')} for a block of "
                f"{count_of(len(block.items), 'dimension')}",
                help="return one block index for each entry of `block_shape`, squeezed ones (`None`) included",
                severity=None if index_map.sure else Severity.WARNING,
                related=[(index_map.spec.site, "block shape given here")],
            )
            return
        for at, (part, value) in enumerate(index_map.results or []):
            if value == NONE:
                message = f"index map returns `None` for dimension {at}: an index must be an integer"
                fixes: list[Fix] = []
            elif _is_float(value):
                message = f"index map returns a float for dimension {at}: an index must be an integer"
                fixes = _floor_division(index_map, part, context)
            else:
                continue
            yield context.finding(
                index_map.site_of(part),
                message,
                help="`/` gives a float even of integers: divide with `//`" if fixes else "return an integer",
                severity=None if index_map.sure else Severity.WARNING,
                related=[(index_map.spec.site, "used by this spec")],
                fixes=fixes,
            )


def _is_float(value: Value) -> bool:
    """Whether arithmetic on integers certainly gave a float."""
    if isinstance(value, Const):
        return isinstance(value.value, float)
    if isinstance(value, Sym) and value.operation is not None:
        symbol, left, right = value.operation
        return symbol == "/" or (symbol in _ARITHMETIC and (_is_float(left) or _is_float(right)))
    return False


def _floor_division(index_map: IndexMap, node: nodes.BaseExpression, context: Context) -> list[Fix]:
    """Every `/` of the expression as `//`, where those are what makes it a float."""
    slashes: list[nodes.Divide] = []
    stack: list[nodes.Node] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, nodes.BinaryOperation):
            if isinstance(current.operator, nodes.Divide):
                slashes.append(current.operator)
            stack.extend((current.left, current.right))
        elif isinstance(current, nodes.Float):
            return []
    if not slashes:
        return []
    return [context.safe("divide with `//`", *(context.replace(index_map.site_of(slash), "//") for slash in slashes))]
