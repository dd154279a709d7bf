"""Probing: from options to an exit status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint import report as reports
from pallas_lint.cli import progress, report_files, terminal
from pallas_lint.cli.exit import FINDINGS, OK, TROUBLE
from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.flags import UsageError
from pallas_lint.config.settings import Overrides, SettingsError, SettingsFinder
from pallas_lint.finding import LintError, Severity
from pallas_lint.probe import promela_files, reconcile, specs, stored_runs
from pallas_lint.probe.client import Worker, WorkerError
from pallas_lint.probe.cost_report import table, whole_function
from pallas_lint.probe.findings import all_findings
from pallas_lint.probe.known_defects import known_defects
from pallas_lint.probe.multi_device import charts
from pallas_lint.probe.places import FindingBuilder, Places, is_about
from pallas_lint.probe.report import function_document, launch_document, without_repeats
from pallas_lint.probe.results import RequestedStages, judged_for, newer_than_known
from pallas_lint.probe.session import EVERY_TARGET, ProbeOptions, Session
from pallas_lint.records import evolve
from pallas_lint.report.lines import Lines
from pallas_lint.report.style import Style, use_colour, visible, visible_file
from pallas_lint.report.wrapping import width_of
from pallas_lint.run.cache_folder import own_cache
from pallas_lint.text import files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from pallas_lint.finding import Finding
    from pallas_lint.probe.cost_report.baseline import RecordedCost
    from pallas_lint.probe.event_cache import EventCache
    from pallas_lint.probe.results import LaunchResult, ProbeResult

_GIVEN = ("skip", "reference", "against", "timeout", "memory_limit", "devices")
_CHART_INDENT = 10  # columns ahead of a chart below its finding


def run(options: argparse.Namespace) -> int:
    """Probe with `options`, report, and return the exit status. Raises UsageError."""
    cwd = Path.cwd()
    finder = SettingsFinder(Overrides(), cwd)
    try:
        return _run(options, finder, cwd)
    except SettingsError as error:
        raise UsageError(f"{error.path}: {error.message}" if error.path else error.message) from error


def _run(options: argparse.Namespace, finder: SettingsFinder, cwd: Path) -> int:
    settings = finder.for_folder(cwd).probe
    conditions = _conditions(options, settings)
    if options.capture:
        return _capture(options, conditions, finder, cwd)
    if options.tune_table is not None:
        from pallas_lint.cli import tune_table

        return tune_table.run(options, conditions, settings.get("python"), cwd)
    record = _record_of_costs(options.perf_baseline)
    comments = list(_specs(options.paths, cwd))
    wanted = [spec for spec in comments if isinstance(spec, specs.Spec)]
    unreadable = [spec for spec in comments if isinstance(spec, specs.UnreadableComment)]
    if not wanted:
        raise UsageError(str(unreadable[0]))
    from pallas_lint.cli import signatures

    first = wanted[0]
    if options.tune:
        from pallas_lint.cli import tune

        first = tune.with_first_choices(first, options)
    if "::" in options.paths[0]:
        mismatch = signatures.mismatch(first, _text(cwd, first.file))
        if mismatch is not None:
            return _report([], options, finder, cwd, [LintError(first.file, mismatch)])
    for option in ("reference", "against"):
        undefined = signatures.undefined_everywhere(getattr(conditions, option), wanted, cwd)
        if undefined is not None:
            raise UsageError(f"--{option} {getattr(options, option)}: {undefined}")
    try:
        python = find_python((cwd / first.file).parent, options.python or settings.get("python"))
    except InterpreterError as error:
        raise UsageError(str(error)) from error
    if options.tune:
        return tune.run(options, wanted, python, conditions, cwd)
    missing = {} if options.reference else signatures.missing_references(wanted, cwd)
    try:
        with Worker(python, cwd) as worker, progress.shown(cwd, quiet=options.quiet) as display:
            session = Session(
                worker,
                cwd,
                conditions,
                display.show_status,
                display.show,
                kept=_kept(options, python, cwd),
                without_reference=missing,
            )
            results = [session.probe(spec) for spec in wanted]
    except WorkerError as error:
        raise UsageError(str(error)) from error
    # One comment that cannot be read keeps no other function from being probed.
    errors = [*(LintError(each.file, each.reason, each.line) for each in unreadable), *missing.values()]
    return _report(results, options, finder, cwd, errors, record)


def _kept(options: argparse.Namespace, python: str, cwd: Path) -> EventCache | None:
    """The answers of earlier runs, unless it matters what the machine does now."""
    if options.no_cache or options.run or options.perf:
        return None
    from pallas_lint.probe.event_cache import EventCache

    folder = own_cache(cwd)
    return EventCache(folder, python, cwd) if folder is not None else None


def _capture(options: argparse.Namespace, conditions: ProbeOptions, finder: SettingsFinder, cwd: Path) -> int:
    from pallas_lint.probe import capture
    from pallas_lint.probe.recorded import RecordError, Recording

    recording = None
    if options.record:
        try:
            recording = Recording.of(
                cwd,
                finder.for_folder(cwd),
                replace=options.record_replace,
                values=options.record_values,
                stub=options.record_stub,
            )
        except RecordError as error:
            raise UsageError(str(error)) from error
        # Recording should take no longer than the program itself: examining launches takes many times as long.
        conditions = evolve(conditions, stage=",".join(options.stage or ["trace"]))
    command = list(options.command)
    if options.python and Path(command[0]).name in ("python", "python3"):
        command[0] = options.python  # the one that is meant, whatever PATH has
    try:
        captured = capture.run(command, conditions.request(), recording)
    except OSError as error:
        raise UsageError(f"cannot run {options.command[0]}: {error.strerror or error}") from error
    except RecordError as error:
        raise UsageError(str(error)) from error
    status = _report(captured.results, options, finder, cwd)
    if captured.recorded is not None and not options.quiet:
        terminal.print_message(captured.recorded.summary)
    if captured.status:
        terminal.print_message(f"the program ended with status {captured.status}")
    examined = recording is None or conditions.named != ["trace"]
    if examined and not any(result.launches for result in captured.results) and not options.quiet:
        terminal.print_message(
            "no launch was seen: the program made none, or it does not run in Python with this environment"
        )
    return TROUBLE if captured.status else status  # launches that it did not come to are not judged


def _specs(words: list[str], cwd: Path) -> Iterator[specs.Spec | specs.UnreadableComment]:
    """One spec for `file.py::function ARGUMENT ...`; those of the comments for files, and what is wrong with a comment.

    Raises UsageError.
    """
    try:
        if "::" in words[0]:
            spec = specs.parse_target(words[0], words[1:])
            _refuse_notebook(spec.file)
            if not (cwd / spec.file).is_file():
                raise UsageError(f"{spec.file}: no such file")
            yield spec
            return
        for word in words:
            _refuse_notebook(word)
            yield from _commented(word, cwd)
    except specs.SpecError as error:
        raise UsageError(str(error)) from error


def _refuse_notebook(file: str) -> None:
    """Raises UsageError for a notebook."""
    if file.endswith(".ipynb"):
        raise UsageError(f"{file}: notebooks are not probed; move the function into a .py file")


def _commented(word: str, cwd: Path) -> Iterator[specs.Spec | specs.UnreadableComment]:
    found = list(specs.every_comment_in(_text(cwd, word), word))
    if not found:
        raise UsageError(
            f"{word}: no function has a comment `# pallas-lint: probe(...)`; name one with {word}::function"
        )
    yield from found


def _text(cwd: Path, file: str) -> str:
    """The text of a file. Raises UsageError."""
    from pallas_lint.text.source import Source, SourceError

    try:
        return Source.read(cwd / file, file).text
    except SourceError as error:
        raise UsageError(f"{file}: {error.message}") from error


def _conditions(options: argparse.Namespace, settings: Mapping[str, Any]) -> ProbeOptions:
    """The options, and the settings `probe.*` where they leave something open."""
    configured = ProbeOptions.of(settings, EVERY_TARGET if options.all_targets else options.target)
    given = {name: getattr(options, name) for name in _GIVEN}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given.keys() & {"reference", "against"}:
        given[name] = _other_function(given[name], Path.cwd())
    if options.stage:
        given["stage"] = ",".join(options.stage)
    # The shapes of which it matters what they cost take an interpreter minutes.
    runs = not options.perf or options.stage is not None
    whole = options.perf and not options.tune and options.tune_table is None
    return evolve(
        configured, perf=options.perf, whole=whole, real=options.run, promela=bool(options.promela), runs=runs, **given
    )


def _other_function(text: str, cwd: Path) -> str:
    """The function, with the absolute path of a file that is named with it. Raises UsageError."""
    file, mark, name = text.rpartition("::")
    if not mark:
        return text
    _text(cwd, file)
    return f"{cwd / file}::{name}"


def _write_html(
    path: str, results: Sequence[ProbeResult], findings: Sequence[Finding], lines: Lines
) -> list[LintError]:
    from pallas_lint.probe.page import html

    try:
        html.write(Path(path), results, findings, lines.line)
    except OSError as error:
        return [LintError(path, f"the report cannot be written: {error.strerror or error}")]
    return []


def _record_of_costs(path: str | None) -> Mapping[str, RecordedCost]:
    """What launches took when the file was written, read before anything runs. Raises UsageError."""
    if path is None:
        return {}
    from pallas_lint.probe.cost_report import baseline

    try:
        return baseline.read(Path(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except baseline.CostBaselineError as error:
        raise UsageError(f"{path}: {error}") from error


def _slower(
    results: Sequence[ProbeResult], record: Mapping[str, RecordedCost], share: float, places: Places
) -> Iterator[Finding]:
    """What takes longer than on record."""
    from pallas_lint.probe.cost_report import baseline
    from pallas_lint.probe.cost_report.figures import device_of

    for result, launch, cost, message in baseline.slower(results, record, share):
        about = FindingBuilder(result, places, launch)
        yield about.finding_at((), "PAL830", Severity.WARNING, message, backend="tpu", device=device_of(cost))


def _write_record_of_costs(path: str, results: Sequence[ProbeResult]) -> list[LintError]:
    from pallas_lint.probe.cost_report import baseline

    try:
        files.write(Path(path), baseline.text(results).encode(), None)
    except OSError as error:
        return [LintError(path, f"cannot be written: {error.strerror or error}")]
    return []


def _may_have_cost(launch: LaunchResult) -> bool:
    """Whether it went through stages for a TPU, in time or not, or a GPU's registers are known."""
    of_tpu = (stage for stage in launch.stages if (stage.target or "").startswith("tpu"))
    return bool(launch.costs) or any(of_tpu) or any("registers" in stage.figures for stage in launch.stages)


def _report(
    results: Sequence[ProbeResult], options: argparse.Namespace, finder: SettingsFinder, cwd: Path,
    known: Sequence[LintError] = (), record: Mapping[str, RecordedCost] | None = None,
) -> int:  # fmt: skip
    """Store, write and print what a probe found; returns the exit status."""
    lines = Lines(cwd)
    found, errors = all_findings(results, cwd, lines.line)
    found += known_defects(results, lines)
    if options.perf:
        found += _slower(results, record or {}, options.perf_fail_over, Places(cwd, lines.line))
    found.sort(key=lambda finding: finding.sort_key)
    if not options.no_cache:
        stored_runs.store(cwd, results, found)
    findings, _ = reconcile.wanted(found, lambda path: finder.for_folder((cwd / path).parent), lines.source)
    errors = [*known, *errors, *_write_files(options, results, findings, lines, cwd)]
    launches = [launch for result in results for launch in result.launches]
    unjudged = list(RequestedStages(set(options.stage or ()), set(options.target)).unjudged(launches))
    documents = [launch_document(launch, cwd) for launch in launches]
    report = reports.Report(
        findings=findings,
        errors=errors,
        files=len(
            {result.spec.file for result in results if result.spec is not None} or {each["path"] for each in documents}
        ),
        kernels=len({(launch.kernel, str(launch.place)) for launch in launches}),
        launches=documents,
        functions=[function_document(each, cwd) for result in results for each in result.functions],
        jax=judged_for(results),
        notes=newer_than_known(results),
        unjudged=unjudged,
        quiet=options.quiet,
        source_line=lines.line,
    )
    _write_reports(report, launches, lines, options, cwd)
    if not options.quiet:
        _print_notes(options, results, has_cost=bool(errors) or any(map(_may_have_cost, launches)))
    for error in errors:
        where = f"{visible_file(error.path)}:{error.line}: " if error.line else f"{visible_file(error.path)}: "
        terminal.print_plain(f"{where}error: {visible(error.message)}\n")
    if errors or (options.strict and unjudged):
        return TROUBLE
    limit = Severity(options.fail_on).rank
    return FINDINGS if any(finding.severity.rank >= limit for finding in findings) else OK


def _write_files(
    options: argparse.Namespace, results: Sequence[ProbeResult], findings: Sequence[Finding], lines: Lines, cwd: Path
) -> Iterator[LintError]:
    """Write the files that options name; the errors."""
    if options.write_perf_baseline:
        yield from _write_record_of_costs(options.write_perf_baseline, results)
    if options.promela:
        yield from promela_files.write(cwd / options.promela, results)
    if options.html:
        yield from _write_html(options.html, results, findings, lines)


def _print_notes(options: argparse.Namespace, results: Sequence[ProbeResult], *, has_cost: bool) -> None:
    if options.verbose and any(result.kept for result in results):
        terminal.print_message(
            "nothing has changed since an earlier run, whose results these are; --no-cache probes again"
        )
    if options.perf and not has_cost:
        terminal.print_message(
            "--perf: no launch is for a TPU, and for GPUs what a kernel takes is only known where jax's CUDA plugin "
            "and ptxas compile it"
        )


def _write_reports(
    report: reports.Report, launches: Sequence[LaunchResult], lines: Lines, options: argparse.Namespace, cwd: Path
) -> None:
    """The report in the files that `--report` names, and on standard output."""
    shown = [without_repeats(each, report.findings) for each in report.launches]

    def styled(style: Style, width: int | None) -> reports.Report:
        """The report with its paragraphs for a terminal, or with neither colours nor width for a file."""
        whole = whole_function.paragraphs(report.functions, report.launches, style)
        paragraphs = [
            (text, [each for each in report.findings if any(is_about(each, x, x["line"], x["path"]) for x in alike)])
            for text, alike in table.paragraphs(shown, style, lines.line, width)
        ]
        pictures = charts.by_finding(launches, style, (width or 100) - _CHART_INDENT)
        launched = [*((text, ()) for text in whole), *paragraphs]
        return evolve(report, launched=launched, charts=pictures, style=style, width=width)

    for output_format, file in options.report:
        report_files.write(cwd, styled(Style(), None), output_format, file, "--report")
    style, width = Style(use_colour(options.color, sys.stdout)), width_of(sys.stdout)
    terminal.write(reports.render(options.output_format, styled(style, width)))
