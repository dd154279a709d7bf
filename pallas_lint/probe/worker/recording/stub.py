"""Stubs for launches: zeros of the output shapes, so that a program runs without its device."""

from __future__ import annotations

from typing import Any


def zeros(params: dict[str, Any]) -> list[Any]:
    """What a launch bound with these parameters would return, all zeros; nothing where it writes refs."""
    return [_zeros(aval) for aval in params.get("out_avals") or ()]


def _zeros(aval: Any) -> Any:
    import jax

    found = jax.numpy.zeros(aval.shape, aval.dtype)
    axes = tuple(_varying(aval))
    if not axes:
        return found
    cast = getattr(jax.lax, "pcast", None)  # from 0.8 on; before, `pvary`
    return cast(found, axes, to="varying") if cast is not None else jax.lax.pvary(found, axes)


def _varying(aval: Any) -> Any:
    """The axes of a mesh along which a value varies under `shard_map`: its type must declare them."""
    manual = getattr(aval, "manual_axis_type", None)  # from 0.10 on; before, `vma`
    return sorted(manual.varying) if manual is not None else sorted(getattr(aval, "vma", None) or ())
