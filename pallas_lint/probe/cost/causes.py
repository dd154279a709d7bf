"""Causes of a slow schedule in a kernel's code, and where they stand."""

from __future__ import annotations

from typing import TypedDict


class Spot(TypedDict):
    file: str
    line: int


class Place(Spot, total=False):
    """A place in the user's code. Columns count from 1, in bytes, as Python's do."""

    column: int | None
    end_line: int | None
    end_column: int | None
    function: str
    primitive: str  # the operation that was being lowered there
    mentioned: bool  # only named by a message


class Product(TypedDict):
    """A product of matrices (m, k) and (k, n). `exact`: in float32, of which the unit makes several passes."""

    place: Place
    dtype: str
    m: int
    k: int
    n: int
    exact: bool


class Order(TypedDict):
    """A better order of the grid's axes, with bytes now and then.

    `operand`: the one that gains most; how often it is fetched, and would be.
    """

    axes: list[int]
    now: int
    then: int
    operand: str
    fetched: int
    would: int


class Traffic(TypedDict):
    """What the pipeline moves of an operand or result, and what would do: all of it once."""

    operand: str
    role: str
    moved: int
    ideal: int


class Causes(TypedDict):
    """What in a kernel a slow schedule can come of."""

    products: list[Product]
    narrow: list[Place]  # arithmetic in bfloat16
    rows: list[Place]  # single rows that are read or written in a loop
    order: Order | None
    traffic: list[Traffic]
