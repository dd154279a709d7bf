"""Outcomes of measured cases by function, target, version and dtype."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pallas_lint.compat import histories

DTYPES = ("f32", "bf16", "f16", "i32", "i8", "u32", "bool")
DEVICES = ("v4", "v5e", "v5p", "v6e", "tpu7x")  # generations of TPUs that are compiled for
TARGETS = (
    "triton", "tpu", *(f"tpu:{device}" for device in DEVICES), "triton:h200", "mosaic_gpu", "mosaic_gpu:lane",
    "mosaic_gpu:warpgroup", "tpu:sc_vector", "tpu:sc_scalar",
)  # fmt: skip
_Outcome = tuple[str, "str | None", "str | None"]  # a letter, the primitive to blame, the message
NOT_MEASURED: _Outcome = ("-", None, None)
MESSAGE_LIMIT = 120
# These only hold other primitives: naming them does not help.
CALLS = frozenset({"pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"})


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a JSON-lines file that are whole."""
    if path.exists():
        with path.open() as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    continue


def unimplemented(message: str) -> str | None:
    """The primitive that a backend has no rule for, by its message."""
    found = re.match(r"(?:Unimplemented|Unsupported) primitive[^:]*: ([\w-]+)", message)
    return found.group(1) if found else None


def clean(message: str) -> str:
    """The message without what belongs to the measuring: places in the recipes, addresses, wrappers."""
    if "The kernel function in the pallas_call" in message and " cap" in message:
        return "the function makes an array constant, which a kernel cannot capture"
    message = re.sub(r"^(?:INTERNAL: )?Mosaic failed to compile TPU kernel: ", "", message)
    message = re.sub(r"^Lowering(?:Exception|Error): (?=\w+:)", "", message)
    message = re.sub(r"\b\d{9,}\b", "…", message)
    message = re.sub(r": %\d+ = .*$", "", message)
    if message.startswith('error: "'):
        reason = re.search(r"\)+: ([^()\"]+)$", message)
        return reason.group(1) if reason else "refused by the verifier of the compiler's own language"
    return message.rstrip(": ")


class OutcomeTable:
    """Collects outcomes and gives equal ones one number."""

    def __init__(self, measured: list[str], outcomes: Sequence[_Outcome] = (NOT_MEASURED,)) -> None:
        self.measured = measured
        self.outcomes = [*outcomes]
        self._outcome_numbers = {outcome: number for number, outcome in enumerate(outcomes)}
        # (function, variant) → target → version index → dtype → outcome number
        self.table: dict[tuple[str, str], dict[str, dict[int, dict[str, int]]]] = {}
        self.primitives: dict[str, dict[int, set[str]]] = {}
        self.compiled: dict[str, list[int]] = {}

    def add(self, key: tuple[str, str], target: str, index: int, dtype: str, outcome: list[Any]) -> None:
        """Record one case."""
        cells = self.table.setdefault(key, {}).setdefault(target, {}).setdefault(index, {})
        cells[dtype] = self._number(outcome)

    def has_compiled(self, target: str, index: int) -> None:
        """Note that a version was measured for a target that lowering does not judge alone."""
        indices = self.compiled.setdefault(target, [])
        self.compiled[target] = sorted({*indices, index})

    def forget(self, names: Collection[str]) -> None:
        """Remove the data of these functions."""
        self.table = {key: by_target for key, by_target in self.table.items() if key[0] not in names}
        self.primitives = {name: by_version for name, by_version in self.primitives.items() if name not in names}

    def _number(self, outcome: list[Any]) -> int:
        letter, message, primitive = outcome[0], outcome[1] or None, outcome[2]
        if message is not None and message.startswith(("Unimplemented primitive", "Unsupported primitive")):
            # The primitive is enough; the sentence changes from version to version.
            primitive = unimplemented(message)
            message = None
        elif primitive in CALLS:
            primitive = None
        if message is not None:
            message = clean(message)[:MESSAGE_LIMIT]
        found = (letter, primitive, message)
        if found not in self._outcome_numbers:
            self._outcome_numbers[found] = len(self.outcomes)
            self.outcomes.append(found)
        return self._outcome_numbers[found]

    def soften(self) -> None:
        """Take back failures of u32 along all axes where i32 fails there too but works along one axis.

        u32 is only measured along all axes: its failure there is not about the function.
        """
        for (name, variant), by_target in self.table.items():
            if variant != "plain":
                continue
            for target, by_version in by_target.items():
                for index, cells in by_version.items():
                    along = self.table.get((name, "axis1"), {}).get(target, {}).get(index)
                    if along is None or "u32" in along or "u32" not in cells:
                        continue
                    same = self._letter(cells.get("i32")) not in "ku" and self._letter(along.get("i32")) == "k"
                    if same and self._letter(cells["u32"]) not in "ku":
                        cells["u32"] = self._number(["T", "", None])

    def _letter(self, number: int | None) -> str:
        return self.outcomes[number or 0][0]

    def primitive_histories(self) -> dict[str, str]:
        """Primitives of each function by version."""
        return {
            name: histories.spell(_changes((index, " ".join(sorted(names))) for index, names in sorted(by.items())))
            for name, by in sorted(self.primitives.items())
        }


def _changes(steps: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The steps whose text differs from that of the step before."""
    before: str | None = None
    for index, text in steps:
        if text != before:
            yield index, text
        before = text


# Recipes without an operand of the tested dtype are measured once, as "f32"; this is what they really make.
_MAKES = {
    ("jax.numpy.arange", "vector"): "i32",
    ("jax.numpy.arange", "start"): "i32",
    ("jax.lax.broadcasted_iota", "lanes"): "i32",
    ("jax.lax.broadcasted_iota", "rows"): "i32",
}


def dtype_of(row: dict[str, Any]) -> str:
    """The dtype that a case is really of."""
    made = _MAKES.get((row["f"], row["v"]))
    if made is None and row["d"] == "f32" and row["v"] in DTYPES and row["f"] in _NO_OPERANDS:
        made = row["v"]
    return made or row["d"]


_NO_OPERANDS = frozenset(
    {"jax.numpy.arange", "jax.lax.iota", "jax.lax.broadcasted_iota", "jax.numpy.full", "jax.numpy.zeros",
     "jax.numpy.ones", "jax.numpy.empty"}
)  # fmt: skip
