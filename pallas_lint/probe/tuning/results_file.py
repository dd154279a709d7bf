"""Outcomes of calls with other block sizes, and the file in which `--tune` and `--tune-table` find those of before."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from pallas_lint.probe.typed_json import type_mismatch
from pallas_lint.records import define, field, frozen
from pallas_lint.text import files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_Kind = TypeVar("_Kind", bound="Results")
State = Literal["ok", "beaten", "too-large", "fails", "unknown"]

_LARGEST_FILE = 256 << 20  # bytes: a call takes about two hundred
_VERSION = 1


class _Stored(TypedDict):
    """An outcome in a results file."""

    took: dict[str, tuple[float, float, float]]
    why: dict[str, tuple[State, str]]


class _StoredForGpu(_Stored, total=False):
    clocks: dict[str, float]


class ResultsError(ValueError):
    """A results file that cannot be continued; the message is one sentence."""


@frozen
class Outcome:
    """What one call came to, by target: microseconds with their range, or what kind of failure and why.

    `clocks`: by which calls are put in order for a GPU, whose times are not predicted.
    """

    took: Mapping[str, tuple[float, float, float]] = field(factory=dict)
    why: Mapping[str, tuple[State, str]] = field(factory=dict)
    clocks: Mapping[str, float] = field(factory=dict)


@define
class Results:
    """The outcomes of calls, of earlier runs and of this one. `conditions`: they hold for these alone."""

    conditions: Mapping[str, Any]
    outcomes: dict[str, Outcome] = field(factory=dict)

    @classmethod
    def of(cls: type[_Kind], function: Path, name: str, targets: Sequence[str]) -> _Kind:
        """No outcomes yet, of a function of a file as it is now. Raises OSError."""
        source = hashlib.sha256(files.read(function)).hexdigest()
        return cls({"version": _VERSION, "function": name, "source": source, "targets": sorted(targets)})

    def read(self, file: Path) -> None:
        """Add the outcomes in a results file. Raises ResultsError, OSError."""
        self.add(files.read(file, _LARGEST_FILE))

    def add(self, text: str | bytes) -> None:
        """Add the outcomes that the text of a results file has. Raises ResultsError."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ResultsError("it is not a results file of --tune or --tune-table") from error
        if not isinstance(document, dict) or not isinstance(document.get("calls"), dict):
            raise ResultsError("it is not a results file of --tune or --tune-table")
        for name, wanted in self.conditions.items():
            if document.get(name) != wanted:
                raise ResultsError(f"`{name}` is not as in this run: remove the file, or name another")
        for name, call in document["calls"].items():
            wrong = type_mismatch(call, _StoredForGpu)
            if wrong is not None:
                raise ResultsError(f"{name}: {wrong}")
            took = {target: (one, low, high) for target, (one, low, high) in call["took"].items()}
            why = {target: (kind, why) for target, (kind, why) in call["why"].items()}
            self.outcomes[name] = Outcome(took, why, call.get("clocks", {}))

    def text(self) -> str:
        """The results file."""
        calls = {
            name: {"took": one.took, "why": one.why, **({"clocks": one.clocks} if one.clocks else {})}
            for name, one in sorted(self.outcomes.items())
        }
        return json.dumps({**self.conditions, "calls": calls}, indent=1) + "\n"
