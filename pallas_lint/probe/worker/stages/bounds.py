"""Decides whether checkify has anything to look for in a kernel, for which it compiles the kernel once more.

Most kernels take whole blocks, or parts at indices known from the text. Of the others, jax's TPU interpreter is
watched: as long as nothing that it reads or writes leaves its buffer, checkify finds nothing, either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .. import environment
from ..launches.launch import Launch, equations, jaxprs_in, kernel_jaxpr
from .grid import EvaluatedGrid

_INDEXED = ("dynamic_slice", "dynamic_update_slice", "gather", "check")  # and "scatter", "scatter-add", …
# Operations on references, with the number of their operands where all indices are known.
_ACCESSES = {"get": 1, "swap": 2, "addupdate": 2}
_METHODS = ("get_buffer_content", "store_buffer_content", "swap_buffer_content")


def looks(launch: Launch) -> bool:
    """Whether the kernel indexes values, or has checks of its own, which no interpreter judges but checkify."""
    return any(name in _INDEXED or name.startswith("scatter") for name in launch.primitives)


def known(launch: Launch, grid: EvaluatedGrid | None) -> bool:
    """Whether all blocks lie in their arrays, and all that the kernel reads and writes in its blocks."""
    if grid is None or grid.unknown or any(each["kind"] == "out-of-range" for each in grid.problems()):
        return False
    kinds = {kind for operand in launch.operands for kind, _ in operand.block or ()}
    jaxpr = kernel_jaxpr(launch.record.params)
    if jaxpr is None or "element" in kinds or any(operand.role == "prefetch" for operand in launch.operands):
        return False
    return all(map(_at_a_known_place, equations(jaxpr)))


def _at_a_known_place(equation: Any) -> bool:
    """Whether the operation touches no reference, or a part of one at a place that was known when it was traced."""
    if jaxprs_in(equation) or not any(hasattr(each.aval, "inner_aval") for each in equation.invars):
        return True
    count = _ACCESSES.get(str(equation.primitive))
    return count is not None and all(hasattr(index, "val") for index in equation.invars[count:])


@dataclass
class Accesses:
    """`inside`: whether all were certainly within their buffers, as far as they could be watched."""

    inside: bool


@contextlib.contextmanager
def watched() -> Iterator[Accesses]:
    """Context in which what the TPU interpreter reads and writes is watched."""
    module = environment.optional("jax._src.pallas.mosaic.interpret.shared_memory")
    memory: Any = getattr(module, "SharedMemory", None)
    originals = {name: getattr(memory, name, None) for name in _METHODS}
    seen = Accesses(None not in originals.values())
    if not seen.inside:
        yield seen
        return
    for name, original in originals.items():
        setattr(memory, name, _watching(original, seen))
    try:
        yield seen
    finally:
        for name, original in originals.items():
            setattr(memory, name, original)


def _watching(original: Any, seen: Accesses) -> Callable[..., Any]:
    def access(memory: Any, key: Any, where: Any, *others: Any, **named: Any) -> Any:
        if seen.inside:
            with contextlib.suppress(Exception):
                seen.inside = False
                seen.inside = all(map(_is_inside, where, memory.mem[key].logical_shape))
        return original(memory, key, where, *others, **named)

    return access


def _is_inside(where: Any, size: int) -> bool:
    if isinstance(where, slice):
        return bool(where.start >= 0 and where.stop <= size)
    return bool(0 <= where < size)
