"""Static check of a regular expression for more than linear backtracking.

The pattern becomes an automaton of positions (one for each character class in it; Glushkov's construction), with the
number of ways from one position to the next. `re` tries every way through it before it gives up, so its time is

- exponential if a position can be reached from itself in two ways with the same text: `(?:a|a)*b`, `(?:a+)+b`;
- polynomial if two loops, one behind the other, can both read a text, which may also lead from the first to the second:
  `a*a*b`. A search tries every start in the text, which is a loop in front of the pattern: `a*b` is quadratic there.

(Weber and Seidl, "On the degree of ambiguity of finite automata".) Loops whose every pass could end the match do not
count, since the first end that `re` finds is taken. The check errs on the safe side: an assertion that needs more than
the two characters around it may hold everywhere, and every loop that need not match is assumed to fail behind.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict, deque
from functools import reduce
from itertools import permutations, product
from operator import or_
from typing import TYPE_CHECKING, Any

import attrs
from attrs import Factory, define, frozen

if sys.version_info >= (3, 11):
    from re import _compiler as sre_compile
    from re import _constants as sre
    from re import _parser as sre_parse
else:
    import sre_compile
    import sre_constants as sre
    import sre_parse

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

Conditions = tuple["re.Pattern[Any] | None", ...]  # None: one that is not evaluated
Edge = tuple[Conditions, int]
State = tuple[int, "str | None"]
START = -1  # what a search does before the pattern: read any character, or begin to match
_MAX_COPIES = 2  # of a bounded repetition; what is ambiguous in two passes is so in more
_COMMON = "aZ0_ \t\n\r!é—\0"
_ATOMS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_LOOKS = (sre.ASSERT, sre.ASSERT_NOT)


@frozen
class Growth:
    """More than linear time, and a text whose repetition takes it."""

    kind: str
    pump: str


@frozen
class _Part:
    """A part of a pattern: the positions it may begin and end with, and the conditions under which it is empty."""

    empty: tuple[Conditions, ...] = ()
    first: tuple[Edge, ...] = ()
    last: tuple[Edge, ...] = ()

    def then(self, other: _Part) -> _Part:
        """This part and then the `other`."""
        return _Part(
            _distinct(one + two for one, two in product(self.empty, other.empty)),
            _distinct([*self.first, *((one + two, at) for one, (two, at) in product(self.empty, other.first))]),
            _distinct([*other.last, *((one + two, at) for (one, at), two in product(self.last, other.empty))]),
        )

    def __or__(self, other: _Part) -> _Part:
        return _Part(
            _distinct(self.empty + other.empty), _distinct(self.first + other.first), _distinct(self.last + other.last)
        )


_EMPTY = _Part(((),))


def _distinct(items: Iterable[Any]) -> tuple[Any, ...]:
    """Each item at most twice: one way, or several."""
    return tuple(item for item, times in Counter(items).items() for _ in range(min(times, 2)))


@define
class _Automaton:
    """The positions of a pattern, what each of them reads and which may follow it."""

    pattern: str | bytes
    flags: int
    is_search: bool  # else a match at one place
    is_whole: bool  # a fullmatch
    reads: list[frozenset[str]] = Factory(list)
    edges: dict[int, Counter[Edge]] = Factory(lambda: defaultdict(Counter))
    accepting: frozenset[int] = frozenset()
    _groups: dict[int, Any] = Factory(dict)
    _alphabet: list[str] = Factory(list)
    _state: Any = None

    def __attrs_post_init__(self) -> None:
        parsed = sre_parse.parse(self.pattern, self.flags)
        self._state, flags = parsed.state, parsed.state.flags
        self._alphabet = self._representatives(parsed, flags)
        whole = self._part(parsed, flags)
        start = _Part(last=(((), START),))
        self._join(start, whole)
        if self.is_search:
            self.edges[START][(), START] += 1
        if not self.is_whole:
            self.accepting = frozenset(at for conditions, at in whole.last if not conditions)

    def _compiled(self, node: Any, flags: int) -> re.Pattern[Any]:
        pattern: re.Pattern[Any] = sre_compile.compile(sre_parse.SubPattern(self._state, [node]), flags)  # type: ignore[arg-type]
        return pattern

    def _text(self, text: str) -> Any:
        return text.encode("latin-1", "replace") if isinstance(self.pattern, bytes) else text

    def _representatives(self, parsed: Any, flags: int) -> list[str]:
        """One character of each kind that the pattern distinguishes."""
        atoms = [self._compiled(*each) for each in _atoms(parsed, flags)]
        atoms.append(re.compile(self._text(r"\w")))
        near = {chr(code + by) for code in _codes(parsed) for by in (-1, 0, 1) if 0 <= code + by < 0x110000}
        kinds = {}
        for char in [*_COMMON, *sorted(near)]:
            if isinstance(self.pattern, str) or ord(char) < 256:
                kinds.setdefault((char == "\n", *(atom.match(self._text(char)) is not None for atom in atoms)), char)
        return list(kinds.values())

    def _part(self, nodes: Any, flags: int) -> _Part:
        whole = _EMPTY
        for node in nodes:
            whole = self._chain(whole, self._one(node, flags))
        return whole

    def _one(self, node: tuple[Any, Any], flags: int) -> _Part:
        op, value = node
        if op in _ATOMS:
            matches = self._compiled(node, flags).match
            self.reads.append(frozenset(char for char in self._alphabet if matches(self._text(char))))
            only = (((), len(self.reads) - 1),)
            return _Part((), only, only)
        if op is sre.BRANCH:
            return reduce(or_, (self._part(each, flags) for each in value[1]))
        if op is sre.SUBPATTERN:
            group, added, removed, inner = value
            self._groups[group] = inner
            return self._part(inner, (flags | added) & ~removed)
        if op in _REPEATS:
            return self._repeated(*value, flags)
        if op is sre.GROUPREF:
            return self._part(self._groups[value], flags)
        if op is sre.AT or (op in _LOOKS and value[1].getwidth() == (1, 1)):
            return _Part(((self._compiled(node, flags),),))
        if op in _LOOKS:  # what looks ahead reads from here and leads nowhere; what looks back has a fixed width
            return _Part(((None,),), self._part(value[1], flags).first if value[0] > 0 else ())
        raise NotImplementedError(op)

    def _repeated(self, least: int, most: Any, inner: Any, flags: int) -> _Part:
        copies = min(least, _MAX_COPIES)
        whole = _EMPTY
        for _ in range(copies):
            whole = self._chain(whole, self._part(inner, flags))
        rest = _EMPTY
        if most is sre.MAXREPEAT:
            rest = self._part(inner, flags)
            self._join(rest, rest)
            return self._chain(whole, attrs.evolve(rest, empty=((),)))
        for _ in range(min(most - least, max(_MAX_COPIES - copies, 1))):
            rest = attrs.evolve(self._chain(self._part(inner, flags), rest), empty=((),))
        return self._chain(whole, rest)

    def _chain(self, one: _Part, other: _Part) -> _Part:
        self._join(one, other)
        return one.then(other)

    def _join(self, one: _Part, other: _Part) -> None:
        for (before, at), (after, following) in product(one.last, other.first):
            self.edges[at][before + after, following] += 1

    def following(self, at: int, char: str | None) -> dict[str, Counter[int]]:
        """The positions that may read the next character, by that character, behind `at`, which read `char`."""
        result: dict[str, Counter[int]] = defaultdict(Counter)
        for (conditions, other), ways in self.edges[at].items():
            for each in self._alphabet if other == START else self.reads[other]:
                if all(self._holds(condition, char, each) for condition in conditions):
                    result[each][other] += ways
        return result

    def _holds(self, condition: re.Pattern[Any] | None, before: str | None, after: str) -> bool:
        return condition is None or condition.match(self._text((before or "") + after), len(before or "")) is not None


def _atoms(nodes: Any, flags: int) -> Iterator[tuple[Any, int]]:
    """Each node that reads one character, with the flags that are on there."""
    for op, value in nodes:
        if op in _ATOMS:
            yield (op, value), flags
        elif op is sre.SUBPATTERN:
            yield from _atoms(value[3], (flags | value[1]) & ~value[2])
        elif op is sre.BRANCH:
            for each in value[1]:
                yield from _atoms(each, flags)
        elif op in (*_REPEATS, *_LOOKS):
            yield from _atoms(value[-1], flags)


def _codes(value: Any) -> Iterator[int]:
    """Every number in a parsed pattern; the code points are among them."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, (tuple, list, sre_parse.SubPattern)):
        for each in value:
            yield from _codes(each)


@define
class _Search:
    """Looks for texts that lead through an automaton in more and more ways. A state is a position and what it read."""

    automaton: _Automaton
    moves: dict[State, dict[str, Counter[int]]] = Factory(dict)
    behind: dict[State, set[State]] = Factory(dict)  # the states that follow each
    before: dict[State, set[State]] = Factory(lambda: defaultdict(set))

    def __attrs_post_init__(self) -> None:
        waiting: list[State] = [(START, None)]
        while waiting:
            if (state := waiting.pop()) in self.moves:
                continue
            self.moves[state] = self.automaton.following(*state)
            self.behind[state] = {(at, char) for char, ways in self.moves[state].items() for at in ways}
            for each in self.behind[state]:
                self.before[each].add(state)
            waiting.extend(self.behind[state])

    def growth(self) -> Growth | None:
        """The worst growth."""
        loops = list(self._loops())
        for loop in loops:
            one, char = next(iter(loop))
            if pump := self._pump((one, one), char, (one, one), (loop, loop)):
                return Growth("exponential", pump)
        for loop, other in permutations(loops, 2):
            between = self._between(loop, other)
            for (one, char), (two, same) in product(loop, other if between else ()):
                if char != same:
                    continue
                if pump := self._pump((one, one, two), char, (one, two, two), (loop, between, other)):
                    return Growth("quadratic" if one == START else "polynomial", pump)
        return None

    def _loops(self) -> Iterator[frozenset[State]]:
        """The sets of states that lead to one another, without those where the match could end."""
        left = {state for state in self.moves if state[0] not in self.automaton.accepting}
        while left:
            state = left.pop()
            within = left | {state}
            loop = _reached([state], self.behind, within) & _reached([state], self.before, within)
            if loop:
                yield frozenset(loop)
            left -= loop

    def _between(self, loop: frozenset[State], other: frozenset[State]) -> set[State]:
        """The states on the ways from one loop to the other. A search may begin anew where a match has ended."""
        is_search = any(at == START for at, _ in loop)
        within = {state for state in self.moves if is_search or state[0] not in self.automaton.accepting}
        return _reached(loop, self.behind, within) & (_reached(other, self.before, within) | other)

    def _pump(
        self, start: tuple[int, ...], char: str | None, goal: tuple[int, ...], within: tuple[Container[State], ...]
    ) -> str:
        """A text that leads from each of `start` to that of `goal` at the same time, on ways that part somewhere."""
        seen = {(start, char, False)}
        waiting = deque([(start, char, False, "")])
        while waiting:
            ats, last, parted, text = waiting.popleft()
            moves = [self.moves[at, last] for at in ats]
            for read in set.intersection(*map(set, moves)):
                choices = [
                    [(at, ways) for at, ways in each[read].items() if (at, read) in states]
                    for each, states in zip(moves, within, strict=True)
                ]
                for chosen in product(*choices):
                    others = tuple(at for at, _ in chosen)
                    apart = parted or len(set(others)) > 1 or any(ways > 1 for _, ways in chosen)
                    if apart and (others, read) == (goal, char):
                        return text + read
                    if (others, read, apart) not in seen:
                        seen.add((others, read, apart))
                        waiting.append((others, read, apart, text + read))
        return ""


def _reached(states: Iterable[State], following: Mapping[State, set[State]], within: set[State]) -> set[State]:
    """What can be reached from the states by one move at least."""
    reached: set[State] = set()
    waiting = list(states)
    while waiting:
        new = (following[waiting.pop()] & within) - reached
        reached |= new
        waiting.extend(new)
    return reached


def growth(pattern: str | bytes, flags: int = 0, method: str = "search") -> Growth | None:
    """How the time of `pattern` grows if it is more than linear, for a call of the method of `re`."""
    automaton = _Automaton(pattern, flags, method not in ("match", "fullmatch"), method == "fullmatch")
    return _Search(automaton).growth()
