"""Garbage is looked for in pauses."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest
from pallas_lint.server.workspace.garbage import IdleCollector

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY = 3000  # objects, more than Python allocates between two looks while the tests run


class _Cycle:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _no_other_look() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(1000, 1_000_000, 1_000_000)
    yield
    gc.set_threshold(*before)


def _garbage() -> weakref.ref[_Cycle]:
    """What only a look at all objects finds: it has been looked at once."""
    found = _Cycle()
    gc.collect(0)
    gc.collect(1)
    kept = [[] for _ in range(_MANY)]
    assert kept
    return weakref.ref(found)


def test_garbage_is_collected_in_a_pause() -> None:
    async def session() -> None:
        IdleCollector(pause=0).schedule()
        while old() is not None:
            await asyncio.sleep(0)

    old = _garbage()
    asyncio.run(session())


def test_nothing_is_collected_while_there_is_something_to_do() -> None:
    async def session() -> None:
        collector = IdleCollector(pause=0)
        collector.schedule()
        collector.postpone()
        for _ in range(10):
            await asyncio.sleep(0)

    old = _garbage()
    asyncio.run(session())
    assert old() is not None
