"""`probe --tune`: from values to try to a list of the fastest."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from pallas_lint import report as reports
from pallas_lint.cli import progress, report_files, terminal, tune_results
from pallas_lint.cli.exit import OK, TROUBLE
from pallas_lint.config.flags import UsageError
from pallas_lint.probe import specs
from pallas_lint.probe.client import WorkerError
from pallas_lint.probe.cost_report.figures import microseconds
from pallas_lint.probe.tuning import better_arguments
from pallas_lint.probe.tuning.combinations import ANY, TIE, Choices, Tuning
from pallas_lint.probe.tuning.results_file import Results
from pallas_lint.records import evolve
from pallas_lint.report import full
from pallas_lint.report.json import finding_document
from pallas_lint.report.lines import Lines
from pallas_lint.report.style import Style, use_colour, visible
from pallas_lint.report.wrapping import width_of, wrapped
from pallas_lint.text.source import Source, SourceError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pallas_lint.probe.session import ProbeOptions
    from pallas_lint.probe.specs import Spec

_MAX_CHOICES = 1000  # choices
_MAX_SHOWN = 20  # of them


def with_first_choices(spec: Spec, options: argparse.Namespace) -> Spec:
    """The function with the first of the values to try of each keyword. Raises UsageError for those not to be read."""
    choices = _choices(options.tune)
    keywords = (keyword for keyword in spec.keywords if keyword[0] not in choices)
    return evolve(spec, keywords=(*keywords, *((name, values[0][1]) for name, values in choices.items())))


def run(options: argparse.Namespace, wanted: Sequence[Spec], python: str, conditions: ProbeOptions, cwd: Path) -> int:
    """Try all choices and print the fastest; returns the exit status. Raises UsageError."""
    if len(wanted) != 1:
        raise UsageError("--tune: name one function")
    choices = _choices(options.tune)
    known = better_arguments.current_arguments(wanted[0], list(choices), _text_of(cwd / wanted[0].file))
    results = tune_results.read(Results, options, wanted[0], conditions, cwd)
    with progress.shown(cwd, quiet=options.quiet) as display:
        values = known.values if known is not None else {}
        tuning = Tuning(
            wanted[0], choices, python, cwd, conditions, display.show_status, values, results=results,
            kept=partial(tune_results.write, results, options, cwd),
        )  # fmt: skip
        if tuning.count > _MAX_CHOICES:
            raise UsageError(f"--tune: {tuning.count} choices, and at most {_MAX_CHOICES} are tried")
        try:
            finished = tuning.run()
        except WorkerError as error:
            raise UsageError(str(error)) from error
    found = list(better_arguments.findings(tuning, known)) if known is not None else []
    document = {"version": 1, **_document(tuning), "findings": list(map(finding_document, found))}

    def rendered(output_format: str, style: Style, width: int | None) -> Iterator[str]:
        if output_format == "json":
            yield json.dumps(document, indent=2) + "\n"
            return
        shown = reports.Report(findings=found, style=style, width=width, source_line=Lines(cwd).line)
        yield from full.findings(shown)
        yield from _text(tuning, style)

    for output_format, file in options.report:
        report_files.write_text(cwd, "".join(rendered(output_format, Style(), None)), file, "--report")
    style = Style(use_colour(options.color, sys.stdout))
    terminal.write(rendered(options.output_format, style, width_of(sys.stdout)))
    if not finished:
        goes_on = tune_results.on_going_on(options)
        terminal.print_message(f"interrupted: {len(tuning.trials)} of {tuning.count} choices were tried{goes_on}")
        return TROUBLE
    return OK if any(one.took or one.clocks for one in tuning.trials) else TROUBLE


def _text_of(file: Path) -> str:
    """The text of a file; empty where it cannot be read, which the probe reports."""
    try:
        return Source.read(file, str(file)).text
    except SourceError:
        return ""


def _choices(words: Sequence[str]) -> Choices:
    """`bm=128,256` as values by name. Raises UsageError."""
    found: Choices = {}
    for word in words:
        name, mark, values = word.partition("=")
        if not mark or not name.isidentifier() or not values or name in found:
            raise UsageError(f"--tune: '{word}' is not as in bm=128,256,512, each name once")
        try:
            found[name] = [(text.strip(), specs.parse_argument(text)) for text in values.split(",")]
        except specs.SpecError as error:
            raise UsageError(f"--tune: {error}") from error
    return found


def _text(tuning: Tuning, style: Style) -> Iterator[str]:
    for target in tuning.targets:
        found = tuning.best(target)
        if found:
            yield style.bold(f"{target}: {len(found)} of {tuning.count} choices have a number") + "\n"
        for at, one in enumerate(found[:_MAX_SHOWN]):
            took = one.took[target]
            apart = took / found[0].took[target] - 1
            rank = "best" if at == 0 else "as fast" if apart <= TIE else f"+{apart:.0%}"
            yield f"  {microseconds(took):>9}  {rank:<8} {visible(one.spelled)}\n"
        ordered = tuning.in_order(target)
        if ordered:
            sentence = f"{target}: the predicted order of {len(ordered)} of {tuning.count} choices, and no times"
            yield style.bold(sentence) + "\n"
        for at, one in enumerate(ordered[:_MAX_SHOWN]):
            yield f"  {at + 1:>9}  {visible(one.spelled)}\n"
        slower = max(len(found), len(ordered)) - _MAX_SHOWN
        if slower > 0:
            yield f"  and {slower} slower ones\n"
    for one in tuning.trials:
        for target, why in one.why.items():
            where = f" ({target})" if target != ANY and len(tuning.targets) > 1 else ""
            line = f"  no number for {visible(one.spelled)}{where}: {visible(why)}"
            yield from (f"{style.dim(part)}\n" for part in wrapped(line, width_of(sys.stdout), 0, 4))


def _range(limits: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("low", "high"), limits, strict=True))


def _document(tuning: Tuning) -> dict[str, Any]:
    """The results of tuning as plain data."""
    return {
        "tune": [
            {
                "target": target,
                "choices": [
                    *(
                        {"values": dict(one.values), "microseconds": one.took[target], **_range(one.ranges[target])}
                        for one in tuning.best(target)
                    ),
                    *({"values": dict(one.values), "rank": at} for at, one in enumerate(tuning.in_order(target), 1)),
                ],
                "unknown": [{"values": dict(o.values), "why": o.why[target]} for o in tuning.trials if target in o.why],
            }
            for target in tuning.targets
        ]
    }
