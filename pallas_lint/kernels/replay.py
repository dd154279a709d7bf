"""Analysing an edited text: what the edit cannot reach is taken from the analysis before.

An analysis is a sequence of runs, one from each root. What a run does follows from the pieces that its root can reach
by the names in them, from a few facts about the file as a whole, and from what the runs before it did to the same
pieces. Where all of that is as it was, the run is not repeated: what it did then is done again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import define, field

from pallas_lint.kernels.notes import Notes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from pathlib import Path

    from pallas_lint.kernels.interpreter import Interpreter
    from pallas_lint.kernels.launch import Launch
    from pallas_lint.kernels.modules import Module
    from pallas_lint.source import Source
    from pallas_lint.syntax import Outline, Piece

# Whether these stand anywhere in the text is asked by rules on launches.
_ASKED_FOR = ("checkify", "runtime_assert", "debug_checks")
# Code that may reach names which do not stand in it.
_BY_TEXT = re.compile(
    r"\b(?:globals|locals|vars|eval|exec|__import__)\s*\(|__dict__|\b[gs]etattr\((?!\s*[\w.]+\s*,\s*[\"'])"
)
_ELSEWHERE = 0  # stands for the pieces of all other modules
_DUNDER = re.compile(r"__\w+__$")
_SETS = ("outer", "frames")


class _Marks(NamedTuple):
    """How much an interpreter had noted when a run began."""

    launches: int
    inner: int
    sets: tuple[frozenset[int], ...]
    entered: dict[int, Piece]
    contexts: dict[tuple[int, int], tuple[int, Piece, Piece]]
    spent: int


class Abandoned(Exception):
    """Nobody wants to know any more: there is a newer text."""


@define(eq=False)
class Run:
    """What one run found, and all it depended on."""

    reached: tuple[Piece, ...]
    state: Hashable
    result: Any = None
    launches: list[Launch] = field(factory=list)
    inner: list[Any] = field(factory=list)
    notes: Notes = field(factory=Notes)
    sets: tuple[frozenset[int], ...] = ()
    entered: dict[int, Piece] = field(factory=dict)
    contexts: dict[tuple[int, int], tuple[int, Piece, Piece]] = field(factory=dict)
    spent: int = 0


@define(eq=False)
class Replay:
    """The runs of the last analysis of a file. `again` counts the runs that were not repeated."""

    facts: Hashable = None
    others: dict[Path, Source | None] = field(factory=dict)  # other files it rests on, as they were
    runs: dict[tuple[Piece, str], Run] = field(factory=dict)
    again: int = 0
    is_stale: Callable[[], bool] = lambda: False  # whether the text at hand is an old one already
    _earlier: dict[tuple[Piece, str], Run] = field(factory=dict)
    # What the runs so far entered and traced, by the id of the piece.
    _entered: dict[int, set[int]] = field(factory=dict)
    _contexts: dict[int, dict[tuple[int, int], tuple[int, Piece, Piece]]] = field(factory=dict)
    _reach: _Reach | None = None

    def begin(self, i: Interpreter, module: Module) -> None:
        """Find out what of the last analysis still holds."""
        facts = _facts(i, module)
        earlier, self.runs, self._earlier, self.again = self.runs, {}, {}, 0
        self._entered, self._contexts = {}, {}
        self._reach = _Reach(module.outline)
        if facts == self.facts and self._others_are_same(module):
            self._earlier = earlier
        self.facts = facts

    def _others_are_same(self, module: Module) -> bool:
        graph = module.graph
        for file, source in self.others.items():
            now = graph.load(file)
            if (None if now is None else now.source.text) != (None if source is None else source.text):
                return False
        return True

    def end(self, i: Interpreter, module: Module) -> None:
        """Keep the runs for next time, unless one of them may have seen what another did."""
        if i.entangled or i.is_spent or i.foreign_calls or i.checkified_unknown or module.is_changed:
            self.runs = {}
        if module.graph.imports_back:
            self.runs = {}
        self._earlier = {}
        self.others = {
            file: None if other is None else other.source for file, other in module.graph.loaded if file != module.file
        }

    def abandon(self, i: Interpreter) -> None:
        """The analysis stops in the middle: what was kept may still do for the next text."""
        self.runs = {} if i.entangled or i.foreign_calls else {**self._earlier, **self.runs}

    def run(self, i: Interpreter, piece: Piece, phase: str, run: Callable[[], Any]) -> Any:
        """Run from a root, or do again what that did last time; the result of `run`."""
        if self._reach is None:
            return run()
        if self.is_stale():
            raise Abandoned
        reached = self._reach.of(piece)
        state = self._state(i, piece, phase, reached)
        known = self._earlier.get((piece, phase))
        if known is not None and known.reached == reached and known.state == state:
            _repeat(i, known)
            self.again += 1
        else:
            marks = _marks(i)
            before, i.notes = i.notes, Notes()
            result = run()
            known = _since(i, marks, Run(reached, state, result, notes=i.notes))
            i.notes = before
            i.notes.add(known.notes)
        self.runs[piece, phase] = known
        self._note(known)
        return known.result

    def _note(self, run: Run) -> None:
        """Sort what a run did by piece; what it did to other modules may concern any other run."""
        assert self._reach is not None
        for node, piece in run.entered.items():
            self._entered.setdefault(self._reach.key(piece), set()).add(node)
        for key, seen in run.contexts.items():
            _, site, body = seen
            place = self._reach.key(site) if self._reach.key(body) != _ELSEWHERE else _ELSEWHERE
            self._contexts.setdefault(place, {})[key] = seen

    def reached_from(self, piece: Piece) -> tuple[Piece, ...]:
        """The pieces that one can reach, itself included, in the file's order."""
        assert self._reach is not None
        return self._reach.of(piece)

    def forget(self, piece: Piece, node: int) -> None:
        """A function is to run again."""
        if self._reach is not None:
            self._entered.get(id(piece), set()).discard(node)

    def _state(self, i: Interpreter, piece: Piece, phase: str, reached: tuple[Piece, ...]) -> Hashable:
        """What earlier runs did to the pieces at hand."""
        at_hand = {id(each) for each in reached}
        entered = frozenset(node for each in (_ELSEWHERE, *at_hand) for node in self._entered.get(each, ()))
        contexts = frozenset(
            (key, count)
            for each in (_ELSEWHERE, *at_hand)
            for key, (count, site, body) in self._contexts.get(each, {}).items()
            if id(body) in at_hand or each is _ELSEWHERE
        )
        if phase == "root":
            return entered, contexts
        launches = tuple(id(launch) for launch in i.launches if id(launch.site.piece) in at_hand)
        return entered, contexts, launches, id(self.runs.get((piece, "root")))


def _facts(i: Interpreter, module: Module) -> Hashable:
    """What any run, and the rules on what it launches, may depend on besides the pieces it reaches."""
    text = module.source.text
    asked_for = tuple(word in text for word in _ASKED_FOR)
    newline = "\r\n" in text
    imports = [piece for piece in module.outline.pieces if piece.kind == "import"]
    # Where a fix adds an import.
    leading = [piece.first <= imports[0].first + 60 for piece in imports] if imports else module.outline.pieces[:1]
    frame = (*imports, *(piece for piece, _ in module.outline.imports), *leading)
    inner = tuple(module.inner_imports.items())
    assumptions = tuple(sorted(i.assumptions.items()))
    return frame, inner, asked_for, newline, module.x64, i.versions, assumptions, module.source.path


def _marks(i: Interpreter) -> _Marks:
    return _Marks(
        len(i.launches),
        len(i.inner),
        tuple(frozenset(getattr(i, name)) for name in _SETS),
        dict(i.entered),
        dict(i.contexts),
        i.spent + i.steps,
    )


def _since(i: Interpreter, marks: _Marks, run: Run) -> Run:
    run.launches = i.launches[marks.launches :]
    run.inner = i.inner[marks.inner :]
    run.sets = tuple(frozenset(getattr(i, name) - old) for name, old in zip(_SETS, marks.sets, strict=True))
    run.entered = {node: piece for node, piece in i.entered.items() if node not in marks.entered}
    run.contexts = {key: seen for key, seen in i.contexts.items() if marks.contexts.get(key) != seen}
    run.spent = i.spent + i.steps - marks.spent
    return run


def _repeat(i: Interpreter, run: Run) -> None:
    i.launches += run.launches
    i.inner += run.inner
    i.notes.add(run.notes)
    for name, new in zip(_SETS, run.sets, strict=True):
        getattr(i, name).update(new)
    i.entered.update(run.entered)
    i.contexts.update(run.contexts)
    i.spent += run.spent


class _Reach:
    """Which pieces a piece can reach by the words in it: more than what it really looks up."""

    def __init__(self, outline: Outline) -> None:
        self._order = {id(piece): at for at, piece in enumerate(outline.walk())}
        self._pieces = list(outline.walk())
        self._owner = {id(member): piece for piece in outline.pieces for member in piece.members}
        self._binders: dict[str, list[Piece]] = {}
        for piece in self._pieces:
            if piece.kind == "block" and piece.suspect and piece.problem is not None:
                continue  # it binds nothing
            for name in piece.words if piece.kind == "block" else piece.names:
                self._binders.setdefault(name, []).append(piece)
        self._known: dict[int, tuple[Piece, ...]] = {}
        self._reached: dict[int, tuple[Piece, ...]] = {}

    def key(self, piece: Piece) -> int:
        """By which a piece is known here."""
        return id(piece) if id(piece) in self._order else _ELSEWHERE

    def of(self, root: Piece) -> tuple[Piece, ...]:
        """In the file's order, the piece itself included."""
        known = self._reached.get(id(root))
        if known is None:
            known = self._reached[id(root)] = self._closure(root)
        return known

    def _closure(self, root: Piece) -> tuple[Piece, ...]:
        found = {id(root)}
        stack = [root]
        while stack:
            for piece in self._next(stack.pop()):
                if id(piece) not in found:
                    found.add(id(piece))
                    stack.append(piece)
        return tuple(self._pieces[at] for at in sorted(self._order[key] for key in found))

    def _next(self, piece: Piece) -> Iterable[Piece]:
        known = self._known.get(id(piece))
        if known is None:
            known = self._known[id(piece)] = tuple(self._found(piece))
        return known

    def _found(self, piece: Piece) -> Iterable[Piece]:
        if piece.has(_BY_TEXT):
            yield from self._pieces
            return
        # What is called without being named; class bodies run whole.
        yield from (member for member in piece.members if member.kind != "def" or _DUNDER.match(member.names[0]))
        owner = self._owner.get(id(piece))
        if owner is not None:
            yield owner
        words = piece.header_words if piece.members else piece.words
        for word in self._binders.keys() & words:
            yield from self._binders[word]
