"""Gathers, scatters and changes of layout that XLA gives to SparseCores: the least and the most that they take, beside
other work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .chips import CHIPS, FASTEST
from .collectives import Communication
from .xla_program import Operation, XlaProgram, array_bytes

DOUBT = "gathers and scatters on SparseCores are timed roughly"
LAYOUT_DOUBT = "changes of layout on SparseCores are timed roughly"
_ARRAY = re.compile(r"[a-z]\w{0,19}\[[\d,]*\]")
_MAX_DEPTH = 10  # computations within each other
_AROUND = {"parameter", "call-start", "call-update", "call-done", "bitcast"}  # what only hands on
_ROWS = re.compile(r"\bslice_sizes=\{(?:1,)*(\d+)\}")
# Microseconds of each program, assumed. The most was 10, and of two products of groups on v6e one took longer.
_START = Communication(5.0, 1.0, 20.0)


@dataclass(frozen=True)
class _Rate:
    """Bytes a microsecond."""

    likely: float
    slowest: float


_RATE = _Rate(96e3, 48e3)  # jax's issue 40553 has 0.7 ms for a gather of pages, 33 to 64 MiB, on tpu7x
# The median of three gathers among tokamax's records, of rows of 8 and 16 KiB (v5p, tpu7x), and its half.
_RATE_OF_LONG_ROWS = _Rate(570e3, 285e3)
_LONG_ROW = 8192
# Bytes of the result of a copy with another layout: the median of three of 64 MiB, of seven that aios-tpu-infra's
# tpu_benchmark_daily has of tpu7x (qwen3.5-397b-layer-ops-20260923), and its half. Of other chips none are known.
_RATE_OF_LAYOUTS = {"tpu7x": _Rate(1365e3, 682e3)}


@dataclass(frozen=True)
class Offload:
    """What SparseCores are given: whether it is a scatter, in how many programs, and the bytes of a gathered row.

    `copies`: whether it only changes a layout.
    """

    scatters: bool
    programs: int
    row: int = 0
    copies: bool = False

    @property
    def doubt(self) -> str:
        return LAYOUT_DOUBT if self.copies else DOUBT


def offload(program: XlaProgram, computation: str, device: str) -> Offload | None:
    """What a computation for SparseCores is; None where it is none of XLA's whose time is known."""
    inner = list(_within(program, computation))
    opcodes = [each.opcode for each in inner]
    if {*opcodes} - _AROUND == {"copy"} and device in _RATE_OF_LAYOUTS:
        return Offload(scatters=False, programs=opcodes.count("copy"), copies=True)
    if any(each.value == "tpu_custom_call" for each in inner) or not {"gather", "scatter"} & {*opcodes}:
        return None
    row = min((_row_bytes(each) for each in inner if each.opcode == "gather"), default=0)
    return Offload("scatter" in opcodes, max(opcodes.count("call-start"), 1), row)


def predict(offload: Offload, call: Operation, device: str) -> Communication:
    """What it takes from a call on that has its operands and its result in its type.

    A gather moves what it results in, a scatter what it changes, its indices and updates; a copy reads and writes it.
    """
    moved = sum(map(array_bytes, _ARRAY.findall(call.result))) if offload.scatters else call.bytes
    rate = _RATE_OF_LONG_ROWS if offload.row >= _LONG_ROW and not offload.scatters else _RATE
    fastest = CHIPS[device].bandwidth * FASTEST.efficiency * 1e3
    if offload.copies:
        rate, fastest = _RATE_OF_LAYOUTS[device], fastest / 2
    return Communication(
        offload.programs * _START.likely + moved / rate.likely,
        offload.programs * _START.low + moved / fastest,
        offload.programs * _START.high + moved / rate.slowest,
    )


def _row_bytes(gather: Operation) -> int:
    """Bytes of the row that a gather takes at each index; 0 where it takes more than a row."""
    row = _ROWS.search(gather.attributes)
    return array_bytes(f"{gather.result.partition('[')[0]}[{row[1]}]") if row else 0


def _within(program: XlaProgram, computation: str, depth: int = 0) -> Iterator[Operation]:
    for each in program.computations.get(computation, ()) if depth < _MAX_DEPTH else ():
        yield each
        if each.called is not None:
            yield from _within(program, each.called, depth + 1)
