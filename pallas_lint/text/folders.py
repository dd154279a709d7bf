"""Open folders: entries are opened, made and removed relative to a handle, so that no link is followed.

POSIX systems open each name relative to the folder that was opened before (`openat` with `O_NOFOLLOW`), so that a link
put there meanwhile changes nothing. Windows cannot: there each name is looked at before it is used.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HAS_OPENAT = {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd and os.scandir in os.supports_fd
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"))
_HAS_HANDLE_FILES = os.path.isdir("/proc/self/fd")  # noqa: PTH112  one look
_REPARSE_POINT = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT: links and junctions of Windows


class OpenFolder:
    """A folder, held open until `close`. Names are single parts of a path.

    Every method raises OSError, with `errno.ELOOP` for a link.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle  # None: this system has no openat

    @classmethod
    def open(cls, path: Path) -> OpenFolder:
        """The folder at a path, of which the last part is no link."""
        if _HAS_OPENAT:
            return cls(path, _open_folder(path, None))
        _check_no_link(path, os.lstat(path))
        return cls(path, None)

    def close(self) -> None:
        """Give the handle back. Nothing else may be called afterwards."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def subfolder(self, name: str, *, create: bool = False) -> OpenFolder:
        """A folder in this one. One that is created is the user's alone."""
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._name(name), 0o700, dir_fd=self._handle)
        if self._handle is not None:
            return OpenFolder(self.path / name, _open_folder(name, self._handle))
        return OpenFolder.open(self.path / name)

    def open_file(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A handle of a file in this folder."""
        if self._handle is None and (known := self.status(name)) is not None:
            _check_no_link(self.path / name, known)
        return os.open(self._name(name), flags | _FLAGS, mode, dir_fd=self._handle)

    def status(self, name: str) -> os.stat_result | None:
        """What lies there under a name, not what a link leads to; None for nothing."""
        try:
            return os.stat(self._name(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """What lies in this folder."""
        with os.scandir(self.path if self._handle is None else self._handle) as entries:
            yield from entries

    def remove(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(self._name(name), dir_fd=self._handle)

    def rename(self, name: str, new: str) -> None:
        """Give a file another name in this folder; what had that name is replaced."""
        os.replace(self._name(name), self._name(new), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def link(self, name: str, new: str) -> None:
        """Give a file a second name in this folder, which nothing has yet."""
        os.link(self._name(name), self._name(new), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def open_unnamed(self, mode: int) -> int | None:
        """A handle of a new file without a name, which goes with its process; None where that cannot be."""
        flag: int | None = getattr(os, "O_TMPFILE", None)
        if flag is None or self._handle is None or not _HAS_HANDLE_FILES:
            return None
        try:
            return os.open(".", flag | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=self._handle)
        except OSError:  # file systems of the network, or no handle left
            return None

    def name_file(self, handle: int, name: str) -> None:
        """Give a file of `open_unnamed` a name that nothing has yet."""
        os.link(f"/proc/self/fd/{handle}", name, dst_dir_fd=self._handle, follow_symlinks=True)

    def _name(self, name: str) -> str | Path:
        return name if self._handle is not None else self.path / name


def _open_folder(path: Path | str, parent: int | None) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=parent)
    except NotADirectoryError:
        # Linux reports that for a link, too.
        if stat.S_ISLNK(os.stat(path, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path)) from None
        raise


def _check_no_link(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode) or getattr(status, "st_file_attributes", 0) & _REPARSE_POINT:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
