"""Analysing an edited text: what the edit cannot reach is taken from the analysis before.

An analysis is a sequence of runs, one from each root. What a run does follows from the pieces that its root can reach
by the names in them, from a few facts about the file as a whole, and, if it looks for more than its root tells, from
the launches that were met in these pieces. Where all of that is as it was, the run is not repeated: what it did then
is done again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.interpreter.reachable import Reachable
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.interpreter.outcome import Outcome
    from pallas_lint.kernels.interpreter.reachable import Reached
    from pallas_lint.syntax import Piece
    from pallas_lint.text.source import Source

# Whether these stand anywhere in the text is asked by rules on launches.
_ASKED_FOR = ("checkify", "runtime_assert", "debug_checks")


class Abandoned(Exception):
    """Nobody wants to know any more: there is a newer text."""


@define(eq=False)
class Run:
    """What one run found, and all it depended on."""

    reached: tuple[Piece, ...]
    state: Hashable
    outcome: Outcome
    result: Any = None


@define(eq=False)
class Replay:
    """The runs of the last analysis of a file. `again` counts the runs that were not repeated."""

    facts: Hashable = None
    others: dict[Path, Source | None] = field(factory=dict)  # other files it rests on, as they were
    runs: dict[tuple[Piece, str], Run] = field(factory=dict)
    again: int = 0
    is_stale: Callable[[], bool] = lambda: False  # whether the text at hand is an old one already
    _earlier: dict[tuple[Piece, str], Run] = field(factory=dict)
    _reach: Reachable = field(factory=Reachable)

    def begin(self, interp: Interpreter, module: Module) -> None:
        """Find out what of the last analysis still holds."""
        facts = _facts(interp, module)
        earlier, self.runs, self._earlier, self.again = self.runs, {}, {}, 0
        self._reach.update(module.outline)
        if facts == self.facts and self._others_are_same(module):
            self._earlier = earlier
        self.facts = facts

    def _others_are_same(self, module: Module) -> bool:
        graph = module.graph
        for file, source in self.others.items():
            now = graph.load(file)
            if (None if now is None else now.source.text) != (None if source is None else source.text):
                return False
        return True

    def end(self, interp: Interpreter, module: Module) -> None:
        """Keep the runs for next time, unless one of them may have seen what another did."""
        self._keep(self.runs, {}, interp, module)

    def abandon(self, interp: Interpreter, module: Module) -> None:
        """The analysis stops in the middle: what was kept may still do for the next text, or for this one again."""
        # Those of before have been read from the same files where they still hold.
        self._keep({**self._earlier, **self.runs}, self.others if self._earlier else {}, interp, module)

    def _keep(
        self, runs: dict[tuple[Piece, str], Run], others: dict[Path, Source | None], interp: Interpreter, module: Module
    ) -> None:
        seen = interp.entangled or interp.is_spent or module.is_changed
        self.runs = {} if seen or module.graph.imports_back else runs
        self._earlier = {}
        loaded = module.graph.loaded
        self.others = others | {file: None if m is None else m.source for file, m in loaded if file != module.file}

    def run(self, interp: Interpreter, piece: Piece, phase: str, run: Callable[[], Any]) -> Any:
        """Run from a root, or do again what that did last time; the result of `run`."""
        if self.is_stale():
            raise Abandoned
        reached = self._reach.of(piece)
        state = self._state(interp, piece, phase, reached)
        known = self._earlier.get((piece, phase))
        if known is not None and known.reached == reached.pieces and known.state == state:
            interp.spent += known.outcome.steps
            self.again += 1
        else:
            with interp.apart() as outcome:
                result = run()
            known = Run(reached.pieces, state, outcome, result)
        interp.outcome.add(known.outcome)
        self.runs[piece, phase] = known
        return known.result

    def reached_from(self, piece: Piece) -> tuple[Piece, ...]:
        """The pieces that one can reach, itself included, in the file's order."""
        return self._reach.of(piece).pieces

    def _state(self, interp: Interpreter, piece: Piece, phase: str, reached: Reached) -> Hashable:
        """What the runs before it tell the run: nothing, unless it is for what those met."""
        if phase == "root":
            return None
        launches = tuple(launch for launch in interp.outcome.launches if launch.site.piece in reached.all)
        return launches, self.runs.get((piece, "root"))


def _facts(interp: Interpreter, module: Module) -> Hashable:
    """What any run, and the rules on what it launches, may depend on besides the pieces it reaches."""
    text = module.source.text
    asked_for = tuple(word in text for word in _ASKED_FOR)
    newline = "\r\n" in text
    imports = [piece for piece in module.outline.pieces if piece.kind == "import"]
    # Where a fix adds an import.
    leading = [piece.first <= imports[0].first + 60 for piece in imports] if imports else module.outline.pieces[:1]
    frame = (*imports, *(piece for piece, _ in module.outline.imports), *leading)
    inner = tuple(module.inner_imports.items())
    assumptions = tuple(sorted(interp.assumptions.items()))
    return frame, inner, asked_for, newline, module.x64, interp.versions, assumptions, module.source.path
