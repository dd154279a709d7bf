"""Names and arguments of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pallas_lint.kernels.model.values import Value


def last_part(name: str) -> str:
    """ "cumsum" of "jax.numpy.cumsum"."""
    return name[name.rfind(".") + 1 :]


class WithArguments:
    """A call with its known arguments."""

    __slots__ = ()

    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]

    def argument(self, name: str, position: int | None = None) -> Value | None:
        """The argument passed as `name` or at `position`; None where it was not passed."""
        for keyword, value in self.keywords:
            if keyword == name:
                return value
        if position is not None and position < len(self.args):
            return self.args[position]
        return None
