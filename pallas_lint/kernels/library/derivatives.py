"""Functions that are differentiated, and those that bring their own derivatives."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pallas_lint.kernels.library import sharding
from pallas_lint.kernels.library.host.trees import as_arrays, map_leaves
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.launch_forms import FORMS
from pallas_lint.kernels.model.result import Cotangents
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, Const, Func, Seq, Value, as_tuple, options
from pallas_lint.records import evolve
from pallas_lint.syntax.outline import DERIVATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

_MAX_CALLS = 8  # of one function with derivatives of its own, for which these run
_CUSTOM = frozenset(
    f"{module}.{name}"
    for module in ("jax", "jax.custom_derivatives")
    for name in ("custom_vjp", "custom_jvp", "custom_gradient")
)
REVERSE = frozenset(
    f"jax.{name}" for name in ("grad", "value_and_grad", "vjp", "jacrev", "jacobian", "hessian", "linearize")
)
FORWARD = frozenset(("jax.jvp", "jax.jacfwd"))


@contextmanager
def differentiating(interp: Tracer) -> Iterator[None]:
    """Calls within are differentiated in reverse mode."""
    with interp.inside(evolve(interp.frame, differentiated=True)):
        yield


def like(tree: Value) -> Value:
    """Arrays of the same shapes and dtypes: cotangents, and what a derivative by them is."""
    return map_leaves(_like, as_arrays(tree))


def _like(leaf: Value) -> Value:
    return Array(leaf.shape, leaf.element) if isinstance(leaf, Array) else UNKNOWN


# -- derivatives of one's own ----------------------------------------------------------------------------------------


def custom(interp: Tracer, name: str, target: Value, arguments: Arguments) -> Value:
    """A function as `jax.custom_vjp` with these arguments (those after the function) makes it."""
    if last_part(name) != "custom_vjp" or not isinstance(target, Func) or arguments.open:
        return target
    given = (arguments.get("nondiff_argnums", 0) or Seq(()), arguments.get("nondiff_argnames", 1) or Seq(()))
    wanted = [item for value in given for item in as_tuple(value)]
    parameters = target.node.params.positional_names
    positions = [
        parameters.index(item.value) if isinstance(item, Const) and item.value in parameters else integer(item)
        for item in wanted
    ]
    known = {position for position in positions if position is not None}
    if None in positions:
        return target
    return evolve(target, nondiff=tuple(sorted(known)), derived_in=interp.frame.module)


def run_custom(interp: Tracer, func: Func, arguments: Arguments) -> None:
    """Run the forward and the backward function of a `jax.custom_vjp` that is called with known arrays.

    The backward function gets the arguments that are not differentiated, what the forward function keeps, and arrays
    like its result. Without `jax.grad` or one of its like around the call, both are only traced.
    """
    judged_here = func.module is interp.root or FORMS.over_blocks.search(interp.root.source.text)
    if not judged_here and not interp.run.as_called:
        return  # it only calls launches of other modules, which are judged there
    if any(each.nondiff is not None for each in interp.frame.stack):
        return  # derivatives of derivatives
    rules = _rules(interp, func)
    given = [*func.bound, *arguments.positional]
    missing = func.node.params.positional_names[len(given) :]
    if rules is None or func.open_keywords or not _has_numbers(arguments):
        return
    if arguments.open and not set(missing) <= arguments.keywords.keys():
        return
    forward, backward = rules
    if not judged_here and func.derived_in is func.module and forward.module is func.module is backward.module:
        return  # they run where its module is judged, by this call
    if interp.run.derived[func.node] >= _MAX_CALLS or any(each.node is forward.node for each in interp.frame.stack):
        return
    interp.run.derived[func.node] += 1
    named = {**dict(func.keywords), **arguments.keywords}
    given += [named.pop(name) if name in named else _default(interp, func, name) for name in missing]
    static = [given[at] if at < len(given) else UNKNOWN for at in func.nondiff or ()]
    context = interp.frame.sharding_context
    traced = context if interp.frame.differentiated else evolve(context, traced=True)
    inner = evolve(interp.frame, stack=(*interp.frame.stack, func))  # which brings these derivatives
    with interp.inside(inner), sharding.within(interp, traced):
        result = interp.call_function(forward, Arguments(given, named))
        if not isinstance(result, Seq) or len(result.items) != 2 or result.open:
            return
        output, residuals = result.items
        taken = backward.node.params
        if len(taken.positional) != len(static) + 2 and taken.star_arg is None:
            return
        returned = interp.call_function(backward, Arguments([*static, residuals, like(output)]))
        names = func.node.params.positional_names
        if len(names) == len(given) and not (named or interp.frame.fails_on_purpose or interp.frame.is_caught):
            kept = [at for at in range(len(names)) if at not in (func.nondiff or ())]
            parameters, wanted = tuple(names[at] for at in kept), tuple(given[at] for at in kept)
            interp.effects.cotangents.append(Cotangents(backward, parameters, wanted, returned))


def _default(interp: Tracer, func: Func, name: str) -> Value:
    """The default of a parameter that a call leaves out."""
    default = next((each.default for each in func.node.params.named if each.name.value == name), None)
    return UNKNOWN if default is None else interp.evaluate(default, func.env)


def _rules(interp: Tracer, func: Func) -> tuple[Func, Func] | None:
    """The functions that `f.defvjp(forward, backward)` hands over, where `f` may have another name."""
    rules = func.env.vars.get(bound_name(func)) if func.env.parent is not None else None
    if rules is None:
        module = func.derived_in or func.module
        module.lookup(DERIVATIVE, interp)  # runs these calls
        rules = module.env.vars.get(bound_name(func))
    if not isinstance(rules, Seq):
        return None
    forward, backward = rules.items
    return (forward, backward) if isinstance(forward, Func) and isinstance(backward, Func) else None


def handed_over(arguments: Arguments) -> tuple[Value, ...]:
    """The forward and the backward function of a call of `defvjp`."""
    return arguments.get("fwd", 0) or UNKNOWN, arguments.get("bwd", 1) or UNKNOWN


def bound_name(func: Func) -> str:
    """The variable that has the derivatives of a function: no variable of the text has such a name."""
    return f"{func.name}{DERIVATIVE}"


def _has_numbers(arguments: Arguments) -> bool:
    """Whether all sizes of an array are numbers: names alone are judged without a call, too."""
    values = (*arguments.positional, *arguments.keywords.values())
    arrays = (leaf for value in values for leaf in tree_leaves(value) if isinstance(leaf, Array))
    return any(array.has_known_shape for array in arrays)


# -- what is noted for rules -----------------------------------------------------------------------------------------


def note(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> None:
    """Remember what `jax.grad(f)` differentiates and what `jax.custom_vjp(f)` makes differentiable."""
    target = arguments.get("fun", 0) or arguments.get("f", 0)
    if target is None or not name.startswith("jax."):
        return
    if name in _CUSTOM:
        interp.effects.derived.update(func.node for func in _functions(target))
    elif (name in REVERSE or name in FORWARD) and not (interp.frame.fails_on_purpose or interp.frame.is_caught):
        interp.effects.differentiated.extend((func, name, interp.frame.site(node)) for func in _functions(target))


def _functions(value: Value) -> Iterator[Func]:
    for option in options(value):
        if isinstance(option, Func):
            yield option
        elif isinstance(option, CallResult):
            for inner in option.args[:1]:
                yield from _functions(inner)
