"""The cache folder: where results of earlier runs are kept, and how it is known to be ours.

A repository can hold any files, and its links lead anywhere. So nothing is kept where its settings point, and of a
folder that already has files only one is used, and ever removed from, of which we can prove that we made it: its tag
file is signed with a key of the user's. Entries are signed, too, which also finds those that are damaged.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from pathlib import Path

from pallas_lint.config.bounds import bounds
from pallas_lint.records import define, field
from pallas_lint.text import files
from pallas_lint.text.digests import signature
from pallas_lint.text.folders import OpenFolder

VARIABLE = "PALLAS_LINT_CACHE_DIR"
_NAME = "pallas-lint"
_RESULTS = "results"
_DAY = 86_400.0
_MAX_AGE = 90 * _DAY  # of an entry, since it was written
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Results of earlier runs of pallas-lint, format 1. This folder may be removed at any time.\n"
    "# About this file: https://bford.info/cachedir/\n"
    "# {signature}\n"
)
_KEY = "key"
_KEY_SIZE = 32  # bytes
_BYTE_CODE = "byte-code"  # of packages that probed code imports, in a tree as Python makes it
_LAST_REMOVAL = "last-removal"
_KINDS = frozenset({"lint", "calls", "probe", "events"})  # of entries: a folder each
_PREFIXES = frozenset(f"{number:02x}" for number in range(256))  # entries lie in folders by their first two digits
_ENTRY = re.compile(r"[0-9a-f]{30}")


class ForeignFolder(OSError):
    """A folder that is not used as a cache; `strerror` is the reason, a clause."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(None, f"cannot keep results in {path}: {reason}")


@define
class CacheFolder:
    """Entries by kind and name: of 32 hexadecimal digits, a digest of what they are results for.

    The folder is made with its first entry, and so is the user's key. Entries that cannot be read or written are as
    good as none.
    """

    path: Path
    own: Path  # the user's folder with the key
    _key: bytes = field(default=b"", init=False)
    _open: dict[str, OpenFolder] = field(factory=dict, init=False)

    def __reduce__(self) -> tuple[type[CacheFolder], tuple[Path, Path]]:
        return CacheFolder, (self.path, self.own)  # handles belong to a process

    def read(self, kind: str, name: str) -> bytes | None:
        """The content of an entry."""
        try:
            with self._kind(kind).subfolder(name[:2]) as folder:
                data = files.read_in(folder, name[2:])
        except OSError:
            return None
        signed, _, content = data.partition(b"\n")
        return content if signed == self._sign(kind, name, content) else None

    def write(self, kind: str, name: str, content: bytes) -> None:
        """Keep the content of an entry."""
        with contextlib.suppress(OSError):
            folder = self._kind(kind, create=True).subfolder(name[:2], create=True)
            files.write_in(folder, name[2:], self._sign(kind, name, content) + b"\n" + content)

    def clear(self) -> int:
        """Remove all entries and what killed runs left; how many files. Raises OSError."""
        try:
            root = self._root()
        except FileNotFoundError:
            return self._remove_byte_code(None)
        return _remove(root, older_than=None) + self._remove_byte_code(None)

    def remove_old(self) -> None:
        """Once a day: remove the entries that were written long ago, of files that are gone or never change."""
        now = time.time()
        with contextlib.suppress(OSError):
            root = self._root()
            last = root.status(_LAST_REMOVAL)
            if last is None or last.st_mtime < now - _DAY:
                files.write_in(OpenFolder.open(self.path), _LAST_REMOVAL, b"")
                _remove(root, older_than=now - _MAX_AGE)
                self._remove_byte_code(now - _MAX_AGE)

    def _remove_byte_code(self, older_than: float | None) -> int:
        """Remove the byte code, which lies beside the key; returns how many files. Raises OSError."""
        try:
            with OpenFolder.open(self.own / _BYTE_CODE) as folder:
                return _remove_compiled(folder, older_than)
        except FileNotFoundError:
            return 0

    def check(self) -> CacheFolder:
        """This folder, if it is ours, empty or still to be made. Raises ForeignFolder for any other."""
        with contextlib.suppress(FileNotFoundError):
            self._root()
        return self

    def _root(self, *, create: bool = False) -> OpenFolder:
        """The folder itself, once it is known to be ours. Raises FileNotFoundError, and ForeignFolder for another."""
        known = self._open.get("")
        if known is not None:
            return known
        self._key = self._key or _user_key(self.own, create=create)
        if create:
            _make(self.path)
        try:
            folder = OpenFolder.open(self.path)
        except FileNotFoundError:
            raise
        except OSError as error:
            reason = "it is a link" if self.path.is_symlink() else error.strerror or str(error)
            raise ForeignFolder(self.path, reason) from error
        if not self._has_tag(folder):
            if any(not files.is_temporary(entry.name) for entry in folder.entries()):
                raise ForeignFolder(self.path, "it has files, and was not made by pallas-lint for this user")
            if not create:
                raise FileNotFoundError
            files.write_in(OpenFolder.open(self.path), _TAG, self._tag())
        self._open[""] = folder
        return folder

    def _kind(self, kind: str, *, create: bool = False) -> OpenFolder:
        known = self._open.get(kind)
        if known is None:
            known = self._open[kind] = self._root(create=create).subfolder(kind, create=create)
        return known

    def _has_tag(self, folder: OpenFolder) -> bool:
        try:
            return bool(self._key) and files.read_in(folder, _TAG) == self._tag()
        except OSError:
            return False

    def _tag(self) -> bytes:
        return _TAG_TEXT.format(signature=signature(_TAG_TEXT.encode(), self._key)).encode()

    def _sign(self, kind: str, name: str, content: bytes) -> bytes:
        return signature(f"{kind}/{name}\n".encode() + content, self._key).encode()


def _remove(root: OpenFolder, older_than: float | None) -> int:
    """Remove entries, all or those that are older than a time; how many files. Raises OSError."""
    removed = 0
    for kind in _inner(root, _KINDS):
        with root.subfolder(kind) as folder:
            for prefix in _inner(folder, _PREFIXES):
                with folder.subfolder(prefix) as inner:
                    for name in _removable(inner, older_than):
                        inner.remove(name)
                        removed += 1
    return removed


def _remove_compiled(folder: OpenFolder, older_than: float | None) -> int:
    """Remove byte code in and below a folder, all or what is older than a time; how many files. Raises OSError."""
    removed = 0
    for entry in list(folder.entries()):
        if entry.is_dir(follow_symlinks=False):
            with folder.subfolder(entry.name) as inner:
                removed += _remove_compiled(inner, older_than)
        elif ".pyc" in entry.name and (older_than is None or entry.stat(follow_symlinks=False).st_mtime < older_than):
            folder.remove(entry.name)
            removed += 1
    return removed


def _inner(folder: OpenFolder, names: frozenset[str]) -> list[str]:
    """The folders in a folder, no links, that have one of these names."""
    return [entry.name for entry in folder.entries() if entry.name in names and entry.is_dir(follow_symlinks=False)]


def _removable(folder: OpenFolder, older_than: float | None) -> list[str]:
    """The names of entries, no links, and of temporary files that killed runs left."""

    def is_old(entry: os.DirEntry[str]) -> bool:
        return older_than is None or entry.stat(follow_symlinks=False).st_mtime < older_than

    return [
        entry.name
        for entry in folder.entries()
        if files.is_leftover(entry)
        or (_ENTRY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False) and is_old(entry))
    ]


def cache_folder(project: Path, named: Path | None = None) -> CacheFolder | None:
    """The cache for results on code in the folder `project`: in the folder that the user named, else in the user's own.

    None where no place is the user's alone, so that neither key nor results can be kept: without a home, in another
    user's, or where it would lie in the project. Raises ForeignFolder for a folder that is not ours.
    """
    own = _own_folder(project)
    return CacheFolder(named or own / _RESULTS, own).check() if own is not None else None


def own_cache(project: Path) -> CacheFolder | None:
    """The cache in the user's own folder; None also where what lies there is not ours."""
    with contextlib.suppress(ForeignFolder):
        return cache_folder(project)
    return None


def modified(kind: str, name: str) -> int:
    """When an entry in the user's own folder was written, in nanoseconds; 0 for none.

    After every edit in an editor: whether the folder is ours is tested when the entry is read.
    """
    caches = _caches()
    try:
        return (caches / _NAME / _RESULTS / kind / name[:2] / name[2:]).stat().st_mtime_ns if caches else 0
    except OSError:
        return 0


def byte_code_folder(project: Path) -> Path | None:
    """The folder for byte code of packages that code in the folder `project` imports, made; None where none can be."""
    own = _own_folder(project)
    if own is None:
        return None
    try:
        _make(own / _BYTE_CODE)
        OpenFolder.open(own / _BYTE_CODE).close()
    except OSError:
        return None
    return own / _BYTE_CODE


def _own_folder(project: Path) -> Path | None:
    """The user's folder for files of pallas-lint; it need not exist yet. None where no folder can be trusted."""
    caches = _caches()
    if caches is None:
        return None
    place = caches / _NAME
    in_project = _real(place).is_relative_to(_real(bounds(project)))
    return place if not in_project and _is_own(place) else None


def _caches() -> Path | None:
    """The folder for caches that this system gives its user."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():  # the standard has others passed over
        return given
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    # A home that does not exist is not to be made: sandboxes name one so that nothing is kept.
    known = home.is_absolute() and home.is_dir()
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") if known else None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_own(place: Path) -> bool:
    """Whether a folder is this user's and no other user can write to it; of one to be made, whether it would be."""
    user = os.geteuid() if hasattr(os, "geteuid") else None
    try:
        status = place.lstat()
    except FileNotFoundError:
        # Not in another user's home, as root with the environment of a user would.
        around = next(each for each in place.parents if each.exists())
        return user is None or around.stat().st_uid in (user, 0)
    except OSError:
        return False
    own = user is None or (status.st_uid == user and not status.st_mode & 0o022)
    return stat.S_ISDIR(status.st_mode) and own


def _user_key(own: Path, *, create: bool) -> bytes:
    """The key with which the user's results are signed; empty where there is none. Raises OSError."""
    if create:
        _make(own)
    with contextlib.suppress(FileNotFoundError), OpenFolder.open(own) as folder:
        return files.read_in(folder, _KEY)
    if not create:
        return b""
    drafted = files.draft_in(OpenFolder.open(own), _KEY, os.urandom(_KEY_SIZE), mode=0o600)
    try:
        with contextlib.suppress(FileExistsError):  # another run was quicker
            drafted.put_new()
    finally:
        drafted.drop()
    return _user_key(own, create=False)


def _make(place: Path) -> None:
    # One by one: `parents=True` would make all but the last one with the permissions of any folder.
    if not place.is_dir():
        _make(place.parent)
        place.mkdir(0o700, exist_ok=True)
