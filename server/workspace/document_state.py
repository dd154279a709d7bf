"""State of one version of an open document: its text, its analysis and its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.workspace.client_settings import ClientSettings

from pallas_lint.finding import FileResult
from pallas_lint.records import evolve, field, frozen
from pallas_lint.run.fixer import SYNTAX_ERROR
from pallas_lint.text.difference import common_end, common_start
from pallas_lint.triage import suppressions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.config.settings import Settings, SettingsError
    from pallas_lint.finding import Finding
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.lint import FileAnalysis
    from pallas_lint.probe.stored_runs import StoredRun
    from pallas_lint.text.source import Source


@frozen
class CallSnapshot:
    """The calls from other files that a verdict has: which, the files that they depend on, whether more may come."""

    known_calls: tuple[KnownCall, ...] = ()
    rests_on: frozenset[str] = frozenset()
    waits: bool = False


@frozen
class DocumentState:
    """One version of a document with its verdict. `problem`: why there is none."""

    uri: str
    version: int | None
    source: Source
    settings: Settings | None
    file_analysis: FileAnalysis | None = None
    problem: SettingsError | str | None = None
    remark: str | None = None  # why it was not even tried
    crash: str | None = None  # where the engine or a rule failed
    client: ClientSettings = field(factory=ClientSettings)
    calls: CallSnapshot = field(factory=CallSnapshot)
    probed: tuple[StoredRun, ...] = ()  # what was probed and still holds
    probed_before: tuple[StoredRun, ...] = ()  # what was probed of functions whose code has changed since
    probe_findings: tuple[Finding, ...] = ()  # theirs; among the verdict's, too
    probe_rests_on: frozenset[str] = frozenset()  # other files that decide on what still holds
    picked: Mapping[str, KnownCall] = field(factory=dict)  # by function: the known call that the user has picked
    before: Source | None = None  # the text before the last edit: what was typed there may be half written

    @property
    def has_analysis(self) -> bool:
        """Whether the text was analysed: kernels can be in it, and nothing failed."""
        return self.file_analysis is not None and self.file_analysis.analysis is not None

    @property
    def analysis(self) -> Analysis:
        """The analysis of a text that has one."""
        assert self.file_analysis is not None and self.file_analysis.analysis is not None
        return self.file_analysis.analysis

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that the client's settings show."""
        if self.file_analysis is None or not self.client.enable:
            return ()
        found = self.file_analysis.result.findings
        if self.before is not None and any(each.code == suppressions.CODE for each in found):
            line = self._edited_line(self.before)
            if suppressions.is_half_written(self.source.line(line)):  # its user is still typing it
                found = tuple(each for each in found if (each.code, each.span.start.line) != (suppressions.CODE, line))
        return found if self.client.show_syntax_errors else tuple(each for each in found if each.code != SYNTAX_ERROR)

    def _edited_line(self, before: Source) -> int:
        """The line on which the last edit ended."""
        old, new = before.text, self.source.text
        most = min(len(old), len(new))
        above = common_start(old, new, most)
        return self.source.position(len(new) - common_end(old, new, most - above)).line

    @property
    def half_written(self) -> bool:
        """Whether a piece of it does not parse: facts about kernels leave out those in it."""
        found = self.file_analysis.result.findings if self.file_analysis is not None else ()
        return any(each.code == SYNTAX_ERROR for each in found)

    @property
    def rests_on(self) -> frozenset[str]:
        """The other files that the verdict rests on."""
        return (self.probe_rests_on | self.calls.rests_on).union(
            self.file_analysis.result.dependencies if self.file_analysis is not None else ()
        )

    @property
    def verdict(self) -> FileResult:
        """The result of the check, with the findings that the client's settings show."""
        if self.file_analysis is None:
            return FileResult(self.source.path)
        return evolve(self.file_analysis.result, findings=self.findings)
