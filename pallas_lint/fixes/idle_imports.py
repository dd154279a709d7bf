"""Imports that become unused by an edit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_lint.syntax.literals import without_warnings


def without_idle_imports(before: str, after: str) -> str:
    """`after` without the jax imports at its top level that were used in `before` and no longer are.

    A name that the module offers to others (`__all__`), or that is imported twice, stays.
    """
    old, new = _parsed(before), _parsed(after)
    if old is None or new is None:
        return after
    idle = (_imported(new) - _used(new)) & _used(old) & _imported(old)
    lines = after.splitlines(keepends=True)
    for statement in reversed(new.body):
        if isinstance(statement, ast.Import | ast.ImportFrom) and _is_jax(statement):
            gone = [alias for alias in statement.names if _bound(alias) in idle]
            if gone:
                _remove(statement, gone, lines)
    return "".join(lines)


def _remove(statement: ast.Import | ast.ImportFrom, gone: list[ast.alias], lines: list[str]) -> None:
    first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
    text = "".join(lines[first : last + 1])
    if statement.col_offset or ";" in text:
        return
    newline = text[len(text.rstrip("\r\n")) :]
    left = [alias for alias in statement.names if alias not in gone]
    if not left:
        lines[first : last + 1] = []
    elif "#" not in text:
        statement.names = left
        lines[first : last + 1] = [ast.unparse(statement) + newline]


def _parsed(text: str) -> ast.Module | None:
    try:
        with without_warnings():
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _imports(tree: ast.Module) -> Iterator[ast.alias]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from node.names


def _imported(tree: ast.Module) -> set[str]:
    """Names that one import binds."""
    names = [_bound(alias) for alias in _imports(tree)]
    return {name for name in names if names.count(name) == 1}


def _used(tree: ast.Module) -> set[str]:
    """Names that are read, and strings, which may contain names (`__all__`, quoted annotations)."""
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= set(re.findall(r"\w+", node.value))
    return words


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_jax(statement: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.level == 0 and (statement.module or "").partition(".")[0] == "jax"
    return all(alias.name.partition(".")[0] == "jax" for alias in statement.names)
