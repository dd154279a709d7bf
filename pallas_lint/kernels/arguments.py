"""The arguments of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from pallas_lint.kernels.launch import is_spec
from pallas_lint.kernels.values import Func, Made, Seq, options

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

    @property
    def bring_code(self) -> bool:
        """Whether functions or specs are among them, without which a launcher cannot be understood."""
        values = [*self.positional, *self.keywords.values()]
        for value in list(values):
            if isinstance(value, Seq):
                values.extend(value.items)
        return any(
            isinstance(option, Func) or (isinstance(option, Made) and (option.launch is not None or is_spec(option)))
            for value in values
            for option in options(value)
        )
