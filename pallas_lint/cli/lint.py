"""Linting: from options to an exit status."""

from __future__ import annotations

import contextlib
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint import report as reports
from pallas_lint.cli import caching, report_files, terminal
from pallas_lint.cli.exit import FINDINGS, OK, TROUBLE
from pallas_lint.cli.parser import COMMANDS
from pallas_lint.config import overrides
from pallas_lint.config.flags import UsageError
from pallas_lint.config.settings import SettingsError, SettingsFinder
from pallas_lint.finding import LintError, Severity
from pallas_lint.identity import ById
from pallas_lint.notebooks import MARKDOWN
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.records import evolve, field, frozen
from pallas_lint.report.lines import Lines
from pallas_lint.report.style import Style, can_link, use_colour, visible, visible_file
from pallas_lint.report.wrapping import width_of
from pallas_lint.ruleset import plugins
from pallas_lint.run.project import Discovery, InputFile, Project, concerns_pallas, discover
from pallas_lint.run.runner import RunResult, check_source, combine
from pallas_lint.run.runner import run as run_files
from pallas_lint.text import files
from pallas_lint.text.paths import shown_path
from pallas_lint.text.wording import count_of
from pallas_lint.triage.pipeline import ReportContext, of_report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from pallas_lint.cli.probing import Probing
    from pallas_lint.cli.relinting import Relinter
    from pallas_lint.config.targets import JaxVersions
    from pallas_lint.finding import Finding
    from pallas_lint.run.fixer import FixResult
    from pallas_lint.text.source import Source


@frozen(eq=False, slots=False)
class _LintRun:
    """What was linted and what came of it. `texts` are those not as on disk: standard input, fixed files."""

    options: argparse.Namespace
    cwd: Path
    files: Sequence[InputFile]
    result: RunResult
    errors: Sequence[LintError] = ()
    notes: Sequence[str] = ()
    texts: dict[str, Source] = field(factory=dict)
    fixed: int = 0
    launches: Sequence[dict[str, Any]] = ()  # what the probe saw

    @property
    def all_errors(self) -> list[LintError]:
        return list(dict.fromkeys((*self.errors, *self.result.errors)))

    def fails(self, finding: Finding) -> bool:
        """Whether a finding makes the exit status 1."""
        chosen = Severity(self.options.fail_on) if self.options.fail_on else None
        own = self._limits.get(finding.span.path, Severity.WARNING)
        return finding.severity.rank >= (chosen or own).rank

    @property
    def judged(self) -> dict[str, JaxVersions]:
        """The jax versions for which kernels were judged, by file."""
        verdicts = zip(self.files, self.result.verdicts, strict=False)
        return {file.shown: file.settings.jax for file, verdict in verdicts if verdict.kernels}

    @property
    def all_notes(self) -> list[str]:
        """What the reader must know of the run, and of the versions that kernels were judged for."""
        versions = dict.fromkeys(jax.note for jax in self.judged.values() if jax.note)
        return [*self.notes, *self.result.notes, *versions]

    @cached_property
    def _limits(self) -> dict[str, Severity]:
        return {file.shown: file.settings.fail_on for file in self.files}


def run(options: argparse.Namespace) -> int:
    """Lint with `options`, report, and return the exit status. Raises UsageError."""
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise UsageError("--unsafe-fixes requires --fix or --diff")
    if options.add_suppressions and (options.fix or options.unsafe_fixes or options.write_baseline):
        raise UsageError("--add-suppressions cannot be combined with --fix or --write-baseline")
    if options.show_kernels or options.show_files:
        _check_showing(options)
    for option, given in (("--output-file", options.output_file), ("--report", options.report)):
        if given and (options.diff or options.write_baseline):
            raise UsageError(f"{option} cannot be combined with --diff or --write-baseline")
    if options.stdin_filename and options.paths != ["-"]:
        raise UsageError("--stdin-filename requires the path -")
    if "-" in options.paths and len(options.paths) > 1:
        raise UsageError("- (standard input) cannot be linted together with other paths")
    cwd = Path.cwd()
    try:
        finder = SettingsFinder(overrides.from_options(options), cwd)
        if options.show_files:
            return _show_files(options, finder, cwd)
        if options.paths == ["-"]:
            linted = _lint_stdin(options, finder, cwd)
        else:
            linted = _lint_files(options, finder, cwd)
    except SettingsError as error:
        if error.path is None:
            raise UsageError("; ".join(each.message for each in error.all)) from error
        return _report(_LintRun(options, cwd, (), RunResult(), [each.as_lint_error for each in error.all]))
    if options.show_kernels:
        return _show_kernels(linted)
    if options.probe:
        return _with_probe(linted)
    return _finish(linted)


def _finish(linted: _LintRun, probed: Probing | None = None) -> int:
    options = linted.options
    if options.fix or options.diff or options.add_suppressions:
        return _fix(linted, probed)
    return _report(_reconciled(linted, probed))


def _reconciled(linted: _LintRun, probed: Probing | None) -> _LintRun:
    """The run, reconciled with the probe's findings."""
    if probed is None:
        return linted
    result = evolve(linted.result, findings=tuple(probed.reconciled(linted.result.findings)))
    return evolve(linted, result=result, errors=[*linted.errors, *probed.errors], launches=probed.documents)


def _with_probe(linted: _LintRun) -> int:
    """Finish the run with a probe of functions that have a probe comment."""
    from pallas_lint.cli.probing import probing
    from pallas_lint.probe.session import ProbeOptions

    targets = [str(target) for file in linted.files for target in file.settings.target]
    settings = {file.shown: file.settings for file in linted.files}
    own = SettingsFinder(overrides.from_options(linted.options), linted.cwd).for_folder(linted.cwd).probe
    conditions, python = ProbeOptions.of(own, tuple(dict.fromkeys(targets))), linted.options.python or own.get("python")
    unsaved = linted.texts.values()
    with probing(_sources(linted), settings, linted.cwd, conditions, python, unsaved) as probed:
        return _finish(linted, probed)


def _sources(linted: _LintRun) -> Iterator[Source]:
    """The modules of a run that can be read; those that cannot are reported already."""
    from pallas_lint.notebooks import reading
    from pallas_lint.text.source import SourceError

    for file in linted.files:
        if file.shown.endswith((reading.SUFFIX, *MARKDOWN)):
            continue  # no module that the probe could import
        with contextlib.suppress(SourceError):
            yield linted.texts.get(file.shown) or reading.read(file.path, file.shown)


def _lint_files(options: argparse.Namespace, finder: SettingsFinder, cwd: Path) -> _LintRun:
    found = _discovered(options, finder, cwd)
    # What is to be changed is judged afresh: no edit is ever taken from the cache.
    changing = bool(options.fix or options.diff or options.add_suppressions)
    cache = caching.Choice(None)
    if not options.no_cache:
        settings = (file.settings for file in found.files)
        cache = caching.choose(cwd, options.cache_dir, finder.named, settings)
    result = run_files(found.files, cwd=cwd, jobs=options.jobs, cache_folder=cache.folder, afresh=changing)
    return _LintRun(options, cwd, found.files, result, _with_hints(found), (*found.notes, *cache.notes))


def _discovered(options: argparse.Namespace, finder: SettingsFinder, cwd: Path) -> Discovery:
    exclude = [pattern for patterns in options.exclude for pattern in patterns]
    return discover(options.paths or ["."], finder, cwd=cwd, exclude=exclude, force_exclude=options.force_exclude)


def _show_files(options: argparse.Namespace, finder: SettingsFinder, cwd: Path) -> int:
    """Print which files would be linted, and return the exit status."""
    found = _discovered(options, finder, cwd)
    linted = _LintRun(options, cwd, found.files, RunResult(), _with_hints(found))
    terminal.write(f"{visible_file(file.shown)}\n" for file in found.files)
    _print_errors(linted)
    return TROUBLE if linted.all_errors else OK


def _with_hints(found: Discovery) -> list[LintError]:
    """The errors, with a hint where a missing path looks like a command, and rules that cannot be used."""
    errors = [LintError("", f"rule of {each.package}: {each.problem}") for each in plugins.installed() if each.problem]
    for error in found.errors:
        import difflib

        near = difflib.get_close_matches(error.path, COMMANDS, n=1, cutoff=0.75)
        near += ["rule"] if error.path == "explain" else []  # what other linters call it
        if error.message == "no such file or folder" and error.path in ("check", "lint"):
            error = evolve(error, message=f"{error.message} (linting needs no command: leave `{error.path}` out)")
        elif error.message == "no such file or folder" and near:
            error = evolve(error, message=f"{error.message} (there is a command `{near[0]}`)")
        errors.append(error)
    return errors


def _lint_stdin(options: argparse.Namespace, finder: SettingsFinder, cwd: Path) -> _LintRun:
    from pallas_lint.notebooks import reading
    from pallas_lint.text.source import SourceError

    name = options.stdin_filename or "<stdin>"
    path = cwd / name
    shown = shown_path(path, cwd)
    try:
        data = terminal.read_bytes(files.MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror or error}") from error
    file = InputFile(path, shown, finder.for_folder(path.parent))
    errors = [file.settings.jax.problem] if file.settings.jax.problem is not None else []
    try:
        if len(data) > files.MAX_BYTES:
            raise SourceError(f"the file is larger than {format_bytes(files.MAX_BYTES)}")
        source = reading.from_bytes(data, shown)
    except SourceError as error:
        errors.append(LintError(shown, error.message, error.line))
        return _LintRun(options, cwd, (file,), RunResult(files=1), errors)
    result = RunResult(files=1)
    if concerns_pallas(data):
        result = combine([check_source(source, file.settings, Project(cwd, {path: source}))])
    return _LintRun(options, cwd, (file,), result, errors, texts={shown: source})


def _fix(linted: _LintRun, probed: Probing | None) -> int:
    """Fix, write or show the changes, and report what is left."""
    from pallas_lint.run import fixer

    options = linted.options
    before = _reconciled(linted, probed)
    outcome, relinter = _fixed(before, probed)
    errors = [*linted.errors, *outcome.problems]
    on_stdin = options.paths == ["-"]
    if options.diff:
        return _show_diff(evolve(before, errors=[*before.errors, *outcome.problems]), outcome)
    written = set(outcome.changed)
    if not on_stdin:
        written, problems = fixer.write(outcome.changed, outcome.groups, linted.cwd)
        errors += problems
        lost = set(outcome.changed) - written
        if lost:
            # What could not be written is reported as it still is.
            outcome.sources.update((path, outcome.changed[path][0]) for path in lost)
            relinter.relint(outcome.sources, frozenset(lost))
    texts = {**linted.texts, **outcome.sources}
    fixed = sum(outcome.fixed.values()) if written else 0
    after = evolve(linted, result=relinter.result(), errors=errors, texts=texts, fixed=fixed)
    if probed is not None:
        probed.probe_changed({path: outcome.sources[path] for path in written})
        after = _reconciled(after, probed)
    if options.add_suppressions:
        after = evolve(after, fixed=0, notes=[*linted.notes, f"{count_of(fixed, 'finding')} silenced by a comment"])
    if on_stdin:
        source = outcome.sources.get(linted.files[0].shown) or texts.get(linted.files[0].shown)
        if source is not None:
            terminal.write_bytes(source.data)
        return _report(after, to_stderr=True)
    return _report(after)


def _fixed(linted: _LintRun, probed: Probing | None) -> tuple[FixResult, Relinter]:
    from pallas_lint.cli.relinting import Relinter
    from pallas_lint.notebooks import reading
    from pallas_lint.run import fixer
    from pallas_lint.text.source import SourceError

    inputs = {file.shown: file for file in linted.files}
    sources: dict[str, Source] = {}
    adding = linted.options.add_suppressions
    for finding in linted.result.findings:
        for edits in [(finding,)] if adding else [fix.edits for fix in finding.fixes]:
            for path in {edit.span.path for edit in edits}:
                # Only what was named is ever changed, not a helper that lies elsewhere.
                if path not in inputs or path in sources:
                    continue
                try:
                    sources[path] = linted.texts.get(path) or reading.read(inputs[path].path, path)
                except SourceError:
                    continue  # reported already
    relinter = Relinter(linted.cwd, inputs, {verdict.path: verdict for verdict in linted.result.verdicts})

    def relint(changing: Mapping[str, Source], changed: frozenset[str]) -> list[Finding]:
        found = relinter.relint(changing, changed)
        return _silencing(linted, changing, found) if adding else found

    outcome = fixer.fix(
        sources,
        _silencing(linted, sources, linted.result.findings) if adding else linted.result.findings,
        relint,
        unsafe=linted.options.unsafe_fixes,
        difference=probed.difference if probed is not None else None,
    )
    return outcome, relinter


def _silencing(linted: _LintRun, sources: Mapping[str, Source], findings: Iterable[Finding]) -> list[Finding]:
    """The findings that count, each with the comment that silences it as its only fix."""
    from pallas_lint.triage.silencing import silencer

    counting = [finding for finding in findings if linted.fails(finding)]
    comments = [silencer(sources[f.span.path], f) if f.span.path in sources else None for f in counting]
    silenced = [evolve(f, fixes=(fix,) if fix else ()) for f, fix in zip(counting, comments, strict=True)]
    return [sources[f.span.path].with_cell_positions(f) if f.span.path in sources else f for f in silenced]


def _show_diff(linted: _LintRun, outcome: FixResult) -> int:
    from pallas_lint.run import fixer

    style = Style(use_colour(linted.options.color, sys.stdout))
    lines: list[str] = []
    for path in sorted(outcome.changed):
        for line in fixer.unified_diff(*outcome.changed[path], visible_file):
            text = line.removesuffix("\n")
            if line.startswith("+") and not line.startswith("+++"):
                text = style.added(text)
            elif line.startswith("-") and not line.startswith("---"):
                text = style.removed(text)
            lines.append(text + "\n")
    terminal.write(terminal.without_commands(lines))
    _print_errors(linted)
    count = sum(outcome.fixed.values())
    if not linted.options.quiet:
        verb = "silence" if linted.options.add_suppressions else "fix"
        terminal.print_message(f"would {verb} {count_of(count, 'finding')} in {count_of(len(outcome.changed), 'file')}")
    if linted.all_errors or linted.result.errors:
        return TROUBLE
    return FINDINGS if outcome.changed and not linted.options.exit_zero else OK


def _report(linted: _LintRun, *, to_stderr: bool = False) -> int:
    """Print the report and return the exit status."""
    options, lines = linted.options, Lines(linted.cwd, linted.texts)
    if options.write_baseline:
        return _write_baseline(linted, lines)
    linted, found = _reported(linted, lines)
    findings = [lines.with_cells(finding) for finding in found]
    stream = sys.stderr if to_stderr else sys.stdout
    notes, judged = linted.all_notes, linted.judged
    if options.verbose:
        notes += _notes_of(linted)
    report = reports.Report(
        findings=findings,
        errors=linted.all_errors,
        files=linted.result.files,
        kernels=linted.result.kernels,
        seen=linted.result.launches,
        jax=list(dict.fromkeys(f"jax {jax.text} ({jax.source.removeprefix('from ')})" for jax in judged.values())),
        launches=linted.launches,
        fixed=linted.fixed,
        assumed=reports.Assumed.of(judged),
        notes=notes,
        quiet=options.quiet,
        style=Style(use_colour(options.color, stream), can_link(stream)),
        width=width_of(stream),
        source_line=lines.line,
        statistics=options.statistics,
    )
    for output_format, file in options.report:
        report_files.write(linted.cwd, report, output_format, file, "--report")
    if options.output_file is not None:
        report_files.write(linted.cwd, report, options.output_format, options.output_file, "--output-file")
    elif to_stderr:
        terminal.print_plain("".join(reports.render(options.output_format, report)))
    else:
        terminal.write(reports.render(options.output_format, report))
    _print_errors(linted)
    if report.errors:
        return TROUBLE
    return FINDINGS if any(linted.fails(finding) for finding in findings) and not options.exit_zero else OK


def _check_showing(options: argparse.Namespace) -> None:
    """Raises UsageError for what cannot be combined with --show-kernels and --show-files."""
    from pallas_lint.report import kernels

    showing = "--show-files" if options.show_files else "--show-kernels"
    given = {
        "--fix": options.fix,
        "--diff": options.diff,
        "--add-suppressions": options.add_suppressions,
        "--write-baseline": options.write_baseline,
        "--statistics": options.statistics,
        "--probe": options.probe,
        "--output-file": options.output_file is not None,
        "--report": bool(options.report),
        "--show-kernels": options.show_files and options.show_kernels,
        "the path -": options.show_files and options.paths == ["-"],
    }
    for option in (option for option, is_given in given.items() if is_given):
        raise UsageError(f"{showing} cannot be combined with {option}")
    if options.show_kernels and options.output_format not in kernels.FORMATS:
        raise UsageError(f"--show-kernels has the formats {', '.join(kernels.FORMATS)}")


def _show_kernels(linted: _LintRun) -> int:
    """Print a summary of each launch, whatever is found there, and return the exit status."""
    from pallas_lint.report import kernels

    options = linted.options
    report = reports.Report(
        errors=linted.all_errors,
        files=linted.result.files,
        seen=linted.result.launches,
        notes=linted.all_notes,
        quiet=options.quiet,
        style=Style(use_colour(options.color, sys.stdout)),
    )
    terminal.write(kernels.render(options.output_format, report))
    _print_errors(linted)
    return TROUBLE if report.errors else OK


def _reported(linted: _LintRun, lines: Lines) -> tuple[_LintRun, list[Finding]]:
    """The run with notes on baselines, and the findings that are shown."""
    notes: list[str] = []
    errors: list[LintError] = []

    def without_known(findings: Sequence[Finding]) -> Sequence[Finding]:
        named = linted.options.baseline
        if named is None and not any(file.settings.baseline for file in linted.files):
            return findings
        from pallas_lint.cli import baselines

        left = baselines.BaselineRun(linted.files, findings, linted.cwd, named, lines.line).without_known()
        notes.extend(left.notes)
        errors.extend(left.errors)
        return left.findings

    jax_of = {file.shown: file.settings.jax for file in linted.files}
    found = of_report(linted.result.findings, ReportContext(jax_of, without_known))
    return evolve(linted, errors=[*linted.errors, *errors], notes=[*linted.notes, *notes]), found


def _write_baseline(linted: _LintRun, lines: Lines) -> int:
    from pallas_lint.cli import baselines

    findings, named = linted.result.findings, linted.options.baseline
    notes, errors = baselines.BaselineRun(linted.files, findings, linted.cwd, named, lines.line).write()
    for note in notes:
        terminal.print_message(note)
    linted = evolve(linted, errors=[*linted.errors, *errors])
    _print_errors(linted)
    return TROUBLE if linted.all_errors else OK


def _notes_of(linted: _LintRun) -> list[str]:
    """For -v: which settings and which jax version were used, and which known calls were not looked at."""
    distinct = {ById(file.settings): file.settings for file in linted.files}.values()
    left_out = [
        f"{visible_file(path)}: {count_of(more, 'known call')} of its functions left out, as others are more unlike"
        for path, more in linted.result.left_out.items()
    ]
    return left_out + [
        f"settings of {shown_path(s.config_file, linted.cwd) if s.config_file else 'no file'}, "
        f"{len(s.enabled)} rules, jax {s.jax.text} ({s.jax.source})"
        for s in distinct
    ]


def _print_errors(linted: _LintRun) -> None:
    """Errors on standard error, and with -v the tracebacks of internal ones."""
    if linted.options.verbose:
        for text in linted.result.tracebacks:
            terminal.print_traceback(text)
    for error in linted.all_errors:
        where = (
            f"{visible_file(error.path)}:{error.line}: "
            if error.line
            else f"{visible_file(error.path)}: "
            if error.path
            else ""
        )
        terminal.print_plain(f"{where}error: {visible(error.message)}\n")
