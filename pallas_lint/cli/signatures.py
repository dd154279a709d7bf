"""Checks of a function that is to be probed, by its file's text: whether it exists and takes the arguments."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING, Any

from pallas_lint.finding import LintError
from pallas_lint.probe.specs import reference_of
from pallas_lint.probe.worker.inputs import refusals
from pallas_lint.probe.worker.inputs.arguments import examples
from pallas_lint.syntax.literals import without_warnings
from pallas_lint.text.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pallas_lint.probe.specs import Spec

# Decorators after which a function takes what it took before.
_TRANSPARENT = re.compile(
    r"(?:\w+\.)*(?:jit|cache|lru_cache|checkpoint|remat|custom_vjp|custom_jvp|named_call|wraps)\b"
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def mismatch(spec: Spec, text: str) -> str | None:
    """Why a function cannot be probed with its arguments, as far as the text of its file shows; None: it may be.

    What decorators, base classes and `import *` bring is not known.
    """
    tree = _parsed(text)
    names = None if tree is None else _names(tree)
    first, *rest = spec.function.split(".")
    if tree is None or names is None:
        return None
    if first not in names and not _has_functions(tree):
        return None  # it mostly fails in another way
    if first not in names:
        return f"there is no `{spec.function}` in it{refusals.suggestion(first, names)}"
    found = names[first]
    is_method = bool(rest)
    if rest and isinstance(found, ast.ClassDef):
        members = _bound(found.body)
        if len(rest) > 1 or members is None or found.decorator_list:
            return None
        if rest[0] not in members:
            unknown = found.bases or found.keywords
            return None if unknown else f"`{first}` has no `{rest[0]}`{refusals.suggestion(rest[0], members)}"
        found = members[rest[0]]
        if isinstance(found, _Function) and found.decorator_list:
            return None  # a static method takes no instance
    elif rest:
        return None
    launchers = [] if rest else refusals.launchers(tree, first)
    if launchers and isinstance(found, _Function):
        return refusals.kernel(first, launchers)
    return _mismatch_of(spec, found, is_method=is_method) if isinstance(found, _Function) else None


def missing_references(wanted: Iterable[Spec], cwd: Path) -> dict[tuple[str, str], LintError]:
    """What is wrong with comments that name a reference which is not there, by absolute path and function."""
    found: dict[tuple[str, str], LintError] = {}
    for spec in wanted:
        file = (cwd / spec.file).resolve()
        text = _text(file)
        comment = None if text is None else reference_of(text, spec.function)
        if comment is None:
            continue
        line, named = comment
        path, mark, name = named.rpartition("::")
        text = _text(file.parent / path) if mark else text
        why = f"{path}: no such file" if text is None else undefined(name, text)
        if why is not None:
            found[str(file), spec.function] = LintError(spec.file, f"reference({named}): {why}", line)
    return found


def undefined_everywhere(named: str | None, wanted: Iterable[Spec], cwd: Path) -> str | None:
    """What is wrong with a function to compare with that no file has; None: one may have it.

    `named`: in the file of each function, or `FILE::NAME`.
    """
    path, _, name = (named or "").rpartition("::")
    files = [path] if path else [spec.file for spec in wanted]
    why = {file: undefined(name, _text(cwd / file) or "") for file in files if name}
    return None if None in why.values() else next((f"{file}: {each}" for file, each in why.items()), None)


def _text(file: Path) -> str | None:
    try:
        return Source.read(file, str(file)).text
    except SourceError:
        return None


def undefined(function: str, text: str) -> str | None:
    """Why a file has no such function, by its text; None where it may have it."""
    tree = _parsed(text)
    names = None if tree is None else _names(tree)
    first, *rest = function.split(".")
    if tree is None or names is None or rest or first in names or not _has_functions(tree):
        return None
    return f"there is no `{function}` in it{refusals.suggestion(first, names)}"


def _has_functions(tree: ast.Module) -> bool:
    return any(isinstance(node, _Function) for node in tree.body)


def _parsed(text: str) -> ast.Module | None:
    """The module; None where it cannot be parsed: importing it fails, with the line."""
    try:
        with without_warnings():
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _names(tree: ast.Module) -> dict[str, ast.AST | None] | None:
    """The names of a module, with what they are bound to; None where not all are known."""
    names = _bound(tree.body)
    if names is not None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                names.update(dict.fromkeys(node.names))
    return names


def _mismatch_of(spec: Spec, function: _Function, *, is_method: bool) -> str | None:
    if not all(_TRANSPARENT.fullmatch(_decorator(each)) for each in function.decorator_list):
        return None
    if isinstance(function, ast.AsyncFunctionDef):
        return refusals.asynchronous(spec.function)
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in _own_nodes(function)):
        return refusals.generator(spec.function)
    if any(spec.quoted_types()):
        return None
    signature = _signature(function.args)
    try:
        signature.bind(*spec.arguments, **dict(spec.keywords))
    except TypeError as error:
        parameters = list(signature.parameters.values())
        if is_method and parameters and str(error).endswith("required argument: " + repr(_last(parameters))):
            return refusals.method(spec.function)
        unknown = [name for name, _ in spec.keywords if name not in signature.parameters]
        meant = refusals.suggestion(unknown[0], signature.parameters) if unknown else ""
        bare = signature.replace(parameters=[each.replace(annotation=each.empty) for each in parameters])
        example = spec.called_with(examples(parameters))
        return f"`{spec.function}` cannot be called so: {error}{meant}; it takes {bare}; for example {example}"
    return None


def _decorator(node: ast.expr) -> str:
    """The name of a decorator, also of one that is called or `partial`."""
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        return _decorator(node.args[0]) if called.rpartition(".")[2] == "partial" and node.args else called
    return ast.unparse(node)


def _bound(body: Iterable[ast.stmt]) -> dict[str, ast.AST | None] | None:
    """The names that statements bind, with the only function or class of the name; None where others may come."""
    found: dict[str, ast.AST | None] = {}
    for node in _outside_functions(body):
        names: list[str] = []
        if isinstance(node, _Function | ast.ClassDef):
            found[node.name] = None if node.name in found else node
            if node.name == "__getattr__":
                return None
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [(each.asname or each.name).partition(".")[0] for each in node.names]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names = [node.id]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names = [node.name]
        elif isinstance(node, ast.Call) and re.search(
            r"\b(?:exec|globals|locals|vars|setattr)$", ast.unparse(node.func)
        ):
            return None
        if "*" in names:
            return None
        found.update(dict.fromkeys(names))
    return found


def _outside_functions(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, but none inside of functions and classes."""
    waiting: list[ast.AST] = []
    waiting += list(body)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            waiting += list(ast.iter_child_nodes(node))[::-1]


def _own_nodes(function: _Function) -> Iterator[ast.AST]:
    return _outside_functions(function.body)


def _signature(arguments: ast.arguments) -> inspect.Signature:
    """The parameters of a function; a default is the expression that it is."""
    kinds = inspect.Parameter
    positional = [*((each, kinds.POSITIONAL_ONLY) for each in arguments.posonlyargs),
                  *((each, kinds.POSITIONAL_OR_KEYWORD) for each in arguments.args)]  # fmt: skip
    without = len(positional) - len(arguments.defaults)
    found = [
        _parameter(each, kind, arguments.defaults[at - without] if at >= without else None)
        for at, (each, kind) in enumerate(positional)
    ]
    if arguments.vararg:
        found.append(_parameter(arguments.vararg, kinds.VAR_POSITIONAL))
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(_parameter(each, kinds.KEYWORD_ONLY, default))
    if arguments.kwarg:
        found.append(_parameter(arguments.kwarg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


def _parameter(argument: ast.arg, kind: Any, default: ast.expr | None = None) -> inspect.Parameter:
    empty = inspect.Parameter.empty
    annotation = empty if argument.annotation is None else ast.unparse(argument.annotation)
    value = empty if default is None else _Written(ast.unparse(default))
    return inspect.Parameter(argument.arg, kind, default=value, annotation=annotation)


class _Written(str):
    """An expression, which is shown as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _last(parameters: Sequence[inspect.Parameter]) -> str:
    """The last parameter without a default: the one that is missing where an instance was left out."""
    return [each.name for each in parameters if each.default is each.empty][-1]
