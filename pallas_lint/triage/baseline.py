"""Baselines: the findings that a project has today, so that only new ones are reported."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from pallas_lint import __version__
from pallas_lint.records import field, frozen
from pallas_lint.text import files
from pallas_lint.text.paths import exists
from pallas_lint.triage.fingerprints import fingerprints

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.finding import Finding
    from pallas_lint.report.lines import SourceLine

VERSION = 1


class BaselineError(Exception):
    """The file is not a baseline, or cannot be read or written. `message` is one clear sentence."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@frozen
class Baseline:
    """Known findings by fingerprint. Paths in it are relative to the folder of `file`, with forward slashes."""

    file: Path
    entries: Mapping[str, Mapping[str, str]] = field(factory=dict)

    @classmethod
    def read(cls, file: Path) -> Baseline:
        """Raises BaselineError."""
        try:
            document = json.loads(files.read(file))
        except OSError as error:
            hint = " (--write-baseline makes it)" if isinstance(error, FileNotFoundError) else ""
            raise BaselineError(f"cannot read the baseline: {error.strerror or error}{hint}") from error
        except ValueError as error:
            raise BaselineError("the baseline is not JSON", getattr(error, "lineno", None)) from error
        except RecursionError as error:
            raise BaselineError("the baseline is not JSON of ours: it is nested too deeply") from error
        try:
            if document["version"] != VERSION:
                raise BaselineError(f"the baseline has another version: this pallas-lint reads version {VERSION}")
            return cls(file, {str(each["fingerprint"]): _entry(each) for each in document["findings"]})
        except (KeyError, TypeError) as error:
            raise BaselineError("the file is not a baseline of pallas-lint: write one with --write-baseline") from error

    def split(self, findings: Sequence[Finding], cwd: Path, source_line: SourceLine) -> tuple[list[Finding], int]:
        """The findings that are not in it, and how many are."""
        new = [finding for finding, known in self._known(findings, cwd, source_line) if known not in self.entries]
        return new, len(findings) - len(new)

    def gone(
        self, findings: Sequence[Finding], linted: Collection[str], cwd: Path,
        source_line: SourceLine,
    ) -> int:  # fmt: skip
        """How many of its entries for the files `linted` no finding answers to."""
        found = {known for _, known in self._known(findings, cwd, source_line)}
        paths = {self._path(cwd / path) for path in linted}
        return sum(known not in found and entry["path"] in paths for known, entry in self.entries.items())

    def updated(
        self, findings: Sequence[Finding], linted: Collection[str], cwd: Path,
        source_line: SourceLine,
    ) -> Baseline:  # fmt: skip
        """The baseline with the `findings` of the files `linted`; entries of other files that still exist stay."""
        paths = {self._path(cwd / path) for path in linted}
        kept = {
            known: entry
            for known, entry in self.entries.items()
            if entry["path"] not in paths and exists(self.file.parent / entry["path"])
        }
        found = {
            known: {
                "path": self._path(cwd / finding.span.path),
                "code": finding.code,
                "name": finding.name,
                "message": finding.message,
            }
            for finding, known in self._known(findings, cwd, source_line)
        }
        return Baseline(self.file, {**kept, **found})

    def write(self, inside: Path | None) -> None:
        """One finding a line, so that versions of it can be compared; `inside` as in `files.draft`.

        Raises BaselineError.
        """
        ordered = sorted(self.entries.items(), key=lambda item: (item[1]["path"], item[1]["code"], item[0]))
        rows = [json.dumps({**entry, "fingerprint": known}) for known, entry in ordered]
        lines = ",\n".join(f"  {row}" for row in rows)
        body = f"[\n{lines}\n ]" if rows else "[]"
        text = f'{{\n "version": {VERSION},\n "tool": "{__version__}",\n "findings": {body}\n}}\n'
        try:
            files.write(self.file, text.encode(), inside)
        except OSError as error:
            raise BaselineError(f"cannot write the baseline: {error.strerror or error}") from error

    def _known(self, findings: Sequence[Finding], cwd: Path, source_line: SourceLine) -> list[tuple[Finding, str]]:
        return list(fingerprints(findings, source_line, lambda path: self._path(cwd / path)))

    def _path(self, path: Path) -> str:
        return os.path.relpath(path, self.file.parent).replace(os.sep, "/")


def _entry(given: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(given[key]) for key in ("path", "code", "name", "message")}
