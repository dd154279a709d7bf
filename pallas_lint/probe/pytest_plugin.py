"""`pytest --pallas-lint`: every launch that the tests make is examined when they are through.

The launches are noted in each process of pytest's (those of pytest-xdist too), run in interpret mode where their device
is missing, and examined at the end of its session. Findings make a run fail whose tests pass.

With `--pallas-lint-record` the calls that led to launches are written to the shapes file instead.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pallas_lint.config.settings import Settings
    from pallas_lint.probe.event_cache import LaunchCache
    from pallas_lint.probe.recorded import Recording
    from pallas_lint.probe.results import ProbeResult

_FOLDER = "PALLAS_LINT_CAPTURE"
_RECORD = "--pallas-lint-record"
_RECORDINGS = {
    "replace": "... and nothing that it had before",
    "values": "... and floats and any short strings",
    "stub": "... of tests whose launches are not run: they return zeros",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pallas-lint", "Pallas kernels")
    group.addoption("--pallas-lint", action="store_true", help="examine every Pallas launch that the tests make")
    group.addoption(
        "--pallas-lint-target",
        action="append",
        default=[],
        metavar="T",
        help="tpu[:v5e], triton, mosaic-gpu; repeatable",
    )
    group.addoption(
        "--pallas-lint-no-cache", action="store_true", help="examine again what was examined in earlier runs"
    )
    group.addoption("--pallas-lint-html", metavar="FILE", help="write a report with pictures")
    group.addoption(
        _RECORD,
        action="store_true",
        help="examine nothing, but have the shapes file hold the argument types of the calls that lead to launches",
    )
    for name, text in _RECORDINGS.items():
        group.addoption(f"{_RECORD}-{name}", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--pallas-lint") or _records(config):
        config.pluginmanager.register(_Examiner(config), "pallas-lint-examiner")


def _records(config: pytest.Config) -> bool:
    return any(config.getoption(name) for name in (_RECORD, *(f"{_RECORD}-{each}" for each in _RECORDINGS)))


class _Examiner:
    """The capture of this process, and in the main process the report on all of them."""

    def __init__(self, config: pytest.Config) -> None:
        from pallas_lint.config.settings import SettingsError, SettingsFinder
        from pallas_lint.config.targets import TargetError, parse_target
        from pallas_lint.probe import capture
        from pallas_lint.probe.session import ProbeOptions

        self.config = config
        targets = config.getoption("--pallas-lint-target")
        try:
            for target in targets:
                parse_target(target)
            self.finder = SettingsFinder(cwd=config.rootpath)
            settings = self.finder.for_folder(config.rootpath)
        except TargetError as error:
            raise pytest.UsageError(f"--pallas-lint-target: {error}") from error
        except SettingsError as error:
            raise pytest.UsageError(str(error)) from error
        self.settings = settings
        self.conditions = ProbeOptions.of(settings.probe, targets)
        self.recording: Recording | None = None
        self.recorded: str | None = None
        if _records(config):
            from pallas_lint.probe.recorded import RecordError, Recording
            from pallas_lint.records import evolve

            chosen = {name: bool(config.getoption(f"{_RECORD}-{name}")) for name in _RECORDINGS}
            try:
                self.recording = Recording.of(config.rootpath, settings, **chosen)
            except RecordError as error:
                raise pytest.UsageError(str(error)) from error
            self.conditions = evolve(self.conditions, stage="trace")
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        if _FOLDER not in os.environ:  # else a process of pytest-xdist, or pytest under `pallas-lint probe --capture`
            self.folder = tempfile.TemporaryDirectory(prefix="pallas-lint-")
            capture.write_request(Path(self.folder.name), self.conditions.request(), self.recording)
            os.environ[_FOLDER] = self.folder.name
        self.capture = capture.start_here(os.environ[_FOLDER])
        self.kept = self._kept()
        if self.kept is not None:
            self.capture.known = self.kept.find
        self.results: list[ProbeResult] = []
        self.failing = 0  # findings for which the session fails

    def _kept(self) -> LaunchCache | None:
        """What is known from earlier runs, unless launches are only recorded or it is not wanted."""
        if self.config.getoption("--pallas-lint-no-cache") or _records(self.config):
            return None
        from pallas_lint.probe.event_cache import LaunchCache
        from pallas_lint.run.cache_folder import own_cache

        folder = own_cache(self.config.rootpath)
        return LaunchCache(folder, self.conditions.request()) if folder is not None else None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.capture.finish()
        if self.folder is None:
            return
        from pallas_lint.probe import capture

        os.environ.pop(_FOLDER, None)
        if self.recording is not None:
            self._record(self.recording, session, Path(self.folder.name))
        self.results = capture.read_results(Path(self.folder.name), self.conditions.timeout)
        self.folder.cleanup()
        if self.kept is not None:
            for launch in (launch for result in self.results for launch in result.launches):
                self.kept.keep(launch)
        findings, _, _ = self._findings()
        self.failing = sum(each.severity.rank >= self._settings_of(each.span.path).fail_on.rank for each in findings)
        if session.exitstatus == pytest.ExitCode.OK and self.failing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _record(self, recording: Recording, session: pytest.Session, folder: Path) -> None:
        from pallas_lint.probe.recorded import RecordError

        try:
            self.recorded = recording.finish(folder, Path.cwd()).summary
        except RecordError as error:
            self.recorded = str(error)
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.recorded is not None:
            terminalreporter.section("Pallas calls")
            terminalreporter.write_line(self.recorded)
        if not self.results:
            return
        from pallas_lint.probe.results import judged_for
        from pallas_lint.report import Report, render
        from pallas_lint.report.style import Style
        from pallas_lint.report.wrapping import width_of
        from pallas_lint.text.wording import count_of

        findings, errors, lines = self._findings()
        launches = [launch for result in self.results for launch in result.launches]
        html = self.config.getoption("--pallas-lint-html")
        if html:
            from pallas_lint.probe.page.html import write

            try:
                write(Path(html), self.results, findings, lines.line)
            except OSError as trouble:
                terminalreporter.write_line(f"{html}: the report cannot be written: {trouble.strerror or trouble}")
        report = Report(
            findings=findings,
            errors=errors,
            files=len({launch.place["file"] for launch in launches if launch.place is not None}),
            kernels=len({launch.kernel for launch in launches}),
            jax=judged_for(self.results),
            style=Style(terminalreporter.isatty),
            width=terminalreporter._tw.fullwidth if terminalreporter.isatty else width_of(sys.stdout),
            source_line=lines.line,
        )
        terminalreporter.section("Pallas launches")
        terminalreporter.write_line(
            f"{count_of(len(launches), 'launch')} of {count_of(report.kernels, 'kernel')} examined"
        )
        for piece in render("full", report):
            terminalreporter.write(piece)
        for error in errors:
            terminalreporter.write_line(f"{error.path}: {error.message}")
        if self.failing:
            at_least = self.settings.fail_on.value
            message = (
                f"{count_of(self.failing, 'finding')} at or above {at_least} (`fail-on`): the exit status is not 0"
            )
            terminalreporter.write_line(message, red=True)

    def _findings(self) -> tuple[list[Any], list[Any], Any]:
        """The findings that settings and comments leave, what went wrong, and the text of files."""
        from pallas_lint.probe import reconcile
        from pallas_lint.probe.findings import all_findings
        from pallas_lint.probe.known_defects import known_defects
        from pallas_lint.report.lines import Lines

        cwd = Path.cwd()
        lines = Lines(cwd)
        found, errors = all_findings(self.results, cwd, lines.line)
        found += known_defects(self.results, lines)
        findings, _ = reconcile.wanted(found, self._settings_of, lines.source)
        return findings, errors, lines

    def _settings_of(self, path: str) -> Settings:
        """The settings for a file; those of the tests where its own cannot be read, which linting reports."""
        from pallas_lint.config.settings import SettingsError

        try:
            return self.finder.for_folder((Path.cwd() / path).parent)
        except SettingsError:
            return self.settings
