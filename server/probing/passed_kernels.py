"""Kernels that launchers get as arguments: the analysis follows one of them, the others are found by their passing.

`launch(fine, x)`, where `def launch(body, x)` launches `body`, directly or through another function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.probing.probe_targets import called_as

from pallas_lint.records import frozen
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Span
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Piece

_KERNEL = ("kernel", "body", "f")  # what launching functions call their first parameter


@frozen
class Passed:
    """A kernel of the file that a launcher is called with; `function` calls it."""

    name: str
    span: Span  # of the name in its definition
    launch: Launch  # of the launcher
    function: str | None


@frozen
class _Launcher:
    """A function that launches what it gets as one of its arguments."""

    name: str
    parameter: str
    position: int
    launch: Launch


def passed_kernels(analysis: Analysis) -> Iterator[Passed]:
    """All that are seen, also those that the analysis has followed; each once for every call."""
    pieces = [piece for piece in analysis.module.outline.walk() if piece.kind != "import" and not piece.members]
    definitions = {
        piece.names[0]: piece for piece in pieces if piece.kind == "def" and piece.names and not piece.nested
    }
    known = {(each.name, each.parameter): each for each in map(_launcher, analysis.launches) if each is not None}
    waiting = list(known.values())
    while waiting:
        launcher = waiting.pop()
        for piece in pieces:
            if launcher.name not in piece.words:
                continue
            for name in _given(piece, launcher):
                around = _function_of(piece)
                position = _position(around, name) if around is not None else None
                if around is not None and position is not None:
                    outer = _Launcher(around.name.value, name, position, launcher.launch)
                    if (outer.name, name) not in known:
                        known[outer.name, name] = outer
                        waiting.append(outer)
                elif name in definitions:
                    kernel = definitions[name]
                    node = _function_of(kernel)
                    if node is not None:
                        function = called_as(analysis, piece) if around is not None else None
                        yield Passed(name, kernel.span(node.name), launcher.launch, function)


def _launcher(launch: Launch) -> _Launcher | None:
    """The function around a launch, if it launches one of its parameters."""
    call = launch.site.node
    kernel = _argument(call, 0, _KERNEL) if isinstance(call, nodes.Call) else None
    for function in reversed(launch.path.callers):
        position = _position(function.node, kernel) if kernel is not None else None
        if kernel is not None and position is not None and function.piece is launch.site.piece:
            return _Launcher(function.name, kernel, position, launch)
    return None


def _given(piece: Piece, launcher: _Launcher) -> Iterator[str]:
    """The names that a launcher's calls in a piece have for the kernel."""
    waiting: list[nodes.Node] = list(piece.body)
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if isinstance(node, nodes.Call) and _last_name(node.func) == launcher.name:
            name = _argument(node, launcher.position, (launcher.parameter,))
            if name is not None:
                yield name


def _argument(call: nodes.Call, position: int, names: tuple[str, ...]) -> str | None:
    """The name that stands for an argument of a call, or for what `partial` binds arguments of."""
    by_name = call.keyword(*names)
    found = None if by_name is None else by_name.value
    before = call.args[: position + 1]
    if found is None and len(before) > position and not any(each.star or each.keyword for each in before):
        found = before[position].value
    if isinstance(found, nodes.Call) and _last_name(found.func) == "partial" and found.args and not found.args[0].star:
        found = found.args[0].value
    return found.value if isinstance(found, nodes.Name) else None


def _last_name(node: nodes.BaseExpression) -> str | None:
    return (
        node.value if isinstance(node, nodes.Name) else node.attr.value if isinstance(node, nodes.Attribute) else None
    )


def _function_of(piece: Piece) -> nodes.FunctionDef | None:
    return next((node for node in piece.body if isinstance(node, nodes.FunctionDef)), None)


def _position(function: nodes.FunctionDef | nodes.Lambda, name: str) -> int | None:
    """Where a parameter stands among those that are given by position."""
    parameters = function.params.positional
    return next((at for at, each in enumerate(parameters) if each.name.value == name), None)
