"""The worker's report on running kernels: on several devices, and of results that are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from ..cost.causes import Place

VerdictKind = Literal[
    "deadlock",
    "device-race",
    "alike",
    "unfinished",
    "left-over",
    "outside",
    "past-end",
    "too-early",
    "overrun",
    "unfenced",
]


class _Row(TypedDict):
    device: int
    line: int | None  # of the source; None for what is in no line of it
    what: str


class Row(_Row, total=False):
    """One event of a run that shows what goes wrong."""

    path: str
    step: str  # of grid and loops
    note: str  # why it matters
    to: int  # the device that it goes to, where that is another
    name: str  # of a line that is not the device: "device 1, core 0", "warpgroup 0"


class _OnDevices(TypedDict):
    kind: VerdictKind
    message: str
    places: list[Place]  # the most informative one first
    sure: bool
    trace: list[Row]


class OnDevices(_OnDevices, total=False):
    """What goes wrong in some order. `sure`: even if no copy overtakes another."""

    on_data: bool  # it takes an access that happens only on some data


class _NotANumber(TypedDict):
    kind: Literal["nan"]
    operand: str
    origin: Literal["unknown", "uninitialised", "computed"]
    count: int
    size: int
    first: list[int]
    always: bool  # on other operands too
    infinite: bool


class NotANumber(_NotANumber, total=False):
    """Results that are no numbers, of finite operands, or that depend on memory that was never written."""

    reaches: bool | None  # what the function returns
    differs: bool  # with what memory held before, and is a number all the same
    memory: list[str]  # names of buffers never written
    places: list[Place]  # where that is read first
    depends_on: list[str]  # made-up operands on other values of which it is gone
    out_of_order: bool  # not where one core goes through the grid in order
    steered: list[str]  # operands whose values decide what of the output is written, where that is known
    lost: str | None  # the block of an input that no result depends on even there


@dataclass
class Verdict:
    """One thing that is wrong. `sure`: even if no copy overtakes another; `trace`: a run in which it shows.

    `on_data`: it takes an access that happens only on some data.
    """

    kind: VerdictKind
    message: str
    places: list[Place]
    sure: bool
    trace: list[Row]
    on_data: bool = False
