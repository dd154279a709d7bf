"""PAL608 missing-guard."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint import compat
from pallas_lint.api import (
    Access,
    Array,
    Const,
    Context,
    Edit,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Op,
    Position,
    Rule,
    Severity,
    Site,
    Slice,
    Span,
    Value,
    nodes,
)
from pallas_lint.identity import ById
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.values import as_tuple

# The operand that must not be what it may be, and what it has to be.
_RISKY = {
    "jax.numpy.true_divide": (1, "!= 0", "divides by"),
    "jax.numpy.divide": (1, "!= 0", "divides by"),
    "jax.numpy.floor_divide": (1, "!= 0", "divides by"),
    "jax.numpy.remainder": (1, "!= 0", "divides by"),
    "jax.numpy.mod": (1, "!= 0", "divides by"),
    "jax.lax.div": (1, "!= 0", "divides by"),
    "jax.lax.rem": (1, "!= 0", "divides by"),
    "jax.numpy.reciprocal": (0, "!= 0", "divides by"),
    f"{PALLAS}.reciprocal": (0, "!= 0", "divides by"),
    "jax.numpy.log": (0, "> 0", "takes the logarithm of"),
    "jax.numpy.log2": (0, "> 0", "takes the logarithm of"),
    "jax.lax.log": (0, "> 0", "takes the logarithm of"),
    "jax.numpy.sqrt": (0, ">= 0", "takes the root of"),
    "jax.lax.sqrt": (0, ">= 0", "takes the root of"),
    "jax.lax.rsqrt": (0, "> 0", "takes the root of"),
}
_CHECKS = frozenset(
    (f"{PALLAS}.debug_check", "jax.experimental.checkify.check", "jax.experimental.checkify.debug_check")
)
# What went through one of these is kept away from the forbidden values.
_GUARDING = frozenset(
    f"jax.{module}.{name}"
    for module in ("numpy", "lax", "nn")
    for name in (
        "where",
        "maximum",
        "max",
        "clip",
        "clamp",
        "select",
        "select_n",
        "exp",
        "softplus",
        "sigmoid",
        "square",
    )
)


class MissingGuard(Rule):
    """A division, logarithm, root or data-dependent index in a kernel that checks nothing.

    Nothing stops a kernel that divides by zero or reads where its data points to: the result is inf or NaN, or what
    lies beside the array. Where the operand comes straight from memory this rule offers a check.

    Only on demand: select it by its code.

    ## How to fix

    Mask the operand (`jnp.where(d == 0, 1, d)`), or check it while debugging: `pl.debug_check(jnp.all(d != 0), "...")`
    under `pl.enable_debug_checks(True)`.

    ## Fix safety

    Unsafe: the check runs only where debug checks are on, and has no lowering for Triton.

    ## Known limits

    Operands that passed a `where`, `maximum`, `clip`, `exp` or an addition of a constant count as guarded, and so does
    a kernel with any check.

    ## References

    - jax documentation, `jax.experimental.pallas.debug_check`, since jax 0.6.2.
    """

    code = "PAL608"
    name = "missing-guard"
    severity = Severity.INFO
    fix = "unsafe"
    invalid = (
        Example(
            """
            import jax.numpy as jnp  #-
            from jax.experimental import pallas as pl  #-
            #-
            def kernel(x_ref, d_ref, rows_ref, o_ref):
                d = d_ref[...]
                pl.debug_check(jnp.all(d != 0), "d has to be != 0")  #+
                o_ref[...] = x_ref[rows_ref[0]] / d  #!

            def run(x, d, rows):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, d, rows)
            """,
            run="run(f32(16, 128), f32(16, 128), i32(4))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, d_ref, o_ref):
                d = d_ref[...]
                o_ref[...] = x_ref[...] / jnp.where(d == 0, 1, d) + jnp.log(1e-6 + d) + x_ref[...] / 2

            def run(x, d):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, d)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        if any(True for _ in trace.ops(*_CHECKS)):
            return
        loaded = {
            ById(event.value): event for event in trace.events if isinstance(event, Access) and event.kind == "load"
        }
        for event in trace.events:
            if isinstance(event, Op) and event.name in _RISKY:
                at, condition, doing = _RISKY[event.name]
                operand = event.args[at] if at < len(event.args) else None
                if operand is None or not _is_raw(operand, loaded, 0):
                    continue
                name = _operand_text(event, at)
                fix = _check(event, name, condition, trace, context) if name else None
                yield context.finding(
                    event.site,
                    f"kernel {doing} {f'`{name}`' if name else 'a value from memory'}, and nothing checks it",
                    help=f"mask it, or `pl.debug_check(jnp.all({name or 'value'} {condition}), ...)` while debugging",
                    fixes=[fix] if fix is not None else [],
                )
            elif isinstance(event, Access) and _is_indexed_by_data(event, loaded):
                yield context.finding(
                    event.site,
                    f"`{event.ref.parameter}` is indexed by what was read from memory, and nothing checks it",
                    help="clamp the index, or check it with `pl.debug_check` while debugging",
                )


def _is_indexed_by_data(access: Access, loaded: dict[ById, Access]) -> bool:
    if access.kind not in ("load", "store", "accumulate"):
        return False
    return any(_is_raw(part, loaded, 0) for part in _index_parts(access.index))


def _index_parts(index: Value) -> Iterator[Value]:
    for part in as_tuple(index):
        yield part.start if isinstance(part, Slice) else part


@memoize_by_identity
def _is_raw(value: Value, loaded: dict[ById, Access], depth: int) -> bool:
    """Whether the value is what was loaded, through nothing that keeps it from being anything."""
    if not isinstance(value, Array) or depth > 8:
        return False
    if ById(value) in loaded:
        return True
    origin = value.origin
    if origin is None or origin.name in _GUARDING:
        return False
    if origin.name in ("jax.numpy.add", "jax.numpy.maximum") and any(isinstance(arg, Const) for arg in origin.args):
        return False
    arrays = [arg for arg in origin.args if isinstance(arg, Array)]
    return bool(arrays) and all(_is_raw(arg, loaded, depth + 1) for arg in arrays)


def _operand_text(op: Op, at: int) -> str | None:
    """The operand's text, where it is a name that a check can repeat."""
    node = op.site.node
    operand: nodes.BaseExpression | None = None
    if isinstance(node, nodes.BinaryOperation):
        operand = node.right if at == 1 else node.left
    elif isinstance(node, nodes.Call) and at < len(node.args):
        operand = node.args[at].value
    return operand.value if isinstance(operand, nodes.Name) else None


def _check(op: Op, name: str, condition: str, trace: KernelTrace, context: Context) -> Fix | None:
    """`pl.debug_check(...)` on a line of its own before the statement."""
    if not compat.available(f"{PALLAS}.debug_check", context.versions):
        return None
    module = context.module_of(op.site)
    if trace.launch.backend == "triton" or not isinstance(op.site, Site):
        return None
    span = op.site.span
    line = module.source.line(span.start.line)
    indent = line[: len(line) - len(line.lstrip())]
    if (
        span.start.line != span.end.line
        or not indent
        or line.lstrip().startswith(("return ", "lambda", "if ", "elif "))
    ):
        return None
    before = module.source.line(span.start.line - 1).rstrip() if span.start.line > 1 else ""
    if before.endswith((",", "(", "[", "\\", "{")):
        return None
    check, imports = context.spell(f"{PALLAS}.debug_check", module)
    every, more = context.spell("jax.numpy.all", module)
    start = Position(span.start.line, 1)
    text = f'{indent}{check}({every}({name} {condition}), "{name} has to be {condition}")\n'
    return context.unsafe(
        f"check that `{name}` is {condition}", Edit(Span(span.path, start, start), text), *imports, *more
    )
