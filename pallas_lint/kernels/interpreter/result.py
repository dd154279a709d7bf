"""The result of abstractly running code: its launches and side effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.interpreter.effects import Effects
from pallas_lint.kernels.launches.foreign_calls import keep
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from pallas_lint.kernels.launches.foreign_calls import ForeignCall
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.syntax import Piece, Site, nodes


@define(eq=False)
class InterpreterResult:
    """The result of one run from a root, independent of other runs; or of all runs of an analysis, merged."""

    launches: list[Launch] = field(factory=list)
    foreign_calls: list[ForeignCall] = field(factory=list)  # calls of kernels that are not Pallas kernels
    effects: Effects = field(factory=Effects)
    entered: dict[nodes.Node, Piece] = field(factory=dict)  # all functions that ran, with their pieces
    # Nested functions with the outermost function that ran: they may launch although nothing here calls them.
    inner: list[tuple[Env, nodes.FunctionDef, Piece, nodes.Node]] = field(factory=list)
    alike: list[tuple[Launch, KnownCall]] = field(factory=list)  # known calls that add nothing to that launch
    crowded: dict[nodes.Node, Site] = field(factory=dict)  # where there are more launches than are checked
    cut: list[Piece] = field(factory=list)  # roots whose runs, or kernels' runs, exceeded the budget
    checkified_unknown: bool = False  # an unknown function was passed to checkify.checkify
    steps: int = 0  # of the budget

    def add(self, other: InterpreterResult) -> None:
        """Merge the result of another run."""
        known = set(self.launches)  # launches of a module's top level belong to every run that looks it up
        self.launches += [launch for launch in other.launches if launch not in known]
        for call in other.foreign_calls:
            keep(self.foreign_calls, call)
        self.effects.add(other.effects)
        self.entered.update(other.entered)
        self.inner += other.inner
        self.alike += other.alike
        self.crowded.update(other.crowded)
        self.cut += other.cut
        self.checkified_unknown |= other.checkified_unknown
        self.steps += other.steps
