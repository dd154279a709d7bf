"""Memory that a launch or a scope has."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from ...interleaving.events import Kind
from ..launches.names import readable
from .references import UNKNOWN, Buffer
from .unroller import Home, Unroller, address

MAX_VALUES = 65_536  # of a buffer owner integers are followed


def allocate(aval: Any, key: Hashable, name: str, home: Home, *, on_gpu: bool = False, shared: bool = False) -> Buffer:
    """A buffer of this type of reference. `shared`: between the lines of a device."""
    import numpy as np

    inner = getattr(aval, "inner_aval", aval)
    dtype = getattr(inner, "dtype", None)
    shape = tuple(int(size) for size in getattr(inner, "shape", ()))
    space = str(getattr(aval, "memory_space", "") or "").lower().rpartition(".")[2]
    semaphore = semaphore_kind(dtype, space)
    values = None
    if on_gpu:
        space = space or "gmem"
        shared = shared or space == "gmem"
    elif semaphore is None and "smem" in space and math.prod(shape) <= MAX_VALUES:
        values = np.full(shape, UNKNOWN, object)
    itemsize = int(getattr(dtype, "itemsize", 1) or 1)
    owner = home.device if shared or space in ("any", "hbm") else home.line
    barrier = dtype if semaphore == "arrivals" else None
    return Buffer(key, name, shape, itemsize, space, semaphore, owner, values, barrier=barrier)


def scoped(run: Unroller, equation: Any, body: Any, *, shared: bool = False) -> list[Buffer]:
    """The buffers that an operation makes for the jaxpr in it. Entered again, it has the memory that it had."""
    given_names = [str(name) for name in getattr(getattr(body, "debug_info", None), "arg_names", None) or ()]
    names = [readable(name, var.aval) for name, var in zip(given_names, body.invars)]
    made, number = [], address(equation)
    run.entered[number] += 1
    for at, var in enumerate(body.invars):
        key = ("scope", number, at)
        name = run.scopes.setdefault(key[1:], _name(names, at, set(run.scopes.values())))
        buffer = allocate(var.aval, key, name, run.home, on_gpu=run.work is not None, shared=shared)
        buffer.entry = run.entered[number] - 1
        made.append(buffer)
    return made


def _name(names: list[str], at: int, taken: set[str]) -> str:
    name = names[at] if at < len(names) and names[at] else f"scratch{at}"
    number = 2
    wanted = name
    while wanted in taken:
        wanted, number = f"{name} ({number})", number + 1
    return wanted


def semaphore_kind(dtype: Any, space: str) -> Kind | None:
    """Which kind of semaphore a reference is to; None for data."""
    text = str(dtype).lower()
    if text in ("barrier", "cluster_barrier"):  # of a Mosaic GPU kernel
        return "arrivals"
    if "sem" not in text and "sem" not in space:
        return None
    return "dma" if "dma" in text else "barrier" if "barrier" in text else "regular"
