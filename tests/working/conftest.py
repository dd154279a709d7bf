"""A worker for all tests of this folder: it imports jax once, and each function runs in a child of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.probe.client import Worker
from tests.rules.interpreted import python
from tests.working.files import HERE

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    with Worker(python(), HERE) as started:
        yield started
