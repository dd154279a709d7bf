"""Fields of `pltpu.get_tpu_info()`: what jax releases return for each chip, from `data/tpu_info.json`."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from pallas_lint.compat import tables
from pallas_lint.compat.versions import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Field = int | bool | None
_UNKNOWN: Field = -1  # no field is negative


def field_of(name: str, chips: Iterable[str], versions: Iterable[str]) -> tuple[Field, ...]:
    """The value that all these chips have with all these releases of jax; empty where they differ or it is not known.

    Without chips it is the value of all that are known, as of `num_lanes`: the code runs on one of them.
    Those of parts are `sparse_core.num_lanes` and, by the bits of the dtype, `get_sublane_tiling.16`.
    """
    every = list(versions)
    found = {
        value for chip in list(chips) or _data()["chips"] for version in every for value in _values(name, chip, version)
    }
    return () if _UNKNOWN in found or len(found) != 1 else tuple(found)


def _values(name: str, chip: str, version: str) -> Iterator[Field]:
    """What the measured releases have that are nearest to this one."""
    steps = _data()["chips"].get(chip, {}).get(name, [])
    releases = [parse(release) for release in _data()["releases"]]
    wanted = parse(version)
    before, after = [each for each in releases if each <= wanted], [each for each in releases if each >= wanted]
    for release in (*before[-1:], *after[:1]):
        held = [value for since, value in steps if parse(since) <= release]
        yield held[-1] if held else _UNKNOWN
    if not before:
        yield _UNKNOWN


@functools.cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((tables.DATA / "tpu_info.json").read_text(encoding="utf-8"))
    return data
