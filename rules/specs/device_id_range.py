"""PAL316 device-id-range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Array, Context, Dictionary, Example, Finding, Op, Rule, Seq, Severity, Site, Sym, Value
from pallas_lint.identity import iter_unique
from pallas_lint.kernels.facts.copy_ends import started_by
from pallas_lint.kernels.facts.devices import DevicePoint, axes_around, axes_of
from pallas_lint.kernels.library.operands import leaves
from pallas_lint.kernels.model.known_names import PALLAS, REMAINDERS, name_of
from pallas_lint.kernels.model.values import Const
from pallas_lint.records import frozen
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import Guard

# By the position of the device id, None where it has a keyword only.
_DEVICE_AT = {
    f"{PALLAS}.semaphore_signal": None,
    f"{PALLAS}.tpu.semaphore_signal": None,
    f"{PALLAS}.mosaic_gpu.semaphore_signal_parallel": None,
    f"{PALLAS}.mosaic_gpu.remote_ref": 1,
    f"{PALLAS}.tpu.make_async_remote_copy.start": 4,
    f"{PALLAS}.tpu.async_remote_copy": 4,
}
_MAX_DEVICES = 4096
_ADD_THE_SIZE = "`lax.rem` keeps the sign of what is divided: add the size before, `lax.rem(me + n - 1, n)`"
_TAKE_THE_REMAINDER = "take the remainder by the size of the axis: `lax.rem(me + 1, n)`"
_ASSUMED = (2, 3, 4, 8)  # devices along an axis of unknown size


class DeviceIdRange(Rule):
    """A device id that no device of the mesh has.

    A device id is given by coordinates, one for each axis of the mesh that the `shard_map` around the launch has. One
    number for a mesh of two axes is refused when the kernel is lowered, on TPU and GPU: `Number of device ids must
    match the number of mesh axes`. And a coordinate outside of its axis is no device: `lax.rem(me - 1, n)` keeps the
    sign of what is divided, so that it is -1 on the first device, which runs into memory of another or never ends, and
    `me + 1` is past the last one.

    ## How to fix

    Pass a tuple with one coordinate for each axis, or a dict by the names of the axes that differ; `lax.rem(me + n - 1,
    n)`, or `(me - 1) % n`, for the neighbour on the left.

    ## Known limits

    The mesh has to be made in the text, and passed to the `shard_map`. Ids are computed for each device of a mesh of
    known size on which the conditions around the start of the copy hold; of another mesh those that are outside whether
    an axis has 2, 3, 4 or 8 devices, as a warning.

    ## References

    - jax issue 29849.
    - Lowered for TPU with jax 0.6.2, 0.8.3, 0.10.2 and 0.12.0.1, for a mesh of one and of two axes.
    """

    code = "PAL316"
    name = "device-id-range"
    severity = Severity.ERROR
    ops = tuple(_DEVICE_AT)
    invalid = (
        Example(
            """
            from jax.sharding import PartitionSpec as P

            def shift(x_ref, o_ref, send, recv):
                left = lax.rem(lax.axis_index("x") - 1, 4)  #!
                copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=(left,))
                copy.start()
                copy.wait()

            def run(x):
                mesh = jax.make_mesh((4,), ("x",))

                def body(x):
                    return pl.pallas_call(
                        shift,
                        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
                    )(x)

                return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)
            """
        ),
        Example(
            """
            from jax.sharding import PartitionSpec as P

            def shift(x_ref, o_ref, send, recv):
                right = lax.rem(lax.axis_index(("x", "y")) + 1, 8)
                copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=right)  #!
                copy.start()
                copy.wait()

            def run(x):
                mesh = jax.make_mesh((2, 4), ("x", "y"))

                def body(x):
                    return pl.pallas_call(
                        shift,
                        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
                    )(x)

                spec = P(("x", "y"))
                return jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.sharding import PartitionSpec as P

            def shift(x_ref, o_ref, send, recv):
                left = lax.rem(lax.axis_index("y") + 3, 4)
                copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=(lax.axis_index("x"), left))
                copy.start()
                copy.wait()

            def run(x):
                mesh = jax.make_mesh((2, 4), ("x", "y"))

                def body(x):
                    return pl.pallas_call(
                        shift,
                        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
                    )(x)

                spec = P(("x", "y"))
                return jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        copy, at = started_by(op) or op, _DEVICE_AT[op.name]
        given = copy.argument("device_id") if at is None else copy.argument("device_id", at)
        if given is None or copy.open or context.launch is None or (isinstance(given, Seq) and given.open):
            return
        logical = name_of(copy.argument("device_id_type")).endswith("LOGICAL")
        axes, parts = axes_around(context.launch), tuple(leaves(given))
        if axes is not None and not logical and not isinstance(given, Dictionary) and len(parts) != len(axes):
            names = ", ".join(f"`{axis}`" for axis in axes)
            yield context.finding(
                copy.site,
                f"{count_of(len(parts), 'device id')} for a mesh with the axes {names}",
                help="pass one coordinate for each axis of the mesh, in a tuple, or a dict by the axes that differ",
                op=op,
            )
            return
        for coordinate in _computed(parts) if axes is None else _coordinates(given, parts, axes, logical=logical):
            outside = _outside(coordinate, op.guards)
            if outside is None:
                continue
            device, value = outside
            site = _computed_at(coordinate.value, copy.site)
            yield context.finding(
                site,
                f"device id {value} {coordinate.words(device)}",
                help=_ADD_THE_SIZE if value < 0 else _TAKE_THE_REMAINDER,
                certain=None not in coordinate.axes.values() and not _divisors(coordinate.value),
                related=[(copy.site, "taken as a device id here")] if site is not copy.site else [],
                op=op,
            )
            return


def _computed_at(value: Value, used: Site) -> Site:
    """Where a coordinate is computed: the mistake is there. Another file has findings of its own."""
    op = value.origin if isinstance(value, Array) else None
    return op.site if op is not None and op.site.span.path == used.span.path else used


@frozen
class _Coordinate:
    """A number that chooses a device, in a mesh with `axes`; `along` are those whose sizes bound it, if known."""

    value: Value
    axes: dict[str, int | None]
    along: tuple[str, ...] | None
    where: str = ""

    def bound(self, lengths: dict[str, int]) -> int | None:
        if self.along is None or not lengths.keys() >= set(self.along):
            return None
        return math.prod(lengths[axis] for axis in self.along)

    def words(self, device: str) -> str:
        if not self.where:
            return f"on device {device} of {', '.join(f'`{axis}`' for axis in self.axes)}"
        sizes = {axis: size for axis, size in self.axes.items() if size is not None}
        size = self.bound(sizes)
        return f"for {self.where}{f' of size {size}' if size is not None else ''}, on device {device}"


def _coordinates(
    given: Value, parts: tuple[Value, ...], axes: dict[str, int | None], *, logical: bool
) -> Iterator[_Coordinate]:
    if logical:
        yield from (_Coordinate(part, axes, tuple(axes), "a mesh") for part in parts[:1])
        return
    items = given.items if isinstance(given, Dictionary) else zip(map(Const, axes), parts, strict=True)
    for key, value in items:
        if isinstance(key, Const):
            yield _Coordinate(value, axes, (str(key.value),), f"axis `{key.value}`")


def _computed(parts: tuple[Value, ...]) -> Iterator[_Coordinate]:
    """Coordinates on a mesh of unknown size, with the axes that they are computed from."""
    for part in parts:
        axes = axes_of(part)
        if axes:
            yield _Coordinate(part, dict.fromkeys(axes), tuple(axes) if len(axes) == 1 else None)


def _outside(coordinate: _Coordinate, guards: tuple[Guard, ...]) -> tuple[str, int] | None:
    """The first device on which a coordinate is outside of its axis, and the coordinate.

    Axes of unknown size, and names that a remainder is taken by, are taken to have each of some sizes: it has to be
    outside for all of them.
    """
    found, names = None, _divisors(coordinate.value)
    for assumed in _ASSUMED if names or None in coordinate.axes.values() else (0,):
        lengths = {axis: length or assumed for axis, length in coordinate.axes.items()}
        found = _outside_of(coordinate, lengths, dict.fromkeys(names, assumed), guards)
        if found is None:
            return None
    return found


def _outside_of(
    coordinate: _Coordinate, lengths: dict[str, int], symbols: dict[Sym, int], guards: tuple[Guard, ...]
) -> tuple[str, int] | None:
    size = coordinate.bound(lengths)
    for place in itertools.islice(itertools.product(*map(range, lengths.values())), _MAX_DEVICES):
        point = DevicePoint((), (), symbols, coordinates=dict(zip(lengths, place, strict=True)), axes=lengths)
        here = point.value(coordinate.value)
        if isinstance(here, bool) or not isinstance(here, int):
            return None
        if (here < 0 or (size is not None and here >= size)) and point.runs(guards):
            return (str(place[0]) if len(place) == 1 else str(place)), here
    return None


def _divisors(value: Value) -> set[Sym]:
    """The names that a remainder is taken by: `n` of `lax.rem(me - 1, n)`."""
    found: set[Sym] = set()
    stack = [value]
    for current in iter_unique(stack):
        op = current.origin if isinstance(current, Array) else None
        if op is not None:
            stack += op.args
            if op.short in REMAINDERS and isinstance(op.args[-1], Sym):
                found.add(op.args[-1])
    return found
