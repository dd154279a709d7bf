"""Dependencies of an answer: files that were imported or read, and folders in which modules were looked for.

Python calls an audit hook for every file that it opens. What a program does beyond that, such as starting another
program, cannot be seen again: then its answer is not kept, for that reason.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pkgutil
import sys
import sysconfig
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any

from ..protocol import RestsOn

# Extension modules of other packages may read files past Python.
_KNOWN = {"jax", "jaxlib", "libtpu", "ml_dtypes", "numpy", "scipy"}
_BEYOND = (
    "subprocess.", "socket.", "sqlite3.", "urllib.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
    "pty.", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.",
    "tempfile.",
)  # fmt: skip
_LISTING = ("os.listdir", "os.scandir")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
_PASSING = ("/dev/", "/proc/", "/sys/")  # their contents hold only at this moment


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class FileWatch:
    """Notes what this process reads from now on, until it ends: hooks stay."""

    def __init__(self) -> None:
        self._own: set[str] = set()  # files that were read
        self._listed: set[str] = set()
        self._beyond: str | None = None
        self._installed = tuple(
            os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib", "platlib")
        )
        # They look for packages: what they could find there is recorded for every folder that is searched.
        self._searching = (str(pkgutil.__file__), str(importlib.metadata.__file__))
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._opened(*arguments)
        elif event in _LISTING:
            if not self._is_of_imports(arguments[0]):
                self._beyond = self._beyond or f"it lists the folder {arguments[0]}"
        elif event.startswith(_BEYOND) and not (arguments and _is_byte_code(arguments[0])):
            self._beyond = self._beyond or f"it does more than to read files ({event})"

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if not isinstance(path, (str, bytes)):
            return  # a handle, of something that was opened before
        file = os.path.abspath(os.fsdecode(path))
        if _is_byte_code(file):
            return
        if isinstance(flags, int) and flags & _WRITING:
            self._beyond = self._beyond or "it writes files"
        elif file.startswith(_PASSING):
            self._beyond = self._beyond or f"it reads {file}"
        else:
            self._own.add(file)

    def _is_of_imports(self, folder: Any) -> bool:
        """Whether it is the import system that lists a folder, or an installed package another one's."""
        caller = sys._getframe(2).f_code.co_filename
        if caller.startswith("<frozen importlib") or caller in self._searching:
            return True
        return isinstance(folder, str) and (os.path.realpath(folder) + os.sep).startswith(self._installed)

    def event(self) -> RestsOn:
        """All that this process has read and imported so far."""
        files, beyond = self._own.copy(), self._beyond
        files.update(_loaded_libraries())
        for name, module in list(sys.modules.items()):
            if not isinstance(module, ModuleType):
                continue
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                files.add(os.path.abspath(file))
            loader = getattr(getattr(module, "__spec__", None), "loader", None)
            if isinstance(loader, ExtensionFileLoader) and not self._is_known(name, str(file)):
                beyond = beyond or f"`{name.partition('.')[0]}` has code of which Python does not report what it reads"
        files = {source for source in map(_source, files) if not source.startswith(_OURS)}
        installed = {file for file in files if os.path.realpath(file).startswith(self._installed) or ".so" in file}
        searched = {os.path.abspath(folder) for folder in (*sys.path, *sys.path_importer_cache)}
        return {
            "event": "rests",
            "installed": sorted(installed),
            "read": sorted(files - installed),
            "searched": sorted(searched),
            "beyond": beyond,
        }

    def _is_known(self, name: str, file: str) -> bool:
        """Whether an extension module is Python's own, or one of those that jax needs."""
        inner = os.path.relpath(os.path.realpath(file), os.path.realpath(sysconfig.get_path("stdlib")))
        return name.partition(".")[0] in _KNOWN or not inner.startswith((os.pardir, "site-packages"))


def _is_byte_code(file: Any) -> bool:
    """Whether it is in our own folder for it: it holds as long as the module's text does."""
    folder = sys.pycache_prefix
    return folder is not None and isinstance(file, str) and file.startswith(folder + os.sep)


def _source(file: str) -> str:
    """The text of which a file is the byte code; of others the file itself."""
    if os.path.basename(os.path.dirname(file)) == "__pycache__":
        try:
            return importlib.util.source_from_cache(file)
        except (ValueError, NotImplementedError):
            pass
    return file


def _loaded_libraries() -> list[str]:
    """The libraries in this process's memory, where the system lists them: compilers are not modules."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    names = {line.split(None, 5)[5] for line in lines if len(line.split(None, 5)) == 6}
    return [name for name in names if name.startswith("/") and ".so" in name]
