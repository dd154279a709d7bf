"""Validation of JSON against TypedDicts.

Shared with the worker, as `protocol` is: nothing but the standard library, and nothing that Python 3.10 lacks.
"""

from __future__ import annotations

import json
import types
import typing
from functools import cache
from typing import Any, Literal, Union


class ProtocolError(ValueError):
    """A message that cannot be understood; the text is one sentence."""


def type_mismatch(value: Any, kind: Any, where: str = "") -> str | None:
    """What keeps a value of JSON from being of a type, in a few words; None where nothing does."""
    if kind is Any:
        return None
    origin, inner = _parts_of(kind)
    if origin is dict and isinstance(inner, dict):
        return _table_mismatch(value, kind, inner, where)
    if origin is Union:
        return None if any(type_mismatch(value, each) is None for each in inner) else _unlike(value, where)
    if origin is Literal:
        return None if value in inner else _unlike(value, where)
    if origin in (list, dict):
        if not isinstance(value, origin):
            return _unlike(value, where)
        items = value.items() if origin is dict else enumerate(value)
        of = inner[-1]
        if of is int and all(type(each) is int for _, each in items):  # pictures have many of them
            return None
        return next((wrong for at, each in items if (wrong := type_mismatch(each, of, f"{where}.{at}"))), None)
    if origin is tuple:
        if not isinstance(value, list) or len(value) != len(inner):
            return _unlike(value, where)
        found = (
            type_mismatch(each, of, f"{where}.{at}") for at, (each, of) in enumerate(zip(value, inner, strict=True))
        )
        return next((wrong for wrong in found if wrong), None)
    of_kind = isinstance(value, (int, float) if kind is float else kind)
    # A truth value is an integer to Python, but not in JSON.
    return None if of_kind and (kind is bool or not isinstance(value, bool)) else _unlike(value, where)


def _table_mismatch(value: Any, kind: Any, fields: dict[str, Any], where: str) -> str | None:
    if not isinstance(value, dict):
        return _unlike(value, where)
    missing = sorted(kind.__required_keys__ - value.keys())
    if missing:
        return f"`{f'{where}.{missing[0]}'.lstrip('.')}` is missing"
    found = (type_mismatch(value[name], of, f"{where}.{name}") for name, of in fields.items() if name in value)
    return next((wrong for wrong in found if wrong), None)


def _unlike(value: Any, where: str) -> str:
    try:
        shown = json.dumps(value)[:80]
    except RecursionError:
        shown = "nested too deeply"
    return f"`{where.lstrip('.') or 'it'}` is {shown}"


@cache
def _parts_of(kind: Any) -> tuple[Any, Any]:
    """What a type is made of: (its kind, its arguments or fields)."""
    if hasattr(kind, "__required_keys__"):
        return dict, typing.get_type_hints(kind)
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        return Union, typing.get_args(kind)
    return origin, typing.get_args(kind)


def read_as(line: str | bytes, kind: Any, what: str) -> Any:
    """The message of one kind on a line. Raises ProtocolError."""
    return checked(json_object(line), kind, what)


def json_object(line: str | bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):  # not UTF-8 either
        message = None
    if not isinstance(message, dict):
        shown = line if isinstance(line, str) else line.decode("utf-8", "replace")
        raise ProtocolError(f"no message: {shown!r:.80}")
    return message


def checked(message: dict[str, Any], kind: Any, what: str) -> Any:
    wrong = type_mismatch(message, kind)
    if wrong is not None:
        raise ProtocolError(f"{what}: {wrong}")
    return message
