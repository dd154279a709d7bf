"""PAL503 kernel-returns-value."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    NONE,
    Array,
    Const,
    Context,
    Dictionary,
    Example,
    Finding,
    Fix,
    Func,
    KernelTrace,
    OneOf,
    Ref,
    Rule,
    Seq,
    Severity,
    Site,
    Value,
    nodes,
    options,
)


class KernelReturnsValue(Rule):
    """A kernel that returns something.

    Kernels of `pallas_call` write their results into output refs and return None. Anything else, an array, a ref, a
    number or an empty tuple, is refused while tracing, on every backend and in interpret mode: `ValueError: The kernel
    function in the pallas_call ... should return None. It returns a PyTree: PyTreeDef(*)`.

    ## How to fix

    Store the result: `o_ref[...] = value`. Index maps, loop bodies and functions that a kernel calls do return values.

    ## Fix safety

    Unsafe: with one output, `return value` becomes a store to the whole output ref. That this is what was meant, and
    that the shapes fit is not checked.

    ## Known limits

    Silent for values that are not known, such as what a function that is not seen returns, and for bodies of
    `pl.kernel`, `plgpu.kernel` and pipelines, of which some may return something.

    ## References

    - jax issue 22173: a kernel written as a function of its inputs.
    - Traced with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: all refuse an array, a
      ref, a number, `()`, `[]`, `{}` and `(None,)`; `plgpu.kernel` drops a returned array without a word.
    """

    code = "PAL503"
    name = "kernel-returns-value"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                return x_ref[...] + y_ref[...]  #!-
                o_ref[...] = x_ref[...] + y_ref[...]  #+

            def run(x, y):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)
            """,
            run="run(f32(16, 128), f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            def double(x):
                return x * 2

            def kernel(x_ref, o_ref):
                o_ref[...] = double(x_ref[...])
                return

            def run(x):
                call = pl.pallas_call(
                    lambda *refs: kernel(*refs), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
                )
                return call(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        if not launch.form.is_over_blocks or not launch.is_pallas or not trace.complete:
            return
        found = [option for option in options(trace.returned) if _is_something(option)]
        func = next((body for body in options(launch.kernel) if isinstance(body, Func) and _is_of(body, trace)), None)
        if not found or func is None:
            return
        returns = _returns(func)
        place = returns[0] if len(returns) == 1 else None
        site = Site(func.piece, place) if place is not None else trace.site
        what = _described(found[0])
        fix = _stored(func, place, found[0], trace, context) if place is not None else None
        yield context.finding(
            site,
            f"kernel returns {what}: it has to return None",
            help="store the result into an output ref: `o_ref[...] = result`",
            severity=Severity.WARNING if isinstance(trace.returned, OneOf) else Severity.ERROR,
            fixes=[fix] if fix is not None else [],
        )


def _is_something(value: Value) -> bool:
    return value != NONE and isinstance(value, Array | Ref | Seq | Dictionary | Const)


def _is_of(func: Func, trace: KernelTrace) -> bool:
    node = func.node.name if isinstance(func.node, nodes.FunctionDef) else func.node
    return trace.site.node is node


def _described(value: Value) -> str:
    if isinstance(value, Ref):
        return f"the ref `{value.parameter}`"
    if isinstance(value, Array):
        return "an array"
    return "a tuple" if isinstance(value, Seq) and value.kind == "tuple" else "a value"


def _returns(func: Func) -> list[nodes.Return | nodes.BaseExpression]:
    """The return statements of the function itself that give something; a lambda's body."""
    if isinstance(func.node, nodes.Lambda):
        return [func.node.body]
    found: list[nodes.Return | nodes.BaseExpression] = []
    stack: list[nodes.Node] = [func.node.body]
    while stack:
        node = stack.pop(0)
        if isinstance(node, nodes.Return) and node.value is not None:
            found.append(node)
        if not isinstance(node, nodes.FunctionDef | nodes.ClassDef | nodes.Lambda):
            stack.extend(node.children)
    return found


def _stored(
    func: Func, place: nodes.Return | nodes.BaseExpression, value: Value, trace: KernelTrace, context: Context
) -> Fix | None:
    """`return value` as a store to the only output, or `return o_ref` taken out."""
    if not isinstance(place, nodes.Return) or place.value is None:
        return None
    site = Site(func.piece, place)
    outputs = [ref for ref in trace.refs if ref.role == "out"]
    written = any(access.kind in ("store", "accumulate") for ref in outputs for access in trace.accesses(ref.parameter))
    parts = value.items if isinstance(value, Seq) and not value.open else (value,)
    if written and all(isinstance(part, Ref) for part in parts):
        return context.unsafe("return nothing", context.replace(site, "return"))
    if len(outputs) != 1 or written or not isinstance(value, Array) or outputs[0].in_tree:
        return None
    name = outputs[0].parameter
    kept = Site(func.piece, place.value).code
    return context.unsafe(f"store it into `{name}`", context.replace(site, f"{name}[...] = {kept}"))
