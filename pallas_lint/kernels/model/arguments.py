"""The arguments of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.known_names import is_spec
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, Func, Ref, Seq, Slice, options
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pallas_lint.kernels.model.values import Value


@define(eq=False)
class Arguments:
    """`open`: `*args` or `**kwargs` of unknown content were among them."""

    positional: list[Value] = field(factory=list)
    keywords: dict[str, Value] = field(factory=dict)
    open: bool = False

    @property
    def first(self) -> Value:
        """The first positional argument; UNKNOWN where none is seen."""
        return self.positional[0] if self.positional else UNKNOWN

    def get(self, name: str, position: int | None = None) -> Value | None:
        """The argument passed as `name` or at `position`; None where it was not passed."""
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    @property
    def on_host(self) -> bool:
        """Whether numpy arrays are among them and nothing that is traced: Python computes with these."""
        arrays = [value for value in self.positional if isinstance(value, Array)]
        return bool(arrays) and not any(map(_is_traced, self.positional))

    def replaced(self, name: str, position: int, value: Value) -> Arguments:
        """These arguments with another value for one that was passed."""
        if name in self.keywords:
            return Arguments(list(self.positional), {**self.keywords, name: value}, self.open)
        return Arguments(
            [*self.positional[:position], value, *self.positional[position + 1 :]], dict(self.keywords), self.open
        )

    def rest(self, start: int) -> Arguments:
        """The arguments after the first `start` positional ones."""
        return Arguments(self.positional[start:], dict(self.keywords), self.open)

    @property
    def key(self) -> tuple[Hashable, ...]:
        """A key that equal arguments share. Equal scalars may be indices of two axes: what made them counts too."""
        every = (*self.positional, *self.keywords.values())
        makers = tuple(value.origin for value in every if isinstance(value, Array) and value.shape == ())
        return tuple(self.positional), tuple(self.keywords.items()), makers, self.open

    @property
    def kinds(self) -> tuple[Hashable, ...]:
        """A key that arguments share which differ only in where their arrays and refs come from."""
        return tuple(self.positional), tuple(self.keywords.items()), self.open

    @property
    def bring_code(self) -> bool:
        """Whether functions or specs are among them, without which a launcher cannot be understood."""
        values = [*self.positional, *self.keywords.values()]
        for value in list(values):
            if isinstance(value, Seq):
                values.extend(value.items)
        return any(
            isinstance(option, Func)
            or (isinstance(option, CallResult) and (option.launch is not None or is_spec(option)))
            for value in values
            for option in options(value)
        )


def _is_traced(value: Value) -> bool:
    """Whether something traced is in it: an index may hold some."""
    if isinstance(value, Array):
        return not value.host
    if isinstance(value, Seq):
        return any(map(_is_traced, value.items))
    if isinstance(value, Slice):
        return any(_is_traced(part) for part in (value.start, value.stop, value.step, value.size) if part is not None)
    return isinstance(value, Ref)
