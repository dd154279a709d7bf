"""Probing: from options to an exit status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint import report as reports
from pallas_lint.cli import FINDINGS, OK, TROUBLE, UsageError, terminal
from pallas_lint.environment import InterpreterError, find_python
from pallas_lint.finding import Finding, LintError, Severity
from pallas_lint.probe import specs
from pallas_lint.probe.client import Worker, WorkerError
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.report import launch_document
from pallas_lint.probe.results import ProbeResult, collect
from pallas_lint.report.style import Style, visible, wants_colour

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


def run(options: argparse.Namespace) -> int:
    """Probe as `options` say, report, and return the exit status. Raises UsageError."""
    cwd = Path.cwd()
    if options.capture:
        return _capture(options, cwd)
    wanted = list(_specs(options.paths, cwd))
    folder = (cwd / wanted[0].file).parent if wanted else cwd
    try:
        python = find_python(folder, options.python)
    except InterpreterError as error:
        raise UsageError(str(error)) from error
    try:
        with Worker(python, cwd) as worker:
            results = [_probed(spec, worker, options, cwd) for spec in wanted]
    except WorkerError as error:
        raise UsageError(str(error)) from error
    return _report(results, options, cwd)


def _probed(spec: specs.Spec, worker: Worker, options: argparse.Namespace, cwd: Path) -> ProbeResult:
    """One function's result; where a compiler crashed, with the operation that it died on."""
    request = _request(spec, options, cwd)
    result = collect(spec, worker.ask(request), options.timeout)
    for at, launch in enumerate(result.launches):
        for stage in launch.stages:
            crash = next((problem for problem in stage.problems if problem["kind"] == "crash"), None)
            if stage.stage == "compile" and crash is not None:
                search = {**request, "bisect": [at, stage.target]}
                crash["culprit"] = collect(spec, worker.ask(search), options.timeout).culprit
    return result


def _capture(options: argparse.Namespace, cwd: Path) -> int:
    from pallas_lint.probe import capture

    try:
        captured = capture.run(options.command, _conditions(options))
    except OSError as error:
        raise UsageError(f"cannot run {options.command[0]}: {error.strerror or error}") from error
    status = _report(captured.results, options, cwd)
    if captured.status and not options.quiet:
        terminal.say(f"the program ended with status {captured.status}")
    if not any(result.launches for result in captured.results) and not options.quiet:
        terminal.say("no launch was seen: the program made none, or it does not run in Python with this environment")
    return status


def _specs(words: list[str], cwd: Path) -> Iterator[specs.Spec]:
    """One spec for `file.py::function ARGUMENT ...`; those of the comments for files. Raises UsageError."""
    try:
        if "::" in words[0]:
            spec = specs.parse_target(words[0], words[1:])
            if not (cwd / spec.file).is_file():
                raise UsageError(f"{spec.file}: no such file")
            yield spec
            return
        for word in words:
            yield from _commented(word, cwd)
    except specs.SpecError as error:
        raise UsageError(str(error)) from error


def _commented(word: str, cwd: Path) -> Iterator[specs.Spec]:
    from pallas_lint.source import Source, SourceError

    try:
        text = Source.read(cwd / word, word).text
    except SourceError as error:
        raise UsageError(f"{word}: {error.message}") from error
    found = list(specs.comments_in(text, word))
    if not found:
        raise UsageError(
            f"{word}: no function has a comment `# pallas-lint: probe(...)`; name one with {word}::function"
        )
    yield from found


def _request(spec: specs.Spec, options: argparse.Namespace, cwd: Path) -> dict[str, object]:
    return {
        "file": str((cwd / spec.file).resolve()),
        "function": spec.function,
        "args": list(spec.arguments),
        "kwargs": dict(spec.keywords),
        **_conditions(options),
    }


def _conditions(options: argparse.Namespace) -> dict[str, object]:
    return {
        "targets": _targets(options),
        "stage": options.stage,
        "reference": options.reference,
        "timeout": options.timeout,
        "memory_limit": options.memory_limit,
    }


def _targets(options: argparse.Namespace) -> list[str]:
    if options.all_targets:
        return ["tpu:v4", "tpu:v5e", "tpu:v5p", "tpu:v6e", "tpu:tpu7x", "triton", "mosaic-gpu"]
    targets: list[str] = options.target
    return targets


def _report(results: list[ProbeResult], options: argparse.Namespace, cwd: Path) -> int:
    lines = _Lines(cwd)
    findings: list[Finding] = []
    errors: list[LintError] = []
    for result in results:
        found, problems = findings_of(result, cwd, lines.line)
        findings += [finding for finding in found if finding not in findings]
        errors += [problem for problem in problems if problem not in errors]
    launches = [launch for result in results for launch in result.launches]
    if options.html:
        from pallas_lint.probe import html

        html.write(Path(options.html), results, findings, lines.line)
    report = reports.Report(
        findings=sorted(findings, key=lambda finding: finding.sort_key),
        errors=errors,
        files=len({result.spec.file for result in results if result.spec is not None}),
        kernels=len({(launch.kernel, str(launch.place)) for launch in launches}),
        launches=[launch_document(launch, cwd) for launch in launches],
        quiet=options.quiet,
        style=Style(wants_colour(options.color, sys.stdout)),
        source_line=lines.line,
    )
    terminal.write(reports.render(options.output_format, report))
    for error in errors:
        where = f"{visible(error.path)}:{error.line}: " if error.line else f"{visible(error.path)}: "
        terminal.plain_say(f"{where}error: {visible(error.message)}\n")
    if errors:
        return TROUBLE
    limit = Severity(options.fail_on).rank
    return FINDINGS if any(finding.severity.rank >= limit for finding in findings) else OK


class _Lines:
    """Source lines for findings and reports, read when asked for."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.texts: dict[str, list[str]] = {}

    def line(self, path: str, number: int) -> str | None:
        from pallas_lint.source import Source, SourceError

        if path not in self.texts:
            try:
                source = Source.read(self.cwd / path, path)
                self.texts[path] = [source.line(at) for at in range(1, source.line_count + 1)]
            except SourceError:
                self.texts[path] = []
        known = self.texts[path]
        return known[number - 1] if 0 < number <= len(known) else None
