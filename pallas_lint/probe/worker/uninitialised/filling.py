"""What jax's interpreters find in memory that nobody wrote: zeros instead of NaN, or NaN in one buffer only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

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
def nan_only_in(launch: Launch, poisoned: Operand) -> Iterator[None]:
    """Context in which the TPU interpreter puts NaN, or the largest integer, into one operand's buffers only.

    Raises Unfilled, also from within where the interpreter's buffers are not those that are expected.
    """
    utils: Any = environment.optional("jax._src.pallas.mosaic.interpret.utils")
    original = getattr(utils, "get_uninitialized_array", None)
    if original is None:
        raise Unfilled
    utils.get_uninitialized_array = _fill(original, _buffers(launch), poisoned)
    try:
        yield
    finally:
        utils.get_uninitialized_array = original


def _fill(original: Callable[..., Any], buffers: list[tuple[Operand, tuple[int, ...]]], poisoned: Operand) -> Any:
    """jax's function that makes a buffer, which is called for each buffer of a launch in order."""
    coming = iter(buffers)

    def make(shape: tuple[int, ...], dtype: Any, memory: str) -> Any:
        if not shape:  # a value to pad with
            return original(shape, dtype, "zero")
        operand, expected = next(coming, (None, shape))  # then come those of scopes in the kernel
        if tuple(shape) != expected:
            raise Unfilled
        return original(shape, dtype, "nan" if operand is poisoned else "zero")

    return make


def _buffers(launch: Launch) -> list[tuple[Operand, tuple[int, ...]]]:
    """The operands that the interpreter makes a buffer for, with its shape, in its order: results, then blocks."""
    results = [
        (operand, operand.shape)
        for operand in launch.operands
        if operand.role == "out" and operand.index not in launch.aliases.values()
    ]
    blocks = [
        (operand, operand.block_shape)
        for operand in launch.operands
        if operand.role != "prefetch" and operand.memory_space not in _IN_PLACE
    ]
    return results + blocks


def read_before_written(
    launch: Launch, run: Callable[[], list[Any]], shows: Callable[[list[Any]], bool]
) -> list[Operand]:
    """The outputs and scratch whose first contents `shows` finds in the results; empty where it cannot be told.

    `run` gives the launch's results with memory filled with zeros.
    """
    read = [each for each in launch.operands if each.role in ("out", "scratch") and each.name in launch.reads]
    found = []
    for operand in read:
        try:
            with nan_only_in(launch, operand):
                results = run()
        except Exception:
            return []
        if shows(results):
            found.append(operand)
    return found
