"""Names in code: all references to a function's parameters, in nested functions too, and what statements bind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import define, field
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.syntax.piece import Piece

Function = nodes.FunctionDef | nodes.Lambda
_BINDERS = nodes.AssignTarget | nodes.AugAssign | nodes.AnnAssign | nodes.NamedExpr | nodes.For | nodes.Del
_Comprehension = nodes.ListComp | nodes.SetComp | nodes.GeneratorExp | nodes.DictComp


@define(eq=False)
class FunctionScope:
    """The names in one function, by what binds them."""

    function: Function
    parameters: dict[str, list[nodes.Name]] = field(factory=dict)  # each first where it is declared
    free: dict[str, list[nodes.Name]] = field(factory=dict)  # bound around the function, or nowhere
    bound: set[str] = field(factory=set)  # by its code, besides the parameters
    inner: list[FunctionScope] = field(factory=list)  # of the functions directly inside


@define(eq=False)
class Scopes:
    """The scopes of functions, each read once."""

    _known: dict[Function, FunctionScope] = field(factory=dict, init=False)

    def of(self, function: Function) -> FunctionScope:
        """The scope of a function. A parameter that its code binds again has its declaration as its only name."""
        known = self._known.get(function)
        if known is not None:
            return known
        scope = self._known[function] = FunctionScope(function)
        named = self._read([function.body], scope)
        given = function.params
        for parameter in given.named:
            name = parameter.name.value
            uses = [] if name in scope.bound else named.get(name, [])
            scope.parameters[name] = [parameter.name, *uses]
        scope.free = {
            name: uses for name, uses in named.items() if name not in scope.parameters and name not in scope.bound
        }
        return scope

    def binding(self, name: nodes.Name, piece: Piece) -> FunctionScope | None:
        """The scope of the function of which a name is a parameter; None where other code binds the name."""
        found: FunctionScope | None = None
        node: nodes.Node | None = piece.module
        while node is not None:
            if isinstance(node, Function):
                scope = self.of(node)
                if name.value in scope.bound:
                    found = None
                elif name.value in scope.parameters:
                    found = scope
            node = next((child for child in node.children if child.at <= name.at and name.to <= child.to), None)
        return found

    def _read(self, roots: Iterable[nodes.Node], scope: FunctionScope) -> dict[str, list[nodes.Name]]:
        """The names below nodes, but for those that inner functions and comprehensions bind."""
        named: dict[str, list[nodes.Name]] = {}
        stack = list(roots)
        while stack:
            node = stack.pop()
            if isinstance(node, nodes.Name):
                named.setdefault(node.value, []).append(node)
            elif isinstance(node, nodes.Attribute | nodes.Arg):
                stack.append(node.value)  # not `.name` and `name=`
            elif isinstance(node, Function):
                inner = self.of(node)
                scope.inner.append(inner)
                _add(named, inner.free)
                defaults = (parameter.default for parameter in (*node.params.params, *node.params.kwonly_params))
                stack += [default for default in defaults if default is not None]
                if isinstance(node, nodes.FunctionDef):
                    scope.bound.add(node.name.value)
                    stack += node.decorators
            elif isinstance(node, _Comprehension):
                found = self._read(node.children, scope)
                _add(named, {name: uses for name, uses in found.items() if name not in set(_loop_names(node.for_in))})
            else:
                if not isinstance(node, nodes.CompFor):
                    scope.bound.update(_bound_by(node))
                stack += node.children
        return named


def _add(named: dict[str, list[nodes.Name]], others: dict[str, list[nodes.Name]]) -> None:
    for name, uses in others.items():
        named.setdefault(name, []).extend(uses)


def _bound_by(node: nodes.Node) -> Iterator[str]:
    """The names that a statement or expression gives a value."""
    if isinstance(node, nodes.AssignTarget | nodes.NamedExpr | nodes.For | nodes.AnnAssign):
        yield from target_names(node.target)
    elif isinstance(node, nodes.AsName):
        yield from target_names(node.name)


def changed_names(statements: Iterable[nodes.Node]) -> Iterator[str]:
    """The names that statements may bind or change in place, but for what functions and classes in them do."""
    stack = list(statements)
    while stack:
        node = stack.pop()
        if isinstance(node, nodes.FunctionDef | nodes.ClassDef):
            yield node.name.value
            continue
        if isinstance(node, _BINDERS):
            yield from _changed_roots(node.target)
        elif isinstance(node, nodes.AsName):
            yield from target_names(node.name)
        elif isinstance(node, nodes.ImportAlias) and node.asname is None:
            yield from _changed_roots(node.name)
        elif isinstance(node, nodes.MatchPattern | nodes.MatchStar):
            yield from target_names(node)
        elif isinstance(node, nodes.Expr) and isinstance(node.value, nodes.Call):
            # `names.append(name)`, `fill(names)`
            for changed in (node.value.func, *(argument.value for argument in node.value.args)):
                if changed is not node.value.func or not isinstance(changed, nodes.Name):
                    yield from _changed_roots(changed)
        stack += node.children


def _changed_roots(target: nodes.Node) -> Iterator[str]:
    """The names of what an assignment to a target changes: `a` and `b` for `a.x, b[i] = ...`."""
    if isinstance(target, nodes.Attribute | nodes.Subscript):
        yield from _changed_roots(target.value)
    elif isinstance(target, nodes.Name):
        yield target.value
    elif not isinstance(target, nodes.Call):
        for child in target.children:
            yield from _changed_roots(child)


def _loop_names(loop: nodes.CompFor | None) -> Iterator[str]:
    while loop is not None:
        yield from target_names(loop.target)
        loop = loop.inner_for_in


def target_names(node: nodes.Node) -> Iterator[str]:
    """The names that an assignment to a target binds."""
    if isinstance(node, nodes.Name):
        yield node.value
    elif not isinstance(node, nodes.Subscript | nodes.Attribute):
        for child in node.children:
            yield from target_names(child)
