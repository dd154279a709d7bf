"""Communication between devices that XLA does: the least and the most that it may take over the links of the chips."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .chips import CHIPS, FASTEST, LIKELY
from .xla_program import Operation, array_bytes

KIND = re.compile(
    r"(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-\w+|send|recv)(?:-start|-done)?"
)
_ARRAY = re.compile(r"[a-z]\w{0,19}\[[\d,]*\]")
_GROUPS = re.compile(r"replica_groups=(?:\{\{([\d,]+)\}|\[\d+,(\d+)\]<=|mesh\[([^\]\n]{0,200})\] \{([^}\n]{0,200})\})")
_AXIS = re.compile(r"'(\w+)'(?:=(\d+))?")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)+)\}")
_SCALAR = re.compile(r"\w+\[1?\]")
_MOVES = {"parameter", "constant", "bitcast", "pad", "slice", "dynamic-slice", "reshape"}  # with what is sent
_PAIR = re.compile(r"\{(\d+),(\d+)\}")
# Microseconds until a collective of XLA moves bytes: published times of small messages (v5e, v6e, v5p), and of tpu7x
# what is left of those of all messages without the bytes. Of v4 none are: it has that of v6e.
_STARTS = {"v4": 5.6, "v5e": 5.6, "v5p": 4.55, "v6e": 5.6, "tpu7x": 13.0}
_SLOWEST_START = 1.5  # times that
_SLOWEST_SHARE = 0.5  # of one link: an all-gather on eight v5e gets 27 of 50 GB/s
_HOP = 1.0  # microseconds, for each device after the first that a message goes by
_WRAPPED = 16  # devices from which on an axis of a torus of two dimensions is a ring


@dataclass(frozen=True)
class Communication:
    """Microseconds of a communication: what is likely, the least, and the most."""

    likely: float
    low: float
    high: float

    def after(self, likely: float, low: float, high: float) -> Communication:
        """What is left of it beside work that takes so long."""
        return Communication(max(self.likely - likely, 0.0), max(self.low - high, 0.0), max(self.high - low, 0.0))


def predict(operation: Operation, device: str) -> Communication | None:
    """What a communication takes that begins at once on all devices; None where its size or kind is not known.

    At the least all links of a chip carry a part, at the most half of one does, step by step.
    """
    match, size = KIND.fullmatch(operation.opcode), _size(operation)
    if match is None or not size:
        return None
    if match[1] == "collective-permute":
        return _permuted(operation.attributes, size, device)
    count = group_size(operation.attributes)
    if count is None or match[1] not in _SENT:
        return None
    if count < 2:
        return Communication(0.0, 0.0, 0.0)
    sent, phases = _SENT[match[1]](size, count)
    # On a ring, what is not for a neighbour takes the links of others, too.
    around = size * count / 4 if match[1] == "all-to-all" else sent
    ports = min(CHIPS[device].ports, count - 1)
    likely = around / min(_links(device, count), count - 1)
    return _took(device, likely, sent / ports, around, phases, (count - 1) * phases)


def within(fusion: Operation, inner: Sequence[Operation]) -> Operation | None:
    """The communication that a fusion is, where nothing else in it takes time; None where something does.

    An all-reduce of which each device keeps a slice is a reduce-scatter: XLA has it in this form.
    """
    found = [each for each in inner if KIND.fullmatch(each.opcode)]
    others = [each for each in inner if each not in found and not _SCALAR.match(each.result)]
    if len(found) != 1 or any(each.opcode not in _MOVES for each in others):
        return None
    if (found[0].opcode, inner[-1].opcode) == ("all-reduce", "dynamic-slice"):
        return replace(found[0], opcode="reduce-scatter", result=fusion.result)
    return found[0]


def _links(device: str, count: int) -> int:
    """How many links of a chip likely carry a part: one of a line, two of a ring, four of a torus of rings.

    On a torus of two dimensions fewer than 16 devices are no ring, and 256 are all there are.
    """
    if CHIPS[device].ports > 4:
        return 2
    return 1 if count < _WRAPPED else 2 if count < _WRAPPED**2 else 4


def _size(operation: Operation) -> int:
    """Bytes of the result on one device; what begins a communication has its operands in front of it."""
    if operation.result.startswith("(("):
        return operation.bytes
    arrays = [array_bytes(text) for text in _ARRAY.findall(operation.result)]
    begins = operation.opcode.endswith("-start") and len(arrays) > 1
    return arrays[1] if begins else sum(arrays)


def _gathered(size: int, count: int) -> tuple[float, int]:
    """The bytes of the result that a device gets from others, and in how many phases."""
    return size * (count - 1) / count, 1


_SENT: dict[str, Callable[[int, int], tuple[float, int]]] = {
    "all-gather": _gathered,
    "all-to-all": _gathered,
    "reduce-scatter": lambda size, count: (float(size * (count - 1)), 1),
    "all-reduce": lambda size, count: (2 * size * (count - 1) / count, 2),  # scattered, and gathered again
}


def _permuted(attributes: str, size: int, device: str) -> Communication | None:
    """Every device sends to one: to a neighbour, or past others, whose links carry it, too."""
    found = _PAIRS.search(attributes)
    pairs = [(int(source), int(target)) for source, target in _PAIR.findall(found[1])] if found is not None else []
    if not pairs:
        return None
    around = max(max(pair) for pair in pairs) + 1
    far = max(min(abs(source - target), around - abs(source - target)) for source, target in pairs)
    hops = max(far, 2 if around > 2 else 1)  # neighbours in number are not always neighbours
    return _took(device, size, size, size * hops, 1, hops)


def _took(device: str, likely: float, least: float, most: float, phases: int, hops: int) -> Communication:
    """Microseconds of so many bytes over one link, in so many phases, in the slowest case with so many hops."""
    start, link = _STARTS[device], CHIPS[device].link * 1e3
    return Communication(
        phases * start + likely / (link * LIKELY.links),
        phases * _HOP + least / (link * FASTEST.links),
        phases * start * _SLOWEST_START + hops * _HOP + most / (link * _SLOWEST_SHARE),
    )


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
