"""Primitives that each backend can lower, from the backends' own registries."""

from __future__ import annotations

import functools
from typing import Literal

from pallas_lint.compat import tables
from pallas_lint.compat.versions import known_versions, nearest

Backend = Literal["tpu", "triton", "mosaic_gpu"]

# Registry of a backend when the caller names no core.
_DEFAULT_CORE = {"tpu": "tc", "triton": "", "mosaic_gpu": "lane"}
# jax renamed these; a rule for either name is a rule for both.
_RENAMED = {"pjit": "jit", "jit": "pjit", "mesh_cast": "reshard", "reshard": "mesh_cast"}


@functools.cache
def _masks(registry: str) -> dict[str, int]:
    groups: list[tuple[str, str]] = tables.primitives()["registries"].get(registry, [])
    return {name: int(mask, 16) for mask, names in groups for name in names.split()}


def cores(backend: str) -> tuple[str, ...]:
    """Cores (TPU) or lowering semantics (Mosaic GPU) with a registry of their own."""
    prefix = backend + "."
    registries = tables.primitives()["registries"]
    return tuple(name[len(prefix) :] for name in registries if name.startswith(prefix))


def known_primitive(name: str) -> bool:
    """Whether any registry of any version names this primitive."""
    return any(name in _masks(registry) for registry in tables.primitives()["registries"])


def primitive_names() -> tuple[str, ...]:
    """Every primitive that some registry of some version names."""
    return tuple(sorted({name for registry in tables.primitives()["registries"] for name in _masks(registry)}))


def _mask(primitive: str, backend: str, core: str | None) -> tuple[int, int]:
    registry = f"{backend}.{_DEFAULT_CORE.get(backend, '') if core is None else core}"
    masks = _masks(registry)
    held = masks.get(primitive, 0)
    if primitive in _RENAMED:
        held |= masks.get(_RENAMED[primitive], 0)
    exists = int(tables.primitives()["exists"].get(registry, "0"), 16)
    return held, exists


def primitive_supported(primitive: str, backend: str, version: str, core: str | None = None) -> bool | None:
    """Whether this backend has a lowering rule for the primitive; None where there is no such registry.

    A missing rule is certain to fail; one that is there may still refuse shapes and dtypes.
    """
    index = known_versions().index(nearest(version))
    held, exists = _mask(primitive, backend, core)
    if not exists >> index & 1:
        return None
    return bool(held >> index & 1)


def primitive_since(primitive: str, backend: str, core: str | None = None) -> str | None:
    """First version of the stretch up to the newest in which the rule is there; None if it is not."""
    versions = known_versions()
    held, _ = _mask(primitive, backend, core)
    if not held >> (len(versions) - 1) & 1:
        return None
    index = len(versions) - 1
    while index and held >> (index - 1) & 1:
        index -= 1
    return versions[index]
