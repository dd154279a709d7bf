"""`--baseline` and `--write-baseline`: which findings are known, and writing down those that are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.config.bounds import bounds
from pallas_lint.config.flags import UsageError
from pallas_lint.finding import LintError
from pallas_lint.records import frozen
from pallas_lint.text import paths
from pallas_lint.text.paths import shown_path
from pallas_lint.text.wording import count_of
from pallas_lint.triage.baseline import Baseline, BaselineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pallas_lint.finding import Finding
    from pallas_lint.report.lines import SourceLine
    from pallas_lint.run.project import InputFile


@frozen
class BaselineResult:
    """The findings that a baseline does not hide, and notes on it."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    errors: tuple[LintError, ...] = ()


@frozen(eq=False)
class BaselineRun:
    """The findings of a run on `files`, and the baseline that the command line names."""

    files: Sequence[InputFile]
    findings: Sequence[Finding]
    cwd: Path
    named: str | None
    source_line: SourceLine

    def without_known(self) -> BaselineResult:
        """The new findings. A baseline that cannot be read is an error of the run, and hides nothing."""
        left: list[Finding] = []
        notes: list[str] = []
        errors: list[LintError] = []
        for file, (inputs, findings) in self._by_baseline().items():
            if file is None:
                left += findings
                continue
            shown = shown_path(file, self.cwd)
            try:
                baseline = Baseline.read(file)
            except BaselineError as error:
                errors.append(LintError(shown, error.message, error.line))
                left += findings
                continue
            new, known = baseline.split(findings, self.cwd, self.source_line)
            left += new
            if known:
                notes.append(f"{count_of(known, 'finding')} known from {shown} not shown")
            gone = baseline.gone(findings, inputs, self.cwd, self.source_line)
            if gone:
                notes.append(f"{count_of(gone, 'finding')} of {shown} no longer there; --write-baseline drops them")
        return BaselineResult(tuple(sorted(left, key=lambda finding: finding.sort_key)), tuple(notes), tuple(errors))

    def write(self) -> tuple[list[str], list[LintError]]:
        """Write what was found into the baselines; notes and errors. Raises UsageError where none is named."""
        notes: list[str] = []
        errors: list[LintError] = []
        for file, (inputs, findings) in self._by_baseline().items():
            if file is None:
                raise UsageError("--write-baseline requires --baseline FILE or the setting `baseline`")
            shown = shown_path(file, self.cwd)
            try:
                before = Baseline.read(file) if paths.exists(file) else Baseline(file)
                before.updated(findings, inputs, self.cwd, self.source_line).write(self._bounds_of(file))
                notes.append(f"wrote {count_of(len(findings), 'finding')} to {shown}")
            except BaselineError as error:
                errors.append(LintError(shown, error.message, error.line))
        return notes, errors

    def _bounds_of(self, file: Path) -> Path | None:
        """The folder that a baseline named by settings has to lie in; None for one that the command line names."""
        roots = [each.settings.root for each in self.files if not self.named and _configured(each) == file]
        return bounds(roots[0]) if roots else None

    def _by_baseline(self) -> dict[Path | None, tuple[list[str], list[Finding]]]:
        """The files linted and the findings, by the baseline that counts for them."""
        default = self.cwd / self.named if self.named else None
        places = {file.shown: default or _configured(file) for file in self.files}
        groups: dict[Path | None, tuple[list[str], list[Finding]]] = {}
        for shown, place in places.items():
            groups.setdefault(place, ([], []))[0].append(shown)
        # What lies in a helper that is not linted itself belongs to the run's baseline, where there is but one.
        elsewhere = default or (next(iter(groups)) if len(groups) == 1 else None)
        for finding in self.findings:
            groups.setdefault(places.get(finding.span.path, elsewhere), ([], []))[1].append(finding)
        return groups


def _configured(file: InputFile) -> Path | None:
    return file.settings.root / file.settings.baseline if file.settings.baseline else None
