"""Public names of jax that code uses, and the jax versions that have them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

    from pallas_lint.checker.context import Context
    from pallas_lint.compat import ApiHistory
    from pallas_lint.syntax.uses import Keyword, Use

PALLAS = "jax.experimental.pallas"


@frozen
class ApiName:
    """The part of a used name that is in jax's data: `pltpu.MemorySpace.ANY` of `pltpu.MemorySpace.ANY.value`."""

    use: Use
    name: str
    history: ApiHistory
    node: tree_sitter.Node
    spelled: str


@frozen
class KeywordHistory:
    """When a callable took a keyword, among the known versions."""

    accepted: tuple[str, ...]
    refused: tuple[str, ...]

    def status(self, version: str) -> str:
        """present, removed, not-yet or never."""
        if version in self.accepted:
            return "present"
        known = compat.known_versions()
        at = known.index(version)
        if any(other in self.accepted for other in known[:at]):
            return "removed"
        return "not-yet" if self.accepted else "never"

    def gone_since(self, version: str) -> str:
        """The release that took the keyword away before `version`."""
        known = compat.known_versions()
        before = [at for at, other in enumerate(known) if other in self.accepted and at < known.index(version)]
        return next((other for other in known[before[-1] + 1 :] if other in self.refused), version)


def prefixes(name: str) -> Iterator[str]:
    """A dotted name and all that it goes through, longest first."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def api_name(use: Use, *, called: bool = False) -> ApiName | None:
    """The known name that a use stands for; None for what no known jax has, and for what is not jax's.

    None also for names imported by themselves: the import is checked for those. With `called` they are included, for
    checks of their arguments.
    """
    found = _known_part(use.name, use.spelled, imported=use.imported, called=called)
    if found is None:
        return None
    name, history, beyond = found
    if not beyond or use.imported:
        return ApiName(use, name, history, use.node, use.spelled)
    return ApiName(use, name, history, use.without(beyond), use.spelled.rsplit(".", beyond)[0])


@functools.lru_cache(maxsize=8192)
def _known_part(name: str, spelled: str, *, imported: bool, called: bool) -> tuple[str, ApiHistory, int] | None:
    """The known name in a used one, and how many components of that are beyond it."""
    parts = name.split(".")
    if parts[0] != "jax":
        return None
    module = known_prefix(parts)
    if module == 0:
        return None
    # A member of an enum hangs on its class: `MemorySpace.ANY` may go where `MemorySpace` stays.
    for length in (module + 2, module + 1, module):
        if length > len(parts) or (length == module + 2 and not parts[-1].isupper()):
            continue
        known = ".".join(parts[:length])
        history = compat.api(known)
        if history is None:
            continue
        owner = compat.api(".".join(parts[: length - 1])) if length == module + 2 else None
        if owner is not None and owner.spans() == history.spans():
            continue  # the member went with its class
        beyond, written = len(parts) - length, spelled.count(".") + 1
        if imported:
            return known, history, beyond
        if beyond >= written:
            return None  # the alias itself stands for something below this name: its import is what counts
        if beyond == written - 1 and length > module and not (called and beyond == 0):
            return None  # a name that was imported by itself: the import is what counts
        return known, history, beyond
    return None


def known_prefix(parts: list[str]) -> int:
    """How many leading components name a module of jax; 0 if none do."""
    return _known_prefix(".".join(parts))


@functools.cache
def _known_prefix(name: str) -> int:
    while "." in name:
        if compat.known_module(name) or compat.is_module(name):
            return name.count(".") + 1
        name = name.rpartition(".")[0]
    return 1 if compat.known_module(name) else 0


def reached(name: ApiName, context: Context) -> tuple[str, ...]:
    """The checked versions in which the use is reached, and the module that it comes from exists.

    Where that module is missing, its import is what fails.
    """
    versions = context.analysis.guards.reached_in(name.use, context.versions)
    owner = name.name.rpartition(".")[0]
    if name.use.imported or not owner.startswith(f"{PALLAS}.") or known_prefix(owner.split(".")) < owner.count(".") + 1:
        return versions
    return tuple(version for version in versions if compat.module_exists(owner, version))


# What is not Pallas's own, but part of launches.
_IN_LAUNCHES = frozenset({"jax.ShapeDtypeStruct"})
# Further keywords of these go to a mesh, which has none of these fields.
_OF_ITS_OWN = {f"{PALLAS}.mosaic_gpu.kernel": frozenset(("out_shape", "out_type", "scratch_shapes", "scratch_types"))}


@functools.cache
def keyword_history(callable_: str, keyword: str) -> KeywordHistory:
    """Which known versions of a callable take a keyword, and which refuse it."""
    accepted: list[str] = []
    refused: list[str] = []
    for version in compat.known_versions():
        parameters = compat.parameters(callable_, version)
        if parameters is not None:
            taken = parameters.accepts(keyword)
            if keyword in _OF_ITS_OWN.get(callable_, ()):
                taken = keyword in parameters.names
            (accepted if taken else refused).append(version)
    return KeywordHistory(tuple(accepted), tuple(refused))


@functools.cache
def positions(callable_: str, version: str) -> int | None:
    """How many positional arguments a callable takes in a version; None where any number or not known."""
    parameters = compat.parameters(callable_, version)
    return None if parameters is None or parameters.accepts_more else len(parameters.positional)


def keywords(name: ApiName, context: Context) -> Iterator[tuple[Keyword, KeywordHistory, tuple[str, ...]]]:
    """The keywords that a Pallas callable is given, each with the checked versions that refuse it."""
    if not name.name.startswith(PALLAS) and name.name not in _IN_LAUNCHES:
        return
    if name.node.id != name.use.node.id or not name.use.keywords:
        return
    for keyword in name.use.keywords:
        history = keyword_history(name.name, keyword.name)
        if not any(version in history.refused for version in context.versions):
            continue
        failing = tuple(version for version in reached(name, context) if version in history.refused)
        if failing:
            yield keyword, history, failing


def because(context: Context, failing: tuple[str, ...]) -> str:
    """ "jax 0.9.2 is targeted", "0.9.0 to 0.12.0 are in the range", or that the newest is assumed."""
    if context.assumed:
        return f"jax {failing[-1]} is assumed"
    if len(context.jax.versions) == 1:
        return f"the target is jax {failing[0]}"
    return f"the range has jax {context.spelled_versions(failing)}"
