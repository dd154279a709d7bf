"""Positions of a few libcst nodes without libcst's metadata machinery.

`PositionProvider` costs twice a parse because it records every node. Here one plain code generation records token
indices for the asked nodes only; the result is the same (tests compare them node by node).
"""

from __future__ import annotations

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


def offsets(module: cst.Module, text: str, nodes: Iterable[cst.CSTNode]) -> dict[int, Range]:
    """`id(node)` to its (start, end) offsets in `text`, from which the module was parsed, without space around it."""
    state = _RecordingState(module, {id(node) for node in nodes})
    module._codegen(state)
    ends = [0, *accumulate(map(len, state.tokens))]
    generated = "".join(state.tokens)
    if generated != text:
        ends = _aligned(generated, text, ends)
    return {key: (ends[start], ends[end]) for key, (start, end) in state.ranges.items()}


def _aligned(generated: str, text: str, offsets: list[int]) -> list[int]:
    """Ascending offsets into `generated` as offsets into `text`, from which it differs in white space only.

    libcst forgets the spaces before the `!` of a replacement field.
    """
    found: list[int] = []
    at = 0
    there = 0
    for offset in offsets:
        while at < offset:
            if there < len(text) and generated[at] == text[there]:
                at, there = at + 1, there + 1
            elif there < len(text) and text[there].isspace():
                there += 1
            elif generated[at].isspace():
                at += 1
            else:
                raise ValueError(f"the code at offset {there} is not what was parsed")
        found.append(there)
    return found
