"""The predicted cost of a whole compiled program: its kernels, XLA's operations, and copies beside them.

Operations run one after the other, in the order that the compiler chose. Copies that XLA begins early run beside
them, in the time in which they leave HBM idle, and so do messages between devices; only what is left when their result
is wanted is waited for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from . import collectives, sparse_cores
from .chips import CHIPS, LIKELY
from .collectives import Communication
from .prediction import Prediction
from .sparse_cores import Offload
from .xla_program import Operation, XlaProgram

# Of no code, or of a few instructions of the scalar unit in the program itself.
_FREE = {
    "parameter", "constant", "bitcast", "tuple", "get-tuple-element", "after-all", "opt-barrier", "partition-id",
    "replica-id", "add-dependency",
}  # fmt: skip
# Arrays that lie behind each other, memory to be written to, and what is counted with the start of SparseCores.
_FREE_CALLS = {"ConcatBitcast", "AllocateBuffer", "PrepareAsyncCallStart", "PrepareAsyncCallDone"}
_SCALAR = re.compile(r"\w+\[1?\]")
_MAX_DEPTH = 50  # calls within each other

Predict = Callable[[Operation, dict[str, str]], Prediction]
Turns = Mapping[tuple[str, int], float]  # of loops, by file and line


@dataclass
class Share:
    """What an operation of the program takes, all its runs together. In microseconds."""

    operation: Operation
    microseconds: float
    low: float
    high: float


@dataclass
class ProgramCost:
    """Microseconds of a program. `missing`: operations without a number, and why; the sum is then of the others.

    `doubts`: what of it is rough.
    """

    kernels: float = 0.0
    xla: float = 0.0
    low: float = 0.0
    high: float = 0.0
    missing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    shares: dict[str, Share] = field(default_factory=dict)

    def add(self, operation: Operation, took: float, low: float, high: float) -> None:
        if operation.is_kernel:
            self.kernels += took
        else:
            self.xla += took
        self.low += low
        self.high += high
        share = self.shares.setdefault(operation.name, Share(operation, 0.0, 0.0, 0.0))
        share.microseconds += took
        share.low += low
        share.high += high


def cost(program: XlaProgram, device: str, predict: Predict, turns: Callable[[], Turns] = dict) -> ProgramCost:
    """What a program costs; `predict` has the prediction of an operation, given the types of all results.

    `turns`: how often loops run whose count is not in the program itself.
    """
    total = ProgramCost()
    _Run(program, device, predict, turns, total).run(program.entry, 1, 0)
    return total


class _Run:
    def __init__(
        self, program: XlaProgram, device: str, predict: Predict, turns: Callable[[], Turns], total: ProgramCost
    ) -> None:
        self.program, self.predict, self.turns, self.total = program, predict, turns, total
        chip = CHIPS[device]
        self.bandwidth = chip.bandwidth * LIKELY.efficiency * 1e3  # bytes a microsecond
        self.latency = LIKELY.latency / 1e3
        self.device = device
        self.copies: dict[str, float] = {}  # under way, in order: microseconds for which they still move bytes
        self.messages: dict[str, Communication] = {}  # between devices or cores, under way: what is left of each
        self.offloads: dict[str, Offload] = {}  # by what starts them

    def run(self, computation: str, times: float, depth: int) -> None:
        """Add what a computation takes that runs so often."""
        types = self.program.types(computation)
        for operation in self.program.computations[computation]:
            self._step(operation, computation, types, times, depth)

    def _step(self, operation: Operation, around: str, types: dict[str, str], times: float, depth: int) -> None:
        opcode = operation.opcode
        if opcode in _FREE or operation.value in _FREE_CALLS:
            return
        if opcode in ("while", "call"):
            turns: float | None = self.program.turns(operation, around) if opcode == "while" else 1
            if turns is None and operation.place is not None:
                turns = self.turns().get(operation.place)
            called = operation.called
            if called not in self.program.computations or depth > _MAX_DEPTH:
                self._miss(operation, "what it runs is not known")
            elif turns is None:
                self._miss(operation, f"how often it runs is not known{self._turn(called, depth)}")
            else:
                self.run(called, times * turns, depth + 1)
        elif opcode == "call-start":
            self._offload(operation)
        elif opcode == "call-update":
            self._begin(operation, self.offloads.get(operation.operands[0]))
        elif opcode == "call-done":
            self._finish(operation.operands[0], operation, times)
        elif kind := self._collective(operation):
            self._communicate(operation, kind, times)
        elif opcode in ("copy-start", "slice-start"):
            self.copies[operation.name] = operation.bytes / self.bandwidth
        elif opcode in ("copy-done", "slice-done") and operation.operands[0] in self.copies:
            self._wait(operation, times)
        else:
            self._execute(operation, types, times)

    def _turn(self, called: str, depth: int) -> str:
        """What one turn of a loop takes, as text; empty where that is not known."""
        once = ProgramCost()
        _Run(self.program, self.device, self.predict, self.turns, once).run(called, 1, depth + 1)
        if once.missing:
            return ""
        return f": each turn takes {once.kernels + once.xla:.3g} µs ({once.low:.3g} to {once.high:.3g} µs)"

    def _collective(self, operation: Operation) -> str:
        """The kind of communication between devices that an operation is, or that is fused into it; empty for none."""
        inner = self.program.computations.get(operation.called or "", ()) if operation.opcode == "fusion" else ()
        kinds = (each.opcode for each in (operation, *inner) if collectives.KIND.fullmatch(each.opcode))
        return next(kinds, "").removesuffix("-start").removesuffix("-done")

    def _communicate(self, operation: Operation, kind: str, times: float) -> None:
        """Send at once, or begin to, or wait for the rest of what was begun."""
        if operation.opcode.endswith("-done"):
            self._finish(operation.operands[0], operation, times)
            return
        alone: Operation | None = operation
        if operation.opcode == "fusion":
            alone = collectives.within(operation, self.program.computations[operation.called or ""])
        found = collectives.predict(alone, self.device) if alone is not None else None
        if found is None:
            self._miss(operation, f"the devices wait for each other ({kind})")
            return
        self.messages[operation.name] = found
        if not operation.opcode.endswith("-start"):
            self._finish(operation.name, operation, times)

    def _offload(self, operation: Operation) -> None:
        """What SparseCores begin, now or once they have its operands."""
        found = sparse_cores.offload(self.program, operation.called or "", self.device)
        if found is None:
            self._miss(operation, "it runs on SparseCores")
            return
        self.offloads[operation.name] = found
        if found.doubt not in self.total.doubts:
            self.total.doubts.append(found.doubt)
        if operation.operands:  # else they come with an update
            self._begin(operation, found)

    def _begin(self, operation: Operation, offload: Offload | None) -> None:
        if offload is not None:
            self.messages[operation.name] = sparse_cores.predict(offload, operation, self.device)

    def _finish(self, begun: str, operation: Operation, times: float) -> None:
        """Wait for the rest of what was begun."""
        found = self.messages.pop(begun, None)
        if found is not None:
            self.total.add(operation, found.likely * times, found.low * times, found.high * times)

    def _wait(self, operation: Operation, times: float) -> None:
        left = 0.0
        for name in self.copies:  # one after the other
            left, self.copies[name] = left + self.copies[name], 0.0
            if name == operation.operands[0]:
                break
        if left > 0:
            took = (left + self.latency) * times
            self.total.add(operation, took, took, took)

    def _execute(self, operation: Operation, types: dict[str, str], times: float) -> None:
        found = self.predict(operation, types)
        if found.microseconds is None or found.low is None or found.high is None:
            if not _SCALAR.match(operation.result) or operation.opcode in ("fusion", "custom-call"):
                self._miss(operation, "; ".join(found.doubts))
            return
        self.total.doubts += [each for each in found.assumed if each not in self.total.doubts]
        self.total.add(operation, found.microseconds * times, found.low * times, found.high * times)
        for name, message in self.messages.items():
            self.messages[name] = message.after(found.microseconds, found.low, found.high)
        idle = max(found.microseconds - (found.read + found.written) / self.bandwidth, 0.0)
        for name, left in self.copies.items():
            self.copies[name] = max(left - idle, 0.0)
            idle = max(idle - left, 0.0)

    def _miss(self, operation: Operation, why: str) -> None:
        text = f"{operation.name}: {why}" if why else operation.name
        if text not in self.total.missing:
            self.total.missing.append(text)
