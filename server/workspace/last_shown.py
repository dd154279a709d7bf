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

    def with_those_before(self, state: DocumentState, found: list[T]) -> list[T]:
        """What was found, and on lines where nothing was, since some line is half written, what stood there before."""
        lines = state.source.text.split("\n")
        if not state.half_written:
            self._last[state.uri] = _ShownItems(lines, state.client, found)
            return found
        last = self._last.get(state.uri)
        if last is None or last.client != state.client:
            return found
        taken = set(map(self.line_of, found))
        before = self._where_they_are_now(last, lines)
        return [*found, *(each for each in before if self.line_of(each) not in taken)]

    def forget(self, uri: str) -> None:
        self._last.pop(uri, None)

    def _where_they_are_now(self, last: _ShownItems[T], lines: list[str]) -> list[T]:
        """Those on the lines above and below all that has changed since."""
        shorter = min(len(last.lines), len(lines))
        above = next((at for at in range(shorter) if last.lines[at] != lines[at]), shorter)
        most = shorter - above
        below = next((at for at in range(most) if last.lines[-1 - at] != lines[-1 - at]), most)
        down, end = len(lines) - len(last.lines), len(last.lines) - below
        return [
            moved(each, down) if self.line_of(each) >= end else each
            for each in last.found
            if self.line_of(each) < above or self.line_of(each) >= end
        ]
