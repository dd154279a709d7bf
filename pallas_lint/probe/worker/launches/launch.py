"""The description of a launch, read alike from every jax: grid, operands, blocks, backend."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ...protocol import Place
from .. import environment
from ..inputs import arguments
from . import locate, names
from .recorder import Record

DimensionKind = Literal["blocked", "squeezed", "element"]
# Operations that no other backend has.
_OF_FUSER = frozenset({"pack_dtype", "unpack_dtype"})  # which it takes out of a kernel before that is launched
_ONLY_TPU = frozenset({"dma_start", "dma_wait", "prng_seed", "prng_random_bits"})
_MADE_WITHIN = "memory of its own"
_SHARED = ("parallel", "core_parallel")  # axes whose points cores may share out


@dataclass
class Operand:
    """One ref of the kernel. `block` has one entry a dimension of the array: (kind, size)."""

    name: str
    role: Literal["prefetch", "in", "out", "scratch"]
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    block: list[tuple[DimensionKind, int]] | None = None
    memory_space: str | None = None
    mapping: Any = None  # jax's BlockMapping
    index: int = 0  # among the operands of its role

    @property
    def block_shape(self) -> tuple[int, ...]:
        """What the kernel sees: the block without its squeezed dimensions; the array where there is no block."""
        if self.block is None:
            return self.shape
        return tuple(size for kind, size in self.block if kind != "squeezed")

    @property
    def whole(self) -> bool:
        """Whether the one block is the array."""
        return self.block is None or [size for _, size in self.block] == list(self.shape)

    @property
    def index_map_place(self) -> Place | None:
        """The place of the result of its index map; None where there is none, or it is not in a file of the user's."""
        place = _defined(_source(getattr(self.mapping, "index_map_jaxpr", None)))[1]
        return None if place is None else names.returned(place)

    @property
    def fetched_again(self) -> bool:
        """Whether the pipeline fetches what an output's block holds when it comes back to it (`RevisitMode.ANY`)."""
        mode = getattr(self.mapping, "pipeline_mode", None)
        return getattr(getattr(mode, "revisit", None), "name", "") == "ANY"


@dataclass
class Launch:
    """A record with its description. `grid` is None where it is not one of known integers."""

    record: Record
    kernel: str
    place: Place | None  # of the launching call
    kernel_place: Place | None
    backend: str | None
    grid: tuple[int, ...] | None
    operands: list[Operand]
    aliases: dict[int, int]
    semantics: tuple[str, ...] | None
    vmem_limit: int | None
    interpret: bool

    @property
    def reads(self) -> set[str]:
        """Names of the outputs and scratch whose former contents the kernel reads or adds to.

        Memory that the kernel makes itself, as for the blocks of a pipeline within it, has one name.
        """
        jaxpr = kernel_jaxpr(self.record.params)
        found = set()
        for effect in getattr(jaxpr, "effects", ()):
            if type(effect).__name__ not in ("ReadEffect", "AccumEffect"):
                continue
            at = getattr(effect, "input_index", None)
            if at is None:  # from 0.12 it names the variable
                at = next((k for k, var in enumerate(jaxpr.invars) if var is getattr(effect, "input", None)), None)
            if at is not None and at < len(self.operands) and self.operands[at].role in ("out", "scratch"):
                found.add(self.operands[at].name)
        return found | ({_MADE_WITHIN} if self._adds_within() else set())

    def _adds_within(self) -> bool:
        """Whether memory that the kernel makes itself is added to: read, then written, in one go."""
        scoped = (
            inner for each in self._equations() if str(each.primitive) == "run_scoped" for inner in jaxprs_in(each)
        )
        return any(_adds(equations(inner)) for inner in scoped)

    @functools.cached_property
    def primitives(self) -> frozenset[str]:
        """The names of the operations in the kernel, at any depth."""
        return frozenset(str(equation.primitive) for equation in self._equations())

    @property
    def traced_for_interpreter(self) -> bool:
        """Whether a setting of the program's made what runs on single warps an interpreter's: it lowers for no GPU."""
        return any(equation.params.get("interpret") for equation in self._equations())

    def _equations(self) -> Iterator[Any]:
        for jaxpr in self.record.params.get("jaxprs") or [kernel_jaxpr(self.record.params)]:
            yield from equations(jaxpr) if jaxpr is not None else ()

    @property
    def sparse(self) -> bool:
        """Whether it runs on SparseCores."""
        return self.record.sparse

    @property
    def subcores(self) -> int:
        """How many of its SparseCores' subcores run it; jax's interpreter has one."""
        meshes = [mesh for mesh in self.record.meshes if "Subcore" in type(mesh).__name__]
        return sum(math.prod(dict(mesh.shape).values()) for mesh in meshes) or 1

    @property
    def stands_for_others(self) -> bool:
        """Whether jax makes another launch of it: arrays of what stands for several, or what its fuser leaves."""
        return self.record.stands_for_others or not _OF_FUSER.isdisjoint(self.primitives)

    @property
    def has_subcore_operations(self) -> bool:
        """Whether the kernel has operations that only SparseCores have."""
        module = environment.optional("jax._src.pallas.mosaic.sc_primitives")
        own = [value for name, value in vars(module).items() if name.endswith("_p")] if module is not None else []
        return any(equation.primitive in own for equation in self._equations())

    @property
    def copies(self) -> bool:
        """Whether the kernel starts copies that run beside it."""
        return any("dma_start" in name for name in self.primitives)

    @property
    def scatters(self) -> bool:
        """Whether an atomic operation takes an array of places: several of its values may meet in one."""
        jaxpr = kernel_jaxpr(self.record.params)
        return jaxpr is not None and any(
            str(equation.primitive).startswith("atomic_")
            and any(place.aval.shape and place.aval.dtype.kind in "iu" for place in equation.invars[1:-1])
            for equation in equations(jaxpr)
        )

    @property
    def gathers(self) -> bool:
        """Whether a copy takes its rows from another reference: besides source and destination it has a third."""
        return any(
            sum(hasattr(each.aval, "inner_aval") and "sem" not in str(each.aval.dtype) for each in copy.invars) > 2
            for copy in self._equations()
            if "dma_start" in str(copy.primitive)
        )

    @property
    def waits(self) -> bool:
        """Whether the kernel may wait, or loop, for ever."""
        return any("wait" in name or name == "while" for name in self.primitives)

    @property
    def cores(self) -> int:
        """How many cores show whether points of parallel axes get into each other's way."""
        return 2 if any("parallel" in each for each in self.semantics or ()) else 1

    @property
    def shared_axis(self) -> int | None:
        """The axis of the grid that chips with two cores, v4 and v5p, may share out between these."""
        sizes = zip(self.semantics or (), self.grid or ())
        return next((at for at, (kind, size) in enumerate(sizes) if kind in _SHARED and size > 1), None)

    @property
    def guessed(self) -> list[str]:
        """The integer operands with unknown values: where the kernel reads and writes may depend on them."""
        names = [
            self.input_name(at)
            for at, (aval, value) in enumerate(zip(self.record.avals, self.record.values))
            if value is None and arguments.short_name(getattr(aval, "dtype", "")).startswith(("i", "u"))
        ]
        return list(dict.fromkeys(names))

    def input_name(self, number: int) -> str:
        """What the kernel calls the operand that it is launched with; the first ones may be bounds of the grid."""
        if number < self._bounds:
            return "the grid"
        operand = self.input(number)
        return operand.name if operand is not None else f"operand {number}"

    def input(self, number: int) -> Operand | None:
        """The reference for the operand that it is launched with; None for bounds of the grid."""
        inputs = [operand for operand in self.operands if operand.role in ("prefetch", "in")]
        at = number - self._bounds
        return inputs[at] if 0 <= at < len(inputs) else None

    @property
    def _bounds(self) -> int:
        """How many operands are bounds of the grid: the first ones."""
        mapping = self.record.params.get("grid_mapping")
        return mapping.num_dynamic_grid_bounds if mapping is not None else 0

    @property
    def points(self) -> int:
        """How many grid points there are."""
        total = 1
        for size in self.grid or ():
            total *= size
        return total

    def grid_on(self, place: tuple[int, ...]) -> tuple[int, ...] | None:
        """The grid of the device that stands there in the mesh."""
        mapping = self.record.params.get("grid_mapping")
        return None if mapping is None else _grid(self.record.values_on(place), mapping)


def describe(record: Record) -> Launch:
    """The description of a launch."""
    params = record.params
    mapping = params.get("grid_mapping")
    kernel, kernel_place = _kernel(params)
    operands = _operands(record, mapping) if mapping is not None else _plain_operands(record)
    grid = _grid(record.values, mapping) if mapping is not None else None
    aliases = params.get("input_output_aliases") or ()
    pairs = aliases.items() if hasattr(aliases, "items") else aliases
    return Launch(
        record,
        kernel,
        record.stack[0] if record.stack else None,
        kernel_place,
        _backend(record, operands),
        grid,
        operands,
        {int(i): int(o) for i, o in pairs},
        _semantics(params),
        _limit(params),
        bool(params.get("interpret")),
    )


def _grid(values: list[Any], mapping: Any) -> tuple[int, ...] | None:
    """The grid, with the bounds that are operands where their values are known; None where they are not."""
    bounds = iter(values[: mapping.num_dynamic_grid_bounds])
    sizes = [size if isinstance(size, int) else next(bounds, None) for size in getattr(mapping, "grid", ())]
    return None if None in sizes else tuple(int(size) for size in sizes if size is not None)


def _kernel(params: dict[str, Any]) -> tuple[str, Place | None]:
    """The kernel's name and where it is defined."""
    jaxpr = params.get("jaxpr") or next(iter(params.get("jaxprs") or ()), None)
    name, place = _defined(str(params.get("name_and_src_info") or "") or _source(jaxpr))
    if place is None and "jaxprs" in params:  # jax's own wrapper, in which scopes make the kernel's scratch
        outer: Any = getattr(jaxpr, "jaxpr", jaxpr)
        inner = [each for scope in outer.eqns if str(scope.primitive) == "run_scoped" for each in jaxprs_in(scope)]
        place = next((_defined(_source(each))[1] for each in inner), None)
    return (params.get("name") or name or "kernel"), place


def _source(jaxpr: Any) -> str:
    """The name and the place of the function that a jaxpr was made of: "kernel at file.py:3"."""
    debug = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return str(getattr(debug, "func_src_info", None) or "")


def _defined(text: str) -> tuple[str, Place | None]:
    name, mark, where = text.rpartition(" at ")
    file, _, line = where.rpartition(":")
    if not mark or not line.isdecimal():
        return text, None
    return name, {"file": file, "line": int(line), "column": None} if locate.is_users(file) else None


def equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr and of those inside them."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for inner in jaxprs_in(equation):
            yield from equations(inner)


def _adds(found: Iterable[Any]) -> bool:
    """Whether equations read a ref and write it afterwards, which they did not write before."""
    read, written = set(), set()
    for equation in found:
        code = str(equation.primitive)
        ref = equation.invars[0] if code in ("get", "swap", "addupdate") else None
        if code == "addupdate" or (code == "swap" and ref in read):
            return True
        if code == "swap":
            written.add(ref)
        elif code == "get" and ref not in written:
            read.add(ref)
    return False


def axes_behind(jaxpr: Any, known: dict[Any, set[int]]) -> Callable[[Iterable[Any]], set[int]]:
    """The axes of the grid that atoms of a jaxpr are computed from, `known` those of its inputs."""
    axes = dict(known)

    def of(atoms: Iterable[Any]) -> set[int]:
        return set().union(*(axes.get(atom, ()) for atom in atoms if not hasattr(atom, "val")))

    for equation in jaxpr.eqns:
        mine = {equation.params["axis"]} if str(equation.primitive) == "program_id" else of(equation.invars)
        axes.update(dict.fromkeys(equation.outvars, mine))
    return of


def jaxprs_in(equation: Any) -> list[Any]:
    """The jaxprs in all parameters of an equation."""
    return [inner for value in equation.params.values() for inner in inner_jaxprs(value)]


def inner_jaxprs(value: Any) -> list[Any]:
    """The jaxprs in a parameter of an equation."""
    values = value if isinstance(value, tuple | list) else (value,)
    return [each for each in values if hasattr(each, "eqns") or hasattr(getattr(each, "jaxpr", None), "eqns")]


def scan_counts(params: dict[str, Any], number: int) -> tuple[int, int]:
    """How many of a scan's so many operands are constants, and how many are carried."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    parts = [list(part) for part in params["ft_in"].update(list(range(number))).unpack()]  # from 0.11
    return len(parts[0]), len(parts[1])


def kernel_jaxpr(params: dict[str, Any]) -> Any:
    """The kernel's jaxpr, open; None where the launch has several or none."""
    jaxpr = params.get("jaxpr")
    return getattr(jaxpr, "jaxpr", jaxpr)


def _names(params: dict[str, Any]) -> list[str]:
    debug = getattr(kernel_jaxpr(params), "debug_info", None)
    given_names = [str(name) for name in getattr(debug, "arg_names", None) or ()]
    variables = getattr(kernel_jaxpr(params), "invars", ())
    return [names.readable(name, var.aval) for name, var in zip(given_names, variables)]


def _operands(record: Record, mapping: Any) -> list[Operand]:
    params, avals = record.params, record.avals
    dynamic, prefetch = mapping.num_dynamic_grid_bounds, mapping.num_index_operands
    given_names = _names(params)
    refs = [var.aval for var in kernel_jaxpr(params).invars]
    found: list[Operand] = []
    for at in range(prefetch):
        aval = avals[dynamic + at]
        found.append(_operand(_name(given_names, len(found), f"prefetch {at}"), "prefetch", aval, at, space="smem"))
    for at, block in enumerate(mapping.block_mappings):
        role: Literal["in", "out"] = "in" if at < mapping.num_inputs else "out"
        array = getattr(block, "array_aval", None) or block.array_shape_dtype
        origin = str(getattr(block, "origin", ""))
        index = at if role == "in" else at - mapping.num_inputs
        operand = _operand(_name(given_names, len(found), origin or f"{role} {index}"), role, array, index)
        operand.block = dimensions(block)
        operand.memory_space = _space(getattr(block, "transformed_block_aval", None))
        operand.mapping = block
        found.append(operand)
    for at, aval in enumerate(refs[len(found) :]):
        name = _name(given_names, len(found), f"scratch {at}")
        found.append(_operand(name, "scratch", aval, at, space=_space(aval)))
    return found


def _plain_operands(record: Record) -> list[Operand]:
    """The operands of a launch that has no blocks: `pl.kernel`, `core_map`."""
    arrays = [(at, aval) for at, aval in enumerate(record.avals) if hasattr(aval, "shape")]
    outs = record.params.get("out_avals") or ()
    given_names = names.parameters(_kernel(record.params)[1], len(arrays) + len(outs))
    found = [
        _operand(_name(given_names, number, f"argument {at}"), "in", aval, at, space=_space(aval))
        for number, (at, aval) in enumerate(arrays)
    ]
    return found + [
        _operand(_name(given_names, len(arrays) + at, f"output {at}"), "out", aval, at, space="any")
        for at, aval in enumerate(outs)
    ]


def _name(given_names: list[str], at: int, otherwise: str) -> str:
    return (given_names[at] if at < len(given_names) else "") or otherwise


def _operand(name: str, role: Any, aval: Any, index: int, space: str | None = None) -> Operand:
    inner = getattr(aval, "inner_aval", aval)
    dtype = getattr(inner, "dtype", None)
    shape = tuple(size if isinstance(size, int) else -1 for size in getattr(inner, "shape", ()))
    return Operand(
        name,
        role,
        shape,
        arguments.short_name(dtype),
        int(getattr(dtype, "itemsize", 0) or 0),
        None,
        space,
        None,
        index,
    )


def dimensions(block: Any) -> list[tuple[DimensionKind, int]]:
    """(kind, size) for each dimension of the array. Entries are integers and None to 0.5, objects from 0.6."""
    unblocked = type(getattr(block, "indexing_mode", None)).__name__ == "Unblocked"
    found: list[tuple[DimensionKind, int]] = []
    for entry in block.block_shape:
        name = type(entry).__name__
        if entry is None or name in ("Mapped", "_Mapped", "Squeezed"):
            found.append(("squeezed", 1))
        elif isinstance(entry, int):
            found.append(("element" if unblocked else "blocked", entry))
        else:
            kind: DimensionKind = "element" if name in ("Element", "BoundedSlice") else "blocked"
            found.append((kind, int(entry.block_size)))
    return found


def _space(aval: Any) -> str | None:
    """ "vmem", "smem", "any", …; None where the backend decides."""
    text = str(getattr(aval, "memory_space", "") or "").lower().rpartition(".")[2]
    if text in ("", "none", "default", "blocked"):
        return None
    return "semaphore" if "sem" in text else text


def compiler_params(params: dict[str, Any]) -> list[tuple[str, Any]]:
    """The compiler parameters of a launch: (the class's module or the dict's key, the parameters)."""
    given = params.get("compiler_params")
    if given is None:
        return []
    if hasattr(given, "items"):  # to 0.8: a dict by backend
        return [(str(key), value) for key, value in given.items()]
    return [(type(given).__module__, given)]


def _semantics(params: dict[str, Any]) -> tuple[str, ...] | None:
    for _, given in compiler_params(params):
        semantics = (
            given.get("dimension_semantics") if hasattr(given, "get") else getattr(given, "dimension_semantics", None)
        )
        if semantics:
            return tuple(str(getattr(each, "name", each)).lower().rpartition(".")[2] for each in semantics)
    return None


def _limit(params: dict[str, Any]) -> int | None:
    for _, given in compiler_params(params):
        limit = given.get("vmem_limit_bytes") if hasattr(given, "get") else getattr(given, "vmem_limit_bytes", None)
        if limit:
            return int(limit)
    return None


def _backend(record: Record, operands: list[Operand]) -> str | None:
    """The backend that the launch is certainly for; None where it is not declared."""
    words = [word for word, _ in compiler_params(record.params)]
    words.append(str(record.params.get("backend") or ""))
    meshes = (record.params.get("mesh"), *(record.params.get("meshes") or ()))
    words += [type(mesh).__module__ for mesh in meshes if mesh is not None]
    interpret = record.params.get("interpret")
    if interpret not in (None, False, True):
        words.append(type(interpret).__module__)
    for word in words:
        if "mosaic_gpu" in word:
            return "mosaic_gpu"
        if "triton" in word:
            return "triton"
        if "mosaic" in word or "tpu" in word:
            return "tpu"
    spaces = {operand.memory_space for operand in operands if operand.role != "prefetch"}
    if spaces & {"vmem", "hbm", "cmem"} or any(operand.role == "prefetch" for operand in operands):
        return "tpu"
    if spaces & {"gmem", "tmem"}:
        return "mosaic_gpu"
    jaxpr = kernel_jaxpr(record.params)
    if jaxpr is not None and any(str(equation.primitive) in _ONLY_TPU for equation in equations(jaxpr)):
        return "tpu"
    return None
