"""From the packed data of `pallas_lint/compat/data` back to what was measured, to add a version to it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import packed_outcomes
from packed_outcomes import load

from pallas_lint.compat import histories

if TYPE_CHECKING:
    from outcome_table import OutcomeTable


def _with(bit: int, groups: Iterable[tuple[str, str]]) -> list[str]:
    return [name for mask, names in groups if int(mask, 16) & bit for name in names.split()]


def apis(data: Path, known: list[str]) -> dict[str, dict[str, Any]]:
    """What `measure/apis.py` wrote, by version, as far as `pack.pack_apis` reads it."""
    packed, parameters = load(data / "apis.json.gz"), load(data / "parameters.json.gz")
    listed = {
        f"{owner}.{name}" for owner, groups in packed["names"].items() for _, all_ in groups for name in all_.split()
    }
    found = {}
    for index, version in enumerate(known):
        bit = 1 << index
        names = {owner: _with(bit, groups) for owner, groups in packed["names"].items()}
        held = {f"{owner}.{name}" for owner, those in names.items() for name in those}
        signatures = {}
        for canonical, history in parameters.items():
            text = histories.at(history, index)
            if text is not None:
                signatures[canonical] = text.split()
            if text is not None and canonical not in held and canonical not in listed:  # it begins with "_"
                owner, _, name = canonical.rpartition(".")
                names.setdefault(owner, []).append(name)
        found[version] = {
            "modules": [name for name, mask in packed["modules"].items() if int(mask, 16) & bit],
            "names": names,
            "members": {owner: _with(bit, groups) for owner, groups in packed["members"].items()},
            "deprecated": {
                name: packed["messages"][at] for name, (mask, at) in packed["deprecated"].items() if int(mask, 16) & bit
            },
            "gone": {name: packed["messages"][at] for name, at in packed["gone"].items()},
            "parameters": signatures,
        }
    return found


def registries(data: Path, known: list[str]) -> dict[str, dict[str, list[str]]]:
    """What `measure/registries.py` wrote, by version."""
    packed = load(data / "primitives.json.gz")
    return {
        version: {
            name: _with(1 << index, packed["registries"].get(name, ()))
            for name, mask in packed["exists"].items()
            if int(mask, 16) & 1 << index
        }
        for index, version in enumerate(known)
    }


def functions(data: Path, measured: list[str]) -> OutcomeTable:
    """Outcomes of the versions that were measured, and the primitives of each function."""
    table = packed_outcomes.read(data, measured)
    for name, history in load(data / "ingredients.json.gz").items():
        table.primitives[name] = {since: set((names or "").split()) for since, names in histories.read(history)}
    return table
