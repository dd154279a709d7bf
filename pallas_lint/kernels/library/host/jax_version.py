"""Comparisons of jax's own version: `jax.__version_info__ >= (0, 8)` and its kin."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.model.values import CallResult, Const, External, Seq, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.tracer import Tracer


def compare_version(interp: Tracer, function: Callable[[Any, Any], bool], left: Value, right: Value) -> bool | None:
    """The outcome of comparing jax's version with a constant, where it is the same for every checked version."""
    if not interp.versions:
        return None
    for subject, other, flipped in ((left, right, False), (right, left, True)):
        if not _is_jax_version(subject):
            continue
        wanted = _version_tuple(other)
        if wanted is None:
            return None
        outcomes = set()
        for version in interp.versions:
            current = tuple(int(part) for part in version.split(".")[:3])
            wide = (*current, 0, 0, 0)[: max(len(wanted), 3)]
            pair = (wanted, wide) if flipped else (wide, wanted)
            outcomes.add(bool(function(*pair)))
        return outcomes.pop() if len(outcomes) == 1 else None
    return None


def _is_jax_version(value: Value) -> bool:
    if isinstance(value, External):
        return value.name in (
            "jax.__version_info__",
            "jax.__version__",
            "jax.version.__version_info__",
            "jax.version.__version__",
        )
    if isinstance(value, CallResult) and value.function in ("packaging.version.parse", "packaging.version.Version"):
        return bool(value.args) and _is_jax_version(value.args[0])
    return False


def _version_tuple(value: Value) -> tuple[int, ...] | None:
    if isinstance(value, CallResult) and value.function.startswith("packaging.version.") and value.args:
        return _version_tuple(value.args[0])
    if isinstance(value, Const) and isinstance(value.value, str):
        numbers = re.findall(r"\d+", value.value)[:3]
        return tuple(int(number) for number in (*numbers, "0", "0")[:3]) if numbers else None
    if isinstance(value, Seq) and not value.open and all(isinstance(item, Const) for item in value.items):
        parts = [item.value for item in value.items if isinstance(item, Const)]
        return tuple(parts) if all(isinstance(part, int) for part in parts) else None
    return None
