"""The regular expressions of a tree of Python files: every call of `re`, every use of a compiled pattern."""

from __future__ import annotations

import ast
import importlib
import re
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split")
_SAMPLE = "name"  # for what an f-string is given at run time: an identifier, or escaped


@frozen
class Use:
    """A regular expression and the method of `re` that is called with it; `pattern` is None if only `code` is known."""

    file: str
    line: int
    code: str
    pattern: str | bytes | None
    flags: int
    method: str


def uses(file: Path, root: Path) -> Iterator[Use]:
    """Every use of a regular expression in the file. A pattern that is used as a value counts as one for a search."""
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    name = file.relative_to(root).as_posix()
    names = _namespace(name, tree)
    called: set[int] = set()  # nodes whose use is known
    for node in ast.walk(tree):
        found: tuple[Any, int, str] | None = None
        if isinstance(node, ast.Call) and _is_of_re(node.func):
            found = _call(node, names)
        elif isinstance(node, ast.Attribute) and node.attr in METHODS:
            found = _compiled(node.value, names, node.attr)
            called.add(id(node.value))
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            found = _compiled(node, names, "search")
        if found is not None:
            assert isinstance(node, ast.expr)
            yield Use(name, node.lineno, ast.unparse(node), *found)


def _is_of_re(node: ast.expr) -> bool:
    is_attribute = isinstance(node, ast.Attribute) and node.attr in (*METHODS, "compile")
    return is_attribute and isinstance(node.value, ast.Name) and node.value.id == "re"


def _call(call: ast.Call, names: dict[str, Any]) -> tuple[Any, int, str]:
    assert isinstance(call.func, ast.Attribute)
    method = call.func.attr
    given = {each.arg: each.value for each in call.keywords}
    at = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(method, 2)
    flags = call.args[at] if len(call.args) > at else given.get("flags", ast.Constant(0))
    pattern = _value(call.args[0], names)
    return pattern if isinstance(pattern, (str, bytes)) else None, int(_value(flags, names)), method


def _compiled(node: ast.expr, names: dict[str, Any], method: str) -> tuple[Any, int, str] | None:
    owner = node
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    is_known = (
        owner.id in names if isinstance(owner, ast.Name) else isinstance(owner, ast.Call) and _is_of_re(owner.func)
    )
    if not is_known:
        return None
    pattern = _value(node, names)
    return (pattern.pattern, pattern.flags, method) if isinstance(pattern, re.Pattern) else None


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """What the expression is worth at the top of its module, or None."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
        return getattr(_value(node.value, names), node.attr, None)  # most are these: nothing has to be compiled
    try:
        code = ast.fix_missing_locations(ast.Expression(_Samples(names).visit(node)))
        return eval(compile(code, "<pattern>", "eval"), names)
    except Exception:
        return None


class _Samples(ast.NodeTransformer):
    """Puts a sample into an f-string where a value is known at run time only."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        return node if _value(node.value, self.names) is not None else ast.Constant(_SAMPLE)


def _namespace(name: str, tree: ast.Module) -> dict[str, Any]:
    """The names of the module; only what it assigns if it cannot be imported here, as it needs jax."""
    names: dict[str, Any] = {"re": re}
    try:
        return names | vars(importlib.import_module(name.removesuffix(".py").replace("/", ".")))
    except ImportError:
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names[node.targets[0].id] = _value(node.value, names)
        return names
