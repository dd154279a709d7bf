"""Uses of an imported module's names in a file, for API rules.

Found on tree-sitter's tree, which the outline has anyway: positions are exact, broken code does not hide the rest,
and nothing needs to be parsed a second time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pallas_lint.finding import Position, Span
from pallas_lint.records import define, field, frozen
from pallas_lint.syntax.bindings import IMPORTS, SCOPES, Scope, bindings, imported_names, text_of
from pallas_lint.syntax.branches import Branch, branches_of, exits_of, same

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

    from pallas_lint.text.source import Source

_WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
# Nothing in these is evaluated as an expression of the running code.
_SKIPPED = frozenset({"comment", "integer", "float", "type", "global_statement", "nonlocal_statement", *IMPORTS})
# An exception handler that makes the failure of a missing name harmless.
_HANDLER = re.compile(r"except\s*(?:\*\s*)?:|Import|ModuleNotFound|Attribute|TypeError|\bException\b|BaseException")
_EXPECTING = re.compile(r"\b(?:suppress|raises|assertRaises\w*)\(")
# What may keep a use in it from being reached, or from doing harm.
_AROUND = frozenset({
    "module", "block", "function_definition", "decorated_definition", "try_statement", "with_statement", "if_statement",
    "elif_clause", "conditional_expression", "boolean_operator",
})  # fmt: skip


@frozen
class Keyword:
    name: str
    span: Span  # of the name alone
    value: Span
    text: str  # of the value
    node: tree_sitter.Node = field(eq=False, repr=False)  # the value


class _GuardStep(NamedTuple):
    """A node on the way through the tree, with the names that are in sight, its parent and what is around it."""

    node: tree_sitter.Node
    scope: Scope
    outer: tree_sitter.Node | None
    around: _Enclosing | None


class _Enclosing(NamedTuple):
    """A node around a use, its child on the way there, and what is around it in turn.

    Kept on the way down: tree-sitter finds a parent by a walk from the root, which in a long chain of calls is long.
    """

    node: tree_sitter.Node
    child: tree_sitter.Node
    above: _Enclosing | None


@define(eq=False, slots=False)
class Use:
    """One use of `name` (canonical), spelled `spelled`; of an import statement where `imported`.

    `node` is the dotted expression (for an import the imported name), `statement` an import's whole statement.
    """

    name: str
    spelled: str
    node: tree_sitter.Node = field(repr=False)
    _uses: Uses = field(repr=False)
    _last: tree_sitter.Node = field(repr=False)
    _outer: tree_sitter.Node | None = field(repr=False)  # of which it is a part
    _around: _Enclosing | None = field(repr=False)
    statement: tree_sitter.Node | None = field(default=None, repr=False)
    scope: Scope | None = field(default=None, repr=False)

    @property
    def imported(self) -> bool:
        return self.statement is not None

    def span_of(self, node: tree_sitter.Node) -> Span:
        return self._uses.span(node)

    @property
    def others(self) -> list[Use]:
        """Every use in the file, this one included."""
        return (self._uses.whole or self._uses).all

    @property
    def alias(self) -> str:
        """The name that the use begins with."""
        return self.spelled.split(".", 1)[0]

    @property
    def names_under_alias(self) -> frozenset[str]:
        """The targets of the uses in the file that begin with the same name, imports aside; faster than `others`."""
        return (self._uses.whole or self._uses).names_under(self.alias)

    def without(self, count: int) -> tree_sitter.Node:
        """The expression without its last `count` components."""
        node = self.node
        for _ in range(count):
            node = node.child_by_field_name("object") or node
        return node

    @cached_property
    def span(self) -> Span:
        """The dotted expression, or the imported name."""
        return self._uses.span(self.node)

    @cached_property
    def last(self) -> Span:
        """The last component of the dotted expression."""
        return self._uses.span(self._last)

    @property
    def binds(self) -> str | None:
        """The name that an import gives in the file; None where it is no import, or is `import a.b`."""
        if self.statement is None:
            return None
        parent = self.node.parent
        if parent is not None and parent.type == "aliased_import":
            return text_of(parent.child_by_field_name("alias"))
        return text_of(self.node) if self.statement.type == "import_from_statement" else None

    # -- the call ------------------------------------------------------------------------------------------------

    @cached_property
    def call(self) -> tree_sitter.Node | None:
        """The call of the name, if it is called on the spot."""
        outer = self._outer
        if outer is not None and outer.type == "call" and same(outer.child_by_field_name("function"), self.node):
            return outer
        return None

    @cached_property
    def binding(self) -> tree_sitter.Node | None:
        """The call that gives the name its arguments: its own, or that of `functools.partial(name, ...)`."""
        if self.call is not None or self.imported:
            return self.call
        arguments = self._outer
        outer = arguments.parent if arguments is not None and arguments.type == "argument_list" else None
        if outer is None or arguments is None or outer.type != "call" or not arguments.named_children:
            return None
        if not same(arguments.named_children[0], self.node):
            return None
        function = outer.child_by_field_name("function")
        return outer if text_of(function).rpartition(".")[2] == "partial" else None

    @property
    def called(self) -> bool:
        return self.call is not None

    @cached_property
    def arguments(self) -> Span | None:
        """The argument list of `binding`, parentheses included."""
        node = self._argument_list
        return None if node is None else self._uses.span(node)

    @cached_property
    def keywords(self) -> list[Keyword]:
        return [found for found in self._arguments if isinstance(found, Keyword)]

    @cached_property
    def positional(self) -> list[tree_sitter.Node]:
        return [found for found in self._arguments if not isinstance(found, Keyword)]

    @cached_property
    def splat(self) -> bool:
        """Whether `*args` or `**kwargs` are passed, so that further arguments are not known."""
        node = self._argument_list
        children = node.named_children if node is not None else []
        return any(child.type in ("list_splat", "dictionary_splat") for child in children)

    def keyword(self, name: str) -> Keyword | None:
        return next((keyword for keyword in self.keywords if keyword.name == name), None)

    @property
    def _argument_list(self) -> tree_sitter.Node | None:
        node = None if self.binding is None else self.binding.child_by_field_name("arguments")
        return node if node is not None and node.type == "argument_list" else None

    @cached_property
    def _arguments(self) -> list[Keyword | tree_sitter.Node]:
        found: list[Keyword | tree_sitter.Node] = []
        node = self._argument_list
        for argument in node.named_children if node is not None else ():
            if argument.type == "keyword_argument":
                name, value = argument.child_by_field_name("name"), argument.child_by_field_name("value")
                if name is not None and value is not None:
                    span = self._uses.span
                    found.append(Keyword(text_of(name), span(name), span(value), text_of(value), value))
            elif argument.type not in ("list_splat", "dictionary_splat", "comment") and not same(argument, self.node):
                found.append(argument)
        return found

    # -- whether it is reached -----------------------------------------------------------------------------------

    @property
    def _surroundings(self) -> Iterator[tuple[tree_sitter.Node, tree_sitter.Node]]:
        """The nodes around it that may guard it, each with its child on the way, the innermost first."""
        around = self._around
        while around is not None:
            yield around.node, around.child
            around = around.above

    @cached_property
    def handled(self) -> bool:
        """Whether it is in a `try` (or `suppress`, `raises`) that survives its absence, or in its handler."""
        for outer, child in self._surroundings:
            if outer.type == "try_statement" and child.type in ("block", "except_clause"):
                heads = [
                    text_of(clause).split("\n", 1)[0] for clause in outer.children if clause.type == "except_clause"
                ]
                if any(_HANDLER.search(head) for head in heads):
                    return True
            elif outer.type == "with_statement" and _EXPECTING.search(text_of(outer.named_children[0])):
                return True
        return False

    @cached_property
    def branches(self) -> list[Branch]:
        """Every condition on the way to the use, the innermost first."""
        found: list[Branch] = []
        for outer, child in self._surroundings:
            found.extend(branches_of(outer, child))
            if outer.type in ("block", "module"):
                found.extend(self._uses.exits_before(outer, child))
            elif outer.type == "decorated_definition":
                decorators = [text_of(decorator) for decorator in outer.named_children if decorator.type == "decorator"]
                # `skipif(jax.__version_info__ < …)`: no expression, so that nothing decides it but its words.
                found.extend(Branch(text, negated=False) for text in decorators if "skip" in text)
        return found

    @cached_property
    def enclosing(self) -> str:
        """The text of the outermost function around the use; empty at the top level."""
        functions = [outer for outer, _ in self._surroundings if outer.type == "function_definition"]
        return text_of(functions[-1]) if functions else ""


@define(eq=False, slots=False)
class Uses:
    """The uses in one source, given its tree."""

    source: Source
    root: tree_sitter.Node
    whole: Uses | None = None  # of which these are a part
    full_reads: int = field(default=0, init=False)  # how often all uses of the file were read
    _part: tuple[int, int] | None = field(default=None, init=False)  # only between these bytes
    _exits: dict[int, list[tuple[int, Branch]]] = field(factory=dict, init=False)

    @property
    def all(self) -> list[Use]:
        """All uses in order of position: names under a module that the file imports, and these imports."""
        self.full_reads += 1
        return self._all

    @cached_property
    def _all(self) -> list[Use]:
        return [use for use in self._with_stored[0] if use.name not in self.stored]

    @cached_property
    def _with_stored(self) -> tuple[list[Use], set[str]]:
        return self._found()

    @cached_property
    def stored(self) -> frozenset[str]:
        """The names that something in the file assigns: no use of them is one of jax."""
        return frozenset(self._with_stored[1])

    def names_under(self, alias: str) -> frozenset[str]:
        """The targets of the uses that begin with `alias`."""
        self.full_reads += 1
        return frozenset(name for first, name in self.spellings if first == alias)

    @cached_property
    def spellings(self) -> frozenset[tuple[str, str]]:
        """The first name and the target of each use but imports."""
        return frozenset((use.alias, use.name) for use in self._all if not use.imported)

    @cached_property
    def bound(self) -> dict[str, str | None]:
        """What the imports of the file's top level bind."""
        return bindings(self.root)

    def within(self, first: int, last: int) -> tuple[list[Use], set[str]]:
        """The uses on these lines, and the names that are assigned there: those are no uses anywhere in the file."""
        starts = self.source.line_starts
        end = starts[last] if last < len(starts) else len(self.source.text)
        text = self.source.text
        if text.isascii():
            place = starts[first - 1], end
        else:
            before = len(text[: starts[first - 1]].encode("utf-8", "surrogatepass"))
            place = before, before + len(text[starts[first - 1] : end].encode("utf-8", "surrogatepass"))
        part = Uses(self.source, self.root, self)
        part.bound, part._names, part._exits, part._part = self.bound, self._names, self._exits, place
        return part._found()

    def called_at(self, place: Position) -> Use | None:
        """The first use of which the call begins at a place."""
        uses, _ = self.within(place.line, place.line)
        for use in uses:
            if use.call is not None and use.name not in self.stored and self.span(use.call).start == place:
                return use
        return None

    def _found(self) -> tuple[list[Use], set[str]]:
        found: list[Use] = []
        stored: set[str] = set()
        stack = [_GuardStep(self.root, Scope(None, self.bound), None, None)]
        while stack:
            node, scope, outer, around = stack.pop()
            kind = node.type
            if kind in IMPORTS:
                found.extend(self._import(node, around))
                continue
            if kind in _SKIPPED:
                continue
            if kind in ("attribute", "identifier"):
                use = self._use(node, scope, outer, around)
                if use is not None and outer is not None and _is_stored(node, outer):
                    stored.add(use.name)  # `pltpu.CompilerParams = ...`: from here on it is there
                elif use is not None:
                    found.append(use)
                if use is not None or kind == "identifier":
                    continue
                child = node.child_by_field_name("object")
                if child is not None:
                    stack.append(_GuardStep(child, scope, node, around))
                continue
            if kind == "call":
                stored.update(self._set_by_name(node, scope))
            inner = Scope(scope, bindings(node)) if kind in SCOPES else scope
            straddles = self._part is not None and kind in ("module", "block") and not self._contains(node)
            for name, child in self._straddling(node) if straddles else _evaluated(node):
                if self._holds(child):
                    # Defaults of parameters are evaluated outside the function that has them.
                    own = scope if name == "parameters" else inner
                    stack.append(
                        _GuardStep(child, own, node, _Enclosing(node, child, around) if kind in _AROUND else around)
                    )
        return found, stored

    def _contains(self, node: tree_sitter.Node) -> bool:
        assert self._part is not None
        return self._part[0] <= node.start_byte and node.end_byte <= self._part[1]

    def _straddling(self, node: tree_sitter.Node) -> Iterator[tuple[None, tree_sitter.Node]]:
        """The statements of a block in the current part, last first, without reading all the others."""
        assert self._part is not None
        first, last = self._part
        cursor = node.walk()
        found: list[tree_sitter.Node] = []
        there = cursor.goto_first_child_for_byte(first) is not None
        while there:
            child = cursor.node
            if child is None or child.start_byte >= last:
                break
            if child.is_named:
                found.append(child)
            there = cursor.goto_next_sibling()
        return ((None, child) for child in reversed(found))

    @cached_property
    def _names(self) -> frozenset[bytes]:
        """The names that imports bind."""
        text, start = self.root.text or b"", self.root.start_byte
        names: set[str] = set()
        for word in re.finditer(rb"import", text):
            token = self.root.descendant_for_byte_range(start + word.start(), start + word.end())
            statement = None if token is None else token.parent
            if statement is not None and statement.type in IMPORTS:
                names.update(found.name for found in imported_names(statement))
        return frozenset(name.encode() for name in names if name)

    @cached_property
    def _marks(self) -> list[int]:
        """Their byte offsets: there are no uses where none of them is."""
        names = self._names
        if not names:
            return []
        text, start = self.root.text or b"", self.root.start_byte
        first, last = self._part or (start, start + len(text))
        words = _WORD.finditer(text, max(first - start, 0), last - start)
        return [start + word.start() for word in words if word[0] in names]

    def _holds(self, node: tree_sitter.Node) -> bool:
        """Whether one of the names is in the node's text."""
        marks = self._marks
        at = bisect_left(marks, node.start_byte)
        return at < len(marks) and marks[at] < node.end_byte

    def _use(
        self,
        node: tree_sitter.Node,
        scope: Scope,
        outer: tree_sitter.Node | None = None,
        around: _Enclosing | None = None,
    ) -> Use | None:
        parts: list[tree_sitter.Node] = []
        base: tree_sitter.Node | None = node
        while base is not None and base.type == "attribute":
            member = base.child_by_field_name("attribute")
            if member is None:
                return None
            parts.append(member)
            base = base.child_by_field_name("object")
        if base is None or base.type != "identifier":
            return None
        target = scope.find(text_of(base))
        if target is None or (not parts and "." not in target):
            return None
        names = [text_of(part) for part in reversed(parts)]
        last = parts[0] if parts else node
        spelled = ".".join((text_of(base), *names))
        return Use(".".join((target, *names)), spelled, node, self, last, outer, around, scope=scope)

    def _set_by_name(self, call: tree_sitter.Node, scope: Scope) -> Iterator[str]:
        """`setattr(pltpu, "CompilerParams", ...)`."""
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if function is not None and function.type == "attribute":
            function = function.child_by_field_name("attribute")
        if function is None or arguments is None or function.type != "identifier" or text_of(function) != "setattr":
            return
        given = arguments.named_children
        owner = self._use(given[0], scope) if given and given[0].type in ("attribute", "identifier") else None
        if owner is not None and len(given) > 1 and given[1].type == "string":
            yield f"{owner.name}.{text_of(given[1]).strip(chr(34) + chr(39))}"

    def _import(self, node: tree_sitter.Node, around: _Enclosing | None) -> Iterator[Use]:
        for found in imported_names(node):
            if not found.target.startswith("."):
                named = found.node
                last = named.named_children[-1] if named.type == "dotted_name" and named.named_children else named
                yield Use(found.target, text_of(named), named, self, last, node, around, node)

    def exits_before(self, block: tree_sitter.Node, statement: tree_sitter.Node) -> Iterator[Branch]:
        """Conditions that are false in `statement`, since earlier statements of its block leave it where they hold."""
        if block.id not in self._exits:
            self._exits[block.id] = [
                (child.start_byte, branch) for child in block.named_children for branch in exits_of(child)
            ]
        for start, branch in self._exits[block.id]:
            if start < statement.start_byte:
                yield branch

    def span(self, node: tree_sitter.Node) -> Span:
        position = self._position
        return Span(
            self.source.path,
            position(node.start_point.row, node.start_point.column),
            position(node.end_point.row, node.end_point.column),
        )

    def _position(self, row: int, column: int) -> Position:
        line = self.source.line(row + 1)
        if not line.isascii():
            column = len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))
        return Position(row + 1, column + 1)


def _evaluated(node: tree_sitter.Node) -> Iterator[tuple[str | None, tree_sitter.Node]]:
    """The children that hold expressions, last first, with the field name of a parameter list."""
    if node.type == "keyword_argument":
        value = node.child_by_field_name("value")
        if value is not None:
            yield None, value
        return
    if node.type in ("parameters", "lambda_parameters"):
        for parameter in reversed(node.named_children):
            value = parameter.child_by_field_name("value")
            if value is not None:
                yield None, value
        return
    parameters = node.child_by_field_name("parameters") if node.type in ("function_definition", "lambda") else None
    name = node.child_by_field_name("name") if node.type in ("function_definition", "class_definition") else None
    for child in reversed(node.named_children):
        if not same(name, child):
            yield "parameters" if same(parameters, child) else None, child


def _is_stored(node: tree_sitter.Node, outer: tree_sitter.Node) -> bool:
    return outer.type == "assignment" and same(outer.child_by_field_name("left"), node)
