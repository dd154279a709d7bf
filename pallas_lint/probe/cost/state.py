"""The state of a simulated run, on which its further course depends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class State:
    """Registers, scalar memory and copies under way. Times are in ticks."""

    scalars: list[Any]
    predicates: list[Any]
    memory: dict[Any, Any]
    time: int = 0
    free: int = 0  # when HBM has finished the requested moves
    pending: dict[Any, list[tuple[int, int]]] = field(default_factory=dict)  # by flag: when something arrives, how much
    overdrawn: dict[Any, int] = field(default_factory=dict)  # by flag: how much of that is taken before it arrives
