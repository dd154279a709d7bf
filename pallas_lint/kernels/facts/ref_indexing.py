"""Indexing of refs in a kernel, `ref[index]`, `ref.at[index]`, `pl.load(ref, index)`, with the parts of each index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.indexing import REF_AT
from pallas_lint.kernels.model.trace import Access, Op
from pallas_lint.kernels.model.values import ELLIPSIS, NONE, UNKNOWN, Ref, Seq, Value
from pallas_lint.records import frozen
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.trace import KernelTrace

_READS_AND_WRITES = ("load", "store", "accumulate")


@frozen(eq=False)
class IndexPart:
    """One part of an index. `node` is its expression, where the index is spelled out at the place itself.

    `axis` is the dimension of the ref that it indexes, counted from the end (negative) behind an `...`; None for
    what indexes no dimension.
    """

    value: Value
    axis: int | None
    node: nodes.BaseExpression | None


@frozen(eq=False)
class RefIndexing:
    """One place where a ref is indexed."""

    ref: Ref
    index: Value
    event: Access | Op

    @property
    def site(self) -> Site:
        """The indexed expression; the target of an augmented assignment, not the whole statement."""
        site = self.event.site
        if isinstance(site.node, nodes.AugAssign):
            return Site(site.piece, site.node.target)
        return site

    @property
    def writes(self) -> bool:
        return isinstance(self.event, Access) and self.event.kind != "load"

    @property
    def base(self) -> Site | None:
        """The expression of the ref itself; None where it is not one that can be written twice."""
        node = self.site.node
        owner: nodes.Node | None = None
        if isinstance(node, nodes.Subscript):
            owner = node.value
            if isinstance(owner, nodes.Attribute) and owner.attr.value == "at":
                owner = owner.value
        elif isinstance(node, nodes.Call) and node.args and node.args[0].keyword is None:
            owner = node.args[0].value
        plain = owner
        while isinstance(plain, nodes.Attribute):
            plain = plain.value
        return Site(self.site.piece, owner) if owner is not None and isinstance(plain, nodes.Name) else None

    @property
    def parts(self) -> list[IndexPart]:
        """The parts in order; none where their number is not known."""
        whole = self.index
        if isinstance(whole, Seq) and whole.kind == "tuple":
            if whole.open:
                return []
            values: tuple[Value, ...] = whole.items
        else:
            values = () if whole is UNKNOWN else (whole,)
        expressions = self._nodes(len(values))
        parts: list[IndexPart] = []
        behind = False
        for at, (value, node) in enumerate(zip(values, expressions, strict=True)):
            if value == ELLIPSIS:
                behind = True
                parts.append(IndexPart(value, None, node))
            elif value == NONE:
                parts.append(IndexPart(value, None, node))
            else:
                rest = [other for other in values[at:] if other != NONE] if behind else []
                front = [other for other in values[:at] if other != NONE]
                parts.append(IndexPart(value, -len(rest) if behind else len(front), node))
        return parts

    def _nodes(self, count: int) -> list[nodes.BaseExpression | None]:
        node = self.site.node
        expressions: list[nodes.BaseExpression | None] = []
        if isinstance(node, nodes.Subscript):
            expressions.extend(
                element.slice.value if isinstance(element.slice, nodes.Index) else None for element in node.slice
            )
            if len(node.slice) == 1 and count != 1 and isinstance(expressions[0], nodes.Tuple):
                expressions = [element.value for element in expressions[0].elements]
        elif isinstance(node, nodes.Call) and len(node.args) > 1 and node.args[1].keyword is None:
            index = node.args[1].value
            expressions = [element.value for element in index.elements] if isinstance(index, nodes.Tuple) else [index]
        return expressions if len(expressions) == count else [None] * count


def ref_indexings(trace: KernelTrace) -> Iterator[RefIndexing]:
    """Every place of the kernel where a ref is indexed, in order."""
    for event in trace.events:
        if isinstance(event, Access):
            if event.kind in _READS_AND_WRITES:
                yield RefIndexing(event.ref, event.index, event)
        elif isinstance(event, Op) and event.name == REF_AT and isinstance(event.args[0], Ref):
            yield RefIndexing(event.args[0], event.args[1], event)
