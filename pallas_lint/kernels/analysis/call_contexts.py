"""Runs of functions that call launchers of the same file, whose arguments have known shapes.

A launcher is first analysed with unknown arguments. Then its callers run: a `main`, a test, a script's last lines. A
launch found on the way is kept if it adds information.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.conventions import calling
from pallas_lint.kernels.analysis.launch_selection import keep_informative
from pallas_lint.kernels.analysis.runner_calls import runs_with_defaults
from pallas_lint.kernels.library.host.dispatch import dispatchers
from pallas_lint.kernels.model.values import Instance
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.known_calls.values import spelled_arguments
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.analysis.conventions import HarnessCall
    from pallas_lint.kernels.analysis.runs import RootRuns
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Func
    from pallas_lint.syntax import Piece

    RunPiece = Callable[[Piece, Callable[[], None]], None]

# Limits for files that are all calls. In the file's order: what is added at the end displaces nothing.
_MAX_PIECES = 64  # callers run for one module
_MAX_ROUNDS = 3  # callers of callers


def run_callers(runs: RootRuns, roots: list[Piece], run: RunPiece, conventional: tuple[HarnessCall, ...]) -> None:
    """Run the callers of the launchers found so far; `run` runs a piece, and a callback before its kernels.

    `conventional` are the calls that a harness would make.
    """
    interp, module = runs.interp, runs.module
    done = {piece for piece in roots if not runs_with_defaults(module, piece)}
    names = {name for launch in interp.outcome.launches for name in _names(launch.path.callers[:1])}
    left = _MAX_PIECES
    for _ in range(_MAX_ROUNDS):
        if not names:
            break
        reached: set[str] = set()
        for piece in module.outline.walk():
            if piece in done or names.isdisjoint(piece.words) or piece.members or piece.kind == "import":
                continue
            done.add(piece)
            if left == 0:
                break
            left -= 1
            before = tuple(interp.outcome.launches)
            called, found = runs.run(piece, "caller", partial(_run, interp, before, piece, run))
            reached |= called
            for launch in found:  # perhaps in an earlier revision, with other line numbers
                launch.known_call = evolve(launch.known_call, source=_source(launch, piece))
        names = reached - names
    for call in conventional if interp.outcome.launches else ():
        before = tuple(interp.outcome.launches)
        runs.run(
            calling(call),
            "convention",
            partial(_run, interp, before, calling(call), run, call.shown or call.expression),
        )


def _run(
    interp: Interpreter, before: tuple[Launch, ...], piece: Piece, run: RunPiece, convention: str | None = None
) -> tuple[set[str], tuple[Launch, ...]]:
    """Run one caller; the names by which others may call it, and the launches that it leads to."""
    names: set[str] = set()

    def known_call(launch: Launch) -> KnownCall:
        found = _known_call(interp, launch, piece)
        if convention is None:
            return found
        path = interp.root.source.path
        return KnownCall(f"{path}::{found.name}", found.arguments, f"{path}::{convention}", kind="convention")

    def keep() -> None:
        found = interp.outcome.launches
        if found:
            names.update(piece.names, *(_names(launch.path.callers[:1]) for launch in found))
        keep_informative(interp, before, known_call)

    run(piece, keep)
    if piece.kind == "assign":
        # `op = Op(bm=128)` of a class whose methods launch: others call it, or a method, by that name.
        names.update(name for name in piece.names if isinstance(interp.root.lookup(name, interp), Instance))
    return names, tuple(interp.outcome.launches)


def _known_call(interp: Interpreter, launch: Launch, piece: Piece) -> KnownCall:
    """The call by `piece` that led to a launch."""
    entries = (entry for entry in launch.path.entries if entry.site is not None and entry.site.piece is piece)
    called = next(entries, None)
    function = called.func.name if called is not None else launch.scope
    given = () if called is None else spelled_arguments(called, lambda func: None)
    return KnownCall(f"{piece.source.path}::{function}", given, _source(launch, piece), kind="here")


def _source(launch: Launch, piece: Piece) -> str:
    """The caller in the file: a function, or a line of a script."""
    if piece.kind in ("def", "class"):
        func = launch.path.entries[0].func if launch.path.entries else None
        name = f"{piece.names[0]}.{func.name}" if piece.kind == "class" and func is not None else piece.names[0]
    else:
        name = piece.source.describe_line(piece.first)
    return f"{piece.source.path}::{name}"


def _names(funcs: tuple[Func, ...]) -> Iterator[str]:
    for func in funcs:
        yield func.name
        yield from func.piece.kept(dispatchers)
        if func.env.parent is not None:
            yield from func.piece.names  # `build(128)(x)`, where `build` returns it
        if isinstance(func.method_of, Instance):
            yield func.method_of.cls.name
        elif func.name == "__call__":
            yield from _classes_of(func)


def _classes_of(method: Func) -> Iterator[str]:
    """The name of the class that a method is defined in: its objects are called, which have other names."""
    for piece in method.module.outline.pieces:
        if piece.kind == "class" and (piece is method.piece or method.piece in piece.members):
            yield from piece.names
