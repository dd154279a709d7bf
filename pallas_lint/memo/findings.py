"""What was found in a file, to be said again after an edit that cannot change it.

What rules say of a launch follows from the launch with its traces, from the launches that share code with it, and from
what is looked up on the way. What they say of the uses of jax names in a piece follows from the piece, from imports,
and from what asks about jax versions.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any

from pallas_lint.finding import Position, Span
from pallas_lint.identity import Same
from pallas_lint.kernels.model.launch import Launch
from pallas_lint.kernels.model.questions import GUARDING
from pallas_lint.kernels.model.trace import KernelTrace
from pallas_lint.kernels.model.values import Call, Sym
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import Finding
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.values import CallResult
    from pallas_lint.memo.answers import Answer, Question
    from pallas_lint.syntax import Outline, Piece, nodes
    from pallas_lint.syntax.uses import Use
    from pallas_lint.text.source import Source

# The kinds of questions on which findings rest, besides those of the runs, and how each goes on.
FILE = "file"  # settings, what imports bind, and the names of jax that something assigns
BOUND = "bound"  # what imports bind, where nothing hides it
NEIGHBOURS = "neighbours"  # launch: those that share something with it, and itself
ASKED_BY_ALL = "asked by all"
PRESUMED = "presumed"  # launch: the backend that it is taken to be for
SPECS = "specs"  # piece: the specs that are made in it
USED = "used"  # functions: those of them that are index maps of launches


@define(eq=False)
class Said:
    """Findings, and for each the pieces that its lines belong to: line -> (piece, lines below its first)."""

    findings: list[Finding]
    lines: list[dict[int, tuple[Piece, int]]]
    beside: Any = None  # what else was found out
    stood: list[tuple[Piece, int]] = field(init=False)  # the pieces, and on which line each began

    def __attrs_post_init__(self) -> None:
        pieces = dict.fromkeys(piece for lines in self.lines for piece, _ in lines.values())
        self.stood = [(piece, piece.first) for piece in pieces]

    def now(self, source: Source) -> bool:
        """Whether all of their code stands in `source`; the findings are then moved to where it does."""
        if any(piece.source is not source for piece, _ in self.stood):
            return False
        if any(piece.first != first for piece, first in self.stood):
            for at, (finding, lines) in enumerate(zip(self.findings, self.lines, strict=True)):
                now = {line: piece.first + below for line, (piece, below) in lines.items()}
                if any(before != after for before, after in now.items()):
                    self.findings[at] = _at_lines(finding, now, source.path)
                    self.lines[at] = {now[line]: place for line, place in lines.items()}
            self.stood = [(piece, piece.first) for piece, _ in self.stood]
        return True


@frozen
class Maps:
    """The index maps of a launch or of a spec: their functions, and the functions that ran with them."""

    functions: frozenset[nodes.Node]
    entered: dict[nodes.Node, Piece]


@define(eq=False)
class KeptFindings:
    """What is said of one file, and kept in its memo."""

    analysis: Analysis
    asked: Callable[[], object]  # changes where a rule fails, or looks at all of the file: such findings are not kept
    _places: _Lines | None = field(default=None, init=False)
    _uses: dict[Piece, tuple[list[Use], frozenset[str]]] = field(factory=dict, init=False)

    @classmethod
    def of(cls, analysis: Analysis, settings: Settings, asked: Callable[[], object]) -> KeptFindings | None:
        """What is kept of an analysed file; None where nothing is."""
        if not analysis.memo.keeps:
            return None
        kept = cls(analysis, asked)
        kept._teach(settings)
        return kept

    def _teach(self, settings: Settings) -> None:
        """Have the memo ask what findings rest on."""
        analysis, memo = self.analysis, self.analysis.memo
        uses = analysis.module.uses
        bound = memo.interned(BOUND, tuple(uses.bound.items()))
        memo.teach(BOUND, lambda: bound)
        self._read_uses()
        file = memo.interned(FILE, (Same(settings), bound, uses.stored))
        asked = memo.interned(ASKED_BY_ALL, _asked_by_all(analysis))
        neighbours = _neighbours(analysis.launches)
        specs: dict[Piece, tuple[Same, ...]] = {}
        for made in analysis.outcome.effects.specs_made:
            specs[made.site.piece] = (*specs.get(made.site.piece, ()), Same(made))
        memo.teach(FILE, lambda: file)
        memo.teach(ASKED_BY_ALL, lambda: asked)
        memo.teach(NEIGHBOURS, lambda launch: neighbours.get(launch, ()))
        memo.teach(PRESUMED, analysis.presumed.get)
        memo.teach(SPECS, lambda piece: specs.get(piece, ()))
        memo.teach(GUARDING, lambda: tuple(analysis.guards.asking_pieces))

    def of_launch(self, launch: Launch, find: Callable[[], list[Finding]]) -> list[Finding]:
        """What is to be said of a launch; `find` finds it out."""
        return self._said(("launch", launch), _about(launch), lambda: (find(), None)).findings

    def of_maps(
        self, what: Launch | CallResult, find: Callable[[], tuple[list[Finding], Maps]]
    ) -> tuple[list[Finding], Maps]:
        """What is to be said of the index maps of a launch, or of a spec by itself."""
        memo = self.analysis.memo

        def found() -> tuple[list[Finding], Maps]:
            findings, maps = find()
            if not isinstance(what, Launch):  # of a spec only those are judged that no launch is seen to use
                memo.read(USED, maps.functions)
            return findings, maps

        said = self._said(("maps", Same(what)), _about(what) if isinstance(what, Launch) else (), found)
        return said.findings, said.beside

    def of_piece(self, piece: Piece, find: Callable[[list[Use]], list[Finding]]) -> list[Finding]:
        """What is to be said of the uses of jax names in a piece: in the header of a class whose members are pieces."""
        stored = self.analysis.module.uses.stored

        def found() -> tuple[list[Finding], None]:
            uses, _ = self._uses_in(piece)
            return find([use for use in uses if use.name.startswith("jax") and use.name not in stored]), None

        if not piece.in_tree:  # what stands in a broken tree depends on what is broken
            return found()[0]
        return self._said(piece, ((SPECS, piece),), found).findings

    def _said(
        self, about: Hashable, questions: Iterable[Question], find: Callable[[], tuple[list[Finding], Any]]
    ) -> Said:
        module, memo = self.analysis.module, self.analysis.memo
        known: Answer[Said] | None = memo.known(about)
        if known is not None and known.value.now(module.source):
            return known.value
        before = self.asked()
        with memo.asking() as read:
            memo.read(FILE)
            for question in questions:
                memo.read(*question)
            findings, beside = find()
        lines = [self._lines_of(finding) for finding in findings]
        said = Said(findings, [each for each in lines if each is not None], beside)
        if None not in lines and self.asked() == before:
            memo.keep(about, said, read)
        return said

    def _lines_of(self, finding: Finding) -> dict[int, tuple[Piece, int]] | None:
        if self._places is None:
            module = self.analysis.module
            self._places = _Lines(module.outline, module.source.path)
        return self._places.of(finding)

    # -- uses of names ---------------------------------------------------------------------------------------------

    def _read_uses(self) -> None:
        """Tell all uses what names of jax something in the file assigns: nothing is said of their uses anywhere."""
        module, memo = self.analysis.module, self.analysis.memo
        stored: set[str] = set()
        spellings: set[tuple[str, str]] = set()
        for piece in module.outline.walk():
            if piece.in_tree:
                assigned, spelled = memo.answer(("names", piece), partial(self._names_in, piece)).value
            else:
                assigned, spelled = self._names_in(piece)
            stored |= assigned
            spellings |= spelled
        module.uses.stored = frozenset(stored)
        module.uses.spellings = frozenset(each for each in spellings if each[1] not in stored)

    def _names_in(self, piece: Piece) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """The names that are assigned in a piece, and what its uses begin with and stand for."""
        self.analysis.memo.read(BOUND)
        uses, assigned = self._uses_in(piece)
        return assigned, frozenset((use.alias, use.name) for use in uses if not use.imported)

    def _uses_in(self, piece: Piece) -> tuple[list[Use], frozenset[str]]:
        known = self._uses.get(piece)
        if known is None:
            last = piece.members[0].first - 1 if piece.members else piece.last
            uses, assigned = self.analysis.module.uses.within(piece.first, last)
            known = self._uses[piece] = uses, frozenset(assigned)
        return known


def _about(launch: Launch) -> Iterable[Question]:
    return (NEIGHBOURS, launch), (ASKED_BY_ALL,), (PRESUMED, launch)


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


def _shared(launch: Launch) -> frozenset[object]:
    """A place, a kernel and traces, by which a launch may be tied to others."""
    shared: set[object] = {launch, launch.site.key, *(body.node for body in launch.bodies)}
    for trace in launch.traces:
        shared |= {trace, trace.site.key, trace.launch}
    return frozenset(shared)


def _neighbours(launches: list[Launch]) -> dict[Launch, tuple[Launch, ...]]:
    """For each launch, those that share something with it and itself, in order."""
    shared = {launch: _shared(launch) for launch in launches}
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
        frozenset(size.text for size in sizes if not isinstance(size.owner, Call | KernelTrace))
        for sizes in (notes.remainders, notes.divisors)
    )
    multiples = frozenset(
        (size.text, number)
        for size, number in notes.multiples
        if isinstance(size, Sym) and not isinstance(size.owner, Call | KernelTrace)
    )
    return tuple(shared), multiples, frozenset(notes.checkified), analysis.outcome.checkified_unknown
