"""Communication between devices beside times that are published."""

from __future__ import annotations

import pytest

from pallas_lint.probe.cost.collectives import predict
from pallas_lint.probe.cost.xla_program import Operation

# Chip, operation, devices, bytes of the result, microseconds. Of v5e: profiles of the scaling book, and a benchmark of
# jetstream-pytorch; of v6e: tpu-recipes of Google; of tpu7x: its guide; of `ppermute`: a sweep of marin.
PUBLISHED = [
    ("v5e", "all-gather", 4, 2 * 2048 * 8192, 680.0),
    ("v5e", "all-gather", 4, 2 * 256 * 256, 8.0),
    ("v5e", "all-gather", 8, 2 << 30, 68338.1),
    ("v5e", "all-gather", 8, 1 << 30, 34457.1),
    ("v5e", "all-reduce", 8, 1 << 28, 8253.9),
    ("v5e", "all-reduce", 8, 1 << 27, 4347.1),
    ("v6e", "all-reduce", 256, 2 * 17408 * 68, 20.0),
    ("tpu7x", "all-gather", 4, 1 << 20, 21.9),
    ("tpu7x", "all-gather", 4, 1 << 22, 48.7),
    ("tpu7x", "all-gather", 4, 1 << 24, 155.4),
    ("tpu7x", "all-gather", 4, 1 << 26, 576.0),
    ("tpu7x", "all-gather", 4, 1 << 28, 2252.3),
    ("v5p", "collective-permute", 4, 1 << 10, 4.5),
    ("v5p", "collective-permute", 4, 1 << 20, 16.9),
    ("v5p", "collective-permute", 4, 1 << 26, 782.0),
    ("v6e", "collective-permute", 4, 1 << 10, 5.6),
    ("v6e", "collective-permute", 4, 1 << 20, 17.4),
    ("v6e", "collective-permute", 4, 1 << 26, 776.3),
]


@pytest.mark.parametrize(("chip", "opcode", "devices", "size", "measured"), PUBLISHED)
def test_published_times_are_in_the_range(chip: str, opcode: str, devices: int, size: int, measured: float) -> None:
    groups = "{{" + ",".join(map(str, range(devices))) + "}}"
    pairs = ",".join(f"{{{at},{(at + 1) % devices}}}" for at in range(devices))
    attributes = f"replica_groups={groups}, source_target_pairs={{{pairs}}}"
    found = predict(Operation("it", opcode, f"s8[{size}]", ["x"], attributes=attributes), chip)
    assert found is not None
    assert found.low <= measured <= found.high
    assert 0.6 < found.likely / measured < 1.35
