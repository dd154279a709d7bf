"""Lower a launch for a backend and compile it, on a machine that has neither."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...protocol import LeftToCompile, Typed
from .. import device_targets, environment
from ..device_targets import DeviceTarget, Missing
from ..inputs import arguments
from ..launches import boundary, meshes
from ..launches.launch import Launch, compiler_params
from ..launches.recorder import is_gpu_interpreter

_UNBOUND = re.compile(
    r"unbound axis name|Found an unbound axis|axis name .{0,300} not (found|bound)|pallas_call without shard_map",
    re.IGNORECASE,
)
_MISCALLED = re.compile(r"\w\(\) (?:got an unexpected keyword argument|missing \d+ required|takes \d+ positional)")
_NO_LAYOUTS = "Failed to infer a possible set of layouts"
_USED = re.compile(r'used_scoped_memory_configs":\[[^\[\]]*"size":"(\d+)"')


@dataclass(frozen=True)
class Alone:
    """How a launch is compiled for further stages. `keep` is given the text of the program around it."""

    options: dict[str, str]
    keep: Callable[[str], None]


class Unfinished(Exception):
    """The compiler went as far as it could without a fault of the kernel's; the message is what the rest needs."""


def needs_mesh(error: BaseException) -> bool:
    """Whether this was raised because the shard_map around the launch is missing."""
    return _UNBOUND.search(str(error)) is not None


def lower(launch: Launch, target: DeviceTarget, device: Any = None, *, row_major: bool = False) -> Any:
    """The launch lowered for the target (for `device`, where it is to be compiled).

    `row_major`: operands and results lie as the kernel has them, so that XLA copies none of them.

    Raises Missing where this jax has no way from such a launch to that backend, and whatever the backend raises.
    """
    try:
        with meshes.none_around():
            return _lowered(launch, target, device, row_major)
    except TypeError as error:
        if _MISCALLED.search(str(error)):  # no code of the user's runs here: jax's functions do not fit each other
            raise Missing(f"not judged: this jax does not lower such a launch, {_first_line(error)}") from error
        raise


def _lowered(launch: Launch, target: DeviceTarget, device: Any, row_major: bool) -> Any:
    import jax

    if launch.traced_for_interpreter:
        raise Missing("not judged: parts of it were traced for jax's interpreter, which the program selects")
    changes = _changes(launch, target)

    def call(*operands: Any) -> Any:
        return launch.record.bind(*operands, **changes)

    axes = launch.record.axes
    kinds = boundary.memory_kinds(launch)
    if axes:
        several = None if device is None else device_targets.several(target, math.prod(axes.values()))
        mesh = meshes.mesh_of(axes, several)
        structs = [
            jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=meshes.everywhere(mesh, device and kind))
            for aval, kind in zip(launch.record.avals, kinds)
        ]
        with device_targets.imitated(target):
            traced = jax.jit(meshes.mapped(call, mesh), keep_unused=True).trace(*structs)
            return traced.lower(lowering_platforms=(target.platform,))
    avals = [_struct(aval, device, kind) for aval, kind in zip(launch.record.avals, kinds)]
    try:
        with device_targets.imitated(target):
            if device is None:
                return jax.jit(call, keep_unused=True).trace(*avals).lower(lowering_platforms=(target.platform,))
            ins = tuple(_place(device, kind) for kind in kinds)
            outs: Any = _place(device)
            if row_major:
                ins = tuple(map(_row_major, avals, ins))
                outs = [_row_major(aval, outs) for aval in boundary.results(launch)]
            traced = jax.jit(call, in_shardings=ins, out_shardings=outs).trace(*avals)
            return traced.lower(lowering_platforms=(target.platform,))
    except Exception as error:
        if needs_mesh(error):
            raise Missing("a kernel that uses a mesh axis is lowered only with the shard_map around it") from error
        if target.backend == "mosaic_gpu" and _NO_LAYOUTS in str(error):
            _raise_from_lane_semantics(launch, avals, changes, target)
        raise


def _raise_from_lane_semantics(launch: Launch, avals: list[Any], changes: dict[str, Any], target: DeviceTarget) -> None:
    """Raise what lane semantics refuse in a kernel, and where, to which warpgroup semantics find no layouts.

    They are only missing. It is a second opinion: what lanes cannot do, warpgroups sometimes can.
    """
    import jax

    gpu = environment.optional("jax.experimental.pallas.mosaic_gpu")
    lane = getattr(getattr(gpu, "LoweringSemantics", None), "Lane", None)
    if gpu is None or lane is None:
        return
    given = changes.get("compiler_params") or launch.record.params.get("compiler_params") or gpu.CompilerParams()
    if not dataclasses.is_dataclass(given):
        return
    lanes = {**changes, "compiler_params": dataclasses.replace(given, lowering_semantics=lane)}  # type: ignore[type-var]
    try:
        with device_targets.imitated(target):
            jax.jit(lambda *operands: launch.record.bind(*operands, **lanes), keep_unused=True).trace(*avals).lower(
                lowering_platforms=(target.platform,)
            )
    except Exception as error:
        words = f"no layouts fit its arrays; with lane semantics it fails here: {_first_line(error)}"
        raise ValueError(words).with_traceback(error.__traceback__) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def compiled(launch: Launch, target: DeviceTarget, alone: Alone | None = None) -> dict[str, int]:
    """Compile the launch; returns the compiler's figures."""
    boundary.check(launch)
    lowered = lower(
        launch, target, device_targets.device(target), row_major=alone is not None and target.backend == "tpu"
    )
    return figures_of(lowered, target, alone, launch.record.options if target.backend == "tpu" else {})


def packed(lowered: Any) -> bytes:
    """A launch lowered for no particular device, as bytes that another process of the same jax can compile."""
    import io

    module = lowered.compiler_ir("stablehlo")
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()


def compiled_elsewhere(data: bytes, module: LeftToCompile, target: DeviceTarget) -> dict[str, int]:
    """Compile what `packed` gave in another process. Raises Missing."""
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    ins, outs, axes = module["ins"], module["outs"], module["axes"]
    place: Callable[[str | None], Any] = partial(_place, None if axes else device_targets.device(target))
    mesh: Any = None
    if axes:
        mesh = meshes.mesh_of(axes, device_targets.several(target, math.prod(axes.values())))
        place = partial(meshes.everywhere, mesh)
    try:
        avals, results = [_types(each) for each in ins], [_types(each) for each in outs]
    except arguments.BadArgument as error:
        raise Missing(f"not judged: another process cannot make its operands, {error}") from None

    structs = [jax.ShapeDtypeStruct(*aval, sharding=place(kind)) for aval, (_, _, kind) in zip(avals, ins)]
    lowered = _stand_in(structs, results, target, mesh, place(None))
    with mlir.make_ir_context():
        left = ir.Module.parse(data)
        for at, kind in enumerate(kind for _, _, kind in ins):
            if kind is not None:
                _lies_in(left, at, kind)
        lowered._lowering._hlo = left
        return figures_of(lowered, target, options=module["options"])


def on_several(lowered: Any, target: DeviceTarget) -> Any:
    """What was lowered on devices of this process, to be compiled for as many of the target. Raises Missing."""
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    partitions = lowered.compiler_ir("stablehlo").operation.attributes["mhlo.num_partitions"]
    count = ir.IntegerAttr(partitions).value
    mesh = meshes.mesh_of({"devices": count}, device_targets.several(target, count))
    ins, outs = jax.tree_util.tree_leaves(lowered.args_info), jax.tree_util.tree_leaves(lowered.out_info)
    structs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in ins]  # where they lie is in the module
    moved = _stand_in(structs, [(each.shape, each.dtype) for each in outs], target, mesh)
    data = packed(lowered)
    with mlir.make_ir_context():
        moved._lowering._hlo = ir.Module.parse(data)
    return moved


def _stand_in(structs: list[Any], results: list[Any], target: DeviceTarget, mesh: Any, out: Any = None) -> Any:
    """A function with operands and results of these types, lowered for the target; its module is to be replaced.

    jax compiles only what it lowered itself. `mesh`: None for a single device, on which `out` places the results. The
    memory of operands is set by this function alone: the module was made for other devices.
    """
    import jax
    import jax.numpy as jnp

    def stand_in(*_: Any) -> Any:
        return tuple(jnp.zeros(shape, dtype) for shape, dtype in results)

    if mesh is None:
        function = jax.jit(stand_in, out_shardings=out, keep_unused=True)
    else:
        function = jax.jit(meshes.mapped(stand_in, mesh), keep_unused=True)
    with device_targets.imitated(target):
        return function.trace(*structs).lower(lowering_platforms=(target.platform,))


def _types(typed: Typed) -> tuple[tuple[int, ...], Any]:
    return tuple(typed[0]), arguments.dtype_named(typed[1])


def _lies_in(module: Any, at: int, memory: str) -> None:
    """Set the memory of an operand of the program in a lowered module."""
    from jax._src.lib.mlir import ir

    main = next(each for each in module.body.operations if ir.StringAttr(each.attributes["sym_name"]).value == "main")
    attributes = list(ir.ArrayAttr(main.attributes["arg_attrs"])) if "arg_attrs" in main.attributes else []
    attributes = attributes or [ir.DictAttr.get({}) for _ in main.arguments]
    own = {entry.name: entry.attr for entry in ir.DictAttr(attributes[at])}
    attributes[at] = ir.DictAttr.get({**own, "mhlo.memory_kind": ir.StringAttr.get(memory)})
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def figures_of(
    lowered: Any, target: DeviceTarget, alone: Alone | None = None, options: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """Compile, with these options of the compiler; returns its figures."""
    try:
        done = _compiled_with(lowered, {**(options or {}), **({} if alone is None else alone.options)})
    except ValueError as error:
        if "Could not find memory addressable by device" in str(error):
            return {}  # 0.8 raises it after the GPU compiler is through
        _no_older_compiler(error)
        raise
    except Exception as error:
        _no_older_compiler(error)
        if target.platform == "cuda" and "No PTX compilation provider" in str(error):
            raise Unfinished("compiled to PTX; the rest needs ptxas (pip install nvidia-cuda-nvcc)") from error
        raise
    figures: dict[str, int] = {}
    if target.backend == "tpu":
        text = done.as_text() or ""
        if alone is not None:
            alone.keep(text)
        used = [int(size) for size in _USED.findall(text)]
        if used:
            figures["vmem_bytes"] = max(used)
    try:
        analysis = done.memory_analysis()
        figures["temp_bytes"] = int(analysis.temp_size_in_bytes)
        if target.backend == "tpu":
            figures["code_bytes"] = int(analysis.generated_code_size_in_bytes)
    except Exception:  # not every plugin has it
        pass
    return figures


def _no_older_compiler(error: Exception) -> None:
    """Raises Missing where libtpu does not know what this jax writes: no fault of the kernel's."""
    if "Could not convert JSON string to proto" in str(error):
        here = environment.parts()
        message = f"libtpu {here['libtpu']} is too old for jax {here['jax']} (pip install --upgrade libtpu)"
        raise Missing(message) from error


def _compiled_with(lowered: Any, options: dict[str, Any]) -> Any:
    """Compile with options that a compiler may not know."""
    try:
        return lowered.compile(compiler_options=options) if options else lowered.compile()
    except Exception as error:
        if "No such compile option" in str(error):
            return lowered.compile()
        raise


def _row_major(aval: Any, place: Any) -> Any:
    """The placement of an operand in row-major layout, for which jax has a class from 0.6 on."""
    layouts = environment.optional("jax.experimental.layout")
    if not hasattr(layouts, "Format") or not aval.shape:
        return place
    kind = getattr(layouts, "DeviceLocalLayout", None) or layouts.Layout
    return layouts.Format(kind(tuple(range(len(aval.shape)))), place)


def _struct(aval: Any, device: Any, memory: str | None) -> Any:
    import jax

    if device is None:
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=_place(device, memory))


def _place(device: Any, memory: str | None = None) -> Any:
    """The sharding of an operand in a memory of a device: its own by default."""
    import jax

    memories = {} if memory is None else {"memory_kind": memory}
    return jax.sharding.SingleDeviceSharding(device, **memories)


def _changes(launch: Launch, target: DeviceTarget) -> dict[str, Any]:
    """What to change in the launch's parameters so that it is lowered for this backend."""
    changes: dict[str, Any] = {"interpret": False}
    version = environment.version()
    if launch.record.kind == "core_map":
        raise Missing("this jax's core_map can only be lowered with the function around it")
    if launch.record.kind != "pallas_call":
        if launch.backend not in (None, target.backend):
            raise Missing(f"a kernel on a {launch.backend} mesh is for no other backend")
        return changes
    is_requested = any("mosaic_gpu" in word for word, _ in compiler_params(launch.record.params))
    if target.backend == "mosaic_gpu" and not is_requested and not (0, 9) <= version < (0, 11):
        raise Missing("pallas_call means Mosaic GPU only with compiler_params in this jax")
    if launch.backend == target.backend:
        return changes
    if is_gpu_interpreter(launch.record.params.get("interpret")):
        raise Missing("a kernel in the interpreter of Mosaic GPU kernels is for no other backend")
    given = launch.record.params.get("compiler_params")
    if version < (0, 9):
        empty: Any = type(given) if hasattr(given, "items") else dict
        changes["compiler_params"] = empty({})
    elif target.backend == "triton":
        triton = environment.optional("jax.experimental.pallas.triton")
        if triton is None:
            raise Missing("this jax has no Triton backend")
        changes["compiler_params"] = triton.CompilerParams()
    else:
        changes["compiler_params"] = None
    if "backend" in launch.record.params:
        changes["backend"] = None
    return changes
