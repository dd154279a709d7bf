"""The findings of the whole workspace: when a run over it is due, and what becomes of its results."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from pallas_lint.server.protocol.progress import Progress

from pallas_lint.config.settings import Overrides
from pallas_lint.finding import FileResult, LintError
from pallas_lint.records import evolve, fields
from pallas_lint.run.cache import decode, launch_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.folders import Folder

    from pallas_lint.finding import Finding
    from pallas_lint.launch_summary import LaunchSummary

_QUIET = 0.5  # seconds without news before a run starts by itself
# The search path is that of this process, whatever lies in the folder that the server was started in.
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from pallas_lint.server.reporting.folder_run import main; main()"
)


class WorkspaceLinter:
    """Runs over the folders whose findings the client shows in full, or once on request."""

    def __init__(self, server: PallasServer) -> None:
        self._server = server
        self._requested: set[Path] = set()  # folders that a command has looked at: their findings are kept up to date
        self._launches: dict[Path, list[LaunchSummary]] = {}  # by folder: those of the last run over it
        self._due: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def request(self, *, again: bool = False) -> None:
        """Settings have changed, or (`again`) files have: run over the folders that are to be shown, after a while.

        Findings of folders that are no longer shown are removed.
        """
        always = [f for f in self._server.folders if f.client.enable and f.client.workspace_diagnostics == "on"]
        requested = [
            f for f in self._server.folders if f.client.enable and f.path in self._requested and f not in always
        ]
        for folder in self._server.folders:
            if folder not in (*always, *requested):
                self._server.reporter.workspace_linted(folder.path, ())
                self._launches.pop(folder.path, None)
        if self._due is not None:
            self._due.cancel()
        wanted = [*always, *requested] if again else always
        self._due = asyncio.get_running_loop().call_later(_QUIET, self._start, wanted) if wanted else None

    def _start(self, wanted: Sequence[Folder]) -> None:
        self._due = None
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.get_running_loop().create_task(self._in_background(wanted))

    async def _in_background(self, folders: Sequence[Folder]) -> None:
        async with Progress(self._server, "Linting the workspace") as progress:
            await self._lint(folders, progress)

    async def command(self) -> dict[str, Any]:
        """Look at every folder now; how it ended, and the number of findings that are known then."""
        folders = list(self._server.folders)
        self._requested |= {folder.path for folder in folders}
        async with Progress(self._server, "Linting the workspace", cancellable=True) as progress:
            await self._lint(folders, progress)
        reporter = self._server.reporter
        count = sum(len(reporter.findings(path)) for path in reporter.store.paths)
        return {"outcome": "cancelled" if progress.cancelled else "done", "findings": count}

    async def _lint(self, folders: Sequence[Folder], progress: Progress) -> None:
        for folder in folders:
            verdicts: list[FileResult] = []
            launches: list[LaunchSummary] = []
            async for line in _run(folder, progress):
                if "verdict" in line:
                    verdicts.append(self._verdict(line["verdict"], folder.path))
                elif "launches" in line:
                    launches += (_located(launch_of(each), folder.path) for each in line["launches"])
                elif "error" in line:
                    self._server.reporter.settings_problem(LintError(**line["error"]), folder.path)
                else:
                    progress.report(line["done"], line["of"], "files")
            if progress.cancelled:
                break
            self._server.reporter.workspace_linted(folder.path, verdicts)
            self._launches[folder.path] = launches

    def launches(self) -> list[LaunchSummary]:
        """The launches in all files that were looked at."""
        return [launch for launches in self._launches.values() for launch in launches]

    def _verdict(self, document: dict[str, Any], folder: Path) -> FileResult:
        if document["traceback"]:
            self._server.failed(document["traceback"])
        return FileResult(
            (folder / document["path"]).as_posix(),
            tuple(_absolute(decode(each), folder) for each in document["findings"]),
            used_suppressions=tuple(((folder / path).as_posix(), line) for path, line in document["used"]),
        )

    def stop(self) -> None:
        for waiting in (self._due, self._task):
            if waiting is not None:
                waiting.cancel()


async def _run(folder: Folder, progress: Progress) -> AsyncIterator[dict[str, Any]]:
    """The output of the process, line by line; it ends with the iteration."""
    configured = folder.client.overrides(folder.path)
    overrides = {each.name: getattr(configured, each.name) for each in fields(Overrides)}
    job = [{"path": folder.path, "overrides": overrides, "exclude": folder.client.left_out}]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-c",
        _START,
        json.dumps(sys.path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,  # bytes of a line, which holds all findings of a file
    )
    assert process.stdin is not None and process.stdout is not None
    progress.on_cancel(lambda: _end(process))
    try:
        process.stdin.write(json.dumps(job, default=os.fspath).encode())
        process.stdin.close()
        async for line in process.stdout:
            yield json.loads(line)
        await process.wait()
    finally:
        _end(process)


def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def _located(launch: LaunchSummary, folder: Path) -> LaunchSummary:
    """The summary with whole paths."""
    defined = tuple((folder / place).as_posix() for place in launch.defined)
    return evolve(launch, path=(folder / launch.path).as_posix(), defined=defined)


def _absolute(finding: Finding, folder: Path) -> Finding:
    """The finding with whole paths, as editors name files."""
    return finding.moved(lambda span: evolve(span, path=(folder / span.path).as_posix()))
