"""What running a kernel shows to be wrong with its results: the worker's messages about them.

Shared with the worker, as `protocol` is: nothing but the standard library, and nothing that Python 3.10 lacks.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from .cost.causes import Place  # noqa: TC001  types are looked up when messages are read


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
    """Results that are no numbers, of finite operands, or that depend on memory that nobody wrote."""

    reaches: bool | None  # what the function returns
    differs: bool  # with what memory held before, and is a number all the same
    memory: list[str]  # names of what nobody wrote
    places: list[Place]  # where that is read first
    out_of_order: bool  # not where one core goes through the grid in order
    lost: str | None  # the block of an input that no result depends on even there
