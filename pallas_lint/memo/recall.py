"""What was found in a file, to be said again after an edit that cannot change it.

What rules say of a launch follows from the launch with its traces, from the launches that share code with it, and from
facts on which the launch itself is only kept by the analysis (`kernels/replay.py`). What they say of the uses of jax
names in a piece follows from the piece, from imports, and from what asks about jax versions.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, TypeVar

from pallas_lint.finding import Position, Span
from pallas_lint.identity import Same
from pallas_lint.kernels.model.trace import KernelTrace
from pallas_lint.kernels.model.values import CallResult, Frame
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from collections.abc import Set as AbstractSet

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import Finding
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Outline, Piece, nodes
    from pallas_lint.syntax.uses import Use
    from pallas_lint.text.source import Source

T = TypeVar("T")


@define(eq=False)
class _Said:
    """Findings, and for each the pieces that its lines belong to: line -> (piece, lines below its first)."""

    condition: Hashable
    findings: list[Finding]
    lines: list[dict[int, tuple[Piece, int]]]
    maps: Maps | None = None
    stood: list[tuple[Piece, int]] = field(init=False)  # the pieces, and on which line each began

    def __attrs_post_init__(self) -> None:
        pieces = dict.fromkeys(piece for lines in self.lines for piece, _ in lines.values())
        self.stood = [(piece, piece.first) for piece in pieces]

    def now(self, source: Source) -> list[Finding] | None:
        """The findings where their code stands in `source`; None where some of it is gone."""
        if any(piece.source is not source for piece, _ in self.stood):
            return None
        if any(piece.first != first for piece, first in self.stood):
            for at, (finding, lines) in enumerate(zip(self.findings, self.lines, strict=True)):
                now = {line: piece.first + below for line, (piece, below) in lines.items()}
                if any(before != after for before, after in now.items()):
                    self.findings[at] = _at_lines(finding, now, source.path)
                    self.lines[at] = {now[line]: place for line, place in lines.items()}
            self.stood = [(piece, piece.first) for piece, _ in self.stood]
        return self.findings


@frozen
class Maps:
    """The index maps of a launch or of a spec: their functions, and the functions that ran with them."""

    functions: frozenset[nodes.Node]
    entered: dict[nodes.Node, Piece]


@define(eq=False)
class Recall:
    """What was said of one file the last time."""

    settings: Settings | None = None
    _said: dict[Hashable, _Said] = field(factory=dict)
    _before: dict[Hashable, _Said] = field(factory=dict)
    _is_complete: bool = True  # False: the last text was abandoned in the middle
    _source: Source | None = None
    _outline: Outline | None = None
    _lines: _Lines | None = None
    _neighbours: dict[Launch, tuple[Launch, ...]] = field(factory=dict)
    _shared: dict[Launch, frozenset[object]] = field(factory=dict)  # what a launch may share
    _asked: Hashable = None
    _frame: Hashable = None  # what a use of a name may depend on wherever it stands
    _analysis: Analysis | None = None
    _module: Module | None = None
    _uses: dict[Piece, tuple[list[Use], set[str]]] = field(factory=dict)  # by piece, of this text
    # By piece: the names that are assigned in it, and what its uses begin with and stand for.
    _stored: dict[Piece, tuple[frozenset[str], frozenset[tuple[str, str]]]] = field(factory=dict)
    _all_stored: frozenset[str] = frozenset()
    _specs: dict[Piece, list[CallResult]] = field(factory=dict)  # those made in each piece

    def begin(self, source: Source, outline: Outline, analysis: Analysis, settings: Settings) -> None:
        """The file is judged again."""
        known = self._said if self._is_complete else {**self._before, **self._said}
        self._before, self._said, self._is_complete = (known if settings is self.settings else {}), {}, False
        self.settings, self._source = settings, source
        self._outline, self._lines = outline, None
        launches = analysis.launches
        self._shared = {each: self._shared.get(each) or _shared(each) for each in launches}
        self._neighbours = _neighbours(launches, self._shared)
        self._asked = _kept(self._asked, _asked_by_all(analysis))
        self._analysis, self._specs = analysis, {}
        for made in analysis.outcome.effects.specs_made:
            self._specs.setdefault(made.site.piece, []).append(made)
        replay = analysis.replay
        assert replay is not None
        asking = tuple(replay.reached_from(each) for each in analysis.guards.asking_pieces)
        self._frame = _kept(self._frame, (replay.facts, asking, tuple(analysis.module.uses.bound.items())))

    def end(self) -> None:
        """All has been said."""
        self._before, self._is_complete, self._outline, self._lines = {}, True, None, None

    def of_launch(self, launch: Launch) -> list[Finding] | None:
        """What is to be said of a launch; None where that has to be found out."""
        known = self._before.get(launch)
        if known is None or known.condition != self._condition(launch):
            return None
        return self._again(launch, known)

    def of_maps(self, what: Launch | CallResult, used: AbstractSet[nodes.Node]) -> tuple[list[Finding], Maps] | None:
        """What is to be said of the index maps of a launch, or of a spec of which the maps in `used` are judged."""
        known = self._before.get((Same(what), "maps"))
        if known is None or known.maps is None or known.condition != self._maps_condition(what, known.maps, used):
            return None
        found = self._again((Same(what), "maps"), known)
        return None if found is None else (found, known.maps)

    def keep_maps(
        self, what: Launch | CallResult, maps: Maps, used: AbstractSet[nodes.Node], findings: list[Finding]
    ) -> None:
        """Remember what was found out of index maps."""
        self._keep((Same(what), "maps"), self._maps_condition(what, maps, used), findings, maps)

    def _maps_condition(self, what: Launch | CallResult, maps: Maps, used: AbstractSet[nodes.Node]) -> Hashable:
        return maps.functions & used if isinstance(what, CallResult) else self._condition(what)

    def stored_names(self, module: Module) -> frozenset[str]:
        """The names of jax that something in the file assigns: nothing is said of their uses anywhere."""
        kept: dict[Piece, tuple[frozenset[str], frozenset[tuple[str, str]]]] = {}
        stored = []
        self._uses = {}
        for piece in module.outline.walk():
            names = self._stored.get(piece) if piece in self._before else None
            if names is not None:
                kept[piece] = names
            if names is None or not piece.in_tree:
                uses, assigned = self._read_uses(piece, module)
                names = frozenset(assigned), frozenset((use.alias, use.name) for use in uses if not use.imported)
                if piece.in_tree:
                    kept[piece] = names
            stored.append(names)
        self._module, self._stored = module, kept
        all_stored: frozenset[str] = frozenset().union(*(names for names, _ in stored))
        self._all_stored = _kept(self._all_stored, all_stored)
        spellings: frozenset[tuple[str, str]] = frozenset().union(*(spelled for _, spelled in stored))
        module.uses.stored = self._all_stored
        module.uses.spellings = frozenset(each for each in spellings if each[1] not in self._all_stored)
        return self._all_stored

    def _read_uses(self, piece: Piece, module: Module) -> tuple[list[Use], set[str]]:
        known = self._uses.get(piece)
        if known is None:
            last = piece.members[0].first - 1 if piece.members else piece.last
            known = self._uses[piece] = module.uses.within(piece.first, last)
        return known

    def uses_in(self, piece: Piece) -> list[Use]:
        """The uses in a piece; for a class of which the members are pieces, in its header."""
        assert self._module is not None
        return self._read_uses(piece, self._module)[0]

    def of_piece(self, piece: Piece) -> list[Finding] | None:
        """What is to be said of the uses in a piece; None where that has to be found out."""
        known = self._before.get(piece)
        if known is not None and not piece.in_tree:
            self._said[piece] = known  # for when the text around it is whole again
            return None
        if known is None or known.condition != self._uses_condition(piece):
            return None
        return self._again(piece, known)

    def keep_piece(self, piece: Piece, findings: list[Finding]) -> None:
        """Remember what was found out of the uses in a piece."""
        if not piece.in_tree:
            return  # what stands in a broken tree depends on what is broken
        self._keep(piece, self._uses_condition(piece), findings)

    def keep(self, launch: Launch, findings: list[Finding]) -> None:
        """Remember what was found out of a launch."""
        self._keep(launch, self._condition(launch), findings)

    def _keep(
        self,
        what: Hashable,
        condition: Hashable,
        findings: list[Finding],
        maps: Maps | None = None,
    ) -> None:
        lines = []
        for finding in findings:
            found = self._lines_of(finding)
            if found is None:
                return
            lines.append(found)
        self._said[what] = _Said(condition, list(findings), lines, maps)

    def _lines_of(self, finding: Finding) -> dict[int, tuple[Piece, int]] | None:
        if self._lines is None:
            assert self._outline is not None and self._source is not None
            self._lines = _Lines(self._outline, self._source.path)
        return self._lines.of(finding)

    def _again(self, what: Hashable, known: _Said) -> list[Finding] | None:
        """What was said, where its code now stands; None where some of it is gone."""
        assert self._source is not None
        found = known.now(self._source)
        if found is not None:
            self._said[what] = known
        return found

    def _uses_condition(self, piece: Piece) -> Hashable:
        """Specs tell what a use of BlockSpec was given."""
        assert self._analysis is not None and self._analysis.replay is not None
        made = tuple(map(Same, self._specs.get(piece, ())))
        return self._analysis.replay.reached_from(piece), made, self._frame, self._all_stored

    def _condition(self, launch: Launch) -> Hashable:
        assert self._analysis is not None
        presumed = self._analysis.presumed.get(launch)
        return tuple(map(Same, self._neighbours.get(launch, ()))), self._asked, self._all_stored, presumed


class _Lines:
    """Which piece a line belongs to."""

    def __init__(self, outline: Outline, path: str) -> None:
        self._path = path
        self._pieces = sorted(outline.walk(), key=lambda piece: piece.first)  # a class before its members
        self._firsts = [piece.first for piece in self._pieces]

    def of(self, finding: Finding) -> dict[int, tuple[Piece, int]] | None:
        """The lines that a finding speaks of; None where one is no piece's, so that nobody knows where it would be."""
        found = {}
        for span in _spans(finding):
            for place in (span.start, span.end) if span.path == self._path else ():
                at = bisect_right(self._firsts, place.line) - 1
                if at < 0:
                    return None
                piece = self._pieces[at]
                # Edits that insert or take out whole lines end at the beginning of the line below.
                if place.line > piece.last + (place.column == 1):
                    return None
                found[place.line] = piece, place.line - piece.first
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


def _kept(before: T, now: T) -> T:
    """The earlier of two equal objects: comparing it with what was made with it is then quick."""
    return before if before == now else now


def _shared(launch: Launch) -> frozenset[object]:
    """A place, a kernel and traces, by which a launch may be tied to others."""
    shared: set[object] = {launch, launch.site.key, *(body.node for body in launch.bodies)}
    for trace in launch.traces:
        shared |= {trace, trace.site.key, trace.launch}
    return frozenset(shared)


def _neighbours(launches: list[Launch], shared: dict[Launch, frozenset[object]]) -> dict[Launch, tuple[Launch, ...]]:
    """For each launch, those that share something with it and itself, in order."""
    sharing: dict[object, list[int]] = {}
    for at, launch in enumerate(launches):
        for key in shared[launch]:
            sharing.setdefault(key, []).append(at)
    found = {}
    for launch in launches:
        places = {at for key in shared[launch] for at in sharing[key]}
        found[launch] = (launch,) if len(places) == 1 else tuple(launches[at] for at in sorted(places))
    return found


def _asked_by_all(analysis: Analysis) -> Hashable:
    """What any launch may be asked about that others say: sizes that are none of a single run's."""
    notes = analysis.outcome.effects
    shared = (
        frozenset(size.text for size in sizes if not isinstance(size.owner, Frame | KernelTrace))
        for sizes in (notes.remainders, notes.divisors)
    )
    return tuple(shared), frozenset(notes.checkified), analysis.outcome.checkified_unknown
