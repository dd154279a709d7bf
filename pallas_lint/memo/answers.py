"""What was found out about a file, text after text, each with all that was read for it.

An answer holds for another text if all that was read for it is there as it was, wherever it stands: then nobody looks
for it again. What was read is noted as questions ("what binds this name?") with the answers that they had, so that one
can ask again. The last few texts count: what is broken and mended, or typed and taken back, is known.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

_T = TypeVar("_T")
Question = tuple["Hashable", ...]  # its kind, and what about
_TEXTS = 12  # so many texts ago an answer was good for something, or it is dropped
_GROUNDS = 4


@define(eq=False)
class Answer(Generic[_T]):
    """What was found out, and what it rests on."""

    value: _T
    ground: object  # what everything rests on
    read: dict[Question, object]
    used: int  # the last text that it was right for

    def __repr__(self) -> str:
        return f"Answer({self.value!r})"


@define(eq=False)
class Memo:
    """The answers about one file. Where it does not keep (`keeps`), they are those about the text at hand."""

    keeps: bool = False
    grounds: list[Any] = field(factory=list)  # of the last texts
    _text: int = 0
    _known: dict[Hashable, list[Answer[Any]]] = field(factory=dict, init=False)
    _interned: dict[Hashable, Any] = field(factory=dict, init=False)
    _tellers: dict[Hashable, Callable[..., object]] = field(factory=dict)
    _asking: list[set[Question]] = field(factory=list)  # what was read so far for the answers that are looked for
    _under: dict[Question, list[set[Question]]] = field(factory=dict)

    def begin(self, ground: object) -> None:
        """Another text. Nothing holds for it that rests on another `ground`; it is known by which one it is."""
        self._text += 1
        self.grounds = [*(each for each in self.grounds[1 - _GROUNDS :] if each is not ground), ground]
        self._under.clear()
        if not self.keeps:
            self._known.clear()
        oldest = self._text - _TEXTS
        for about, answers in list(self._known.items()):
            answers[:] = [answer for answer in answers if answer.used >= oldest]
            if not answers:
                del self._known[about]

    def teach(self, kind: Hashable, teller: Callable[..., object]) -> None:
        """How questions of a kind are answered in the text at hand."""
        self._tellers[kind] = teller

    def interned(self, kind: Hashable, value: _T) -> _T:
        """The value of the text before where it is equal: comparing it with what is kept is then quick."""
        before = self._interned.get(kind)
        if before != value:
            self._interned[kind] = before = value
        return before

    def forget(self) -> None:
        """Nothing is known any more."""
        self._known.clear()

    def read(self, *question: Hashable) -> None:
        """Who looks for an answer at the moment has asked this."""
        if self._asking:
            self._asking[-1].add(question)

    @contextmanager
    def asking(self) -> Iterator[set[Question]]:
        """All that is read within; who looks for an answer around it has read that, too."""
        read: set[Question] = set()
        if not self.keeps:
            yield read
            return
        self._asking.append(read)
        try:
            yield read
        finally:
            self._asking.pop()
            self.hear(read)

    @contextmanager
    def under(self, questions: Iterable[Question]) -> Iterator[None]:
        """What is read within is read by all who ask one of these, in this text: it was found out for the first."""
        with self.asking() as read:
            if self.keeps:
                for question in questions:
                    self._under.setdefault(question, []).append(read)
            yield

    def answer(self, about: Hashable, find_out: Callable[[], _T]) -> Answer[_T]:
        """What is known about something, or is found out now."""
        known: Answer[_T] | None = self.known(about)
        if known is None:
            with self.asking() as read:
                value = find_out()
            return self.keep(about, value, read)
        self.hear(known.read)
        return known

    def known(self, about: Hashable) -> Answer[Any] | None:
        """What is known about something and right for the text at hand."""
        answers: list[Answer[Any]] = self._known.get(about, [])
        for answer in answers[::-1]:
            if answer.used == self._text:
                return answer
            if answer.ground is self.grounds[-1] and self._is_as_it_was(answer.read):
                answer.used = self._text
                return answer
        return None

    def _is_as_it_was(self, read: dict[Question, object]) -> bool:
        tellers = self._tellers  # of every answer after every edit
        return all(tellers[question[0]](*question[1:]) == told for question, told in read.items())

    def keep(self, about: Hashable, value: _T, read: Iterable[Question]) -> Answer[_T]:
        """Remember what was found out."""
        answer = Answer(value, self.grounds[-1], {each: self._tell(each) for each in self._all(read)}, self._text)
        self._known.setdefault(about, []).append(answer)
        return answer

    def drop(self, about: Hashable, answer: Answer[Any]) -> None:
        """An answer is good for nothing any more."""
        self._known[about].remove(answer)

    def hear(self, read: Iterable[Question]) -> None:
        """Who looks for an answer at the moment has been told something for which all this was read."""
        if self._asking:
            self._asking[-1].update(read)

    def add(self, answer: Answer[Any], read: Iterable[Question]) -> None:
        """More was read for an answer: what it holds was looked into later."""
        for each in self._all(read):
            if each not in answer.read:
                answer.read[each] = self._tell(each)

    def _all(self, read: Iterable[Question]) -> set[Question]:
        """What was read, and what was read for that when it was first asked in this text."""
        found = set(read)
        stack = list(found)
        while stack:
            for below in self._under.get(stack.pop(), ()):
                stack.extend(below - found)
                found |= below
        return found

    def _tell(self, question: Question) -> object:
        return self._tellers[question[0]](*question[1:])
