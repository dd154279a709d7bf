"""Shared memory that a Mosaic GPU kernel needs, as jax adds it up.

Each buffer begins at a multiple of 1024 bytes, a barrier takes 8, the address of tensor memory 4. Of scopes that follow
each other the largest counts. A lower bound: reductions take some more.
"""

from __future__ import annotations

import math
from typing import Any

from ...protocol import MemoryPart, Needed
from ..device_traces.scopes import semaphore_kind
from ..launches.launch import Launch, equations, jaxprs_in, kernel_jaxpr

LIMIT = 232448  # bytes for one block of threads on Hopper and Blackwell
ALIGNED, BARRIER, ADDRESS = 1024, 8, 4


def needed(launch: Launch) -> Needed | None:
    """The sum of what is held at once where that is most; None for `pallas_call`, whose pipeline lowering makes."""
    if launch.backend != "mosaic_gpu" or launch.record.kind == "pallas_call":
        return None
    bodies = launch.record.params.get("jaxprs") or [kernel_jaxpr(launch.record.params)]
    parts = _most(bodies)
    if _has_tensor_memory(bodies):
        parts = [*parts, {"name": "address of tensor memory", "role": "scratch", "bytes": ADDRESS, "buffers": 1}]
    return {"space": "smem", "bytes": _sum(parts), "parts": parts}


def _most(jaxprs: list[Any]) -> list[MemoryPart]:
    """What the scopes in these hold at once, where that is most."""
    found: list[MemoryPart] = []
    for jaxpr in jaxprs:
        for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
            inner = jaxprs_in(equation)
            if inner:
                own = _own(inner[0]) if str(equation.primitive) == "run_scoped" else []
                found = max(found, [*own, *_most(inner)], key=_sum)
    return found


def _own(body: Any) -> list[MemoryPart]:
    """What a scope itself holds."""
    names = getattr(getattr(body, "debug_info", None), "arg_names", None) or ()
    parts: list[MemoryPart] = []
    for at, var in enumerate(body.invars):
        name = str(names[at]) if at < len(names) and names[at] else f"scratch {at}"
        inner = getattr(var.aval, "inner_aval", var.aval)
        number = math.prod(int(size) for size in getattr(inner, "shape", ()))
        space = _space(var.aval)
        if semaphore_kind(getattr(inner, "dtype", None), space) == "arrivals":
            parts.append({"name": name, "role": "scratch", "bytes": BARRIER, "buffers": number})
        elif space == "smem":
            held = number * _bits(inner.dtype) // 8
            parts.append({"name": name, "role": "scratch", "bytes": -(-held // ALIGNED) * ALIGNED, "buffers": 1})
    return parts


def _has_tensor_memory(jaxprs: list[Any]) -> bool:
    scopes = (inner for jaxpr in jaxprs for equation in equations(jaxpr) for inner in jaxprs_in(equation))
    return any(_space(var.aval) == "tmem" for scope in scopes for var in getattr(scope, "jaxpr", scope).invars)


def _space(aval: Any) -> str:
    return str(getattr(aval, "memory_space", "") or "").lower().rpartition(".")[2]


def _bits(dtype: Any) -> int:
    """Bits of one element; numpy has whole bytes."""
    import jax.numpy as jnp

    if jnp.issubdtype(dtype, jnp.bool_):
        return 8
    return int((jnp.finfo if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo)(dtype).bits)


def _sum(parts: list[MemoryPart]) -> int:
    return sum(part["bytes"] * part["buffers"] for part in parts)
