"""Names of references as the kernel's author wrote them, where jax has made up some such as `args[2][1][0]`."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Sequence
from typing import Any

from ...protocol import Place
from ..inputs import arguments

# Of a starred parameter, of the wrappers that jax puts around kernels, of the state of its pipelines.
_MADE_UP = re.compile(r"(?:args|refs|xs|operands|\w{0,40}alloc\w{0,40})(?:\[[^\[\]]{0,80}\]){2}|[^'\"]{0,99}['\"]")


def returned(place: Place) -> Place:
    """The place of the result of the function defined there; the place itself where there is no function."""
    found: list[ast.expr] = []
    for node in ast.walk(_tree(place)):
        if isinstance(node, ast.Lambda) and node.lineno == place["line"]:
            found.append(node.body)
        elif isinstance(node, ast.FunctionDef) and place["line"] in _head(node):
            found += [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
    if len(found) != 1:
        return place
    (value,) = found
    return {
        "file": place["file"], "line": value.lineno, "column": value.col_offset + 1, "end_line": value.end_lineno,
        "end_column": (value.end_col_offset or 0) + 1,
    }  # fmt: skip


def parameters(place: Place | None, count: int) -> list[str]:
    """The names of the first `count` parameters of the function that is defined there; empty where it has others."""
    if place is None:
        return []
    for node in ast.walk(_tree(place)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and place["line"] in _head(node):
            found = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
            return found[:count] if len(found) >= count else []
    return []


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    """The lines from a function's first decorator to its name."""
    return range(min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.lineno + 1)


def _tree(place: Place) -> ast.Module:
    """The tree of a place's file; an empty one where it cannot be read."""
    try:
        return ast.parse("".join(linecache.getlines(place["file"])))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def readable(name: str, aval: Any) -> str:
    """The name of a reference, or what it is where jax has made that up."""
    return described(aval) if _MADE_UP.match(name) else name


def described(aval: Any) -> str:
    """ "barrier", "semaphore", or "smem f32[64,128]"."""
    inner = getattr(aval, "inner_aval", aval)
    dtype = str(getattr(inner, "dtype", ""))
    for word in ("barrier", "sem"):
        if word in dtype.lower():
            return "semaphore" if word == "sem" else word
    space = str(getattr(aval, "memory_space", "") or "memory").lower().rpartition(".")[2]
    sizes: Sequence[Any] = getattr(inner, "shape", ())
    return f"{space} {arguments.short_name(getattr(inner, 'dtype', None))}[{','.join(map(str, sizes))}]"
