"""Reads the cases: a kernel as a user wrote it, what is wrong with it, and the same kernel repaired."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from attrs import frozen

FOLDER = Path(__file__).parent
REPAIRED = ".fixed.py"
# Where a problem shows: never before the stage that is named.
STAGES = ("import", "trace", "lowering", "compile", "interpret", "wrong", "warning", "device")
_HEADER = re.compile(r"# (jax|target|expect|static|call|fails): (.+)")
_MARK = re.compile(r"  #!(?: (PAL\d{3}))?$")


@frozen
class Case:
    """One problem. `marked` are the lines to be flagged, with the code; `call` runs the module's function."""

    name: str  # "value-dynamic-index/jax-18897"
    title: str
    code: str
    repaired: str
    jax: str
    target: str
    expect: str
    static: str  # whether the text alone can tell: "yes" or "partly"
    fails: str  # the stage at which jax itself complains
    call: str | None
    marked: frozenset[tuple[str, int]]

    @property
    def problem(self) -> str:
        """The class of problems that it belongs to."""
        return self.name.partition("/")[0]


def read(file: Path) -> Case:
    """The case in `file`, with its repaired twin beside it."""
    lines = file.read_text(encoding="utf-8").splitlines()
    header = dict(match.groups() for line in lines if (match := _HEADER.fullmatch(line)))
    marked = frozenset(
        (match[1] or header["expect"], number)
        for number, line in enumerate(lines, 1)
        if (match := _MARK.search(line)) is not None
    )
    return Case(
        name=f"{file.parent.name}/{file.stem}",
        title=lines[0].removeprefix("# "),
        code="\n".join(_MARK.sub("", line) for line in lines) + "\n",
        repaired=file.with_name(file.stem + REPAIRED).read_text(encoding="utf-8"),
        jax=header["jax"],
        target=header["target"],
        expect=header["expect"],
        static=header["static"],
        fails=header["fails"],
        call=header.get("call"),
        marked=marked,
    )


@lru_cache(maxsize=1)
def all_cases() -> tuple[Case, ...]:
    return tuple(read(file) for file in sorted(FOLDER.glob("*/*.py")) if not file.name.endswith(REPAIRED))
