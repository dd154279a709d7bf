"""What is known of documents is given back when they are closed."""

from __future__ import annotations

import gc
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from benchmarks.texts import composed
from pallas_lint.kernels.interpreter.modules import Module
from pallas_lint.memo.query_cache import CacheEntry
from pallas_lint.syntax.piece import Piece
from tests.server.clients import session

if TYPE_CHECKING:
    from pathlib import Path

KEPT = (CacheEntry, Module, Piece)


def held() -> Counter[str]:
    """How many things there are that hold what was found out about files."""
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in KEPT)


@pytest.mark.slow
async def test_nothing_is_kept_of_closed_documents(tmp_path: Path) -> None:
    text = composed(60)
    before = held()
    async with session("minimal", tmp_path) as editor:
        for number in range(4):
            uri = (tmp_path / f"file{number}.py").as_uri()
            editor.open(uri, text)
            await editor.pushed(uri)
            editor.change(uri, text.replace("128", "256"))
            await editor.pushed(uri)
            assert held()["Piece"] > before["Piece"]
            editor.close(uri)
        await editor.request("pallasLint/status", {})  # in its turn, after what closing leaves to be done
        assert held() == before
