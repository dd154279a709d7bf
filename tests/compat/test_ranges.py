"""Ranges of versions mean what `packaging` says, for all that is read without it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from pallas_lint import compat
from pallas_lint.compat import ranges
from pallas_lint.config import environment

NUMBERS = st.integers(0, 12).map(str)
VERSIONS = st.lists(NUMBERS, min_size=1, max_size=4).map(".".join)
ODD = st.sampled_from(
    ["01", "0.08", "1.", ".1", "", "1rc1", "0.8.post1", "1!2", "0.8+cpu", "x", "*", "1.*", "²", "9" * 30]
)
OPERATORS = st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "~=", "===", "=", "=>", "", "^"])
BLANKS = st.sampled_from(["", "", " ", "  ", "\t"])
CLAUSES = st.builds(
    "{}{}{}{}{}{}".format, BLANKS, OPERATORS, BLANKS, VERSIONS | ODD, st.sampled_from(["", "", ".*"]), BLANKS
)
RANGES = st.lists(CLAUSES, min_size=1, max_size=3).map(",".join)


def packagings(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text, prereleases=True)
    except InvalidSpecifier:
        return None


@given(RANGES, st.lists(VERSIONS, max_size=6))
@example(">=0.8,<0.11", ["0.8", "0.8.0", "0.10.2", "0.11"])
@example("~=0.4.30", ["0.4.30", "0.4.35", "0.5"])
@example("==0.9.*,!=0.9.0.*", ["0.9.0", "0.9.0.1", "0.9.1", "0.90"])
def test_a_range_has_the_same_versions_as_in_packaging(text: str, versions: list[str]) -> None:
    known = packagings(text)
    if known is None:
        with pytest.raises(ValueError, match=r"."):
            ranges.within(text, versions)
    else:
        assert ranges.within(text, versions) == [version for version in versions if Version(version) in known]


@given(RANGES)
@example("==0.8,==0.8.0")
@example(">=0.8, >=0.8")
def test_a_range_is_spelled_as_packaging_does(text: str) -> None:
    spelled, known = ranges.spelled(text), packagings(text)
    assert spelled is None or (known is not None and spelled == str(known))


@given(VERSIONS | ODD)
def test_what_has_numbers_is_a_version(text: str) -> None:
    numbers = ranges.numbers_of(text)
    assert numbers is None or numbers == Version(text).release


EXTRAS = st.lists(st.sampled_from(["cuda12", "tpu", " cuda12-local ", "a_b", "", "a-", "-", "é"]), max_size=2)


@given(
    st.sampled_from(["jax", "jaxlib", "JAX"]),
    st.none() | EXTRAS.map(lambda extras: f"[{','.join(extras)}]") | st.just("[cuda12"),
    RANGES
    | st.sampled_from(["", " ", "(>=0.8)", " @ https://x.org/jax.whl", "; python_version > '3'", ">=0.8; extra"]),
)
def test_a_requirement_is_what_packaging_reads(name: str, extras: str | None, rest: str) -> None:
    line = f"{name}{extras or ''}{rest}"
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        expected = []
    else:
        of_jax = requirement.name.lower() in ("jax", "jaxlib") and not requirement.url  # not `jax01`
        expected = [(requirement.name.lower(), str(requirement.specifier))] if of_jax else []
    assert environment._parse([line]) == expected


def test_the_ranges_of_real_projects_are_read_without_packaging() -> None:
    for text in (">=0.4.35", ">=0.8,<0.11", "==0.10.2", "~=0.7.0", "==0.9.*", ">= 0.5 , != 0.6.1", "<1"):
        assert ranges.spelled(text) is not None
    assert None not in map(ranges.numbers_of, compat.known_versions())
