"""What running code comes to: the launches that were met, and what else is known afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.interpreter.effects import Effects
from pallas_lint.kernels.launches.foreign_calls import keep
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from pallas_lint.kernels.launches.foreign_calls import ForeignCall
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.syntax import Piece, Site, nodes
    from pallas_lint.witnesses.witness import Witness


@define(eq=False)
class Outcome:
    """Of one run from a root: it knows of no other run. All together they are the outcome of an analysis."""

    launches: list[Launch] = field(factory=list)
    foreign_calls: list[ForeignCall] = field(factory=list)  # calls of kernels that are not Pallas's
    effects: Effects = field(factory=Effects)
    entered: dict[nodes.Node, Piece] = field(factory=dict)  # functions that ran, whatever for, with their pieces
    # Functions defined while another ran, with the outermost of those: they may be launchers nobody calls.
    inner: list[tuple[Env, nodes.FunctionDef, Piece, nodes.Node]] = field(factory=list)
    alike: list[tuple[Launch, Witness]] = field(factory=list)  # calls of which no more is known than of that launch
    crowded: dict[nodes.Node, Site] = field(factory=dict)  # where more launches were met than are judged
    cut: list[Piece] = field(factory=list)  # roots of which the runs, or those of their kernels, were cut short
    checkified_unknown: bool = False  # something that is not known was handed to checkify.checkify
    steps: int = 0  # that it took

    def add(self, other: Outcome) -> None:
        """What another run came to, too."""
        met = set(self.launches)  # what a module's top level launches is met by all who look it up
        self.launches += [launch for launch in other.launches if launch not in met]
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
