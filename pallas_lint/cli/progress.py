"""Progress of a probe on a terminal: a table that comes and goes; nothing where the output is no terminal."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.live import Live
    from rich.spinner import Spinner

    from pallas_lint.probe.results import ProbeResult


@define
class TerminalProgress:
    """Shows status lines, where there is a terminal to show them on."""

    cwd: Path
    _live: Live | None = None
    _spinner: Spinner | None = None
    _known: dict[str, list[str]] = field(factory=dict, init=False)  # lines by function

    def show_status(self, doing: str) -> None:
        """What is being done now."""
        if self._spinner is not None:
            from rich.markup import escape

            self._spinner.update(text=escape(doing))
            self._update()

    def show(self, result: ProbeResult) -> None:
        """The results of a function's launches so far."""
        if self._live is None or result.spec is None:
            return
        from pallas_lint.probe.report import launch_document
        from pallas_lint.report import stages
        from pallas_lint.report.style import Style

        style, documents = Style(colour=True), [launch_document(launch, self.cwd) for launch in result.launches]
        self._known[f"{result.spec.file}::{result.spec.function}"] = [
            line for each in documents for line in (stages.title(each, style), *stages.lines(each, style))
        ]
        self._update()

    def _update(self) -> None:
        if self._live is None or self._spinner is None:
            return
        from rich.console import Group
        from rich.text import Text

        lines = [Text.from_ansi(line) for known in self._known.values() for line in known]
        room = max(self._live.console.height - 2, 0)
        self._live.update(Group(*lines[max(len(lines) - room, 0) :], self._spinner), refresh=True)


@contextlib.contextmanager
def shown(cwd: Path, *, quiet: bool = False) -> Iterator[TerminalProgress]:
    """Context in which a terminal shows what is being done."""
    if quiet or not sys.stderr.isatty():
        yield TerminalProgress(cwd)
        return
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    with Live(console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False) as live:
        progress = TerminalProgress(cwd, live, Spinner("dots"))
        progress.show_status("starting")
        yield progress
