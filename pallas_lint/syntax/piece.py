"""A piece: one top-level statement (or one member of a class), parsed by libcst when somebody asks for it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from attrs import define, evolve, field, frozen

from pallas_lint.finding import Position, Span
from pallas_lint.text.source import SyntaxProblem

if TYPE_CHECKING:
    import libcst as cst

    from pallas_lint.syntax.positions import Range
    from pallas_lint.text.source import Source

Kind = Literal["import", "def", "class", "assign", "block", "other"]
_WORD = re.compile(r"[^\W\d]\w*")
# What the parser calls the tokens that nobody sees.
_TOKENS = {"INDENT": "an indented block", "DEDENT": "the end of the block", "NEWLINE": "the end of the line"}
_TOKEN = re.compile(rf"\b({'|'.join(_TOKENS)})\b")
_MOST_EXPECTED = 4
_TOO_DEEP = "the code is nested too deeply to be judged"
_WRAPPER = "if 1:\n"  # holds the indented text of a class member, which cannot stand at the top of a module


@define(slots=False, eq=False)
class Piece:
    """Lines `first` to `last` (from 1, inclusive) of a source.

    `names` are what the statement binds at its level; empty for a "block" (if, try, with, for), whose bindings are
    only known once it is parsed. `members` are a class's own statements; a class with members is never parsed whole.
    """

    source: Source
    kind: Kind
    first: int
    last: int
    names: tuple[str, ...] = ()
    nested: bool = False
    suspect: bool = False  # the outline saw a syntax error in it
    error_at: Position | None = None  # ... here
    header_end: int = 0  # offset behind the colon of a class that has members
    in_tree: bool = True  # it is a statement of the file's tree, not one that was found in what is broken
    deep: bool = False  # nested deeper than can be parsed and walked
    members: list[Piece] = field(factory=list)
    _had: dict[re.Pattern[str], bool] = field(factory=dict, init=False)

    @cached_property
    def text(self) -> str:
        return self.source.lines(self.first, self.last)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier-like word in the text, comments and strings included: a cheap over-estimate of uses."""
        return frozenset(_WORD.findall(self.text))

    @property
    def header(self) -> str:
        """A class's text up to its members."""
        return self.source.text[self._base : self.header_end]

    def forget_text(self) -> None:
        """What stands between the members of a class has changed."""
        vars(self).pop("text", None)
        vars(self).pop("words", None)
        self._had.clear()

    def move(self, source: Source, lines: int) -> None:
        """The same text stands in `source`, so many lines further down; with it, the place where it does not parse."""
        if self.header_end:
            self.header_end += source.line_starts[self.first + lines - 1] - self.source.line_starts[self.first - 1]
        self.source = source
        if not lines:
            return
        self.first, self.last = self.first + lines, self.last + lines
        problem = vars(self).get("_parsed")
        if isinstance(problem, SyntaxProblem):
            place = evolve(problem.position, line=problem.position.line + lines)
            vars(self)["_parsed"] = evolve(problem, position=place)

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether something in the text matches; a class with members has it in its header or in them."""
        known = self._had.get(pattern)
        if known is None:
            known = self._had[pattern] = pattern.search(self.text) is not None
        return known

    def search(self, pattern: re.Pattern[str], node: cst.CSTNode) -> re.Match[str] | None:
        """The first match in the node's text. Finding where a node stands is dear: most pieces match nowhere."""
        return pattern.search(self.code(node)) if self.has(pattern) else None

    @cached_property
    def header_words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.header))

    @property
    def _parsed_text(self) -> str:
        if self.members:
            # The header alone, with an empty body: members are pieces of their own.
            return self.header + " pass\n"
        return _WRAPPER + self.text if self.nested else self.text

    @cached_property
    def _parsed(self) -> cst.Module | SyntaxProblem:
        if self.deep:
            return SyntaxProblem(self.error_at or Position(self.first, 1), _TOO_DEEP, limit=not self.suspect)
        import libcst as cst

        shift = 1 if self.nested else 0
        try:
            return cst.parse_module(self._parsed_text)
        except cst.ParserSyntaxError as error:
            return self._problem(error, shift)
        except cst.CSTValidationError as error:
            return self._refused(error)
        except RecursionError:
            return SyntaxProblem(Position(self.first, 1), _TOO_DEEP, limit=True)

    def _problem(self, error: cst.ParserSyntaxError, shift: int) -> SyntaxProblem:
        # The parser reports the place in its message as 1-based line and 0-based column; `raw_line` and `raw_column`
        # are of the line it had read up to.
        match = re.search(r"error at (\d+):(\d+): (.*)", error.message, re.DOTALL)
        if match:
            line, column, message = int(match[1]), int(match[2]), match[3]
        else:
            line, column, message = error.raw_line, error.raw_column, error.message
        line = min(max(self.first + line - 1 - shift, self.first), self.last)
        message = _TOKEN.sub(lambda found: _TOKENS[found[0]], " ".join(message.split()))
        if message.count(",") >= _MOST_EXPECTED:
            message = "invalid syntax"  # a list of all that might have stood there helps nobody
        return SyntaxProblem(self.error_at or Position(line, column + 1), message)

    def _refused(self, error: cst.CSTValidationError) -> SyntaxProblem:
        # The parser takes names of a newer Unicode than this Python's (U+FF65 may stand in one since Python 3.13). Its
        # error has the name, not the place.
        name = str(error).partition("'")[2].rpartition("'")[0]
        at = self.source.line_starts[self.first - 1] + max(self.text.find(name), 0)
        message = f"`{name}` is not a valid identifier" if name else " ".join(str(error).split())
        return SyntaxProblem(self.error_at or self.source.position(at), message)

    @property
    def was_parsed(self) -> bool:
        """Whether somebody asked for the syntax already."""
        return "_parsed" in vars(self)

    @property
    def problem(self) -> SyntaxProblem | None:
        return self._parsed if isinstance(self._parsed, SyntaxProblem) else None

    @property
    def module(self) -> cst.Module | None:
        """The piece as a libcst module (a wrapped one for a class member); None where it does not parse."""
        return None if isinstance(self._parsed, SyntaxProblem) else self._parsed

    @property
    def body(self) -> tuple[cst.BaseStatement | cst.SimpleStatementLine, ...]:
        """The piece's statements; empty where it does not parse."""
        import libcst as cst

        module = self.module
        if module is None:
            return ()
        if self.nested:
            wrapper = cst.ensure_type(module.body[0], cst.If)
            return tuple(wrapper.body.body)  # type: ignore[arg-type]  # an IndentedBlock holds statements
        return tuple(module.body)

    def span(self, node: cst.CSTNode) -> Span:
        """The node's place in the file. The node must be of this piece."""
        return self._span(self._offsets[id(node)])

    def code(self, node: cst.CSTNode) -> str:
        """The node's text as it stands in the file."""
        start, end = self._offsets[id(node)]
        base = self._base
        return self.source.text[base + start : base + end]

    @cached_property
    def _offsets(self) -> dict[int, Range]:
        from pallas_lint.syntax.positions import offsets

        module = self.module
        if module is None:
            raise ValueError("a piece that does not parse has no nodes")
        return offsets(module, self._parsed_text)

    @property
    def _base(self) -> int:
        start = self.source.line_starts[self.first - 1]
        return start - len(_WRAPPER) if self.nested else start

    def _span(self, offsets: Range) -> Span:
        source, base = self.source, self._base
        return Span(source.path, source.position(base + offsets[0]), source.position(base + offsets[1]))


@frozen(eq=False)
class Site:
    """A node and the piece that it belongs to: a place in a file, computed only when it is reported."""

    piece: Piece
    node: cst.CSTNode

    @property
    def span(self) -> Span:
        return self.piece.span(self.node)

    @property
    def code(self) -> str:
        return self.piece.code(self.node)

    @property
    def key(self) -> cst.CSTNode:
        """Equal for the same node: sites are made anew at each visit."""
        return self.node
