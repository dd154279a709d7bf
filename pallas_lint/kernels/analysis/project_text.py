"""Text search in the project that a module belongs to."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.text import files, paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.tracer import CodeModule

_MAX_FILES = 4000  # of a project that are searched
_ROOT_MARKS = (".git", "pyproject.toml", "setup.py")
_TEST_FILE = re.compile(
    r"(?:^|[/\\])(?:tests?|testing|_?testdata)[/\\]|(?:^|[/\\])(?:test_\w*|\w*_tests?|conftest)\.py$"
)


def mentioned_elsewhere(module: Module, words: tuple[bytes, ...], *, anywhere: bool = False) -> bool:
    """Whether another file of the project has one of the words and (unless `anywhere`) names this module."""
    if module.file is None or not paths.exists(module.file):
        return False
    name = module.file.parent.name if module.file.stem == "__init__" else module.file.stem
    for file in project_files(project_folder(module.file)):
        if file == module.file:
            continue
        try:
            text = files.read(file)
        except OSError:
            continue
        if any(word in text for word in words):
            module.graph.touched.add(file)
            if anywhere or name.encode() in text:
                return True
    return False


def mentioned(module: Module, *words: str) -> bool:
    """Whether one of the words occurs in the module or in any other file of its project."""
    if any(word in module.source.text for word in words):
        return True
    return mentioned_elsewhere(module, tuple(word.encode() for word in words), anywhere=True)


def is_test_path(path: str) -> bool:
    """Whether a file of a project is one of tests, by its path there."""
    return _TEST_FILE.search(path) is not None


def is_test_file(module: CodeModule) -> bool:
    """Whether a file is one of tests: by its name, or that of a folder of its project."""
    return is_test_path(module.source.path) if module.file is None else _is_of_tests(module.file)


@lru_cache(maxsize=1024)
def _is_of_tests(file: Path) -> bool:
    root = _root(file)
    return is_test_path(file.name if root is None else file.relative_to(root).as_posix())


def _root(file: Path) -> Path | None:
    """The project's folder."""
    return next((folder for folder in file.parents if _is_marked(folder)), None)


def _is_marked(folder: Path) -> bool:
    return any(paths.exists(folder / mark) for mark in _ROOT_MARKS)


def project_folder(file: Path) -> Path:
    """The folder of the project that a file belongs to; the file's own where nothing marks a project."""
    return _root(file) or file.parent


def project_files(folder: Path, most: int = _MAX_FILES) -> Iterator[Path]:
    """The Python files of the project of a folder, in a fixed order; without a project, those in the folder."""
    if not _is_marked(folder):
        yield from (folder / name for name in paths.names_in(folder) if name.endswith(".py"))
        return
    count = 0
    for place, names in paths.walk(folder, lambda name: not _is_foreign(name)):
        for name in names:
            if name.endswith(".py"):
                count += 1
                yield Path(place, name)
        if count >= most:
            return


def is_project_file(folder: Path, file: Path) -> bool:
    """Whether `project_files` of the folder gives that file, if it is there."""
    if file.suffix != ".py" or folder not in file.parents:
        return False
    between = file.relative_to(folder).parts[:-1]
    return not any(map(_is_foreign, between)) if _is_marked(folder) else not between


def _is_foreign(folder: str) -> bool:
    return folder.startswith(".") or folder in ("node_modules", "site-packages", "venv")
