"""Bindings of names in the scopes of a file, read from its syntax tree: imported names above all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

_COMPREHENSIONS = (
    "list_comprehension",
    "set_comprehension",
    "dictionary_comprehension",
    "generator_expression",
)
SCOPES = frozenset({"function_definition", "lambda", *_COMPREHENSIONS})
IMPORTS = ("import_statement", "import_from_statement")
# What may hold a statement that binds names.
_BINDING = frozenset(
    {
        "block",
        "expression_statement",
        "if_statement",
        "elif_clause",
        "else_clause",
        "for_statement",
        "while_statement",
        "with_statement",
        "with_clause",
        "with_item",
        "as_pattern",
        "try_statement",
        "except_clause",
        "except_group_clause",
        "finally_clause",
        "match_statement",
        "case_clause",
        "decorated_definition",
        "ERROR",
    }
)


@define(eq=False)
class Scope:
    """The targets of names in a module, function or comprehension; None hides an outer import."""

    parent: Scope | None
    names: dict[str, str | None]

    def find(self, name: str) -> str | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


def bindings(scope: tree_sitter.Node) -> dict[str, str | None]:
    """The names that a scope binds: imported ones with their target, others (and those imported as two things) None.

    An import goes before an assignment (`pl = None` where the import failed), wherever in the scope they are.
    """
    imported: dict[str, set[str]] = {}
    assigned: set[str] = set()
    is_module = scope.type == "module"  # whose assignments do not count
    parameters = scope.child_by_field_name("parameters")
    for parameter in parameters.named_children if parameters is not None else ():
        name = parameter if parameter.type == "identifier" else parameter.child_by_field_name("name")
        if name is None and parameter.named_children:
            name = parameter.named_children[0]
        assigned.add(text_of(name))
    stack = list(scope.named_children)
    while stack:
        node = stack.pop()
        kind = node.type
        if kind in IMPORTS:
            for found in imported_names(node):
                imported.setdefault(found.name, set()).add(found.bound)
        elif is_module and kind not in _BINDING:
            continue
        elif kind in ("function_definition", "class_definition"):
            assigned.add(text_of(node.child_by_field_name("name")))
        elif kind in ("assignment", "for_in_clause", "augmented_assignment"):
            assigned.update(_targets(node.child_by_field_name("left")))
        elif kind == "as_pattern_target":
            assigned.update(_targets(node))
        elif kind in _BINDING:
            if kind == "for_statement":
                assigned.update(_targets(node.child_by_field_name("left")))
            stack.extend(node.named_children)
    known: dict[str, str | None] = {} if is_module else dict.fromkeys(assigned)
    known.update({name: next(iter(bound)) if len(bound) == 1 else None for name, bound in imported.items()})
    return known


def _targets(left: tree_sitter.Node | None) -> Iterator[str]:
    """The names in the target of an assignment, however deeply nested."""
    stack = [left]
    while stack:
        node = stack.pop()
        if node is None or node.type in ("attribute", "subscript"):
            continue
        if node.type == "identifier":
            yield text_of(node)
        stack.extend(node.named_children)


@frozen
class Imported:
    node: tree_sitter.Node
    target: str
    name: str  # the name bound ...
    bound: str  # ... and what it is bound to: for `import a.b` that is `a`


def imported_names(node: tree_sitter.Node) -> Iterator[Imported]:
    """Each name that a statement imports."""
    module = node.child_by_field_name("module_name")
    prefix = "" if module is None else text_of(module)
    if prefix and not prefix.endswith("."):
        prefix += "."
    for child in node.children_by_field_name("name"):
        named = child.child_by_field_name("name") if child.type == "aliased_import" else child
        if named is None:
            continue
        target = prefix + text_of(named)
        if child.type == "aliased_import":
            yield Imported(named, target, text_of(child.child_by_field_name("alias")), target)
        elif prefix:
            yield Imported(named, target, text_of(named), target)
        else:
            root = target.split(".", 1)[0]
            yield Imported(named, target, root, root)


def text_of(node: tree_sitter.Node | None) -> str:
    """The text of a node; empty for none."""
    return "" if node is None else (node.text or b"").decode("utf-8", "replace")
