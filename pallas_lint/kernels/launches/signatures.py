"""Positional arguments that a function accepts, after those that `partial` and a method's owner fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import frozen
from pallas_lint.syntax import nodes
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pallas_lint.kernels.model.values import Func


@frozen
class Signature:
    """The free parameters of a function, as a caller by position sees them."""

    names: tuple[str, ...]
    """Parameters that positional arguments go to, in order."""
    required: int
    """How many of them have no default."""
    rest: str | None
    """The parameter that takes what is left: "args" of `*args`."""
    keyword_only: tuple[str, ...]
    """Parameters that only a keyword could fill, that have no default and that nothing fills."""
    open: bool
    """`partial(f, **unknown)`: any parameter may be filled already."""

    @property
    def variadic(self) -> bool:
        """Whether any number of arguments goes through."""
        return self.rest is not None

    @property
    def most(self) -> int | None:
        return None if self.variadic else len(self.names)

    def takes(self, count: int, keywords: Collection[str] = ()) -> bool | None:
        """Whether a call with `count` positional arguments and these keywords goes through; None: not known."""
        if self.open:
            return None
        free = [name for name in self.names[count:] if name not in keywords]
        lacking = [name for name in free if self.names.index(name) < self.required]
        clash = any(name in keywords for name in self.names[:count])
        beyond = self.most is not None and count > self.most
        return not (lacking or clash or beyond or any(name not in keywords for name in self.keyword_only))

    def spelled(self) -> str:
        """ "1 argument", "2 to 3 arguments", "at least 1 argument"."""
        if self.variadic:
            return f"at least {count_of(self.required, 'argument')}"
        if self.required == len(self.names):
            return count_of(self.required, "argument")
        return f"{self.required} to {count_of(len(self.names), 'argument')}"


def signature_of(func: Func) -> Signature:
    """The signature that is left of `func`."""
    parameters = func.node.params
    filled = len(func.bound) + (func.method_of is not None)
    taken = {name for name, _ in func.keywords}
    names: list[str] = []
    required = 0
    # Arguments are passed by position: none reaches a parameter after one that a keyword fills.
    unreachable: list[str] = []
    reachable = True
    for parameter in parameters.positional[filled:]:
        name = parameter.name.value
        if name in taken:
            reachable = False
        elif reachable:
            names.append(name)
            required += parameter.default is None
        elif parameter.default is None:
            unreachable.append(name)
    only = [p.name.value for p in parameters.kwonly_params if p.default is None and p.name.value not in taken]
    rest = parameters.star_arg.name.value if isinstance(parameters.star_arg, nodes.Param) and reachable else None
    return Signature(tuple(names), required, rest, (*unreachable, *only), func.open_keywords)
