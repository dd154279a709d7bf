"""CONTRIBUTING.md names what there is: its walks through the code, and what names of before became."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WALKS = re.findall(r"^### (From .+)\n\n((?:.+\n)+)", TEXT, re.MULTILINE)
TABLE = TEXT.partition("| old | new |\n|---|---|\n")[2].partition("\n\n")[0]
FOLDERS = [ROOT / each for each in ("", "pallas_lint", "pallas_lint/probe", "server", "server/workspace")]


@cache
def words() -> frozenset[str]:
    """Every word of the code, and of its files' names."""
    files = [file for room in ("pallas_lint", "rules", "server") for file in (ROOT / room).rglob("*.py")]
    texts = [*(file.read_text(encoding="utf-8") for file in files), *(str(file.relative_to(ROOT)) for file in files)]
    texts.append((ROOT / "vscode-extension/package.json").read_text(encoding="utf-8"))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def names(text: str) -> set[str]:
    """The words of what stands in backticks; commands, which have spaces, and families of rules are none."""
    quoted = re.findall(r"`([^` ]+)`", text)
    return {word for each in quoted if not re.match(r"PAL.xx", each) for word in re.findall(r"\w+", each)}


@pytest.mark.parametrize(("title", "walk"), WALKS, ids=[title for title, _ in WALKS])
def test_walks_name_what_there_is(title: str, walk: str) -> None:
    assert not names(walk) - words()
    for path in re.findall(r"`([\w/]+\.py)`", walk):
        assert any((folder / path).is_file() for folder in FOLDERS), path


def test_each_new_name_is_in_the_code() -> None:
    rows = [line.strip("| ").split(" | ") for line in TABLE.splitlines()]
    assert 0 < len(rows) <= 60
    assert not {name for _, new in rows for name in names(new)} - words()


def test_there_are_three_walks() -> None:
    assert len(WALKS) == 3
