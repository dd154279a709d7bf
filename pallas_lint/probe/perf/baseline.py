"""What launches cost on record: written by one run, compared with by later ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.perf.figures import microseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pallas_lint.probe.cost.told import Cost
    from pallas_lint.probe.results import LaunchResult, ProbeResult

VERSION = 1


class BaselineError(ValueError):
    """The file is not as this tool writes it; the message is one sentence."""


def read(file: Path) -> dict[str, dict[str, Any]]:
    """What the launches on record took, by what names them. Raises BaselineError, OSError."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            raise BaselineError(f"it is of version {document['version']}, and this pallas-lint reads {VERSION}")
        launches = {str(name): dict(entry) for name, entry in document["launches"].items()}
        for entry in launches.values():
            entry["microseconds"] = float(entry["microseconds"])
    except BaselineError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BaselineError("it is no record of costs; write it anew with --write-perf-baseline") from error
    return launches


def text(results: Sequence[ProbeResult]) -> str:
    """The record of what was told of all launches."""
    launches = {
        name: {"microseconds": round(cost["microseconds"], 3), "compiler": cost["compiler"]}
        for name, cost, _ in named(results)
        if cost["microseconds"] is not None
    }
    return json.dumps({"version": VERSION, "launches": dict(sorted(launches.items()))}, indent=2) + "\n"


def named(results: Sequence[ProbeResult]) -> Iterator[tuple[str, Cost, tuple[ProbeResult, LaunchResult]]]:
    """Each cost under the name that it has on record: function, kernel, operands and target."""
    for result in results:
        for launch in result.launches:
            types = ", ".join(f"{each['dtype']}{each['shape']}".replace(" ", "") for each in launch.facts["operands"])
            function = result.spec.text if result.spec is not None else ""
            for cost in launch.costs:
                yield f"{function} {launch.kernel}({types}) {cost['target']}", cost, (result, launch)


def slower(
    results: Sequence[ProbeResult], known: dict[str, dict[str, Any]], share: float
) -> Iterator[tuple[ProbeResult, LaunchResult, Cost, str]]:
    """The launches that take longer by more than `share` of what is on record, with what to say."""
    for name, cost, (result, launch) in named(results):
        before = known.get(name)
        took = cost["microseconds"]
        if before is None or took is None or took <= before["microseconds"] * (1 + share):
            continue
        grown = took / before["microseconds"] - 1
        told = f"{grown:.0%} slower than on record: {microseconds(took)}, was {microseconds(before['microseconds'])}"
        if before.get("compiler") != cost["compiler"]:
            told += f" ({cost['compiler']}, was {before.get('compiler')})"
        yield result, launch, cost, told
