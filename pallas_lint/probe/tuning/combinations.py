"""`--tune`: costs of a function's launches for each combination of keyword arguments."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from pallas_lint.probe import messages, reasons
from pallas_lint.probe.session import Session
from pallas_lint.probe.tuning import gpu_order
from pallas_lint.probe.tuning.results_file import Outcome, Results
from pallas_lint.probe.tuning.worker_pool import WorkerPool
from pallas_lint.records import define, evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.protocol import Argument
    from pallas_lint.probe.results import LaunchResult, ProbeResult, Stage
    from pallas_lint.probe.session import ProbeOptions
    from pallas_lint.probe.specs import Spec
    from pallas_lint.probe.tuning.results_file import State

ANY = "any"  # in place of a target: what stands in the way of each
TIE = 0.01  # what is no further apart is equally fast

Choices = dict[str, list[tuple[str, "Argument"]]]  # by keyword: each value as it was written, and read


@frozen
class Trial:
    """One choice of values, and what came of it: times are those of all launches together."""

    values: tuple[tuple[str, str], ...]
    outcome: Outcome

    @property
    def took(self) -> dict[str, float]:
        """Microseconds, by target."""
        return {target: took for target, (took, _, _) in self.outcome.took.items()}

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the most microseconds, by target."""
        return {target: (low, high) for target, (_, low, high) in self.outcome.took.items()}

    @property
    def clocks(self) -> Mapping[str, float]:
        """Predicted clocks by target, which put choices for a GPU in order."""
        return self.outcome.clocks

    @property
    def why(self) -> dict[str, str]:
        """Why it has neither microseconds nor clocks, by target."""
        return {target: why for target, (_, why) in self.outcome.why.items()}

    @property
    def spelled(self) -> str:
        return " ".join(f"{name}={text}" for name, text in self.values)


@define
class Tuning:
    """All choices of one function. `show` is called with the progress; `trials` grows while it runs.

    `results`: what is known of earlier runs, and grows as well; `kept` is called whenever it did.
    """

    spec: Spec
    choices: Choices
    python: str
    cwd: Path
    conditions: ProbeOptions
    show: Callable[[str], None]
    now: Mapping[str, tuple[str, Argument]] = field(factory=dict)  # values that are tried whatever the choices are
    texts: Mapping[str, str] = field(factory=dict)  # by absolute path, of files that an editor has not saved
    results: Results = field(factory=lambda: Results({}))
    kept: Callable[[], None] = lambda: None
    trials: list[Trial] = field(factory=list, init=False)
    _pool: WorkerPool = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._pool = WorkerPool(self.python, self.cwd)

    @property
    def count(self) -> int:
        return math.prod(map(len, self.choices.values())) + self._adds_now

    @property
    def _adds_now(self) -> bool:
        return any(all(value != each for _, each in self.choices[name]) for name, (_, value) in self.now.items())

    def run(self) -> bool:
        """Try them all, several at a time; False where it was interrupted. Raises WorkerError."""
        named = ([(name, *value) for value in values] for name, values in self.choices.items())
        every = list(itertools.product(*named))
        if self._adds_now:
            every.append(tuple((name, *value) for name, value in self.now.items()))
        calls = [self._called(chosen) for chosen in every]
        found: dict[int, Trial] = {}

        def add(at: int, outcome: Outcome) -> None:
            found[at] = Trial(tuple((name, text) for name, text, _ in every[at]), outcome)
            self.trials[:] = [found[each] for each in sorted(found)]  # in their own order, whichever ended first

        for at, call in enumerate(calls):
            if call.spelled in self.results.outcomes:
                add(at, self.results.outcomes[call.spelled])
        missing = [at for at in range(len(calls)) if at not in found]
        self.show(f"{len(self.trials)} of {len(every)} tried")

        def ended(number: int, outcome: Outcome) -> None:
            self.results.outcomes[calls[missing[number]].spelled] = outcome
            add(missing[number], outcome)
            self.kept()
            self.show(f"{len(self.trials)} of {len(every)} tried")

        return self._pool.run([calls[at] for at in missing], self._try, ended)

    def stop(self) -> None:
        """Have `run`, on another thread, come to an end."""
        self._pool.stop()

    def _called(self, chosen: Sequence[tuple[str, str, Argument]]) -> Spec:
        names = {name for name, _, _ in chosen}
        keywords = tuple(keyword for keyword in self.spec.keywords if keyword[0] not in names)
        return evolve(self.spec, keywords=(*keywords, *((name, value) for name, _, value in chosen)))

    def _try(self, worker: Worker, call: Spec) -> Outcome:
        return trial_of((), Session(worker, self.cwd, self.conditions, texts=self.texts).probe(call)).outcome

    def best(self, target: str) -> list[Trial]:
        """What has a number on a target, the fastest first."""
        return sorted((one for one in self.trials if target in one.took), key=lambda one: one.took[target])

    def in_order(self, target: str) -> list[Trial]:
        """What has a place in the order that is predicted for a GPU, the fastest first."""
        return sorted((one for one in self.trials if target in one.clocks), key=lambda one: one.clocks[target])

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(target for one in self.trials for target in (*one.took, *one.clocks, *one.why)))


def trial_of(values: tuple[tuple[str, str], ...], result: ProbeResult) -> Trial:
    """What a probe with some values came to."""
    took: dict[str, float] = {}
    ranges: dict[str, tuple[float, float]] = {}
    why: dict[str, str] = {}
    for cost in (cost for launch in result.launches for cost in launch.costs):
        if not cost["microseconds"]:  # what does nothing is no choice either
            why[cost["target"]] = "; ".join(cost["doubts"])
        else:
            took[cost["target"]] = took.get(cost["target"], 0.0) + cost["microseconds"]
            low, high = ranges.get(cost["target"], (0.0, 0.0))
            ranges[cost["target"]] = (low + (cost["low"] or 0.0), high + (cost["high"] or 0.0))
    clocks = _clocks(result, why)
    for launch in result.launches:
        for stage in launch.stages:
            reason = _reason(stage)
            if reason is not None and stage.target is None:
                why |= dict.fromkeys((*took, *clocks, *why), reason)
            elif reason is not None and stage.target in why:
                why[stage.target] = reason
    if not took and not clocks and not why:
        trouble = next((messages.sentence(each) for each in result.trouble if each["kind"] == "raised"), None)
        why[ANY] = trouble or next(iter(result.errors), "it launches no kernel")
    known = {target: (total, *ranges[target]) for target, total in took.items() if target not in why}
    ordered = {target: total for target, total in clocks.items() if target not in why}
    return Trial(
        values, Outcome(known, {target: (_state(result, target), text) for target, text in why.items()}, ordered)
    )


def failed_stage(result: ProbeResult, target: str) -> tuple[LaunchResult, Stage] | None:
    """The first stage on a target that failed, and its launch; None where none did."""
    stages = ((launch, stage) for launch in result.launches for stage in launch.stages)
    return next((each for each in stages if each[1].target in (None, target) and each[1].ok is False), None)


def _state(result: ProbeResult, target: str) -> State:
    """What kind of failure keeps a call from having a number."""
    found = failed_stage(result, target)
    if found is None:
        return "unknown" if result.launches else "fails"
    return "too-large" if any(messages.is_of_memory(each, found[1].stage) for each in found[1].problems) else "fails"


def _reason(stage: Stage) -> str | None:
    """Why a launch whose stage failed like this is no choice; None where there is a better reason, or it did not."""
    if not stage.problems:
        return None
    kind = stage.problems[0]["kind"]
    return _REASONS.get("memory" if messages.is_of_memory(stage.problems[0], stage.stage) else kind)


def _clocks(result: ProbeResult, why: dict[str, str]) -> dict[str, float]:
    """The clocks of all launches together, by GPU target; adds to `why` the reason where a launch has none."""
    found: dict[str, float] = {}
    for launch, stage in ((each, stage) for each in result.launches for stage in each.stages):
        target = stage.target
        if target is None or target.startswith("tpu") or stage.stage not in ("lower", "compile"):
            continue
        clocks = gpu_order.clocks(stage.figures, stage.work) if stage.work is not None else None
        if clocks is not None:
            found[target] = found.get(target, 0.0) + clocks
        elif not stage.ok:
            why.setdefault(target, reasons.why(launch, stage) or stage.detail or f"{stage.stage} fails")
        elif stage.stage == "compile":
            why.setdefault(target, stage.no_work or _NOT_MEASURED)
    return found


_NOT_MEASURED = "an order is predicted of Triton kernels on an H100, where ptxas is installed"
# Of the grid, lowering and compiling. What computes something else, or not all, is no choice.
_REASONS = {
    "uncovered": "part of the output is never written",
    "out-of-range": "a block is outside its array",
    "memory": "more VMEM than there is",
    "crash": "the compiler crashes",
}
