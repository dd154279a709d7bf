"""A schedule as libtpu writes it, one bundle a cycle, read into bundles.

`*-packed-bundles-post-ra.txt` has a line for each bundle: its address, marks of regions and, in braces, instructions
that are issued together. Comments may span lines; some of them have the user's line of an instruction.
Cycles in which nothing is issued have a bundle too. Known from libtpu 0.0.17 to 0.0.50.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Place = tuple[str, int]  # file, line

_COMMENT = re.compile(r"/\*((?:[^*]+|\*(?!/))*)(?:\*/)?")  # one that does not end goes on to the end of the text
_PLACE = re.compile(r'"([^"]+)":(\d+):\d+')
_REGION = re.compile(r"(Start/End empty|Start|End) region (\d+)")
_ADDRESS = re.compile(r"\s*(0x[0-9a-f]+|0)\s+(?:[A-Z]{2})?\s*:?")
_RESULTS_OF_DIVISION = re.compile(r"(?:^|::)\s*(kDiv|kRem|kDivAndRem)\s*$")  # behind where it comes from
_CORE_ID = re.compile(r"\[smem:\[(#allocation\d+)\]\] /\*[^*]*\bcore id \*/")
_CHIP_ID = re.compile(r"\[smem:\[(#allocation\d+)\]\] /\*[^*]*\blogical chip id \*/")
_NOT_A_BUNDLE = re.compile(r"\n(?![^\S\n]*(?:0x[0-9a-f]+|0) +(?:[A-Z]{2})?[: ])")


class UnknownForm(Exception):
    """A text of an unknown form; the message is the difference."""


@dataclass
class Bundle:
    """The instructions issued in one cycle. `places`: the user's lines that they are of, if known."""

    address: int
    instructions: list[str]
    places: list[Place]


@dataclass
class Listing:
    """Bundles in order of their addresses, and the addresses at which regions begin and end.

    `core_id`: where in scalar memory it stands which of two cores runs; None where only one does. `chip_ids`: the same
    of the number of a chip among several.
    """

    bundles: list[Bundle]
    starts: dict[int, int]
    ends: dict[int, int]
    core_id: str | None = None
    chip_ids: frozenset[str] = frozenset()


def read(text: str) -> Listing:
    """The listing in a text. Raises UnknownForm."""
    core_id = _CORE_ID.search(text)
    chip_ids = frozenset(_CHIP_ID.findall(text))
    listing = Listing([], {}, {}, core_id[1] if core_id is not None else None, chip_ids)
    for line in _NOT_A_BUNDLE.sub(" ", _COMMENT.sub(_marked, text)).split("\n"):
        match = _ADDRESS.match(line)
        if match is None or "{" not in line:
            continue
        _read_bundle(int(match[1], 16), line, listing)
    if not listing.bundles or [bundle.address for bundle in listing.bundles] != list(range(len(listing.bundles))):
        raise UnknownForm("a schedule whose bundles are not numbered from 0 on")
    return listing


def _marked(comment: re.Match[str]) -> str:
    """What is read of a comment, without what else may be in it."""
    places = "".join(f" @{file}@{line}@ " for file, line in _PLACE.findall(comment[1])[:1])
    division = _RESULTS_OF_DIVISION.search(comment[1])
    regions = "".join(f" #{kind}#{number}# " for kind, number in _REGION.findall(comment[1]))
    return places + regions + (f" {division[1]}" if division is not None else "")


_MARK = re.compile(r"#(Start/End empty|Start|End)#(\d+)#|@([^@]+)@(\d+)@")


def _read_bundle(address: int, line: str, listing: Listing) -> None:
    places: list[Place] = []
    for kind, number, file, row in _MARK.findall(line):
        if file:
            places.append((file, int(row)))
        elif kind.startswith("Start"):
            listing.starts.setdefault(int(number), address)
        else:
            listing.ends[int(number)] = address
    body = _MARK.sub("", line[line.index("{") + 1 : line.rindex("}")])
    instructions = [part.strip() for part in body.split(";;") if part.strip()]
    listing.bundles.append(Bundle(address, instructions, places))
