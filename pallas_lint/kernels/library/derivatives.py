"""Functions that are differentiated, and those that bring their own derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.values import CallResult, Func, Value, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

_CUSTOM = frozenset(
    f"{module}.{name}"
    for module in ("jax", "jax.custom_derivatives")
    for name in ("custom_vjp", "custom_jvp", "custom_gradient")
)
REVERSE = frozenset(
    f"jax.{name}" for name in ("grad", "value_and_grad", "vjp", "jacrev", "jacobian", "hessian", "linearize")
)
FORWARD = frozenset(("jax.jvp", "jax.jacfwd"))


def note(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> None:
    """Remember what `jax.grad(f)` differentiates and what `jax.custom_vjp(f)` makes differentiable."""
    target = arguments.get("fun", 0) or arguments.get("f", 0)
    if target is None or not name.startswith("jax."):
        return
    if name in _CUSTOM:
        interp.effects.derived.update(func.node for func in _functions(target))
    elif (name in REVERSE or name in FORWARD) and not (interp.fails_on_purpose or interp.is_caught):
        interp.effects.differentiated.extend((func, name, interp.site(node)) for func in _functions(target))


def _functions(value: Value) -> Iterator[Func]:
    for option in options(value):
        if isinstance(option, Func):
            yield option
        elif isinstance(option, CallResult):
            for inner in option.args[:1]:
                yield from _functions(inner)
