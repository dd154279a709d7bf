"""Lines of a kernel for compiler messages about operations that have no line.

Operations that jax's own functions are made of (`jnp.remainder`, `pltpu.sync_copy`) have a name in Mosaic's locations
and no source; those of SparseCores have neither, and index maps are functions of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from ...protocol import Place
from . import locate
from .launch import Launch, jaxprs_in, kernel_jaxpr

_NAMED = re.compile(r'loc\("(\w+):"\("[^"\n]*"\)\)')  # without a `callsite`
_RETURNED = re.compile(r"failed to legalize operation 'func\.return'.{0,400}\bi64\b")


def places(launch: Launch, error: BaseException) -> list[Place]:
    """Where the operation stands that a compiler refuses; empty where that is unknown."""
    text = "\n".join(map(str, locate.chain(error)))
    if _RETURNED.search(text):
        wide = (operand for operand in launch.operands if operand.mapping is not None and _is_wide(operand.mapping))
        return [place for operand in wide if (place := operand.index_map_place) is not None][:1]
    named, sliced = _NAMED.search(text), _sliced(text)
    if named is not None:
        found = [place for each, place, own in _placed(launch) if not own and str(each.primitive) == named[1]]
        return found[:1] if len({(place["file"], place["line"]) for place in found}) == 1 else []
    if sliced:
        # Compilers come to the first one first.
        return [place for each, place, _ in _placed(launch) if sliced <= _shapes(each) and not jaxprs_in(each)][:1]
    return []


def _sliced(text: str) -> set[tuple[int, ...]]:
    """The shapes of what is sliced and of the slice, where a compiler prints a slice of a ref."""
    line = text.partition('"tpu.memref_slice"')[2].partition("\n")[0]
    operands, _, result = line.rpartition(" : ")[2].partition(" -> ")
    types = [operands.partition("memref<")[2], result.partition("memref<")[2]]
    return {tuple(map(int, takewhile(str.isdigit, each.split("x")))) for each in types if each}


def _placed(launch: Launch) -> Iterator[tuple[Any, Place, bool]]:
    """The operations of a kernel, each with its place, or with that of what it is in; and whether it is its own."""
    for jaxpr in launch.record.params.get("jaxprs") or [kernel_jaxpr(launch.record.params)]:
        yield from _within(jaxpr, None)


def _within(jaxpr: Any, around: Place | None) -> Iterator[tuple[Any, Place, bool]]:
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns if jaxpr is not None else ():
        own = next(iter(locate.of_equation(equation)), None)
        place = own or around
        if place is not None:
            yield equation, place, own is not None
        for inner in jaxprs_in(equation):
            yield from _within(inner, place)


def _shapes(equation: Any) -> set[tuple[int, ...]]:
    variables = [*equation.invars, *equation.outvars]
    return {tuple(getattr(getattr(var, "aval", None), "shape", ())) for var in variables}


def _is_wide(mapping: Any) -> bool:
    """Whether an index map returns integers of 64 bits."""
    jaxpr = mapping.index_map_jaxpr
    return any(getattr(var.aval, "dtype", None) == "int64" for var in getattr(jaxpr, "jaxpr", jaxpr).outvars)
