"""PAL811: other values of a function's arguments than those that it has now are clearly faster."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.probe import specs
from pallas_lint.probe.cost_report.figures import microseconds
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.probe.protocol import Argument
    from pallas_lint.probe.specs import Spec
    from pallas_lint.probe.tuning.combinations import Choices, Trial, Tuning

_CLEARLY = 1.05  # times as fast
_MIN_SIZE, _MAX_SIZES = 8, 3  # of what looks like a block size, and of such arguments


@frozen
class CurrentArguments:
    """The values that a function has now. `span`: where the first of them, or the function, stands.

    `places`: of those that are defaults.
    """

    values: dict[str, tuple[str, Argument]]
    span: Span
    places: dict[str, Span]


def current_arguments(spec: Spec, names: Sequence[str], source: str) -> CurrentArguments | None:
    """The values of some arguments: as the spec gives them, else their defaults; None where one has none."""
    function = _function(source, spec.function)
    if function is None:
        return None
    span = _span(spec.file, function)
    defaults = dict(_defaults(function))
    given = dict(spec.keywords)
    values: dict[str, tuple[str, Argument]] = {}
    for name in names:
        if name in given:
            values[name] = specs.spelled(given[name]), given[name]
        elif name in defaults:
            text = ast.unparse(defaults[name])
            try:
                values[name] = text, specs.parse_argument(text)
            except specs.SpecError:
                return None
        else:
            return None
    places = {name: _span(spec.file, defaults[name]) for name in names if name not in given}
    return CurrentArguments(values, next(iter(places.values()), span) if len(places) == len(names) else span, places)


def line_of(spec: Spec, source: str) -> int | None:
    """The line of a function's definition; None where it is not in the text."""
    function = _function(source, spec.function)
    return None if function is None else function.lineno


def blocks(spec: Spec, source: str) -> CurrentArguments | None:
    """The values of what looks like block sizes, the first three: integers that are powers of two; None without any."""
    function = _function(source, spec.function)
    if function is None:
        return None
    names = [*dict(_defaults(function)), *dict(spec.keywords)]
    found = (current_arguments(spec, [name], source) for name in dict.fromkeys(names))
    sizes = [name for each in found if each is not None for name, (text, _) in each.values.items() if is_size(text)]
    return current_arguments(spec, sizes[:_MAX_SIZES], source) if sizes else None


def is_size(text: str) -> bool:
    """Whether a value, as it is written, is as block sizes are."""
    return text.isdecimal() and int(text) >= _MIN_SIZE and int(text) & (int(text) - 1) == 0


def around(known: CurrentArguments) -> Choices:
    """Half, the same, twice and four times each size."""
    return {
        name: [
            (str(size), specs.parse_argument(str(size)))
            for size in (int(text) // 2, *(int(text) << at for at in range(3)))
        ]
        for name, (text, _) in known.values.items()
    }


def findings(tuning: Tuning, known: CurrentArguments) -> Iterator[Finding]:
    """One for each target on which something else than now is clearly faster."""
    chosen = {name: value for name, (_, value) in known.values.items()}
    for target in tuning.targets:
        order = tuning.best(target)
        mine = next((one for one in order if {n: specs.parse_argument(text) for n, text in one.values} == chosen), None)
        if mine is None or mine.took[target] < _CLEARLY * order[0].took[target]:
            continue
        yield _finding(order[0], mine, target, tuning, known)


def _finding(best: Trial, mine: Trial, target: str, tuning: Tuning, known: CurrentArguments) -> Finding:
    factor = mine.took[target] / best.took[target]
    backend, _, device = target.partition(":")
    return Finding(
        "PAL811", "better-block", Severity.INFO,
        f"{best.spelled} is predicted to be {factor:.3g} times as fast as {mine.spelled}: "
        f"{microseconds(best.took[target])} instead of {microseconds(mine.took[target])}",
        known.span,
        f"of {len(tuning.trials)} choices tried with these arguments: other shapes may like others",
        backend=backend, device=device or None, origin="probe",
    )  # fmt: skip


def _function(source: str, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        scope: ast.AST = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = [each for each in getattr(scope, "body", ()) if isinstance(each, kinds) and each.name == part]
        if not found:
            return None
        scope = found[-1]
    return scope if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr]]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    yield from (
        (argument.arg, default)
        for argument, default in zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)
    )
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    yield from ((argument.arg, default) for argument, default in named if default is not None)


def _span(file: str, node: ast.expr | ast.FunctionDef | ast.AsyncFunctionDef) -> Span:
    start = Position(node.lineno, node.col_offset + 1)
    if isinstance(node, ast.expr) and node.end_lineno == node.lineno and node.end_col_offset is not None:
        return Span(file, start, Position(node.lineno, node.end_col_offset + 1))
    return Span(file, start, Position(node.lineno, node.col_offset + 4))
