"""The predicted cost of a launch and of a whole function, as the JSON report has it."""

from __future__ import annotations

from typing import Literal, TypedDict

TOO_LARGE = "it needs more memory than there is"  # why what does not fit has no cost


class LineCost(TypedDict):
    """The share of the time that a line of the kernel takes, and what it is busy with."""

    path: str | None  # None for what is of no line: the loop over the grid
    line: int
    share: float
    unit: str


class Bytes(TypedDict):
    """To and from HBM. `ideal`: each operand and result once, but no more than is moved: some are used in part only."""

    read: int
    written: int
    ideal: int


class Pipeline(TypedDict):
    """The first copies and waits of a launch, in cycles from its beginning.

    A copy: when it was begun, when its bytes begin to move, when it was done, its bytes, and whether it goes to HBM.
    """

    copies: list[tuple[int, int, int, int, bool]]
    waits: list[tuple[int, int]]


class OperationCost(TypedDict):
    """An operation of a compiled program, all its runs together, and the line that it comes from."""

    name: str
    kernel: bool
    microseconds: float
    path: str | None
    line: int


class AgainstCost(TypedDict):
    """What another function costs on the same device. `microseconds` is None where something is `missing`.

    `doubts`: what of it is rough.
    """

    function: str
    microseconds: float | None
    low: float | None
    high: float | None
    missing: list[str]
    doubts: list[str]


class FunctionCost(AgainstCost):
    """What a whole function costs, in microseconds.

    `kernels`: of all its kernels together; `xla`: of XLA's operations, and of what is waited for.
    """

    target: str
    kernels: float
    xla: float
    operations: list[OperationCost]
    against: AgainstCost | None
    compiler: str


class Cost(TypedDict):
    """The cost of a launch on a device, from the compiler's schedule.

    `microseconds` is None where it cannot be predicted, for the reasons in `doubts`.
    """

    target: str
    microseconds: float | None
    low: float | None
    high: float | None
    bound: Literal["compute", "memory", "latency", "unknown"]
    cycles: dict[str, int]
    steps: int
    bytes: Bytes
    units: dict[str, float]
    spills: float
    cores: int  # that share it
    lines: list[LineCost]
    pipeline: Pipeline
    doubts: list[str]
    compiler: str
