"""The calls of a project's launchers by its other files: collected once, and again for what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.project_text import is_project_file, project_files
from pallas_lint.known_calls.index import CallerIndex, Entry, entry_of
from pallas_lint.records import define, field, frozen
from pallas_lint.text import files
from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.text.source import Source


@frozen
class Calls:
    """The calls that one file makes of launchers elsewhere, and the digests of all files that this rests on."""

    known_calls: tuple[KnownCall, ...]
    rests_on: Mapping[str, str]  # paths in the project, of the file itself too; "" for one that is not there


@define(eq=False)
class Callers:
    """The files of one project, who calls whom, and with what. Paths are those in the project."""

    folder: Path
    index: CallerIndex = field(factory=CallerIndex)
    calls: dict[str, Calls] = field(factory=dict)
    stamps: dict[str, tuple[int, int]] = field(factory=dict)  # time and size of files when they were read
    changed: bool = False  # since it was read from where it is kept
    _texts: dict[str, str] = field(factory=dict)  # digests of files in this run
    _right: set[str] = field(factory=set)  # files of which the calls were found to be right in this run

    def refresh(self, overlay: Mapping[Path, Source]) -> None:
        """See which files there are; read those that have changed. `overlay` (file -> text) goes before the disk."""
        seen = set()
        for file in project_files(self.folder):
            path = self.path_of(file)
            try:
                status = file.stat()
            except OSError:
                continue
            seen.add(path)
            stamp = status.st_mtime_ns, status.st_size
            if self.stamps.get(path) != stamp:
                self.changed = True
                self.stamps[path] = stamp
                self.index.put(path, _entry_on_disk(file))
        for path in self.stamps.keys() - seen:
            self.changed = True
            del self.stamps[path]
            self.index.put(path, None)
        for file, source in overlay.items():
            self.edited(file, source)

    def edited(self, file: Path, source: Source | None) -> None:
        """Another text stands in an open document; None: what is on disk counts."""
        if not is_project_file(self.folder, file):
            return
        path = self.path_of(file)
        self.index.put(path, _entry_on_disk(file) if source is None else entry_of(source.text))
        self.stamps[path] = (0, 0)
        self._right.discard(path)
        self.calls.pop(path, None)

    def forget(self, file: Path) -> None:
        """A file has changed on disk: what rests on it has to be found out again."""
        if is_project_file(self.folder, file):
            self.edited(file, None)
            self.invalidate(file)

    def invalidate(self, file: Path) -> None:
        """What rests on a file may be another."""
        if self.folder not in file.parents:
            return
        path = self.path_of(file)
        self._texts.clear()
        for caller in [caller for caller, calls in self.calls.items() if path in calls.rests_on]:
            self._right.discard(caller)

    def invalidate_all(self) -> None:
        """Files that are no code have changed on disk: what rests on them is no longer right."""
        self._texts.clear()
        self._right.clear()

    def path_of(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def missing(self, files: Iterable[Path]) -> list[Path]:
        """The files of which the calls have to be found out, to know who calls the launchers in `files`."""
        found = {caller: None for file in files for caller in self.index.callers(self.path_of(file))}
        return [self.folder / caller for caller in found if not self._is_known(caller)]

    def record(self, file: Path, known_calls: tuple[KnownCall, ...], rests_on: Iterable[Path]) -> None:
        """What the run of a file came to."""
        path = self.path_of(file)
        names = [path, *(self.path_of(each) for each in rests_on if self.folder in each.parents)]
        self.calls[path] = Calls(known_calls, {name: self._digest(name) for name in sorted(set(names))})
        self._right.add(path)
        self.changed = True

    def of(self, file: Path) -> tuple[KnownCall, ...]:
        """The calls of what a file defines."""
        path = self.path_of(file)
        return tuple(
            known_call
            for caller in self.index.callers(path)
            for known_call in (self.calls[caller].known_calls if caller in self.calls else ())
            if known_call.function.partition("::")[0] == path
        )

    def rests_on(self, file: Path) -> Iterator[Path]:
        """The files with calls of the functions of a file, and the files that those calls depend on."""
        for caller in self.index.callers(self.path_of(file)):
            yield self.folder / caller
            for path in self.calls[caller].rests_on if caller in self.calls else ():
                yield self.folder / path

    def leads(self, file: Path) -> bool:
        """Whether something in a file may lead to a launch."""
        return self.folder in file.parents and self.path_of(file) in self.index.leading

    def _is_known(self, path: str) -> bool:
        if path in self._right:
            return True
        known = self.calls.get(path)
        if known is None or any(self._digest(name) != before for name, before in known.rests_on.items()):
            return False
        self._right.add(path)
        return True

    def _digest(self, path: str) -> str:
        if path not in self._texts:
            try:
                self._texts[path] = digest(files.read(self.folder / path))
            except OSError:
                self._texts[path] = ""
        return self._texts[path]


def _entry_on_disk(file: Path) -> Entry | None:
    try:
        return entry_of(files.read(file).decode("utf-8", "replace"))
    except OSError:
        return None
