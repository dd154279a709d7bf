"""Fillings of uninitialised memory in jax's interpreters: zeros instead of NaN, or NaN in one buffer only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import environment
from ..launches.launch import Launch, Operand

_MODULES = ("primitives", "core", "hlo_interpreter", "pallas_call", "helpers")
_IN_PLACE = ("any", "hbm", "semaphore", "host")  # memory spaces of operands that get no buffer of their own


class Unfilled(Exception):
    """This jax does not let single buffers be filled."""


@contextlib.contextmanager
def zeros_in_interpret_mode() -> Iterator[None]:
    """Context in which `interpret=True` begins with zeros. Raises Unfilled."""
    import jax
    import jax.numpy as jnp

    modules = [environment.optional(f"jax._src.pallas.{name}") for name in _MODULES]
    original = getattr(modules[0], "uninitialized_value", None)
    if original is None:
        raise Unfilled
    users: list[Any] = [module for module in modules if getattr(module, "uninitialized_value", None) is original]
    jax.clear_caches()
    for module in users:
        module.uninitialized_value = lambda shape, dtype: jnp.zeros(shape, dtype)
    try:
        yield
    finally:
        for module in users:
            module.uninitialized_value = original
        jax.clear_caches()


@contextlib.contextmanager
def zeros(launch: Launch, poisoned: Operand | None = None) -> Iterator[None]:
    """Context in which a launch that was compiled for the TPU interpreter with NaN in its memory finds zeros there.

    In the buffers of an operand that is `poisoned`, NaN stays. Raises Unfilled; where the interpreter's buffers are not
    those that are expected, the launch fails.
    """
    module = environment.optional("jax._src.pallas.mosaic.interpret.shared_memory")
    memory: Any = getattr(module, "SharedMemory", None)
    original = getattr(memory, "allocate_buffer", None)
    if original is None or launch.record.kind != "pallas_call":
        raise Unfilled
    buffers = _buffers(launch)
    first: list[int] = []

    def allocate_buffer(memory: Any, key: Any, *others: Any, value: Any, **named: Any) -> Any:
        first.append(key[1])  # each core counts its own, from the same number on
        number = key[1] - first[0]
        value = _filled(value, buffers[number] if number < len(buffers) else _OF_A_SCOPE, poisoned)
        return original(memory, key, *others, value=value, **named)

    memory.allocate_buffer = allocate_buffer
    try:
        yield
    finally:
        memory.allocate_buffer = original


class _Buffer(NamedTuple):
    """What an interpreter's buffer is for; `given`: it begins with what the launch is given, in this shape."""

    operand: Operand | None = None
    shape: tuple[int, ...] = ()
    given: bool = False


_OF_A_SCOPE = _Buffer()


def _filled(value: Any, buffer: _Buffer, poisoned: Operand | None) -> Any:
    """The first contents of a buffer: what is around that which is given is padding."""
    import numpy as np

    if buffer.operand is not None and np.ndim(value) != len(buffer.shape):
        raise Unfilled
    if buffer.operand is not None and buffer.operand is poisoned and not buffer.given:
        return value
    filled = np.zeros_like(value)
    if buffer.given:
        part = tuple(map(slice, buffer.shape))
        filled[part] = value[part]
    return filled


def _buffers(launch: Launch) -> list[_Buffer]:
    """The buffers that the interpreter makes before it begins, in its order: arrays, then blocks."""

    def arrays(role: str) -> list[Operand]:
        return [each for each in launch.operands if each.role == role]

    own = [each for each in arrays("out") if each.index not in launch.aliases.values()]
    blocks = [
        operand for operand in launch.operands if operand.role != "prefetch" and operand.memory_space not in _IN_PLACE
    ]
    return [
        *(_Buffer(each, each.shape, given=True) for each in arrays("in")),
        *(_Buffer(each, each.shape) for each in own),
        *(_Buffer(each, each.shape, given=True) for each in arrays("prefetch")),
        *(_Buffer(each, each.block_shape) for each in blocks),
    ]


def read_before_written(
    launch: Launch, run: Callable[[Operand], list[Any]], shows: Callable[[list[Any]], bool]
) -> list[Operand]:
    """The outputs and scratch whose first contents `shows` finds in the results; empty where that is not known.

    `run` gives the launch's results where only memory of that operand holds NaN, or the largest integer.
    """
    read = [each for each in launch.operands if each.role in ("out", "scratch") and each.name in launch.reads]
    try:
        return [operand for operand in read if shows(run(operand))]
    except Exception:
        return []
