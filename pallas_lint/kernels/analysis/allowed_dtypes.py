"""Runs of functions with the dtypes that their code compares those of parameters with: `if x.dtype not in ALLOWED`.

Without a known call a dtype has only a name. Each that the code allows is one of the cases that it has to work for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.known_call_runs import function_of, functions_in, line_of
from pallas_lint.kernels.analysis.launch_selection import keep_informative
from pallas_lint.kernels.library import sharding
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.values import Array, DType, Sym, SymbolOwner
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.analysis.known_call_runs import RunPiece
    from pallas_lint.kernels.analysis.runs import RootRuns
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.syntax import Piece, nodes

    Case = tuple[tuple[str, str], ...]  # what is compared, "x.dtype", and its dtype

_MAX_CASES = 3  # of one function
# The dtypes that kernels are written for; lists often name others, which are seldom used.
_USUAL = frozenset("f32 bf16 i32 i8 f8_e4m3fn f8_e5m2".split())


def run_allowed(runs: RootRuns, run: RunPiece) -> None:
    """Run each function that looks at dtypes once for each that it allows; `run` as for known calls."""
    interp = runs.interp
    pieces = {interp.outcome.entered.get(function) for function, _, _ in interp.outcome.effects.dtypes}
    for piece in sorted((piece for piece in pieces if piece is not None), key=lambda piece: piece.first):
        for name, node in functions_in(runs.module, piece):
            for case in _cases(interp, node):
                before = tuple(interp.outcome.launches)
                known_call = KnownCall(f"{piece.source.path}::{name}", case, line_of(piece, node), kind="dtype")
                made = partial(_run, interp, piece, known_call, before, run)
                for launch in runs.run(piece, ("dtype", name, case), made):
                    # By an earlier text, perhaps, in which the lines were others.
                    launch.known_call = evolve(launch.known_call, source=known_call.source)


def _cases(interp: Interpreter, node: nodes.FunctionDef) -> Iterator[Case]:
    """Each dtype of each parameter, with those of the others."""
    allowed: dict[str, list[str]] = {}
    for function, text, dtype in sorted(interp.outcome.effects.dtypes, key=lambda each: each[1:]):
        if function is node and dtype in _USUAL:
            allowed.setdefault(text.removesuffix(".name"), []).append(dtype)
    known = {parameter.name.value for parameter in node.params.named}
    named = {text: dtypes for text, dtypes in allowed.items() if text.removesuffix(".dtype") in known}
    for at in range(min(max(map(len, named.values()), default=0), _MAX_CASES)):
        yield tuple((text, dtypes[at % len(dtypes)]) for text, dtypes in named.items())


def _run(
    interp: Interpreter, piece: Piece, known_call: KnownCall, before: tuple[Launch, ...], run: RunPiece
) -> tuple[Launch, ...]:
    """Run one case; the launches to which it adds information."""

    def enter() -> None:
        func, instance = function_of(interp, interp.root, known_call.name)
        if func is not None and func.piece is piece:
            given = dict(map(_given, *zip(*known_call.arguments, strict=True)))
            interp.call_function(func, Arguments([] if instance is None else [instance], given, open=True))
            sharding.run_mapped_functions(interp)

    run(piece, enter, lambda: keep_informative(interp, before, lambda launch: known_call))
    return tuple(interp.outcome.launches)


def _given(text: str, dtype: str) -> tuple[str, Value]:
    """An argument of which the dtype is known, or that is a dtype."""
    name = text.removesuffix(".dtype")
    return name, DType(dtype) if name == text else Array(None, dtype, named=Sym(name, SymbolOwner()))
