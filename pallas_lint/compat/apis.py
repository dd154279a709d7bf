"""Public names and parameters of jax by version."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal

from pallas_lint.compat import histories, tables
from pallas_lint.compat.versions import known_versions, nearest
from pallas_lint.records import field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

ApiStatus = Literal["present", "deprecated", "removed", "not-yet"]

_MARKS = {"/": "positional", "=": "keyword", "*": "positionals", "**": "keywords", "": "either"}


@frozen
class ApiHistory:
    """When one public name came, was deprecated and went."""

    name: str
    """Canonical name, such as `jax.experimental.pallas.load`."""
    added: str
    """First known version that has it; with `since_first` it may be older still."""
    deprecated: str | None
    """First known version that calls it deprecated."""
    removed: str | None
    """First version without it after the last that had it; None while the newest has it."""
    message: str | None
    """jax's own text on the deprecation or removal."""
    _present_mask: int = field(repr=False)
    _deprecated_mask: int = field(repr=False, default=0)

    @property
    def since_first(self) -> bool:
        """Whether the oldest known version has it already."""
        return bool(self._present_mask & 1)

    def present_in(self, version: str) -> bool:
        """Whether the name can be used in this version."""
        return bool(self._present_mask >> _index(version) & 1)

    def status(self, version: str) -> ApiStatus:
        """The state of the name in this version; gaps in its history count as removed."""
        index = _index(version)
        if self._present_mask >> index & 1:
            return "deprecated" if self._deprecated_mask >> index & 1 else "present"
        return "removed" if self._present_mask & ((1 << index) - 1) else "not-yet"

    def spans(self) -> tuple[tuple[str, str | None], ...]:
        """Stretches of versions that have the name: first, and first without it (None: still there)."""
        versions = known_versions()
        spans: list[tuple[str, str | None]] = []
        start: str | None = None
        for index, version in enumerate(versions):
            here = bool(self._present_mask >> index & 1)
            if here and start is None:
                start = version
            elif not here and start is not None:
                spans.append((start, version))
                start = None
        if start is not None:
            spans.append((start, None))
        return tuple(spans)


@frozen
class ApiParameters:
    """Parameters of one callable in one version, in order."""

    names: tuple[str, ...]
    """Every parameter that has a name of its own, in order."""
    required: frozenset[str]
    """Those that must be given."""
    keyword_only: frozenset[str]
    """Those that cannot be given by position."""
    positional_only: frozenset[str]
    """Those that cannot be given by name."""
    accepts_any: bool
    """Whether any further keyword is taken (`**kwargs`)."""
    accepts_more: bool
    """Whether any further positional argument is taken (`*args`)."""

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that can be passed by position, in order."""
        return tuple(name for name in self.names if name not in self.keyword_only)

    def accepts(self, keyword: str) -> bool:
        """Whether the callable takes this keyword."""
        return self.accepts_any or (keyword in self.names and keyword not in self.positional_only)


def _index(version: str) -> int:
    return known_versions().index(nearest(version))


@functools.cache
def _masks(kind: Literal["names", "members"], owner: str) -> dict[str, int]:
    groups: list[tuple[str, str]] = tables.apis()[kind].get(owner, [])
    return {name: int(mask, 16) for mask, names in groups for name in names.split()}


def _mask(name: str) -> int:
    modules: dict[str, str] = tables.apis()["modules"]
    if name in modules:
        return int(modules[name], 16)
    owner, _, attribute = name.rpartition(".")
    mask = _masks("names", owner).get(attribute, 0)
    return mask or _masks("members", owner).get(attribute, 0)


def available(name: str, versions: Iterable[str]) -> bool:
    """Whether all of the versions have a public name."""
    history = api(name)
    return history is not None and all(history.present_in(version) for version in versions)


@functools.cache
def api(name: str) -> ApiHistory | None:
    """History of a public name, a module or a member of a class; None if no known version has it."""
    mask = _mask(name)
    if not mask:
        return None
    data = tables.apis()
    deprecated_mask, message = 0, None
    entry = data["deprecated"].get(name)
    if entry is not None:
        deprecated_mask, message = int(entry[0], 16), data["messages"][entry[1]]
    elif name in data["gone"]:
        message = data["messages"][data["gone"][name]]
    versions = known_versions()
    last = mask.bit_length() - 1
    return ApiHistory(
        name,
        versions[_lowest(mask)],
        versions[_lowest(deprecated_mask)] if deprecated_mask else None,
        versions[last + 1] if last + 1 < len(versions) else None,
        message,
        mask,
        deprecated_mask,
    )


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def known_module(name: str) -> bool:
    """Whether the public names of this module are in the data, so that an unknown one is a mistake."""
    return name in tables.apis()["names"]


def is_module(name: str) -> bool:
    """Whether the module can be imported in any known version."""
    return name in tables.apis()["modules"]


def module_exists(name: str, version: str) -> bool:
    """Whether the module can be imported in this version."""
    mask = tables.apis()["modules"].get(name)
    return mask is not None and bool(int(mask, 16) >> _index(version) & 1)


@functools.cache
def names_in(module: str, version: str) -> frozenset[str]:
    """Public names of a module (or members of a class) in this version."""
    index = _index(version)
    masks = _masks("names", module) or _masks("members", module)
    return frozenset(name for name, mask in masks.items() if mask >> index & 1)


@functools.cache
def parameters(name: str, version: str) -> ApiParameters | None:
    """Parameters of a callable in this version; None where it is absent or has no signature."""
    index = _index(version)
    found = histories.at(tables.parameters().get(name), index)
    if found is None or not _mask(name) >> index & 1:
        return None
    names: list[str] = []
    groups: dict[str, set[str]] = {mark: set() for mark in (*_MARKS.values(), "required")}
    for item in found.split():
        stem = item.rstrip("/=*")
        label = stem.rstrip("?")
        mark = _MARKS[item[len(stem) :]]
        groups[mark].add(label)
        if mark in ("positionals", "keywords"):
            continue
        names.append(label)
        if not stem.endswith("?"):
            groups["required"].add(label)
    return ApiParameters(
        tuple(names),
        frozenset(groups["required"]),
        frozenset(groups["keyword"]),
        frozenset(groups["positional"]),
        bool(groups["keywords"]),
        bool(groups["positionals"]),
    )


def nearest_names(module: str, wrong_name: str, version: str) -> tuple[str, ...]:
    """Up to three public names of the module that look like the wrong one, the likeliest first."""
    import difflib

    present = names_in(module, version)
    by_lower = {name.lower(): name for name in sorted(present)}
    close = difflib.get_close_matches(wrong_name.lower(), by_lower, n=3, cutoff=0.6)
    return tuple(by_lower[name] for name in close)
