"""Cache of a file's findings, reused after edits that cannot change them.

Findings on a launch depend on the launch with its traces, on the launches that share code with it, and on names looked
up on the way. Findings on the uses of jax names in a piece depend on the piece, on imports, and on version guards.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from pallas_lint.finding import Position, Span
from pallas_lint.identity import ById
from pallas_lint.kernels.model.launch import Launch
from pallas_lint.kernels.model.queries import EARLY_IMPORTS, GUARDING
from pallas_lint.kernels.model.trace import KernelTrace
from pallas_lint.kernels.model.values import Sym, SymbolOwner
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import Finding
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.values import CallResult
    from pallas_lint.memo.query_cache import CacheEntry, Query
    from pallas_lint.syntax import Outline, Piece, nodes
    from pallas_lint.syntax.uses import Use
    from pallas_lint.text.source import Source

    _Place = tuple[Piece, tuple[int, int]]
    _Names = tuple[frozenset[str], frozenset[tuple[str, str]]]  # the jax names that are assigned; aliases with names

# The kinds of queries that findings depend on, besides those of the runs, with their arguments.
FILE = "file"  # settings, and the names of jax that something assigns
NEIGHBOURS = "neighbours"  # launch: those that share something with it, with itself
SHARED_FACTS = "shared facts"
INFERRED_BACKEND = "presumed"  # launch: the backend that is inferred for it
SPECS = "specs"  # piece: the specs that are made in it
USED = "used"  # functions: those that are index maps of launches
FINDINGS = "findings"  # of the results that a memo keeps


@define(eq=False)
class CachedFindings:
    """Findings, and for each the pieces that its lines belong to: line -> (piece, its anchor there)."""

    findings: list[Finding]
    lines: list[dict[int, _Place]]
    extra: Any = None  # other results of the same computation
    # The pieces, with the line on which each began, and how often its comments and blank lines had changed.
    positions: list[tuple[Piece, int, int]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        pieces = dict.fromkeys(piece for lines in self.lines for piece, _ in lines.values())
        self.positions = [(piece, piece.first, piece.edition) for piece in pieces]

    def relocate(self, source: Source) -> bool:
        """Move the findings to where their code is in `source`.

        False where not all of it is there, or a fix may write comments and blank lines that have changed.
        """
        has_moved = has_other_spacing = False
        for piece, first, edition in self.positions:
            if piece.source is not source:
                return False
            has_moved |= piece.first != first
            has_other_spacing |= piece.edition != edition
        if has_other_spacing and any(finding.fixes for finding in self.findings):
            return False
        if has_moved or has_other_spacing:
            for index, (finding, lines) in enumerate(zip(self.findings, self.lines, strict=True)):
                now = {line: piece.line_at(anchor) for line, (piece, anchor) in lines.items()}
                if any(before != after for before, after in now.items()):
                    self.findings[index] = _at_lines(finding, now, source.path)
                    self.lines[index] = {now[line]: place for line, place in lines.items()}
            self.positions = [(piece, piece.first, piece.edition) for piece, _, _ in self.positions]
        return True


@frozen
class Maps:
    """The index maps of a launch or of a spec: their functions and specs, and the functions that ran with them."""

    functions: frozenset[nodes.Node]
    specs: frozenset[ById]
    entered: dict[nodes.Node, Piece]


@define(eq=False)
class FindingCache:
    """The findings of one file, cached in its memo."""

    analysis: Analysis
    fingerprint: Callable[[], object]  # changes where a rule fails or reads the whole file: its findings are not cached
    _places: _Lines | None = field(default=None, init=False)
    _uses: dict[Piece, tuple[list[Use], frozenset[str]]] = field(factory=dict, init=False)
    _names: _Names = field(default=(frozenset(), frozenset()), init=False)
    _found: list[CachedFindings | None] = field(factory=list, init=False)  # so far; None for those that are not cached
    _all: list[CachedFindings] | None = field(default=None, init=False)  # once all rules have run, if all are cached

    @classmethod
    def of(cls, analysis: Analysis, settings: Settings, fingerprint: Callable[[], object]) -> FindingCache | None:
        """The cache of an analysed file; None where its memo is not persistent."""
        memo = analysis.memo
        if not memo.persistent:
            return None
        key = ById(analysis), ById(settings), analysis.inferred_backends, analysis.early_imports
        cache: FindingCache | None = memo.repeated(FINDINGS, key)
        if cache is None:
            cache = cls(analysis, fingerprint)
            cache._register_queries(settings)
            memo.keep(FINDINGS, key, cache)
        else:
            cache._resume(fingerprint)
        return cache

    def _resume(self, fingerprint: Callable[[], object]) -> None:
        """Go on in a revision that repeats the one that this cache was made in."""
        self.fingerprint, self._places = fingerprint, None
        self._uses.clear()
        self.analysis.module.uses.stored, self.analysis.module.uses.spellings = self._names

    def _register_queries(self, settings: Settings) -> None:
        """Register the queries that findings depend on."""
        analysis, memo = self.analysis, self.analysis.memo
        self._read_uses()
        stored = frozenset(name for name in analysis.module.uses.stored if name.startswith("jax"))
        file = memo.interned(FILE, (ById(settings), stored))
        shared = memo.interned(SHARED_FACTS, _shared_facts(analysis))
        neighbours = memo.derived(NEIGHBOURS, analysis.launches, lambda: _neighbours(analysis.launches))
        made = analysis.outcome.effects.specs_made
        specs = memo.derived(SPECS, made, lambda: _specs_by_piece(made))
        memo.register_query(FILE, lambda: file)
        memo.register_query(SHARED_FACTS, lambda: shared)
        memo.register_query(NEIGHBOURS, lambda launch: neighbours.get(launch, ()))
        memo.register_query(INFERRED_BACKEND, analysis.inferred_backends.get)
        memo.register_query(EARLY_IMPORTS, lambda: analysis.early_imports)
        memo.register_query(SPECS, lambda piece: specs.get(piece, ()))
        memo.register_query(GUARDING, lambda: tuple(analysis.guards.version_pieces))

    def end(self) -> None:
        """All rules have run."""
        cached = [found for found in self._found if found is not None]
        self._all = cached if len(cached) == len(self._found) else None

    def repeated(self) -> list[Finding] | None:
        """The findings of all rules, if the revision repeats one in which they ran; None where they have to run."""
        every, source = self._all, self.analysis.module.source
        if every is not None and all(known.relocate(source) for known in every):
            self.analysis.memo.repeat_revision()
            return [finding for known in every for finding in known.findings]
        self._found, self._all = [], None
        return None

    def of_launch(self, launch: Launch, find: Callable[[Launch], list[Finding]]) -> list[Finding]:
        """The findings on a launch; `find` computes them."""
        key = "launch", launch
        known = self._known(key) or self._computed(key, _queries_of(launch), lambda: (find(launch), None))
        return known.findings

    def of_maps(
        self, owner: Launch | CallResult, find: Callable[[Launch | CallResult], tuple[list[Finding], Maps]]
    ) -> tuple[list[Finding], Maps]:
        """The findings on the index maps of a launch, or of a spec by itself."""
        memo, key = self.analysis.memo, ("maps", ById(owner))

        def compute() -> tuple[list[Finding], Maps]:
            findings, maps = find(owner)
            if not isinstance(owner, Launch):  # of a spec, only maps that no known launch uses are checked
                memo.record_dependency(USED, maps.functions)
            return findings, maps

        known = self._known(key)
        if known is None:
            known = self._computed(key, _queries_of(owner) if isinstance(owner, Launch) else (), compute)
        return known.findings, known.extra

    def of_piece(self, piece: Piece, find: Callable[[list[Use]], list[Finding]]) -> list[Finding]:
        """The findings on uses of jax names in a piece; of a class whose members are pieces, in its header."""
        stored = self.analysis.module.uses.stored

        def compute() -> tuple[list[Finding], None]:
            uses, _ = self._uses_in(piece)
            return find([use for use in uses if use.name.startswith("jax") and use.name not in stored]), None

        if not piece.in_tree:  # how broken code is parsed depends on all of it
            self._found.append(None)
            return compute()[0]
        known = self._known(piece) or self._computed(piece, ((SPECS, piece),), compute)
        return known.findings

    def _known(self, key: Hashable) -> CachedFindings | None:
        """The findings that are cached and still hold, moved to where their code is."""
        known: CacheEntry[CachedFindings] | None = self.analysis.memo.lookup(key)
        if known is None or (known.value.positions and not known.value.relocate(self.analysis.module.source)):
            return None
        if known.value.findings:
            self._found.append(known.value)
        return known.value

    def _computed(
        self, key: Hashable, queries: Iterable[Query], compute: Callable[[], tuple[list[Finding], Any]]
    ) -> CachedFindings:
        memo = self.analysis.memo
        before = self.fingerprint()
        with memo.track_dependencies() as read:
            memo.record_dependency(FILE)
            for query in queries:
                memo.record_dependency(*query)
            findings, extra = compute()
        lines = [self._lines_of(finding) for finding in findings]
        result = CachedFindings(findings, [places for places in lines if places is not None], extra)
        stored = None not in lines and self.fingerprint() == before
        if stored:
            memo.store(key, result, read)
        self._found.append(result if stored else None)
        return result

    def _lines_of(self, finding: Finding) -> dict[int, _Place] | None:
        if self._places is None:
            module = self.analysis.module
            self._places = _Lines(module.outline, module.source.path)
        return self._places.of(finding)

    # -- uses of names ---------------------------------------------------------------------------------------------

    def _read_uses(self) -> None:
        """Give `Uses` the jax names that something in the file assigns, whose uses are not checked anywhere."""
        module, memo = self.analysis.module, self.analysis.memo
        names = [
            memo.get_or_compute(("names", piece), partial(self._names_in, piece)).value
            if piece.in_tree
            else self._names_in(piece)
            for piece in module.outline.walk()
        ]
        self._names = memo.derived("names", names, lambda: _merged_names(names))
        module.uses.stored, module.uses.spellings = self._names

    def _names_in(self, piece: Piece) -> _Names:
        """The jax names assigned in a piece, and the pairs (alias, name) of its uses."""
        uses, assigned = self._uses_in(piece)
        return assigned, frozenset((use.alias, use.name) for use in uses if not use.imported)

    def _uses_in(self, piece: Piece) -> tuple[list[Use], frozenset[str]]:
        module, known = self.analysis.module, self._uses.get(piece)
        module.record_names_in(piece)
        if known is None:
            last = piece.members[0].first - 1 if piece.members else piece.last
            uses, assigned = module.uses.within(piece.first, last)
            known = self._uses[piece] = uses, frozenset(assigned)
        return known


def _merged_names(names: Iterable[_Names]) -> _Names:
    """The jax names that some piece assigns, and the uses of others."""
    every = list(names)
    stored = frozenset().union(*(assigned for assigned, _ in every))
    spellings = frozenset().union(*(spelled for _, spelled in every))
    return stored, frozenset(pair for pair in spellings if pair[1] not in stored)


def _queries_of(launch: Launch) -> Iterable[Query]:
    return (NEIGHBOURS, launch), (SHARED_FACTS,), (INFERRED_BACKEND, launch)


class _Lines:
    """A map from lines to pieces."""

    def __init__(self, outline: Outline, path: str) -> None:
        self._path = path
        self._pieces = sorted(outline.walk(), key=lambda piece: piece.first)  # a class before its members
        self._firsts = [piece.first for piece in self._pieces]

    def of(self, finding: Finding) -> dict[int, _Place] | None:
        """The lines of a finding; None where one belongs to no piece, so that it cannot be relocated."""
        found = {}
        for span in _spans(finding):
            for place in (span.start, span.end) if span.path == self._path else ():
                at = bisect_right(self._firsts, place.line) - 1
                if at < 0:
                    return None
                piece = self._pieces[at]
                # Edits that insert or remove whole lines end at the beginning of the line below.
                if place.line > piece.last + (place.column == 1):
                    return None
                found[place.line] = piece, piece.anchor(place.line)
        return found


def _spans(finding: Finding) -> Iterable[Span]:
    yield finding.span
    yield from (related.span for related in finding.related)
    yield from (edit.span for fix in finding.fixes for edit in fix.edits)


def _at_lines(finding: Finding, lines: dict[int, int], path: str) -> Finding:
    def moved(span: Span) -> Span:
        if span.path != path:
            return span
        start, end = (Position(lines[place.line], place.column) for place in (span.start, span.end))
        return Span(path, start, end)

    return finding.moved(moved)


def _shared(launch: Launch) -> frozenset[object]:
    """A launch site, kernels and traces: launches with one in common are neighbours."""
    shared: set[object] = {launch, launch.site.key, *(body.node for body in launch.bodies)}
    for trace in launch.traces:
        shared |= {trace, trace.site.key, trace.launch}
    return frozenset(shared)


def _neighbours(launches: list[Launch]) -> dict[Launch, tuple[Launch, ...]]:
    """For each launch, its neighbours with itself, in order."""
    sharing: dict[object, list[int]] = {}
    for at, launch in enumerate(launches):
        for key in _shared(launch):
            sharing.setdefault(key, []).append(at)
    together: dict[int, set[int]] = {at: {at} for at in range(len(launches))}
    for places in sharing.values():
        for at in places if len(places) > 1 else ():
            together[at].update(places)
    return {launches[at]: tuple(launches[each] for each in sorted(places)) for at, places in together.items()}


def _specs_by_piece(made: Iterable[CallResult]) -> dict[Piece, tuple[ById, ...]]:
    found: dict[Piece, tuple[ById, ...]] = {}
    for spec in made:
        found[spec.site.piece] = (*found.get(spec.site.piece, ()), ById(spec))
    return found


def _shared_facts(analysis: Analysis) -> Hashable:
    """Facts from other runs that findings on any launch may use: those on sizes that belong to no single run."""
    effects = analysis.outcome.effects
    divided = (
        frozenset(size.text for size in sizes if _is_shared(size)) for sizes in (effects.remainders, effects.divisors)
    )
    guarded = (
        frozenset((size.text, number) for size, number in sizes if _is_shared(size))
        for sizes in (effects.multiples, effects.least)
    )
    compared = frozenset(
        frozenset(size.text if size is not None else None for size in group)
        for group in effects.comparisons
        if any(map(_is_shared, group))
    )
    ratios = frozenset((one.text, other.text) for one, other in effects.ratios if _is_shared(one) or _is_shared(other))
    return (
        tuple(divided),
        tuple(guarded),
        compared,
        ratios,
        frozenset(effects.checkified),
        analysis.outcome.checkified_unknown,
    )


def _is_shared(size: object) -> TypeGuard[Sym]:
    """Whether it is a size that belongs to no single run."""
    return isinstance(size, Sym) and not isinstance(size.owner, SymbolOwner | KernelTrace)
