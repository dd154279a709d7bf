"""Reasons why a function cannot be probed as requested, and which functions of a file are kernels.

The text of a file is checked before anything is imported, and the function itself afterwards: both give the same
answer.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

_MAX_NAMED = 3  # launchers


def suggestion(name: str, names: Iterable[str]) -> str:
    """ " (did you mean `x`?)" for the name nearest to one that is not there, else nothing."""
    near = difflib.get_close_matches(name, names, 1, 0.5)
    return f" (did you mean `{near[0]}`?)" if near else ""


def asynchronous(function: str) -> str:
    return f"`{function}` is async: probe a function that calls its kernels without `await`"


def generator(function: str) -> str:
    return f"`{function}` is a generator: probe a function that returns what its kernels give"


def method(function: str) -> str:
    owner, _, name = function.rpartition(".")
    return f"`{function}` is a method: have the file make an instance of it, as in `it = {owner}(...)`, and probe " \
           f"`it.{name}`"  # fmt: skip


def kernel(function: str, launchers: list[str]) -> str:
    """`launchers`: what launches it."""
    named = ", ".join(f"`{name}`" for name in launchers[:_MAX_NAMED])
    more = f" and {len(launchers) - _MAX_NAMED} more" if len(launchers) > _MAX_NAMED else ""
    return f"`{function}` is a kernel; probe what launches it: {named}{more}"


def refusal(name: str, owner: Any, function: Any, text: str) -> str | None:
    """Why jax cannot trace a function by calling it, if that is so.

    `owner`: the module or class that it is in, `text`: that of its file.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return asynchronous(name)
    if inspect.isgeneratorfunction(function):
        return generator(name)
    if inspect.isclass(owner) and inspect.isfunction(function):
        first = next(iter(inspect.signature(function).parameters), "")
        return method(name) if first == "self" else None
    try:
        found = launchers(ast.parse(text), name)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return kernel(name, found) if found else None


def launchers(tree: ast.Module, name: str) -> list[str]:
    """The functions, classes and variables at the top of a file that launch a function of it as a kernel."""
    found = []
    for statement in tree.body:
        passed = () if _has_its_own(statement, name) else _launches(statement)
        if any(name in _passed(launch, statement) for launch in passed):
            found += [each for each in _bound(statement) if each != name]
    return list(dict.fromkeys(found))


def _has_its_own(statement: ast.stmt, name: str) -> bool:
    """Whether a function at the top of a file means something of its own by that name."""
    return any(
        (isinstance(node, ast.arg) and node.arg == name)
        or (isinstance(node, ast.FunctionDef) and node is not statement and node.name == name)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        for node in ast.walk(statement)
    )


def _launches(statement: ast.stmt) -> Iterator[ast.Call]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and node.args:
            owner, _, called = _dotted(node.func).rpartition(".")
            if called in ("pallas_call", "core_map") or (called == "kernel" and "pl" in owner):
                yield node


def _passed(launch: ast.Call, statement: ast.stmt) -> set[str]:
    """The names of what may be the kernel of a launch: also of what `partial` is applied to, or a variable holds."""
    waiting, seen = [launch.args[0]], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and node.args and _dotted(node.func).rpartition(".")[2] == "partial":
            waiting.append(node.args[0])
        elif isinstance(node, ast.IfExp):
            waiting += [node.body, node.orelse]
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            waiting += [
                each.value for each in ast.walk(statement)
                if isinstance(each, ast.Assign)
                and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
            ]  # fmt: skip
    return seen


def _dotted(node: ast.expr) -> str:
    """`pl.pallas_call`; empty for what is not a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement at the top of a file binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [each.id for each in targets if isinstance(each, ast.Name)]
