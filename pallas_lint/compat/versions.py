"""Known jax versions, and the known version that stands for an unknown one."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from pallas_lint.compat import ranges, tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.config.targets import Backend

# A `pallas_call` on CUDA that names no backend is a Triton kernel, but a Mosaic GPU one in between.
CUDA_MOSAIC, CUDA_TRITON_AGAIN = (0, 9), (0, 11, 2)
# A string, compiled when first used: most versions are numbers alone.
_LEADING_NUMBERS = r"\s*v?(\d+(?:\.\d+)*)(?:[-_.]?(?:a|b|rc|dev|post)\d*)*(?:\+[\w.]+)?\s*\Z"


class UnknownVersionError(ValueError):
    """The text names no jax version that the data covers."""


@functools.cache
def parse(version: str) -> tuple[int, ...]:
    """Numbers of a version, without pre-release, development and local parts."""
    plain = ranges.numbers_of(version)
    if plain is None:
        found = re.match(_LEADING_NUMBERS, version)
        if found is None:
            raise UnknownVersionError(f"`{version}` is not a jax version")
        plain = tuple(map(int, found.group(1).split(".")))
    numbers = list(plain)
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()  # 0.10 and 0.10.0 are one version
    return tuple(numbers)


def cuda_default(version: str) -> Backend:
    """The backend of a `pallas_call` on CUDA that names none."""
    return "mosaic_gpu" if CUDA_MOSAIC <= parse(version) < CUDA_TRITON_AGAIN else "triton"


@functools.cache
def known_versions() -> tuple[str, ...]:
    """Every version whose public names are known, the oldest first."""
    return tuple(tables.versions()["known"])


@functools.cache
def measured_versions() -> tuple[str, ...]:
    """Every version with which functions were lowered and compiled, the oldest first."""
    return tuple(tables.versions()["measured"])


def newest() -> str:
    """The newest known version."""
    return known_versions()[-1]


def oldest() -> str:
    """The oldest known version."""
    return known_versions()[0]


@functools.cache
def nearest(version: str) -> str:
    """The known version that stands for `version`: itself, or its lower neighbour."""
    index = position(version, known_versions())
    if index is None:
        raise UnknownVersionError(f"jax {version} is older than {oldest()}, the oldest version known")
    return known_versions()[index]


def position(version: str, among: Sequence[str]) -> int | None:
    """Index in `among` of the newest version not newer than `version`; None below the oldest."""
    wanted = parse(version)
    found = None
    for index, candidate in enumerate(among):
        if parse(candidate) > wanted:
            break
        found = index
    return found


def versions_in(spec: str) -> tuple[str, ...]:
    """Known versions in a range such as ">=0.8,<0.11"; a plain version is the one that stands for it."""
    text = spec.strip()
    if not text:
        return known_versions()
    if text[0].isdigit():
        return (nearest(text),)
    try:
        return tuple(ranges.within(text, known_versions()))
    except ValueError:
        raise UnknownVersionError(f"`{spec}` is neither a jax version nor a range of versions") from None
