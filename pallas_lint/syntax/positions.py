"""Positions of a few libcst nodes without libcst's metadata machinery.

`PositionProvider` costs twice a parse because it records every node. Here one plain code generation records token
indices for the asked nodes only; the result is the same (tests compare them node by node).
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import contextmanager, nullcontext
from itertools import accumulate
from typing import TYPE_CHECKING, Any

# The one private name we need: libcst offers no public way to generate code while watching nodes go by.
from libcst._nodes.internal import CodegenState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    import libcst as cst

Range = tuple[int, int]
_NOTHING: AbstractContextManager[None] = nullcontext()


class _RecordingState(CodegenState):
    """Notes between which generated tokens each wanted node stands."""

    def __init__(self, module: cst.Module, wanted: set[int]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.wanted = wanted
        self.ranges: dict[int, Range] = {}
        self._open: list[int] = []

    def before_codegen(self, node: cst.CSTNode) -> None:
        if id(node) in self.wanted:
            self._open.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        if id(node) in self.wanted:
            self.ranges.setdefault(id(node), (self._open.pop(), len(self.tokens)))

    def record_syntactic_position(self, node: Any, *, start_node: Any = None, end_node: Any = None) -> Any:
        return self._record(node, start_node, end_node) if id(node) in self.wanted else _NOTHING

    @contextmanager
    def _record(self, node: Any, start_node: Any, end_node: Any) -> Iterator[None]:
        start = len(self.tokens)
        # A statement's syntactic range begins and ends with its children's, which therefore have to be recorded too.
        self.wanted.update(id(edge) for edge in (start_node, end_node) if edge is not None)
        yield
        end = len(self.tokens)
        if start_node is not None:
            start = self.ranges[id(start_node)][0]
        if end_node is not None:
            end = self.ranges[id(end_node)][1]
        self.ranges[id(node)] = (start, end)


def offsets(module: cst.Module, nodes: Iterable[cst.CSTNode]) -> dict[int, Range]:
    """`id(node)` to its (start, end) character offsets in the module's code, whitespace around it left out."""
    state = _RecordingState(module, {id(node) for node in nodes})
    module._codegen(state)
    ends = [0, *accumulate(map(len, state.tokens))]
    return {key: (ends[start], ends[end]) for key, (start, end) in state.ranges.items()}


def line_and_column(starts: list[int], offset: int) -> tuple[int, int]:
    """0-based line and column of `offset`, `starts` being the offsets of the lines' first characters."""
    line = bisect_right(starts, offset) - 1
    return line, offset - starts[line]
