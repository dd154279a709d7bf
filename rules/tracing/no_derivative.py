"""PAL505 no-derivative."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pallas_lint.api import NONE, Context, Dictionary, Example, Finding, Func, Launch, Rule, Severity, Site, Sym, nodes
from pallas_lint.kernels.library.derivatives import REVERSE
from pallas_lint.kernels.model.known_names import PROGRAM_ID

_STOPS = re.compile("stop_gradient")
_CUSTOM = re.compile("custom_(?:vjp|jvp)")


class NoDerivative(Rule):
    """A derivative through a `pallas_call` that has none.

    jax has no transpose rule for `pallas_call`: `jax.grad`, `value_and_grad`, `vjp`, `linearize`, `jacrev` and
    `hessian` raise for every kernel, the simplest elementwise one too ("Linearization failed to produce known values
    for all output primals", an `AssertionError` without text on jax 0.4). Forward mode (`jax.jvp`, `jacfwd`) works
    for plain kernels of which each operand has a tangent, and fails where one has none, or where the kernel calls
    `pl.program_id`, has scratch buffers, scalar prefetch or aliases. `plgpu.kernel` and `pl.kernel` have no derivative
    of either kind.

    ## How to fix

    Give the launching function its own: `@jax.custom_vjp` with a forward function that keeps what is needed, and a
    backward one that launches a kernel for the gradient (or computes it with jnp).

    ## Known limits

    An error where the differentiated argument itself is an operand; a warning where it may reach the launch on a way
    that the text does not show. Silent where `stop_gradient` is in the way, in a `try` of which a handler goes on
    (which shows, or expects, that it fails), for functions that only others differentiate, such as an optimiser's
    loss, and in files that do not mention Pallas at all.

    ## References

    - jax issues 37521, 37267 and 19146.
    - 16 kernels under `grad` and `jvp`, two under seven other transformations, traced with jax 0.4.35, 0.5.3, 0.6.2,
      0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: reverse mode fails for each on each.
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
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        outcome = context.analysis.outcome
        done: set[nodes.Node] = set()
        through = _launches_through(context.analysis.launches) if outcome.effects.differentiated else {}
        for func, transform, site in outcome.effects.differentiated:
            if site.key in done or site.piece.source is not context.module.source:
                continue
            for launch, way in through.get(func.node, ()):
                why = _refusal(launch, transform) if _reaches(func, way, outcome.effects.derived) else None
                if why is None or any(caller.piece.has(_STOPS) for caller in way):
                    continue
                done.add(site.key)
                sure = _is_operand(func, launch) and "argnums" not in site.code
                yield context.finding(
                    _name_of(site),
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
                    _name_of(site),
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
            for way in (launch.callers, *launch.called_by):
                for node in {caller.node for caller in way}:
                    found.setdefault(node, []).append((launch, way))
    return found


def _reaches(func: Func, way: tuple[Func, ...], derived: set[nodes.Node]) -> bool:
    """Whether `func` leads to the launch with no function in between that brings derivatives."""
    passed = [caller.node for caller in way]
    if func.node not in passed:
        return False
    return derived.isdisjoint(passed[passed.index(func.node) :])


def _refusal(launch: Launch, transform: str) -> str | None:
    if not launch.form.forward_mode:
        return "which has no derivative"
    if transform in REVERSE:
        return "which has no reverse-mode derivative"
    aliases = launch.argument("input_output_aliases")
    if isinstance(aliases, Dictionary) and aliases.items:
        return "whose aliases forward mode does not support"
    if launch.argument("num_scalar_prefetch") is not None and launch.prefetch_count:
        return "whose scalar prefetch forward mode does not support"
    if launch.argument("scratch_shapes") not in (None, NONE) and launch.scratch is not None and launch.scratch.items:
        return "whose scratch buffers forward mode does not support"
    if any(True for trace in launch.traces for _ in trace.ops(PROGRAM_ID)):
        return "whose kernel calls `pl.program_id`, which forward mode does not support"
    return None


def _is_operand(func: Func, launch: Launch) -> bool:
    """Whether the first parameter of the differentiated function is passed to the launch as it is."""
    parameters = func.node.params.positional[len(func.bound) :]
    if not parameters or launch.operands is None:
        return False
    name = parameters[0].name.value
    return any(isinstance(operand, Sym) and operand.text == name for operand in launch.operands)


def _described(launch: Launch) -> str:
    return f"`{launch.form.last_parts[0]}`"


def _name_of(site: Site) -> Site:
    return Site(site.piece, site.node.func) if isinstance(site.node, nodes.Call) else site
