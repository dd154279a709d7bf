"""The function to probe at a position: taken from the text and its analysis, nothing is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.records import frozen
from pallas_lint.syntax import nodes
from pallas_lint.syntax.outline import outline
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Piece


class NoFunction(Exception):
    """There is nothing to probe; the message is one sentence with the reason."""


@frozen
class Parameter:
    """`default` and `annotation` as they are written."""

    name: str
    default: str | None
    annotation: str | None
    keyword: bool = False  # it can only be given by name
    variadic: bool = False  # *args, **kwargs


@frozen
class Chosen:
    """A function of the file. `line`: the first of it, decorators included, from 1; `parameters`: None if not known."""

    name: str
    line: int
    piece: Piece
    parameters: tuple[Parameter, ...] | None

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters or () if each.default is None and not each.variadic)

    @property
    def needs_arguments(self) -> bool:
        return self.parameters is None or bool(self.required)

    def document(self, suggestion: str) -> dict[str, Any]:
        """The text of a client's prompt."""
        described = [
            {
                "name": f"*{each.name}" if each.variadic else each.name,
                "default": each.default,
                "annotation": each.annotation,
            }
            for each in self.parameters or ()
        ]
        return {"name": self.name, "parameters": described, "suggestion": suggestion}


def choose(analysis: Analysis, function: str | None, line: int | None) -> Chosen:
    """The function of that name, else the one that launches what is at `line` (from 1). Raises NoFunction."""
    if function is None:
        if line is None:
            raise NoFunction("no function was named: put the cursor on a launch, or into a function that launches one")
        function = _name_at(analysis, line)
    found = _named(analysis, function)
    if found is None:
        raise NoFunction(f"there is no function `{function}` at the top of this file")
    if found.parameters and found.parameters[0].name in ("self", "cls") and "." in function:
        raise NoFunction(f"`{function}` is a method: probe a function that makes its object and calls it")
    return found


def _name_at(analysis: Analysis, line: int) -> str:
    piece = next((each for each in _walk(analysis) if each.first <= line <= each.last), None)
    if piece is not None:
        here = [launch for launch in analysis.launches if launch.site.piece is piece]
        if here:
            nearest = min(here, key=lambda launch: abs(launch.called_at.span.start.line - line))
            return launching_function(analysis, nearest)
        mine = [launch for launch in analysis.launches if any(body.piece is piece for body in launch.bodies)]
        if mine:
            # A method cannot be probed: rather a function that launches it too.
            return min((launching_function(analysis, launch) for launch in mine), key=lambda name: "." in name)
        leading = _leading(analysis)
        if piece.names and not leading.isdisjoint((piece, *piece.members)):
            return _dotted(analysis, piece, piece.names[0])
        # A kernel that a launcher is called with: probe who calls it.
        user = next((each for each in _walk(analysis) if each in leading and each.words & set(piece.names)), None)
        if piece.kind == "def" and user is not None:
            return _dotted(analysis, user, user.names[0])
    raise NoFunction("no kernel is launched here: put the cursor into a kernel, or a function that launches one")


def _leading(analysis: Analysis) -> set[Piece]:
    """The functions that launch something, and those that may lead to one of them: they mention it."""
    found = {launch.site.piece for launch in analysis.launches}
    found |= {caller.piece for launch in analysis.launches for caller in launch.path.callers}
    functions = [piece for piece in _walk(analysis) if piece.kind == "def" and piece.names]
    while True:
        names = {name for piece in found if piece.kind == "def" for name in piece.names}
        more = {piece for piece in functions if piece not in found and names & piece.words}
        if not more:
            return found
        found |= more


def launching_function(analysis: Analysis, launch: Launch) -> str:
    """The name by which the function around a launch is probed. Raises NoFunction where there is none in the file."""
    piece = launch.site.piece
    if piece.source is not analysis.module.source:
        named = [caller for caller in launch.path.callers if caller.piece.source is analysis.module.source]
        if not named:
            raise NoFunction("this kernel is launched in another file: probe it there")
        piece = named[0].piece
    if not piece.names:
        raise NoFunction("this kernel is launched while the file is imported: put the launch into a function")
    return _dotted(analysis, piece, launch.scope if piece.kind == "class" else piece.names[0])


def launches_from(analysis: Analysis, chosen: Chosen) -> Iterator[Launch]:
    """The launches that a function makes, itself or through others."""
    for launch in analysis.launches:
        if launch.site.piece is chosen.piece or any(caller.piece is chosen.piece for caller in launch.path.callers):
            yield launch


def module_of(notebook: Source, function: str) -> Source:
    """What a function rests on of the code of a notebook, with its lines: a module that can be imported.

    Cells also run kernels, read data and draw, which is not wanted here: what binds no name that it uses is left
    out.
    """
    pieces = outline(notebook).pieces
    kept = {piece for piece in pieces if piece.kind == "import"}
    waiting = {function.partition(".")[0]}
    while waiting:
        found = {piece for piece in pieces if piece not in kept and not waiting.isdisjoint(piece.names)}
        kept |= found
        waiting = {word for piece in found for word in piece.words}
    lines = [""] * notebook.line_count
    for piece in kept:
        lines[piece.first - 1 : piece.last] = (notebook.line(at) for at in range(piece.first, piece.last + 1))
    return Source(notebook.path, "\n".join(lines))


def called_as(analysis: Analysis, piece: Piece) -> str:
    """The name by which a function of the file is called."""
    return _dotted(analysis, piece, piece.names[0])


def _dotted(analysis: Analysis, piece: Piece, name: str) -> str:
    if piece.nested:
        owner = next(each for each in analysis.module.outline.pieces if piece in each.members)
        return f"{owner.names[0]}.{name}"
    return f"{piece.names[0]}.{name}" if piece.kind == "class" else name


def _walk(analysis: Analysis) -> Iterator[Piece]:
    """The pieces with the smallest first: a member before its class."""
    for piece in analysis.module.outline.pieces:
        yield from piece.members
        yield piece


def _named(analysis: Analysis, name: str) -> Chosen | None:
    outer, _, inner = name.partition(".")
    # The last of several is what the name is bound to.
    for piece in reversed(analysis.module.outline.pieces):
        if outer not in piece.names:
            continue
        if not inner:
            node = _definition(piece, outer)
            return Chosen(name, piece.first, piece, None if node is None else _parameters(node, piece))
        for member in (*piece.members, piece):
            node = _definition(member, inner)
            if node is not None:
                first = member.first if member is not piece else _first_line(piece, node)
                return Chosen(name, first, member, _parameters(node, member))
    return None


def _definition(piece: Piece, name: str) -> nodes.FunctionDef | None:
    body: Sequence[nodes.Node] = piece.body
    if piece.kind == "class" and not piece.nested and body and isinstance(body[0], nodes.ClassDef):
        body = body[0].body.body
    return next((node for node in body if isinstance(node, nodes.FunctionDef) and node.name.value == name), None)


def _first_line(piece: Piece, node: nodes.FunctionDef) -> int:
    return min(piece.span(each).start.line for each in (node.name, *(d.decorator for d in node.decorators)))


def _parameters(node: nodes.FunctionDef, piece: Piece) -> tuple[Parameter, ...]:
    def made(parameter: nodes.Param, **how: bool) -> Parameter:
        annotation = parameter.annotation.annotation if parameter.annotation is not None else None
        return Parameter(
            parameter.name.value,
            piece.code(parameter.default) if parameter.default is not None else None,
            piece.code(annotation) if annotation is not None else None,
            **how,
        )

    every = node.params
    found = [made(each) for each in every.positional]
    if isinstance(every.star_arg, nodes.Param):
        found.append(made(every.star_arg, variadic=True))
    found += [made(each, keyword=True) for each in every.kwonly_params]
    if every.star_kwarg is not None:
        found.append(made(every.star_kwarg, variadic=True))
    return tuple(found)
