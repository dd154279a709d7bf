"""Arguments as text: types of arrays, small literals, and names of the project. Never values of arrays."""

from __future__ import annotations

import functools
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from ..inputs.arguments import short_name

PathOf = Callable[[str], "str | None"]  # how the project names a file; None where it is not the project's

_IDENTIFIER = re.compile(r"[^\W\d][\w.-]{0,63}")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_MAX_STRING = 64
_MAX_CHARACTERS = 2000  # characters of a value
_MAX_DEPTH = 4
_NOT_SPELLED = "..."  # stands for a part of a value that is left out
_PUBLIC = ("jax.numpy", "jax.nn", "jax.lax", "jax", "jax.experimental.pallas")


class Speller:
    """Writes values. `free`: floats and any short string too."""

    def __init__(self, path_of: PathOf, *, free: bool) -> None:
        self._path_of = path_of
        self._free = free

    def spelled(self, value: Any) -> str | None:
        """The value as text; None for what is left out."""
        try:
            text = self._spelled(value, 0)
        except Exception:  # values of the program's own classes may do anything when attributes are read
            return None
        return text if text is None or len(text) <= _MAX_CHARACTERS else None

    def _spelled(self, value: Any, depth: int) -> str | None:
        if value is None or type(value) in (bool, int):
            return repr(value)
        if type(value) is float:
            return repr(value) if self._free and abs(value) < float("inf") else None
        if type(value) is str:
            return repr(value) if self._may_be_written(value) else None
        if _is_array(value):
            return _array(value)
        if depth == _MAX_DEPTH:
            return None
        if type(value) in (list, tuple):
            return self._sequence(value, depth)
        if type(value) is dict:
            return self._pairs(value, depth)
        fields = _fields(value)
        if fields is not None:
            return self._object(value, fields, depth)
        return _dtype(value) or self._function(value)

    def _may_be_written(self, text: str) -> bool:
        """Names choose what a function does; anything else may be of this machine, or private."""
        if _IDENTIFIER.fullmatch(text):
            return True
        return self._free and len(text) <= _MAX_STRING and not {"/", "\\"} & set(text)

    def _sequence(self, values: Any, depth: int) -> str | None:
        items = [self._spelled(each, depth + 1) for each in values]
        if items and not any(items):
            return None
        inner = ", ".join(item or _NOT_SPELLED for item in items)
        return f"[{inner}]" if type(values) is list else f"({inner}{',' if len(items) == 1 else ''})"

    def _pairs(self, pairs: dict[Any, Any], depth: int) -> str | None:
        keys = [type(key) in (int, bool) or (type(key) is str and self._may_be_written(key)) for key in pairs]
        items = [self._spelled(each, depth + 1) for each in pairs.values()]
        if not all(keys) or (items and not any(items)):
            return None
        return "{" + ", ".join(f"{key!r}: {item or _NOT_SPELLED}" for key, item in zip(pairs, items)) + "}"

    def _object(self, value: Any, fields: list[str], depth: int) -> str | None:
        name = self._named(type(value))
        if name is None:
            return None
        items = ((each, self._spelled(getattr(value, each), depth + 1)) for each in fields if hasattr(value, each))
        return f"{name}({', '.join(f'{each}={item}' for each, item in items if item is not None)})"

    def _function(self, value: Any) -> str | None:
        if isinstance(value, (type, types.MethodType, functools.partial)) or not callable(value):
            return None
        name = self._named(value)
        return f"fn:{name}" if name is not None else None

    def _named(self, value: Any) -> str | None:
        """ "module:name" of what a name of a module leads to; modules of the project are given by their file."""
        home, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if not isinstance(home, str) or not isinstance(name, str) or not _NAME.fullmatch(name):
            return None
        if home.partition(".")[0] == "jax":
            for public in _PUBLIC:
                if getattr(sys.modules.get(public), name, None) is value:
                    return f"{public}:{name}"
        module = sys.modules.get(home)
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not value:
            return None
        path = self._path_of(getattr(module, "__file__", None) or "")
        return f"{path}:{name}" if path is not None else f"{home}:{name}" if home != "__main__" else None


def _fields(value: Any) -> list[str] | None:
    """The fields of a dataclass, a NamedTuple, an attrs class; None for anything else."""
    if isinstance(value, type):
        return None
    for marker in ("__dataclass_fields__", "_fields"):
        fields = getattr(type(value), marker, None)
        if fields is not None and (marker != "_fields" or isinstance(value, tuple)):
            return [str(name) for name in fields]
    attrs = getattr(type(value), "__attrs_attrs__", None)
    return None if attrs is None else [str(each.name) for each in attrs]


def _is_array(value: Any) -> bool:
    """Not so numbers of numpy's: host code decides with them, where an array would be traced."""
    import jax
    import numpy as np

    return isinstance(value, (jax.Array, jax.ShapeDtypeStruct)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _array(value: Any) -> str | None:
    """The type of an array as the function sees it: under vmap that of one example."""
    import jax

    aval = getattr(value, "aval", value)
    if hasattr(aval, "inner_aval") or not all(isinstance(size, int) for size in aval.shape):
        return None  # a ref, or with sizes that are known at run time only
    dtype = aval.dtype if aval is not value else _canonical(value.dtype)
    if dtype == jax.dtypes.float0:
        return None
    return f"{short_name(dtype)}[{','.join(map(str, aval.shape))}]"


def _canonical(dtype: Any) -> Any:
    """A dtype of numpy's as jax takes it: without 64-bit types where they are off."""
    import jax

    extended = getattr(jax.dtypes, "extended", None)
    if extended is not None and jax.dtypes.issubdtype(dtype, extended):
        return dtype
    return jax.dtypes.canonicalize_dtype(dtype)


def _dtype(value: Any) -> str | None:
    """`jnp.float32`, `np.float32` and `np.dtype("float32")` alike."""
    import numpy as np

    if isinstance(value, np.dtype):
        return f"dtype:{short_name(value)}"
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"dtype:{short_name(np.dtype(value))}"
    dtype = getattr(value, "dtype", None) if type(value).__name__ == "_ScalarMeta" else None
    return None if dtype is None else f"dtype:{short_name(dtype)}"


def relative_to(root: str) -> PathOf:
    """How a project in a folder names files."""
    real = os.path.realpath(root) + os.sep

    @functools.cache
    def path_of(file: str) -> str | None:
        if not file or file.startswith("<"):
            return None
        path = os.path.realpath(file)
        if not path.startswith(real):
            return None
        parts = path[len(real) :].split(os.sep)
        return None if {"site-packages", "dist-packages"} & set(parts) else "/".join(parts)

    return path_of
