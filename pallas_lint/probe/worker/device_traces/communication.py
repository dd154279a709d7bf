"""Operations of a kernel that other devices see: signals, waits, copies, and accesses of memory."""

from __future__ import annotations

import math
from typing import Any

from ...interleaving.events import Copy, InvalidAccess, MemoryAccess, Signal, Wait
from .references import UNKNOWN, Buffer, UnknownValue, Unmodelled, View, first_unknown, view_of
from .scopes import MAX_VALUES
from .unroller import Unroller, rule

_PIPELINED = "a copy from another device into a block of the pipeline, which lies elsewhere at each step"


# -- devices -----------------------------------------------------------------------------------------------------------


def _line(run: Unroller, device: Any, core: Any, kind: Any, place: Any) -> int | str:
    """The line that a device id, and the number of a core, mean; as text where there is none. Raises Unmodelled."""
    number, own = run.core.number, run.core.axis
    if isinstance(device, dict) and own in device:
        core, device = device[own], {axis: at for axis, at in device.items() if axis != own} or None
    if isinstance(core, UnknownValue):
        raise Unmodelled("which core it is depends on data", place, core)
    if core is not None:
        number = int(core)
        if not 0 <= number < run.core.count:
            raise Unmodelled(f"core {number} of a device of which {run.core.count} are modelled", place)
    to = _device(run, device, kind, place)
    return to if isinstance(to, str) else to * run.core.count + number


def _device(run: Unroller, device: Any, kind: Any, place: Any) -> int | str:
    """The number of the device that a device id means; as text where there is none. Raises Unmodelled."""
    import jax

    if device is None:
        return run.device
    logical = str(getattr(kind, "name", kind)).upper() == "LOGICAL"
    ids = jax.tree_util.tree_leaves(device)
    data = first_unknown(ids)
    if data is not None:
        raise Unmodelled("which device it is depends on data", place, data)
    sizes = tuple(run.axes.values())
    if isinstance(device, dict):
        at = dict(run.coordinates)
        for axis, number in device.items():
            names = axis if isinstance(axis, tuple) else (axis,)
            rest = int(number)
            for name in reversed(names[1:]):
                rest, at[name] = divmod(rest, run.axes.get(name, 1))
            at[names[0]] = rest
        if any(axis not in run.axes for axis in at):
            raise Unmodelled("a device id along an axis that is none of the mesh", place)
        coordinates = tuple(at[axis] for axis in run.axes)
    elif logical or not isinstance(device, tuple | list):
        number = int(ids[0])
        if not logical and len(sizes) > 1:
            raise Unmodelled("one number for a device of a mesh of several axes", place)
        return number if 0 <= number < math.prod(sizes) else str(number)
    else:
        coordinates = tuple(map(int, ids))
        if len(coordinates) != len(sizes):
            raise Unmodelled("a device id of another length than the mesh", place)
    if not all(0 <= each < size for each, size in zip(coordinates, sizes)):
        return str(coordinates[0] if len(coordinates) == 1 else coordinates)
    number = 0
    for each, size in zip(coordinates, sizes):
        number = number * size + each
    return number


@rule("get_barrier_semaphore")
def _barrier(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    tag = equation.params.get("tag")
    name = "barrier" if tag is None else f"barrier {tag}"
    return [run.barriers.setdefault(name, Buffer(name, name, (), 0, "semaphore", "barrier", run.line))]


def _on_tpu(run: Unroller, equation: Any) -> Any:
    """The place of an operation on a semaphore, where these are modelled. Raises Unmodelled."""
    place = run.place(equation)
    if run.work is not None:
        raise Unmodelled("a semaphore in main memory", place)
    return place


@rule("semaphore_signal")
def _signal(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    place = _on_tpu(run, equation)
    ref, transforms, amount, device, core = equation.params["args_tree"].unflatten(values)
    if isinstance(amount, UnknownValue):
        raise Unmodelled("how much is signalled depends on data", place, amount)
    to = _line(run, device, core, equation.params.get("device_id_type"), place)
    if isinstance(to, str):
        run.emit(InvalidAccess(place, run.step, "signal", to))
    elif amount:
        run.emit(Signal(place, run.step, part(ref, transforms, place).semaphore(place, to), int(amount)))
    return []


@rule("semaphore_wait")
def _wait(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    place = _on_tpu(run, equation)
    ref, transforms, amount, *more = equation.params["args_tree"].unflatten(values)
    if isinstance(amount, UnknownValue):
        raise Unmodelled("how much is waited for depends on data", place, amount)
    takes = not more or more[0] is None or isinstance(more[0], UnknownValue) or bool(more[0])
    if amount:
        run.emit(Wait(place, run.step, part(ref, transforms, place).semaphore(place), int(amount), takes))
    return []


@rule("semaphore_read")
def _read_semaphore(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    return [UNKNOWN]


def part(ref: Any, transforms: Any, place: Any) -> View:
    """The part of a reference that transforms make of it. Raises Unmodelled."""
    view = view_of(ref, place)
    for transform in transforms or ():
        view = view.transformed(transform, place)
    return view


# -- copies ------------------------------------------------------------------------------------------------------------


def _ends(equation: Any, values: list[Any], place: Any) -> tuple[View, View, View | None, View | None, Any]:
    """Source, destination, semaphore of the destination and of the source, device."""
    parts = tuple(equation.params["tree"].unflatten(values))
    if len(parts) == 9:  # to 0.9 references and their transforms stand apart
        source, on_source, target, on_target, received, on_received, sent, on_sent, device = parts
    else:
        source, target, received, sent, device = parts
        on_source = on_target = on_received = on_sent = ()

    def semaphore(ref: Any, transforms: Any) -> View | None:
        return None if ref is None else part(ref, transforms, place)

    ends = part(source, on_source, place), part(target, on_target, place)
    return *ends, semaphore(received, on_received), semaphore(sent, on_sent), device


@rule("dma_start")
def _copy(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    place = run.place(equation)
    source, target, received, sent, device = _ends(equation, values, place)
    if equation.params.get("add"):
        raise Unmodelled("a copy that adds to what is there", place)
    if received is None:
        raise Unmodelled("a copy without a semaphore", place)
    if not source.bytes:  # nothing is read, written or signalled
        return []
    to = _line(run, device, None, equation.params.get("device_id_type"), place)
    if isinstance(to, str):
        run.emit(InvalidAccess(place, run.step, "copy", to))
        return []
    if to != run.line and target.buffer.moves:
        raise Unmodelled(_PIPELINED, place)
    for view in (source, target):
        run.vague += not view.region().exact
    given = None if sent is None else sent.semaphore(place)
    semaphore = received.semaphore(place, to)
    there = to if target.buffer.home == run.home.line else to - run.core.number
    ends = (source.region(),), (target.region(there),)
    run.emit(Copy(place, run.step, *ends, source.bytes, semaphore, given))
    if to != run.line or (run.core.count > 1 and target.buffer.space in ("any", "hbm")):
        run.sent.add(target.buffer.key)
    if to == run.line and target.buffer.values is not None:
        _store(target, _integers(run, source, source.shape))
    return []


@rule("dma_wait")
def _wait_for_copy(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    place = run.place(equation)
    _, target, semaphore, _, _ = _ends(equation, values, place)
    if semaphore is None:
        raise Unmodelled("a wait for a copy without a semaphore", place)
    # It counts the bytes of the reference in the place of the destination, as jax's interpreter does.
    if target.bytes:
        run.emit(Wait(place, run.step, semaphore.semaphore(place), target.bytes))
    return []


# -- memory ------------------------------------------------------------------------------------------------------------


def access(run: Unroller, equation: Any, view: View, *, writes: bool) -> None:
    """The line itself reads or writes."""
    region = view.region()
    if not region.exact:
        run.vague += 1
        return
    event = MemoryAccess(run.place(equation), run.step, region, writes, run.on_data)
    if not run.events or run.events[-1] != event:
        run.emit(event)


def _viewed(equation: Any, ref: Any, rest: list[Any], place: Any) -> View:
    """The part of a reference that an access is of: `rest` are the operands that its transforms are made of."""
    tree = equation.params.get("tree")
    return part(ref, tree.unflatten(rest) if tree is not None else (), place)


@rule("get")
def _get(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    ref, *rest = values
    view = _viewed(equation, ref, rest, run.place(equation))
    access(run, equation, view, writes=False)
    return [_value(run, view, equation.outvars[0].aval)]


@rule("swap")
def _swap(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    ref, value, *rest = values
    view = _viewed(equation, ref, rest, run.place(equation))
    former = UNKNOWN
    if equation.outvars[0] in run.used:
        access(run, equation, view, writes=False)
        former = _value(run, view, equation.outvars[0].aval)
    access(run, equation, view, writes=True)
    _store(view, value)
    return [former]


@rule("addupdate")
def _add(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    ref, _, *rest = values
    view = _viewed(equation, ref, rest, run.place(equation))
    access(run, equation, view, writes=False)
    access(run, equation, view, writes=True)
    _forget(view)
    return []


@rule("masked_load", "load")
def _load(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    if "args_tree" not in equation.params:  # Mosaic GPU has one of this name, too
        return _get(run, equation, values)
    ref, transforms, *_ = equation.params["args_tree"].unflatten(values)
    access(run, equation, part(ref, transforms, run.place(equation)), writes=False)
    return [UNKNOWN]


@rule("masked_swap")
def _masked(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    ref, transforms, *_ = equation.params["args_tree"].unflatten(values)
    view = part(ref, transforms, run.place(equation))
    access(run, equation, view, writes=True)
    _forget(view)
    return [UNKNOWN]


@rule("transform_ref")
def _transformed(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    ref, *rest = values
    tree = equation.params.get("transforms_tree")
    return [part(ref, tree.unflatten(rest) if tree is not None else (), run.place(equation))]


@rule("with_memory_space_constraint", "pin", "unpin")
def _same_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    return [values[0]]


def _slices(view: View) -> Any:
    """How NumPy indexes the part; None where that depends on data."""
    if view.dims is None or any(start is None for start, _, _ in view.box):
        return None
    return tuple(slice(start, start + size * stride, stride) for start, size, stride in view.box if start is not None)


def _value(run: Unroller, view: View, aval: Any) -> Any:
    """What is known to be in that part of a buffer of integers, as a value of that type."""
    import numpy as np

    found = _integers(run, view, aval.shape)
    return found if isinstance(found, UnknownValue) else np.array(found.tolist(), aval.dtype)


def _integers(run: Unroller, view: View, shape: tuple[int, ...]) -> Any:
    """What is known to be in that part of a buffer of integers, as an object array."""
    import numpy as np

    where, values = _slices(view), view.buffer.values
    if values is None or where is None or math.prod(shape) > MAX_VALUES or view.buffer.key in run.lost:
        return UNKNOWN
    found = np.asarray(values[where], object)
    if found.size != math.prod(shape):
        return UNKNOWN
    data = first_unknown(found.reshape(-1))
    if data is not None:
        return data
    run.relied.add(view.buffer.key)
    return found.reshape(shape)


def _store(view: View, value: Any) -> None:
    import numpy as np

    if view.buffer.values is None:
        return
    where = _slices(view)
    if where is None:
        view.buffer.values[...] = UNKNOWN
    elif isinstance(value, UnknownValue) or np.size(value) != math.prod(view.shape):
        view.buffer.values[where] = value if isinstance(value, UnknownValue) else UNKNOWN
    else:
        shape = view.buffer.values[where].shape
        view.buffer.values[where] = np.asarray(value).astype(object).reshape(shape)


def _forget(view: View) -> None:
    _store(view, UNKNOWN)
