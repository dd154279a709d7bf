"""`--write-tune-table`: from each row of a table to the fastest block sizes that are predicted near it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.tuning import table_trials
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pallas_lint.probe.tuning.table_trials import Row, Trials

_MAX_STEPS = 8


@define
class Search:
    """Steps from a row to the fastest of its neighbours, and on from there while that is faster, on each target.

    A neighbour has one value halved or doubled. `target` and `words`: what is called, as on the command line.
    """

    trials: Trials
    target: str
    words: Sequence[str]
    reached: dict[tuple[int, str], Row] = field(factory=dict, init=False)  # by the row's place in the table, and target

    def run(self, rows: Sequence[Row], probe: Callable[[Sequence[Row]], bool]) -> bool:
        """Search from all rows; `probe` adds the outcomes that are missing. False where it was interrupted."""
        self.reached = {(at, target): row for target in self.trials.targets(rows) for at, row in enumerate(rows)}
        for _ in range(_MAX_STEPS):
            steps = dict(self._steps())
            if not steps:
                break
            if not probe([*steps.values()]):
                return False
            self.reached |= steps
        return True

    def _steps(self) -> Iterator[tuple[tuple[int, str], Row]]:
        for place, row in self.reached.items():
            best = self.trials.verdict(row, place[1]).best
            if best is not None and best is not row.call:
                yield place, table_trials.moved(row, best, self.target, self.words)

    def text(self) -> str:
        """The fastest rows as JSON: a list of objects that `--tune-table` reads. What has no number is left out."""
        return json.dumps([*self._rows()], indent=1, default=str) + "\n"

    def _rows(self) -> Iterator[dict[str, Any]]:
        for (_, target), row in self.reached.items():
            took = self.trials.outcomes[row.call.name].took.get(target)
            if took is not None:
                microseconds, low, high = (round(each, 3) for each in took)
                fields = {**row.entry.key, **row.call.values}
                yield {"target": target, **fields, "microseconds": microseconds, "low": low, "high": high}
