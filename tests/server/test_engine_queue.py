"""Whose document is judged first, and what makes way for what."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp
from pallas_lint.server.workspace import engine_queue
from pallas_lint.server.workspace.engine_queue import AT_ONCE, EngineQueue, Movable, TookTooLongError

from pallas_lint import lint
from pallas_lint.kernels.analysis.runs import Abandoned
from tests.server.clients import LIMIT, codes, document, everywhere, session
from tests.server.test_protocol import CODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from pallas_lint.config.settings import Settings
    from pallas_lint.lint import FileAnalysis
    from pallas_lint.run.project import Project
    from pallas_lint.text.source import Source

FOUND = ["PAL101", "PAL301"]
OPTIONS = {"jaxVersion": "0.10.2"}


@pytest.fixture
def engine() -> Iterator[EngineQueue]:
    found = EngineQueue()
    yield found
    found.end()


def held(engine: EngineQueue) -> threading.Event:
    """Keeps the thread busy until it is set."""
    release, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        release.wait(LIMIT)

    engine.submit(work)
    begun.wait(LIMIT)
    return release


def test_the_most_urgent_goes_first(engine: EngineQueue) -> None:
    done: list[str] = []
    release = held(engine)
    urgencies = {"old": 1.0, "cancelled": 9.0, "new": 2.0, "requested": AT_ONCE, "requested later": AT_ONCE}
    results = [engine.submit(lambda n=name: done.append(n), lambda u=u: u) for name, u in urgencies.items()]
    results[1].cancel()
    release.set()
    for result in results[:1]:
        result.result(LIMIT)
    assert done == ["requested", "requested later", "new", "old"]


def test_urgency_counts_as_it_is_when_something_comes_next(engine: EngineQueue) -> None:
    done: list[str] = []
    release = held(engine)
    urgency = {"a": 1.0, "b": 2.0}
    results = [engine.submit(lambda n=name: done.append(n), lambda n=name: urgency[n]) for name in urgency]
    urgency["a"] = 3.0
    release.set()
    for result in results:
        result.result(LIMIT)
    assert done == ["a", "b"]


def test_what_makes_way_for_what(engine: EngineQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    release = held(engine)
    assert not engine.should_yield(1)
    newer = engine.submit(lambda: None, lambda: 2.0)
    monkeypatch.setattr(engine_queue, "GRACE", LIMIT)
    assert not engine.should_yield(1)  # it may be done in a moment
    monkeypatch.setattr(engine_queue, "GRACE", -1)
    assert engine.should_yield(1)
    assert not engine.should_yield(2)
    newer.cancel()
    assert not engine.should_yield(1)
    monkeypatch.setattr(engine_queue, "GRACE", LIMIT)
    engine.submit(lambda: None)
    assert engine.should_yield(1)
    release.set()


def test_a_failure_is_that_of_its_work_alone(engine: EngineQueue) -> None:
    def fail() -> None:
        raise ValueError("no")

    failed = engine.submit(fail)
    assert engine.submit(lambda: 3).result(LIMIT) == 3
    assert isinstance(failed.exception(LIMIT), ValueError)


class RecordingChecker:
    """Wraps the engine: notes what is judged, and has a text with "# endless" be judged until it has to give up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checked: list[str] = []
        self.gave_up: list[str] = []
        self.begun = threading.Event()
        self._check_file = lint.check_file
        monkeypatch.setattr(lint, "check_file", self)

    def __call__(
        self, source: Source, settings: Settings, project: Project, is_stale: Callable[[], bool]
    ) -> FileAnalysis:
        name = source.path.rpartition("/")[2]
        if "# endless" in source.text and name not in self.gave_up:
            self.begun.set()
            while not is_stale():
                pass
            self.gave_up.append(name)
            raise Abandoned
        found = self._check_file(source, settings, project, is_stale)
        self.checked.append(name)
        return found


async def test_an_edited_document_does_not_wait_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = ((tmp_path / name).as_uri() for name in ("large.py", "small.py"))
    checking = RecordingChecker(monkeypatch)
    async with session("minimal", tmp_path, options=OPTIONS) as editor:
        editor.open(small, CODE)
        await editor.pushed(small)
        editor.open(large, f"# endless\n{CODE}")
        await asyncio.to_thread(checking.begun.wait, LIMIT)
        editor.change(small, CODE.replace("i * 8", "i"))
        assert codes(await editor.pushed(small)) == ["PAL101"]
        assert codes(await editor.pushed(large)) == FOUND  # and then its turn comes again
        assert checking.gave_up == ["large.py"]
        assert checking.checked == ["small.py", "small.py", "large.py"]


async def test_an_answer_does_not_wait_for_another_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = ((tmp_path / name).as_uri() for name in ("large.py", "small.py"))
    checking = RecordingChecker(monkeypatch)
    async with session("minimal", tmp_path, options=OPTIONS) as editor:
        editor.open(small, CODE)
        await editor.pushed(small)
        editor.open(large, f"# endless\n{CODE}")
        await asyncio.to_thread(checking.begun.wait, LIMIT)
        assert await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(small)))
        assert codes(await editor.pushed(large)) == FOUND


@pytest.mark.parametrize("how", ["edited", "looked at"])
async def test_the_document_at_hand_is_judged_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    first, *others = ((tmp_path / f"{name}.py").as_uri() for name in "abcd")
    checking = RecordingChecker(monkeypatch)
    async with session("minimal", tmp_path, options=OPTIONS) as editor:
        release = held(editor.server.documents._queue)
        editor.open(first, CODE)
        for uri in others:
            editor.open(uri, CODE)
        if how == "edited":
            editor.change(others[0], f"{CODE}\n")
        else:
            hints = lsp.InlayHintParams(document(others[0]), everywhere())
            requested = asyncio.ensure_future(editor.client.text_document_inlay_hint_async(hints))
            await editor.request("pallasLint/rule", {"code": "PAL101"})  # by now the server has got it
        release.set()
        for uri in (first, *others):
            assert codes(await editor.pushed(uri)) == FOUND
        assert checking.checked == ["b.py", "d.py", "c.py", "a.py"]
        if how == "looked at":
            await requested


def spins(
    engine: EngineQueue, named: str, moved: list[str], *, wanted: Callable[[], bool] = lambda: True
) -> Future[object]:
    """Work that neither ends nor makes way."""
    begun = threading.Event()

    def spin() -> None:
        begun.set()
        while True:
            pass

    result = engine.submit(spin, lambda: 1.0, Movable(lambda: moved.append(named), wanted))
    begun.wait(LIMIT)
    return result


@pytest.mark.slow
def test_what_does_not_make_way_holds_up_nothing(engine: EngineQueue) -> None:
    moved: list[str] = []
    first = spins(engine, "first", moved)
    assert engine.submit(lambda: 3).result(LIMIT) == 3
    assert moved == ["first"]
    second = spins(engine, "second", moved)  # the slow thread is taken: it waits for that
    assert engine.submit(lambda: 4, lambda: -1.0).result(LIMIT) == 4
    assert moved == ["first", "second"]
    assert not first.done() and not second.done()


@pytest.mark.slow
def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_queue, "_LONG", 0.2)
    engine = EngineQueue(limit=0.5)
    try:
        given_up = [spins(engine, name, []) for name in ("first", "second")]
        engine.submit(lambda: 3).result(LIMIT)
        for each in given_up:
            with pytest.raises(TookTooLongError):
                each.result(LIMIT)
    finally:
        engine.end()


def test_outdated_work_makes_way_in_the_slow_thread(engine: EngineQueue) -> None:
    moved: list[str] = []
    wanted = [True]
    first = spins(engine, "first", moved, wanted=lambda: wanted[0])
    engine.submit(lambda: None).result(LIMIT)
    wanted[0] = False
    assert first.result(LIMIT) is None


def test_the_caches_of_what_took_long_are_used_again(engine: EngineQueue) -> None:
    """Each thread has its own: the one that judged a large document judges it after the next edit, too."""
    begun, moved, release = threading.Event(), threading.Event(), threading.Event()

    def judge() -> int:
        begun.set()
        while not release.is_set():  # on the processor: it holds up others
            pass
        return threading.get_ident()

    first = engine.submit(judge, lambda: 1.0, Movable(moved.set))
    assert begun.wait(LIMIT)
    meanwhile = engine.submit(threading.get_ident).result(LIMIT)
    assert moved.wait(LIMIT)
    release.set()
    large = first.result(LIMIT)
    assert large != meanwhile
    while engine.submit(threading.get_ident).result(LIMIT) != large:
        time.sleep(0.01)  # until both are idle
    assert engine.submit(judge, lambda: 1.0, Movable()).result(LIMIT) == large


def test_a_thread_interrupted_as_it_enters_the_lock_leaves_it_free() -> None:
    engine, begun = EngineQueue(), threading.Event()

    def work() -> None:
        begun.set()
        while True:
            engine.should_yield(0.0)

    engine.submit(work, lambda: 0.0)
    engine.submit(int, lambda: -1.0)  # where nothing waits, the lock is not needed
    assert begun.wait(LIMIT)
    worker = engine._quick
    assert worker is not None
    assert worker.thread is not None
    with engine._changed:
        time.sleep(0.1)  # the thread is at the lock now
        worker.interrupt()
    worker.thread.join(LIMIT)
    assert engine._changed.acquire(timeout=LIMIT)
    engine._changed.release()


@pytest.mark.slow
async def test_a_document_that_takes_too_long_has_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heavy, small = ((tmp_path / name).as_uri() for name in ("heavy.py", "small.py"))
    check_file = lint.check_file

    def checking(source: Source, settings: Settings, project: Project, is_stale: Callable[[], bool]) -> FileAnalysis:
        while "# endless" in source.text:
            pass
        return check_file(source, settings, project, is_stale)

    monkeypatch.setattr(lint, "check_file", checking)
    monkeypatch.setattr(engine_queue, "_LONG", 0.2)
    async with session("minimal", tmp_path, options=OPTIONS) as editor:
        editor.server.documents._queue.limit = 0.5
        editor.open(small, CODE)
        await editor.pushed(small)
        editor.open(heavy, f"# endless\n{CODE}")
        assert not await editor.client.text_document_inlay_hint_async(
            lsp.InlayHintParams(document(heavy), everywhere())
        )
        (reported,) = await editor.pushed(heavy)
        assert "not judged" in reported.message
        editor.change(heavy, CODE)
        assert codes(await editor.pushed(heavy)) == FOUND
