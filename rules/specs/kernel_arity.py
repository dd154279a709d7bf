"""PAL304 kernel-arity."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Func, Launch, Rule, Severity, Site, Sym, nodes
from pallas_lint.kernels.launches.roles import expected
from pallas_lint.kernels.launches.signatures import signature_of


class KernelArity(Rule):
    """A kernel whose parameters do not match the refs that its launch passes.

    Pallas passes refs by position: scalar-prefetch operands first, then inputs, outputs and scratch. What counts as
    one is less obvious than it looks; on jax 0.4.35 to 0.12.0 alike:

    - one *top-level* element of `in_specs` (of the operands, where there are no `in_specs`), of `out_shape` and of
      `scratch_shapes` is one parameter, whatever tuple or dict of refs it holds: `scratch_shapes=[(VMEM, VMEM)]`
      gives one parameter, a pair;
    - `None` is an element like others: the kernel gets `None` in that place, it is not left out;
    - `out_shape` as a dict is one parameter, as a tuple, list or named tuple one for each field;
    - a dict of scratch is passed by keyword (since jax 0.10);
    - the body of a Mosaic GPU `emit_pipeline` gets the grid indices before the refs.

    A wrong number is a `TypeError` while the launch is traced, on every backend and in interpret mode. Keyword-only
    parameters without a default must be bound by `functools.partial`.

    ## How to fix

    Give the kernel the parameter it lacks, or the launch the operand, output or scratch it lacks.

    ## Known limits

    Silent where one of the numbers is not seen (specs built elsewhere, `*args` at the call), for kernels with
    decorators that are not known, for `partial(kernel, **options)`, and where a branch decides which kernel runs.

    ## References

    - jax documentation, "Pallas quickstart" and `pltpu.PrefetchScalarGridSpec`.
    - Each of the points above was traced with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.
    """

    code = "PAL304"
    name = "kernel-arity"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(  #!
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref, *, scale):
                o_ref[...] = x_ref[...] * scale

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  #!
            """
        ),
    )
    valid = (
        Example(
            """
            import functools

            import jax
            import jax.numpy as jnp
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import tpu as pltpu

            def kernel(x_ref, o_ref, buffers, *rest, scale):
                a_ref, b_ref = buffers
                o_ref[...] = x_ref[...] * scale

            def run(x):
                buffer = pltpu.VMEM((8, 128), jnp.float32)
                return pl.pallas_call(
                    functools.partial(kernel, scale=2.0),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[(buffer, buffer), pltpu.SemaphoreType.DMA],
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if not launch.is_pallas or launch.form.refs is None:
            return
        for func in launch.bodies:
            if not _is_decorated(func, launch):
                yield from self._check(func, launch, context)

    def _check(self, func: Func, launch: Launch, context: Context) -> Iterator[Finding]:
        wanted, signature = expected(launch), signature_of(func)
        name = "the kernel" if isinstance(func.node, nodes.Lambda) else f"`{func.name}`"
        lacking = [f"`{only}`" for only in signature.keyword_only if only not in wanted.keywords]
        if lacking and not signature.open and wanted.scratch is not None:
            message = f"{name} needs {', '.join(lacking)} by keyword, which nothing binds"
            help_text = "bind it with `functools.partial`, or give it a default: Pallas passes refs by position only"
        elif wanted.count is not None and signature.takes(wanted.count, wanted.keywords) is False:
            if (
                isinstance(launch.argument("out_shape"), Sym)
                and signature.takes(wanted.count + 1, wanted.keywords) is not False
            ):
                return  # `out_shape=x` is more than one output where x is a tuple
            gets = f"{wanted.count} ({wanted.spelled()})" if wanted.count or wanted.keywords else "none"
            message = f"{name} takes {signature.spelled()}, but the launch passes {gets}"
            help_text = "give it one parameter for each prefetch operand, input, output and scratch, in that order"
        else:
            return
        node = func.node if isinstance(func.node, nodes.Lambda) else func.node.name
        yield context.finding(
            launch.called_at,
            message,
            help=help_text,
            related=[(Site(func.piece, node), "the kernel")],
        )


# Decorators that leave the parameters as they are.
_HARMLESS = ("jit", "named_call", "named_scope", "wraps", "annotate_function", "staticmethod", "cache")


def _is_decorated(func: Func, launch: Launch) -> bool:
    """Whether a decorator between the def and the launch may change the signature."""
    for decorator in reversed(getattr(func.node, "decorators", ())):
        node = decorator.decorator
        if node is launch.site.node:
            return False  # decorators above get the launch's result
        words = {child.value for child in _names(node)}
        if words.isdisjoint(_HARMLESS):
            return True
    return False


def _names(node: nodes.Node) -> Iterator[nodes.Name]:
    if isinstance(node, nodes.Name):
        yield node
    for child in node.children:
        yield from _names(child)
