"""The result of abstractly running code: its launches, and side effects (specs created, functions differentiated, …).

The effects of a module's top level belong to every run that looks up a name bound there, not only to the first: each
run can then be cached on its own. In the merged effects of all runs they appear once.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pallas_lint.identity import ById
from pallas_lint.kernels.model.known_names import is_spec
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.launch import ForeignCall, Launch
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.kernels.model.values import CallResult, Func, Sym, Value
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.syntax import Piece, Site, nodes


_MAX_CONTEXTS = 2  # of one foreign call
_LISTS = ("specs_made", "differentiated", "cotangents", "not_entered", "launches_elsewhere", "outside")
_SETS = (
    "reinterpreted",
    "derived",
    "checkified",
    "remainders",
    "divisors",
    "multiples",
    "least",
    "comparisons",
    "ratios",
    "dtypes",
    "open_guards",
)
_collections = attrgetter(*_LISTS, *_SETS)
# The identity of an effect of a module's top level: its piece, the name of the list, and its index there.
_Key = tuple["Piece", str, int]


@frozen(eq=False)
class Cotangents:
    """What the backward function of a `jax.custom_vjp` returns for a call, and the arguments that it is to be like."""

    backward: Func
    parameters: tuple[str, ...]
    arguments: tuple[Value, ...]
    returned: Value


@define(eq=False)
class Effects:
    """The side effects of one run, or of one lookup; lists are in order of execution."""

    specs_made: list[CallResult] = field(factory=list)  # every BlockSpec constructed, used by a launch or not
    differentiated: list[tuple[Func, str, Site]] = field(factory=list)  # functions passed to `jax.grad` and its like
    cotangents: list[Cotangents] = field(factory=list)  # of calls of functions with derivatives of their own
    not_entered: list[tuple[Func, tuple[Func, ...]]] = field(factory=list)  # launchers of other modules, their callers
    launches_elsewhere: list[Launch] = field(factory=list)  # of other modules: of known calls, and in a `shard_map`
    outside: list[tuple[Op, tuple[Func, ...]]] = field(factory=list)  # calls outside kernels that only kernels may make
    reinterpreted: set[nodes.Node] = field(factory=set)  # where specs for subclasses of Pallas's classes are made
    derived: set[nodes.Node] = field(factory=set)  # functions with custom derivatives
    checkified: set[nodes.Node] = field(factory=set)  # functions passed to checkify.checkify
    remainders: set[Sym] = field(factory=set)  # left operands of `%`: the code tests for divisibility
    divisors: set[Sym] = field(factory=set)  # ... right operands
    multiples: set[tuple[Value, int]] = field(factory=set)  # sizes that the code rejects unless the number divides them
    least: set[tuple[Value, int]] = field(factory=set)  # ... unless they are the number or more
    comparisons: set[frozenset[Sym | None]] = field(factory=set)  # sizes that host code compares, None for numbers
    ratios: set[tuple[Sym, Sym]] = field(factory=set)  # sizes of which host code divides one by the other
    # By functions that roots enter: what host code compares, "x.dtype", and a dtype that it compares it with.
    dtypes: set[tuple[nodes.Node, str, str]] = field(factory=set)
    open_guards: set[nodes.Node] = field(factory=set)  # tests of known calls that raise, of which it is open if they do
    lookup: bool = False  # these are the effects of a lookup
    named: dict[nodes.Node, Func] = field(factory=dict)  # ... functions of a module's top level that it named
    is_open: bool = False  # ... which is still running
    pending: list[Effects] = field(factory=list)  # ... those of running lookups that this one depends on
    _keys: dict[ById, _Key] = field(factory=dict)  # of effects of a top level
    _known: set[_Key] = field(factory=set)

    @property
    def compared(self) -> set[Sym]:
        """Sizes that host code compares with others: some may be ruled out."""
        return {size for group in self.comparisons for size in group if size is not None}

    def add(self, other: Effects) -> None:
        """Merge `other` into this, without duplicates."""
        if not any(_collections(other)):
            return
        for name in _LISTS:
            new = getattr(other, name)
            if not new:
                continue
            items = getattr(self, name)
            if not (other._keys or other.lookup):
                items += new
                continue
            # While a lookup is running its effects have no keys, and are merged repeatedly.
            present = {ById(item) for item in items} if other.lookup else ()
            for item in new:
                key = other._keys.get(ById(item))
                if key is None and ById(item) not in present:
                    items.append(item)
                elif key is not None and key not in self._known:
                    items.append(item)
                    self._set_key(item, key)
        for name in _SETS:
            new = getattr(other, name)
            if new:
                getattr(self, name).update(new)

    def release_specs(self, arguments: Arguments) -> None:
        """Forget specs passed to unknown code, which may interpret them differently: a subclass of `BufferedRef`."""
        given = {ById(value) for value in (*arguments.positional, *arguments.keywords.values())}
        self.specs_made[:] = [spec for spec in self.specs_made if ById(spec) not in given]

    def reinterpret(self, arguments: Arguments) -> None:
        """Forget specs passed to a subclass of one of Pallas's classes, which may give them another meaning."""
        self.release_specs(arguments)
        given = (*arguments.positional, *arguments.keywords.values())
        self.reinterpreted.update(value.site.key for value in given if is_spec(value))

    def _set_key(self, item: Any, key: _Key) -> None:
        self._keys[ById(item)] = key
        self._known.add(key)

    def close(self, piece: Piece | None) -> None:
        """End of the lookup, which ran `piece`."""
        self.is_open = False
        if piece is None:
            return
        for name in _LISTS:
            for index, item in enumerate(getattr(self, name)):
                if ById(item) not in self._keys:
                    self._set_key(item, (piece, name, index))

    @property
    def count(self) -> int:
        """The number of effects."""
        return sum(map(len, _collections(self)))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to merge."""
        return not (self.named or self.pending or any(_collections(self)))

    def with_pending(self) -> list[Effects]:
        """These effects and those they depend on, transitively: merged into these as soon as no lookup runs."""
        if not self.pending:
            return [self]
        found: dict[Effects, None] = {}
        stack = [self]
        while stack:
            effects = stack.pop()
            if effects not in found:
                found[effects] = None
                stack += effects.pending
        if any(effects.is_open for effects in found):
            return list(found)
        for effects in found:
            self.add(effects)
            self.named.update(effects.named)
        self.pending.clear()
        return [self]


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
        if other.launches:
            known = set(self.launches)  # launches of a module's top level belong to every run that looks it up
            self.launches += [launch for launch in other.launches if launch not in known]
        for call in other.foreign_calls:
            self.keep_foreign_call(call)
        self.effects.add(other.effects)
        self.entered.update(other.entered)
        self.inner += other.inner
        self.alike += other.alike
        self.crowded.update(other.crowded)
        self.cut += other.cut
        self.checkified_unknown |= other.checkified_unknown
        self.steps += other.steps

    def keep_foreign_call(self, call: ForeignCall) -> None:
        """Add a call, but for one that is made in too many ways."""
        if sum(other.site.key == call.site.key for other in self.foreign_calls) < _MAX_CONTEXTS:
            self.foreign_calls.append(call)
