"""A launch as lines, one for each device of its mesh."""

from __future__ import annotations

import itertools
import math
from typing import Any

from ...devices.events import Lines
from ..launches.launch import Launch, Operand, kernel_jaxpr
from . import communication, control  # noqa: F401  they say what operations do
from .references import Buffer, Unmodelled
from .scopes import allocate
from .unroller import Unroller

MOST_DEVICES = 64
MOST_EVENTS = 200_000  # of all devices


def lines_of(launch: Launch) -> Lines:
    """What each device of the launch's mesh does. Raises Unmodelled."""
    if launch.record.kind != "pallas_call":
        raise Unmodelled(f"a launch by `{launch.record.kind}`")
    if launch.grid is None:
        raise Unmodelled("a grid whose bounds hang on data")
    axes = launch.record.axes
    count = math.prod(axes.values())
    if count > MOST_DEVICES:
        raise Unmodelled(f"a mesh of {count} devices, more than {MOST_DEVICES}")
    lines = Lines([], [], axes)
    for line, place in enumerate(itertools.product(*map(range, axes.values()))):
        run = Unroller(line, axes, dict(zip(axes, place)), launch.grid)
        _unroll(run, launch)
        lines.lines.append(run.events)
        lines.names.append(f"device {line}")
        lines.vague += run.vague
        if lines.count > MOST_EVENTS:
            raise Unmodelled(f"the devices do more than {MOST_EVENTS} things")
    return lines


def _unroll(run: Unroller, launch: Launch) -> None:
    jaxpr = kernel_jaxpr(launch.record.params)
    buffers = _buffers(launch, jaxpr, run.line)
    run.scopes = {(0, at): buffer.name for at, buffer in enumerate(buffers)}
    for point in itertools.product(*map(range, launch.grid or ())):
        run.point = point
        run.run(jaxpr, list(buffers), ())


def _buffers(launch: Launch, jaxpr: Any, line: int) -> list[Buffer]:
    """The memory behind the kernel's references."""
    made: list[Buffer] = []
    for at, (operand, var) in enumerate(zip(launch.operands, jaxpr.invars, strict=True)):
        buffer = allocate(var.aval, ("operand", at), operand.name, line)
        buffer.moves = operand.block is not None and not operand.whole and launch.points > 1
        value = _known(launch, operand)
        if buffer.values is not None and value is not None and value.shape == buffer.shape:
            buffer.values[...] = value.astype(object)
        made.append(buffer)
    first_output = next((at for at, each in enumerate(launch.operands) if each.role == "out"), len(made))
    for given, result in launch.aliases.items():
        at = given - _bounds(launch)
        if at >= 0 and _in_place(launch.operands[at]) and _in_place(launch.operands[first_output + result]):
            made[first_output + result].key = made[at].key
    return made


def _in_place(operand: Operand) -> bool:
    """Whether the kernel sees the array itself, and no block of it."""
    return operand.memory_space in ("any", "hbm") and operand.whole


def _bounds(launch: Launch) -> int:
    """How many operands of the launch are bounds of its grid."""
    return int(launch.record.params["grid_mapping"].num_dynamic_grid_bounds)


def _known(launch: Launch, operand: Operand) -> Any:
    """The value of an operand where it is known."""
    if operand.role not in ("prefetch", "in") or not operand.whole:
        return None
    ahead = sum(each.role == "prefetch" for each in launch.operands) if operand.role == "in" else 0
    return launch.record.values[_bounds(launch) + ahead + operand.index]
