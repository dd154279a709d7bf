"""How often the TPU compiler of an environment counts the blocks that a pipeline moves."""

from __future__ import annotations

import pytest

from pallas_lint.probe.worker import environment
from pallas_lint.probe.worker.stages import memory


@pytest.mark.parametrize(
    ("libtpu", "jax", "once"),
    [
        ("0.0.17.1", (0, 6, 2), True),
        ("0.0.29", (0, 8, 1), True),
        ("0.0.30", (0, 8, 0), False),
        ("0.1.dev20241002+nightly", (0, 4, 35), False),
        (None, (0, 8, 0), True),
        (None, (0, 12, 0), False),
    ],
)
def test_blocks_counted_once(
    monkeypatch: pytest.MonkeyPatch, libtpu: str | None, jax: tuple[int, ...], once: bool
) -> None:
    monkeypatch.setattr(environment, "parts", lambda: {"libtpu": libtpu})
    monkeypatch.setattr(environment, "version", lambda: jax)
    assert memory.counts_once() is once
