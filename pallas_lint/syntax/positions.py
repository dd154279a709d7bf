"""Positions of libcst nodes without libcst's metadata machinery.

`PositionProvider` costs two parses. One plain code generation that notes where each node begins and ends costs a third
of one; the result is the same (tests compare them node by node).
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

# The one private name we need: libcst offers no public way to generate code while watching nodes go by.
from libcst._nodes.internal import CodegenState
from libcst._nodes.whitespace import SimpleWhitespace

from pallas_lint.records import define

if TYPE_CHECKING:
    import libcst as cst

Range = tuple[int, int]


class _RecordingState(CodegenState):
    """Records the generated tokens of each node; white space, nearly half of all nodes, is left out."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.ranges: dict[int, Range] = {}
        self._open: list[int] = []

    def before_codegen(self, node: cst.CSTNode) -> None:
        if node.__class__ is not SimpleWhitespace:
            self._open.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        if node.__class__ is not SimpleWhitespace:
            self.ranges.setdefault(id(node), (self._open.pop(), len(self.tokens)))

    def record_syntactic_position(  # type: ignore[override]  # any context manager will do
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Syntactic:
        return _Syntactic(self, node, start_node, end_node)


@define
class _Syntactic:
    """Notes the part of a node without space and parentheses around it, which is generated while this is entered.

    A statement's begins and ends with its children's.
    """

    state: _RecordingState
    node: cst.CSTNode
    start_node: cst.CSTNode | None
    end_node: cst.CSTNode | None
    start: int = 0

    def __enter__(self) -> None:
        self.start = len(self.state.tokens)

    def __exit__(self, *_: object) -> None:
        ranges = self.state.ranges
        start = self.start if self.start_node is None else ranges[id(self.start_node)][0]
        end = len(self.state.tokens) if self.end_node is None else ranges[id(self.end_node)][1]
        ranges[id(self.node)] = (start, end)


def offsets(module: cst.Module, text: str) -> dict[int, Range]:
    """`id(node)` to its (start, end) offsets in `text`, from which the module was parsed, without space around it."""
    state = _RecordingState(module)
    module._codegen(state)
    ends = [0, *accumulate(map(len, state.tokens))]
    ends.append(ends[-1])  # the newline after the last statement, which is no token where the text has none
    generated = "".join(state.tokens)
    if generated != text:
        ends = _aligned(generated, text, ends)
    return {key: (ends[start], ends[end]) for key, (start, end) in state.ranges.items()}


def _aligned(generated: str, text: str, offsets: list[int]) -> list[int]:
    """Ascending offsets into `generated` as offsets into `text`, from which it differs in white space only.

    libcst forgets the spaces before the `!` of a replacement field, and a byte order mark.
    """
    found: list[int] = []
    at = 0
    there = 0
    for offset in offsets:
        while at < offset:
            if there < len(text) and generated[at] == text[there]:
                at, there = at + 1, there + 1
            elif there < len(text) and (text[there].isspace() or text[there] == "\ufeff"):
                there += 1
            elif generated[at].isspace():
                at += 1
            else:
                raise ValueError(f"the code at offset {there} is not what was parsed")
        found.append(there)
    return found
