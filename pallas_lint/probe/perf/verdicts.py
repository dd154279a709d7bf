"""Findings about the cost of a launch: infos, only where there is something to change.

What happens while others wait costs nothing: the use of units is reported only where computing takes the time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pallas_lint.finding import Severity
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.probe.chip_memory import up
from pallas_lint.probe.cost.chips import CHIPS
from pallas_lint.probe.perf.figures import device_of, microseconds, reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.probe.cost.causes import Causes, Place
    from pallas_lint.probe.cost.results import Cost, LineCost
    from pallas_lint.probe.places import FindingBuilder
    from pallas_lint.probe.results import LaunchResult

_MIN_STEPS = 8  # steps; of fewer nothing can be saved by making them larger
_AROUND = 0.25  # of the time, spent around the lines of the kernel
_MAX_FACTOR = 2.0  # times the limit of the chip
_MOVED = 1.25  # times the bytes that would do
_SPILLED = 0.1  # of the stores
_STORING = 0.05  # of all store slots, taken by what is spilled
_FULL = 0.8  # of the matrix unit: nothing beside it matters
_DEAR = 0.2  # of the time, in one line
_FILLED = 0.75  # of the rows and columns of the matrix unit


class _Verdict(NamedTuple):
    code: str
    message: str
    help: str
    place: Place | None = None


def findings(launch: LaunchResult, about: FindingBuilder) -> Iterator[Finding]:
    """What could be faster, by target."""
    for cost in launch.costs:
        if cost["microseconds"] is None:
            continue
        for verdict in (*_steps(cost), *_memory(launch, cost), *_computing(launch, cost), *_cores(launch, cost)):
            places = [verdict.place] if verdict.place is not None else ()
            yield about.finding_at(
                places,
                verdict.code,
                Severity.INFO,
                verdict.message,
                verdict.help,
                backend="tpu",
                device=device_of(cost),
            )


def _time(cost: Cost) -> str:
    return f"the {microseconds(cost['microseconds'] or 0.0)} predicted for {device_of(cost)}"


def _steps(cost: Cost) -> Iterator[_Verdict]:
    """What goes to the steps of the grid themselves."""
    around = sum(line["share"] for line in cost["lines"] if line["path"] is None)
    steps, moved = cost["steps"], cost["bytes"]["read"] + cost["bytes"]["written"]
    if cost["bound"] == "latency" and around >= _AROUND and steps >= _MIN_STEPS and reached(cost) * _MAX_FACTOR < 1:
        each = microseconds((cost["microseconds"] or 0.0) / steps)
        yield _Verdict(
            "PAL801",
            f"{around:.0%} of {_time(cost)} are the cost of {steps} steps themselves: one takes {each}, with "
            f"{format_bytes(moved / steps)} to move",
            "give each step more to do: larger blocks make fewer steps (`--tune`, in an editor Tune Block Sizes, tries "
            "sizes)",
        )


def _memory(launch: LaunchResult, cost: Cost) -> Iterator[_Verdict]:
    """What is moved, and need not be."""
    moved, ideal = cost["bytes"]["read"] + cost["bytes"]["written"], cost["bytes"]["ideal"]
    causes = launch.facts["causes"]
    order = causes["order"] if causes is not None else None
    if cost["bound"] != "memory":
        return
    if order is not None and order["now"] > _MOVED * order["then"]:
        yield _Verdict(
            "PAL803",
            f"{order['operand']} is fetched {order['fetched']} times, and {order['would']} times would do: another "
            f"order of the grid's axes moves {format_bytes(order['then'])} instead of {format_bytes(order['now'])}",
            f"the axes in the order {tuple(order['axes'])}, outermost first, keep blocks for longer; not where a step "
            "needs what another one left",
        )
    elif ideal and moved > _MOVED * ideal:
        yield _Verdict(
            "PAL802",
            f"most of {_time(cost)} is waiting for memory: {format_bytes(moved)} are moved, and {format_bytes(ideal)} "
            "would do",
            "larger blocks fetch less again",
        )


def _computing(launch: LaunchResult, cost: Cost) -> Iterator[_Verdict]:
    """What the units do that need not be done."""
    if cost["bound"] != "compute":
        return
    spilled = cost["spills"] * cost["units"].get("store", 0.0)
    if cost["spills"] > _SPILLED and spilled > _STORING and cost["units"].get("mxu", 0.0) < _FULL:
        yield _Verdict(
            "PAL804",
            f"{cost['spills']:.0%} of the stores only save registers that run out",
            "less at a time: smaller blocks, or a loop over parts of a block",
        )
    for line in cost["lines"]:
        if line["share"] >= _DEAR and line["path"] is not None:
            place: Place = {"file": line["path"], "line": line["line"]}
            yield from _line(cost, line, place, launch.facts["causes"])


def _line(cost: Cost, line: LineCost, place: Place, causes: Causes | None) -> Iterator[_Verdict]:
    """What one dear line does."""
    unit, chip, begin = line["unit"], CHIPS[device_of(cost)], f"{line['share']:.0%} of {_time(cost)} go here, to"
    if unit == "xlu":
        yield _Verdict(
            "PAL805",
            f"{begin} moving values across lanes",
            "slices, concatenations and reshapes at multiples of 128 move nothing; nor do transposes that a dot or an "
            "index map makes",
            place,
        )
    if causes is None:
        return
    if unit == "mxu":
        products = [product for product in causes["products"] if _same(product["place"], place)]
        emptiest = min(products, key=lambda product: _filled(product["k"], product["n"], chip.mxu), default=None)
        exact = next((product for product in products if product["exact"]), None)
        if exact is not None:
            yield _Verdict(
                "PAL807",
                f"{begin} products in float32 that take several passes each",
                "precision=jax.lax.Precision.DEFAULT takes one, of operands rounded to bfloat16: keep more where those "
                "digits matter",
                exact["place"],
            )
        elif emptiest is not None and _filled(emptiest["k"], emptiest["n"], chip.mxu) < _FILLED:
            k, n = emptiest["k"], emptiest["n"]
            yield _Verdict(
                "PAL806",
                f"{begin} products of (m, {k}) and ({k}, {n}), which take as long as ({up(k, chip.mxu)}, "
                f"{up(n, chip.mxu)}) would: its matrix unit has {chip.mxu} rows and columns",
                f"multiples of {chip.mxu} in the dimensions that are contracted, and in those of the right operand",
                emptiest["place"],
            )
    if unit in ("valu", "eup") and not chip.narrow and any(_same(each, place) for each in causes["narrow"]):
        yield _Verdict(
            "PAL808",
            f"{begin} arithmetic in bfloat16, which {device_of(cost)} does in float32, converting before and after",
            "convert to float32 once, compute, and convert the result",
            place,
        )
    if any(_same(each, place) for each in causes["rows"]):
        yield _Verdict(
            "PAL809",
            f"{begin} a loop over single rows: seven of the eight sublanes of each register are idle",
            "compute with the whole block, or with eight rows at a time",
            place,
        )


def _cores(launch: LaunchResult, cost: Cost) -> Iterator[_Verdict]:
    parallel = "parallel" in (launch.facts.get("semantics") or ())
    if CHIPS[device_of(cost)].cores > cost["cores"] and math.prod(launch.facts["grid"] or ()) > 1 and not parallel:
        yield _Verdict(
            "PAL810",
            f"one of the two cores of {device_of(cost)} is idle: no axis of the grid is marked parallel",
            'dimension_semantics=("parallel", ...) for axes along which no step needs what another one wrote',
        )


def _same(one: Place, other: Place) -> bool:
    return one["file"] == other["file"] and one["line"] == other["line"]


def _filled(k: int, n: int, unit: int) -> float:
    """The share of the matrix unit's rows and columns that a product uses."""
    return k * n / max(up(k, unit) * up(n, unit), 1)
