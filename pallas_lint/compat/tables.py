"""The packed data files, loaded lazily and once."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pallas_lint.compat.cells import CellTable

DATA = Path(__file__).parent / "data"


def _packed(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_decompressed(f"{name}.json.gz"))
    return content


def _decompressed(name: str) -> bytes:
    import zlib  # gzip also handles streams, and imports a dozen modules for them

    return zlib.decompress((DATA / name).read_bytes(), zlib.MAX_WBITS | 16)


@functools.cache
def versions() -> dict[str, Any]:
    """Known and measured versions, and what they were measured with."""
    content: dict[str, Any] = json.loads((DATA / "versions.json").read_text(encoding="utf-8"))
    return content


@functools.cache
def apis() -> dict[str, Any]:
    """Public names by module, as bit masks over the known versions."""
    return _packed("apis")


@functools.cache
def parameters() -> dict[str, Any]:
    """Parameters of callables, by the version from which they hold."""
    return _packed("parameters")


@functools.cache
def functions() -> dict[str, Any]:
    """Measured functions with their variants, outcomes of lowering and compiling, and what `cells` is made of."""
    return _packed("functions")


@functools.cache
def cells() -> CellTable:
    """Outcome numbers by variant, target, version and dtype."""
    from pallas_lint.compat.cells import CellTable

    return CellTable(functions(), _decompressed("cells.bin.gz"))


@functools.cache
def ingredients() -> dict[str, Any]:
    """Primitives that each function is made of, by the version from which that holds."""
    return _packed("ingredients")


@functools.cache
def primitives() -> dict[str, Any]:
    """Lowering registries, as bit masks over the known versions."""
    return _packed("primitives")


@functools.cache
def operations() -> dict[str, Any]:
    """Failing operations, by version, TPU device or backend of GPUs, outcome and operation: dtypes in a row."""
    return _packed("operations")


@functools.cache
def advice() -> dict[str, Any]:
    """Replacements of old names and substitutes of unsupported functions, both written by hand."""
    replacements = json.loads((DATA / "replacements.json").read_text(encoding="utf-8"))
    substitutes = json.loads((DATA / "substitutes.json").read_text(encoding="utf-8"))
    return {"replacements": replacements["rows"], "substitutes": substitutes["rows"]}
