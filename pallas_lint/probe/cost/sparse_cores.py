"""Gathers and scatters that XLA gives to SparseCores: the least and the most that they take, beside other work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .chips import CHIPS, FASTEST
from .collectives import Communication
from .xla_program import Operation, XlaProgram, array_bytes

DOUBT = "gathers and scatters on SparseCores are timed roughly"
_ARRAY = re.compile(r"[a-z]\w{0,19}\[[\d,]*\]")
_MAX_DEPTH = 10  # computations within each other
# Microseconds of each program: tokamax's smallest kernels that gather rows there take 4 (v5p), 5 (v6e) and 6 (tpu7x).
# The most was 10, and of two products of groups on v6e one took longer.
_START = Communication(5.0, 1.0, 20.0)
# Bytes a microsecond: jax's issue 40553 has 0.7 ms for a gather of 33 to 64 MiB on tpu7x.
_LIKELY_RATE = 96e3
_SLOWEST_RATE = 48e3


@dataclass(frozen=True)
class Offload:
    """What SparseCores are given: whether it is a scatter, and in how many programs."""

    scatters: bool
    programs: int


def offload(program: XlaProgram, computation: str) -> Offload | None:
    """What a computation for SparseCores is; None where it is no gather or scatter of XLA's."""
    inner = list(_within(program, computation))
    opcodes = [each.opcode for each in inner]
    if any(each.value == "tpu_custom_call" for each in inner) or not {"gather", "scatter"} & {*opcodes}:
        return None
    return Offload("scatter" in opcodes, max(opcodes.count("call-start"), 1))


def predict(offload: Offload, call: Operation, device: str) -> Communication:
    """What it takes from a call on that has its operands and its result in its type.

    A gather moves what it results in, a scatter what it changes, its indices and updates.
    """
    moved = sum(map(array_bytes, _ARRAY.findall(call.result))) if offload.scatters else call.bytes
    fastest = CHIPS[device].bandwidth * FASTEST.efficiency * 1e3
    return Communication(
        offload.programs * _START.likely + moved / _LIKELY_RATE,
        offload.programs * _START.low + moved / fastest,
        offload.programs * _START.high + moved / _SLOWEST_RATE,
    )


def _within(program: XlaProgram, computation: str, depth: int = 0) -> Iterator[Operation]:
    for each in program.computations.get(computation, ()) if depth < _MAX_DEPTH else ():
        yield each
        if each.called is not None:
            yield from _within(program, each.called, depth + 1)
