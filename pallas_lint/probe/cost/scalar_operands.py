"""Values of scalar operands of the kernels in a program, computed or assumed: sizes of groups.

A product of groups (`jax.lax.ragged_dot`) is a kernel of XLA's whose loop depends on what another one computed of the
sizes of the groups. That one only uses the scalar unit, so that what it writes is known where the sizes are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .xla_program import Operation, XlaProgram

Case = Literal["likely", "least", "most"]
CASES: tuple[Case, ...] = ("likely", "least", "most")
ASSUMED = (
    "sizes of groups are not known, and taken to be equal; the range is from one group of all rows to groups that "
    "share the most tiles"
)
WITHIN = "indices of gathers and scatters are not known, and taken to lie within the array"
_VECTOR = re.compile(r"[su]32\[(\d*)\]")
_MATRIX = re.compile(r"\w+\[(\d+),\d+\]")
_INTEGERS = re.compile(r"\{?\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\}?")
_METADATA = re.compile(r"ragged-dot-metadata(?:\.\d+)?")
_SAME = {"copy", "bitcast", "copy-done", "copy-start"}
_MAX_DEPTH = 20  # operations that only hand on
_MAX_WORDS = 1 << 16


@dataclass
class ScalarOperands:
    """What is known of the vectors of integers in a program.

    `written`: by kernel, what it wrote to its results, by their numbers behind those of its operands.
    """

    program: XlaProgram
    case: Case
    written: dict[str, Mapping[int, Sequence[int]]] = field(default_factory=dict)
    assumes: bool = False  # whether something was assumed

    def __post_init__(self) -> None:
        operations = [each for inner in self.program.computations.values() for each in inner]
        self.definitions = {each.name: each for each in operations}
        self.users: dict[str, list[Operation]] = {}
        for each in operations:
            for name in each.operands:
                self.users.setdefault(name, []).append(each)

    def given(self, kernel: Operation) -> dict[int, list[int]]:
        """The values of a kernel's operands, by number."""
        known = {at: self.of(name) for at, name in enumerate(kernel.operands)}
        given = {at: list(words) for at, words in known.items() if words is not None}
        if not given and _METADATA.fullmatch(kernel.name) and (sizes := self._sizes(kernel)) is not None:
            self.assumes = True
            given[0] = sizes
        return given

    def of(self, name: str, depth: int = 0) -> Sequence[int] | None:
        """The integers that a name stands for; None where they are not known."""
        found = self.definitions.get(name)
        if found is None or depth > _MAX_DEPTH:
            return None
        if found.opcode == "get-tuple-element":
            kernel = self.definitions.get(found.operands[0])
            return None if kernel is None else self._written(kernel, int(found.value))
        match = _VECTOR.match(found.result)
        if found.opcode in _SAME and found.operands:
            source = self.definitions.get(found.operands[0])
            same = source is not None and _array(source.result) == _array(found.result)
            return self.of(found.operands[0], depth + 1) if same else None
        if match is None or int(match[1] or 1) > _MAX_WORDS:
            return None
        if found.opcode == "constant" and (integers := _INTEGERS.fullmatch(found.value)):
            return [int(each) for each in integers[1].split(",")]
        if found.opcode == "broadcast" and (value := self.of(found.operands[0], depth + 1)) and len(value) == 1:
            return [*value] * int(match[1] or 1)
        return self._written(found, 0) if found.opcode == "custom-call" else None

    def _written(self, kernel: Operation, result: int) -> Sequence[int] | None:
        return self.written.get(kernel.name, {}).get(len(kernel.operands) + result)

    def _sizes(self, metadata: Operation) -> list[int] | None:
        """Sizes of the groups, of the product that uses what is computed of them; None where that is not seen."""
        groups = _VECTOR.match(self.definitions[metadata.operands[0]].result) if metadata.operands else None
        parts = [each.name for each in self.users.get(metadata.name, ()) if each.opcode == "get-tuple-element"]
        products = [each for part in parts for each in self.users.get(part, ()) if each.opcode == "custom-call"]
        if groups is None or not products:
            return None
        types = (self.definitions[name].result for name in products[0].operands if name in self.definitions)
        rows = next((int(match[1]) for each in types if (match := _MATRIX.match(each))), None)
        return None if rows is None else sizes_of(rows, int(groups[1] or 1), self.case)


def sizes_of(rows: int, groups: int, case: Case) -> list[int]:
    """Sizes of groups that have all rows: equal ones, all in one, or such that no group ends where a tile does."""
    if case == "least":
        return [rows] + [0] * (groups - 1)
    ends = [at * rows // groups for at in range(groups + 1)]
    if case == "most":
        ends[1:-1] = [min(end + 1 - end % 2, rows) for end in ends[1:-1]]  # tiles have an even number of rows
    return [end - begin for begin, end in zip(ends, ends[1:], strict=False)]


def _array(text: str) -> str:
    """The type of the first array in a type, without its layout."""
    return text.lstrip("(").partition("]")[0]
