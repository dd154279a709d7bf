"""PAL512 cotangent-mismatch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Array, Context, Example, Finding, Rule, Seq, Severity, Site, Value, nodes
from pallas_lint.kernels.model.dtypes import is_float
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from pallas_lint.kernels.model.result import Cotangents
    from pallas_lint.kernels.model.values import Func


class CotangentMismatch(Rule):
    """The backward function of a `jax.custom_vjp` returns what does not fit the arguments.

    It returns a tuple with a cotangent for each argument that is differentiated, in their order: an array of the
    argument's shape, or None for zeros. jax looks at that when a gradient is taken, not before: the function itself
    works, and the first training step fails. Two cotangents that are exchanged, and one that was not summed over the
    dimension along which its argument was broadcast, are the usual causes. Where the shapes agree, jax takes the
    cotangents as they come.

    ## How to fix

    Return one cotangent for each argument, in the order of the parameters, those of `nondiff_argnums` left out.

    ## Known limits

    For calls with arrays of known shapes. Shapes alone are compared: jax takes cotangents of another dtype.

    ## References

    - Differentiated with jax 0.6.2, 0.10.2 and 0.12.0.1: a `ValueError` for another shape, a number among them, and a
      `TypeError` for another count or an array in place of the tuple; lists, None and other dtypes pass, and anything
      in the place of an argument of integers.
    - jax documentation, "Custom derivative rules for JAX-transformable Python functions".
    """

    code = "PAL512"
    name = "cotangent-mismatch"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(x_ref, w_ref, o_ref):
                o_ref[...] = x_ref[...] * w_ref[...]

            @jax.custom_vjp
            def scale(x, w):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, w)

            def forward(x, w):
                return scale(x, w), (x, w)

            def backward(kept, g):
                x, w = kept
                dx = g * w
                dw = jnp.sum(g * x, axis=0, keepdims=True)
                return dw, dx  #!

            scale.defvjp(forward, backward)

            def run():
                x, w = jnp.ones((64, 128)), jnp.ones((1, 128))
                return jax.grad(lambda x: jnp.sum(scale(x, w)))(x)
            """,
            run="run()",
        ),
        Example(
            """
            def kernel(x_ref, w_ref, o_ref):
                o_ref[...] = x_ref[...] * w_ref[...]

            @jax.custom_vjp
            def scale(x, w):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, w)

            def backward(w, g):
                return (g * w,)  #!

            scale.defvjp(lambda x, w: (scale(x, w), w), backward)

            def run():
                return jax.grad(lambda x: jnp.sum(scale(x, jnp.ones((1, 128)))))(jnp.ones((64, 128)))
            """,
            run="run()",
        ),
    )
    valid = (
        Example(
            """
            import functools

            def kernel(x_ref, w_ref, o_ref):
                o_ref[...] = x_ref[...] * w_ref[...]

            @functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
            def scale(x, w, block):
                row = pl.BlockSpec((block, 128), lambda i: (i, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(x.shape[0] // block,),
                    in_specs=[row, pl.BlockSpec((1, 128), lambda i: (0, 0))],
                    out_specs=row,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x, w)

            def backward(block, kept, g):
                x, w = kept
                return g * w, None

            scale.defvjp(lambda x, w, block: (scale(x, w, block), (x, w)), backward)

            def run():
                return jax.grad(lambda x: jnp.sum(scale(x, jnp.ones((1, 128)), 8)))(jnp.ones((64, 128)))
            """
        ),
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        reported = set()
        for call in context.analysis.outcome.effects.cotangents:
            if call.backward.piece.source is not context.module.source or call.backward.node in reported:
                continue
            found = _mismatch(call)
            if found is None:
                continue
            reported.add(call.backward.node)
            message, at = found
            names = ", ".join(f"`{name}`" for name in call.parameters)
            yield context.finding(
                _returned(call.backward, at, len(call.parameters)),
                message,
                help=f"return one cotangent for each of {names}, in this order, with its shape",
            )


def _mismatch(call: Cotangents) -> tuple[str, int | None] | None:
    """What jax refuses of the cotangents, and which one it is; None where they may fit."""
    returned, wanted = call.returned, call.arguments
    arguments = count_of(len(wanted), "argument")
    if isinstance(returned, Array):
        return f"an array is returned, and not a tuple of cotangents for {arguments}", None
    if not isinstance(returned, Seq) or returned.open:
        return None
    if len(returned.items) != len(wanted):
        return f"{count_of(len(returned.items), 'cotangent')} for {arguments} that are differentiated", None
    for at, (cotangent, argument) in enumerate(zip(returned.items, wanted, strict=True)):
        if not isinstance(argument, Array) or argument.dtype is None or not is_float(argument.dtype):
            continue  # of integers jax takes whatever is returned
        have, want = _shape(cotangent), _shape(argument)
        if have is not None and want is not None and have != want:
            return f"the cotangent of `{call.parameters[at]}` has shape {have}, and the argument {want}", at
    return None


def _shape(value: Value) -> tuple[int, ...] | None:
    """The shape of an array, where all of its sizes are numbers."""
    shape = value.shape if isinstance(value, Array) else None
    numbers = tuple(size for size in shape or () if isinstance(size, int))
    return numbers if shape is not None and len(numbers) == len(shape) else None


def _returned(func: Func, at: int | None, count: int) -> Site:
    """The cotangent where the only `return` of the function spells it, that `return`, or the function's name."""
    if isinstance(func.node, nodes.Lambda):
        found: nodes.Node = func.node.body
    else:
        returns: list[nodes.Return] = []
        stack: list[nodes.Node] = [func.node.body]
        while stack:
            node = stack.pop()
            if isinstance(node, nodes.Return):
                returns.append(node)
            elif not isinstance(node, nodes.FunctionDef | nodes.Lambda):
                stack.extend(node.children)
        if len(returns) != 1 or returns[0].value is None:
            return Site(func.piece, func.node.name)
        found = returns[0].value
    if at is not None and isinstance(found, nodes.Tuple) and len(found.elements) == count:
        found = found.elements[at].value
    return Site(func.piece, found)
