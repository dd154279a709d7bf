"""What is written down while code runs, apart from launches: by a root's run, or while a module's name is looked up.

What the top level of a module notes is noted by everybody who looks up what it bound, not only by who comes first:
a run can then be told alone. All together it is noted once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.identity import ById
from pallas_lint.kernels.model.known_names import is_spec
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.kernels.model.values import CallResult, Func, Sym, Value
    from pallas_lint.syntax import Piece, Site, nodes

_LISTS = ("specs_made", "differentiated", "not_entered", "abroad", "outside")
_SETS = ("reinterpreted", "derived", "checkified", "remainders", "divisors", "multiples")
# The piece of a module's top level, what kind of thing it noted, and the how manieth of these.
_Place = tuple["Piece", str, int]


@define(eq=False)
class Effects:
    """In the order in which things happened."""

    specs_made: list[CallResult] = field(factory=list)  # every BlockSpec constructed, used by a launch or not
    differentiated: list[tuple[Func, str, Site]] = field(factory=list)  # functions handed to `jax.grad` and its like
    not_entered: list[tuple[Func, tuple[Func, ...]]] = field(factory=list)  # launchers elsewhere, their callers
    abroad: list[Launch] = field(factory=list)  # launches of other modules that a `shard_map` of this one leads to
    outside: list[tuple[Op, tuple[Func, ...]]] = field(factory=list)  # calls that only a kernel may make, made outside
    reinterpreted: set[nodes.Node] = field(factory=set)  # where specs are made that mean something else to a class
    derived: set[nodes.Node] = field(factory=set)  # functions that bring derivatives of their own
    checkified: set[nodes.Node] = field(factory=set)  # functions handed to checkify.checkify
    remainders: set[Sym] = field(factory=set)  # what was divided with a remainder: somebody asks whether it fits
    divisors: set[Sym] = field(factory=set)  # ... and by what
    multiples: set[tuple[Value, int]] = field(factory=set)  # sizes that the code refuses unless the number divides them
    lookup: bool = False  # taken while a name was looked up
    named: dict[nodes.Node, Func] = field(factory=dict)  # ... functions of a module's top level that were named for it
    is_open: bool = False  # ... that goes on: there may be more to come
    beside: list[Effects] = field(factory=list)  # ... those that were open when this one needed their names
    _places: dict[ById, _Place] = field(factory=dict)  # of what the top level noted
    _known: set[_Place] = field(factory=set)

    def add(self, other: Effects) -> None:
        """Note all of `other` that is not noted yet."""
        for name in _LISTS:
            new = getattr(other, name)
            if not new:
                continue
            items = getattr(self, name)
            # What is still open has no place yet, and is heard again and again by what it waits for.
            present = {ById(item) for item in items} if other.lookup else ()
            for item in new:
                place = other._places.get(ById(item))
                if place is None and ById(item) not in present:
                    items.append(item)
                elif place is not None and place not in self._known:
                    items.append(item)
                    self._place(item, place)
        for name in _SETS:
            getattr(self, name).update(getattr(other, name))

    def let_go(self, arguments: Arguments) -> None:
        """What code that is not seen gets may mean something else there: a `BufferedRef` with a rule of its own."""
        given = {ById(value) for value in (*arguments.positional, *arguments.keywords.values())}
        self.specs_made[:] = [made for made in self.specs_made if ById(made) not in given]

    def reinterpret(self, arguments: Arguments) -> None:
        """A class of the project that extends one of Pallas's gets these: what specs mean to it is its own affair."""
        self.let_go(arguments)
        given = (*arguments.positional, *arguments.keywords.values())
        self.reinterpreted.update(value.site.key for value in given if is_spec(value))

    def _place(self, item: Any, place: _Place) -> None:
        self._places[ById(item)] = place
        self._known.add(place)

    def close(self, piece: Piece | None) -> None:
        """Nothing more comes; `piece` ran meanwhile."""
        self.is_open = False
        if piece is None:
            return
        for name in _LISTS:
            for at, item in enumerate(getattr(self, name)):
                if ById(item) not in self._places:
                    self._place(item, (piece, name, at))

    @property
    def count(self) -> int:
        """How much is noted."""
        return sum(len(getattr(self, name)) for name in (*_LISTS, *_SETS))

    @property
    def is_empty(self) -> bool:
        """Whether nobody needs to hear of it."""
        return not (self.named or self.beside or any(getattr(self, name) for name in (*_LISTS, *_SETS)))

    def together(self) -> list[Effects]:
        """This and what belongs to it."""
        if not self.beside:
            return [self]
        found: dict[Effects, None] = {}
        stack = [self]
        while stack:
            each = stack.pop()
            if each not in found:
                found[each] = None
                stack += each.beside
        return list(found)
