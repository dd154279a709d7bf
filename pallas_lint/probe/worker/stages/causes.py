"""Possible causes of a slow schedule: products, arithmetic in bfloat16, loops over rows, the order of the grid.

The schedule shows whether it comes of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from ...cost.causes import Causes, Order, Place, Product, Traffic
from ..inputs import arguments
from ..launches import locate
from ..launches.launch import Launch, jaxprs_in, kernel_jaxpr
from .grid import EvaluatedGrid

_ARITHMETIC = frozenset(
    ("add", "sub", "mul", "div", "max", "min", "neg", "abs", "exp", "exp2", "log", "tanh", "logistic", "rsqrt", "sqrt")
)  # fmt: skip
_LARGE = 1024  # elements: a vector register
_ROWS = 8  # of a block, from which on a loop over them is one
_LOOPS = ("while", "scan", "for")
_MAX_ORDERS = 24  # of axes with more than one step: four of them
_MAX_POINTS = 100_000


def causes(launch: Launch, grid: EvaluatedGrid | None) -> Causes:
    """All causes in a launch; `grid` is None where it was not evaluated."""
    found: Causes = {"products": [], "narrow": [], "rows": [], "order": None, "traffic": []}
    if grid is not None and 0 < launch.points <= _MAX_POINTS:
        moves = _Moves(grid)
        found["order"], found["traffic"] = _order(moves), _traffic(moves)
    for equation, looped in _equations(kernel_jaxpr(launch.record.params), looped=False):
        name = str(equation.primitive)
        if name == "dot_general":
            product = _product(equation)
            if product is not None:
                found["products"].append(product)
        elif name in _ARITHMETIC and str(equation.outvars[0].aval.dtype) == "bfloat16":
            if math.prod(equation.outvars[0].aval.shape) >= _LARGE:
                found["narrow"] += _place(equation)
        elif looped and name in ("get", "swap", "masked_load", "masked_swap") and _is_row(equation):
            found["rows"] += _place(equation)
    found["narrow"], found["rows"] = _once(found["narrow"]), _once(found["rows"])
    return found


def _once(places: list[Place]) -> list[Place]:
    return list({(place["file"], place["line"]): place for place in places}.values())


def _equations(jaxpr: Any, *, looped: bool) -> Iterator[tuple[Any, bool]]:
    """The equations at any depth, and whether a loop is around them."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns if jaxpr is not None else ():
        yield equation, looped
        within = looped or str(equation.primitive) in _LOOPS
        for inner in jaxprs_in(equation):
            yield from _equations(inner, looped=within)


def _place(equation: Any) -> list[Place]:
    return locate.of_equation(equation)[:1]


def _product(equation: Any) -> Product | None:
    one, other = (var.aval for var in equation.invars[:2])
    (contracted, _), (batch, _) = equation.params["dimension_numbers"]
    places = _place(equation)
    if not places:
        return None
    k = math.prod(one.shape[at] for at in contracted)
    shared = max(k * math.prod(one.shape[at] for at in batch), 1)
    precision = equation.params.get("precision")
    precisions = precision if isinstance(precision, tuple) else (precision,)
    return {
        "place": places[0],
        "dtype": arguments.short_name(one.dtype),
        "m": math.prod(one.shape) // shared,
        "k": k,
        "n": math.prod(other.shape) // shared,
        "exact": str(one.dtype) == "float32" and any(str(each).endswith(("HIGH", "HIGHEST")) for each in precisions),
    }


def _is_row(equation: Any) -> bool:
    """Whether one row of a block of many is read or written."""
    ref, value = equation.invars[0].aval, equation.outvars[0].aval
    shape = tuple(getattr(ref, "shape", ()))
    return len(shape) >= 2 and shape[-2] >= _ROWS and math.prod(value.shape) == shape[-1] >= 1


class _Moves:
    """How often the pipeline moves a block of each operand, in any order of the grid's axes."""

    def __init__(self, grid: EvaluatedGrid) -> None:
        self.launch = launch = grid.launch
        self.sizes = launch.grid or ()
        mine = [at for at in grid.starts if launch.operands[at].role != "prefetch"]
        self.blocks = {at: grid.blocks(at).reshape(*self.sizes, -1) for at in mine}
        self.bytes = {
            at: math.prod(size for _, size in launch.operands[at].block or ()) * launch.operands[at].itemsize
            for at in mine
        }
        self.order = tuple(range(len(self.sizes)))
        self.now = self.counts(self.order)

    def counts(self, axes: tuple[int, ...]) -> dict[int, int]:
        """How often the block of each changes, the first axis outermost."""
        import numpy as np

        found = {}
        for at, blocks in self.blocks.items():
            rows = np.moveaxis(blocks, axes, range(len(axes))).reshape(-1, blocks.shape[-1])
            found[at] = 1 + int((rows[1:] != rows[:-1]).any(1).sum())
        return found

    def total(self, counts: dict[int, int]) -> int:
        return sum(count * self.bytes[at] for at, count in counts.items())


def _traffic(moves: _Moves) -> list[Traffic]:
    operands = moves.launch.operands
    return [
        {
            "operand": operands[at].name, "role": operands[at].role, "moved": count * moves.bytes[at],
            "ideal": math.prod(operands[at].shape) * operands[at].itemsize,
        }
        for at, count in moves.now.items()
    ]  # fmt: skip


def _order(moves: _Moves) -> Order | None:
    """The order of the grid's axes in which the least is moved; None where the one that it has is as good.

    Results must be visited as now: all steps of one of their blocks after each other.
    """
    launch, sizes = moves.launch, moves.sizes
    long = [axis for axis, size in enumerate(sizes) if size > 1]
    if len(long) < 2 or math.factorial(len(long)) > _MAX_ORDERS:
        return None
    now = moves.now
    results = [at for at in now if launch.operands[at].role == "out"]
    best, fewest = moves.order, now
    for moved in itertools.permutations(long):
        axes = list(moves.order)
        for place, axis in zip(long, moved):
            axes[place] = axis
        counts = moves.counts(tuple(axes))
        if all(counts[at] <= now[at] for at in results) and moves.total(counts) < moves.total(fewest):
            best, fewest = tuple(axes), counts
    if best == moves.order:
        return None
    saved = max(now, key=lambda at: (now[at] - fewest[at]) * moves.bytes[at])
    return {
        "axes": list(best), "now": moves.total(now), "then": moves.total(fewest),
        "operand": launch.operands[saved].name, "fetched": now[saved], "would": fewest[saved],
    }  # fmt: skip
