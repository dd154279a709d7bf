"""Runs of functions with the arguments of known calls: calls in other files, comments and the shapes file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.launch_selection import keep_informative
from pallas_lint.kernels.analysis.project_text import project_folder
from pallas_lint.kernels.library.host import classes
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.values import UNKNOWN, CallResult, Class, External, Func, Instance, Value
from pallas_lint.known_calls import values
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeGuard

    from pallas_lint.kernels.analysis.runs import RootRuns
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.syntax import Piece

    RunPiece = Callable[[Piece, Callable[[], None], Callable[[], None]], None]


def run_known_calls(runs: RootRuns, known_calls: tuple[KnownCall, ...], run: RunPiece) -> tuple[KnownCall, ...]:
    """Run each function with the arguments of its known calls; returns those that do not match its signature.

    `run` runs a piece: a callback that enters it, and one before its kernels.
    """
    interp, module = runs.interp, runs.module
    stale: list[KnownCall] = []
    for known_call in known_calls:
        piece = piece_of(module, known_call.name)
        if piece is None:
            stale.append(known_call)
            continue
        before = tuple(interp.outcome.launches)
        fits = runs.run(
            piece, ("known call", known_call), partial(_run, interp, module, piece, known_call, before, run)
        )
        if not fits:
            stale.append(known_call)
    return tuple(stale)


def _run(
    interp: Interpreter, module: Module, piece: Piece, known_call: KnownCall, before: tuple[Launch, ...], run: RunPiece
) -> bool:
    """Run one; whether the function accepts the arguments."""
    fits = True

    def enter() -> None:
        nonlocal fits
        fits = _call(interp, module, known_call)

    run(piece, enter, lambda: keep_informative(interp, before, lambda launch: known_call))
    return fits


def piece_of(module: Module, name: str) -> Piece | None:
    """The piece that defines a function or a method."""
    owner, _, method = name.rpartition(".")
    for piece in module.binders(owner or name):
        if not owner:
            return piece
        for member in piece.members:
            if method in member.names:
                return member
        if not piece.members:
            return piece
    return None


def _call(interp: Interpreter, module: Module, known_call: KnownCall) -> bool:
    """Call the function of a known call; False, and no call, where it does not accept the arguments."""
    func, instance = function_of(interp, module, known_call.name)
    arguments = None if func is None else _arguments(interp, module, func, known_call)
    if func is None or arguments is None:
        return False
    if instance is not None:
        names = func.node.params.positional_names
        first = arguments.keywords.pop(names[0], UNKNOWN) if names else UNKNOWN
        arguments.positional.insert(0, first if isinstance(first, Instance) else instance)
    interp.call_function(func, arguments)
    return True


def function_of(interp: Interpreter, module: Module, name: str) -> tuple[Func | None, Instance | None]:
    """The function or method of that name in the file, and for a method that takes one, an instance of its class."""
    owner, _, method = name.rpartition(".")
    found = module.lookup(owner or name, interp)
    cls = found if owner and isinstance(found, Class) else None
    value = found if not owner else None if cls is None else classes.class_member(interp, cls, method)
    if isinstance(value, CallResult) and value.args and value.launch is None:
        value = value.args[0]  # a decorator that is not modelled keeps the function
    if not isinstance(value, Func) or not isinstance(value.node, nodes.FunctionDef):
        return None, None
    takes_one = cls is not None and not _is_static(value)
    return value, Instance(cls, made_by=interp.maker) if cls is not None and takes_one else None


def functions_in(module: Module, piece: Piece) -> Iterator[tuple[str, nodes.FunctionDef]]:
    """The functions that a piece defines, with their names in the file."""
    owner = next((outer for outer in module.outline.pieces if piece in outer.members), None) if piece.nested else None
    for node in piece.body:
        if isinstance(node, nodes.ClassDef):
            inner = node.body.body if isinstance(node.body, nodes.IndentedBlock) else ()
            yield from ((f"{node.name.value}.{each.name.value}", each) for each in inner if _is_function(each))
        elif _is_function(node):
            yield (node.name.value if owner is None else f"{owner.names[0]}.{node.name.value}"), node


def _is_function(node: nodes.Node) -> TypeGuard[nodes.FunctionDef]:
    return isinstance(node, nodes.FunctionDef)


def line_of(piece: Piece, node: nodes.FunctionDef) -> str:
    """Where a function stands, as the source of a known call."""
    return f"{piece.source.path}:{Site(piece, node.name).span.start.line}"


def _is_static(func: Func) -> bool:
    return any(nodes.is_name(decorator.decorator, "staticmethod") for decorator in getattr(func.node, "decorators", ()))


def _arguments(interp: Interpreter, module: Module, func: Func, known_call: KnownCall) -> Arguments | None:
    """The arguments of a call; None where the function has no parameter for one of them.

    A parameter that a record does not have is unknown: it is new, or could not be recorded. In a comment it has its
    default.
    """
    parameters = func.node.params
    positional = func.node.params.positional_names
    taken = {*positional, *(param.name.value for param in parameters.kwonly_params)}
    given: dict[str, Value] = {}
    rest: list[Value] = []
    for name, text in known_call.arguments:
        value = values.read(text, partial(_named, interp, module), partial(classes.remade, interp))
        if name.startswith("*"):
            rest.append(value)
        elif name in taken or parameters.star_kwarg is not None:
            given[name] = value
        else:
            return None
    is_open = known_call.kind != "comment"
    if not rest:
        return Arguments([], given, open=is_open)
    if not isinstance(parameters.star_arg, nodes.Param):
        return None
    return Arguments([*(given.pop(name, UNKNOWN) for name in positional), *rest], given, open=is_open)


def _named(interp: Interpreter, module: Module, owner: str, name: str) -> Value:
    """The value of "module:name", the module by its dotted name or by its file in the project."""
    if owner.split(".", 1)[0] in ("jax", "numpy"):
        return External(f"{owner}.{name}")
    found = _at(module, owner) if owner.endswith(".py") else module.graph.find(owner, module)
    if found is None:
        return UNKNOWN
    value: Value | None = None
    for part in name.split("."):
        if value is None:
            value = found.lookup(part, interp)
        elif isinstance(value, Class):
            value = classes.class_member(interp, value, part)
        else:
            return UNKNOWN
        if value is None:
            return UNKNOWN
    return value if value is not None else UNKNOWN


def _at(module: Module, path: str) -> Module | None:
    """The module in a file of the project, by its path there."""
    if module.file is None or ".." in path.split("/") or path.startswith("/"):
        return None
    return module.graph.load(project_folder(module.file) / path)
