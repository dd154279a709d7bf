"""Cost baselines: predicted costs of launches, written by one run and compared with by later ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.cost_report.figures import microseconds
from pallas_lint.probe.results import types_of
from pallas_lint.records import frozen
from pallas_lint.text import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.cost.results import Cost
    from pallas_lint.probe.results import LaunchResult, ProbeResult

VERSION = 1
_MAX_BYTES = 16 << 20  # bytes: a launch takes about a hundred
_MIN_TIME, _MAX_TIME = 1e-6, 1e15  # microseconds
_MAX_SHOWN = 100  # characters of what is wrong
_NO_RECORD = "it is not a record of costs; write it anew with --write-perf-baseline"


class CostBaselineError(ValueError):
    """The file is not as this tool writes it; the message is one sentence."""


@frozen
class RecordedCost:
    """The time of a launch on record, and the compiler it was predicted with."""

    microseconds: float
    compiler: str | None


def read(file: Path) -> dict[str, RecordedCost]:
    """What the launches on record took, by what names them. Raises CostBaselineError, OSError."""
    data = files.read(file, _MAX_BYTES)
    try:
        document = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_without_duplicates, parse_int=_number, parse_constant=_number
        )
    except CostBaselineError:
        raise
    except UnicodeDecodeError as error:
        raise CostBaselineError(f"{_NO_RECORD}: line {_line(data, error.start)} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise CostBaselineError(f"{_NO_RECORD}: line {error.lineno} is not JSON") from error
    except RecursionError as error:
        raise CostBaselineError(f"{_NO_RECORD}: it is nested too deeply") from error
    if not isinstance(document, dict):
        raise CostBaselineError(f"{_NO_RECORD}: it is not an object")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise CostBaselineError(f"it is of version {_shown(version)}, and this pallas-lint reads {VERSION}")
    launches = document.get("launches")
    if not isinstance(launches, dict):
        raise CostBaselineError(f"{_NO_RECORD}: `launches` is not an object")
    return {name: _known(name, entry) for name, entry in launches.items()}


def _known(name: str, entry: Any) -> RecordedCost:
    """One launch on record. Raises CostBaselineError."""
    if not isinstance(entry, dict):
        raise CostBaselineError(f"{_shown(name)} is not an object")
    took, compiler = entry.get("microseconds"), entry.get("compiler")
    if isinstance(took, bool) or not isinstance(took, int | float) or not _MIN_TIME <= took <= _MAX_TIME:
        raise CostBaselineError(
            f"{_shown(name)}: `microseconds` is {_shown(took)}, which is not a time that a launch takes"
        )
    if not isinstance(compiler, str | None):
        raise CostBaselineError(f"{_shown(name)}: `compiler` is {_shown(compiler)}, which is not a text")
    return RecordedCost(float(took), compiler)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name, value in pairs:
        if name in known:
            raise CostBaselineError(f"{_shown(name)} is in it twice")
        known[name] = value
    return known


def _number(text: str) -> float:
    """An integer, or NaN and Infinity, which Python's reader lets pass; a long one takes quadratic time as an int."""
    return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else float(text)


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _shown(value: Any) -> str:
    text = "missing" if value is None else json.dumps(value) if isinstance(value, str | float | int) else "no value"
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def text(results: Sequence[ProbeResult]) -> str:
    """The record of all launches."""
    launches = {
        name: {"microseconds": max(round(cost["microseconds"], 3), _MIN_TIME), "compiler": cost["compiler"]}
        for name, cost, _ in named(results)
        if cost["microseconds"] is not None
    }
    return json.dumps({"version": VERSION, "launches": dict(sorted(launches.items()))}, indent=2) + "\n"


def named(results: Sequence[ProbeResult]) -> Iterator[tuple[str, Cost, tuple[ProbeResult, LaunchResult]]]:
    """Each cost under the name that it has on record: function, kernel, operands and target."""
    for result in results:
        for launch in result.launches:
            function = result.spec.text if result.spec is not None else ""
            for cost in launch.costs:
                yield f"{function} {launch.kernel}({types_of(launch.facts)}) {cost['target']}", cost, (result, launch)


def slower(
    results: Sequence[ProbeResult], known: Mapping[str, RecordedCost], share: float
) -> Iterator[tuple[ProbeResult, LaunchResult, Cost, str]]:
    """The launches that take longer by more than `share` than on record, with the messages."""
    for name, cost, (result, launch) in named(results):
        before = known.get(name)
        took = cost["microseconds"]
        if before is None or took is None or took <= before.microseconds * (1 + share):
            continue
        grown = took / before.microseconds - 1
        message = f"{grown:.0%} slower than on record: {microseconds(took)}, was {microseconds(before.microseconds)}"
        if before.compiler != cost["compiler"]:
            message += f" ({cost['compiler']}, was {before.compiler})"
        yield result, launch, cost, message
