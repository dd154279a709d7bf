"""Statements that a run of the probe depends on, by their text: of its own file and of others that it reaches.

Which those are is read from the words of the code, not from what it does: more than enough, and the same for every
way to import something.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pallas_lint.records import frozen
from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Set
    from pathlib import Path

    from pallas_lint.syntax.outline import Outline
    from pallas_lint.syntax.piece import Piece
    from pallas_lint.text.source import Source

_FROM_PACKAGE = re.compile(r"\bfrom\s+\.+\s*import\b")


@frozen
class Statement:
    """A statement at the top of a file, by the digest of its text; it went from line `first` to line `last`.

    `file`: the path of another file than the run's own.
    """

    digest: str
    first: int
    last: int
    file: str = ""


def statements(
    own: Source,
    name: str,
    lines: Iterable[tuple[str, int]],
    loaded: Iterable[Path],
    text_of: Callable[[Path], Source | None],
) -> list[Statement]:
    """The statements on these lines of files or binding `name`, and those that bind names in them.

    `own` is the run's file, named "" in `lines`; `loaded` are the other files of the user's that were imported.
    """
    reach = _Reach(own, {str(file): file for file in loaded}, text_of)
    reach.mentions("", {name})
    for path, line in lines:
        reach.stands_on(path, line)
    return list(reach.statements())


def places(outline: Outline) -> dict[str, int]:
    """The line that each statement of a text begins on, by the digest of its text; of those alike the first."""
    found: dict[str, int] = {}
    for piece in outline.pieces:
        found.setdefault(_digest(piece.text), piece.first)
    return found


def _digest(text: str) -> str:
    return digest(text.rstrip().replace("\r\n", "\n").encode("utf-8", "surrogatepass"))


class _File:
    """A file, and how much of it was reached."""

    def __init__(self, source: Source) -> None:
        from pallas_lint.syntax.outline import outline

        self.pieces = outline(source).pieces
        self.binders: dict[str, list[Piece]] = defaultdict(list)
        for piece in self.pieces:
            # What an `if` or a `try` binds is not known without parsing it: any of its words may be.
            for bound in piece.words if piece.kind == "block" else piece.names:
                self.binders[bound].append(piece)
        self.reached: dict[int, Piece] = {}
        self.words: set[str] = set()  # of the statements that were reached
        self.named: set[str] = set()  # the paths of files in them


class _Reach:
    """Goes from statement to statement and from file to file; the run's own has the path ""."""

    def __init__(self, own: Source, loaded: dict[str, Path], text_of: Callable[[Path], Source | None]) -> None:
        self.loaded = loaded
        self.text_of = text_of
        self.modules: dict[str, list[str]] = defaultdict(list)  # paths by the last part of the module's name
        self.packages: list[str] = []
        for path, file in loaded.items():
            self.modules[file.parent.name if file.stem == "__init__" else file.stem].append(path)
            if file.stem == "__init__":
                self.packages.append(path)
        self.waiting: list[tuple[str, Piece]] = []
        self.files: dict[str, _File | None] = {}  # None: it cannot be read
        self.take("", own)

    def take(self, path: str, source: Source | None) -> None:
        file = self.files[path] = _File(source) if source is not None else None
        # What a star brings along has no name here.
        stars = (piece for piece in file.pieces if piece.kind == "import" and not piece.names) if file else ()
        self.waiting += [(path, piece) for piece in stars]

    def file(self, path: str) -> _File | None:
        if path not in self.files:
            self.take(path, self.text_of(self.loaded[path]) if path in self.loaded else None)
        return self.files[path]

    def stands_on(self, path: str, line: int) -> None:
        file = self.file(path)
        self.waiting += [(path, piece) for piece in (file.pieces if file else ()) if piece.first <= line <= piece.last]

    def mentions(self, path: str, words: Set[str]) -> None:
        """Whatever binds one of these words in a file is reached."""
        file = self.file(path)
        self.waiting += [(path, piece) for word in words for piece in (file.binders.get(word, ()) if file else ())]

    def statements(self) -> Iterator[Statement]:
        while self.waiting:
            path, piece = self.waiting.pop()
            file = self.files[path]
            if file is not None and piece.first not in file.reached:
                file.reached[piece.first] = piece
                self.follow(path, file, piece)
        for path, reached in sorted((path, file.reached) for path, file in self.files.items() if file is not None):
            for _, piece in sorted(reached.items()):
                yield Statement(_digest(piece.text), piece.first, piece.last, path)

    def follow(self, path: str, file: _File, piece: Piece) -> None:
        new = piece.words - file.words
        file.words |= new
        for each in (path, *file.named):
            self.mentions(each, new)
        modules = [each for word in new for each in self.modules.get(word, ())]
        if _FROM_PACKAGE.search(piece.text):
            modules += self.packages
        for each in set(modules) - file.named - {path}:
            file.named.add(each)
            self.mentions(each, file.words)
