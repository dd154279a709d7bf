"""Hints and lenses shown before a line was half written: code would jump if it went and came back at every word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pallas_lint.server.protocol.positions import moved

from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.server.workspace.client_settings import ClientSettings
    from pallas_lint.server.workspace.document_state import DocumentState

T = TypeVar("T")


@frozen
class _ShownItems(Generic[T]):
    lines: list[str]
    client: ClientSettings
    found: list[T]


@define(eq=False)
class LastShown(Generic[T]):
    """Hints or lenses by document, as they were when all of it could be read last; `line_of`: where one is, from 0."""

    line_of: Callable[[T], int]
    _last: dict[str, _ShownItems[T]] = field(factory=dict, init=False)

    def with_those_before(self, state: DocumentState, found: list[T], visible: range | None = None) -> list[T]:
        """What was found, and on lines where nothing was, since some line is half written, what stood there before.

        `visible`: the lines on which it was searched for, from 0; None for all.
        """
        lines, last = state.source.text.split("\n"), self._last.get(state.uri)
        if last is not None and last.client != state.client:
            last = None
        if not state.half_written:
            others: list[T] = []
            if visible is not None and last is not None and last.lines == lines:
                others = [each for each in last.found if self.line_of(each) not in visible]
            self._last[state.uri] = _ShownItems(lines, state.client, [*found, *others])
            return found
        if last is None:
            return found
        taken = set(map(self.line_of, found))
        before = (each for each in self._where_they_are_now(last, lines) if self.line_of(each) not in taken)
        return [*found, *(each for each in before if visible is None or self.line_of(each) in visible)]

    def forget(self, uri: str) -> None:
        self._last.pop(uri, None)

    def _where_they_are_now(self, last: _ShownItems[T], lines: list[str]) -> list[T]:
        """The items on the lines above and below all changes, moved to where they are now."""
        shorter = min(len(last.lines), len(lines))
        above = next((at for at in range(shorter) if last.lines[at] != lines[at]), shorter)
        most = shorter - above
        below = next((at for at in range(most) if last.lines[-1 - at] != lines[-1 - at]), most)
        down, end = len(lines) - len(last.lines), len(last.lines) - below
        return [
            moved(each, down) if down and self.line_of(each) >= end else each
            for each in last.found
            if self.line_of(each) < above or self.line_of(each) >= end
        ]
