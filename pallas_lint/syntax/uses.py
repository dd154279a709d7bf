"""Every use of an imported module's names in a file, kernels or not: what API rules read.

Found on tree-sitter's tree, which the outline has anyway: positions are exact, broken code does not hide the rest,
and nothing needs to be parsed a second time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from pallas_lint.finding import Position, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

    from pallas_lint.source import Source

_FUNCTIONS = frozenset({"function_definition", "lambda"})
_BRANCHES = frozenset({"if_statement", "conditional_expression", "boolean_operator", "elif_clause"})
# An exception handler that makes the failure of a missing name harmless.
_HANDLED = ("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "Exception", "except:")


@frozen
class Keyword:
    name: str
    span: Span  # of the name alone
    value: Span
    text: str  # of the value


@frozen
class Branch:
    """A condition on the way to a use, as text; `negated`: the use stands where it is false."""

    condition: str
    negated: bool


@define(eq=False)
class Use:
    """One use of `name` (canonical). `span` covers the dotted expression, `last` its last component only.

    For an import, `imported` is true and `span` covers the imported name. `keywords` and `positional` are those of
    the call, where the use is called. `handled`: it stands in a `try` that survives its absence.
    """

    name: str
    span: Span
    last: Span
    spelled: str
    node: tree_sitter.Node
    imported: bool = False
    called: bool = False
    keywords: list[Keyword] = field(factory=list)
    positional: list[Span] = field(factory=list)
    arguments: Span | None = None
    splat: bool = False
    handled: bool = False
    branches: list[Branch] = field(factory=list)


@define(eq=False, slots=False)
class Uses:
    """The uses in one source, given its tree."""

    source: Source
    root: tree_sitter.Node

    @cached_property
    def all(self) -> list[Use]:
        """In order of position; only names under a module that the file imports."""
        found: list[Use] = []
        self._walk(self.root, _Scope(None, {}), found)
        return found

    # -- the walk ------------------------------------------------------------------------------------------------

    def _walk(self, node: tree_sitter.Node, scope: _Scope, found: list[Use]) -> None:
        stack: list[tuple[tree_sitter.Node, _Scope]] = [(node, scope)]
        while stack:
            current, scope = stack.pop()
            kind = current.type
            if kind == "attribute":
                use = self._attribute(current, scope)
                if use is not None:
                    found.append(use)
                    continue
            elif kind == "identifier":
                use = self._name(current, scope)
                if use is not None:
                    found.append(use)
                continue
            elif kind in ("import_statement", "import_from_statement"):
                found.extend(self._import(current, scope))
                continue
            elif kind in _FUNCTIONS:
                scope = _Scope(scope, dict.fromkeys(self._bound(current)))
            elif kind == "keyword_argument":
                value = current.child_by_field_name("value")
                if value is not None:
                    stack.append((value, scope))
                continue
            elif kind in ("string", "comment", "parameters", "integer", "float"):
                if kind != "string" or not current.named_child_count:
                    continue
            stack.extend((child, scope) for child in reversed(current.named_children))

    def _bound(self, node: tree_sitter.Node) -> Iterator[str]:
        """Parameters and plainly assigned names of a function: they hide imported ones."""
        parameters = node.child_by_field_name("parameters")
        for parameter in parameters.named_children if parameters is not None else ():
            name = parameter if parameter.type == "identifier" else parameter.child_by_field_name("name")
            if name is None and parameter.named_children:
                name = parameter.named_children[0]
            if name is not None:
                yield _text(name)
        body = node.child_by_field_name("body")
        for statement in body.named_children if body is not None and body.type == "block" else ():
            if statement.type == "expression_statement" and statement.named_children:
                assignment = statement.named_children[0]
                left = assignment.child_by_field_name("left") if assignment.type == "assignment" else None
                if left is not None and left.type == "identifier":
                    yield _text(left)

    def _attribute(self, node: tree_sitter.Node, scope: _Scope) -> Use | None:
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
        target = scope.find(_text(base))
        if target is None:
            return None
        names = [_text(part) for part in reversed(parts)]
        spelled = ".".join((_text(base), *names))
        return self._use(node, parts[0], ".".join((target, *names)), spelled)

    def _name(self, node: tree_sitter.Node, scope: _Scope) -> Use | None:
        target = scope.find(_text(node))
        return None if target is None or "." not in target else self._use(node, node, target, _text(node))

    def _use(self, node: tree_sitter.Node, last: tree_sitter.Node, name: str, spelled: str) -> Use:
        use = Use(name, self.span(node), self.span(last), spelled, node)
        parent = node.parent
        if parent is not None and parent.type == "call" and _same(parent.child_by_field_name("function"), node):
            use.called = True
            self._arguments(use, parent)
        self._conditions(use, node)
        return use

    def _arguments(self, use: Use, call: tree_sitter.Node) -> None:
        arguments = call.child_by_field_name("arguments")
        if arguments is None or arguments.type != "argument_list":
            return
        use.arguments = self.span(arguments)
        for argument in arguments.named_children:
            if argument.type == "keyword_argument":
                name, value = argument.child_by_field_name("name"), argument.child_by_field_name("value")
                if name is not None and value is not None:
                    use.keywords.append(Keyword(_text(name), self.span(name), self.span(value), _text(value)))
            elif argument.type in ("list_splat", "dictionary_splat"):
                use.splat = True
            elif argument.type != "comment":
                use.positional.append(self.span(argument))

    def _conditions(self, use: Use, node: tree_sitter.Node) -> None:
        """Note the branches and handlers that decide whether the use is ever reached."""
        child, parent = node, node.parent
        while parent is not None:
            kind = parent.type
            if kind == "try_statement" and not use.handled:
                handlers = [_text(each).split("\n", 1)[0] for each in parent.children if each.type == "except_clause"]
                # In a handler too: it runs where the name that was tried first is missing.
                use.handled = any(word in handler for handler in handlers for word in _HANDLED)
            elif kind in _BRANCHES:
                branch = _branch(parent, child)
                if branch is not None:
                    use.branches.append(branch)
            child, parent = parent, parent.parent

    def _import(self, node: tree_sitter.Node, scope: _Scope) -> Iterator[Use]:
        module = node.child_by_field_name("module_name")
        prefix = f"{_text(module)}." if module is not None else ""
        for child in node.children_by_field_name("name"):
            named = child.child_by_field_name("name") if child.type == "aliased_import" else child
            alias = child.child_by_field_name("alias") if child.type == "aliased_import" else None
            if named is None:
                continue
            target = prefix + _text(named)
            if alias is not None:
                scope.names[_text(alias)] = target
            elif prefix:
                scope.names[_text(named)] = target
            else:
                root = target.split(".", 1)[0]
                scope.names[root] = root
            if not prefix.startswith("."):
                last = named.named_children[-1] if named.type == "dotted_name" and named.named_children else named
                use = Use(target, self.span(named), self.span(last), _text(named), node, imported=True)
                self._conditions(use, node)
                yield use

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


@define(eq=False)
class _Scope:
    """Imported names of a module or function; None hides an outer import."""

    parent: _Scope | None
    names: dict[str, str | None]

    def find(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _same(first: tree_sitter.Node | None, second: tree_sitter.Node) -> bool:
    return first is not None and first.id == second.id


def _branch(parent: tree_sitter.Node, child: tree_sitter.Node) -> Branch | None:
    """The condition under which `child` of a branching node is reached; None where it is the condition itself."""
    if parent.type in ("if_statement", "elif_clause"):
        condition = parent.child_by_field_name("condition")
        if condition is None or _same(condition, child):
            return None
        return Branch(_text(condition), not _same(parent.child_by_field_name("consequence"), child))
    if parent.type == "conditional_expression" and len(parent.named_children) == 3:
        body, condition, _ = parent.named_children
        return None if _same(condition, child) else Branch(_text(condition), not _same(body, child))
    if parent.type == "boolean_operator":
        left, operator = parent.child_by_field_name("left"), parent.child_by_field_name("operator")
        if left is not None and operator is not None and not _same(left, child):
            return Branch(_text(left), operator.type == "or")
    return None
