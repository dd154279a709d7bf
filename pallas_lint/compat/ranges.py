"""Version specifiers of requirements, `>=0.8,<0.11`, for released versions.

Most projects use only numbers and commas, which are parsed here: importing `packaging`, which parses the rest of
PEP 440, takes longer than a cached file.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, zip_longest

from pallas_lint.records import frozen

_OPERATORS = ("~=", "==", "!=", "<=", ">=", "<", ">")
_MAX_DIGITS = 9  # of one number: Python takes long over thousands


@frozen
class _Clause:
    operator: str
    version: str
    numbers: tuple[int, ...]
    series: bool  # `==0.8.*`

    def holds(self, version: tuple[int, ...]) -> bool:
        order = _order(version, self.numbers)
        match self.operator:
            case "==":
                return _begins(version, self.numbers) if self.series else order == 0
            case "!=":
                return not _begins(version, self.numbers) if self.series else order != 0
            case "~=":
                return order >= 0 and _begins(version, self.numbers[:-1])
            case "<=":
                return order <= 0
            case ">=":
                return order >= 0
            case "<":
                return order < 0
            case _:
                return order > 0


def within(text: str, versions: Iterable[str]) -> list[str]:
    """The `versions` that are in a range. Raises ValueError for text that is no range, or no version."""
    versions = list(versions)
    clauses = _clauses(text)
    numbers = [numbers_of(version) for version in versions]
    if clauses is not None and None not in numbers:
        pairs = zip(versions, numbers, strict=True)
        return [version for version, each in pairs if each is not None and all(c.holds(each) for c in clauses)]
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    specifiers = SpecifierSet(text, prereleases=True)
    return [version for version in versions if Version(version) in specifiers]


def spelled(text: str) -> str | None:
    """A range as `packaging` spells it, without blanks and in its order; None for what is not read here."""
    clauses = _clauses(text)
    if clauses is None:
        return None
    found = {f"{clause.operator}{clause.version}{'.*' if clause.series else ''}": clause for clause in clauses}
    twice = any(
        one.operator == other.operator and _order(one.numbers, other.numbers) == 0
        for one, other in combinations(found.values(), 2)
    )
    return None if twice else ",".join(sorted(found))  # of `==0.8,==0.8.0` it leaves out one


def numbers_of(version: str) -> tuple[int, ...] | None:
    """The numbers of a version that has nothing else, such as 0.10.2; None for another."""
    parts = version.split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
        return None
    # `packaging` may spell 0.08 in another way.
    return None if any(part[0] == "0" and part != "0" for part in parts) else tuple(map(int, parts))


def _clauses(text: str) -> list[_Clause] | None:
    clauses = []
    for part in text.split(","):
        clause = part.strip()
        operator = next((known for known in _OPERATORS if clause.startswith(known)), None)
        if operator is None:
            return None
        version = clause[len(operator) :].strip()
        series = version.endswith(".*") and operator in ("==", "!=")
        version = version.removesuffix(".*") if series else version
        numbers = numbers_of(version)
        if numbers is None or (operator == "~=" and len(numbers) < 2):
            return None
        clauses.append(_Clause(operator, version, numbers, series))
    return clauses


def _order(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Below, at or above 0 as `one` is before, the same as or behind `other`; 0.8 and 0.8.0 are the same."""
    return next((a - b for a, b in zip_longest(one, other, fillvalue=0) if a != b), 0)


def _begins(version: tuple[int, ...], numbers: tuple[int, ...]) -> bool:
    padded = (*version, *(0 for _ in numbers))
    return padded[: len(numbers)] == numbers
