"""PAL601 check-never-runs."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Edit, Example, Finding, Fix, Launch, Op, Rule, Severity, Span
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.analysis.functionalised import asserts_are_enabled, may_be_functionalised

_CHECKIFY = "jax.experimental.checkify"
_UNSUPPORTED_SINCE = (0, 10, 1)


class CheckNeverRuns(Rule):
    """A `checkify` check in a kernel whose launch nothing functionalises.

    `checkify.check` is no assertion: it records an error that only `checkify.checkify`, around the function that
    launches the kernel, turns into a value. Without it no backend knows the check. Measured with jax 0.4.35, 0.5.3,
    0.6.2, 0.7.2, 0.8.3, 0.9.2 and 0.10.0:

    - `checkify.check`: in interpret mode a `ValueError` ("... was not functionalized"), on TPU a
      `NotImplementedError` or `LoweringException` ("Non-debug check must be functionalized"), on Triton
      "Unimplemented primitive ... check". The kernel does not run at all.
    - `checkify.debug_check`: silently dropped in interpret mode, and on TPU and Mosaic GPU unless
      `pl.enable_debug_checks` is on; Triton has no rule for it either.

    ## How to fix

    Wrap the launching function: `err, out = checkify.checkify(run)(x)`, then `err.throw()` outside `jax.jit`. On TPU
    and Mosaic GPU `pl.debug_check` (jax 0.6.2) with `pl.enable_debug_checks(True)` halts the device instead, and is
    the only way from jax 0.10.1 on (checkify-unsupported).

    ## Fix safety

    Unsafe: under `jax.jit` the error cannot be thrown where the launch stands. The fix is offered where the launch
    is called on the spot in a function without decorators.

    ## Known limits

    Silent where the launch is functionalised in another file of the project or may be by a call that the text does
    not decide, and up to jax 0.6.0 where the project mentions the runtime asserts of Pallas.

    ## References

    - jax documentation, "The `checkify` transformation".
    - `jax/_src/pallas/mosaic/lowering.py`, the lowering rule of `check_p`.
    """

    code = "PAL601"
    name = "check-never-runs"
    severity = Severity.ERROR
    fix = "unsafe"
    ops = (f"{_CHECKIFY}.check", f"{_CHECKIFY}.debug_check")
    invalid = (
        Example(
            """
            import jax
            from jax.experimental import checkify
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                checkify.check(x_ref[0, 0] > 0, "positive")  #!
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, out_shape=x)(x)  #-
                error, result = checkify.checkify(pl.pallas_call(kernel, out_shape=x))(x)  #+
                error.throw()  #+
                return result  #+
            """,
            jax="0.9.2",
            run="run(f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import checkify
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                checkify.check(x_ref[0, 0] > 0, "positive")
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

            def checked(x):
                error, out = checkify.checkify(run)(x)
                error.throw()
                return out
            """,
            jax="0.9.2",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                pl.debug_check(x_ref[0, 0] > 0, "positive")
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            jax="0.9.2",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        launch, trace = context.launch, context.trace
        failing = tuple(version for version in context.versions if parse(version) < _UNSUPPORTED_SINCE)
        if not failing or launch is None or trace is None or any(g.kind == "checkify" for g in op.guards):
            return
        # Under `checkify.checkify` around the kernel itself the check is functionalised there.
        if may_be_functionalised(launch, context.analysis):
            return
        hard = op.short == "check"
        if parse(failing[0]) < (0, 6, 2) and asserts_are_enabled(context.analysis):
            return
        if not hard and "debug_checks" in context.module.source.text:
            return
        fix = _wrapped(launch, context)
        what = "does not lower" if hard else "is dropped"
        yield context.finding(
            op.site,
            f"`{op.name.removeprefix('jax.experimental.')}` {what}: nothing functionalises this launch",
            help="wrap the launching function in `checkify.checkify` and throw the error that it returns",
            op=op,
            certain=hard,
            versions=failing,
            fixes=[fix] if fix is not None else [],
        )


def _wrapped(launch: Launch, context: Context) -> Fix | None:
    """`return pallas_call(...)(x)` under checkify, with the error thrown."""
    tree = context.module.outline.tree
    if tree is None or launch.site.piece.source is not context.module.source:
        return None
    uses = context.module.uses.all
    start = launch.site.span.start
    call = next((use.call for use in uses if use.call is not None and use.span.start == start), None)
    outer = call.parent if call is not None else None
    if call is None or outer is None or outer.type != "call" or outer.child_by_field_name("function") != call:
        return None
    statement = outer.parent
    if statement is not None and statement.type == "assignment":
        left, statement = statement.child_by_field_name("left"), statement.parent
        result = "" if left is None else (left.text or b"").decode()
    else:
        left, result = None, "result"
    block = None if statement is None else statement.parent
    function = None if block is None else block.parent
    if statement is None or function is None or function.type != "function_definition":
        return None
    if statement.type != ("return_statement" if left is None else "expression_statement"):
        return None
    if function.parent is None or function.parent.type == "decorated_definition":
        return None
    spelled, imports = context.spell("jax.experimental.checkify.checkify")
    use = next(use for use in uses if use.call is not None and use.span.start == start)
    span, whole = use.span_of(statement), use.span_of(call)
    indent = context.module.source.line(span.start.line)[: span.start.column - 1]
    if indent.strip():
        return None
    after = f"\n{indent}error.throw()" + (f"\n{indent}return result" if left is None else "")
    return context.unsafe(
        "functionalise the launch and throw its error",
        Edit(Span(span.path, span.start, whole.start), f"error, {result} = {spelled}("),
        Edit(Span(span.path, whole.end, whole.end), ")"),
        Edit(Span(span.path, span.end, span.end), after),
        *imports,
    )
