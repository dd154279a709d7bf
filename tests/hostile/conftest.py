"""All tests of hostile projects are slow: nearly each starts programs, or reads files of megabytes."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("nightly") is None:
            item.add_marker(pytest.mark.slow)
