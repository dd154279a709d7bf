"""Messages between the probe and its worker: requests in, events out, each a line of JSON.

The worker runs in the user's interpreter: nothing but the standard library of Python 3.10 is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict, Union, cast, final

from .cost.causes import Causes, Spot
from .cost.causes import Place as Place
from .cost.results import Cost, FunctionCost  # noqa: TC001
from .interleaving.report import NotANumber as NotANumber
from .interleaving.report import OnDevices as OnDevices
from .typed_json import ProtocolError as ProtocolError
from .typed_json import checked, json_object
from .typed_json import read_as as read_as

# -- arguments ---------------------------------------------------------------------------------------------------------


class ArrayType(TypedDict):
    """An array by its type; `ArrayOf` has values."""

    kind: Literal["array"]
    dtype: str
    shape: list[int]


class ArrayOf(ArrayType, total=False):
    values: Any  # nested lists of numbers, or "arange"


class Items(TypedDict):
    kind: Literal["list", "tuple"]
    value: list[Argument]


class Pairs(TypedDict):
    kind: Literal["dict"]
    value: list[tuple[Any, Argument]]  # keys are literals


class Literally(TypedDict):
    """A dtype by its short name, or a Python literal as it is written."""

    kind: Literal["dtype", "literal"]
    value: str


Argument = Union[ArrayOf, Items, Pairs, Literally]  # noqa: UP007  a value, not an annotation

# -- requests ----------------------------------------------------------------------------------------------------------

StageName = Literal["grid", "verify", "interpret", "checks", "lower", "compile", "cost", "run"]


class RequestOptions(TypedDict):
    """What does not depend on the function. `targets`: empty for each launch's own."""

    targets: list[str]
    perf: bool  # predict the cost of each launch, too
    whole: bool  # predict the cost of the whole function, too
    devices: int | None  # how many the function sees
    promela: bool  # write models of kernels on several devices
    runs: bool  # run kernels in interpret mode
    real: bool  # run them on the device that is there, too
    stages: list[str]
    reference: str | None
    against: str | None  # another function of the same file, whose cost is predicted
    timeout: float
    memory_limit: int


class DoneBefore(TypedDict, total=False):
    """What earlier children of the worker did of a request: tasks that are over, and those of them that failed."""

    skip: list[str]
    failed: list[str]
    left: float  # seconds
    schedules: str  # the folder in which compilers leave what they made of kernels
    unscheduled: bool  # libtpu writes none there, since it takes too long


class Function(RequestOptions):
    file: str
    function: str
    args: list[Argument]
    kwargs: dict[str, Argument]
    texts: dict[str, str]  # of files that are not as on disk
    roots: list[str]  # folders above the file from which its project imports


@final
class FunctionRequest(Function, DoneBefore, total=False):
    """Take a function's launches through the stages."""

    bisect: tuple[int, str]  # rather find the operation on which the compiler dies: launch, target
    variant: str  # rather compare its result with that of this text of its file
    alone: int  # rather run this launch on the device, once and in this very process
    watched: bool  # send the dependencies of the result


class Modules(TypedDict):
    modules: list[LeftToCompile]
    timeout: float
    memory_limit: int


@final
class ModulesRequest(Modules, DoneBefore, total=False):
    """Compile what a captured program has lowered."""


Request = Union[FunctionRequest, ModulesRequest]  # noqa: UP007

# -- problems ----------------------------------------------------------------------------------------------------------


class OfOperand(TypedDict):  # about whose blocks a grid's problem is
    operand: str
    role: str
    index: int
    shape: list[int]
    block: list[int]


class OutOfRange(OfOperand):
    """A block begins outside of its array."""

    kind: Literal["out-of-range"]
    dtype: str
    point: list[int]
    start: list[int]
    count: int
    points: int
    places: list[Place]  # of the index map, where that is known


class Ragged(OfOperand):  # a block that is partly outside of its array
    kind: Literal["ragged"]
    axes: list[int]
    count: int


class Uncovered(OfOperand):
    """Blocks of an output that no grid point writes, or of an input that is summed over."""

    kind: Literal["uncovered", "unread"]
    visited: int
    total: int


class ParallelWrites(OfOperand):
    """Two points of parallel axes write one block."""

    kind: Literal["parallel-writes"]
    axes: list[int]
    first: list[int]
    second: list[int]
    carried: bool  # a step may read what another one left there


class Revisited(OfOperand):
    """A block that is left and come back to."""

    kind: Literal["revisited"]
    first: list[int]
    second: list[int]


class Shared(OfOperand):  # several grid points write one block
    kind: Literal["shared"]
    visited: int
    points: int
    places: list[Place]  # where each of them stores a value of its own at the same place


class Worded(TypedDict):
    message: str


class LocatedMessage(Worded):
    """A message about the user's code, the most informative place first."""

    places: list[Place]


class _Raised(LocatedMessage):
    kind: Literal["raised"]
    type: str


class _StandsAlone(TypedDict, total=False):
    alone: bool  # whether it is so of the launch alone: in a function, XLA may keep arrays in VMEM


class Raised(_Raised, _StandsAlone, total=False):
    """An exception."""

    in_index_map: Place | None
    in_launch: bool  # whether pallas called what failed
    example: list[str]  # arguments that the function takes, where it does not take these


class _OnValues(TypedDict, total=False):
    depends_on: list[str]  # made-up operands on other values of which it is gone


class InInterpreter(LocatedMessage, _OnValues):
    """What an interpreter refuses of an access."""

    kind: Literal["out-of-bounds", "revisited", "protocol"]
    type: str


class Side(Spot):
    """One access of two that race."""

    access: str
    column: int


class _Race(LocatedMessage):
    kind: Literal["race"]
    sides: list[Side]


class Race(_Race, _OnValues, total=False):
    equal: bool  # whether both write the same values


class Checked(LocatedMessage, _OnValues):
    """A failure of checkify."""

    kind: Literal["nan", "division", "out-of-bounds", "check"]


class _Here(TypedDict, total=False):
    device: str  # of this machine, on which the function ran; else it was interpreted


class MismatchProblem(Worded, _Here):  # of results and the reference's
    kind: Literal["mismatch"]


class MemoryPart(TypedDict):
    name: str
    role: str
    bytes: int
    buffers: int


class Needed(TypedDict):
    """Bytes of on-chip memory that a launch needs at least."""

    space: str
    bytes: int
    parts: list[MemoryPart]


class OverBudget(Needed, _StandsAlone):
    """More than a target has of a memory."""

    kind: Literal["memory"]
    limit: int
    target: str


class _Ended(Worded):
    kind: Literal["crash", "deadline", "memory-limit"]
    output: str
    status: int | None


class Ended(_Ended, total=False):
    """A child that died before the end of a stage."""

    culprit: Culprit | None


# By their source: any stage may also raise an exception, or die before its end.
GridProblem = Union[  # noqa: UP007
    OutOfRange, Ragged, Uncovered, ParallelWrites, Revisited, Shared, OverBudget, Raised, Ended
]
DeviceProblem = Union[OnDevices, Raised, Ended]  # noqa: UP007
RunProblem = Union[OnDevices, InInterpreter, Race, NotANumber, Raised, Ended]  # noqa: UP007
CHECKS = ("nan", "division", "out-of-bounds", "check")
TargetProblem = Union[OverBudget, Raised, Ended]  # noqa: UP007
Difference = Union[MismatchProblem, Raised]  # noqa: UP007
Problem = Union[GridProblem, DeviceProblem, RunProblem, Checked, TargetProblem, Difference]  # noqa: UP007

# -- events ------------------------------------------------------------------------------------------------------------


class _Begin(TypedDict):
    event: Literal["begin"]
    task: str


class Begin(_Begin, total=False):
    share: float  # that the task may take of the time that is left


class WarpWork(TypedDict):
    """What one warp of a GPU kernel does, by unit."""

    wgmma: float  # clocks of the tensor cores of a multiprocessor
    mma: float  # the same, of `mma.sync`
    shared: float  # clocks of shared memory
    special: int  # instructions of the special function units
    shuffles: int
    barriers: int
    copies: int  # from global memory, not awaited yet
    issued: int  # instructions, but for those of tensor cores


class BlockWork(TypedDict):
    """What a block of a GPU kernel does, and how many there are. `lines`: of 128 bytes in global memory."""

    once: WarpWork
    turn: WarpWork  # of the loop
    turns: int
    lines: float
    turn_lines: float
    stages: int  # of software pipelining
    blocks: int


class TaskReport(TypedDict, total=False):
    """The result of a stage. `detail` is the reason where it could not be tried."""

    detail: str | None
    unreached: bool  # because time ran out
    problems: list[Problem]
    figures: dict[str, int]  # from the compiler
    work: BlockWork
    no_work: str  # why it is not known, as a clause
    cost: Cost
    function: FunctionCost
    states: int  # steps that were looked at, of devices
    model: str  # of what devices do, for spin


class StageResult(TaskReport, total=False):
    ok: bool | None  # None where it could not be tried


class _End(TypedDict):
    event: Literal["end"]
    task: str
    ok: bool | None
    seconds: float


@final
class TaskEnd(_End, TaskReport):
    """A task that is no launch's: loading, tracing, the comparison with a reference."""


@final
class StageEnd(_End, TaskReport):
    launch: int
    stage: StageName
    target: str | None


class Parts(TypedDict):  # the versions of jax and the compilers, and the interpreter
    event: Literal["parts"]
    parts: dict[str, str | None]


class Files(TypedDict):  # of the user's own, that were imported
    event: Literal["files"]
    files: list[str]


class _Operand(TypedDict):
    name: str
    role: str
    shape: list[int]
    dtype: str
    block: list[int] | None
    memory_space: str | None


class OperandFacts(_Operand, total=False):
    blocks_visited: int
    blocks_total: int


class Memory(Needed):
    """What a launch needs, and what a device gives it."""

    device: str
    limit: int


Picture = dict[str, Union[list[list[int]], None]]  # noqa: UP007  blocks at each grid point, by the operand's number


class Facts(TypedDict):
    """A launch, as its parameters describe it."""

    kind: str  # the primitive
    kernel: str
    place: Place | None
    stack: list[Place]
    kernel_place: Place | None
    backend: str | None
    grid: list[int] | None  # None where it is dynamic
    axes: dict[str, int]  # of the mesh of devices that it stands in, with their sizes
    semantics: list[str] | None
    aliases: list[list[int]]
    interpret: bool
    times: int
    reads: list[str]
    waits: bool
    guessed: list[str]  # integer operands with unknown values
    targets_guessed: bool
    stages: list[tuple[str, Union[str, None]]]  # noqa: UP007  that it is to go through, with their targets
    memory: Memory | None
    operands: list[OperandFacts]
    picture: Picture | None
    causes: Causes | None  # where its cost is requested


class RestsOn(TypedDict):
    """What the answer rests on. `beyond`: what else it does, for which it cannot be given again unseen."""

    event: Literal["rests"]
    installed: list[str]  # files of packages, of Python's and of the system's
    read: list[str]  # other files
    searched: list[str]  # folders that modules were looked for in
    beyond: str | None


class _LaunchFields(Facts):
    event: Literal["launch"]
    launch: int


class LaunchEvent(_LaunchFields, total=False):
    digest: str  # of all that its verdict rests on


Typed = tuple[list[int], str, str | None]  # shape, dtype, memory where it is not the device's own


class LeftToCompile(TypedDict):
    """A launch that was lowered, in a file for another process to compile."""

    event: Literal["compile"]
    launch: int
    target: str
    file: str
    ins: list[Typed]
    outs: list[Typed]
    axes: dict[str, int]  # of the mesh that it is to be compiled for, with their sizes; none: one device
    over: OverBudget | None  # why it may not fit
    options: dict[str, Any]  # of the compiler


class _Culprit(TypedDict):
    event: Literal["culprit"]
    primitive: str


class Culprit(_Culprit, total=False):
    """The operation without which the compiler lives; it is a place where it has one."""

    file: str
    line: int
    column: int | None
    end_line: int | None
    end_column: int | None
    function: str


class _Fate(TypedDict, total=False):
    schedules: bool  # a compiler had too little time since it also wrote schedules


class Fate(_Fate):
    """How a child ended before it was through. `status`: negative for the signal."""

    reason: Literal["exit", "deadline", "task-deadline", "waiting", "memory", "processes"]
    status: int | None
    output: str


class Died(Fate):
    event: Literal["died"]
    task: str | None


class Error(TypedDict):
    event: Literal["error"]
    message: str


class Closing(TypedDict):
    event: Literal["finished", "done"]  # of a child, of the worker


Event = Union[  # noqa: UP007
    Begin, TaskEnd, StageEnd, Parts, Files, RestsOn, LaunchEvent, LeftToCompile, Culprit, Died, Error, Closing
]

Emit = Callable[[Event], None]

# -- reading -----------------------------------------------------------------------------------------------------------


_EVENTS: dict[str, type] = {
    "begin": Begin, "parts": Parts, "files": Files, "rests": RestsOn, "launch": LaunchEvent, "compile": LeftToCompile,
    "culprit": Culprit, "died": Died, "error": Error, "finished": Closing, "done": Closing,
}  # fmt: skip


def read_event(line: str | bytes) -> Event:
    """The event on a line. Raises ProtocolError."""
    message = json_object(line)
    name = message.get("event")
    kind: Any = (StageEnd if "launch" in message else TaskEnd) if name == "end" else _EVENTS.get(str(name))
    if kind is None:
        raise ProtocolError(f"there is no event {name!r:.80}")
    return cast("Event", checked(message, kind, f"event {name!r}"))


def read_request(line: str | bytes) -> Request:
    """The request on a line. Raises ProtocolError."""
    message = json_object(line)
    return cast("Request", checked(message, ModulesRequest if "modules" in message else FunctionRequest, "request"))
