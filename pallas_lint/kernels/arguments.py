"""The arguments of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

if TYPE_CHECKING:
    from pallas_lint.kernels.values import Value


@define(eq=False)
class Arguments:
    """`open`: `*args` or `**kwargs` of unknown content were among them."""

    positional: list[Value] = field(factory=list)
    keywords: dict[str, Value] = field(factory=dict)
    open: bool = False

    def get(self, name: str, position: int | None = None) -> Value | None:
        """The argument passed as `name` or at `position`; None where it was not passed."""
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    def rest(self, start: int) -> Arguments:
        """The arguments after the first `start` positional ones."""
        return Arguments(self.positional[start:], dict(self.keywords), self.open)
