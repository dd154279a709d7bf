"""Open documents and their analyses: only the newest text is judged."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import traceback
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pallas_lint.server.probing.stored_results import Probed
from pallas_lint.server.workspace.document_state import CallSnapshot, DocumentState
from pallas_lint.server.workspace.engine_queue import EngineQueue, Movable, TookTooLongError
from pallas_lint.server.workspace.folders import file_of
from pallas_lint.server.workspace.garbage import IdleCollector
from pallas_lint.server.workspace.last_shown import LastShown

from pallas_lint.checker.backend_inference import backends_named
from pallas_lint.config.settings import SettingsError
from pallas_lint.notebooks import reading
from pallas_lint.notebooks.notebook import Notebook
from pallas_lint.notebooks.reading import SUFFIX
from pallas_lint.records import define, evolve, field
from pallas_lint.run.project import Project
from pallas_lint.text.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from lsprotocol import types as lsp
    from pallas_lint.server.workspace.folders import Folders

    from pallas_lint.checker.backend_inference import Named
    from pallas_lint.config.settings import Settings
    from pallas_lint.known_calls.known_call import KnownCall

MAX_CHARACTERS = 2_000_000  # characters of a document: judging it takes seconds, in which all others wait

_MAX_NAME = 50  # characters of a document's name that its file would have
_LOOK = 0.05  # seconds between two looks at whether a document is still worth waiting for
_LATER = -2.0  # the urgency of background work

P = ParamSpec("P")
R = TypeVar("R")


@define(eq=False)
class Documents:
    """The open documents. The one that is edited is judged first; others are interrupted for it.

    `published` is called on the event loop with every new verdict, `called` after one on the same text with other known
    calls: what a client shows in the code is then outdated.
    """

    folders: Folders
    published: Callable[[DocumentState], None]
    failed: Callable[[str], None]
    called: Callable[[], None]
    probed: Probed = field(factory=Probed)
    hints: LastShown[lsp.InlayHint] = field(factory=lambda: LastShown(lambda hint: hint.position.line), init=False)
    lenses: LastShown[lsp.CodeLens] = field(factory=lambda: LastShown(lambda lens: lens.range.start.line), init=False)
    ready: asyncio.Event = field(factory=asyncio.Event, init=False)  # settings are known, judging may begin
    _texts: dict[str, tuple[int | None, Source]] = field(factory=dict, init=False)
    _named: dict[str, tuple[Source, Named]] = field(factory=dict, init=False)  # the backends that a text names
    _states: dict[str, DocumentState] = field(factory=dict, init=False)
    _reported: dict[str, DocumentState] = field(factory=dict, init=False)  # what was reported to the client last
    _before: dict[str, Source] = field(factory=dict, init=False)  # the text before the last edit of a document
    _picked: dict[str, dict[str, KnownCall]] = field(factory=dict, init=False)  # by document and function
    _unsaved: set[str] = field(factory=set, init=False)  # changed, where findings are only wanted of what is saved
    _undecided: set[str] = field(factory=set, init=False)  # changed while it was not known where that is
    _running: dict[str, asyncio.Task[DocumentState]] = field(factory=dict, init=False)
    _slow: set[str] = field(factory=set, init=False)  # being judged in the thread for what takes long
    _of_thread: threading.local = field(factory=threading.local, init=False)  # `project`: of each thread of the engine
    _last_active: dict[str, int] = field(factory=dict, init=False)  # the greater, the later its user dealt with it
    _clock: Iterator[int] = field(factory=count, init=False)
    _searches: dict[str, asyncio.Task[None]] = field(factory=dict, init=False)  # whose callers are looked for
    _queue: EngineQueue = field(factory=EngineQueue, init=False)
    _collector: IdleCollector = field(factory=IdleCollector, init=False)

    # -- what is open ----------------------------------------------------------------------------------------------

    def put(self, uri: str, version: int | None, text: str | Notebook) -> None:
        """A document was opened or changed."""
        earlier = self._texts.get(uri)
        changed = earlier is not None
        self._touch(uri)
        if isinstance(text, str):
            # The JSON of a notebook, shown as such, is no code.
            text = "" if uri.endswith(SUFFIX) else text
            self._texts[uri] = (version, Source(self.shown(uri), text))
        else:
            self._texts[uri] = (version, text)
        if not self.is_code(uri):
            return
        if earlier is not None:
            self._before[uri] = earlier[1]
        if changed and not self.ready.is_set():
            self._undecided.add(uri)
        if changed and self._waits_for_saving(uri):
            self._unsaved.add(uri)
            self._stop(uri)  # its text is outdated; requests that wait for it schedule it again
            return
        self._schedule(uri)
        if len(self._texts) > 1:
            before, now = (self._backends_named(uri, each) for each in (earlier, self._texts[uri]))
            self.invalidate_dependents({self.path(uri)}, inferred_backends=before != now)

    def _waits_for_saving(self, uri: str) -> bool:
        return self.folders.of(self.path(uri)).client.run == "onSave"

    def wait_for_settings(self) -> None:
        """Judge nothing by settings that may hold no more, until `ready` is set: findings would come and go."""
        if self.ready.is_set():
            self._undecided.clear()
        self.ready.clear()

    def saved(self, uri: str) -> None:
        """A document was written to its file."""
        self._queue.submit(partial(self._was_saved, self.path(uri)))
        self._undecided.discard(uri)
        if uri in self._unsaved:
            self._unsaved.discard(uri)
            self._states.pop(uri, None)
            self._schedule(uri)
            self.invalidate_dependents({self.path(uri)}, inferred_backends=True)

    def close(self, uri: str) -> None:
        """A document was closed: what is on disk counts again."""
        for known in (
            self._texts,
            self._named,
            self._states,
            self._reported,
            self._last_active,
            self._picked,
            self._before,
        ):
            known.pop(uri, None)
        self.hints.forget(uri)
        self.lenses.forget(uri)
        self._unsaved.discard(uri)
        self._undecided.discard(uri)
        self._stop(uri)
        self._queue.submit(partial(self._release, self.path(uri)))
        self._collector.schedule()
        self.invalidate_dependents({self.path(uri)}, inferred_backends=True)

    def uri_of(self, path: str) -> str | None:
        """The open document that is the file at a path, if one is."""
        return next((uri for uri in list(self._texts) if self.shown(uri) == path), None)

    def text_of(self, path: str) -> Source | None:
        """The text of a file as the user has it: from the editor where it is open, else from disk, if it can be read.

        From any thread.
        """
        uri = self.uri_of(path)
        if uri is not None:
            return self.source(uri)
        try:
            return reading.read(Path(path), path)
        except SourceError:
            return None

    def source(self, uri: str) -> Source | None:
        """The newest text of an open document."""
        known = self._texts.get(uri)
        return known[1] if known is not None else None

    def reload(self, below: Path | None) -> None:
        """Settings, or what they depend on, have changed below a folder (None: any): check open documents again."""
        self._queue.submit(self._forget_requirements)
        for uri in filter(self.is_code, self._texts):
            if below is None or self.path(uri).is_relative_to(below):
                self._states.pop(uri, None)
                if uri in self._undecided and self._waits_for_saving(uri):
                    self._unsaved.add(uri)
                    self._stop(uri)
                    continue
                self._unsaved.discard(uri)
                self._schedule(uri)

    def changed_on_disk(self, files: AbstractSet[Path]) -> None:
        """Files that are not open have changed: judge what rests on them again."""
        self._queue.submit(partial(self._forget, files))
        self.invalidate_dependents(files, inferred_backends=True)

    @property
    def _project(self) -> Project | None:
        """The project of the calling thread of the engine, if it has checked anything."""
        project: Project | None = getattr(self._of_thread, "project", None)
        return project

    def _forget_requirements(self) -> None:
        if self._project is not None:
            self._project.forget_requirements()

    def _forget(self, files: AbstractSet[Path]) -> None:
        if self._project is not None:
            for file in files:
                self._project.forget(file)

    def _release(self, file: Path) -> None:
        if self._project is not None:
            self._project.release(file)

    def _was_saved(self, file: Path) -> None:
        if self._project is not None:
            self._project.calls.saved(file)

    def _backends_named(self, uri: str, text: tuple[int | None, Source] | None) -> Named:
        """The backends that a text of a document names, by which those of others are inferred."""
        if text is None:
            return {}
        source, known = text[1], self._named.get(uri)
        if known is None or known[0] is not source:
            known = self._named[uri] = source, backends_named(source.text.encode("utf-8", "surrogatepass"))
        return known[1]

    def invalidate_dependents(self, files: AbstractSet[Path], *, inferred_backends: bool) -> None:
        """Judge again the documents whose verdict rests on one of these files.

        `inferred_backends`: and those that rest on a folder of theirs, since other backends may be presumed now.
        """
        names = {str(place) for file in files for place in (file, *(file.parents if inferred_backends else ()))}
        for uri in list(self._texts):
            if self.path(uri) in files or not (uri in self._states or uri in self._running):
                continue
            # One that is being checked may have read outdated files; the dependencies of a first check are not known
            # yet.
            known = self._states.get(uri) or self._reported.get(uri)
            if known is None or not names.isdisjoint(known.rests_on):
                self._states.pop(uri, None)
                self._schedule(uri)

    def was_probed(self, uri: str) -> None:
        """A probe has found something about a document."""
        if uri in self._texts:
            self._states.pop(uri, None)
            self._schedule(uri)

    def pick(self, uri: str, function: str, call: KnownCall) -> None:
        """Show a function with one of its known calls, which the user picked."""
        self._picked[uri] = {**self._picked.get(uri, {}), function: call}
        if uri in self._states:
            self._states[uri] = evolve(self._states[uri], picked=self._picked[uri])

    def differing(self) -> dict[Path, Source]:
        """The open documents whose files, if there are any, have another text."""
        found = {}
        for uri, (_, source) in list(self._texts.items()):
            file = self.path(uri)
            if isinstance(source, Notebook):
                continue  # no module that another could import
            try:
                same = Source.read(file, source.path).text == source.text
            except SourceError:
                same = False
            if not same:
                found[file] = source
        return found

    @classmethod
    def is_code(cls, uri: str) -> bool:
        """Whether a document is judged: settings files are only kept."""
        return cls.path(uri).suffix != ".toml"

    @staticmethod
    def path(uri: str) -> Path:
        """The file behind a document; for one without, or with a name that no file has, one in the current folder.

        `untitled:Untitled-1` is taken for `Untitled-1.py` there: each has one of its own.
        """
        name = "-".join(re.findall(r"\w+", uri.partition(":")[2].removesuffix(".py")))
        return file_of(uri) or Path.cwd() / f"{name[:_MAX_NAME] or 'untitled'}.py"

    @classmethod
    def shown(cls, uri: str) -> str:
        """The path by which findings name a document."""
        return cls.path(uri).as_posix()

    # -- verdicts --------------------------------------------------------------------------------------------------

    async def state(self, uri: str) -> DocumentState | None:
        """The verdict on the newest text of a document that its user looks at; waits for it.

        None where the document is not open, or takes so long that an answer is better given without it.
        """
        if uri in self._texts:
            self._touch(uri)
        return await self._verdict(uri, patient=False)

    async def every_state(self) -> list[DocumentState]:
        """The verdicts on all open documents but those that are long in coming."""
        found = [await self._verdict(uri, patient=False) for uri in list(self._texts)]
        return [state for state in found if state is not None]

    def _touch(self, uri: str) -> None:
        self._last_active[uri] = next(self._clock)

    async def _verdict(self, uri: str, *, patient: bool = True) -> DocumentState | None:
        while uri in self._texts and self.is_code(uri):
            await self.ready.wait()
            if uri not in self._texts:
                return None
            source = self._texts[uri][1]
            known = self._states.get(uri)
            if known is not None and known.source is source:
                return known
            task = self._running.get(uri)
            if task is None:
                task = self._schedule(uri)
            while not task.done():
                if uri in self._slow and not patient:
                    return None
                await asyncio.wait({task}, timeout=None if patient else _LOOK)
            if not task.cancelled():
                task.result()  # raises what it raised
            await asyncio.sleep(0)
        return None

    async def reported(self, uri: str) -> DocumentState | None:
        """The verdict that the client's diagnostics are made of: on the newest text, or on what was saved last."""
        await self.ready.wait()  # which of the two is wanted is a setting
        return self._reported.get(uri) if uri in self._unsaved and uri in self._reported else await self._verdict(uri)

    def known(self, uri: str) -> DocumentState | None:
        """What was reported to the client last for a document."""
        return self._reported.get(uri)

    def _schedule(self, uri: str) -> asyncio.Task[DocumentState]:
        self._stop(uri)
        self._collector.postpone()
        task = asyncio.get_running_loop().create_task(self._check_soon(uri))
        self._running[uri] = task
        return task

    def _stop(self, uri: str) -> None:
        """Judge the document no further."""
        self._slow.discard(uri)
        running = self._running.pop(uri, None)
        if running is not None:
            running.cancel()

    async def _check_soon(self, uri: str) -> DocumentState:
        await self.ready.wait()
        found: DocumentState | None = None
        while found is None:  # the text was replaced meanwhile, without this task being cancelled, or others went first
            version, source = self._texts[uri]
            found = await self._check_in_queue(uri, version, source)
        self._slow.discard(uri)
        if self._running.get(uri) is asyncio.current_task():
            del self._running[uri]
        if not self._running:
            self._collector.schedule()
        current = self._texts.get(uri)
        if current is not None and current[1] is source:
            self._states[uri] = found = evolve(found, picked=self._picked.get(uri, {}), before=self._before.get(uri))
            if found.crash is not None:
                self.failed(found.crash)
            if uri not in self._unsaved:
                before, self._reported[uri] = self._reported.get(uri), found
                self.published(found)
                if (
                    before is not None
                    and before.source is source
                    and before.calls.known_calls != found.calls.known_calls
                ):
                    self.called()
            if found.calls.waits and uri not in self._searches:
                self._searches[uri] = asyncio.get_running_loop().create_task(self._find_callers(uri))
        return found

    async def _check_in_queue(self, uri: str, version: int | None, source: Source) -> DocumentState | None:
        loop = asyncio.get_running_loop()
        movable = Movable(partial(loop.call_soon_threadsafe, self._slow.add, uri), lambda: self.source(uri) is source)
        work = partial(self._check, uri, version, source)
        try:
            checking = self._queue.submit(work, partial(self._urgency, uri), movable)
            state: DocumentState | None = await asyncio.wrap_future(checking)
        except TookTooLongError:
            remark = f"not judged: it took more than {self._queue.limit:.0f} s; the command line has no such limit"
            return DocumentState(
                uri, version, source, None, remark=remark, client=self.folders.of(self.path(uri)).client
            )
        return state

    async def _find_callers(self, uri: str) -> None:
        """When nothing else is to be done, find out how others call what a document defines, and judge it again."""
        calls: CallSnapshot | None = None
        try:
            while calls is None and uri in self._texts:
                work = self._queue.submit(partial(self._calls_of, uri), lambda: _LATER, Movable())
                calls = await asyncio.wrap_future(work)
        except TookTooLongError:
            return  # the verdict stands without them
        finally:
            del self._searches[uri]
        known = self._states.get(uri)
        if calls is None or known is None:
            return  # it was closed, or is being judged anyhow
        if calls.known_calls != known.calls.known_calls:
            self._states.pop(uri)
            self._schedule(uri)
            return
        for states in (self._states, self._reported):
            if states.get(uri) is known:
                states[uri] = evolve(known, calls=calls)

    def _calls_of(self, uri: str) -> CallSnapshot | None:
        """Runs on the engine's thread: the calls of a document's launchers; None where something is more urgent."""
        file, project = self.path(uri), self._with_overlay()
        try:
            settings = self.folders.of(file).settings(file)
        except SettingsError:  # the verdict has the problem
            return CallSnapshot()
        if not project.calls.find(file, settings, lambda: self._queue.should_yield(_LATER)):
            return None
        return _calls(project, file, settings)

    def _check(self, uri: str, version: int | None, source: Source) -> DocumentState | None:
        """Runs on the engine's thread; None where a newer text has come, or what is more urgent.

        A crash of the engine is a problem of this document, not of the server.
        """
        from pallas_lint.kernels.analysis.runs import Abandoned
        from pallas_lint.lint import check_file, may_have_kernels

        file = self.path(uri)
        folder = self.folders.of(file)
        client = folder.client
        settings = None
        try:
            settings = folder.settings(file)
            if folder.leaves_out(file):
                return DocumentState(uri, version, source, settings, client=client)
            if len(source.text) > MAX_CHARACTERS and may_have_kernels(source):
                remark = f"files above {MAX_CHARACTERS:,} characters are judged on the command line only"
                return DocumentState(uri, version, source, settings, remark=remark, client=client)
            project = self._with_overlay()
            file_analysis = check_file(source, settings, project, partial(self._gives_up, uri, source))
            launches = file_analysis.analysis is not None and bool(file_analysis.analysis.launches)
            calls = _calls(project, file, settings) if launches else CallSnapshot()
        except Abandoned:
            return None
        except SettingsError as error:
            return DocumentState(uri, version, source, None, problem=error, client=client)
        except Exception as error:
            problem = f"internal error: {type(error).__name__}: {error}"
            crash = traceback.format_exc()
            return DocumentState(uri, version, source, settings, problem=problem, crash=crash, client=client)
        failed = file_analysis.result.traceback
        state = DocumentState(uri, version, source, settings, file_analysis, crash=failed, client=client, calls=calls)
        return self.probed.merge_results(state, file, self.text_of)

    def _gives_up(self, uri: str, source: Source) -> bool:
        current = self._texts.get(uri)
        return current is None or current[1] is not source or self._queue.should_yield(self._urgency(uri))

    def _urgency(self, uri: str) -> float:
        return self._last_active.get(uri, -1)

    def _with_overlay(self) -> Project:
        """The project of the calling thread, with open documents in place of their files."""
        project = self._project
        if project is None:
            project = Project(Path(os.sep), incremental=True, absolute_names=True, wait_for_callers=False)
            self._of_thread.project = project
        project.overlay = self._overlay()
        return project

    def _overlay(self) -> dict[Path, Source]:
        return {self.path(uri): source for uri, (_, source) in list(self._texts.items())}

    def project_apart(self) -> Project:
        """A project that has the open documents, apart from the one that judges them.

        What that keeps of them moves with the texts that it sees.
        """
        return Project(Path(os.sep), self._overlay(), absolute_names=True)

    def warm_up(self) -> None:
        """Have the engine imported, which the first verdict would wait for."""
        self._queue.submit(partial(import_module, "pallas_lint.lint"))

    async def on_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a function that uses the engine, called on its thread: a request waits for it.

        It may be called again in another thread, so it must not change anything. Raises TookTooLongError.
        """
        work = self._queue.submit(partial(function, *args, **kwargs), movable=Movable())
        result: R = await asyncio.wrap_future(work)
        return result

    def shutdown(self) -> None:
        for uri in list(self._running):
            self._stop(uri)
        for task in self._searches.values():
            task.cancel()
        self._queue.end()


def _calls(project: Project, file: Path, settings: Settings) -> CallSnapshot:
    """The known calls of the functions of a file."""
    rests_on = frozenset(map(str, project.calls.rests_on(file, settings)))
    return CallSnapshot(project.known_calls(file, settings), rests_on, project.calls.waits(file, settings))
