"""Outcomes of measured cases by function, target, version and dtype, and their packed form."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

DTYPES = ("f32", "bf16", "f16", "i32", "i8", "u32", "bool")
DEVICES = ("v4", "v5e", "v5p", "v6e", "tpu7x")  # generations of TPUs that are compiled for
TARGETS = (
    "triton", "tpu", *(f"tpu:{device}" for device in DEVICES), "triton:h200", "mosaic_gpu", "mosaic_gpu:lane",
    "mosaic_gpu:warpgroup", "tpu:sc_vector", "tpu:sc_scalar",
)  # fmt: skip
NOT_MEASURED = ("-", None, None)
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


def write(path: Path, content: Any) -> None:
    """Write compressed JSON; the same content always gives the same bytes."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


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

    def __init__(self, measured: list[str]) -> None:
        self.measured = measured
        self.outcomes: list[tuple[str, str | None, str | None]] = [NOT_MEASURED]
        self._outcome_numbers = {NOT_MEASURED: 0}
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

    @classmethod
    def read(cls, content: dict[str, Any], measured: list[str]) -> OutcomeTable:
        """What was packed; of the primitives, which have a file of their own, nothing."""
        self = cls(measured)
        self.outcomes = [tuple(outcome) for outcome in content["outcomes"]]
        self._outcome_numbers = {outcome: number for number, outcome in enumerate(self.outcomes)}
        self.compiled = {target: list(indices) for target, indices in content["compiled"].items()}
        for name, variants in content["functions"].items():
            for variant, row in variants.items():
                by_target = self.table.setdefault((name, variant), {})
                for target, history in zip(content["targets"], map(int, row.split()), strict=True):
                    by_target[target] = _unpacked(content, history, len(measured)) if history >= 0 else {}
        return self

    def content(self) -> dict[str, Any]:
        """The packed form: numbers in rows of text, which are parsed when they are needed."""
        cells: dict[str, int] = {}
        histories: dict[str, int] = {}
        used: Counter[int] = Counter()
        for by_target in self.table.values():
            for by_version in by_target.values():
                for found in by_version.values():
                    used.update(found.values())
        # Frequent outcomes get short numbers.
        order = [0] + [number for number, _ in used.most_common() if number]
        renumbered = {number: place for place, number in enumerate(order)}
        functions: dict[str, dict[str, str]] = {}
        for (name, variant), by_target in sorted(self.table.items()):
            row = []
            for target in TARGETS:
                history: list[list[int]] = []
                for index in range(len(self.measured)):
                    found = by_target.get(target, {}).get(index)
                    number = -1
                    if found is not None:
                        text = " ".join(str(renumbered[found.get(dtype, 0)]) for dtype in DTYPES)
                        number = cells.setdefault(text, len(cells))
                    if not history or history[-1][1] != number:
                        history.append([index, number])
                if history == [[0, -1]]:
                    row.append(-1)
                else:
                    spelled = " ".join(f"{since}:{cell}" for since, cell in history)
                    row.append(histories.setdefault(spelled, len(histories)))
            functions.setdefault(name, {})[variant] = " ".join(map(str, row))
        return {
            "targets": TARGETS,
            "dtypes": DTYPES,
            "compiled": self.compiled,
            "outcomes": [self.outcomes[number] for number in order],
            "cells": list(cells),
            "histories": list(histories),
            "functions": functions,
            "primitives": {name: self._primitives(by) for name, by in sorted(self.primitives.items())},
        }

    def _primitives(self, by_version: dict[int, set[str]]) -> list[tuple[int, str]]:
        history: list[tuple[int, str]] = []
        for index, names in sorted(by_version.items()):
            text = " ".join(sorted(names))
            if not history or history[-1][1] != text:
                history.append((index, text))
        return history


def _unpacked(content: dict[str, Any], history: int, versions: int) -> dict[int, dict[str, int]]:
    """Outcome numbers by version index and dtype."""
    since = dict(tuple(map(int, step.split(":"))) for step in content["histories"][history].split())
    found: dict[int, dict[str, int]] = {}
    cells = -1
    for index in range(versions):
        cells = since.get(index, cells)
        if cells >= 0:
            numbers = zip(DTYPES, map(int, content["cells"][cells].split()), strict=True)
            found[index] = {dtype: number for dtype, number in numbers if number}
    return found


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


def replace_targets(work: Path, data: Path, prefix: str, add: Callable[[OutcomeTable, Path, str, int], None]) -> None:
    """Replace the packed data of the targets with this prefix, and of no others.

    `add` adds what was measured of them, given the folder `work`, the version and its index.
    """
    measured = json.loads((data / "versions.json").read_text(encoding="utf-8"))["measured"]
    path = data / "functions.json.gz"
    functions = OutcomeTable.read(json.loads(gzip.decompress(path.read_bytes())), measured)
    for by_target in (functions.compiled, *functions.table.values()):
        for target in [target for target in by_target if target.startswith(prefix)]:
            del by_target[target]
    for index, version in enumerate(measured):
        add(functions, work, version, index)
    content = functions.content()
    del content["primitives"]  # which are packed elsewhere
    write(path, content)
    print("functions", len(content["functions"]), "bytes", path.stat().st_size)
