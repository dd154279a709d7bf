"""Functions that only call launchers of the same file: what they pass tells shapes that the launchers leave open.

A launcher is first judged for callers of which nothing is known. Then the code that calls it runs too: a `main`, a
test, a script's last lines. A launch met on the way counts where it tells more than was known without it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.spreading import spread_by
from pallas_lint.kernels.model.questions import MET
from pallas_lint.kernels.model.values import Array, CallResult, Const, Dictionary, DType, Func, Instance, Seq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.analysis.runs import Runs
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.syntax import Piece

    Run = Callable[[Piece, Callable[[], None]], None]

# Limits for files that are all calls. In the file's order: what is added at the end displaces nothing.
_MOST_PIECES = 64  # callers run for one module
_MOST_ROUNDS = 3  # callers of callers
_MOST_CALLS = 16  # launches kept for one site beside those met without its callers
_DEPTH = 6


def run_callers(runs: Runs, roots: list[Piece], run: Run) -> None:
    """Run what calls the launchers met so far; `run` runs a piece, and something before its kernels."""
    interp, module = runs.interp, runs.module
    done = set(roots)
    names = {name for launch in interp.outcome.launches for name in _names(launch.callers[:1])}
    left = _MOST_PIECES
    interp.calling = True
    for _ in range(_MOST_ROUNDS):
        reached: set[str] = set()
        for piece in module.outline.walk():
            if piece in done or names.isdisjoint(piece.words) or piece.members or piece.kind == "import":
                continue
            done.add(piece)
            if left == 0:
                break
            left -= 1
            reached |= runs.run(piece, "caller", partial(_run, interp, tuple(interp.outcome.launches), piece, run))
        names = reached - names
    interp.calling = False


def _run(interp: Interpreter, before: tuple[Launch, ...], piece: Piece, run: Run) -> set[str]:
    """Run one caller; the names by which others may call it."""
    names: set[str] = set()

    def keep() -> None:
        met = interp.outcome.launches
        if met:
            names.update(piece.names, *(_names(launch.callers[:1]) for launch in met))
        _keep_telling(interp, before, piece)

    run(piece, keep)
    for launch in interp.outcome.launches:
        launch.caller = _spelled(piece)  # pipelines, which are met as the kernels run, too
    return names


def _spelled(piece: Piece) -> str:
    return f"`{piece.names[0]}`" if piece.kind in ("def", "class") else piece.source.told(piece.first)


def _names(funcs: tuple[Func, ...]) -> Iterator[str]:
    for func in funcs:
        yield func.name
        if isinstance(func.method_of, Instance):
            yield func.method_of.cls.name


def _keep_telling(interp: Interpreter, before: tuple[Launch, ...], piece: Piece) -> None:
    """Drop the launches met last that tell nothing new, or of which it is open whether they happen."""
    kept: list[Launch] = []
    for launch in interp.outcome.launches:
        interp.memo.read(MET, launch.site.key)
        same = [other for other in (*before, *kept) if other.site.key == launch.site.key]
        told = _told(launch)
        calls = sum(other.caller is not None for other in same)
        own = launch.certain and launch.module is interp.root  # a launch elsewhere is judged where it stands
        if own and calls < _MOST_CALLS and not any(_tells_all(_told(other), told) for other in same):
            launch.caller = _spelled(piece)
            kept.append(launch)
    dropped = set(interp.outcome.launches) - set(kept)
    interp.outcome.launches[:] = kept
    interp.pending[:] = [launch for launch in interp.pending if launch not in dropped]


def _tells_all(known: tuple[object, ...], told: tuple[object, ...]) -> bool:
    """Whether nothing is told that was not known."""
    return len(known) == len(told) and all(new is None or new == old for old, new in zip(known, told, strict=True))


def _told(launch: Launch) -> tuple[object, ...]:
    """Everything in a launch that may be a number, None where it is not known."""
    operands = () if launch.operands is None else tuple(launch.operands)
    names = ("grid", "in_specs", "out_specs", "out_shape", "scratch_shapes")
    values = (*(launch.argument(name) for name in names), *operands, launch.kernel)
    return (*(part for value in values for part in _parts(value, 0)), *_spread(launch))


def _spread(launch: Launch) -> Iterator[object]:
    """What spreads its calls over devices."""
    for around in launch.around:
        if around.shard_map is not None:
            yield around.shard_map.site.key
    spread = spread_by(launch)
    if spread is not None:
        yield spread.site.key


def _parts(value: Value | None, depth: int) -> Iterator[object]:
    if depth > _DEPTH:
        return
    if isinstance(value, Const):
        yield value.value
    elif isinstance(value, DType):
        yield value.name
    elif isinstance(value, Array):
        yield value.dtype
        yield from (
            (None,) if value.shape is None else (size if isinstance(size, int) else None for size in value.shape)
        )
    elif isinstance(value, CallResult):
        for part in (*value.args, *(part for _, part in value.keywords)):
            yield from _parts(part, depth + 1)
    elif isinstance(value, Func):
        for part in (*value.bound, *(part for _, part in value.keywords)):
            yield from _parts(part, depth + 1)
    elif isinstance(value, Seq):
        for part in value.items:
            yield from _parts(part, depth + 1)
    elif isinstance(value, Dictionary):
        for _, part in value.items:
            yield from _parts(part, depth + 1)
    else:
        yield None
