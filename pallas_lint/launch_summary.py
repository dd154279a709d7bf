"""Summary of each launch site: its known facts, or why the analysis stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pallas_lint.records import frozen


@frozen
class LaunchSummary:
    """One place in a file that launches a kernel, however often it was met."""

    path: str
    line: int
    column: int
    cell: int | None  # of a notebook
    kernel: str | None = None  # None: it was not found
    backend: str | None = None  # "tpu", or the targets: "tpu:v5e, tpu:v6e"; None: not known
    why: str = "no evidence"  # what the backend was inferred from, or why it is not judged for it
    judged: bool = False  # whether it is judged for that backend
    grid: str = "grid not known"  # "grid (4, n)", "no grid"
    types: str | None = None  # of operands and results: "f32[256,200] → f32[256,200]"; None: not known
    source: str | None = None  # where these come from; None: the text around the launch
    more: int = 0  # calls with other types
    shapes: bool = False  # whether all sizes of all operands and results are known in one call
    stopped: str | None = None  # why it was not followed, or not to the end
    met: bool = True  # whether something that runs leads there
    defined: tuple[str, ...] = ()  # where each of its kernels is: "PATH:LINE:COLUMN", or ""

    @property
    def followed(self) -> bool:
        return self.kernel is not None


@frozen
class Coverage:
    """How much of what is launched was seen, in numbers of places."""

    launches: int = 0
    followed: int = 0  # of which the kernel was found
    backend: int = 0  # of which the backend is known, or inferred
    shapes: int = 0  # with all shapes known

    @classmethod
    def of(cls, launches: Iterable[LaunchSummary]) -> Coverage:
        seen = list(launches)
        return cls(
            len(seen),
            sum(each.followed for each in seen),
            sum(each.backend is not None for each in seen),
            sum(each.shapes for each in seen),
        )


def in_order(launches: Iterable[LaunchSummary]) -> Sequence[LaunchSummary]:
    """Each place once, sorted: a helper launches kernels of several files, of which the best known one counts."""
    best = sorted(launches, key=lambda each: (each.shapes, each.followed, each.judged))
    places = {(each.path, each.cell or 0, each.line, each.column): each for each in best}
    return [places[place] for place in sorted(places)]
