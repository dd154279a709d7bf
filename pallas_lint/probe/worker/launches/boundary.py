"""Operands and results of a launch where it is compiled without the program around it: their types, and their memory.

Some cannot leave their program: a semaphore is memory of the chip that no program is given.
"""

from __future__ import annotations

from typing import Any

from ...protocol import Typed
from .. import environment
from ..device_targets import Missing
from ..inputs import arguments
from .launch import Launch, Operand

_HOST = "pinned_host"  # what jax calls the host's memory that a TPU reads


def check(launch: Launch) -> None:
    """Raise Missing where the launch cannot be compiled without the rest of its program."""
    if any(map(is_semaphore, [*launch.record.avals, *results(launch)])):
        raise Missing("not judged: a semaphore that outlives the launch is compiled only with the function around it")
    outs = [operand for operand in launch.operands if operand.role == "out"]
    if any(
        _is_host(operand.memory_space) and not _is_host(_space(aval)) for operand, aval in zip(outs, results(launch))
    ):
        raise Missing("not judged: the memory of a result on the host is decided by the function around the launch")


def is_semaphore(aval: Any) -> bool:
    return "sem" in str(getattr(aval, "dtype", ""))


def results(launch: Launch) -> list[Any]:
    """The types of the launch's results."""
    return list(launch.record.params.get("out_avals") or ())


def memory_kinds(launch: Launch) -> list[str | None]:
    """The memories of the operands, by jax's names; None: the device's own."""
    return [_kind(aval, launch.input(at)) for at, aval in enumerate(launch.record.avals)]


def _kind(aval: Any, operand: Operand | None) -> str | None:
    on_host = _is_host(_space(aval)) or (operand is not None and _is_host(operand.memory_space))
    return _HOST if on_host else None


def _space(aval: Any) -> str:
    return str(getattr(aval, "memory_space", ""))


def _is_host(space: str | None) -> bool:
    return (space or "").lower().rpartition(".")[2] == "host"


def types_of(launch: Launch) -> tuple[list[Typed], list[Typed]]:
    """The types of operands and results as another process can read them, those of keys as they lie in memory."""
    ins = [_typed(aval, kind) for aval, kind in zip(launch.record.avals, memory_kinds(launch))]
    return ins, [_typed(aval, None) for aval in results(launch)]


def _typed(aval: Any, kind: str | None) -> Typed:
    physical = environment.found(environment.optional("jax._src.core"), "physical_aval")
    lies = getattr(aval, "inner_aval", aval)  # of what a reference is to
    if physical is not None:
        lies = physical(lies)
    return list(lies.shape), arguments.short_name(lies.dtype), kind
