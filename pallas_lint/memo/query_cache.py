"""A dependency-tracking cache across revisions of one file.

An entry is valid while every query it read returns the same value, wherever the code now is in the file. The last few
revisions count: results are still known after broken code is mended, or an edit is undone.

Hundreds of entries read the same few queries. Each query is evaluated once a revision, and an entry that was valid in
the revision before is valid if it reads none of those that changed. Only queries whose values change during a revision
are evaluated for each entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from pallas_lint.identity import ByIds
from pallas_lint.records import define, field

_T = TypeVar("_T")
Query = tuple["Hashable", ...]  # its kind and its arguments
_REVISIONS_KEPT = 12  # an entry that was not used for so many revisions may be dropped
_MAX_INPUTS = 4


@define(eq=False)
class CacheEntry(Generic[_T]):
    """A cached value with its dependencies."""

    key: Hashable
    value: _T
    inputs: object  # the revision inputs that it was computed with
    dependencies: dict[Query, object]
    used: int  # the last revision in which it was valid
    unsettled: list[Query] = field(factory=list)  # its dependencies whose values may change during a revision

    def __repr__(self) -> str:
        return f"CacheEntry({self.value!r})"


@define(eq=False)
class Memo:
    """The cache of one file. If not `persistent`, entries are dropped with each revision."""

    persistent: bool = False
    inputs: list[Any] = field(factory=list)  # of the last revisions
    _revision: int = 0
    _entries: dict[Hashable, list[CacheEntry[Any]]] = field(factory=dict, init=False)
    _interned: dict[Hashable, Any] = field(factory=dict, init=False)
    _derived: dict[Hashable, tuple[ByIds, Any]] = field(factory=dict, init=False)
    _kept: dict[Hashable, tuple[object, Any]] = field(factory=dict, init=False)
    _has_other_inputs: bool = field(default=True, init=False)  # than the revision before
    _queries: dict[Hashable, Callable[..., object]] = field(factory=dict)
    # By settled kind: the queries that entries depend on, each with its newest value.
    _settled: dict[Hashable, dict[Query, object]] = field(factory=dict, init=False)
    _readers: Counter[Query] = field(factory=Counter, init=False)  # how many entries depend on a query
    _changed: set[Query] = field(factory=set, init=False)  # those with another value than in the revision before
    _tracked: list[set[Query]] = field(factory=list)  # the dependencies of the entries that are being computed
    _attributed: dict[Query, list[set[Query]]] = field(factory=dict)

    def begin_revision(self, inputs: object) -> None:
        """Start a revision. Only entries computed with the same `inputs`, compared by identity, are valid in it."""
        self._revision += 1
        self._has_other_inputs = not self.inputs or self.inputs[-1] is not inputs
        self.inputs = [*(earlier for earlier in self.inputs[1 - _MAX_INPUTS :] if earlier is not inputs), inputs]
        self._attributed.clear()
        self._changed.clear()
        if not self.persistent:
            self.clear()
        if self._revision % _REVISIONS_KEPT == 0:
            oldest = self._revision - _REVISIONS_KEPT
            outdated = [entry for entries in self._entries.values() for entry in entries if entry.used < oldest]
            for entry in outdated:
                self._drop(entry)

    def _drop(self, entry: CacheEntry[Any]) -> None:
        """Drop an entry, and queries that no other depends on."""
        entries = self._entries[entry.key]
        entries.remove(entry)
        if not entries:
            del self._entries[entry.key]
        for query in entry.dependencies:
            self._readers[query] -= 1
            if not self._readers[query]:
                del self._readers[query]
                self._settled.get(query[0], {}).pop(query, None)

    def register_query(self, kind: Hashable, function: Callable[..., object], *, settled: bool = True) -> None:
        """Evaluate queries of a kind with `function` in this revision.

        `settled`: from now on, their values stay the same in this revision. The same function as in the revision before
        has the same values.
        """
        before, self._queries[kind] = self._queries.get(kind), function
        if not settled or function is before:
            return
        values = self._settled.setdefault(kind, {})
        for query, value in values.items():
            now = function(*query[1:])
            if now != value:
                values[query] = now
                self._changed.add(query)

    def interned(self, kind: Hashable, value: _T) -> _T:
        """The value of the previous revision if equal, which makes comparing it with cached ones quick."""
        before = self._interned.get(kind)
        if before != value:
            self._interned[kind] = before = value
        return before

    def derived(self, kind: Hashable, objects: Iterable[object], compute: Callable[[], _T]) -> _T:
        """What is computed from some objects, the value of the previous revision if they are the same."""
        source, known = ByIds(tuple(objects)), self._derived.get(kind)
        if known is None or known[0] != source:
            self._derived[kind] = known = source, compute()
        value: _T = known[1]
        return value

    def keep(self, kind: Hashable, key: object, value: object) -> None:
        """Keep a result of this revision for those that repeat it."""
        if self.persistent:
            self._kept[kind] = key, value

    def repeated(self, kind: Hashable, key: object) -> Any:
        """What was kept with the same key, if no query has another value since; None if it does not count any more."""
        known = self._kept.pop(kind, None)
        if known is None or self._has_other_inputs or self._changed or known[0] != key:
            return None
        self._kept[kind] = known
        return known[1]

    def repeat_revision(self) -> None:
        """Go on with the revision before, which this one repeats in all queries: its entries are valid."""
        self._revision -= 1

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
        self._kept.clear()
        self._readers.clear()
        for values in self._settled.values():
            values.clear()

    def record_dependency(self, *query: Hashable) -> None:
        """Record a dependency of the entry being computed."""
        if self._tracked:
            self._tracked[-1].add(query)

    @contextmanager
    def track_dependencies(self) -> Iterator[set[Query]]:
        """All dependencies recorded within; they are dependencies of the enclosing computation, too."""
        read: set[Query] = set()
        if not self.persistent:
            yield read
            return
        self._tracked.append(read)
        try:
            yield read
        finally:
            self._tracked.pop()
            self.add_dependencies(read)

    @contextmanager
    def attribute_dependencies(self, queries: Iterable[Query]) -> Iterator[None]:
        """Dependencies recorded within are dependencies of everything that reads one of these queries.

        For values that are computed once a revision, by the first reader.
        """
        with self.track_dependencies() as read:
            if self.persistent:
                for query in queries:
                    self._attributed.setdefault(query, []).append(read)
            yield

    def get_or_compute(self, key: Hashable, compute: Callable[[], _T]) -> CacheEntry[_T]:
        """The valid entry of a key, computed now if there is none."""
        known: CacheEntry[_T] | None = self.lookup(key)
        if known is None:
            with self.track_dependencies() as read:
                value = compute()
            return self.store(key, value, read)
        self.add_dependencies(known.dependencies)
        return known

    def lookup(self, key: Hashable) -> CacheEntry[Any] | None:
        """The entry of a key that is valid in this revision."""
        revision, inputs = self._revision, self.inputs[-1]
        entry: CacheEntry[Any]
        for entry in reversed(self._entries.get(key, [])):
            if entry.used == revision:
                return entry
            if entry.inputs is inputs and self._is_valid(entry):
                entry.used = revision
                return entry
        return None

    def _is_valid(self, entry: CacheEntry[Any]) -> bool:
        dependencies = entry.dependencies
        if entry.used < self._revision - 1:
            return all(self._evaluate(query) == value for query, value in dependencies.items())
        if self._changed and not self._changed.isdisjoint(dependencies):
            return False
        unsettled = entry.unsettled
        return not unsettled or all(self._evaluate(query) == dependencies[query] for query in unsettled)

    def store(self, key: Hashable, value: _T, read: Iterable[Query]) -> CacheEntry[_T]:
        """Add an entry."""
        entry = CacheEntry(key, value, self.inputs[-1], {}, self._revision)
        self.extend_dependencies(entry, read)
        self._entries.setdefault(key, []).append(entry)
        return entry

    def add_dependencies(self, read: Iterable[Query]) -> None:
        """Record dependencies of the entry being computed: those of an entry that it uses."""
        if self._tracked:
            self._tracked[-1].update(read)

    def extend_dependencies(self, entry: CacheEntry[Any], read: Iterable[Query]) -> None:
        """Add dependencies to a finished entry, whose value was completed later."""
        for query in self._transitive(read):
            if query not in entry.dependencies:
                value = entry.dependencies[query] = self._evaluate(query)
                self._readers[query] += 1
                settled = self._settled.get(query[0])
                if settled is None:
                    entry.unsettled.append(query)
                else:
                    settled[query] = value

    def _transitive(self, read: Iterable[Query]) -> set[Query]:
        """Queries with all that is attributed to them."""
        found = set(read)
        stack = list(found)
        while stack:
            for below in self._attributed.get(stack.pop(), ()):
                stack.extend(below - found)
                found |= below
        return found

    def _evaluate(self, query: Query) -> object:
        return self._queries[query[0]](*query[1:])
