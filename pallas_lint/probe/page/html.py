"""The HTML report: one file that needs nothing else, in light and dark, readable without JavaScript."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint import __version__
from pallas_lint.finding import Severity
from pallas_lint.memories import kind_of
from pallas_lint.probe import reasons
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.probe.cost_report import page as cost_page
from pallas_lint.probe.cost_report import whole_function
from pallas_lint.probe.multi_device import charts
from pallas_lint.probe.page import pictures
from pallas_lint.probe.places import is_about
from pallas_lint.text import files
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pallas_lint.finding import Finding
    from pallas_lint.probe.cost.results import FunctionCost
    from pallas_lint.probe.protocol import Facts, Memory
    from pallas_lint.probe.results import LaunchResult, ProbeResult, Stage

ASSETS = Path(__file__).parent.parent / "assets"
_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")  # names of kernels may have any


def write(
    file: Path, results: Sequence[ProbeResult], findings: Sequence[Finding], line: Callable[[str, int], str | None]
) -> None:
    """Write the report to a file that the user names. Raises OSError."""
    report = document(results, findings, line).encode("utf-8", "backslashreplace")
    files.write(file, report, None)


def document(
    results: Sequence[ProbeResult], findings: Sequence[Finding], line: Callable[[str, int], str | None]
) -> str:
    """The report as text."""
    launches = [launch for result in results for launch in result.launches]
    parts = next((result.parts for result in results if result.parts), {})
    errors = [error for result in results for error in result.errors]
    functions = [cost for result in results for cost in result.functions]
    return page(fragment(launches, findings, parts, line, errors=errors, functions=functions))


def fragment(
    launches: Sequence[LaunchResult],
    findings: Sequence[Finding],
    parts: Mapping[str, str | None],
    line: Callable[[str, int], str | None],
    *,
    errors: Sequence[str] = (),
    functions: Sequence[FunctionCost] = (),
) -> str:
    """The body of a report, with no style and no script in it: the section of launch `n` has the id `launch-n`.

    Places in files carry `data-path` and `data-line`.
    """
    about = ", ".join(f"{name} {version}" for name, version in parts.items() if version and name != "python")
    body = [
        f'<header><h1>Pallas probe</h1><p class="quiet">{escape(about)}</p></header>',
        _totals(functions, launches),
        _summary(launches, findings),
        *(f'<p class="notice">{escape(error)}</p>' for error in errors),
        *(_launch(at, launch, findings, line) for at, launch in enumerate(launches)),
        _elsewhere(launches, findings, line),
    ]
    return "".join(body)


def page(body: str) -> str:
    """A whole page that needs nothing else."""
    style = (ASSETS / "report.css").read_text(encoding="utf-8")
    script = (ASSETS / "report.js").read_text(encoding="utf-8")
    body = _CONTROL.sub("\ufffd", body)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Pallas probe</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="pallas-lint {__version__}">\n<style>\n{style}</style></head>\n'
        f"<body>\n<main>{body}</main>\n<script>\n{script}</script></body></html>\n"
    )


def _totals(functions: Sequence[FunctionCost], launches: Sequence[LaunchResult]) -> str:
    """What whole functions cost."""
    if not functions:
        return ""
    places = ((launch.place, launch.costs) for launch in launches)
    alone = whole_function.by_themselves(
        (place["file"], place["line"], costs) for place, costs in places if place is not None
    )
    found = "".join(cost_page.total(cost, alone, _place) for cost in functions)
    return f'<section aria-labelledby="totals"><h2 id="totals">Whole functions</h2>{found}</section>'


def _summary(launches: Sequence[LaunchResult], findings: Sequence[Finding]) -> str:
    rows = []
    for at, launch in enumerate(launches):
        mine = [finding for finding in findings if _belongs(finding, launch)]
        worst = max((finding.severity.rank for finding in mine), default=-1)
        look = {2: "bad", 1: "warn", 0: "note", -1: "good"}[worst]
        count = count_of(len(mine), "finding") if mine else "nothing found"
        rows.append(
            f'<li><a href="#launch-{at}">{escape(launch.kernel)}</a> {_where(launch)} '
            f'<span class="tag {look}">{count}</span></li>'
        )
    return f'<nav aria-label="launches"><ul class="launches">{"".join(rows)}</ul></nav>' if rows else ""


def _launch(at: int, launch: LaunchResult, findings: Sequence[Finding], line: Callable[[str, int], str | None]) -> str:
    facts = launch.facts
    grid = facts["grid"]
    labels = [f"grid {_shape(grid)}" if grid else "no grid" if grid == [] else "dynamic grid"]
    semantics = facts.get("semantics")
    if semantics:
        labels.append("dimension_semantics " + ", ".join(semantics))
    if launch.backend:
        labels.append(launch.backend.replace("_", " "))
    mine = [finding for finding in findings if _belongs(finding, launch)]
    worst_first = sorted(mine, key=lambda finding: -finding.severity.rank)
    return (
        f'<section id="launch-{at}" aria-labelledby="launch-{at}-title">'
        f'<h2 id="launch-{at}-title">{escape(launch.kernel)}</h2>'
        f'<p class="quiet">{_where(launch)} &middot; {escape("; ".join(labels))}</p>'
        + "".join(_finding(finding, line) for finding in worst_first)
        + _matrix(launch)
        + charts.section(launch)
        + cost_page.section(launch, line, _place)
        + _memory_use(facts.get("memory"))
        + _pictures(facts, mine)
        + "</section>"
    )


def _elsewhere(
    launches: Sequence[LaunchResult], findings: Sequence[Finding], line: Callable[[str, int], str | None]
) -> str:
    """Findings that belong to no launch: what failed before there was one, or is of a whole function."""
    rest = [finding for finding in findings if not any(_belongs(finding, launch) for launch in launches)]
    return f"<section><h2>Outside of launches</h2>{''.join(_finding(f, line) for f in rest)}</section>" if rest else ""


def _belongs(finding: Finding, launch: LaunchResult) -> bool:
    return is_about(finding, launch.facts, None if launch.place is None else launch.place["line"])


def _finding(finding: Finding, line: Callable[[str, int], str | None]) -> str:
    number = finding.span.start.line
    source = line(finding.span.path, number) or ""
    begin, end = finding.span.start.column - 1, finding.span.end.column - 1
    if finding.span.end.line != number:
        end = len(source)
    marked = f"{escape(source[:begin])}<mark>{escape(source[begin:end])}</mark>{escape(source[end:])}"
    places = " ".join(part for part in (finding.backend, finding.device) if part)
    help_ = f'<p class="help">{_prose(finding.help)}</p>' if finding.help else ""
    return (
        f'<article class="finding {finding.severity.value}"><p>{_code(finding)} <strong>'
        f"{_prose(finding.message)}</strong></p>"
        f'<p class="quiet">{_place(finding.span.path, number)}'
        f"{' &middot; ' + escape(places) if places else ''}</p>"
        f'<pre><code><span class="number">{number}</span> {marked}</code></pre>{help_}</article>'
    )


def _code(finding: Finding) -> str:
    """The code, with a link where the rule has a page on the web."""
    link = f' href="{escape(finding.url)}"' if finding.url.startswith(("https://", "http://")) else ""
    return f'<a class="code"{link}>{escape(finding.code)}</a>'


def _matrix(launch: LaunchResult) -> str:
    """Stages by target; what does not depend on a target stands in one cell of its own."""
    targets = list(dict.fromkeys(stage.target for stage in launch.stages if stage.target))
    own = [stage for stage in launch.stages if stage.target is None]
    rows = [
        f'<tr><th scope="row">{escape(stage.stage)}</th>'
        f'<td colspan="{max(len(targets), 1)}">{_outcome(launch, stage)}</td></tr>'
        for stage in own
    ]
    for name in ("lower", "compile"):
        cells = [next((s for s in launch.stages if (s.stage, s.target) == (name, target)), None) for target in targets]
        if any(cells):
            rows.append(
                f'<tr><th scope="row">{name}</th>'
                + "".join(f"<td>{_outcome(launch, cell) if cell else ''}</td>" for cell in cells)
                + "</tr>"
            )
    head = "".join(f'<th scope="col">{escape(target)}</th>' for target in targets) or "<td></td>"
    return (
        '<div class="wide"><table class="stages"><caption>Stages</caption><thead><tr><td></td>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _outcome(launch: LaunchResult, stage: Stage) -> str:
    if stage.ok is None:
        return f'<span class="tag">not tried</span> <span class="quiet">{escape(stage.detail or "")}</span>'
    if stage.ok:
        took = f"{stage.seconds:.2f} s" if stage.target else (stage.detail or f"{stage.seconds:.2f} s")
        used = stage.figures.get("vmem_bytes")
        extra = f", {format_bytes(used)} of VMEM" if used else ""
        return f'<span class="tag good">passes</span> <span class="quiet">{escape(took + extra)}</span>'
    reason = reasons.why(launch, stage) or stage.detail or ""
    return f'<span class="tag bad">fails</span> <span class="quiet">{_prose(reason)}</span>'


def _memory_use(facts: Memory | None) -> str:
    if not facts:
        return ""
    rows = "".join(
        f'<li><span class="key part{at % 6}"></span>{escape(part["name"])}: {part["buffers"]} &times; '
        f"{format_bytes(part['bytes'])}</li>"
        for at, part in enumerate(facts["parts"])
    )
    return (
        f"<h3>{_memory(facts['space'])} on {escape(facts['device'])}</h3>"
        f"<p>{format_bytes(facts['bytes'])} of {format_bytes(facts['limit'])}, at least</p>"
        f'{pictures.memory(facts)}<ul class="parts">{rows}</ul>'
    )


def _pictures(facts: Facts, findings: Sequence[Finding]) -> str:
    shown = []
    errors = [each for each in findings if each.code == "PAL307" and each.severity is Severity.ERROR]
    grid, picture = facts["grid"] or [], facts.get("picture") or {}
    for key, visits in picture.items():
        operand = facts["operands"][int(key)]
        if visits is None or operand["block"] is None or not visits:
            continue
        kind = f"{operand['dtype']}{_shape(operand['shape'])} in blocks of {_shape(operand['block'])}"
        visited = operand.get("blocks_visited")
        where = operand["memory_space"]
        share = f", {visited} of {operand['blocks_total']} blocks visited" if visited is not None else ""
        certain = any(f"`{operand['name']}`" in finding.message for finding in errors)
        shown.append(
            f'<div class="operand"><h4>{escape(operand["name"])} <span class="quiet">{escape(operand["role"])}, '
            f"{escape(kind + share)}{', in ' + _memory(where) if where else ''}"
            f"</span></h4>{pictures.blocks(operand, visits, grid, certain=certain)}</div>"
        )
    if not shown:
        return ""
    points = len(next(visits for visits in picture.values() if visits))
    legend = "".join(
        f'<li><svg width="13" height="13" aria-hidden="true"><rect class="{look}" width="12" height="12" rx="2"/></svg>'
        f" {text}</li>"
        for look, text in (
            ("once", "one visit"), ("few", "two to four"), ("often", "more"), ("never", "output never written"),
            ("unread", "input not read"), ("outside", "outside the array"),
            ("doubtful", "outside, but no certain error"),
        )
    )  # fmt: skip
    stepper = f'<div class="stepper" data-points="{points}" data-grid="{escape(" ".join(map(str, grid)))}"></div>'
    return f'<h3>Blocks</h3><ul class="legend">{legend}</ul>{stepper}<div class="operands">{"".join(shown)}</div>'


def _memory(space: str) -> str:
    """The name of a memory, in the colour that editors give refs in it."""
    return f'<span class="in-{kind_of(space)}">{escape(space.upper())}</span>'


def _where(launch: LaunchResult) -> str:
    place = launch.place
    return "" if place is None else _place(place["file"], place["line"])


def _place(path: str, line: int) -> str:
    shown = Path(path).name if Path(path).is_absolute() else path
    return f'<span class="place" data-path="{escape(path)}" data-line="{line:d}">{escape(shown)}:{line}</span>'


def _prose(text: str) -> str:
    """A message with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _shape(sizes: Sequence[int]) -> str:
    return f"[{', '.join(map(str, sizes))}]"
