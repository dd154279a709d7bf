"""Byte code of installed packages, kept in the user's own cache folder where they have none beside them.

Installers such as uv write none, containers forbid it (`PYTHONDONTWRITEBYTECODE`), and this worker writes nothing into
a shared install: each of them would have jax compiled from its text for every probe, which takes seconds.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from importlib.machinery import SourceFileLoader
from typing import Any


def keep_in(folder: str) -> None:
    """Have imports of installed packages read and write their byte code in a folder, unless jax has its own.

    This package is one of them, wherever it is installed: mostly in another environment than jax.
    """
    if _jax_has_byte_code():
        return
    folders = [*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), os.path.dirname(os.path.dirname(__file__))]
    installed = tuple(os.path.realpath(folder) + os.sep for folder in folders)

    loaders: Any = SourceFileLoader
    write = loaders.set_data

    def write_installed(loader: SourceFileLoader, path: str, data: Any, *, _mode: int = 0o666) -> None:
        # Not of the user's files: they may change twice within a second, which byte code does not show.
        if os.path.realpath(loader.path).startswith(installed):
            write(loader, path, data, _mode=_mode)

    sys.pycache_prefix = folder
    sys.dont_write_bytecode = False
    loaders.set_data = write_installed


def _jax_has_byte_code() -> bool:
    """Whether jax's Pallas is compiled where Python looks; also where there is no jax."""
    spec = importlib.util.find_spec("jax")
    if spec is None or spec.origin is None or sys.implementation.cache_tag is None:
        return True
    file = os.path.join(os.path.dirname(spec.origin), "experimental", "pallas", "__init__.py")
    return os.path.exists(importlib.util.cache_from_source(file))
