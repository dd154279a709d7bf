"""Reading and writing files in folders that may be hostile: the only place where either is done.

What is read is a regular file of a sensible size: a pipe, a device or a file without end is refused, and nothing waits.

What is written is whole or not written at all. A path that settings or files of a project name stays in the project
(`pallas_lint.run.project.bounds`), and no part of it is a link; of a path that the user names, the last part is none.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.records import define
from pallas_lint.text.folders import OpenFolder

MAX_BYTES = 64 << 20  # bytes of a file: a notebook with its pictures, a lock file, a baseline
MAX_SETTINGS_BYTES = 1 << 20  # of one whose text costs more than its reading: TOML, patterns, requirements

# Without O_NONBLOCK opening a pipe waits for a writer.
_READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_TEMPORARY = ".pallas-lint-"
_LEADS_OUT = "it leads out of the project, to {}; name that path itself to have it written"
_LEFT_AFTER = 3600.0  # seconds: no run is still about to rename a file that it wrote that long ago


class RefusedFile(OSError):
    """A file that is not read because of its kind or size; `strerror` is the reason, as for any OSError."""

    def __init__(self, reason: str) -> None:
        super().__init__(None, reason)


def read(file: str | Path, largest: int = MAX_BYTES) -> bytes:
    """The content of a regular file, or of the one that a link leads to.

    Raises OSError, RefusedFile for anything else and for more than `largest` bytes.
    """
    return _content(os.open(file, _READING), largest)


def read_in(folder: OpenFolder, name: str) -> bytes:
    """The content of a regular file in a folder, not a link. Raises OSError."""
    return _content(folder.open_file(name, os.O_RDONLY), MAX_BYTES)


def _content(handle: int, largest: int) -> bytes:
    """The content of a file, which is then closed."""
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise RefusedFile("it is not a regular file")
        # Special files of the system have no size, and some have no end.
        step = max(status.st_size + 1, 1 << 16)
        parts: list[bytes] = []
        left = largest + 1
        while status.st_size <= largest and left > 0 and (part := os.read(handle, min(step, left))):
            parts.append(part)
            left -= len(part)
        if status.st_size > largest or left <= 0:
            raise RefusedFile(f"it is larger than {format_bytes(largest)}")
        return b"".join(parts)
    finally:
        os.close(handle)


@define
class Draft:
    """New content of a file, written in its folder: without a name where the system can, else under a temporary one."""

    folder: OpenFolder
    name: str
    temporary: str
    unnamed: int | None  # the handle of a file that has no name

    @property
    def file(self) -> Path:
        """The file that is replaced."""
        return self.folder.path / self.name

    def put(self) -> None:
        """Make it what the file holds. Raises OSError."""
        if self.unnamed is not None:
            # No call replaces a file by one without a name. A process killed between the two leaves the temporary name.
            self.folder.name_file(self.unnamed, self.temporary)
        self.folder.rename(self.temporary, self.name)

    def put_new(self) -> None:
        """Make it the content of a file that is not there yet. Raises FileExistsError, OSError."""
        if self.unnamed is not None:
            self.folder.name_file(self.unnamed, self.name)
        else:
            self.folder.link(self.temporary, self.name)

    def drop(self) -> None:
        """Give back what it holds, and give it up where it has not been put. Nothing may be called afterwards."""
        if self.unnamed is not None:
            os.close(self.unnamed)
        with contextlib.suppress(OSError):
            self.folder.remove(self.temporary)
        self.folder.close()


def draft(file: Path, data: bytes, inside: Path | None) -> Draft:
    """The new content of `file`, to be put where it is, with the permissions of what is there. Raises OSError.

    `inside` is the folder that the file has to lie in, with no link on the way; None for a path that the user named:
    it may lie anywhere, and its last part is no link.
    """
    folder, name = _opened(file, inside)
    return draft_in(folder, name, data)


def draft_in(folder: OpenFolder, name: str, data: bytes, *, lasting: bool = True, mode: int = 0o666) -> Draft:
    """The new content of a file in a folder, which the draft closes. Raises OSError.

    `lasting` false: it is no loss if the machine stops before the content is on its disk. `mode` is that of a new file,
    less what the user's mask takes away.
    """
    drafted = Draft(folder, name, f"{_TEMPORARY}{os.urandom(8).hex()}", None)
    try:
        known = _replaceable(folder, name)
        mode = mode if known is None else 0o600  # the user's alone until it has the permissions of what it replaces
        handle = drafted.unnamed = folder.open_unnamed(mode)
        if handle is None:
            handle = folder.open_file(drafted.temporary, _MAKING, mode)
        with os.fdopen(handle, "wb", closefd=drafted.unnamed is None) as stream:
            stream.write(data)
            stream.flush()
            if lasting:
                os.fsync(handle)
            if known is not None:
                _copy_permissions(known, handle, folder.path / drafted.temporary)
    except BaseException:
        drafted.drop()
        raise
    return drafted


def write(file: Path, data: bytes, inside: Path | None) -> None:
    """Have `file` hold `data`; arguments and errors as for `draft`."""
    drafted = draft(file, data, inside)
    try:
        drafted.put()
        remove_leftovers(drafted.folder)
    finally:
        drafted.drop()


def write_in(folder: OpenFolder, name: str, data: bytes) -> None:
    """Have a file of a folder, which is closed, hold `data` that may be lost with the machine. Raises OSError."""
    drafted = draft_in(folder, name, data, lasting=False)
    try:
        drafted.put()
    finally:
        drafted.drop()


def linked_file(file: Path, inside: Path) -> Path:
    """The file that a path leads to by its links. Raises RefusedFile where that is not below the folder `inside`."""
    real = Path(os.path.realpath(file))
    if not real.is_relative_to(os.path.realpath(inside)):
        raise RefusedFile(_LEADS_OUT.format(real))
    return real


def is_temporary(name: str) -> bool:
    """Whether a name is that of a file that is about to be renamed."""
    return re.fullmatch(rf"{re.escape(_TEMPORARY)}[0-9a-f]{{16}}", name) is not None


def is_leftover(entry: os.DirEntry[str]) -> bool:
    """Whether a file is the temporary one of a run of this user that was killed an hour ago or longer."""
    if not is_temporary(entry.name) or not entry.is_file(follow_symlinks=False):
        return False
    status = entry.stat(follow_symlinks=False)
    return status.st_uid == _user() and status.st_mtime < time.time() - _LEFT_AFTER


def remove_leftovers(folder: OpenFolder) -> None:
    """Remove the temporary files that killed runs left in a folder."""
    with contextlib.suppress(OSError):
        for entry in [entry for entry in folder.entries() if is_leftover(entry)]:
            folder.remove(entry.name)


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0  # what Windows has every file be of


def _opened(file: Path, inside: Path | None) -> tuple[OpenFolder, str]:
    """The folder of a file, and the file's name in it; `inside` as for `draft`. Raises OSError."""
    file = Path(os.path.normpath(Path.cwd() / file))
    if inside is None:
        folder = OpenFolder.open(Path(os.path.realpath(file.parent)))
    elif file.is_relative_to(inside := Path(os.path.normpath(inside))):
        folder = _descended(OpenFolder.open(Path(os.path.realpath(inside))), file.relative_to(inside).parts[:-1], file)
    else:
        raise RefusedFile(_LEADS_OUT.format(file))
    status = folder.status(file.name)
    if status is not None and stat.S_ISLNK(status.st_mode):
        raise _of_link(folder, file.name, file, inside)
    return folder, file.name


def _descended(folder: OpenFolder, names: Iterable[str], file: Path) -> OpenFolder:
    """The folder below another one in which `file` lies. Raises OSError, RefusedFile where one on the way is a link."""
    inside = folder.path
    for name in names:
        try:
            inner = folder.subfolder(name)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _of_link(folder, name, file, inside) from error
            raise
        folder.close()
        folder = inner
    return folder


def _of_link(folder: OpenFolder, name: str, file: Path, inside: Path | None) -> RefusedFile:
    """The refusal to write a file for a link on the way to it."""
    real = Path(os.path.realpath(file))
    if inside is not None and not real.is_relative_to(os.path.realpath(inside)):
        return RefusedFile(_LEADS_OUT.format(real))
    return RefusedFile(f"{folder.path / name} is a link; name {real} itself to have it written")


def _replaceable(folder: OpenFolder, name: str) -> os.stat_result | None:
    """What is there under a name; None for nothing. Raises OSError where it must not be replaced."""
    status = folder.status(name)
    if status is None:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise RefusedFile("it is not a regular file")
    # A read-only file could well be replaced, and root may write to any: but it was made read-only on purpose.
    if not os.access(folder.path / name, os.W_OK) or not status.st_mode & 0o222:
        raise RefusedFile("the file is read-only")
    return status


def _copy_permissions(known: os.stat_result, handle: int, path: Path) -> None:
    path_or_handle = handle if os.chmod in os.supports_fd else path
    os.chmod(path_or_handle, stat.S_IMODE(known.st_mode))  # noqa: PTH101  a handle has no path
    change_owner: Callable[..., None] | None = getattr(os, "fchown", None)
    if change_owner is not None and (known.st_uid, known.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):  # only root gives files away
            change_owner(handle, known.st_uid, known.st_gid)
