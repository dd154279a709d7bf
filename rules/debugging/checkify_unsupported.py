"""PAL603 checkify-unsupported."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint import compat
from pallas_lint.api import Context, Example, Finding, Fix, Op, Rule, Severity
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.analysis.functionalised import launches_checked_in

_CHECKIFY = "jax.experimental.checkify"
_SINCE = (0, 10, 1)
_DEBUG_CHECK = "jax.experimental.pallas.debug_check"


class CheckifyUnsupported(Rule):
    """A `checkify` check in a kernel under a jax whose `pallas_call` no longer knows checkify.

    jax 0.10.1 took the checkify rule of `pallas_call` away. Measured with 0.10.1, 0.10.2, 0.11.2 and 0.12.0.1,
    against 0.10.0, where all of this still works:

    - `checkify.check` in a kernel raises, with or without `checkify.checkify` around the launch: a `ValueError` in
      interpret mode, a `NotImplementedError` on TPU, Triton and Mosaic GPU.
    - `checkify.debug_check` in a kernel is dropped, and `checkify.checkify` reports no error.
    - `checkify.checkify(f, errors=checkify.float_checks)` (or index, nan, all checks) looks at nothing inside the
      kernel any more: a NaN that a kernel makes is no error.

    ## How to fix

    `pl.debug_check(condition, message)` with `pl.enable_debug_checks(True)` halts the device at a failed check on TPU
    and Mosaic GPU. Checks of inputs and outputs can stand outside the kernel, where checkify works as before.

    ## Fix safety

    Unsafe: a debug check halts the device and is only made while `pl.enable_debug_checks` is on; it takes no
    arguments for its message.

    ## Known limits

    The checks that `errors=` selects are looked at where the functionalised function launches a kernel in the
    same file.

    ## References

    - jax documentation, "Pallas Changelog", 0.10.1.
    """

    code = "PAL603"
    name = "checkify-unsupported"
    severity = Severity.ERROR
    fix = "unsafe"
    ops = (f"{_CHECKIFY}.check", f"{_CHECKIFY}.debug_check")
    invalid = (
        Example(
            """
            from jax.experimental import checkify
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                checkify.check(x_ref[0, 0] > 0, "positive")  #!-
                pl.debug_check(x_ref[0, 0] > 0, "positive")  #+
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

            def checked(x):
                error, out = checkify.checkify(run)(x)
                error.throw()
                return out
            """,
            jax="0.10.2",
            run="checked(f32(16, 128))",
        ),
        Example(
            """
            from jax.experimental import checkify
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                o_ref[...] = jax.numpy.log(x_ref[...])

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

            def checked(x):
                error, out = checkify.checkify(run, errors=checkify.float_checks)(x)  #!
                error.throw()
                return out
            """,
            jax="0.12.0",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                pl.debug_check(x_ref[0, 0] > 0, "positive")
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            jax="0.10.2",
        ),
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
            jax="0.10.0",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        failing = _failing(context)
        if not failing or any(guard.kind == "checkify" for guard in op.guards):
            return
        hard = op.short == "check"
        if not hard and "debug_checks" in context.module.source.text:
            return
        name = op.name.removeprefix("jax.experimental.")
        what = "does not lower in a kernel" if hard else "in a kernel is dropped"
        fix = self._fix(op, context)
        yield context.finding(
            op.site,
            f"`{name}` {what}: `pallas_call` has no checkify since jax 0.10.1",
            help="use `pl.debug_check`, and turn it on with `pl.enable_debug_checks`",
            op=op,
            certain=hard,
            only_in=failing,
            fixes=[fix] if fix is not None else [],
        )

    @staticmethod
    def _fix(op: Op, context: Context) -> Fix | None:
        if not compat.available(_DEBUG_CHECK, context.versions):
            return None
        module = context.module_of(op.site)
        if module is not context.module or module.outline.tree is None:
            return None
        start = op.site.span.start
        uses = module.uses.all
        use = next((use for use in uses if use.call is not None and use.span.start == start), None)
        if use is None or use.name != op.name or len(use.positional) != 2 or use.keywords or use.splat:
            return None
        spelled, imports = context.spell(_DEBUG_CHECK)
        return context.unsafe("use `pl.debug_check`", context.replace(use.span, spelled), *imports)

    def check_module(self, context: Context) -> Iterator[Finding]:
        """`checkify.checkify(f, errors=...)` of a function that launches a kernel."""
        failing = _failing(context)
        tree = context.module.outline.tree
        if not failing or tree is None or "checkify" not in context.module.source.text:
            return
        for use in context.module.uses.all:
            errors = use.keyword("errors") if use.name == f"{_CHECKIFY}.checkify" and not use.imported else None
            if errors is None or errors.text.rpartition(".")[2] == "user_checks" or not use.positional:
                continue
            if not context.analysis.guards.reached_in(use, failing):
                continue
            target = (use.positional[0].text or b"").decode("utf-8", "replace")
            launches = launches_checked_in(target, context.analysis)
            if launches:
                yield context.finding(
                    errors.span,
                    "checkify looks at nothing inside `pallas_call` since jax 0.10.1",
                    help="these checks still hold outside the kernel; inside use `pl.debug_check`",
                    severity=Severity.WARNING,
                    only_in=failing,
                    related=[(launches[0].site, "the kernel is launched here")],
                )


def _failing(context: Context) -> tuple[str, ...]:
    return tuple(version for version in context.versions if parse(version) >= _SINCE)
