"""`--tune-table`: each row of a table of block sizes beside its neighbours."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from pallas_lint.probe import reasons, specs
from pallas_lint.probe.session import Session
from pallas_lint.probe.tuning.combinations import ANY, failed_stage, trial_of
from pallas_lint.probe.tuning.results_file import Outcome, Results
from pallas_lint.probe.tuning.worker_pool import WorkerPool
from pallas_lint.records import define, evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.probe.session import ProbeOptions
    from pallas_lint.probe.specs import Spec
    from pallas_lint.probe.tuning.results_file import State
    from pallas_lint.probe.tuning.tune_table import Entry

BAD: tuple[State, ...] = ("too-large", "fails", "beaten")

_PLACEHOLDER = re.compile(r"\{([^\W\d][\w.]*)\}")
_LARGEST_SIZE = 1 << 31


@frozen
class Call:
    """The function called with tuned values."""

    values: Mapping[str, Any]
    spec: Spec

    @property
    def name(self) -> str:
        """What the results file has its outcome by."""
        return self.spec.spelled


@frozen
class Row:
    """One row: the call with its values, and those with one of them halved or doubled."""

    entry: Entry
    call: Call
    neighbours: Sequence[Call]


@frozen
class Verdict:
    """One row on one target. `best`: of the row and its neighbours, where any has a number.

    `took`, `best_took`: microseconds with their range.
    """

    row: Row
    target: str
    state: State
    took: tuple[float, float, float] | None
    why: str | None
    best: Call | None
    best_took: tuple[float, float, float] | None


def row_of(entry: Entry, target: str, words: Sequence[str]) -> Row:
    """The calls of a row: `{name}` in an argument is the field of that name, and tuned values that no argument has
    are keyword arguments. Raises SpecError."""

    def called(values: Mapping[str, Any]) -> Call:
        fields = {**entry.fields, **values}
        named = {name for word in words for name in _PLACEHOLDER.findall(word)}
        unknown = sorted(named - fields.keys())
        if unknown:
            raise specs.SpecError(f"the row has no field {{{unknown[0]}}}: it has {', '.join(fields)}")
        texts = [_PLACEHOLDER.sub(lambda match: str(fields[match[1]]), word) for word in words]
        rest = [f"{name}={value!r}" for name, value in values.items() if name not in named]
        return Call(values, specs.parse_target(target, [*texts, *rest]))

    return Row(entry, called(entry.value), [called(values) for values in _steps(entry)])


def moved(row: Row, call: Call, target: str, words: Sequence[str]) -> Row:
    """The row with the values of another call."""
    return row_of(evolve(row.entry, value=call.values), target, words)


def _steps(entry: Entry) -> Iterator[dict[str, Any]]:
    """The values with one tuned integer halved, where it is even, or doubled."""
    for name in entry.tuned:
        value = entry.value[name]
        if type(value) is not int or not 0 < value < _LARGEST_SIZE:
            continue
        if value % 2 == 0:
            yield {**entry.value, name: value // 2}
        yield {**entry.value, name: value * 2}


def shard(rows: Sequence[Row], number: int, count: int) -> Sequence[Row]:
    """Each `count`-th row, from the `number`-th on, counted from 1."""
    return rows[number - 1 :: count]


@define
class Trials(Results):
    """The results of the calls of rows."""

    def missing(self, rows: Sequence[Row]) -> list[Call]:
        """The calls that have no outcome yet, each once."""
        calls = {call.name: call for row in rows for call in (row.call, *row.neighbours)}
        return [call for name, call in calls.items() if name not in self.outcomes]

    def run(
        self, rows: Sequence[Row], python: str, cwd: Path, options: ProbeOptions, ended: Callable[[int, int], None]
    ) -> bool:
        """Probe what is missing; `ended` gets how many of how many calls are done. False where it was
        interrupted. Raises WorkerError."""
        calls = self.missing(rows)
        counter = itertools.count(1)

        def probe(worker: Worker, call: Call) -> Outcome:
            return _outcome(Session(worker, cwd, options).probe(call.spec))

        def add(at: int, outcome: Outcome) -> None:
            self.outcomes[calls[at].name] = outcome
            ended(next(counter), len(calls))

        return WorkerPool(python, cwd).run(calls, probe, add)

    def verdicts(self, rows: Sequence[Row]) -> Iterator[Verdict]:
        """Each row of which all calls have an outcome, by target in the order of the rows."""
        done = [row for row in rows if not self.missing([row])]
        for target in self.targets(done) or [ANY]:
            yield from (self.verdict(row, target) for row in done)

    def targets(self, rows: Sequence[Row]) -> list[str]:
        """What rows were predicted for."""
        known = [self.outcomes[row.call.name] for row in rows]
        return [*dict.fromkeys(target for one in known for target in (*one.took, *one.why) if target != ANY)]

    def verdict(self, row: Row, target: str) -> Verdict:
        mine = self.outcomes[row.call.name]
        took_by = {call.name: self.outcomes[call.name].took for call in (row.call, *row.neighbours)}
        calls = [call for call in (row.call, *row.neighbours) if target in took_by[call.name]]
        best = min(calls, key=lambda call: took_by[call.name][target][0], default=None)
        best_took = took_by[best.name][target] if best is not None else None
        if target not in mine.took:
            state, why = mine.why.get(target) or mine.why.get(ANY) or ("unknown", "no launch is for a TPU")
            return Verdict(row, target, state, None, why, best, best_took)
        took = mine.took[target]
        beaten = any(took_by[call.name][target][2] < took[1] for call in calls)
        return Verdict(row, target, "beaten" if beaten else "ok", took, None, best, best_took)


def _outcome(result: ProbeResult) -> Outcome:
    """What a probe came to, in the words of the stage that failed."""
    found = trial_of((), result).outcome
    return Outcome(found.took, {at: (state, _why(result, at) or text) for at, (state, text) in found.why.items()})


def _why(result: ProbeResult, target: str) -> str | None:
    failed = failed_stage(result, target)
    return None if failed is None else reasons.why(*failed)
