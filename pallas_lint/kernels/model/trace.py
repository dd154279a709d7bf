"""Kernel traces: the events of a kernel in order, which rules read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pallas_lint.identity import ById
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.values import ELLIPSIS, UNKNOWN, Array, Const, Ref, Value, WithArguments, options
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Instance
    from pallas_lint.syntax import Site

_NUM_PROGRAMS = "jax.experimental.pallas.num_programs"


@frozen(eq=False)
class Guard:
    """A condition under which code runs: `pl.when`, `lax.cond`, an undecided Python `if`, a loop.

    "checkify" is not a condition: the code runs inside a function made by `checkify.checkify`. Outside kernels,
    "raises" is not one either: the code is in `with pytest.raises(...)`; nor is "caught": an `except` handles its
    exceptions. In kernels, "caught" is an `except` that handles concretization errors. The condition of a loop is its
    index, where it has one; of a `while_loop` what has to hold for it to go on.
    """

    kind: Literal["when", "cond", "if", "loop", "checkify", "raises", "caught"]
    condition: Value
    site: Site
    negated: bool = False
    exact: bool = False  # of a loop: the trace has each of its iterations, once and in order


def conditions_in(guards: Iterable[Guard]) -> tuple[Guard, ...]:
    """The guards that may keep code from running: loops are taken to run, and "checkify" is no condition."""
    return tuple(guard for guard in guards if guard.kind not in ("loop", "checkify"))


@frozen(eq=False)
class Op(WithArguments):
    """One operation: a call of a jnp/lax/pl/... function, a method of an array, or an operator on traced values.

    `name` is canonical whatever the spelling: `x.reshape(...)` and `jnp.reshape(x, ...)` are both
    "jax.numpy.reshape", `x % y` is "jax.numpy.remainder"; methods have the array as first argument.
    `certain`: no undecided Python branch and no unknown caller is between the kernel and this operation.
    """

    name: str
    site: Site
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    result: Value = UNKNOWN
    form: Literal["call", "method", "operator"] = "call"
    guards: tuple[Guard, ...] = ()
    certain: bool = True
    open: bool = False  # `*args` or `**kwargs` of unknown content
    launch: Launch | None = None  # whose grid the code runs over: `program_id` counts in it
    calls: tuple[Site, ...] = ()  # from the kernel down to the function that it is in, outermost first
    short: str = field(init=False, repr=False)  # the last part of the name: "remainder"
    is_traced: bool = field(init=False, repr=False)  # whether the result certainly is

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "short", last_part(self.name))
        object.__setattr__(self, "is_traced", self._is_traced())

    def _is_traced(self) -> bool:
        """Functions of jax return tracers, even for Python numbers; operators do where an operand is one."""
        if self.name == _NUM_PROGRAMS:
            return False  # the size of a static grid
        if self.name == "jax.lax.psum" and self.args and isinstance(self.args[0], Const):
            return False  # the size of an axis
        if self.form == "call":
            return True
        for operand in self.args:
            if isinstance(operand, Ref) or (isinstance(operand, Array) and operand.is_tracer):
                return True
        return any(array.is_tracer for array in self.arrays)

    @property
    def arrays(self) -> list[Array]:
        """The array operands, those inside a list argument included."""
        found: list[Array] = []
        for value in (*self.args, *(value for _, value in self.keywords)):
            if isinstance(value, Array):
                found.append(value)
            elif hasattr(value, "items") and isinstance(value.items, tuple):
                found.extend(item for item in value.items if isinstance(item, Array))
        return found

    def dtypes(self) -> frozenset[str] | None:
        """The dtypes of the array operands that decide the promotion; None where one is unknown."""
        names = {array.dtype for array in self.arrays if not array.weak}
        return None if None in names or not names else frozenset(name for name in names if name is not None)


@frozen(eq=False)
class Access:
    """A read or write of a ref. `index` is UNKNOWN for whole-ref helpers; "escape": passed to unknown code.

    `value` is what was read or written.
    """

    kind: Literal["load", "store", "accumulate", "escape", "delete"]
    ref: Ref
    index: Value
    site: Site
    value: Value = UNKNOWN
    guards: tuple[Guard, ...] = ()
    certain: bool = True
    calls: tuple[Site, ...] = ()  # as those of an `Op`


@frozen(eq=False)
class Capture:
    """A kernel's use of an array that an enclosing scope made."""

    name: str
    value: Value
    site: Site


ConcretizationKind = Literal[
    "if", "while", "assert", "ternary", "and", "or", "not", "chain", "in", "match", "filter", "call", "index", "slice",
    "size", "iterate", "method", "format", "shown",
]  # fmt: skip


@frozen(eq=False)
class Concretization:
    """Python needs the concrete value while the kernel is traced: an `if`, `range(n)`, an index of a list.

    `name` is the function that needs it, if any.
    """

    kind: ConcretizationKind
    value: Value
    site: Site
    name: str = ""
    guards: tuple[Guard, ...] = ()
    certain: bool = True


AgreementKind = Literal["carry", "branches"]


@frozen(eq=False)
class Agreement:
    """Values that jax requires to be of one type: a loop's carry as it enters and as its body returns it, or branches.

    `name` is the function that requires it.
    """

    kind: AgreementKind
    values: tuple[Value, Value]
    site: Site
    name: str
    guards: tuple[Guard, ...]
    certain: bool

    @property
    def short(self) -> str:
        """The last part of the name: "fori_loop"."""
        return last_part(self.name)


Event = Op | Access | Capture | Concretization | Agreement

FOREIGN_CALL = "foreign call"  # of a function whose code is not there
LOOP_INDEX = "loop index"
LOOP_CARRY = "loop carry"  # of what a loop carries from one iteration to the next, with what it starts with


def loop_index(site: Site, lower: Value, upper: Value) -> Array:
    """The index of a loop from `lower` to `upper`; its origin, no event of its own, keeps the bounds."""
    weak = not isinstance(lower, Array) or lower.weak  # Python's numbers are
    return Array((), "i32", weak, origin=Op(LOOP_INDEX, site, (lower, upper), ()))


def range_length(start: int, stop: int, step: int) -> int:
    """The length of `range(start, stop, step)`; `len` is limited to a machine word."""
    return max(0, -(-(stop - start) // step))


def stepped_index(site: Site, lower: Value, upper: Value, step: Value) -> Array:
    """The index of a loop in steps other than 1: `lower + iteration * step`, as jax makes it."""
    numbers = [part.value for part in (lower, upper, step) if isinstance(part, Const) and type(part.value) is int]
    # Downwards, `pl.loop` may do one iteration more than `range`: it rounds as if the step were positive.
    known = len(numbers) == 3 and numbers[2] > 0
    iteration = loop_index(site, Const(0), Const(range_length(*numbers)) if known else UNKNOWN)
    scaled = Array((), "i32", iteration.weak, origin=Op("jax.numpy.multiply", site, (iteration, step), ()))
    if lower == Const(0):
        return scaled
    return Array((), "i32", iteration.weak, origin=Op("jax.numpy.add", site, (lower, scaled), ()))


@frozen(eq=False)
class Allocation:
    """The buffers that a `run_scoped` or a pipeline holds while its body runs, and the enclosing allocation `outer`.

    `certain`: it does not depend on an undecided Python branch.
    """

    refs: tuple[Ref, ...]
    pipeline: Launch | None
    outer: Allocation | None
    certain: bool

    def held(self) -> Iterator[Allocation]:
        """It and what is held around it."""
        allocation: Allocation | None = self
        while allocation is not None:
            yield allocation
            allocation = allocation.outer


@define(eq=False)
class KernelTrace:
    """One kernel under one launch."""

    name: str
    site: Site
    launch: Launch
    refs: list[Ref] = field(factory=list)
    events: list[Event] = field(factory=list)
    complete: bool = True  # False: the trace stopped early (budget, unresolved kernel), absence proves nothing
    # The number of events before the first call of unknown code, which may access any ref; None: there was none.
    tracked_until: int | None = None
    untracked_at: list[int] = field(factory=list)  # the same for each such call
    returned: Value = UNKNOWN
    scopes: set[object] = field(factory=set)  # the owners of the buffers that `run_scoped` allocated
    allocations: list[Allocation] = field(factory=list)
    # What was found among the first `_sorted` events.
    _sorted: int = field(default=0, init=False)
    _ops: list[Op] = field(factory=list, init=False)
    _accesses: list[Access] = field(factory=list, init=False)
    _loads: dict[ById, Access] = field(factory=dict, init=False)  # by what they load

    def owns(self, ref: Ref) -> bool:
        """Whether the buffer certainly lives no longer than the kernel (or a block of it): all its uses are here."""
        return ref.owner is None or ref.owner in self.scopes

    def ops(self, *names: str) -> Iterator[Op]:
        self._sort()
        return iter([op for op in self._ops if op.name in names] if names else self._ops)

    @property
    def runs_foreign_code(self) -> bool:
        """Whether it calls a function that may use the barrier semaphore, which no argument brings."""
        return any(self.ops(FOREIGN_CALL))

    def agreements(self) -> Iterator[Agreement]:
        return (event for event in self.events if isinstance(event, Agreement))

    def accesses(self, parameter: str | None = None) -> Iterator[Access]:
        self._sort()
        if parameter is None:
            return iter(self._accesses)
        return iter([access for access in self._accesses if access.ref.parameter == parameter])

    def load_of(self, value: Array) -> Access | None:
        """The load whose result this value is, unchanged."""
        self._sort()
        return self._loads.get(ById(value)) if value.origin is None else None

    def _sort(self) -> None:
        """Sort the events that were added since the last time: events are only ever added."""
        if self._sorted == len(self.events):
            return
        for event in self.events[self._sorted :]:
            if event.__class__ is Op:
                self._ops.append(event)
            elif event.__class__ is Access:
                self._accesses.append(event)
                if event.kind == "load":
                    self._loads.setdefault(ById(event.value), event)
        self._sorted = len(self.events)


def is_full_index(index: Value) -> bool:
    """Whether `ref[index]` certainly covers the whole ref: `...`, `:`, `:, :`."""
    from pallas_lint.kernels.model.values import NONE, Seq, Slice

    if index == ELLIPSIS:
        return True
    if isinstance(index, Slice):
        return index.size is None and (index.start, index.stop, index.step) == (NONE, NONE, NONE)
    if isinstance(index, Seq):
        return not index.open and all(is_full_index(item) for item in index.items)
    return False


def refs_in(value: Value, seen: set[Instance] | None = None) -> Iterator[Ref]:
    """The refs that a value holds, inside tuples, lists and choices too. `seen`: instances looked into."""
    from pallas_lint.kernels.model.values import CallResult, Dictionary, Instance, Seq

    seen = set() if seen is None else seen
    for option in options(value):
        if isinstance(option, Ref):
            yield option
        elif isinstance(option, Seq):
            for item in option.items:
                yield from refs_in(item, seen)
        elif isinstance(option, Dictionary):
            for _, item in option.items:
                yield from refs_in(item, seen)
        elif isinstance(option, Instance) and option not in seen:
            seen.add(option)
            for item in option.attributes.values():
                yield from refs_in(item, seen)
        elif isinstance(option, CallResult) and option.function.endswith("_copy"):
            # The descriptor of an asynchronous copy can start it and wait for it.
            for item in (*option.args, *(value for _, value in option.keywords)):
                yield from refs_in(item, seen)
