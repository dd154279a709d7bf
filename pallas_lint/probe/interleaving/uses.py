"""Conflicts between uses of one buffer: two of the same elements, of which one writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .events import EventIndex, Part, Region


class RegionUse(NamedTuple):
    """One use of a region: by the device's own access, or by a part of a copy that is under way."""

    moment: EventIndex
    region: Region
    writes: bool
    part: Part | None  # of a copy; None: an access


class LineConflicts:
    """The uses of one line that conflict with a use, in the order of the line."""

    def __init__(self, line: int, uses: list[RegionUse]) -> None:
        self.line = line
        self.uses = sorted(uses, key=lambda use: use.moment)
        self.indices = [use.moment[1] for use in self.uses]
        self._reached: dict[int, tuple[list[int], list[int]]] = {}

    def unblocking(self, one: RegionUse, last: int, progress: Callable[[RegionUse], list[int]]) -> list[RegionUse]:
        """The uses among the first `last` without whose end another line gets beyond `one`.

        `progress`: how far each line gets without a use. Later uses hold up what is later, as a rule: the last of them
        is looked at first, and no more where none of those before it lets the other line get as far.
        """
        values, highest = self._reached.setdefault(one.moment[0], ([], []))
        for use in self.uses[len(values) : last]:
            values.append(progress(use)[one.moment[0]])
            highest.append(max(values[-1], highest[-1] if highest else 0))
        found = []
        for at in range(last - 1, -1, -1):
            if highest[at] <= one.moment[1]:
                break
            if values[at] > one.moment[1]:
                found.append(self.uses[at])
        return found[::-1]


class ConflictIndex:
    """For each use of a buffer, those that share an element with it, of which one writes."""

    def __init__(self, uses: Sequence[RegionUse]) -> None:
        self._uses: dict[Region, list[RegionUse]] = defaultdict(list)
        for use in uses:
            self._uses[use.region].append(use)
        self._overlapping = _overlapping(list(self._uses))
        self._found: dict[tuple[Region, bool], list[LineConflicts]] = {}

    def of(self, one: RegionUse) -> list[LineConflicts]:
        """Line after line, in the order of each."""
        key = (one.region, one.writes)
        if key not in self._found:
            lines: dict[int, list[RegionUse]] = defaultdict(list)
            for region in self._overlapping[one.region]:
                for use in self._uses[region]:
                    if one.writes or use.writes:
                        lines[use.moment[0]].append(use)
            self._found[key] = [LineConflicts(line, uses) for line, uses in sorted(lines.items())]
        return self._found[key]


def _overlapping(regions: list[Region]) -> dict[Region, list[Region]]:
    """For each of these regions of one buffer, which of them it overlaps; itself, too."""
    found: dict[Region, list[Region]] = {region: [] for region in regions}
    exact = [region for region in regions if region.exact and all(size for _, size, _ in region.box)]
    if not exact:
        return found
    # Along the dimension in which most of them are apart, only neighbours have to be compared.
    dimensions = range(min(len(region.box) for region in exact))
    along = max(dimensions, key=lambda at: len({region.box[at][0] for region in exact}), default=None)
    spans = sorted((*_span(region, along), at) for at, region in enumerate(exact))
    for number, (_, end, at) in enumerate(spans):
        for start, _, other in map(spans.__getitem__, range(number, len(spans))):
            if start > end:
                break
            if exact[at].overlaps(exact[other]):
                found[exact[at]].append(exact[other])
                if at != other:
                    found[exact[other]].append(exact[at])
    return found


def _span(region: Region, along: int | None) -> tuple[int, int]:
    """The first and the last index that an exact region has along a dimension."""
    if along is None:
        return 0, 0
    start, size, stride = region.box[along]
    assert start is not None
    return start, start + (size - 1) * stride
