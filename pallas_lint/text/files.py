"""Reading and writing files in folders that anybody may have made: the only place where either is done.

What is read is a regular file of a sensible size: a pipe, a device or a file without end is refused, and nothing waits.

What is written is whole or not written at all, and it stays in the project (`pallas_lint.project.bounds`): a link is
followed, so that it stays a link, but not out of there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 64 << 20  # bytes of a file: a notebook with its pictures, a lock file, a baseline
LARGEST_SETTINGS = 1 << 20  # of one whose text costs more than its reading: TOML, patterns, requirements

# Without O_NONBLOCK opening a pipe waits for a writer.
_READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY"))


class Refused(OSError):
    """A file that is left alone for what it is; `strerror` says why in a clause, as for any OSError."""

    def __init__(self, reason: str) -> None:
        super().__init__(None, reason)


def read(file: str | Path, largest: int = LARGEST) -> bytes:
    """What a regular file, or the one that a link leads to, holds. Raises OSError, Refused for what is neither."""
    handle = os.open(file, _READING)
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise Refused("it is not a regular file")
        # Files of the system's own tell no size, and some have no end.
        step = max(status.st_size + 1, 1 << 16)
        parts: list[bytes] = []
        left = largest + 1
        while status.st_size <= largest and left > 0 and (part := os.read(handle, min(step, left))):
            parts.append(part)
            left -= len(part)
        if status.st_size > largest or left <= 0:
            raise Refused(f"it is larger than {largest >> 20} MiB")
        return b"".join(parts)
    finally:
        os.close(handle)


@frozen
class Draft:
    """New content of a file, written and lying beside it."""

    file: Path  # no link
    temporary: Path

    def put(self) -> None:
        """Make it what the file holds. Raises OSError."""
        self.temporary.replace(self.file)

    def drop(self) -> None:
        """Give it up; nothing happens where it has been put."""
        with contextlib.suppress(OSError):
            self.temporary.unlink(missing_ok=True)


def draft(file: Path, data: bytes, inside: Path | None, *, lasting: bool = True) -> Draft:
    """The new content of `file`, to be put where it is, with the permissions of what is there. Raises OSError.

    `inside` is the folder that links must not lead out of; None for a path that means any place. `lasting` false: it is
    no loss if the machine stops before the content is on its disk.
    """
    real = Path(os.path.realpath(file))
    if inside is not None and not real.is_relative_to(os.path.realpath(inside)):
        raise Refused(f"it leads out of the project, to {real}; name that path itself to have it written")
    known = _known(real)
    temporary = real.with_name(f".pallas-lint-{os.urandom(8).hex()}")
    drafted = Draft(real, temporary)
    # A new file has the permissions that the user gives new files; one that replaces another is nobody's until below.
    handle = os.open(temporary, _MAKING, 0o666 if known is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if lasting:
                os.fsync(handle)
        if known is not None:
            _liken(temporary, known)
    except BaseException:
        drafted.drop()
        raise
    return drafted


def write(file: Path, data: bytes, inside: Path | None, *, lasting: bool = True) -> None:
    """Have `file` hold `data`; arguments and errors as for `draft`."""
    drafted = draft(file, data, inside, lasting=lasting)
    try:
        drafted.put()
    finally:
        drafted.drop()


def _known(file: Path) -> os.stat_result | None:
    """What is there; None for nothing. Raises OSError where it must not be replaced."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise Refused("it is not a regular file")
    # A read-only file could well be replaced, and root may write to any: but somebody made it read-only.
    if not os.access(file, os.W_OK) or not status.st_mode & 0o222:
        raise Refused("the file is read-only")
    return status


def _liken(file: Path, known: os.stat_result) -> None:
    file.chmod(stat.S_IMODE(known.st_mode))
    chown: Callable[..., None] | None = getattr(os, "chown", None)
    if chown is not None and (known.st_uid, known.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):  # only root gives files away
            chown(file, known.st_uid, known.st_gid)
