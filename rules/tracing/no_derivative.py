"""PAL505 no-derivative."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pallas_lint.api import (
    NONE,
    Array,
    Context,
    Dictionary,
    Example,
    Finding,
    Func,
    Launch,
    Rule,
    Severity,
    Site,
    Sym,
    Value,
    nodes,
)
from pallas_lint.kernels.library.derivatives import REVERSE
from pallas_lint.kernels.model.dtypes import is_integer, long_name
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.syntax.descent import walk

_STOPS = re.compile("stop_gradient")
_CUSTOM = re.compile("custom_(?:vjp|jvp)")
_BATCHED = "jax.jacfwd"


class NoDerivative(Rule):
    """A derivative through a `pallas_call` that has none.

    jax has no transpose rule for `pallas_call`: `jax.grad`, `value_and_grad`, `vjp`, `linearize`, `jacrev` and
    `hessian` raise for every kernel, the simplest elementwise one too ("Linearization failed to produce known values
    for all output primals", an `AssertionError` without text on jax 0.4). `jax.jacfwd` raises as well: one launch
    computes values and tangents, and it batches the tangents alone ("at vmap out_axes[0], got axis spec None but output
    was batched"). `jax.jvp` works for plain kernels of which each operand has a tangent. It traces and then fails to
    run or lower where an operand has none, such as integers and what the function closes over ("safe_zip() argument 1
    has length 6 but argument 0 has length 5"). It raises where the kernel calls `pl.program_id`, has scratch buffers,
    scalar prefetch or aliases. `plgpu.kernel` and `pl.kernel` have no derivative of either kind.

    ## How to fix

    Give the launching function its own: `@jax.custom_vjp` with a forward function that keeps what is needed, and a
    backward one that launches a kernel for the gradient (or computes it with jnp). For `jax.jvp`, make weights an
    argument of the differentiated function, and pass zeros as their tangent. For `jax.jacfwd`, batch `jax.jvp`:
    `jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1])(basis)`.

    ## Known limits

    An error where the differentiated argument itself is an operand; a warning where it may reach the launch on a way
    that the text does not show. Operands without a tangent are known where they are variables of an enclosing function
    or of the module, bound by `partial`, or integers in a lambda. Silent where `stop_gradient` is in the way, in a
    `try` of which a handler goes on (which shows, or expects, that it fails), for functions that only others
    differentiate, such as an optimiser's loss, and in files that do not mention Pallas at all.

    ## References

    - jax issues 37521, 37267 and 19146.
    - 16 kernels under `grad` and `jvp`, two under seven other transformations, traced with jax 0.4.35, 0.5.3, 0.6.2,
      0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: reverse mode fails for each on each.
    - `jvp` of some operands, and `jacfwd`, run in interpret mode with 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2
      and 0.12.0.1; 19 forms lowered for TPU with 0.12.0.1, with specs and without.
    """

    code = "PAL505"
    name = "no-derivative"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            def double(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

            def gradient(x):
                return jax.grad(lambda x: jnp.sum(double(x)))(x)  #!
            """
        ),
        Example(
            """
            def kernel(x_ref, w_ref, o_ref):
                o_ref[...] = x_ref[...] * w_ref[...]

            def scale(x, w):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, w)

            def tangent(x, w, t):
                return jax.jvp(lambda x: scale(x, w), (x,), (t,))  #!
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            @jax.custom_vjp
            def double(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

            double.defvjp(lambda x: (double(x), None), lambda _, g: (double(g),))

            def gradient(x):
                return jax.grad(lambda x: jnp.sum(double(x)))(x)

            def tangent(x, t):
                call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
                return jax.jvp(call, (x,), (t,))
            """
        ),
        Example(
            """
            def kernel(x_ref, w_ref, o_ref):
                o_ref[...] = x_ref[...] * w_ref[...]

            def scale(x, w):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, w)

            def tangent(x, w, t):
                return jax.jvp(scale, (x, w), (t, jnp.zeros_like(w)))
            """
        ),
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        outcome = context.analysis.outcome
        done: set[nodes.Node] = set()
        through = _launches_through(context.analysis.launches) if outcome.effects.differentiated else {}
        for func, transform, site in outcome.effects.differentiated:
            if site.key in done or site.piece.source is not context.module.source:
                continue
            for launch, way in through.get(func.node, ()):
                why = _refusal(func, launch, transform) if _reaches(func, way, outcome.effects.derived) else None
                if why is None or any(caller.piece.has(_STOPS) for caller in way):
                    continue
                done.add(site.key)
                sure = _is_operand(func, launch) and "argnums" not in site.code
                yield context.finding(
                    site.callee,
                    f"`{transform}` through {_described(launch)}, {why}",
                    help="wrap the launching function in `jax.custom_vjp` (`jax.custom_jvp` for forward mode)",
                    certain=sure,
                    related=[(launch.called_at, "the launch")],
                )
                break
            if site.key not in done and transform in REVERSE:
                yield from self._other_module(func, transform, site, context)

    @staticmethod
    def _other_module(func: Func, transform: str, site: Site, context: Context) -> Iterator[Finding]:
        """A launch in a function of another module, whose own analysis sees more of it."""
        outcome = context.analysis.outcome
        for launcher, callers in outcome.effects.not_entered:
            if launcher.piece.has(_CUSTOM) or func.piece.has(_STOPS):
                continue
            if _reaches(func, (*callers, launcher), outcome.effects.derived):
                yield context.finding(
                    site.callee,
                    f"`{transform}` reaches the `pallas_call` in `{launcher.name}`, which has no derivative",
                    help="wrap the launching function in `jax.custom_vjp`",
                    severity=Severity.WARNING,
                )
                return


def _launches_through(launches: list[Launch]) -> dict[nodes.Node, list[tuple[Launch, tuple[Func, ...]]]]:
    """The launches with the calls that lead to each, by every function on the way."""
    found: dict[nodes.Node, list[tuple[Launch, tuple[Func, ...]]]] = {}
    for launch in launches:
        if launch.form.is_program and launch.is_pallas:
            for way in (launch.path.callers, *launch.result_calls.stacks):
                for node in {caller.node for caller in way}:
                    found.setdefault(node, []).append((launch, way))
    return found


def _reaches(func: Func, way: tuple[Func, ...], derived: set[nodes.Node]) -> bool:
    """Whether `func` leads to the launch with no function in between that brings derivatives."""
    passed = [caller.node for caller in way]
    if func.node not in passed:
        return False
    return derived.isdisjoint(passed[passed.index(func.node) :])


def _refusal(func: Func, launch: Launch, transform: str) -> str | None:
    if not launch.form.forward_mode:
        return "which has no derivative"
    if transform in REVERSE:
        return "which has no reverse-mode derivative"
    if transform == _BATCHED:
        return "which computes values and tangents at once, and `jacfwd` batches the tangents alone"
    aliases = launch.argument("input_output_aliases")
    if isinstance(aliases, Dictionary) and aliases.items:
        return "whose aliases forward mode does not support"
    if launch.argument("num_scalar_prefetch") is not None and launch.prefetch_count:
        return "whose scalar prefetch forward mode does not support"
    if launch.argument("scratch_shapes") not in (None, NONE) and launch.scratch is not None and launch.scratch.items:
        return "whose scratch buffers forward mode does not support"
    if any(True for trace in launch.traces for _ in trace.ops(PROGRAM_ID)):
        return "whose kernel calls `pl.program_id`, which forward mode does not support"
    constant = _without_tangent(func, launch)
    return constant and f"which needs a tangent for each operand, and {constant} has none"


def _without_tangent(func: Func, launch: Launch) -> str | None:
    """An operand for which the differentiated function has no tangent, beside one for which it has."""
    if not _is_operand(func, launch):
        return None
    constants = _constants(func)
    for operand in launch.operands or ():
        dtype = operand.element if isinstance(operand, Array) else None
        if isinstance(func.node, nodes.Lambda) and isinstance(dtype, str) and is_integer(dtype):
            return f"one of {long_name(dtype)}"
        name = next((name for name, value in constants if value is operand), None)
        if name is not None:
            return f"`{name}`"
    return None


def _constants(func: Func) -> list[tuple[str, Value]]:
    """What `partial` bound, and variables around `func`, of functions or the module, that it passes on as they are."""
    bound = zip(func.node.params.positional_names, func.bound, strict=False)
    calls = (node for node in walk(func.node.body) if isinstance(node, nodes.Call))
    passed = {arg.value.value for call in calls for arg in call.args if isinstance(arg.value, nodes.Name)}
    closed = passed - {parameter.name.value for parameter in func.node.params.named}
    around = ((name, _variable(name, func)) for name in closed)
    return [*bound, *func.keywords, *((name, value) for name, value in around if value is not None)]


def _variable(name: str, func: Func) -> Value | None:
    local = func.env.find(name)
    return func.env.module.env.vars.get(name) if local is None else local


def _is_operand(func: Func, launch: Launch) -> bool:
    """Whether the first parameter of the differentiated function is passed to the launch as it is."""
    parameters = func.node.params.positional[len(func.bound) :]
    if not parameters or launch.operands is None:
        return False
    name = parameters[0].name.value
    return any(isinstance(operand, Sym) and operand.text == name for operand in launch.operands)


def _described(launch: Launch) -> str:
    return f"`{launch.form.last_parts[0]}`"
