"""Launches as they are bound: every `pallas_call` and `pl.kernel` that runs or is traced, also in libraries.

`bind` is replaced on the primitives themselves, so that names imported early, jit, vmap and custom derivatives are all
seen (jax 0.4.35 to 0.12).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from ...protocol import Place
from .. import environment
from ..recording import stub
from . import locate, settings

PRIMITIVES = (
    ("jax._src.pallas.pallas_call", "pallas_call_p"),
    ("jax._src.pallas.mpmd", "mpmd_map_p"),  # pl.kernel from 0.10
    ("jax._src.pallas.core", "core_map_p"),  # pl.kernel and pl.core_map, 0.5 to 0.9
)

_MAX_ELEMENTS = 1 << 20  # elements of a value that is kept
_MAX_KEPT = 1 << 28  # bytes of all values that are kept of the launches of a program


# Values of a launch's operands, by their numbers, each with a mask of the elements that are not known; None: all are.
KnownOperands = dict[int, tuple[Any, Any]]


def known_operands(values: Iterable[Any]) -> KnownOperands:
    """Operands whose values are known, of those that are None for unknown ones."""
    import numpy as np

    return {at: (np.asarray(value), None) for at, value in enumerate(values) if value is not None}


@dataclass
class Record:
    """One launch with the arguments that it was bound with."""

    primitive: Any
    params: dict[str, Any]
    avals: list[Any]
    values: list[Any]  # the operands whose values are known, None for the others
    stack: list[Place] = field(default_factory=list)
    times: int = 1
    axes: dict[str, int] = field(default_factory=dict)  # of the mesh whose `shard_map` it stands in, with their sizes
    # Known values of single devices of that mesh, by coordinates in the order of the axes, and operand.
    own: dict[tuple[int, ...], dict[int, Any]] = field(default_factory=dict)
    awaited: set[int] = field(default_factory=set)  # operands whose values are kept when the program has computed them
    settings: dict[str, Any] = field(default_factory=dict)  # of jax that it was made under
    options: dict[str, Any] = field(default_factory=dict)  # of the compiler, that the function's `jax.jit` has
    again: list[dict[str, Any]] = field(
        default_factory=list
    )  # parameters of those that count as it: a kernel traced anew
    # The operands of which some elements are known. Only its cost is predicted with them.
    partly_known: KnownOperands = field(default_factory=dict)
    # What its cost is predicted with where sizes of groups or lengths of sequences are not known: values of operands in
    # the likely case, the least and the most, and what that assumes. Nothing else is judged by it.
    assumed: list[list[Any]] = field(default_factory=list)
    assumption: str = ""

    @property
    def kind(self) -> str:
        return str(self.primitive)

    @property
    def known(self) -> KnownOperands:
        """The operands of which something is known."""
        return {**self.partly_known, **known_operands(self.values)}

    @property
    def batches(self) -> int:
        """How many times it was batched by `vmap`."""
        return len(getattr(self.params.get("grid_mapping"), "vmapped_dims", ()))

    @property
    def may_have_run(self) -> bool:
        """Whether nothing shows that it was traced only: values that were awaited came."""
        return not self.awaited or any(self.values[at] is not None for at in self.awaited)

    @property
    def stands_for_others(self) -> bool:
        """Whether jax makes a launch of arrays of it: operands or results stand for several, or it takes references."""
        types = (*self.avals, *(self.params.get("out_avals") or ()))
        return self.takes_references or any(bool(getattr(aval, "is_high", False)) for aval in types)

    @property
    def takes_references(self) -> bool:
        """Whether references come from outside, as operands or closed over: those of `run_state` among them."""
        return self.kind == "pallas_call" and any(hasattr(aval, "inner_aval") for aval in self.avals)

    @property
    def meshes(self) -> list[Any]:
        """The meshes of cores that run the launch."""
        meshes = (self.params.get("mesh"), *(self.params.get("meshes") or ()))
        return [mesh for mesh in meshes if mesh is not None]

    @property
    def sparse(self) -> bool:
        """Whether it runs on SparseCores."""
        return any("Subcore" in type(mesh).__name__ for mesh in self.meshes)

    @property
    def key(self) -> tuple[Any, ...]:
        """Launches with the same key are one."""
        site = [(place["file"], place["line"], place.get("column")) for place in self.stack[:1]]
        shapes = [str(aval) for aval in self.avals]
        mapping = self.params.get("grid_mapping")
        words = str(getattr(mapping, "grid", None)), str(self.params.get("compiler_params"))
        return (self.kind, *site, *shapes, *words, *_references(self.params), *_sources(self.params))

    def values_on(self, place: tuple[int, ...]) -> list[Any]:
        """The operands' values on a device; where devices have their own, none for one whose own is not known."""
        differ = {at for own in self.own.values() for at in own}
        own = self.own.get(place, {})
        return [own.get(at) if at in differ else value for at, value in enumerate(self.values)]

    def bind(self, *operands: Any, **changes: Any) -> Any:
        """Launch it again with some parameters changed, outside of the `shard_map` that it may stand in."""
        params = {**self.params, **changes}
        if not is_gpu_interpreter(params.get("interpret")):
            params.pop("kernel_arg_transforms", None)  # from 0.12, for that interpreter alone
        if "out_avals" in params:
            params["out_avals"] = tuple(map(_unmapped, params["out_avals"]))
        return type(self.primitive).bind(self.primitive, *operands, **params)


class LaunchRecorder:
    """Installed, it notes every launch; `replace` may change how each is run, or have it return zeros (None)."""

    def __init__(self, replace: Callable[[Record], dict[str, Any] | None] | None = None) -> None:
        self.records: dict[tuple[Any, ...], Record] = {}
        self.replace = replace
        self.keep = True  # whether launches are recorded, or only run with `replace`
        self.observe = False  # whether the values of operands are looked at while the program runs
        self._kept = 0  # bytes of such values
        self._patched: list[Any] = []

    def install(self) -> None:
        _hide_own_frames()
        for module, name in PRIMITIVES:
            try:
                primitive = getattr(importlib.import_module(module), name)
            except (ImportError, AttributeError):
                continue
            self.patch(primitive)

    @property
    def launches(self) -> list[Record]:
        """What was noted, without launches that only stand for others.

        Those are of types that stand for arrays where that of the arrays was noted, too, and those that did not run
        since jax made another one of them under `vmap`. What jax makes of references it makes later: it is launched
        where that is.
        """
        found = [record for record in self.records.values() if record.may_have_run or not self._was_batched(record)]
        sites = [str(record.stack[:1]) for record in found if not record.stands_for_others]
        others = {str(_sources(record.params)): record for record in found if not record.stands_for_others}
        for record in found:
            made = others.get(str(_sources(record.params))) if record.takes_references else None
            if made is not None:
                made.stack = record.stack
                sites.append(str(record.stack[:1]))
        return [record for record in found if not record.stands_for_others or str(record.stack[:1]) not in sites]

    def _was_batched(self, record: Record) -> bool:
        kernel = record.params.get("jaxpr")
        others = (other for other in self.records.values() if other.params.get("jaxpr") is kernel)
        return kernel is not None and any(other.batches > record.batches for other in others)

    def remove(self) -> None:
        for primitive in self._patched:
            del primitive.bind
        self._patched.clear()

    def patch(self, primitive: Any) -> None:
        """Note every launch of this primitive."""
        original = primitive.bind

        def bind(*operands: Any, **params: Any) -> Any:
            changes = self._note(primitive, operands, params)
            if changes is None:
                return stub.zeros(params)
            return original(*operands, **{**params, **changes})

        primitive.bind = bind
        self._patched.append(primitive)

    def _note(self, primitive: Any, operands: tuple[Any, ...], params: dict[str, Any]) -> dict[str, Any] | None:
        if _is_of_warps(params):
            return {}
        if not self.keep:
            return self.replace(Record(primitive, params, [], [])) if self.replace is not None else {}
        record = Record(
            primitive,
            params,
            [_aval(operand) for operand in operands],
            [_value(operand) for operand in operands],
            locate.stack(3),
            axes=_axes(),
            settings=settings.current(),
        )
        known = self.records.setdefault(record.key, record)
        if known is not record:
            known.times += 1
            known.again.append(params)
            known.values = [mine if mine is not None else other for mine, other in zip(known.values, record.values)]
        if self.observe and not record.stands_for_others:
            self._observe(known, operands)
        return self.replace(record) if self.replace is not None else {}

    def _observe(self, record: Record, operands: tuple[Any, ...]) -> None:
        """Keep the operands' values when they are there, of each device of the mesh its own.

        Those that steer the kernel come first, the others as far as there is room for them. Only where the program runs
        on the CPU: what it lowers for another platform has no such callbacks.
        """
        import jax

        steering = _steering(record.params, record.avals)
        wanted = [at for at in steering if record.values[at] is None]
        for at, aval in enumerate(record.avals):
            if at not in steering and record.values[at] is None and _is_array(aval) and aval.size <= _MAX_ELEMENTS:
                size = aval.size * aval.dtype.itemsize
                if at not in record.awaited and self._kept + size <= _MAX_KEPT:
                    self._kept += size
                    record.awaited.add(at)
                if at in record.awaited:
                    wanted.append(at)
        if wanted:
            _leave_out_batches()
            place = [jax.lax.axis_index(axis) for axis in record.axes]

            def observe(*values: Any) -> None:
                jax.debug.callback(partial(_keep, record, wanted), values[: len(place)], *values[len(place) :])

            jax.lax.platform_dependent(*place, *(operands[at] for at in wanted), cpu=observe, default=lambda *_: None)


def is_gpu_interpreter(interpret: Any) -> bool:
    """Whether a launch is to run in jax's interpreter of Mosaic GPU kernels."""
    return type(interpret).__name__ == "InterpretGPUParams"


def _references(params: dict[str, Any]) -> list[str]:
    """The types of the kernel's references: how large, and in which memory."""
    kernels = [getattr(kernel, "jaxpr", kernel) for kernel in params.get("jaxprs") or (params.get("jaxpr"),)]
    return [str(var.aval) for kernel in kernels if kernel is not None for var in (*kernel.constvars, *kernel.invars)]


def _sources(params: dict[str, Any]) -> list[str]:
    """Where the kernels are defined: one line may launch several, in a function that takes them as arguments."""
    kernels = [getattr(kernel, "jaxpr", kernel) for kernel in params.get("jaxprs") or (params.get("jaxpr"),)]
    named = str(getattr(params.get("name_and_src_info"), "src_info", ""))
    return [named, *(str(getattr(getattr(kernel, "debug_info", None), "func_src_info", "")) for kernel in kernels)]


def _is_of_warps(params: dict[str, Any]) -> bool:
    """Whether it is a part of a Mosaic GPU kernel, in which a warpgroup forks into its warps."""
    return any(type(mesh).__name__ == "WarpMesh" for mesh in (params.get("mesh"), *(params.get("meshes") or ())))


def _axes() -> dict[str, int]:
    """The axes of the mesh around what is being traced, in the mesh's order, with their sizes."""
    import jax

    core = importlib.import_module("jax._src.core")
    try:
        sizes = dict(core.get_axis_env().axis_sizes)
        named = jax.sharding.get_abstract_mesh().axis_names
    except Exception:  # before 0.5 it has another form
        return {}
    return {name: sizes[name] for name in (*named, *(set(sizes) - set(named))) if name in sizes}


def _unmapped(aval: Any) -> Any:
    """A type without the axes of a mesh along which it varies: only under `shard_map` may it have some."""
    manual = getattr(aval, "manual_axis_type", None)  # from 0.10 on; before, `vma`
    if manual is not None:
        return aval if manual.empty else aval.update(manual_axis_type=type(manual)())
    return aval.update(vma=frozenset()) if getattr(aval, "vma", None) else aval


def _steering(params: dict[str, Any], avals: list[Any]) -> list[int]:
    """The operands that decide about the grid and the index maps, and integers in scalar memory."""
    mapping = params.get("grid_mapping")
    if mapping is None:
        return []
    first = mapping.num_dynamic_grid_bounds + mapping.num_index_operands
    spaces = [getattr(block, "transformed_block_aval", None) for block in mapping.block_mappings[: mapping.num_inputs]]
    scalar = [
        at
        for at, aval in enumerate(spaces, first)
        if "smem" in str(getattr(aval, "memory_space", "")).lower() and _is_small_integer(avals[at])
    ]
    return [*range(first), *scalar]


def _is_small_integer(aval: Any) -> bool:
    return getattr(aval.dtype, "kind", "") in "iub" and aval.size <= _MAX_ELEMENTS


def _is_array(aval: Any) -> bool:
    """Whether it is an array of numbers that lie in memory: no reference, key or semaphore."""
    return not hasattr(aval, "inner_aval") and isinstance(getattr(getattr(aval, "dtype", None), "itemsize", None), int)


def _keep(record: Record, wanted: list[int], place: tuple[Any, ...], *values: Any) -> None:
    import numpy as np

    own = record.own.setdefault(tuple(map(int, place)), {}) if place else {}
    for at, value in zip(wanted, values):
        if place:
            own.setdefault(at, np.asarray(value))
        if record.values[at] is None:
            record.values[at] = np.asarray(value)


@cache
def _hide_own_frames() -> None:
    """Have jax take the line that launches for the place of a launch, and none of ours, which stand in between."""
    sources = environment.optional("jax.extend.source_info_util")
    if sources is not None:
        sources.register_exclusion(locate.OURS)


@cache
def _leave_out_batches() -> None:
    """Under `vmap`, have jax drop calls of `_keep`, which it would unroll: those of the batched launch are made anyway.

    Where jax's primitive for such calls is not found, they stay: that costs time, no more.
    """
    batching = environment.optional("jax.interpreters.batching")
    primitive = getattr(environment.optional("jax._src.debugging"), "debug_callback_p", None)
    rules = [getattr(batching, name, None) for name in ("fancy_primitive_batchers", "primitive_batchers")]
    for table in (table for table in rules if isinstance(table, dict) and primitive in table):
        unroll = table[primitive]

        def batch(*operands: Any, unroll: Callable[..., Any] = unroll, **params: Any) -> Any:
            closure = getattr(params.get("callback"), "__closure__", None) or ()
            if any(getattr(cell.cell_contents, "func", None) is _keep for cell in closure):
                return [], ()
            return unroll(*operands, **params)

        table[primitive] = batch


def _aval(operand: Any) -> Any:
    import jax

    aval = getattr(operand, "aval", None)
    if aval is not None:
        return aval
    get = getattr(jax, "typeof", None) or jax.core.get_aval
    return get(operand)


def _value(operand: Any) -> Any:
    """A small operand's value where it is one: index operands decide what index maps return."""
    import jax
    import numpy as np

    if isinstance(operand, jax.core.Tracer) or not hasattr(operand, "size") or operand.size > _MAX_ELEMENTS:
        return None
    try:
        return np.asarray(operand)
    except Exception:
        return None
