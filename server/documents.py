"""Open documents and what is known of them: the newest text is judged, older ones are forgotten."""

from __future__ import annotations

import asyncio
import os
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from pygls import uris

from pallas_lint.lint import judge
from pallas_lint.project import Project
from pallas_lint.settings import Overrides, SettingsError, SettingsFinder
from pallas_lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pallas_lint.finding import Finding
    from pallas_lint.lint import Judgement
    from pallas_lint.settings import Settings

QUIET = 0.05  # seconds without a change before a text is judged: typing faster than that is not shown


@frozen
class Judged:
    """One version of a document with its verdict. `problem`: why it could not be judged."""

    uri: str
    version: int | None
    source: Source
    settings: Settings | None
    judgement: Judgement | None = None
    problem: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.judgement.result.findings if self.judgement is not None else ()


@define(eq=False)
class Documents:
    """The open documents. All judging happens on one thread: the engine's caches are not made for several.

    `options` are the client's settings by key, as in `[tool.pallas-lint]`; `published` is called on the event loop with
    every new verdict.
    """

    published: Callable[[Judged], None]
    failed: Callable[[str], None]
    options: Mapping[str, Any] = field(factory=dict)
    python: str | None = None
    _texts: dict[str, tuple[int | None, Source]] = field(factory=dict, init=False)
    _judged: dict[str, Judged] = field(factory=dict, init=False)
    _running: dict[str, asyncio.Task[Judged]] = field(factory=dict, init=False)
    _finder: SettingsFinder | None = field(default=None, init=False)
    _project: Project | None = field(default=None, init=False)
    _executor: ThreadPoolExecutor = field(factory=lambda: ThreadPoolExecutor(1, "pallas-lint"), init=False)

    # -- what is open ----------------------------------------------------------------------------------------------

    def put(self, uri: str, version: int | None, text: str) -> None:
        """A document was opened or changed."""
        self._texts[uri] = (version, Source(self.shown(uri), text))
        self._schedule(uri)
        self._schedule_dependents(uri)

    def close(self, uri: str) -> None:
        self._texts.pop(uri, None)
        self._judged.pop(uri, None)
        task = self._running.pop(uri, None)
        if task is not None:
            task.cancel()

    def source(self, uri: str) -> Source | None:
        """The newest text of an open document."""
        known = self._texts.get(uri)
        return known[1] if known is not None else None

    def reload(self) -> None:
        """Settings or files on disk have changed: forget what was read, judge everything again."""
        self._finder = self._project = None
        self._judged.clear()
        for uri in self._texts:
            self._schedule(uri)

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(self._texts)

    @staticmethod
    def path(uri: str) -> Path:
        """The file behind a document; for one without, a name in the current folder."""
        found = uris.to_fs_path(uri)
        return Path(found) if found else Path.cwd() / "untitled.py"

    @classmethod
    def shown(cls, uri: str) -> str:
        """The path by which findings name a document."""
        return cls.path(uri).as_posix()

    # -- verdicts --------------------------------------------------------------------------------------------------

    async def judged(self, uri: str) -> Judged | None:
        """The verdict on the newest text of a document; waits for it. None for what is not open."""
        while uri in self._texts:
            source = self._texts[uri][1]
            known = self._judged.get(uri)
            if known is not None and known.source is source:
                return known
            task = self._running.get(uri)
            if task is None:
                task = self._schedule(uri, delay=0.0)
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                if not task.cancelled():
                    raise  # the request itself was cancelled
                await asyncio.sleep(0)
        return None

    def _schedule_dependents(self, uri: str) -> None:
        """Documents whose verdict rests on a changed one."""
        path = str(self.path(uri))
        for other, known in self._judged.items():
            rests = known.judgement is not None and path in known.judgement.result.dependencies
            if other != uri and rests:
                self._schedule(other)

    def _schedule(self, uri: str, delay: float = QUIET) -> asyncio.Task[Judged]:
        running = self._running.get(uri)
        if running is not None:
            running.cancel()
        task = asyncio.get_running_loop().create_task(self._judge_soon(uri, delay))
        self._running[uri] = task
        return task

    async def _judge_soon(self, uri: str, delay: float) -> Judged:
        if delay:
            await asyncio.sleep(delay)
        version, source = self._texts[uri]
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._executor, self._judge, uri, version, source)
        if self._running.get(uri) is asyncio.current_task():
            del self._running[uri]
        current = self._texts.get(uri)
        if current is not None and current[1] is source:
            self._judged[uri] = found
            self.published(found)
        return found

    def _judge(self, uri: str, version: int | None, source: Source) -> Judged:
        """Runs on the judging thread; a crash of the engine is a problem of this document, not of the server."""
        try:
            settings = self._settings(self.path(uri).parent)
        except SettingsError as error:
            return Judged(uri, version, source, None, problem=f"{error.path or 'settings'}: {error.message}")
        try:
            judgement = judge(source, settings, self._with_overlay())
        except Exception as error:
            self.failed(traceback.format_exc())
            return Judged(uri, version, source, settings, problem=f"internal error: {type(error).__name__}: {error}")
        return Judged(uri, version, source, settings, judgement)

    def _settings(self, folder: Path) -> Settings:
        """The settings for a folder. Raises SettingsError."""
        if self._finder is None:
            self._finder = SettingsFinder(Overrides(dict(self.options), self.python), Path(os.sep))
        return self._finder.for_folder(folder)

    def _with_overlay(self) -> Project:
        """The project, with open documents in place of their files."""
        if self._project is None:
            self._project = Project(Path(os.sep))
        self._project.overlay = {self.path(uri): source for uri, (_, source) in self._texts.items()}
        return self._project

    def shutdown(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
