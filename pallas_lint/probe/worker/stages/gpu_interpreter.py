"""jax's interpreter of Mosaic GPU kernels, from 0.11 on, with what it does not do as a GPU does put right."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from .. import devices, environment
from ..launches.launch import Launch, inner_jaxprs

_INTERNALS = "jax._src.pallas.mosaic_gpu.interpret"


def parameters(*, races: bool = True) -> Any:
    """Its parameters, with races looked for or not; None where this jax has no such interpreter."""
    gpu = environment.optional("jax.experimental.pallas.mosaic_gpu")
    make = environment.found(gpu, "InterpretGPUParams", "InterpretParams")
    if make is None:
        return None
    fields = getattr(make, "__dataclass_fields__", {})
    return make(**({"detect_races": races} if "detect_races" in fields else {}))


@contextlib.contextmanager
def left_alone(launches: Iterable[Launch]) -> Iterator[None]:
    """Context in which these launches run, and jax does not import this interpreter to find that it is not asked for.

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
    """Context in which a copy into SMEM does not race with reads that its thread knows to be over.

    The interpreter asks for a `commit_smem` between a read and the copy that fills the buffer anew. On the device that
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


def by_axis_index(launch: Launch) -> dict[str, Any]:
    """The launch's parameters that change so that `pl.program_id`, always 0 to the interpreter, has its value.

    Raises Missing where it does not count along one axis of the grid.
    """
    from jax import lax

    jaxprs, meshes = launch.record.params.get("jaxprs"), launch.record.params.get("meshes") or ()
    if "program_id" not in launch.primitives or not jaxprs:
        return {}
    if any(mesh.cluster for mesh in meshes):
        raise devices.Missing("jax's interpreter knows no program_id in clusters: ask for jax.lax.axis_index")
    axis_index = lax.axis_index_p

    def replaced(value: Any, names: tuple[str, ...]) -> Any:
        if not inner_jaxprs(value):
            return value
        if isinstance(value, tuple | list):
            return type(value)(replaced(each, names) for each in value)
        if getattr(value, "jaxpr", value) is not value:  # from 0.11 on a jaxpr names itself
            return value.replace(jaxpr=replaced(value.jaxpr, names))
        return value.replace(eqns=[asked(equation, names) for equation in value.eqns])

    def asked(equation: Any, names: tuple[str, ...]) -> Any:
        if str(equation.primitive) == "program_id":
            return equation.replace(primitive=axis_index, params={"axis_name": names[equation.params["axis"]]})
        return equation.replace(params={name: replaced(each, names) for name, each in equation.params.items()})

    return {"jaxprs": tuple(replaced(jaxpr, mesh.grid_names) for jaxpr, mesh in zip(jaxprs, meshes))}
