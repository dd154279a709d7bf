"""The runs of an analysis, one for each root; runs that an edit cannot affect are not repeated.

A run depends on its root, on the names that it looks up, and on a few facts about the file as a whole, the revision
inputs. If all of these are unchanged, its cached result is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.launches import launching
from pallas_lint.kernels.launches.backend import backend_aliases
from pallas_lint.kernels.model.queries import CROWDED, MET
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.modules import Module, ModuleGraph
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.result import InterpreterResult
    from pallas_lint.syntax import Piece, nodes

# Rules on launches test whether these occur anywhere in the text.
_MARKERS = ("checkify", "runtime_assert", "debug_checks")


class Abandoned(Exception):
    """The analysis was cancelled because there is a newer text."""


@frozen(eq=False)
class CachedRun:
    """The results of one run, and the return value of its function."""

    outcome: InterpreterResult
    result: Any


@define(eq=False)
class RevisionInputs:
    """What any run, and any rule on its launches, may depend on besides names that it looks up."""

    facts: Hashable
    others: dict[Path, str | None] = field(factory=dict)  # the texts of other files; None for missing ones

    def holds(self, facts: Hashable, graph: ModuleGraph) -> bool:
        """Whether they are unchanged."""
        return self.facts == facts and all(_text_of(file, graph) == text for file, text in self.others.items())


@define(eq=False)
class RootRuns:
    """The runs of one analysis."""

    interp: Interpreter
    module: Module
    is_stale: Callable[[], bool]  # whether there is a newer text
    made: int = 0
    reused: int = 0  # runs taken from the cache
    _met: dict[nodes.Node, dict[Launch, None]] = field(factory=dict, init=False)  # of finished runs, by launching node

    def begin(self) -> None:
        """Start a revision, with the inputs of an earlier one if they are equal."""
        memo, facts = self.interp.memo, _facts(self.interp, self.module) if self.interp.memo.persistent else None
        known = (inputs for inputs in reversed(memo.inputs) if inputs.holds(facts, self.module.graph))
        inputs = next(known, None) or RevisionInputs(facts)
        # Rules may read more files after the runs: these are added to the same dictionary.
        inputs.others.update(self.module.graph.read)
        self.module.graph.read = inputs.others
        memo.begin_revision(inputs)
        self.module.register_queries(memo)
        self._register_queries()

    def _register_queries(self) -> None:
        memo = self.interp.memo
        memo.register_query(MET, self._launches_at, settled=False)
        memo.register_query(CROWDED, lambda node: launching.is_crowded(self.interp, node), settled=False)

    def resume(self, is_stale: Callable[[], bool]) -> None:
        """Go on with the results of these runs in a revision that repeats theirs."""
        self.is_stale, self.interp.graph = is_stale, self.module.graph
        self.made, self.reused = 0, self.made + self.reused
        self._register_queries()

    def end(self) -> None:
        """End of analysis. Drop the cache if runs were not independent."""
        imports_back = self.module.graph.imports_back
        if self.interp.has_cross_run_effects or self.interp.is_spent or self.module.is_changed or imports_back:
            self.interp.memo.clear()

    def run(self, piece: Piece, phase: Hashable, run: Callable[[], Any]) -> Any:
        """Run from a root, or take its results from the cache; returns the result of `run`.

        Raises Abandoned if there is a newer text.
        """
        if self.is_stale():
            raise Abandoned
        interp, memo = self.interp, self.interp.memo
        entry = memo.lookup(("run", piece, phase))
        if entry is None:
            with memo.track_dependencies() as read, interp.separate_result() as outcome:
                result = run()
            entry = memo.store(("run", piece, phase), CachedRun(outcome, result), read)
            self.made += 1
        else:
            self.reused += 1
            interp.spend(entry.value.outcome.steps)
        for launch in entry.value.outcome.launches:
            self._met.setdefault(launch.site.key, {})[launch] = None
            if launch not in interp.runs and launch.known_call is None:
                interp.launched[launch.site.key] += 1
            interp.runs.setdefault(launch, []).append(entry)
        interp.outcome.add(entry.value.outcome)
        return entry.value.result

    def _launches_at(self, node: nodes.Node) -> tuple[Launch, ...]:
        return tuple(self._met.get(node, ()))


def _text_of(file: Path, graph: ModuleGraph) -> str | None:
    module = graph.load(file)
    return None if module is None else module.source.text


def _facts(interp: Interpreter, module: Module) -> Hashable:
    text = module.source.text
    markers = tuple(word in text for word in _MARKERS)
    newline = "\r" in text and "\r\n" in text
    imports = tuple(module.outline.stars), frozenset(backend_aliases(module).items())
    assumptions = tuple(sorted(interp.assumptions.items()))
    layout = module.graph.layout_of(module)
    set_by_module = module.x64, module.matmul_precision
    conditions = interp.versions, interp.chips, assumptions
    return imports, markers, newline, set_by_module, conditions, module.source.path, layout
