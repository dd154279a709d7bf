"""Costs of whole functions as text, and findings where plain jax is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.finding import Severity
from pallas_lint.probe.perf.figures import device_of, microseconds
from pallas_lint.report.style import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pallas_lint.finding import Finding
    from pallas_lint.probe.places import FindingBuilder
    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.report.style import Style

_MOST_OPERATIONS = 8
_LEAST = 0.005  # of the time


def paragraphs(functions: Iterable[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """One for each function and target, given as documents of the contract."""
    for cost in functions:
        yield "\n".join(_lines(cost, style))


def _lines(cost: Mapping[str, Any], style: Style) -> Iterator[str]:
    name, target = visible(cost["function"]), cost["target"]
    if cost["microseconds"] is None:
        yield f"{name} on {target}: no total"
        yield from (f"  no number: {visible(each)}" for each in cost["missing"][:_MOST_OPERATIONS])
    else:
        total = cost["microseconds"]
        kernels = f"kernels {microseconds(cost['kernels'])}, XLA around them {microseconds(cost['xla'])}"
        yield f"{name} on {target}: {style.bold(microseconds(total))} ({_range(cost)}); {kernels}"
        for each in cost["operations"][:_MOST_OPERATIONS]:
            share = each["microseconds"] / total if total else 0.0
            if share >= _LEAST:
                where = f"{visible(each['path'])}:{each['line']}" if each["path"] else ""
                kind = "kernel" if each["kernel"] else "XLA"
                yield f"  {share:>5.0%}  {kind:<6}  {visible(each['name'])}  {where}".rstrip()
    other = cost["against"]
    if other is not None and other["microseconds"] is None:
        yield f"  {visible(other['function'])}: no total: {visible('; '.join(other['missing']))}"
    elif other is not None:
        line = f"  {visible(other['function'])}: {microseconds(other['microseconds'])} ({_range(other)})"
        yield f"{line}, {_compared(cost, other)}" if cost["microseconds"] else line


def _range(cost: Mapping[str, Any]) -> str:
    return f"{microseconds(cost['low'])} to {microseconds(cost['high'])}"


def _compared(cost: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    if cost["low"] > other["high"]:
        return f"{cost['microseconds'] / other['microseconds']:.3g} times as fast"
    if other["low"] > cost["high"]:
        return f"{other['microseconds'] / cost['microseconds']:.3g} times as slow"
    return "the same within the error bars"


def findings(result: ProbeResult, about: FindingBuilder) -> Iterator[Finding]:
    """PAL812 where the function that it is compared with is faster, by more than both error bars."""
    for cost in result.functions:
        other = cost["against"]
        if other is None or cost["microseconds"] is None or other["microseconds"] is None:
            continue
        if (cost["low"] or 0.0) <= (other["high"] or 0.0):
            continue
        factor = cost["microseconds"] / max(other["microseconds"], 1e-6)
        yield about.finding_at(
            (),
            "PAL812",
            Severity.INFO,
            f"`{other['function']}` is predicted to be {factor:.3g} times as fast as `{cost['function']}` on "
            f"{device_of(cost)}: {microseconds(other['microseconds'])} instead of {microseconds(cost['microseconds'])}",
            "keep the kernel for what XLA does not do as well, or find what it loses by (`--perf` has the lines)",
            backend="tpu",
            device=device_of(cost),
        )
