"""One device's run of a kernel with known values: control flow, scalars, and communication events."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...interleaving.events import Event
from ...protocol import Place
from ..launches import known, locate
from ..launches.launch import equations, jaxprs_in
from .references import UNKNOWN, Buffer, Unmodelled, View, first_unknown

MAX_EVENTS = 60_000  # of one device
MAX_STEPS = 3_000_000  # equations of one device
_MAX_ELEMENTS = 4_096  # elements of a value that is followed
_CALLS = frozenset(
    "jit pjit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr remat remat2 checkpoint "
    "eval_jaxpr call_hi_primitive".split()
)
# What a kernel does that steers nothing.
_IGNORED = frozenset(
    "debug_callback debug_print delay trace_start trace_stop prng_seed check assume trace_value add_dependency".split()
)

# Operations that others see: in whole, and by what is in their names.
_SPEAKING = frozenset({"run_scoped", "run_state", "mpmd_map", "core_map", "commit_group"})
_ABOUT = (
    "semaphore",
    "dma",
    "barrier_",
    "mem_to_",
    "wgmma",
    "tcgen05",
    "commit_smem",
    "commit_tmem",
    "_tmem",
    "cluster_cancel",
)

Rule = Callable[["Unroller", Any, list[Any]], list[Any]]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the handler of an operation of kernels."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


@dataclass(frozen=True)
class Core:
    """One of the cores of a device that run a kernel, along an axis of theirs where it has one."""

    number: int
    count: int
    axis: str | None
    shared: int | None = None  # the axis of the grid whose points the cores share out among them

    def runs(self, point: tuple[int, ...], grid: tuple[int, ...]) -> bool:
        """Whether a point of the grid is one of its own."""
        return self.shared is None or point[self.shared] * self.count // grid[self.shared] == self.number


class Home(NamedTuple):
    """Whose memory a buffer is in: the line's, or where cores share it that of the first core of the device."""

    line: int
    device: int


class Unroller:
    """One line. `axes` are the mesh's with their sizes, `coordinates` where the device stands in it."""

    def __init__(
        self, device: int, core: Core, axes: dict[str, int], coordinates: dict[str, int], grid: tuple[int, ...]
    ) -> None:
        self.device = device
        self.core = core
        self.home = Home(device * core.count + core.number, device * core.count)
        self.axes = axes
        self.coordinates = coordinates
        self.grid = grid
        self.point: tuple[int, ...] = ()
        self.events: list[Event] = []
        self.lost: frozenset[Any] = frozenset()  # buffers that others write: what is in them depends on these
        self.sent: set[Any] = set()  # buffers of others that it writes
        self.relied: set[Any] = set()  # buffers whose values it made use of
        self.vague = 0  # accesses whose place depends on data
        self.on_data = False  # whether what it does now happens depends on data
        self.barriers: dict[str, Buffer] = {}
        self.work: Any = None  # of a line of a Mosaic GPU kernel: what it has begun
        self.scopes: dict[tuple[int, int], str] = {}  # names of the buffers that equations make
        self.entered: dict[int, int] = defaultdict(int)  # how often equations made buffers
        self._loops: list[str] = []
        self._steps = 0
        self._places: dict[int, Place | None] = {}
        self._used: dict[Any, set[Any]] = {}
        self.used: set[Any] = set()  # the variables that are read, of the jaxpr that is run

    @property
    def line(self) -> int:
        return self.home.line

    # -- events ----------------------------------------------------------------------------------------------------

    @property
    def step(self) -> str:
        """The current step of the grid and turn of the loops, as text."""
        parts = [f"step {', '.join(map(str, self.point))}"] if len(self.point) and math.prod(self.grid) > 1 else []
        return ", ".join(parts + self._loops)

    def emit(self, event: Event) -> None:
        self.events.append(event)
        if len(self.events) > MAX_EVENTS:
            raise Unmodelled(f"a device does more than {MAX_EVENTS} things")

    def place(self, equation: Any) -> Place | None:
        """Where an operation stands in the user's code."""
        key = address(equation)
        if key not in self._places:
            self._places[key] = next(iter(locate.of_equation(equation)), None)
        return self._places[key]

    # -- running ---------------------------------------------------------------------------------------------------

    def perhaps(self, jaxpr: Any, arguments: list[Any]) -> list[Any]:
        """The results of a jaxpr of which it depends on data whether it runs. Raises Unmodelled."""
        before, self.on_data = self.on_data, True
        results = self.run(jaxpr, arguments)
        self.on_data = before
        return results

    def run(self, jaxpr: Any, arguments: list[Any], constants: Sequence[Any] | None = None) -> list[Any]:
        """The results of a jaxpr; of an open one with these constants. Raises Unmodelled."""
        consts = getattr(jaxpr, "consts", ()) if constants is None else constants
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        values |= dict(zip(jaxpr.invars, arguments, strict=True))

        def value(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else values[atom]

        if jaxpr not in self._used:
            read = (atom for equation in jaxpr.eqns for atom in equation.invars)
            self._used[jaxpr] = {atom for atom in (*read, *jaxpr.outvars) if not hasattr(atom, "val")}
        for equation in jaxpr.eqns:
            self.used = self._used[jaxpr]
            results = self.equation(equation, [value(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, results))
        return [value(atom) for atom in jaxpr.outvars]

    def equation(self, equation: Any, values: list[Any]) -> list[Any]:
        """The results of one operation."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Unmodelled(f"a device takes more than {MAX_STEPS} steps")
        name = str(equation.primitive)
        own = RULES.get(name)
        if own is not None:
            return own(self, equation, values)
        unknown = [UNKNOWN] * len(equation.outvars)
        if name in _IGNORED:
            return unknown
        inner = jaxprs_in(equation)
        if name in _CALLS and inner:
            body = getattr(inner[0], "jaxpr", inner[0])
            return self.run(inner[0], values[len(values) - len(body.invars) :])
        if any(isinstance(value, Buffer | View) for value in values) or any(map(communicates, inner)):
            raise Unmodelled(f"`{name}`", self.place(equation))
        return self.computed(name, equation, values)

    def computed(self, name: str, equation: Any, values: list[Any]) -> list[Any]:
        """What is computed of known integers; all else is not known, and seldom steers."""
        import numpy as np

        data = first_unknown(values)
        unknown = [data or UNKNOWN] * len(equation.outvars)
        if data is not None or equation.effects:
            return unknown
        for var in equation.outvars:
            dtype = getattr(var.aval, "dtype", None)
            if dtype is None or dtype.kind not in "iub" or math.prod(var.aval.shape) > _MAX_ELEMENTS:
                return unknown
        if any(np.size(value) > _MAX_ELEMENTS for value in values):
            return unknown
        quick = INTEGER_OPERATIONS.get(name)
        if quick is not None and not equation.outvars[0].aval.shape:
            return [_scalar(equation.outvars[0].aval.dtype, quick(*map(_integer, values)))]
        if name == "not" and not equation.outvars[0].aval.shape:
            return [~np.asarray(values[0])[()]]
        found = known.computed(equation, values)
        return [UNKNOWN if value is None else np.asarray(value) for value in found]

    def within(self, outer: Unroller) -> None:
        """Begin where another line is."""
        self.scopes, self.entered = outer.scopes, outer.entered.copy()
        self._loops = outer._loops[:]
        self._steps = outer._steps

    def looped(self, word: str) -> None:
        """Enter a round of a loop."""
        self._loops.append(word)

    def left(self) -> None:
        self._loops.pop()


def address(equation: Any) -> int:
    """A key for an operation of the kernel, the same on every device: releases differ in how they compare."""
    return id(equation)


def communicates(jaxpr: Any) -> bool:
    """Whether it does anything that other devices or copies see."""
    return any(map(is_communication, (str(equation.primitive) for equation in equations(jaxpr))))


def is_communication(name: str) -> bool:
    """Whether an operation is seen by others than the line that does it."""
    return name in _SPEAKING or any(word in name for word in _ABOUT)


def _integer(value: Any) -> int:
    """The one number in a scalar, or in an array of one element."""
    return int(value.item() if getattr(value, "ndim", 0) else value)


def _scalar(dtype: Any, value: int) -> Any:
    """An integer as its type has it, wrapped as the device wraps it."""
    import numpy as np

    if dtype == np.bool_:
        return np.bool_(value)
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return dtype.type(value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value)


def _divided(one: int, other: int) -> int:
    """Towards zero, as the hardware does; by zero, what it gives."""
    return -1 if not other else abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)


# Operations on scalars that kernels compute indices and devices with: thousands of them, which jax takes a while for.
INTEGER_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divided,
    "rem": lambda a, b: a - b * _divided(a, b) if b else a,
    "max": max,
    "min": min,
    "neg": lambda a: -a,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "squeeze": lambda a: a,
    "reshape": lambda a: a,
    "sign": lambda a: (a > 0) - (a < 0),
    "abs": abs,
    "convert_element_type": lambda a: a,
    "copy": lambda a: a,
    "stop_gradient": lambda a: a,
    "multiple_of": lambda a: a,
    "assume_multiple": lambda a: a,
}
