"""Functions that take functions: `functools.partial`, `jax.jit`, `jax.vmap`, `checkify`, decorators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.launches import foreign_calls, launching
from pallas_lint.kernels.library import control, derivatives, jit, products, sharding
from pallas_lint.kernels.library.control import CONTROL
from pallas_lint.kernels.library.host import classes, transforms
from pallas_lint.kernels.library.host.dispatch import DISPATCH
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import is_integer
from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.known_names import CHECKIFY, JIT, PALLAS, PARTIAL, RUN_STATE, SHARD_MAPS, is_partial
from pallas_lint.kernels.model.launch_forms import FOREIGN_FORMS, FORMS, KERNEL
from pallas_lint.kernels.model.trace import Guard
from pallas_lint.kernels.model.values import (
    UNKNOWN,
    Array,
    CallResult,
    Const,
    External,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Sym,
    SymbolOwner,
    Value,
    options,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

# Wrappers whose function sees a part of each argument: of another rank, or of another size.
_MAPPING = frozenset({"jax.vmap", "jax.pmap"}) | SHARD_MAPS
# Wrappers that return a function which does what the wrapped one does.
_TRANSPARENT = frozenset(
    {
        "jax.jit", "jax.named_call", "jax.checkpoint", "jax.remat", "jax.custom_vjp", "jax.custom_jvp",
        "jax.named_scope", "functools.wraps", "functools.cache", "functools.lru_cache",
        "jax.profiler.annotate_function",
        "jax.custom_batching.custom_vmap",
        "staticmethod", "builtins.staticmethod", "builtins.classmethod", "jax.experimental.pjit.pjit",
        "contextlib.contextmanager", "jax.linear_util.wrap_init", "jax.api_util.flatten_fun",
    }
)  # fmt: skip
# Their functions are not kernel code: one builds MLIR, the others run on the host.
_FOREIGN = frozenset(
    {
        f"{PALLAS}.mosaic_gpu.inline_mgpu", "jax.debug.callback", "jax.pure_callback", "jax.experimental.io_callback",
        "jax.experimental.pallas.mosaic_gpu.custom_primitive",
    }
)  # fmt: skip
# They run their function, or make of it what runs it.
_IN_KERNELS = frozenset({RUN_STATE, f"{PALLAS}.mosaic_gpu.warp_map"})
_MAX_FOLDED = 16  # elements that `functools.reduce` is followed over


def _partial(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if not arguments.positional:
        return UNKNOWN
    target, rest = arguments.positional[0], arguments.rest(1)
    result: Value | None = None
    for each in options(target):
        option = interp.as_function(each, node)
        if isinstance(option, Func):
            value: Value = option.bind(tuple(rest.positional), rest.keywords, rest.open)
        else:
            value = interp.frame.opaque_call(PARTIAL, rest, node, option)
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def _reduce(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    function, values = arguments.get("function", 0) or UNKNOWN, arguments.get("iterable", 1)
    if not isinstance(values, Seq) or values.open or len(values.items) > _MAX_FOLDED:
        interp.escape(arguments, node)
        return UNKNOWN
    initial = arguments.get("initial", 2)
    items = [*([] if initial is None else [initial]), *values.items]
    result: Value = items[0] if items else UNKNOWN
    for item in items[1:]:
        result = interp.call(function, Arguments([result, item]), node)
    return result


def _transparent(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`jax.jit(f)` is f; `jax.jit(static_argnums=0)` and `jax.named_scope("x")` are decorators."""
    first = arguments.get("fun", 0) or arguments.get("f", 0)
    if name in JIT and isinstance(first, Instance):
        first = interp.as_function(first, node)
    if name in ("jax.named_scope", "functools.wraps", "jax.profiler.annotate_function") or first is None:
        return interp.frame.opaque_call(name, arguments, node)
    if name in JIT and isinstance(first, Func):
        return _jitted(interp, first, arguments.rest(1))
    if name in JIT and isinstance(first, CallResult) and jit.shardings_of(arguments):
        return sharding.jitted(interp, interp.frame.opaque_call(name, arguments, node))
    if isinstance(first, Func | OneOf) or (isinstance(first, CallResult) and first.launch is not None):
        return derivatives.custom(interp, name, first, arguments.rest(1))
    return interp.frame.opaque_call(name, arguments, node)


def _mapped(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> CallResult:
    made = interp.frame.opaque_call(name, arguments, node)
    return made if arguments.get("f", 0) is None else sharding.mapped(interp, made)


def _foreign(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    interp.escape_refs(arguments, node)
    return interp.frame.opaque_call(name, arguments, node)


def _checkify(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    mark_checkified(interp, arguments.first)
    return interp.frame.opaque_call(name, arguments, node)


def run_callbacks(interp: Tracer, name: str, arguments: Arguments) -> None:
    """Functions handed to one that is not modelled are run once, with arguments that are not known."""
    for value in (*arguments.positional, *arguments.keywords.values()):
        for option in options(value):
            if isinstance(option, Func) and option.node not in interp.outcome.entered:
                interp.call_unknown(option, name)


def mark_checkified(interp: Tracer, target: Value) -> None:
    for option in options(target):
        if isinstance(option, Func):
            interp.effects.checkified.add(option.node)
        elif isinstance(option, CallResult) and option.callee is not None:
            mark_checkified(interp, option.callee)
        elif isinstance(option, CallResult) and option.launch is not None:
            interp.record_mutation(option.launch.path.made_by)
            option.launch.arguments.setdefault("checkified?", Const(True))
        elif isinstance(option, CallResult) and option.args:
            for value in option.args:
                mark_checkified(interp, value)
        else:
            interp.outcome.checkified_unknown = True


# -- calls of what another call returned -----------------------------------------------------------------------


def call_made(interp: Tracer, callee: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """`pallas_call(...)(x)`, `partial(f, ...)(x)`, `jax.vmap(f)(x)`, `pl.when(c)(body)`."""
    if callee.function == launching.PIPELINE:
        return control.run_pipeline(interp, callee, arguments)
    if callee.launch is not None:
        return launching.call(interp, callee, arguments, node)
    if callee.function == RUN_STATE and interp.kernel is not None:
        return control.run_state(interp, callee, arguments, node)
    if callee.function == control.SCOPED and interp.kernel is not None:
        return control.call_scoped(interp, callee, arguments, node)
    if callee.function in _FOREIGN:
        interp.escape_refs(arguments, node)
        return decorate(interp, callee, arguments.positional[0], node) if arguments.positional else UNKNOWN
    if callee.function in FOREIGN_FORMS:
        return foreign_calls.call_result(interp, callee, arguments)
    transformed = transforms.call(interp, callee, arguments, node)
    if transformed is not None:
        return transformed
    if is_partial(callee) and callee.callee is not None:
        return _call_partial(interp, callee, callee.callee, arguments, node)
    if callee.function in SHARD_MAPS and callee.argument("f", 0) is not None:
        return sharding.call_mapped(interp, callee, arguments, node)
    if callee.function in JIT and callee.args and isinstance(callee.args[0], CallResult):
        return sharding.call_jitted(interp, callee, arguments, node)
    decorated = decorate(interp, callee, arguments.positional[0], node) if len(arguments.positional) == 1 else UNKNOWN
    if decorated is not UNKNOWN:
        return decorated
    if callee.function == CHECKIFY:
        # `checkify(f)(x)` gives `(error, f(x))`; the error keeps where it came from.
        with interp.under(Guard("checkify", UNKNOWN, interp.frame.site(node))):
            inner = interp.call(callee.args[0], arguments, node) if callee.args else UNKNOWN
        return Seq((interp.frame.opaque_call("checkify.error", Arguments([callee]), node), inner))
    if callee.function == "jax.vmap" and interp.kernel is not None:
        return _map_in_kernel(interp, callee, arguments, node)
    return _call_unmodelled(interp, callee, arguments, node)


def _call_partial(interp: Tracer, made: CallResult, inner: Value, arguments: Arguments, node: nodes.Node) -> Value:
    """Call `partial(inner, ...)`, of a function that is no `Func`."""
    merged = Arguments(
        [*made.args, *arguments.positional],
        {**dict(made.keywords), **arguments.keywords},
        made.open or arguments.open,
    )
    form, has_kernel = launching.form_of(inner), any(name in KERNEL for name, _ in made.keywords)
    if form is not None and isinstance(inner, External) and not has_kernel:
        return launching.launch(interp, inner.name, form, merged, made.site)
    return interp.call(inner, merged, node)


def _call_unmodelled(interp: Tracer, callee: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """Run the functions that the callee was made of, with arguments that are not known."""
    for value in callee.args:
        for option in options(value):
            if isinstance(option, Func):
                if callee.function == "jax.vmap":
                    interp.call_function(option, Arguments(open=True))
                else:
                    interp.call_unknown(option, callee.function)
            elif isinstance(option, CallResult) and option.launch is not None and option.launch.operands is None:
                # `jax.vmap(pallas_call(...))(x)`: the operands' ranks are not those the kernel sees.
                option.launch.operands_open = True
    interp.escape(arguments, node)
    return UNKNOWN


def _map_in_kernel(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """Call what `jax.vmap(f)` gave, in a kernel: `f` gets names for the parts of the arguments.

    The operation has the names of numbers from arrays of integers as `indices`: no ref can be indexed by these.
    """
    axes = made.argument("in_axes", 1) or Const(0)
    given = arguments.positional
    each = axes.items if isinstance(axes, Seq) and len(axes.items) == len(given) else (axes,) * len(given)
    owner = SymbolOwner(in_kernel=True)
    names = tuple(
        evolve(value, shape=None, view=True) if isinstance(value, Ref) else Sym(f"example[{at}]", owner)
        for at, value in enumerate(given)
    )
    indices = [name for name, value, axis in zip(names, given, each, strict=True) if _is_row_of_integers(value, axis)]
    if indices or any(isinstance(value, Ref) for value in given):
        keywords = {"in_axes": axes, "indices": Seq(tuple(indices))}
        interp.frame.op(made.function, node, Arguments(given, keywords, arguments.open), UNKNOWN)
    for function in options(made.argument("fun", 0) or UNKNOWN):
        if isinstance(function, Func):
            interp.call_function(function, Arguments(list(names), open=True))
    interp.escape(arguments, node)
    return UNKNOWN


def _is_row_of_integers(value: Value, axis: Value) -> bool:
    return isinstance(value, Array) and value.rank == 1 and is_integer(value.dtype or "") and axis == Const(0)


def decorate(interp: Tracer, decorator: Value, target: Value, node: nodes.Node) -> Value:
    """What `@decorator` makes of `target`; UNKNOWN where `decorator` is not one that is modelled."""
    if isinstance(decorator, External):
        return _decorate_by_name(interp, decorator, target, node)
    if not isinstance(decorator, CallResult):
        return UNKNOWN
    if decorator.function == "method:setter":
        return interp.frame.opaque_call(classes.PROPERTY, Arguments([decorator.args[0], target]), node)
    if decorator.function in _FOREIGN:
        return decorator
    precision = products.precision_set(decorator)
    if precision is not None and isinstance(target, Func):
        return evolve(target, matmul_precision=precision)
    if decorator.launch is not None and decorator.launch.kernel is UNKNOWN:
        return launching.attach_kernel(interp, decorator, target)
    if decorator.function in _TRANSPARENT:
        derivatives.note(interp, decorator.function, Arguments([target]), node)
        return _jit_by(interp, decorator.function, decorator, target)
    if decorator.function in CONTROL and isinstance(target, Func | OneOf | Instance | External | CallResult):
        return CONTROL[decorator.function](interp, decorator.function, Arguments([target, decorator]), node)
    if is_partial(decorator) and decorator.callee is not None:
        return _decorate_by_partial(interp, decorator, decorator.callee, target, node)
    if decorator.function in _MAPPING and isinstance(target, Func):
        arguments = Arguments([target], dict(decorator.keywords), decorator.open)
        return _mapped(interp, decorator.function, arguments, decorator.site.node)
    return UNKNOWN


def _decorate_by_name(interp: Tracer, decorator: External, target: Value, node: nodes.Node) -> Value:
    """`@jax.jit`, `@pl.kernel`: what a function makes of `target` as its only argument."""
    name, alone = decorator.name, Arguments([target])
    form = FORMS.by_name.get(name)
    if form is not None:
        return launching.launch(interp, name, form, alone, interp.frame.site(node))
    derivatives.note(interp, name, alone, node)
    if name in JIT:
        return _jitted(interp, target, Arguments())
    if name == DISPATCH and isinstance(target, Func):
        return evolve(target, dispatches=True)
    if name in _TRANSPARENT or name.startswith("builtins."):
        return derivatives.custom(interp, name, target, Arguments())
    if name == CHECKIFY:
        return _checkify(interp, name, alone, node)
    if name in _MAPPING and isinstance(target, Func):
        return _mapped(interp, name, alone, node)
    if name in _IN_KERNELS and interp.kernel is not None:
        return interp.call(decorator, alone, node)
    return UNKNOWN


def _decorate_by_partial(interp: Tracer, decorator: CallResult, inner: Value, target: Value, node: nodes.Node) -> Value:
    """`@partial(jax.jit, static_argnums=0)`, `@partial(pl.pallas_call, grid=...)`."""
    form = launching.form_of(inner)
    with_target = Arguments([*decorator.args, target], dict(decorator.keywords), decorator.open)
    if form is not None and isinstance(inner, External):
        if not form.awaits_kernel and not decorator.args:
            return launching.launch(interp, inner.name, form, with_target, decorator.site)
        arguments = Arguments([*decorator.args], dict(decorator.keywords), decorator.open)
        made = launching.launch(interp, inner.name, form, arguments, decorator.site)
        return launching.attach_kernel(interp, made, target) if isinstance(made, CallResult) else made
    if isinstance(inner, External) and inner.name in _TRANSPARENT:
        derivatives.note(interp, inner.name, Arguments([target]), node)
        return _jit_by(interp, inner.name, decorator, target)
    if isinstance(inner, External) and inner.name == CHECKIFY:
        return _checkify(interp, CHECKIFY, Arguments([target], dict(decorator.keywords)), node)
    return interp.call(inner, with_target, node) if isinstance(inner, External | Func) else UNKNOWN


def _jit_by(interp: Tracer, name: str, decorator: CallResult, target: Value) -> Value:
    """What `@jax.jit(static_argnames="n")` or `@partial(jax.jit, static_argnums=0)` makes of a function."""
    arguments = Arguments(list(decorator.args), dict(decorator.keywords), decorator.open)
    return _jitted(interp, target, arguments) if name in JIT else derivatives.custom(interp, name, target, arguments)


def _jitted(interp: Tracer, target: Value, arguments: Arguments) -> Value:
    result = jit.jit(target, arguments)
    if isinstance(result, Func) and result.program:
        sharding.defer(interp, result.program, result)
    return result


WRAPPERS: dict[str, Model] = {
    PARTIAL: _partial,
    "functools.reduce": _reduce,
    **dict.fromkeys(_TRANSPARENT, _transparent),
    **dict.fromkeys(_FOREIGN, _foreign),
    CHECKIFY: _checkify,
    **dict.fromkeys(SHARD_MAPS, _mapped),
}
