"""Functions that the probed one is compared with, by their dotted names in its module."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from . import refusals


class NotThere(Exception):
    """No function has that name; the message is the part of it that is not there, and what may be meant."""


def named(dotted: str, module: Any) -> Any:
    """The function of a name as the module's code would write it ("plain", "jnp.dot").

    A package that the module does not import may begin it ("jax.lax.ragged_dot"). Raises NotThere.
    """
    value, so_far = module, ""
    for part in dotted.split("."):
        so_far = f"{so_far}.{part}" if so_far else part
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        if value is not module and not inspect.ismodule(value):
            raise NotThere(_missing(part, so_far, value))
        try:
            value = importlib.import_module(so_far)
        except ImportError:
            raise NotThere(_missing(part, so_far, value)) from None
    if not callable(value):
        raise NotThere("it is not a function")
    return value


def _missing(part: str, so_far: str, owner: Any) -> str:
    names = [name for name in dir(owner) if not name.startswith("_")]
    before = so_far.rpartition(".")[0]
    where = f"`{before}` has no" if before else "there is no"
    return f"{where} `{part}`{refusals.suggestion(part, names)}"
