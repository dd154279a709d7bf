"""What was found in a file, to be said again after an edit that cannot change it.

What rules say of a launch follows from the launch with its traces, from the launches that share code with it, and from
facts on which the launch itself is only kept by the analysis (`kernels/replay.py`). What they say of the uses of jax
names in a piece follows from the piece, from imports, and from what asks about jax versions.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from attrs import define, field

from pallas_lint.finding import Position, Span
from pallas_lint.kernels.values import Sym

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pallas_lint.finding import Finding
    from pallas_lint.kernels.analysis import Analysis
    from pallas_lint.kernels.launch import Launch
    from pallas_lint.kernels.modules import Module
    from pallas_lint.kernels.values import Made
    from pallas_lint.settings import Settings
    from pallas_lint.source import Source
    from pallas_lint.syntax import Outline, Piece
    from pallas_lint.syntax.uses import Use


@define(eq=False)
class _Said:
    """Findings, and for each the pieces that its lines belong to: line -> (piece, lines below its first)."""

    condition: Hashable
    about: tuple[object, ...]  # kept alive, so that no other object gets the id of one of them
    findings: list[tuple[Finding, dict[int, tuple[Piece, int]]]]


@define(eq=False)
class Recall:
    """What was said of one file the last time."""

    settings: Settings | None = None
    _said: dict[int, _Said] = field(factory=dict)
    _before: dict[int, _Said] = field(factory=dict)
    _is_complete: bool = True  # False: the last text was abandoned in the middle
    _source: Source | None = None
    _lines: _Lines | None = None
    _neighbours: dict[int, tuple[Launch, ...]] = field(factory=dict)
    _asked: Hashable = None
    _frame: Hashable = None  # what a use of a name may depend on wherever it stands
    _analysis: Analysis | None = None
    _module: Module | None = None
    _uses: dict[int, tuple[list[Use], set[str]]] = field(factory=dict)  # by piece, of this text
    # By piece: the names that are assigned in it, and what its uses begin with and stand for.
    _stored: dict[int, tuple[frozenset[str], frozenset[tuple[str, str]]]] = field(factory=dict)
    _all_stored: frozenset[str] = frozenset()
    _specs: dict[int, list[Made]] = field(factory=dict)  # those made in each piece

    def begin(self, source: Source, outline: Outline, analysis: Analysis, settings: Settings) -> None:
        """The file is judged again."""
        known = self._said if self._is_complete else {**self._before, **self._said}
        self._before, self._said, self._is_complete = (known if settings is self.settings else {}), {}, False
        self.settings, self._source = settings, source
        self._lines = _Lines(outline, source.path)
        self._neighbours = _neighbours(analysis.launches)
        self._asked = _asked_by_all(analysis)
        self._analysis, self._specs = analysis, {}
        for made in analysis.interpreter.specs_made:
            self._specs.setdefault(id(made.site.piece), []).append(made)
        replay = analysis.replay
        assert replay is not None
        asking = tuple(replay.reached_from(each) for each in analysis.guards.asking_pieces)
        self._frame = replay.facts, asking, tuple(analysis.module.uses.bound.items())

    def end(self) -> None:
        """All has been said."""
        self._before, self._is_complete = {}, True

    def of_launch(self, launch: Launch) -> list[Finding] | None:
        """What is to be said of a launch; None where that has to be found out."""
        known = self._before.get(id(launch))
        if known is None or known.condition != self._condition(launch):
            return None
        found = self._moved(known)
        if found is not None:
            self._said[id(launch)] = known
        return found

    def stored_names(self, module: Module) -> frozenset[str]:
        """The names of jax that something in the file assigns: nothing is said of their uses anywhere."""
        stored: dict[int, tuple[frozenset[str], frozenset[tuple[str, str]]]] = {}
        self._uses = {}
        for piece in module.outline.walk():
            names = self._stored.get(id(piece)) if piece.in_tree and id(piece) in self._before else None
            if names is None:
                uses, assigned = self._read_uses(piece, module)
                names = frozenset(assigned), frozenset((use.alias, use.name) for use in uses if not use.imported)
            stored[id(piece)] = names
        self._module, self._stored = module, stored
        self._all_stored = frozenset().union(*(names for names, _ in stored.values()))
        spellings: frozenset[tuple[str, str]] = frozenset().union(*(spelled for _, spelled in stored.values()))
        module.uses.stored = self._all_stored
        module.uses.spellings = frozenset(each for each in spellings if each[1] not in self._all_stored)
        return self._all_stored

    def _read_uses(self, piece: Piece, module: Module) -> tuple[list[Use], set[str]]:
        known = self._uses.get(id(piece))
        if known is None:
            last = piece.members[0].first - 1 if piece.members else piece.last
            known = self._uses[id(piece)] = module.uses.within(piece.first, last)
        return known

    def uses_in(self, piece: Piece) -> list[Use]:
        """The uses in a piece; for a class of which the members are pieces, in its header."""
        assert self._module is not None
        return self._read_uses(piece, self._module)[0]

    def of_piece(self, piece: Piece) -> list[Finding] | None:
        """What is to be said of the uses in a piece; None where that has to be found out."""
        known = self._before.get(id(piece))
        if known is None or not piece.in_tree or known.condition != self._uses_condition(piece):
            return None
        found = self._moved(known)
        if found is not None:
            self._said[id(piece)] = known
        return found

    def keep_piece(self, piece: Piece, findings: list[Finding]) -> None:
        """Remember what was found out of the uses in a piece."""
        if not piece.in_tree:
            return  # what stands in a broken tree depends on what is broken
        self._keep(piece, self._uses_condition(piece), (*self._specs.get(id(piece), ()), piece), findings)

    def keep(self, launch: Launch, findings: list[Finding]) -> None:
        """Remember what was found out of a launch."""
        about = (launch, *self._neighbours.get(id(launch), ()))
        self._keep(launch, self._condition(launch), about, findings)

    def _keep(self, what: object, condition: Hashable, about: tuple[object, ...], findings: list[Finding]) -> None:
        assert self._lines is not None
        placed = [(finding, self._lines.of(finding)) for finding in findings]
        if all(lines is not None for _, lines in placed):
            kept = [(finding, lines) for finding, lines in placed if lines is not None]
            self._said[id(what)] = _Said(condition, about, kept)

    def _uses_condition(self, piece: Piece) -> Hashable:
        """Specs tell what a use of BlockSpec was given."""
        assert self._analysis is not None and self._analysis.replay is not None
        made = tuple(map(id, self._specs.get(id(piece), ())))
        return self._analysis.replay.reached_from(piece), made, self._frame, self._all_stored

    def _condition(self, launch: Launch) -> Hashable:
        return tuple(map(id, self._neighbours.get(id(launch), ()))), self._asked, self._all_stored

    def _moved(self, said: _Said) -> list[Finding] | None:
        """The findings where their code now stands; None where some of it is gone."""
        found = []
        for finding, lines in said.findings:
            if any(piece.source is not self._source for piece, _ in lines.values()):
                return None
            now = {line: piece.first + below for line, (piece, below) in lines.items()}
            found.append(finding if all(a == b for a, b in now.items()) else _at_lines(finding, now, self._path))
        return found

    @property
    def _path(self) -> str:
        assert self._source is not None
        return self._source.path


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


def _neighbours(launches: list[Launch]) -> dict[int, tuple[Launch, ...]]:
    """For each launch, by its id, those that share a place, a kernel or a trace with it, in order."""
    sharing: dict[int, list[Launch]] = {}
    keys: dict[int, set[int]] = {}
    for launch in launches:
        shared = {launch.site.key, *(id(body.node) for body in launch.bodies)}
        for trace in launch.traces:
            shared |= {id(trace), trace.site.key, id(trace.launch)}
        shared.add(id(launch))
        keys[id(launch)] = shared
        for key in shared:
            sharing.setdefault(key, []).append(launch)
    order = {id(launch): at for at, launch in enumerate(launches)}
    return {
        each: tuple(sorted({other for key in shared for other in sharing[key]}, key=lambda other: order[id(other)]))
        for each, shared in keys.items()
    }


def _asked_by_all(analysis: Analysis) -> Hashable:
    """What any launch may be asked about that others say: sizes that are none of a single run's."""
    interpreter = analysis.interpreter
    owned = interpreter.frames
    shared = (
        frozenset(size.text for size in sizes if isinstance(size, Sym) and size.owner not in owned)
        for sizes in (interpreter.remainders, interpreter.divisors)
    )
    return tuple(shared), frozenset(interpreter.checkified)
