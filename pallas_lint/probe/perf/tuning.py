"""`--tune`: costs of a function's launches for each combination of keyword arguments."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from pallas_lint.probe import messages, reasons
from pallas_lint.probe.perf import gpu_order
from pallas_lint.probe.perf.worker_pool import WorkerPool
from pallas_lint.probe.session import Session
from pallas_lint.records import define, evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.protocol import Argument
    from pallas_lint.probe.results import ProbeResult, Stage
    from pallas_lint.probe.session import ProbeOptions
    from pallas_lint.probe.specs import Spec

ANY = "any"  # in place of a target: what stands in the way of each
TIE = 0.01  # what is no further apart is equally fast

Choices = dict[str, list[tuple[str, "Argument"]]]  # by keyword: each value as it was written, and read


@frozen
class Tried:
    """One choice of values. By target: `took`, microseconds of all launches together; `ranges`, the least and the most
    of that; `clocks`, by which choices are put in order for a GPU, whose times are not predicted; `why` it has
    neither."""

    values: tuple[tuple[str, str], ...]
    took: Mapping[str, float] = field(factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(factory=dict)
    clocks: Mapping[str, float] = field(factory=dict)
    why: Mapping[str, str] = field(factory=dict)

    @property
    def spelled(self) -> str:
        return " ".join(f"{name}={text}" for name, text in self.values)


@define
class Tuning:
    """All choices of one function. `tell` is called with the progress; `tried` grows while it runs."""

    spec: Spec
    choices: Choices
    python: str
    cwd: Path
    conditions: ProbeOptions
    show: Callable[[str], None]
    now: Mapping[str, tuple[str, Argument]] = field(factory=dict)  # values that are tried whatever the choices are
    texts: Mapping[str, str] = field(factory=dict)  # by absolute path, of files that an editor has not saved
    tried: list[Tried] = field(factory=list, init=False)
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
        self.show(f"0 of {len(every)} tried")
        found: dict[int, Tried] = {}

        def add(at: int, one: Tried) -> None:
            found[at] = one
            self.tried[:] = [found[each] for each in sorted(found)]  # in their own order, whichever ended first
            self.show(f"{len(self.tried)} of {len(every)} tried")

        return self._pool.run(every, self._try, add)

    def stop(self) -> None:
        """Have `run`, on another thread, come to an end."""
        self._pool.stop()

    def _try(self, worker: Worker, chosen: Sequence[tuple[str, str, Argument]]) -> Tried:
        names = {name for name, _, _ in chosen}
        keywords = tuple(keyword for keyword in self.spec.keywords if keyword[0] not in names)
        spec = evolve(self.spec, keywords=(*keywords, *((name, value) for name, _, value in chosen)))
        result = Session(worker, self.cwd, self.conditions, texts=self.texts).probe(spec)
        return tried_of(tuple((name, text) for name, text, _ in chosen), result)

    def best(self, target: str) -> list[Tried]:
        """What has a number on a target, the fastest first."""
        return sorted((one for one in self.tried if target in one.took), key=lambda one: one.took[target])

    def in_order(self, target: str) -> list[Tried]:
        """What has a place in the order that is predicted for a GPU, the fastest first."""
        return sorted((one for one in self.tried if target in one.clocks), key=lambda one: one.clocks[target])

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(target for one in self.tried for target in (*one.took, *one.clocks, *one.why)))


def tried_of(values: tuple[tuple[str, str], ...], result: ProbeResult) -> Tried:
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
    known, ordered = ({at: n for at, n in each.items() if at not in why} for each in (took, clocks))
    return Tried(values, known, {target: ranges[target] for target in known}, ordered, why)


def _reason(stage: Stage) -> str | None:
    """Why a launch whose stage failed like this is no choice; None where there is a better reason, or it did not."""
    if not stage.problems:
        return None
    kind = stage.problems[0]["kind"]
    return _REASONS.get("memory" if messages.is_of_memory(stage.problems[0], stage.stage) else kind)


def _clocks(result: ProbeResult, why: dict[str, str]) -> dict[str, float]:
    """By GPU target, of all launches together; adds to `why` what keeps a launch from having them."""
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
