"""A piece: one top-level statement (or one member of a class), parsed lazily."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pallas_lint.finding import Position, Span
from pallas_lint.records import define, evolve, field, frozen
from pallas_lint.syntax import nodes
from pallas_lint.syntax.scopes import Scopes, changed_names
from pallas_lint.text.source import SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import libcst as cst
    import tree_sitter

    from pallas_lint.text.source import Source

_T = TypeVar("_T")
Kind = Literal["import", "def", "class", "assign", "block", "other"]
_SURROGATES = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[^\W\d]\w*")
# The parser's names of invisible tokens.
_TOKENS = {"INDENT": "an indented block", "DEDENT": "the end of the block", "NEWLINE": "the end of the line"}
_TOKEN = re.compile(rf"\b({'|'.join(_TOKENS)})\b")
_MAX_EXPECTED = 4
_TOO_DEEP = "the code is nested too deeply to be judged"
_TOO_NEW = "the code has syntax of a Python too new to be judged"
_WRAPPER = "if 1:\n"  # wraps the indented text of a class member, which is not valid at the top of a module


@define(slots=False, eq=False)
class Piece:
    """Lines `first` to `last` (from 1, inclusive) of a source.

    `names` are what the statement binds at its level, the mesh that it sets among them; empty for a "block" (if, try,
    with, for): parsing it gives what is `bound`. `members` are a class's own statements; a class with
    members is never parsed whole.
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
    # Its only statement in the tree of the whole file, until it is read or the file is edited: nodes hold their tree.
    in_file: tree_sitter.Node | None = field(default=None, init=False, repr=False)
    edition: int = field(default=0, init=False)  # how often its comments and blank lines have changed
    # What its nodes were read from, where comments and blank lines differ now, and where its lines are now, from 0.
    _read_text: str | None = field(default=None, init=False, repr=False)
    _read_lines: Sequence[int] = field(default=(), init=False, repr=False)
    _had: dict[re.Pattern[str], bool] = field(factory=dict, init=False)
    _kept: dict[Callable[[Piece], Any], Any] = field(factory=dict, init=False, repr=False)

    @cached_property
    def text(self) -> str:
        return self.source.lines(self.first, self.last)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier-like word in the text, comments and strings included: a cheap over-estimate of uses."""
        return frozenset(_WORD.findall(self.text))

    def kept(self, compute: Callable[[Piece], _T]) -> _T:
        """What a function makes of the text, kept until that changes."""
        if compute not in self._kept:
            self._kept[compute] = compute(self)
        found: _T = self._kept[compute]
        return found

    def may_bind(self, name: str) -> bool:
        """Whether the statement may bind a name at its level, or change its value in place if it is a block."""
        return name in self.names or (self.kind == "block" and name in self.words and name in self.bound)

    @cached_property
    def bound(self) -> frozenset[str]:
        """What the statement may bind at its level; of a block also what it may change in place. It is parsed."""
        if self.kind != "block":
            return frozenset(self.names)
        return self.words if self.module is None else frozenset(changed_names(self.body))

    @property
    def header(self) -> str:
        """A class's text up to its members."""
        return self.source.text[self._base : self.header_end]

    def forget_text(self) -> None:
        """The text between the members of a class has changed."""
        vars(self).pop("text", None)
        vars(self).pop("words", None)
        self._kept.clear()
        self._had.clear()

    def extend(self, last: int) -> None:
        """Take in what follows down to a line: it belongs to a line of this piece, which may have been read."""
        self.last, self.in_file = max(self.last, last), None
        self.forget_text()
        for kept in ("_read", "_parsed", "_concrete", "bound"):
            vars(self).pop(kept, None)

    def may_have_text(self, text: str, before: str = "", after: str = "") -> bool:
        """Whether it is the same to all who read it if its text becomes `text`, and comments in it `after`.

        Queries about its text have to return the same values.
        """
        if any((pattern.search(text) is not None) != found for pattern, found in self._had.items()):
            return False
        return not any(pattern.search(before) or pattern.search(after) for pattern in self._had)

    def take_spacing(self, new: Piece, lines: Sequence[int]) -> None:
        """Become `new`, which only comments and blank lines distinguish; its lines are at `lines` there, from 0."""
        if self._read_text is None:
            self._read_text, self._read_lines = self._parsed_text, lines
        else:
            self._read_lines = [lines[line] for line in self._read_lines]
        self._take_text(new)

    def take_problem(self, new: Piece) -> None:
        """Become `new`, which has no statements either: it is broken."""
        self._take_text(new)
        vars(self)["_read"] = new.problem

    def _take_text(self, new: Piece) -> None:
        for kept in ("text", "words", "_parsed", "_concrete"):
            vars(self).pop(kept, None)
        self._kept.clear()
        self.edition += 1
        self.in_file = new.in_file

    def anchor(self, line: int) -> tuple[int, int]:
        """A line of the file as what stays the same when blank lines come and go: a line of code, and lines below."""
        at = line - self.first
        if self._read_text is None:
            return at, 0
        read = bisect_right(self._read_lines, at) - 1
        return read, at - self._read_lines[read]

    def line_at(self, anchor: tuple[int, int]) -> int:
        """The line of the file that an anchor is on now."""
        read, below = anchor
        return self.first + (read if self._read_text is None else self._read_lines[read]) + below

    def move(self, source: Source, lines: int) -> None:
        """Move to `source`, where the same text is so many lines further down, with the position of a syntax error."""
        if self.header_end:
            self.header_end += source.line_starts[self.first + lines - 1] - self.source.line_starts[self.first - 1]
        self.source, self.in_file = source, None
        if not lines:
            return
        self.first, self.last = self.first + lines, self.last + lines
        for kept in ("_read", "_parsed"):
            problem = vars(self).get(kept)
            if isinstance(problem, SyntaxProblem):
                place = problem.position._replace(line=problem.position.line + lines)
                vars(self)[kept] = evolve(problem, position=place)

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether something in the text matches; a class with members has it in its header or in them."""
        known = self._had.get(pattern)
        if known is None:
            known = self._had[pattern] = pattern.search(self.text) is not None
        return known

    def search(self, pattern: re.Pattern[str], node: nodes.Node) -> re.Match[str] | None:
        """The first match in the node's text. Finding the position of a node is slow, and most pieces match nowhere."""
        return pattern.search(self.code(node)) if self.has(pattern) else None

    @property
    def _parsed_text(self) -> str:
        if self.members:
            # The header alone, with an empty body: members are pieces of their own.
            return self.header + " pass\n"
        return _WRAPPER + self.text if self.nested else self.text

    @cached_property
    def _read(self) -> nodes.Module | SyntaxProblem:
        """By tree-sitter; by libcst where that finds an error, or anything that Python's grammar may not know."""
        if self.deep:
            return SyntaxProblem(self.error_at or Position(self.first, 1), _TOO_DEEP, limit=not self.suspect)
        from pallas_lint.syntax.reading import read  # and with it tree-sitter

        text = self._parsed_text
        known, self.in_file = self.in_file, None
        found = None if self.suspect else read(text, known, len(_WRAPPER) if self.nested else 0)
        if found is not None:
            return found
        if isinstance(self._parsed, SyntaxProblem):
            return self._parsed
        from pallas_lint.syntax.reading.from_libcst import UnknownSyntax, converted

        try:
            return converted(self._parsed, text)
        except UnknownSyntax:
            return SyntaxProblem(Position(self.first, 1), _TOO_NEW, limit=True)

    @cached_property
    def _parsed(self) -> cst.Module | SyntaxProblem:
        """Parsed by libcst, which keeps white space and parentheses, and has the best error messages."""
        import libcst as cst

        shift = 1 if self.nested else 0
        try:
            return cst.parse_module(self._parsed_text)
        except cst.ParserSyntaxError as error:
            return self._problem(error, shift)
        except cst.CSTValidationError as error:
            return self._refused(error)
        except UnicodeEncodeError:  # editors may send half of a pair of UTF-16, which no file can have
            at = self.source.line_starts[self.first - 1] + next(_SURROGATES.finditer(self.text)).start()
            return SyntaxProblem(self.source.position(at), "a surrogate code point is no character")
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
        if message.count(",") >= _MAX_EXPECTED:
            message = "invalid syntax"  # a list of all tokens that might be expected is no help
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
        """Whether it was parsed already."""
        return "_read" in vars(self)

    @property
    def is_refused(self) -> bool:
        """Whether it has an error that only parsing showed."""
        return not self.suspect and isinstance(vars(self).get("_read"), SyntaxProblem)

    @property
    def problem(self) -> SyntaxProblem | None:
        return self._read if isinstance(self._read, SyntaxProblem) else None

    @property
    def module(self) -> nodes.Module | None:
        """The piece as a module (a wrapped one for a class member); None where it does not parse."""
        return None if isinstance(self._read, SyntaxProblem) else self._read

    @cached_property
    def parents(self) -> dict[nodes.Node, nodes.Node]:
        """The parent of each node."""
        found: dict[nodes.Node, nodes.Node] = {}
        stack: list[nodes.Node] = [] if self.module is None else [self.module]
        while stack:
            node = stack.pop()
            for child in node.children:
                found[child] = node
                stack.append(child)
        return found

    @cached_property
    def scopes(self) -> Scopes:
        """What names in its functions mean."""
        return Scopes()

    @property
    def body(self) -> Sequence[nodes.BaseStatement]:
        """The piece's statements; empty where it does not parse."""
        module = self.module
        if module is None:
            return ()
        if self.nested:
            wrapper = module.body[0]
            assert isinstance(wrapper, nodes.If)
            assert isinstance(wrapper.body, nodes.IndentedBlock)
            return wrapper.body.body
        return module.body

    def span(self, node: nodes.Node) -> Span:
        """The node's place in the file. The node must be of this piece."""
        start, end = self._range(node)
        return Span(self.source.path, self.source.position(start), self.source.position(end))

    def code(self, node: nodes.Node) -> str:
        """The node's text in the file."""
        start, end = self._range(node)
        return self.source.text[start:end]

    def concrete(self, node: nodes.Node) -> cst.CSTNode:
        """The node as libcst has it, with its spaces, commas and parentheses."""
        start, end = self._range(node)
        base = self._base
        return self._concrete[node.__class__.__name__, start - base, end - base]

    def parentheses(self, node: nodes.Node) -> int:
        """The number of parentheses around an expression, which its span does not contain."""
        return len(getattr(self.concrete(node), "lpar", ()))

    @cached_property
    def _concrete(self) -> dict[tuple[str, int, int], cst.CSTNode]:
        """libcst's nodes by class and place."""
        from pallas_lint.syntax.positions import offsets

        if isinstance(self._parsed, SyntaxProblem):
            raise ValueError("a piece that does not parse has no nodes")
        places = offsets(self._parsed, self._parsed_text)
        found: dict[tuple[str, int, int], cst.CSTNode] = {}
        stack: list[cst.CSTNode] = [self._parsed]
        while stack:
            node = stack.pop()
            if id(node) in places:
                found.setdefault((node.__class__.__name__, *places[id(node)]), node)
            stack.extend(node.children)
        return found

    @property
    def _base(self) -> int:
        start = self.source.line_starts[self.first - 1]
        return start - len(_WRAPPER) if self.nested else start

    def _range(self, node: nodes.Node) -> tuple[int, int]:
        """The node's offsets in the file."""
        text = self._parsed_text if self._read_text is None else self._read_text
        start, end = node.at, node.to
        if not text.isascii():
            data = text.encode("utf-8", "surrogatepass")
            start = len(data[: node.at].decode("utf-8", "surrogatepass"))
            end = start + len(data[node.at : node.to].decode("utf-8", "surrogatepass"))
        if self._read_text is None:
            return self._base + start, self._base + end
        return self._now_at(start), self._now_at(end)

    def _now_at(self, offset: int) -> int:
        """The offset in the file of what was at an offset of the text that was read."""
        assert self._read_text is not None
        line = self._read_text.count("\n", 0, offset)
        column = offset - (self._read_text.rfind("\n", 0, offset) + 1)
        if self.nested:
            line -= 1  # the wrapper's
        if line < 0:
            return self._base + column
        return self.source.line_starts[self.first - 1 + self._read_lines[line]] + column


@frozen(eq=False)
class Site:
    """A node and the piece that it belongs to: a place in a file, computed only when it is reported."""

    piece: Piece
    node: nodes.Node

    @property
    def span(self) -> Span:
        return self.piece.span(self.node)

    @property
    def code(self) -> str:
        return self.piece.code(self.node)

    @property
    def callee(self) -> Site:
        """The function of a call, without its arguments; else the site itself."""
        return Site(self.piece, self.node.func) if isinstance(self.node, nodes.Call) else self

    def keyword(self, name: str) -> Site | None:
        """The argument that a call passes by this name."""
        argument = self.node.keyword(name) if isinstance(self.node, nodes.Call) else None
        return None if argument is None else Site(self.piece, argument)

    @property
    def key(self) -> nodes.Node:
        """Equal for the same node: sites are made anew at each visit."""
        return self.node
