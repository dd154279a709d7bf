"""PAL602 checkify-error-ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Edit, Example, Finding, Fix, Rule, Severity, Span, Use
from pallas_lint.kernels.analysis.functionalised import launches_checked_in
from pallas_lint.records import frozen
from pallas_lint.syntax.bindings import text_of
from pallas_lint.syntax.search import descendants

if TYPE_CHECKING:
    import tree_sitter

    from pallas_lint.syntax.uses import Uses

_MODULE = "jax.experimental.checkify"
_CHECKIFY = f"{_MODULE}.checkify"
_CHECKS = frozenset(f"{_MODULE}.{name}" for name in ("check", "debug_check", "check_error"))
_TRACING = r"\b(?:jit|vmap|pmap|grad|value_and_grad|shard_map|checkpoint|remat|checkify|scan|cond|partial)"
_SCOPES = ("function_definition", "lambda", "class_definition", "module")


class CheckifyErrorIgnored(Rule):
    """The error that a checkified function returns is never thrown nor looked at.

    `checkify.checkify(f)` turns failed checks into a value: `err, out = checked(x)`. Nothing is raised until
    `err.throw()` (or `checkify.check_error(err)` inside `jax.jit`) is called; an error that is dropped makes every
    check in the function and in its kernels useless, while each still costs time.

    Likewise `checkify.checkify(f)` without `errors=` makes only the checks that the code writes itself with
    `checkify.check`: where there are none, nothing is checked. NaNs, divisions by zero and out-of-range indices need
    `errors=checkify.float_checks`, `index_checks` or `all_checks` (measured with jax 0.4.35 to 0.10.0: a NaN made
    in a kernel is reported with `float_checks` and not without).

    ## How to fix

    Call `err.throw()` after the call, outside `jax.jit`; inside, `checkify.check_error(err)` or return the error.

    ## Fix safety

    Safe: the statement that is added raises only where a check failed. Unsafe where the file hands the function to
    `jax.jit` or its like, and no fix is offered in functions with decorators: a traced error cannot be thrown.

    ## Known limits

    An error that is returned, stored, passed on or named anywhere later in its function counts as looked at.

    ## References

    - jax documentation, "The `checkify` transformation".
    """

    code = "PAL602"
    name = "checkify-error-ignored"
    severity = Severity.WARNING
    fix = "safe"
    invalid = (
        Example(
            """
            from jax.experimental import checkify
            from jax.experimental import pallas as pl

            def run(f, x):
                checked = checkify.checkify(f)
                err, out = checked(x)  #!
                err.throw()  #+
                return out
            """,
        ),
        Example(
            """
            from jax.experimental import checkify
            from jax.experimental import pallas as pl

            def run(f, x):
                _, out = jax.jit(checkify.checkify(f, errors=checkify.all_checks))(x)  #!-
                error, out = jax.jit(checkify.checkify(f, errors=checkify.all_checks))(x)  #+
                error.throw()  #+
                return out
            """,
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import checkify
            from jax.experimental import pallas as pl

            def run(f, x):
                err, out = checkify.checkify(f)(x)
                checkify.check_error(err)
                return out

            def both(f, x):
                return checkify.checkify(f)(x)

            def later(f, x):
                err, out = checkify.checkify(f)(x)
                return err, out
            """
        ),
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        tree = context.module.outline.tree
        if tree is None or "checkify" not in context.module.source.text:
            return
        uses = context.module.uses
        wrapped = [use for use in uses.all if use.name == _CHECKIFY and not use.imported]
        for use in wrapped:
            for call in _calls(use):
                yield from self._call(call, uses, context)
        if not any(use.name in _CHECKS for use in uses.all):
            for use in wrapped:
                yield from self._nothing_checked(use, context)

    def _call(self, call: tree_sitter.Node, uses: Uses, context: Context) -> Iterator[Finding]:
        dropped = _dropped(call)
        if dropped is None:
            return
        fix = _thrown(dropped, uses, context)
        yield context.finding(
            uses.span(dropped.place),
            "the error of the checkified call is never looked at: its checks raise nothing",
            help="call `.throw()` on it, or `checkify.check_error` under `jax.jit`",
            fixes=[fix] if fix is not None else [],
        )

    @staticmethod
    def _nothing_checked(use: Use, context: Context) -> Iterator[Finding]:
        """No `errors=`, and no check of its own in the whole file, though a kernel is launched."""
        if use.call is None or use.splat or use.keyword("errors") is not None or len(use.positional) != 1:
            return
        target = text_of(use.positional[0])
        launches = launches_checked_in(target, context.analysis)
        sources = {launch.module.source.path for launch in launches}
        if not launches or sources != {context.module.source.path}:
            return
        yield context.finding(
            use.span_of(use.call),
            "without `errors=` only `checkify.check` calls are checked, and there are none",
            help="pass `errors=checkify.float_checks`, `index_checks` or `all_checks`",
            related=[(launches[0].site, "the kernel is launched here")],
        )


@frozen
class _Dropped:
    place: tree_sitter.Node
    statement: tree_sitter.Node
    target: tree_sitter.Node | None  # of the error; None where the whole result is dropped


def _calls(use: Use) -> Iterator[tree_sitter.Node]:
    """The calls of what a use of `checkify.checkify` makes, in the scope that it is made in."""
    if use.call is None:
        decorated = use.node.parent.parent if use.node.parent is not None else None
        if use.node.parent is not None and use.node.parent.type == "decorator" and decorated is not None:
            definition = decorated.child_by_field_name("definition")
            if definition is not None:
                yield from _named_calls(text_of(definition.child_by_field_name("name")), decorated)
        return
    made = use.call
    while True:
        parent = made.parent
        if parent is None:
            return
        if parent.type == "call" and parent.child_by_field_name("function") == made:
            yield parent
            return
        # `jax.jit(checkified)` does what it does.
        outer = parent.parent
        if parent.type != "argument_list" or outer is None or outer.type != "call" or parent.named_children[0] != made:
            break
        if text_of(outer.child_by_field_name("function")) not in ("jax.jit", "jit"):
            return
        made = outer
    if parent.type == "assignment" and parent.child_by_field_name("right") == made:
        left = parent.child_by_field_name("left")
        if left is not None and left.type == "identifier":
            yield from _named_calls(text_of(left), parent)


def _named_calls(name: str, binding: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Calls of a name in the scope that binds it."""
    scope = _scope(binding)
    for node in descendants(scope):
        if node.type == "call" and node.start_byte > binding.start_byte:
            function = node.child_by_field_name("function")
            if function is not None and function.type == "identifier" and text_of(function) == name:
                yield node
        if node.type in ("assignment", "function_definition") and node.id != binding.id:
            bound = node.child_by_field_name("left") or node.child_by_field_name("name")
            if bound is not None and text_of(bound) == name and node.start_byte > binding.end_byte:
                return  # the name means something else from here on


def _dropped(call: tree_sitter.Node) -> _Dropped | None:
    """How the result of a checkified call loses its error; None where it does not."""
    parent = call.parent
    if parent is None:
        return None
    if parent.type == "expression_statement":
        return _Dropped(call, parent, None)
    if parent.type == "subscript" and parent.child_by_field_name("value") == call:
        index = parent.child_by_field_name("subscript")
        return _Dropped(parent, parent, None) if text_of(index) in ("1", "-1") else None
    if parent.type != "assignment" or parent.child_by_field_name("right") != call or parent.parent is None:
        return None
    left = parent.child_by_field_name("left")
    if left is None or left.type not in ("pattern_list", "tuple_pattern") or len(left.named_children) != 2:
        return None
    target = left.named_children[0]
    if target.type != "identifier" or parent.parent.type != "expression_statement":
        return None
    name = text_of(target)
    if not name.strip("_"):
        return _Dropped(parent, parent.parent, target)
    scope = _scope(parent)
    if scope.type == "module":
        return None  # another module may import it
    others = (node for node in descendants(scope) if node.type == "identifier" and node.id != target.id)
    return None if any(text_of(node) == name for node in others) else _Dropped(parent, parent.parent, target)


def _thrown(dropped: _Dropped, uses: Uses, context: Context) -> Fix | None:
    """Throw the error after the statement that drops it."""
    scope = _scope(dropped.statement)
    decorated = scope.parent is not None and scope.parent.type == "decorated_definition"
    if (
        dropped.statement.type != "expression_statement"
        or decorated
        or scope.type not in ("function_definition", "module")
    ):
        return None
    span = uses.span(dropped.statement)
    indent = context.module.source.line(span.start.line)[: span.start.column - 1]
    if indent.strip() or len(dropped.statement.named_children) != 1:
        return None
    name = text_of(dropped.target)
    edits = []
    if dropped.target is None:
        name = "error"
        edits.append(Edit(Span(span.path, span.start, span.start), "error, _ = "))
    elif not name.strip("_"):
        name = "error"
        edits.append(Edit(uses.span(dropped.target), name))
    if name == "error" and any(text_of(n) == name for n in descendants(scope) if n.type == "identifier"):
        return None
    edits.append(Edit(Span(span.path, span.end, span.end), f"\n{indent}{name}.throw()"))
    make = context.unsafe if _may_be_traced(scope, context) else context.safe
    return make(f"call `{name}.throw()`", *edits)


def _may_be_traced(scope: tree_sitter.Node, context: Context) -> bool:
    """Whether the file hands the function to `jax.jit` or its like, under which no error can be thrown."""
    name = text_of(scope.child_by_field_name("name"))
    if not name:
        return False
    return re.search(rf"{_TRACING}\([^()\n]*\b{re.escape(name)}\b", context.module.source.text) is not None


def _scope(node: tree_sitter.Node) -> tree_sitter.Node:
    parent = node.parent
    while parent is not None and parent.type not in _SCOPES:
        parent = parent.parent
    return parent if parent is not None else node
