"""The runs of an analysis, one from each root; those of earlier texts that an edit cannot reach are not repeated.

What a run does follows from its root, from what it looks up on the way, and from a few facts about the file as a whole,
its ground. Where all of that is as it was, what the run came to is taken as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.launches import launching
from pallas_lint.kernels.model.queries import CROWDED, MET
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.modules import Module, ModuleGraph
    from pallas_lint.kernels.interpreter.outcome import Outcome
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Piece, nodes

# Whether these stand anywhere in the text is asked by rules on launches.
_ASKED_FOR = ("checkify", "runtime_assert", "debug_checks")


class Abandoned(Exception):
    """Nobody wants to know any more: there is a newer text."""


@frozen(eq=False)
class Run:
    """What one run came to, and what its function returned."""

    outcome: Outcome
    result: Any


@define(eq=False)
class RevisionInputs:
    """What any run, and the rules on what it launches, may depend on besides what is looked up by name."""

    facts: Hashable
    others: dict[Path, str | None] = field(factory=dict)  # the texts of other files; None for those that are not there

    def holds(self, facts: Hashable, graph: ModuleGraph) -> bool:
        """Whether all is as it was."""
        return self.facts == facts and all(_text_of(file, graph) == text for file, text in self.others.items())


@define(eq=False)
class Runs:
    """The runs of one analysis."""

    interp: Interpreter
    module: Module
    is_stale: Callable[[], bool]  # whether the text at hand is an old one already
    made: int = 0
    again: int = 0  # runs that were not repeated

    def begin(self) -> None:
        """Find out on what ground this text stands: that of an earlier one, it may be."""
        memo, facts = self.interp.memo, _facts(self.interp, self.module) if self.interp.memo.persistent else None
        known = (ground for ground in reversed(memo.inputs) if ground.holds(facts, self.module.graph))
        ground = next(known, None) or RevisionInputs(facts)
        # Rules ask, too, when all has run: what is read for them comes to the same.
        ground.others.update(self.module.graph.read)
        self.module.graph.read = ground.others
        memo.begin_revision(ground)
        self.module.teach(memo)
        memo.register_query(MET, self._met)
        memo.register_query(CROWDED, lambda node: launching.is_crowded(self.interp, node))

    def end(self) -> None:
        """Nothing runs any more. If one run may have seen what another did, none can be told without the other."""
        imports_back = self.module.graph.imports_back
        if self.interp.entangled or self.interp.is_spent or self.module.is_changed or imports_back:
            self.interp.memo.clear()

    def run(self, piece: Piece, phase: Hashable, run: Callable[[], Any]) -> Any:
        """Run from a root, unless that would do what it did; the result of `run`.

        Raises Abandoned once nobody waits for it.
        """
        if self.is_stale():
            raise Abandoned
        interp, memo = self.interp, self.interp.memo
        answer = memo.lookup(("run", piece, phase))
        if answer is None:
            with memo.track_dependencies() as read, interp.apart() as outcome:
                result = run()
            answer = memo.store(("run", piece, phase), Run(outcome, result), read)
            self.made += 1
        else:
            self.again += 1
            interp.spent += answer.value.outcome.steps
        for launch in answer.value.outcome.launches:
            if launch not in interp.runs and launch.witness is None:
                interp.launched[launch.site.key] += 1
            interp.runs.setdefault(launch, []).append(answer)
        interp.outcome.add(answer.value.outcome)
        return answer.value.result

    def _met(self, node: nodes.Node) -> tuple[Launch, ...]:
        return tuple(launch for launch in self.interp.outcome.launches if launch.site.key is node)


def _text_of(file: Path, graph: ModuleGraph) -> str | None:
    module = graph.load(file)
    return None if module is None else module.source.text


def _facts(interp: Interpreter, module: Module) -> Hashable:
    text = module.source.text
    asked_for = tuple(word in text for word in _ASKED_FOR)
    newline = "\r\n" in text
    imports = [piece for piece in module.outline.pieces if piece.kind == "import"]
    # Where a fix adds an import.
    leading = [piece.first <= imports[0].first + 60 for piece in imports] if imports else module.outline.pieces[:1]
    frame = (*imports, *(piece for piece, _ in module.outline.imports), *leading)
    inner = tuple(module.inner_imports.items())
    assumptions = tuple(sorted(interp.assumptions.items()))
    layout = module.graph.layout_of(module)
    return frame, inner, asked_for, newline, module.x64, interp.versions, assumptions, module.source.path, layout
