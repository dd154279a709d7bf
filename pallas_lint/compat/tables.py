"""The packed data files, loaded lazily and once."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def _packed(name: str) -> dict[str, Any]:
    import zlib  # gzip also handles streams, and imports a dozen modules for them

    packed = (DATA / f"{name}.json.gz").read_bytes()
    content: dict[str, Any] = json.loads(zlib.decompress(packed, zlib.MAX_WBITS | 16))
    return content


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
    """Outcomes of lowering and compiling, by function, variant, target, version and dtype.

    Rows of numbers are text, which makes few objects: one is parsed when it is needed.
    """
    return _packed("functions")


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
    """Failing operations, by version, TPU device, outcome and operation: dtypes in a row."""
    return _packed("operations")


@functools.cache
def advice() -> dict[str, Any]:
    """Replacements of old names and substitutes of unsupported functions, both written by hand."""
    replacements = json.loads((DATA / "replacements.json").read_text(encoding="utf-8"))
    substitutes = json.loads((DATA / "substitutes.json").read_text(encoding="utf-8"))
    return {"replacements": replacements["rows"], "substitutes": substitutes["rows"]}
