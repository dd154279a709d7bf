"""A digest of everything that the verdict on a launch rests on, so that the same one need not be examined again.

That is the kernel with the places of its operations, the parameters and known operands of the launch, jax's settings
and the packages that judge it. Where something has a type of which this module does not know how to write it down,
there is no digest.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Mapping
from typing import Any

from . import environment
from .launches.recorder import Record

# Their text has all that they are.
_BY_TEXT = {
    "PyTreeDef", "ShapedArray", "AbstractRef", "AbstractMemRef", "AbstractSemaphore", "ShapeDtypeStruct", "float32",
    "SemaphoreType", "Primitive", "type", "dtype", "DebugInfo", "NameAndSrcInfo",
}  # fmt: skip
_JUDGES = ("jax", "jaxlib", "libtpu", "libtpu-nightly", "numpy", "ml_dtypes", "jax-cuda12-plugin", "jax-cuda13-plugin")


class _Unknown(Exception):
    """Something that this module cannot write down."""


def of(record: Record) -> str | None:
    """The digest of a launch; None where there is none."""
    if record.axes:
        return None  # what is around it matters, too
    try:
        written = [_packages(), _settings(), _written(record)]
    except _Unknown:
        return None
    text = "\n".join(written)
    return None if " at 0x" in text else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _packages() -> str:
    """The installed packages that judge it. Raises _Unknown where jax is a checkout under development."""
    import jax

    file = os.path.abspath(jax.__file__ or "")
    if not {"site-packages", "dist-packages"} & set(file.split(os.sep)):
        raise _Unknown
    found = [f"{file} {os.stat(file).st_mtime_ns}", sys.version]
    for name in _JUDGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return " ".join(found)


def _settings() -> str:
    import jax

    return repr(sorted((name, repr(value)) for name, value in jax.config.values.items()))


def _written(value: Any) -> str:
    """A value as text that differs where the value does. Raises _Unknown."""
    import numpy as np

    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(map(_written, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{_written(key)}:{_written(each)}' for key, each in value.items()))}}}"
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.hasobject:
            raise _Unknown
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if hasattr(value, "eqns"):  # by itself, or closed over constants
        constants = map(_array, getattr(value, "consts", ()))
        return f"{_jaxpr(getattr(value, 'jaxpr', value))} with {_written(list(constants))}"
    if not _BY_TEXT.isdisjoint(each.__name__ for each in type(value).__mro__):
        return repr(value)
    if dataclasses.is_dataclass(value):
        parts = (f"{each.name}={_written(getattr(value, each.name))}" for each in dataclasses.fields(value))
        return f"{type(value).__name__}({','.join(parts)})"
    effects = environment.optional("jax._src.effects")
    if effects is not None and isinstance(value, effects.Effect):
        return repr(value)
    raise _Unknown


def _array(value: Any) -> Any:
    import numpy as np

    return np.asarray(value) if hasattr(value, "dtype") and hasattr(value, "shape") else value


def _jaxpr(jaxpr: Any) -> str:
    numbers: dict[Any, int] = {}

    def name(atom: Any) -> str:
        if hasattr(atom, "val"):
            return f"{_written(_array(atom.val))}:{atom.aval!r}"
        return f"{numbers.setdefault(atom, len(numbers))}:{atom.aval!r}"

    lines = [" ".join(map(name, (*jaxpr.constvars, *jaxpr.invars)))]
    for equation in jaxpr.eqns:
        ins, outs = " ".join(map(name, equation.invars)), " ".join(map(name, equation.outvars))
        at = str(equation.source_info.traceback), str(equation.source_info.name_stack)
        lines.append(f"{outs} = {equation.primitive} {ins} {_written(equation.params)} {at}")
    return "\n".join((*lines, " ".join(map(name, jaxpr.outvars))))
