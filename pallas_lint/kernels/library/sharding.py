"""Sharding over devices: `jax.shard_map`, and `jax.jit` programs in which something is placed on a mesh.

`jax.jit` compiles everything in it into one program for all devices that any of its shardings name.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.library.host import shards
from pallas_lint.kernels.library.jit import shardings_of
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.frame import JitProgram, ShardingContext
from pallas_lint.kernels.model.known_names import SHARD_MAPS, is_integer
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    External,
    Func,
    OneOf,
    Seq,
    Value,
    options,
)
from pallas_lint.records import evolve, frozen
from pallas_lint.syntax.outline import SET_MESH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import Site, nodes

_SETTING_MESH = frozenset({"jax.set_mesh", "jax.sharding.set_mesh", "jax.sharding.use_mesh"})
PLACING = frozenset({"jax.device_put", "jax.lax.with_sharding_constraint", "jax.reshard", "jax.sharding.reshard"})
# These run their function as part of the same program, for the same devices.
_TRANSFORMING = frozenset(
    f"jax.{name}"
    for name in "vmap grad value_and_grad vjp jvp linearize jacrev jacfwd hessian eval_shape make_jaxpr".split()
)
# The decorators and functions of these do not shard.
_HARMLESS = ("pytest.", "unittest.", "absl.", "functools.", "contextlib.", "typing.", *_TRANSFORMING)


@contextmanager
def within(interp: Tracer, context: ShardingContext) -> Iterator[None]:
    """Run code within in that context."""
    before, interp.frame.sharding_context = interp.frame.sharding_context, context
    try:
        yield
    finally:
        interp.frame.sharding_context = before


# -- entering --------------------------------------------------------------------------------------------------------


def entered(interp: Tracer, func: Func) -> ShardingContext:
    """The context of the body of a function."""
    context = interp.frame.sharding_context
    if func.program is not None:
        interp.run.mapped_functions.pop(ById(func.program), None)
        context = _in_program(context, *func.program)
    return evolve(context, hidden=True) if func.hidden else context


def _in_program(context: ShardingContext, *shardings: Value) -> ShardingContext:
    program = context.program or JitProgram()
    program.shardings.extend(shardings)
    return context if context.program is program else evolve(context, program=program)


def unknown(interp: Tracer, name: str = "") -> ShardingContext:
    """The context of a function passed to unknown code, or to the jax function of that name."""
    return (
        interp.frame.sharding_context
        if name.startswith(_HARMLESS)
        else evolve(interp.frame.sharding_context, hidden=True)
    )


def decorated(value: Value, decorator: Value) -> Value:
    """A function with an unknown decorator."""
    name = decorator.name if isinstance(decorator, External) else getattr(decorator, "function", "")
    return value if not isinstance(value, Func) or name.startswith(_HARMLESS) else evolve(value, hidden=True)


def on_mesh(interp: Tracer, contexts: list[Value]) -> ShardingContext:
    """The context of the body of a `with` statement."""
    context, setting = interp.frame.sharding_context, [value for value in contexts if mesh_set(value) is not None]
    if not setting:
        return context
    # In a `jit` it is too late to set one.
    program = _in_program(context, *setting) if context.program is None else context
    return evolve(program, mesh=mesh_set(setting[-1]))


def mesh_set(value: Value) -> Value | None:
    """The mesh that a call such as `jax.set_mesh(mesh)` sets; None for other values."""
    if not isinstance(value, CallResult) or value.function not in _SETTING_MESH:
        return None
    return value.argument("mesh", 0)


def set_mesh(interp: Tracer, mesh: Value, env: Env) -> None:
    """The statement `jax.set_mesh(mesh)`: it holds for the rest of the function, or of the module."""
    interp.frame.sharding_context = evolve(interp.frame.sharding_context, mesh=mesh)
    if env.parent is None:
        env.bind(SET_MESH, mesh)


def _mesh_of(interp: Tracer, shard_map: CallResult) -> Value:
    """The mesh that a `shard_map` names, or the one that is set."""
    named = shard_map.argument("mesh", 1)
    if named not in (None, NONE):
        return named or UNKNOWN
    return interp.frame.sharding_context.mesh or interp.frame.module.lookup(SET_MESH, interp) or UNKNOWN


def place(interp: Tracer, name: str, arguments: Arguments) -> Value | None:
    """The array that `device_put(x, sharding)` and its like return; None where its sharding is not known."""
    if name not in PLACING or len(arguments.positional) == 0:
        return None
    sharding = arguments.get("device", 1) or arguments.get("shardings", 1) or arguments.get("out_shardings", 1)
    if sharding is None or not any(True for _ in _meshes(sharding)):
        return None
    if interp.frame.sharding_context.program is not None and interp.frame.sharding_context.shard_map is None:
        interp.frame.sharding_context.program.shardings.append(sharding)
    value = arguments.positional[0]
    return evolve(value, sharding=sharding) if isinstance(value, Array) else None


def mapped(interp: Tracer, made: CallResult) -> CallResult:
    """A `shard_map` of a function. It is run at the end of the root if no call of it is found."""
    if interp.frame.sharding_context.program is not None and interp.frame.sharding_context.shard_map is None:
        interp.frame.sharding_context.program.shardings.append(made)
    defer(interp, made, made)
    return made


def defer(interp: Tracer, key: object, value: Value) -> None:
    """Run a function at the end of the root, unless it is called before."""
    if interp.run.root is not None and interp.maker is not None and interp.kernel is None:
        interp.run.mapped_functions[ById(key)] = value


def call_mapped(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """Call what `shard_map(f, ...)` returned: `f` sees parts of the arguments."""
    interp.run.mapped_functions.pop(ById(made), None)
    context = interp.frame.sharding_context
    mapped = evolve(context, shard_map=made, nested=context.shard_map is not None or context.hidden, hidden=False)
    function, mesh = made.argument("f", 0) or UNKNOWN, _mesh_of(interp, made)
    given = shards.local_arguments(made, mesh, arguments)
    with within(interp, mapped):
        results = [interp.call(each, given, node) for each in options(function) if isinstance(each, Func | CallResult)]
    return UNKNOWN if len(results) != 1 or given.open else shards.global_result(made, mesh, results[0])


def jitted(interp: Tracer, made: CallResult) -> CallResult:
    """A `jit` with shardings of a launch, or of a mapped function."""
    defer(interp, made, made)
    return made


def call_jitted(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """Call the result of `jitted`."""
    interp.run.mapped_functions.pop(ById(made), None)
    with within(
        interp, _in_program(interp.frame.sharding_context, *shardings_of(Arguments(keywords=dict(made.keywords))))
    ):
        return interp.call(made.args[0], arguments, node)


def run_mapped_functions(interp: Tracer) -> None:
    """Run functions that were mapped over devices, and returned or passed on instead of called."""
    while interp.run.mapped_functions:
        value = interp.run.mapped_functions.pop(next(iter(interp.run.mapped_functions)))
        if isinstance(value, CallResult):
            interp.call(value, Arguments(open=True), value.site.node)
        elif isinstance(value, Func):
            interp.call_function(value, Arguments(open=True))


# -- for rules -------------------------------------------------------------------------------------------------------


def is_checked(shard_map: CallResult) -> bool | None:
    """Whether the `shard_map` checks varying mesh axes (`check_vma`); None where that is not known."""
    given = shard_map.argument("check_vma") or shard_map.argument("check_rep", 4)
    if given is None:
        return None if shard_map.open else True
    return given.value if isinstance(given, Const) and isinstance(given.value, bool) else None


@frozen
class PartitioningReason:
    """A reason why the program of a launch runs on several devices. `devices`: None where their number is not known."""

    site: Site
    what: str
    devices: int | None
    sure: bool


def partitioning_reason(launch: Launch) -> PartitioningReason | None:
    """The surest reason why the launch would have to be partitioned."""
    found: list[PartitioningReason] = []
    for at, context in enumerate(launch.result_calls.sharding_contexts):
        if context.hidden:
            continue
        if context.shard_map is not None:
            if not context.nested and _leaves_axes(context.shard_map):
                found.append(
                    PartitioningReason(context.shard_map.site, "`shard_map` of some axes only", 2, context.sure)
                )
            continue
        placed = list(context.program.shardings) if context.program is not None else []
        if at == 0:  # the call whose operands were kept
            placed += [each for operand in launch.operands or () if (each := _sharding(operand)) is not None]
        for sharding in placed:
            for mesh, made in _meshes(sharding):
                devices = _device_count(mesh)
                if devices != 1:
                    found.append(PartitioningReason(made.site, _described(made), devices, context.sure))
    return min(found, key=lambda spread: (not spread.sure, spread.devices is None), default=None)


def _sharding(operand: Value) -> Value | None:
    if isinstance(operand, Array):
        return operand.sharding
    if isinstance(operand, CallResult) and operand.function in PLACING:
        return operand.argument("device", 1) or operand.argument("shardings", 1)
    return None


def _described(made: CallResult) -> str:
    name = made.short
    return "an array sharded over several devices" if name == "NamedSharding" else f"`{name}`"


def _meshes(sharding: Value) -> Iterator[tuple[Value, CallResult]]:
    """The meshes of a sharding, or of a tree of shardings, each with the call that names it."""
    for leaf in tree_leaves(sharding):
        if isinstance(leaf, OneOf):
            found = [list(_meshes(option)) for option in leaf.options]
            # It is not known which; if one has no mesh there may be a way without `shard_map`.
            yield from ((UNKNOWN, made) for meshes in found for _, made in meshes if all(found))
        elif isinstance(leaf, CallResult):
            if leaf.short == "NamedSharding" or leaf.function in _SETTING_MESH:
                yield leaf.argument("mesh", 0) or UNKNOWN, leaf
            elif leaf.function in SHARD_MAPS:
                mesh = leaf.argument("mesh", 1)
                if mesh not in (None, NONE):
                    yield mesh or UNKNOWN, leaf


def _device_count(mesh: Value) -> int | None:
    """The number of devices of a mesh; None where that is not known."""
    if not isinstance(mesh, CallResult):
        return None
    name = mesh.short
    if name == "make_mesh":
        return _product(mesh.argument("axis_shapes", 0) or mesh.argument("axis_sizes", 0))
    devices = mesh.argument("devices", 0) if name == "Mesh" else None
    if isinstance(devices, Array) and devices.shape is not None:
        sizes = [size for size in devices.shape if isinstance(size, int)]
        return prod(sizes) if len(sizes) == len(devices.shape) else None
    if isinstance(devices, CallResult) and devices.function.endswith("create_device_mesh"):
        return _product(devices.argument("mesh_shape", 0))
    return None


def _product(sizes: Value | None) -> int | None:
    if not isinstance(sizes, Seq) or sizes.open:
        return None
    known = [item.value for item in sizes.items if is_integer(item)]
    return prod(known) if len(known) == len(sizes.items) and min(known, default=1) > 0 else None


def _leaves_axes(shard_map: CallResult) -> bool:
    """Whether some axes of its mesh are certainly left to the compiler."""
    mesh = shard_map.argument("mesh", 1)
    if not isinstance(mesh, CallResult) or mesh.short not in ("Mesh", "make_mesh"):
        return False
    mapped_axes, axes = _names(shard_map.argument("axis_names")), _names(mesh.argument("axis_names", 1))
    return bool(mapped_axes) and mapped_axes < axes


def _names(value: Value | None) -> frozenset[str]:
    """The names of axes in a sequence of them; none where they are not all known."""
    items = value.items if isinstance(value, Seq) and not value.open else (value,)
    names = [item.value for item in items if isinstance(item, Const) and isinstance(item.value, str)]
    return frozenset(names) if len(names) == len(items) else frozenset()
