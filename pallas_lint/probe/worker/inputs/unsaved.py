"""Files whose text in an editor is not the one on disk: they are imported with the editor's text."""

from __future__ import annotations

import importlib.machinery
import linecache
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from a text instead of from its file, and from no byte code."""

    def __init__(self, name: str, file: str, text: str) -> None:
        super().__init__(name, file)
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.text, self.path, "exec", dont_inherit=True)

    def get_data(self, path: Any) -> bytes:
        return self.text.encode("utf-8", "surrogatepass")


class _Finder:
    """Finds modules whose files have unsaved texts, and loads them from these."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None:
            return None
        text = self.texts.get(os.path.realpath(spec.origin))
        if text is None:
            return None
        spec.loader = _Loader(name, spec.origin, text)
        return spec


def install(texts: dict[str, str]) -> None:
    """Have these texts imported in place of their files' own, by absolute path; tracebacks show them too."""
    real = {os.path.realpath(file): text for file, text in texts.items()}
    sys.meta_path.insert(0, _Finder(real))
    for file, text in (*texts.items(), *real.items()):
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def loader(name: str, file: str, texts: dict[str, str]) -> Any:
    """The loader for a file that is imported by its place; None for the usual one."""
    text = texts.get(file)
    return None if text is None else _Loader(name, file, text)
