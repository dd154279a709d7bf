"""Costs of whole functions as text, and findings where plain jax is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.finding import Severity
from pallas_lint.probe.cost_report.figures import device_of, microseconds
from pallas_lint.probe.places import FindingBuilder
from pallas_lint.probe.tuning import better_arguments
from pallas_lint.report.style import visible
from pallas_lint.text import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pallas_lint.finding import Finding
    from pallas_lint.probe.places import Places
    from pallas_lint.probe.protocol import Place
    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.report.style import Style

_MAX_OPERATIONS = 8
_MIN_SHARE = 0.005  # of the time
_MIN_FACTOR = 1.2  # times what it takes in the function


Alone = dict[tuple[str, str, int], float]  # by target, path and line of the launch: microseconds of a kernel by itself


def paragraphs(
    functions: Iterable[Mapping[str, Any]], launches: Iterable[Mapping[str, Any]], style: Style
) -> Iterator[str]:
    """One for each function and target, given with all launches as documents of the JSON report."""
    alone = by_themselves((each["path"], each["line"], each.get("cost") or ()) for each in launches)
    for cost in functions:
        yield "\n".join(_lines(cost, alone, style))


def by_themselves(launches: Iterable[tuple[str | None, int | None, Iterable[Mapping[str, Any]]]]) -> Alone:
    """What launches cost by themselves, of paths, lines and costs; of places with several launches nothing."""
    found: Alone = {}
    several: set[tuple[str, int]] = set()
    seen: set[tuple[str, int]] = set()
    for path, line, costs in launches:
        if path is None or line is None:
            continue
        several |= {(path, line)} & seen
        seen.add((path, line))
        found |= {(each["target"], path, line): each["microseconds"] for each in costs if each["microseconds"]}
    return {place: took for place, took in found.items() if place[1:] not in several}


def why_less(operation: Mapping[str, Any], target: str, alone: Alone) -> str:
    """Why a kernel takes less in its function than by itself; empty where it does not."""
    by_itself = alone.get((target, operation["path"] or "", operation["line"]), 0.0)
    if not operation["kernel"] or by_itself <= _MIN_FACTOR * operation["microseconds"]:
        return ""
    return f"{microseconds(by_itself)} by itself, with operands and results in HBM: here XLA keeps some in VMEM"


def head(cost: Mapping[str, Any]) -> tuple[str, str, str]:
    """What the total is of, the total, and what it consists of."""
    name = f"{cost['function']} on {cost['target']}"
    known = {"kernels": cost["kernels"], "XLA around them": cost["xla"]}
    if cost["microseconds"] is None:
        parts = ", ".join(f"{part} {microseconds(took)}" for part, took in known.items() if took)
        return name, f"no total; what has a number: {parts}" if parts else "no total", ""
    parts = ", ".join(f"{part} {microseconds(took)}" for part, took in known.items())
    return name, microseconds(cost["microseconds"]), f"({_range(cost)}); {parts}"


def shares(cost: Mapping[str, Any]) -> Iterator[tuple[float, str, Mapping[str, Any] | None]]:
    """The dearest operations, then all others (None): the share of what has a number, and what is shown of it.

    A share is only shown of a total.
    """
    known = cost["kernels"] + cost["xla"]
    rest = 1.0
    for each in cost["operations"][:_MAX_OPERATIONS] if known else ():
        share = each["microseconds"] / known
        if share >= _MIN_SHARE:
            rest -= share
            yield share, _shown(cost, share), each
    if known and rest >= _MIN_SHARE:
        yield rest, _shown(cost, rest), None


def _shown(cost: Mapping[str, Any], share: float) -> str:
    if cost["microseconds"] is None:
        return microseconds(share * (cost["kernels"] + cost["xla"]))
    return f"{share:.0%}"


def _lines(cost: Mapping[str, Any], alone: Alone, style: Style) -> Iterator[str]:
    name, total, parts = head(cost)
    yield f"{visible(name)}: {style.bold(total)} {parts}" if parts else f"{visible(name)}: {total}"
    if not parts:
        yield from (f"  no number: {visible(each)}" for each in cost["missing"][:_MAX_OPERATIONS])
    yield from (style.dim(f"  {visible(each)}") for each in cost["doubts"])
    rows = [*shares(cost)]
    width = max((5, *(len(shown) for _, shown, _ in rows)))
    for _, shown, each in rows:
        yield from _operation(f"  {shown:>{width}}", each, cost["target"], alone, style)
    if cost["against"] is not None:
        yield f"  {visible(beside(cost))}"


def _operation(
    shown: str, operation: Mapping[str, Any] | None, target: str, alone: Alone, style: Style
) -> Iterator[str]:
    if operation is None:
        yield f"{shown}  all others"
        return
    where = f"{visible(operation['path'])}:{operation['line']}" if operation["path"] else ""
    kind = "kernel" if operation["kernel"] else "XLA"
    yield f"{shown}  {kind:<6}  {visible(operation['name'])}  {where}".rstrip()
    less = why_less(operation, target, alone)
    if less:
        yield style.dim(f"{'':{len(shown) + 10}}{less}")


def beside(cost: Mapping[str, Any]) -> str:
    """What the function that it is compared with costs."""
    other = cost["against"]
    if other["microseconds"] is None:
        return f"{other['function']}: no total: {'; '.join(other['missing'])}"
    about = "; ".join((_range(other), *other["doubts"]))
    line = f"{other['function']}: {microseconds(other['microseconds'])} ({about})"
    return f"{line}, {_compared(cost, other)}" if cost["microseconds"] else line


def _range(cost: Mapping[str, Any]) -> str:
    return f"{microseconds(cost['low'])} to {microseconds(cost['high'])}"


def _compared(cost: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    if cost["low"] > other["high"]:
        return f"{cost['microseconds'] / other['microseconds']:.3g} times as fast"
    if other["low"] > cost["high"]:
        return f"{other['microseconds'] / cost['microseconds']:.3g} times as slow"
    return "the same within the error bars"


def findings(result: ProbeResult, places: Places) -> Iterator[Finding]:
    """PAL812 where the function that it is compared with is faster, by more than both error bars.

    It is at the launch, of several at the function.
    """
    alone = result.launches[0] if len(result.launches) == 1 else None
    about = FindingBuilder(result, places, alone)
    for cost in result.functions:
        other = cost["against"]
        if other is None or cost["microseconds"] is None or other["microseconds"] is None:
            continue
        if (cost["low"] or 0.0) <= (other["high"] or 0.0):
            continue
        factor = cost["microseconds"] / max(other["microseconds"], 1e-6)
        yield about.finding_at(
            () if alone is not None else _definition(result, places),
            "PAL812",
            Severity.INFO,
            f"`{other['function']}` is predicted to be {factor:.3g} times as fast as `{cost['function']}` on "
            f"{device_of(cost)}: {microseconds(other['microseconds'])} instead of {microseconds(cost['microseconds'])}",
            "keep the kernel for what XLA does not do as well, or find what it loses by (`--perf` has the lines)",
            backend="tpu",
            device=device_of(cost),
        )


def _definition(result: ProbeResult, places: Places) -> Sequence[Place]:
    """Where the function is defined, if its file can be read."""
    if result.spec is None:
        return ()
    file = places.cwd / result.spec.file
    try:
        line = better_arguments.line_of(result.spec, files.read(file).decode("utf-8", "replace"))
    except OSError:
        return ()
    return () if line is None else ({"file": str(file), "line": line},)
