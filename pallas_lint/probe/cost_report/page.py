"""The cost of a launch in the HTML report: figures, limits, lines, operands and the first steps."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.probe.cost_report import charts, whole_function
from pallas_lint.probe.cost_report.figures import UNITS, device_of, microseconds, reached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from pallas_lint.probe.cost.causes import Traffic
    from pallas_lint.probe.cost.results import Cost, FunctionCost
    from pallas_lint.probe.cost_report.whole_function import Alone
    from pallas_lint.probe.results import LaunchResult

_MIN_SHARE = 0.005  # of the time
_MAX_LINES = 12
_BAR = 110  # pixels


def section(launch: LaunchResult, line: Callable[[str, int], str | None], place: Callable[[str, int], str]) -> str:
    """The cost of a launch; empty where none was requested. `place` links a line."""
    if not launch.costs:
        return ""
    predicted = [cost for cost in launch.costs if cost["microseconds"] is not None]
    parts = ["<h3>Predicted cost</h3>"]
    if predicted:
        parts += [_figures(predicted), charts.roofline(predicted)]
    for cost in launch.costs:
        begin = "" if cost in predicted else "no number: "
        doubts = (f"{cost['target']}: {begin}{doubt}" for doubt in cost["doubts"])
        parts += (f'<p class="quiet">{escape(text)}</p>' for text in doubts)
    if predicted:
        parts.append(_lines(predicted, line, place))
    causes = launch.facts["causes"]
    if causes is not None and causes["traffic"]:
        parts.append(_traffic(causes["traffic"]))
    if predicted:
        parts.append(charts.first_steps(predicted[0]))
    return "".join(parts)


def total(cost: FunctionCost, alone: Alone, place: Callable[[str, int], str]) -> str:
    """What a whole function costs on a target, with its dearest operations."""
    name, took, consists = whole_function.head(cost)
    parts = [f"<h3>{escape(name)}</h3>", f"<p><strong>{escape(took)}</strong> {escape(consists)}</p>"]
    if not consists:
        parts += (f'<p class="quiet">no number: {escape(each)}</p>' for each in cost["missing"])
    parts += (f'<p class="quiet">{escape(each)}</p>' for each in cost["doubts"])
    rows = []
    for share, shown, each in whole_function.shares(cost):
        kind = "" if each is None else "kernel" if each["kernel"] else "XLA"
        rows.append((None, (_bar(share, "part0", shown), kind, _operation(each, cost["target"], alone, place))))
    if rows:
        parts.append(_table("lines", "Time by operation", ("share", "of", "operation"), rows))
    if cost["against"] is not None:
        parts.append(f"<p>{escape(whole_function.beside(cost))}</p>")
    return "".join(parts)


def _operation(operation: Mapping[str, Any] | None, target: str, alone: Alone, place: Callable[[str, int], str]) -> str:
    if operation is None:
        return "all others"
    where = place(operation["path"], operation["line"]) if operation["path"] else ""
    less = whole_function.why_less(operation, target, alone)
    return f"{escape(operation['name'])} {where}" + (f' <span class="quiet">{escape(less)}</span>' if less else "")


_FIGURES = ("predicted", "range", "bound by", "of the limit", "moved", "ideal", "busy units", "spills")


def _figures(costs: Sequence[Cost]) -> str:
    """A column for each target, as of the stages: there are more figures than fit beside each other."""
    rows = zip(_FIGURES, zip(*map(_cells, costs), strict=True), strict=True)
    return _table("costs", "", ("", *(cost["target"] for cost in costs)), rows)


def _cells(cost: Cost) -> Iterator[str]:
    yield f"<strong>{microseconds(cost['microseconds'] or 0.0)}</strong>"
    yield f"{microseconds(cost['low'] or 0.0)} to {microseconds(cost['high'] or 0.0)}"
    yield escape(cost["bound"])
    yield f"{reached(cost):.0%}"
    yield format_bytes(cost["bytes"]["read"] + cost["bytes"]["written"])
    yield format_bytes(cost["bytes"]["ideal"])
    busiest = sorted(cost["units"].items(), key=lambda unit: -unit[1])
    units = [(_unit(unit), share) for unit, share in busiest if share >= _MIN_SHARE]
    yield ", ".join(f"{unit} {share:.0%}" for unit, share in units)
    yield f"{cost['spills']:.0%}"


def _lines(costs: Sequence[Cost], line: Callable[[str, int], str | None], place: Callable[[str, int], str]) -> str:
    """Where the time of the first target goes, with the others beside it."""
    first = costs[0]
    rows = []
    for each in [each for each in first["lines"] if each["share"] >= _MIN_SHARE][:_MAX_LINES]:
        path, number = each["path"], each["line"]
        where = "the loop over the grid, its copies and waits"
        if path is not None:
            where = f"{place(path, number)} <code>{escape((line(path, number) or '').strip()[:90])}</code>"
        shares = [(device_of(cost), _share(cost, path, number)) for cost in costs[1:]]
        others = ", ".join(f"{device} {share:.0%}" for device, share in shares if share >= _MIN_SHARE)
        bar = _bar(each["share"], f"unit-{each['unit']}", f"{each['share']:.0%}")
        rows.append((None, (bar, _unit(each["unit"]), f'{where} <span class="quiet">{others}</span>')))
    return _table("lines", f"Time by line on {device_of(first)}", ("share", "mostly", "line"), rows)


def _share(cost: Cost, path: str | None, number: int) -> float:
    return next((each["share"] for each in cost["lines"] if (each["path"], each["line"]) == (path, number)), 0.0)


def _traffic(traffic: Sequence[Traffic]) -> str:
    most = max(each["moved"] for each in traffic) or 1
    rows = (
        (
            f"{each['operand']} ({each['role']})",
            (
                _bar(each["moved"] / most, "part0", format_bytes(each["moved"])),
                format_bytes(each["ideal"]),
                _times(each["moved"] / max(each["ideal"], 1)),
            ),
        )
        for each in sorted(traffic, key=lambda each: -each["moved"])
    )
    return _table("traffic", "Bytes by operand, as its blocks change", ("", "moved", "its size", "that is"), rows)


def _times(number: float) -> str:
    number_text = f"{number:.3g}"
    return "once" if number_text == "1" else f"{number_text} times"


def _bar(share: float, look: str, text: str) -> str:
    # Not by a style attribute, which a page in an editor may not have.
    bar = f'<rect class="{escape(look)}" width="{_BAR * min(share, 1.0):.1f}" height="7" rx="2"/>'
    return f'<svg class="bar" width="{_BAR}" height="7" aria-hidden="true">{bar}</svg>{escape(text)}'


def _unit(unit: str) -> str:
    return escape(UNITS.get(unit, unit))


def _table(
    look: str, caption: str, head: Sequence[str], rows: Iterable[tuple[str | None, Iterable[str]]]
) -> str:  # fmt: skip
    """Rows of cells that are HTML, with a heading each where they have one."""
    heads = "".join(f'<th scope="col">{escape(each)}</th>' if each else "<td></td>" for each in head)
    heading = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = []
    for name, cells in rows:
        begin = f'<th scope="row">{escape(name)}</th>' if name is not None else ""
        body.append(f"<tr>{begin}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return (
        f'<div class="wide"><table class="{look}">{heading}<thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
