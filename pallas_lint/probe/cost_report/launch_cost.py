"""The predicted cost of one launch on one TPU, as rules check it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pallas_lint.probe.cost.chips import CHIPS, Chip
from pallas_lint.probe.cost_report.figures import device_of, microseconds, reached
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.probe.cost.causes import Causes, Order, Place, Product
    from pallas_lint.probe.cost.results import Cost, LineCost

_MIN_EXCESS = 1.25  # times the bytes that would do
_MIN_SHARE = 0.2  # of the time, in one line


class CostFinding(NamedTuple):
    """What a rule finds: at a line of the kernel, or at the launch."""

    message: str
    help: str
    place: Place | None


@frozen(eq=False)
class LaunchCost:
    """What a launch costs on one TPU. Has a predicted time: launches without one are not checked."""

    figures: Cost
    causes: Causes | None  # None where the kernel was not looked at
    grid: Sequence[int]
    semantics: Sequence[str]  # of the grid's axes

    @property
    def device(self) -> str:
        return device_of(self.figures)

    @property
    def chip(self) -> Chip:
        return CHIPS[self.device]

    @property
    def time(self) -> str:
        """ "the 12.3 µs predicted for v5e"."""
        return f"the {microseconds(self.figures['microseconds'] or 0.0)} predicted for {self.device}"

    @property
    def step_time(self) -> str:
        """The time of one step of the grid: "1.2 µs"."""
        return microseconds((self.figures["microseconds"] or 0.0) / self.figures["steps"])

    @property
    def reached(self) -> float:
        """The share of what the chip could do that is reached."""
        return reached(self.figures)

    @property
    def moved(self) -> int:
        """Bytes to and from HBM."""
        return self.figures["bytes"]["read"] + self.figures["bytes"]["written"]

    @property
    def exceeds_ideal(self) -> bool:
        """Whether clearly more is moved than each operand and result once."""
        ideal = self.figures["bytes"]["ideal"]
        return bool(ideal) and self.moved > _MIN_EXCESS * ideal

    @property
    def better_order(self) -> Order | None:
        """An order of the grid's axes that moves clearly less."""
        order = self.causes["order"] if self.causes is not None else None
        return order if order is not None and order["now"] > _MIN_EXCESS * order["then"] else None

    def lines(self, *units: str) -> list[LineCost]:
        """The lines that take much of the time, busy with one of these units, or any.

        None where others are waited for: what happens meanwhile costs nothing.
        """
        return [
            line
            for line in self.figures["lines"]
            if self.figures["bound"] == "compute"
            and line["share"] >= _MIN_SHARE
            and line["path"] is not None
            and (not units or line["unit"] in units)
        ]

    def products(self, line: LineCost) -> list[Product]:
        """The products of matrices in a line."""
        products = self.causes["products"] if self.causes is not None else ()
        return [product for product in products if _is_in(product["place"], line)]

    def computes_narrow(self, line: LineCost) -> bool:
        """Whether a line computes in bfloat16."""
        return self.causes is not None and _is_at(self.causes["narrow"], line)

    def takes_single_rows(self, line: LineCost) -> bool:
        """Whether a line reads or writes single rows in a loop."""
        return self.causes is not None and _is_at(self.causes["rows"], line)

    def share(self, line: LineCost) -> str:
        """ "40% of the 12.3 µs predicted for v5e go here, to"."""
        return f"{line['share']:.0%} of {self.time} go here, to"

    def finding(
        self, message: str, *, help: str, line: LineCost | None = None, place: Place | None = None
    ) -> CostFinding:
        """A finding at a line or place of the kernel; without one at the launch."""
        if line is not None and line["path"] is not None:
            place = {"file": line["path"], "line": line["line"]}
        return CostFinding(message, help, place)


def _is_at(places: Sequence[Place], line: LineCost) -> bool:
    return any(_is_in(place, line) for place in places)


def _is_in(place: Place, line: LineCost) -> bool:
    return (place["file"], place["line"]) == (line["path"], line["line"])
