"""Silencing a rule in a file and in the project; `pallas_lint.triage.silencing` does it for one finding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pallas_lint.config.bounds import project_root
from pallas_lint.finding import Edit, Position, Span
from pallas_lint.records import frozen
from pallas_lint.run import fixer
from pallas_lint.text import paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pallas_lint.config.settings import Settings
    from pallas_lint.text.source import Source

_TABLE = ("tool", "pallas-lint")
_ITEM = re.compile(r"(?:[ \t\r\n]|#[^\n]*\n)*(?:\"[^\"]*\"|'[^']*')[ \t]*,?")  # of an array of strings


def in_file(source: Source, code: str) -> Edit:
    """The comment that silences a rule in a file, above everything but what has to be first."""
    lines = range(1, source.line_count + 1)
    first = next((n for n in lines if not re.match(r"#!|#.*coding[:=]", source.line(n))), 1)
    place = Position(first, 1)
    text = fixer.with_newlines(f"# pallas-lint: disable-file={code}\n", source.text, 0)
    return Edit(Span(source.path, place, place), text)


@frozen
class ProjectEdit:
    """A change of a settings file. `new` is whether it has to be made."""

    file: Path
    edit: Edit
    new: bool = False


def in_project(
    code: str, folder: Path, settings: Settings, text_of: Callable[[str], Source | None]
) -> ProjectEdit | None:
    """The change that has a rule ignored in the project of `folder`; None where none is sure to be right."""
    file = settings.config_file
    if file is None:
        root = project_root(folder)
        file = root / "pyproject.toml"
        if not paths.is_file(file):
            return _new(root / "pallas-lint.toml", code)
    source = text_of(file.as_posix())
    if source is None:
        return None
    table = _TABLE if file.name == "pyproject.toml" else ()
    return next(
        (found for found in _candidates(source, table, code, file) if _is_right(found, source, table, code)), None
    )


def _new(file: Path, code: str) -> ProjectEdit:
    start = Position(1, 1)
    return ProjectEdit(file, Edit(Span(file.as_posix(), start, start), f'ignore = ["{code}"]\n'), new=True)


def _candidates(source: Source, table: tuple[str, ...], code: str, file: Path) -> list[ProjectEdit]:
    """Ways to write it: into the list that is there, as a new key of the table, with a table of its own."""
    text = source.text
    header = re.search(r"(?m)^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*[\"']?pallas-lint[\"']?[ \t]*\][^\n]*\n?", text)
    start = header.end() if header is not None else 0 if not table else None
    ways: list[tuple[int, str]] = []
    if start is not None:
        rest = re.search(r"(?m)^[ \t]*\[", text[start:])
        end = start + rest.start() if rest is not None else len(text)
        known = re.search(r"(?m)^[ \t]*ignore[ \t]*=[ \t]*\[", text[start:end])
        if known is not None:
            opening = at = start + known.end()
            while item := _ITEM.match(text, at):
                at = item.end()
            content = text[opening:at].rstrip(" \t")
            _, newline, last = content.rpartition("\n")
            indent = last[: len(last) - len(last.lstrip(" \t"))]
            gap = f"\n{indent}" if newline else " " if content else ""
            ends = content.endswith(",")
            ways.append((opening + len(content), f'{"" if ends or not content else ","}{gap}"{code}"{"," * ends}'))
        begins = "" if start == 0 or text[start - 1] == "\n" else "\n"
        ways.append((start, f'{begins}ignore = ["{code}"]\n'))
    elif table:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        ways.append((len(text), f'{gap}[tool.pallas-lint]\nignore = ["{code}"]\n'))
    return [
        ProjectEdit(file, Edit(Span(source.path, place, place), fixer.with_newlines(added, text, at)))
        for at, added in ways
        for place in [source.position(at)]
    ]


def _is_right(found: ProjectEdit, source: Source, table: tuple[str, ...], code: str) -> bool:
    """Whether the file then has the same settings, and one rule more in `ignore`."""
    at = source.offset(found.edit.span.start)
    before, after = _parsed(source.text), _parsed(source.text[:at] + found.edit.text + source.text[at:])
    if before is None or after is None:
        return False
    inner: dict[str, Any] = before
    for name in table:
        inner = inner.setdefault(name, {})
    inner["ignore"] = [*inner.get("ignore", []), code]
    return before == after


def _parsed(text: str) -> dict[str, Any] | None:
    from copy import deepcopy

    from pallas_lint.text import toml

    try:
        return deepcopy(toml.loads(text.replace("\r\n", "\n")))
    except (ValueError, RecursionError):
        return None
