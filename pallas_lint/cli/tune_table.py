"""`probe --tune-table`: from a table of tuned block sizes to the rows that something is wrong with."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from pallas_lint.cli import progress, report_files, signatures, terminal, tune_results
from pallas_lint.cli.exit import FINDINGS, OK, TROUBLE
from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.flags import UsageError
from pallas_lint.probe import specs
from pallas_lint.probe.client import WorkerError
from pallas_lint.probe.cost_report.figures import microseconds
from pallas_lint.probe.tuning import table_search, table_trials, tune_table
from pallas_lint.probe.tuning.combinations import ANY
from pallas_lint.probe.tuning.table_trials import BAD, Row, Trials, Verdict
from pallas_lint.report.style import Style, use_colour, visible, visible_file
from pallas_lint.report.wrapping import width_of, wrapped
from pallas_lint.text import files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.session import ProbeOptions

_MAX_ERRORS = 5  # that are printed; JSON has all
_STATES = {
    "ok": "ok",
    "beaten": "beaten by a neighbour",
    "too-large": "too large",
    "fails": "failed",
    "unknown": "without a number",
}


def run(options: argparse.Namespace, conditions: ProbeOptions, python: str | None, cwd: Path) -> int:
    """Probe the rows that the results files do not have, report, and return the exit status. Raises UsageError."""
    not_tpu = [target for target in conditions.targets if not target.startswith("tpu")]
    if not_tpu:
        raise UsageError(f"--tune-table: times are predicted for TPUs, and not for {not_tpu[0]}")
    table, name = _table(options.tune_table)
    rows, errors = _rows(options, table, name, cwd)
    if not rows:
        _print_errors(errors)
        wanted = [item for item in options.tune_key or () if "=" in item]
        what = f"with {', '.join(wanted)}" if wanted and not errors else "that can be read"
        raise UsageError(f"--tune-table: {table} has no row {what}")
    function = rows[0].call.spec
    trials = tune_results.read(Trials, options, function, conditions, cwd)
    mismatch = signatures.mismatch(function, _text(cwd / function.file))
    if mismatch is not None:
        raise UsageError(f"{table}:{rows[0].entry.line}: {mismatch}")
    if options.shard is not None:
        rows = table_trials.shard(rows, *options.shard)
    probe = partial(_probe, options, trials, python=python, conditions=conditions, cwd=cwd)
    finished = probe(rows)
    verdicts = list(trials.verdicts(rows))
    if finished and options.write_tune_table:
        found = table_search.Search(trials, options.paths[0], options.paths[1:])
        finished = found.run(rows, probe)
        if finished:
            report_files.write_text(cwd, found.text(), options.write_tune_table, "--write-tune-table")
    _report(options, table, rows, verdicts, errors, cwd)
    _print_errors(errors)
    if not finished:
        missing = len(trials.missing(rows))
        left = f"{missing} calls are" if missing else "the search is"
        terminal.print_message(f"interrupted: {left} left{tune_results.on_going_on(options)}")
    if errors or not finished:
        return TROUBLE
    return FINDINGS if any(each.state in BAD for each in verdicts) else OK


def _print_errors(errors: Sequence[str]) -> None:
    for error in errors[:_MAX_ERRORS]:
        terminal.print_plain(f"{error}\n")
    if len(errors) > _MAX_ERRORS:
        terminal.print_message(f"{len(errors) - _MAX_ERRORS} more rows cannot be read")


def _table(text: str) -> tuple[str, str | None]:
    """The file, and the variable in it."""
    file, mark, name = text.rpartition("::")
    return (file, name) if mark else (text, None)


def _rows(options: argparse.Namespace, table: str, name: str | None, cwd: Path) -> tuple[Sequence[Row], list[str]]:
    """The rows with their calls, and what is wrong with others, with file and line. Raises UsageError."""
    fields = tune_table.Fields(options.tune_key or (), options.tune_value or ())
    rows: list[Row] = []
    errors: list[str] = []
    shown = visible_file(table)
    try:
        for entry in tune_table.entries(_text(cwd / table), fields, is_json=table.endswith(".json"), name=name):
            if isinstance(entry, tune_table.TableError):
                errors.append(f"{shown}:{entry.line}: error: {visible(entry.message)}")
                continue
            try:
                rows.append(table_trials.row_of(entry, options.paths[0], options.paths[1:]))
            except specs.SpecError as error:
                errors.append(f"{shown}:{entry.line}: error: {visible(str(error))}")
    except tune_table.TableError as error:
        raise UsageError(f"{table}:{error.line}: {error.message}") from error
    return rows, errors


def _text(file: Path) -> str:
    """The text of a file. Raises UsageError."""
    try:
        return files.read(file).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: it is not UTF-8") from error


def _probe(
    options: argparse.Namespace, trials: Trials, rows: Sequence[Row], *, python: str | None, conditions: ProbeOptions,
    cwd: Path,
) -> bool:  # fmt: skip
    """Probe what is missing, and write it down call by call. Raises UsageError."""
    if not trials.missing(rows):
        tune_results.write(trials, options, cwd)
        return True
    try:
        interpreter = find_python((cwd / rows[0].call.spec.file).parent, options.python or python)
    except InterpreterError as error:
        raise UsageError(str(error)) from error
    with progress.shown(cwd, quiet=options.quiet) as display:

        def ended(count: int, of: int) -> None:
            tune_results.write(trials, options, cwd)
            display.show_status(f"{count} of {of} calls tried")

        try:
            return trials.run(rows, interpreter, cwd, conditions, ended)
        except WorkerError as error:
            raise UsageError(str(error)) from error


def _report(
    options: argparse.Namespace, table: str, rows: Sequence[Row], verdicts: Sequence[Verdict], errors: Sequence[str],
    cwd: Path,
) -> None:  # fmt: skip
    document = {"version": 1, "table": table, "rows": [_document(each) for each in verdicts], "errors": list(errors)}

    def rendered(output_format: str, style: Style, width: int | None) -> Iterator[str]:
        if output_format == "json":
            yield json.dumps(document, indent=2) + "\n"
        else:
            yield from _lines(visible_file(table), rows, verdicts, style, width)

    for output_format, file in options.report:
        report_files.write_text(cwd, "".join(rendered(output_format, Style(), None)), file, "--report")
    style = Style(use_colour(options.color, sys.stdout))
    terminal.write(rendered(options.output_format, style, width_of(sys.stdout)))


def _document(verdict: Verdict) -> dict[str, Any]:
    return {
        "line": verdict.row.entry.line,
        "target": verdict.target,
        "key": verdict.row.entry.key,
        "values": verdict.row.call.values,
        "state": verdict.state,
        **_range(verdict.took),
        "why": verdict.why,
        "best": None if verdict.best is None else {"values": verdict.best.values, **_range(verdict.best_took)},
    }


def _range(took: tuple[float, float, float] | None) -> dict[str, float | None]:
    return dict(zip(("microseconds", "low", "high"), took or (None, None, None), strict=True))


def _lines(
    table: str, rows: Sequence[Row], verdicts: Sequence[Verdict], style: Style, width: int | None
) -> Iterator[str]:
    for target in dict.fromkeys(verdict.target for verdict in verdicts):
        here = [verdict for verdict in verdicts if verdict.target == target]
        counts = {state: sum(each.state == state for each in here) for state in _STATES}
        summary = ", ".join(f"{count} {_STATES[state]}" for state, count in counts.items() if count)
        begin = "" if target == ANY else f"{target}: "
        yield style.bold(f"{begin}{len(here)} of {len(rows)} rows: {summary}") + "\n"
        for each in here:
            if each.state != "ok":
                line = (
                    f"  {table}:{each.row.entry.line} {visible(_spelled(each.row.call.values))}: {_verdict_text(each)}"
                )
                yield from (f"{part}\n" for part in wrapped(line, width, 0, 4))


def _verdict_text(verdict: Verdict) -> str:
    best = ""
    if verdict.best is not None and verdict.best_took is not None:
        best = f"{visible(_spelled(verdict.best.values))} takes {microseconds(verdict.best_took[0])}"
    if verdict.took is None:
        return visible(verdict.why or "") + (f"; {best}" if best else "")
    return f"{microseconds(verdict.took[0])}; {best}"


def _spelled(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
