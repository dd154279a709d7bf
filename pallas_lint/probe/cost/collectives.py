"""Communication between devices that XLA does: the least and the most that it may take over the links of the chips."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from .chips import CHIPS, FASTEST, LIKELY, SLOWEST, Chip, HbmTiming
from .xla_program import Operation, array_bytes

KIND = re.compile(
    r"(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-\w+|send|recv)(?:-start|-done)?"
)
_ARRAY = re.compile(r"[a-z]\w{0,19}\[[\d,]*\]")
_GROUPS = re.compile(r"replica_groups=(?:\{\{([\d,]+)\}|\[\d+,(\d+)\]<=|mesh\[([^\]\n]{0,200})\] \{([^}\n]{0,200})\})")
_AXIS = re.compile(r"'(\w+)'(?:=(\d+))?")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)+)\}")
_PAIR = re.compile(r"\{(\d+),(\d+)\}")
_RING = 2  # links of a ring in both directions


@dataclass(frozen=True)
class Communication:
    """Microseconds of a communication: those of a ring in both directions, the least, and the most."""

    likely: float
    low: float
    high: float

    def after(self, likely: float, low: float, high: float) -> Communication:
        """What is left of it beside work that takes so long."""
        return Communication(max(self.likely - likely, 0.0), max(self.low - high, 0.0), max(self.high - low, 0.0))


def predict(operation: Operation, device: str) -> Communication | None:
    """What a communication takes that begins at once on all devices; None where its size or kind is not known.

    At the least all links of a chip carry a part, at the most those of one ring in one direction, step by step.
    """
    match, size = KIND.fullmatch(operation.opcode), _size(operation)
    if match is None or not size:
        return None
    chip = CHIPS[device]
    if match[1] == "collective-permute":
        return _permuted(operation.attributes, size, chip)
    count = group_size(operation.attributes)
    if count is None or match[1] not in _SENT:
        return None
    if count < 2:
        return Communication(0.0, 0.0, 0.0)
    sent, phases = _SENT[match[1]](size, count)
    # On a ring, what is not for a neighbour takes the links of others, too.
    around = size * count / 4 if match[1] == "all-to-all" else sent
    steps = (count - 1) * phases
    ports = min(chip.ports, count - 1)
    return Communication(
        _took(around / min(_RING, count - 1), phases, 0, chip, LIKELY),
        _took(sent / ports, phases, 0, chip, FASTEST),
        _took(around, phases, steps, chip, SLOWEST),
    )


def _size(operation: Operation) -> int:
    """Bytes of the result on one device; what begins a communication has its operands in front of it."""
    if operation.result.startswith("(("):
        return operation.bytes
    arrays = [array_bytes(text) for text in _ARRAY.findall(operation.result)]
    begins = operation.opcode.endswith("-start") and len(arrays) > 1
    return arrays[1] if begins else sum(arrays)


def _gathered(size: int, count: int) -> tuple[float, int]:
    """Of the result, what a device gets from others; and in how many phases."""
    return size * (count - 1) / count, 1


_SENT: dict[str, Callable[[int, int], tuple[float, int]]] = {
    "all-gather": _gathered,
    "all-to-all": _gathered,
    "reduce-scatter": lambda size, count: (float(size * (count - 1)), 1),
    "all-reduce": lambda size, count: (2 * size * (count - 1) / count, 2),  # scattered, and gathered again
}


def _permuted(attributes: str, size: int, chip: Chip) -> Communication | None:
    """Every device sends to one: to a neighbour, or past others, whose links carry it, too."""
    found = _PAIRS.search(attributes)
    pairs = [(int(source), int(target)) for source, target in _PAIR.findall(found[1])] if found is not None else []
    if not pairs:
        return None
    around = max(max(pair) for pair in pairs) + 1
    far = max(min(abs(source - target), around - abs(source - target)) for source, target in pairs)
    hops = max(far, 2 if around > 2 else 1)  # neighbours in number are not always neighbours
    return Communication(
        _took(size, 1, 0, chip, LIKELY), _took(size, 1, 0, chip, FASTEST), _took(size * hops, 1, hops, chip, SLOWEST)
    )


def _took(sent: float, phases: int, steps: int, chip: Chip, timing: HbmTiming) -> float:
    startup = chip.startup if timing.startup is None else timing.startup
    hop = FASTEST.startup or 0.0
    return (phases * startup + steps * hop) / 1e3 + sent / (chip.link * timing.links * 1e3)


def group_size(attributes: str) -> int | None:
    """How many devices take part together: `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['x'=2,'y'=2] {'x'}`."""
    found = _GROUPS.search(attributes)
    if found is None:
        return None
    if found[1] is not None:
        return found[1].count(",") + 1
    if found[2] is not None:
        return int(found[2])
    sizes = {name: int(size) for name, size in _AXIS.findall(found[3]) if size}
    named = [name for name, _ in _AXIS.findall(found[4])]
    return math.prod(sizes[name] for name in named) if named and all(name in sizes for name in named) else None
