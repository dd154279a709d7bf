"""TOML, which several ask for of the same file."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError


@lru_cache(maxsize=8)
def loads(text: str) -> dict[str, Any]:
    """The document, which nobody changes. Raises TOMLDecodeError; at Python's limits ValueError or RecursionError."""
    return tomllib.loads(text)
