"""jax's interpreter of Mosaic GPU kernels (0.11 and newer), corrected where it differs from a GPU."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from .. import device_targets, environment
from ..launches.launch import Launch, inner_jaxprs

_INTERNALS = "jax._src.pallas.mosaic_gpu.interpret"


def parameters(*, races: bool = True) -> Any:
    """The parameters of the GPU interpreter, which looks for `races`; None where this jax has none."""
    gpu = environment.optional("jax.experimental.pallas.mosaic_gpu")
    make = environment.found(gpu, "InterpretGPUParams", "InterpretParams")
    if make is None:
        return None
    fields = getattr(make, "__dataclass_fields__", {})
    return make(**({"detect_races": races} if "detect_races" in fields else {}))


@contextlib.contextmanager
def left_alone(launches: Iterable[Launch]) -> Iterator[None]:
    """Context in which these launches run, and jax does not import this interpreter to find that it is not needed.

    From 0.10 on it does, for every launch that is interpreted; all of Mosaic GPU comes along, which takes longer than
    many a kernel. Where it cannot be imported jax goes on without.
    """
    name = f"{_INTERNALS}.interpret_pallas_call"
    if name in sys.modules or any(launch.backend == "mosaic_gpu" for launch in launches):
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


@contextlib.contextmanager
def reads_before_copies() -> Iterator[None]:
    """Context in which a copy into SMEM does not race with reads that are over for its thread.

    The interpreter requires a `commit_smem` between a read and the copy that fills the buffer anew. On the device that
    fence makes *writes* visible to the copy engine; for reads the order of the program, or a barrier, is enough, and
    jax's own pipelines rely on it.
    """
    task = environment.found(environment.optional(f"{_INTERNALS}.gpu_callbacks"), "AsyncCopyGmemToSmemTask")
    state = environment.found(environment.optional(f"{_INTERNALS}.race_detection_state"), "GPURaceDetectionState")
    if task is None or state is None:
        yield
        return
    copy, check_write = task.post_read, state.check_write
    copying = threading.local()

    def post_read(self: Any, *arguments: Any) -> None:
        copying.clock = self.clock
        try:
            copy(self, *arguments)
        finally:
            copying.clock = None

    def checked(self: Any, thread: Any, clock: Any, buffer: Any, *rest: Any, **named: Any) -> None:
        issued = getattr(copying, "clock", None)
        if issued is None:
            check_write(self, thread, clock, buffer, *rest, **named)
            return
        with self.lock:
            reads = self.reads[buffer]
            left = self.reads[buffer] = [read for read in reads if not read[1].ordered(issued.generic_clock)]
            count = len(left)
        try:
            check_write(self, thread, clock, buffer, *rest, **named)
        finally:
            with self.lock:
                self.reads[buffer] = reads + left[count:]

    task.post_read, state.check_write = post_read, checked
    try:
        yield
    finally:
        task.post_read, state.check_write = copy, check_write


class _Write(tuple[Any, ...]):
    """A write as the interpreter records it, with a key for its values and place."""

    values: bytes | None = None


@contextlib.contextmanager
def equal_writes(reported: list[str]) -> Iterator[None]:
    """Context in which two writes of the same values to the same place do not race: whichever is first, they are there.

    Such writes are reported as races are.
    """
    callbacks = environment.optional(f"{_INTERNALS}.gpu_callbacks")
    memory = environment.found(environment.optional(f"{_INTERNALS}.shared_memory"), "GPUSharedMemory")
    tasks = [environment.found(callbacks, f"AsyncCopy{ends}Task") for ends in ("SmemToGmem", "GmemToSmem")]
    state = environment.found(environment.optional(f"{_INTERNALS}.race_detection_state"), "GPURaceDetectionState")
    if memory is None or state is None or None in tasks:
        yield
        return
    check, get, swap = state.check_write, memory.get_buffer_content, memory.swap_buffer_content
    copies = [(task, task.post_read) for task in tasks]
    here, alone = threading.local(), threading.Lock()

    def read(self: Any, *arguments: Any, **named: Any) -> Any:
        found = get(self, *arguments, **named)
        here.read = found[0]
        return found

    def swapped(self: Any, key: Any, access: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        here.written = value, mask
        return swap(self, key, access, value, mask, *rest, **named)

    def copied(original: Any) -> Any:
        def post_read(self: Any, *arguments: Any) -> None:
            here.written = here.read, None
            original(self, *arguments)

        return post_read

    def checked(self: Any, thread: Any, clock: Any, buffer: Any, where: Any, *rest: Any, **named: Any) -> None:
        values = _fingerprint(where, *here.__dict__.pop("written", (None, None)))
        with alone:
            with self.lock:
                equal: list[Any] = []
                others: list[Any] = []
                for write in self.writes[buffer]:
                    alike = values is not None and getattr(write, "values", None) == values
                    (equal if alike and not write[1].ordered(clock) else others).append(write)
                self.writes[buffer] = others
            try:
                check(self, thread, clock, buffer, where, *rest, **named)
            finally:
                with self.lock:
                    mine = _Write(self.writes[buffer][-1])
                    mine.values = values
                    self.writes[buffer] = [*equal, *self.writes[buffer][:-1], mine]
            for write in equal:
                sides = (f"  write of {buffer}[{side[2]}] from {side[0]}, {side[3]}" for side in (mine, write))
                reported.append("\n".join(("RACE DETECTED", *sides)))

    memory.get_buffer_content, memory.swap_buffer_content, state.check_write = read, swapped, checked
    for task, original in copies:
        task.post_read = copied(original)
    try:
        yield
    finally:
        memory.get_buffer_content, memory.swap_buffer_content, state.check_write = get, swap, check
        for task, original in copies:
            task.post_read = original


def _fingerprint(where: Any, value: Any, mask: Any) -> bytes | None:
    """What is the same of writes of the same values to the same place; None of one whose values are not known."""
    import numpy as np

    if value is None:
        return None
    parts = [np.asarray(value)] + ([] if mask is None else [np.asarray(mask)])
    found = hashlib.blake2b(repr([where.range, *((part.shape, part.dtype) for part in parts)]).encode())
    for part in parts:
        found.update(part.tobytes())
    return found.digest()


def by_axis_index(launch: Launch) -> dict[str, Any]:
    """The launch's parameters that change so that `pl.program_id`, always 0 to the interpreter, has its value.

    Raises Missing where it does not count along one axis of the grid.
    """
    from jax import lax

    jaxprs, meshes = launch.record.params.get("jaxprs"), launch.record.params.get("meshes") or ()
    if "program_id" not in launch.primitives or not jaxprs:
        return {}
    if any(mesh.cluster for mesh in meshes):
        raise device_targets.Missing("jax's interpreter has no program_id in clusters: use jax.lax.axis_index")
    axis_index = lax.axis_index_p

    def replaced(value: Any, names: tuple[str, ...]) -> Any:
        if not inner_jaxprs(value):
            return value
        if isinstance(value, tuple | list):
            return type(value)(replaced(each, names) for each in value)
        if getattr(value, "jaxpr", value) is not value:  # from 0.11 on a jaxpr names itself
            return value.replace(jaxpr=replaced(value.jaxpr, names))
        return value.replace(eqns=[renamed(equation, names) for equation in value.eqns])

    def renamed(equation: Any, names: tuple[str, ...]) -> Any:
        if str(equation.primitive) == "program_id":
            return equation.replace(primitive=axis_index, params={"axis_name": names[equation.params["axis"]]})
        return equation.replace(params={name: replaced(each, names) for name, each in equation.params.items()})

    return {"jaxprs": tuple(replaced(jaxpr, mesh.grid_names) for jaxpr, mesh in zip(jaxprs, meshes))}
