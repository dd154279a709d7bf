"""Whether a launch runs under `checkify.checkify`, which turns the checks in its kernel into values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.analysis import Analysis
    from pallas_lint.kernels.launch import Launch
    from pallas_lint.kernels.modules import Module

_MOST_FILES = 4000  # of a project that are searched for a call of checkify
_ROOT_MARKS = (".git", "pyproject.toml", "setup.py")


def is_functionalised(launch: Launch, analysis: Analysis) -> bool:
    """Whether the text shows that the launch runs under checkify, in one of the contexts that lead to it."""
    same = [other for other in analysis.launches if other.site.key == launch.site.key]
    marked = analysis.interpreter.checkified
    return any(
        "checkified?" in other.arguments or any(id(caller.node) in marked for caller in other.callers) for other in same
    )


def may_be_functionalised(launch: Launch, analysis: Analysis) -> bool:
    """Whether it does, or may: checkify got something unknown, or another file of the project uses it on this one."""
    interpreter = analysis.interpreter
    if interpreter.checkified_unknown or not interpreter.checkified <= interpreter.entered:
        return True
    return is_functionalised(launch, analysis) or _used_elsewhere(
        analysis.module, (b"checkify.checkify", b"import checkify")
    )


def asserts_are_enabled(analysis: Analysis) -> bool:
    """Whether the project turns the runtime asserts of jax 0.4 and 0.5 on, under which checks run on the TPU."""
    words = (b"runtime_assert",)
    return "runtime_assert" in analysis.module.source.text or _used_elsewhere(analysis.module, words, anywhere=True)


def _used_elsewhere(module: Module, words: tuple[bytes, ...], *, anywhere: bool = False) -> bool:
    """Whether another file of the project has one of the words and (unless `anywhere`) names this module."""
    if module.file is None or not module.file.exists():
        return False
    name = module.file.parent.name if module.file.stem == "__init__" else module.file.stem
    for file in _files(module.file):
        if file == module.file:
            continue
        try:
            text = file.read_bytes()
        except OSError:
            continue
        if any(word in text for word in words):
            module.graph.touched.add(file)
            if anywhere or name.encode() in text:
                return True
    return False


def _files(file: Path) -> Iterator[Path]:
    """The Python files of the project that `file` belongs to; those beside it where nothing marks a project."""
    roots = [folder for folder in file.parents if any((folder / mark).exists() for mark in _ROOT_MARKS)]
    if not roots:
        yield from file.parent.glob("*.py")
        return
    count = 0
    for folder, folders, names in os.walk(roots[0]):
        folders[:] = [
            n for n in folders if not n.startswith(".") and n not in ("node_modules", "site-packages", "venv")
        ]
        for name in names:
            if name.endswith(".py"):
                count += 1
                yield Path(folder, name)
        if count >= _MOST_FILES:
            return
