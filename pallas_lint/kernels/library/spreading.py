"""What spreads code over devices: `jax.shard_map`, and programs in which something lies on a mesh.

`jax.jit` makes one program of all that runs in it, for all devices that anything in it names.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.library.jit import shardings_of
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.model.arguments import Arguments
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
from pallas_lint.records import define, evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Site, nodes

_SETTING_MESH = frozenset({"jax.set_mesh", "jax.sharding.set_mesh", "jax.sharding.use_mesh"})
PLACING = frozenset({"jax.device_put", "jax.lax.with_sharding_constraint", "jax.reshard", "jax.sharding.reshard"})
# What runs the function that it is given as part of the same program, for the same devices.
_TRANSFORMING = frozenset(
    f"jax.{name}"
    for name in "vmap grad value_and_grad vjp jvp linearize jacrev jacfwd hessian eval_shape make_jaxpr".split()
)
# Whose decorators and functions do nothing of the kind.
_HARMLESS = ("pytest.", "unittest.", "absl.", "functools.", "contextlib.", "typing.", *_TRANSFORMING)


@define(eq=False)
class Program:
    """The code in an outermost `jit`, or under a mesh that was set. `shardings`: all that name devices in it."""

    shardings: list[Value] = field(factory=list)


@frozen
class Around:
    """What code outside kernels runs in. `shard_map` is the innermost."""

    program: Program | None = None
    shard_map: CallResult | None = None
    nested: bool = False  # that stands in another one, or may
    hidden: bool = False  # something unknown is around the code, in all that: it may be a `shard_map`
    sure: bool = True  # no branch that the text leaves open stands between
    traced: bool = False  # jax is asked what the code would return, or do: nothing of it runs
    abroad: bool = False  # the code is another module's, which is entered only to see what it launches in there


@contextmanager
def within(interp: Interpreter, around: Around) -> Iterator[None]:
    """Code within runs in that."""
    before, interp.frame.around = interp.frame.around, around
    try:
        yield
    finally:
        interp.frame.around = before


# -- entering --------------------------------------------------------------------------------------------------------


def entered(interp: Interpreter, func: Func) -> Around:
    """What the body of a function runs in."""
    around = interp.frame.around
    if func.program is not None:
        interp.handed.pop(ById(func.program), None)
        around = _in_program(around, *func.program)
    return evolve(around, hidden=True) if func.hidden else around


def _in_program(around: Around, *shardings: Value) -> Around:
    program = around.program or Program()
    program.shardings.extend(shardings)
    return around if around.program is program else evolve(around, program=program)


def unknown(interp: Interpreter, name: str = "") -> Around:
    """What a function runs in that something unknown got, or the jax function of that name."""
    return interp.frame.around if name.startswith(_HARMLESS) else evolve(interp.frame.around, hidden=True)


def decorated(value: Value, decorator: Value) -> Value:
    """A function with a decorator of which nothing is known but, perhaps, its name."""
    name = decorator.name if isinstance(decorator, External) else getattr(decorator, "function", "")
    return value if not isinstance(value, Func) or name.startswith(_HARMLESS) else evolve(value, hidden=True)


def on_mesh(interp: Interpreter, contexts: list[Value]) -> Around:
    """What the body of a `with` statement runs in."""
    setting = [value for value in contexts if isinstance(value, CallResult) and value.function in _SETTING_MESH]
    # In a `jit` it is too late to set one.
    return (
        _in_program(interp.frame.around, *setting)
        if setting and interp.frame.around.program is None
        else interp.frame.around
    )


def place(interp: Interpreter, name: str, arguments: Arguments) -> Value | None:
    """`device_put(x, sharding)` and its like: the array that lies there; None where nothing is known of it."""
    if name not in PLACING or len(arguments.positional) == 0:
        return None
    sharding = arguments.get("device", 1) or arguments.get("shardings", 1) or arguments.get("out_shardings", 1)
    if sharding is None or not any(True for _ in _meshes(sharding)):
        return None
    if interp.frame.around.program is not None and interp.frame.around.shard_map is None:
        interp.frame.around.program.shardings.append(sharding)
    value = arguments.positional[0]
    return evolve(value, sharding=sharding) if isinstance(value, Array) else None


def mapped(interp: Interpreter, made: CallResult) -> CallResult:
    """A `shard_map` of a function was made: where nobody is seen to call it, somebody else will."""
    if interp.frame.around.program is not None and interp.frame.around.shard_map is None:
        interp.frame.around.program.shardings.append(made)
    hand_out(interp, made, made)
    return made


def hand_out(interp: Interpreter, key: object, value: Value) -> None:
    """Keep what is to be run at the end if nobody has called it by then."""
    if interp.running_piece is not None and interp.running is not None and interp.kernel is None:
        interp.handed[ById(key)] = value


def call_mapped(interp: Interpreter, made: CallResult, node: nodes.Node) -> Value:
    """Call what `shard_map(f, ...)` returned: `f` sees parts of the arguments."""
    interp.handed.pop(ById(made), None)
    around = interp.frame.around
    mapped = Around(around.program, made, nested=around.shard_map is not None or around.hidden, abroad=around.abroad)
    with within(interp, mapped):
        for option in options(made.argument("f", 0) or UNKNOWN):
            if isinstance(option, Func | CallResult):
                interp.call(option, Arguments(open=True), node)
    return UNKNOWN


def jitted(interp: Interpreter, made: CallResult) -> CallResult:
    """A `jit` with shardings of a launch, or of something mapped."""
    hand_out(interp, made, made)
    return made


def call_jitted(interp: Interpreter, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """Call what `jax.jit` made of such a value."""
    interp.handed.pop(ById(made), None)
    with within(interp, _in_program(interp.frame.around, *shardings_of(Arguments(keywords=dict(made.keywords))))):
        return interp.call(made.args[0], arguments, node)


def run_handed_out(interp: Interpreter) -> None:
    """Run what was mapped over devices, and returned or passed on."""
    while interp.handed:
        value = interp.handed.pop(next(iter(interp.handed)))
        if isinstance(value, CallResult):
            interp.call(value, Arguments(open=True), value.site.node)
        elif isinstance(value, Func):
            interp.call_function(value, Arguments(open=True))


# -- what rules ask --------------------------------------------------------------------------------------------------


def is_checked(shard_map: CallResult) -> bool | None:
    """Whether the `shard_map` checks over which mesh axes values vary; None where that is not known."""
    given = shard_map.argument("check_vma") or shard_map.argument("check_rep", 4)
    if given is None:
        return None if shard_map.open else True
    return given.value if isinstance(given, Const) and isinstance(given.value, bool) else None


@frozen
class Spread:
    """What makes the program of a launch one for several devices. `devices`: None where their number is not known."""

    site: Site
    what: str
    devices: int | None
    sure: bool


def spread_by(launch: Launch) -> Spread | None:
    """Why the launch would have to be partitioned: the surest reason."""
    found: list[Spread] = []
    for at, around in enumerate(launch.around):
        if around.hidden:
            continue
        if around.shard_map is not None:
            if not around.nested and _leaves_axes(around.shard_map):
                found.append(Spread(around.shard_map.site, "`shard_map` of some axes only", 2, around.sure))
            continue
        placed = list(around.program.shardings) if around.program is not None else []
        if at == 0:  # the call whose operands were kept
            placed += [each for operand in launch.operands or () if (each := _sharding(operand)) is not None]
        for sharding in placed:
            for mesh, made in _meshes(sharding):
                devices = _device_count(mesh)
                if devices != 1:
                    found.append(Spread(made.site, _described(made), devices, around.sure))
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
    """The meshes that a sharding, or what holds some, names, and by what."""
    for leaf in tree_leaves(sharding):
        if isinstance(leaf, OneOf):
            found = [list(_meshes(option)) for option in leaf.options]
            # Which one it is, the text leaves open; with none at all there may be a way without `shard_map`.
            yield from ((UNKNOWN, made) for each in found for _, made in each if all(found))
        elif isinstance(leaf, CallResult):
            if leaf.short == "NamedSharding" or leaf.function in _SETTING_MESH:
                yield leaf.argument("mesh", 0) or UNKNOWN, leaf
            elif leaf.function in SHARD_MAPS:
                mesh = leaf.argument("mesh", 1)
                if mesh not in (None, NONE):
                    yield mesh or UNKNOWN, leaf


def _device_count(mesh: Value) -> int | None:
    """How many devices a mesh has; None where that is not known."""
    if not isinstance(mesh, CallResult):
        return None
    name = mesh.short
    if name == "make_mesh":
        return _product(mesh.argument("axis_shapes", 0))
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
    """Whether some axes of its mesh are surely left to the compiler."""
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
