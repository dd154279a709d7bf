"""PAL104 mod-comparison."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint import compat
from pallas_lint.api import (
    Access,
    Array,
    Context,
    Edit,
    Example,
    Finding,
    Fix,
    Op,
    Ref,
    Rule,
    Severity,
    Site,
    Span,
    failure,
    nodes,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.kernels.facts.signs import is_non_negative
from pallas_lint.kernels.model.dtypes import is_float, long_name
from pallas_lint.syntax.nesting import operand, spelled_function

_COMPARISONS = frozenset(
    f"jax.{module}.{name}"
    for module, names in (
        ("numpy", "equal not_equal less less_equal greater greater_equal"),
        ("lax", "eq ne lt le gt ge"),
    )
    for name in names.split()
)
_NARROW = frozenset({"bf16", "f16", "i8", "i16", "u8", "u16"})


class ModComparison(Rule):
    """`jnp.mod` or `%` of a dtype for which Mosaic TPU has no remainder, mostly to compare it.

    `jnp.mod` floors like Python's `%`: its result has the sign of the divisor. It is built on the primitive
    `rem`, which truncates and has the sign of the dividend, plus two comparisons and a select that correct
    it. Mosaic turns `rem` into `arith.remf` and `arith.remsi`, and has machine code for them in 32 bits.
    A bfloat16, int8 or int16 operand lowers, and then the compiler stops: `failed to legalize operation
    'arith.remf'`. In jax 0.4.35 float32 stops there too, and up to 0.11.2 uint16. Parity masks such as
    `jnp.mod(i, 2) == 0` on a bfloat16 index are the usual victims.

    32-bit integers work in every release from 0.4.35 on, compared or not: `pl.program_id(0) % 2 == 0` is
    fine. (Before that the correction compared booleans, which stopped with `Mixed dtype operands in cmp`, jax
    issue 21196.)

    ## How to fix

    Compute the remainder in 32 bits: `jnp.mod(i.astype(jnp.float32), 2) == 0`, or better keep indices in
    int32 from the start. Where neither operand can be negative, `lax.rem` gives the same number without the
    correction. With a negative dividend it does not: `-1 % 4` is 3, `lax.rem(-1, 4)` is -1;
    `lax.rem(lax.rem(x, n) + n, n)` floors again.

    ## Fix safety

    Safe: the kernel could not be compiled. Every value of a narrow type is exact in the wider one. The result
    is cast back, unless comparisons alone use it. The fix with `lax.rem` is offered where both operands are
    known not to be negative: grid indices, iotas, unsigned values, positive constants, sums and products of
    these. Float32 in jax 0.4.35 has only an unsafe fix, `x - jnp.floor(x / n) * n`, which rounds.

    ## Known limits

    Operands of unknown dtype are not checked. `lax.rem` and `jnp.fmod` of narrow types are PAL102's, and so is Mosaic
    GPU, which has remainders of integers only.

    ## References

    - jax issues 21196 and 24027.
    - Compiled with libtpu for v5e and v6e: five dtypes in nine jax releases; divided by constants and by arrays,
      compared and stored, and of grid indices, in 0.4.35, 0.8.3 and 0.12.0.1. All integers of 4 to 32 bits for five
      TPUs with 0.10.2, 0.11.2 and 0.12.0.1.
    """

    code = "PAL104"
    name = "mod-comparison"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu"})
    of_compiler = True
    runs_without_backend = True
    ops = ("jax.numpy.mod", "jax.numpy.remainder")
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                i = x_ref[...].astype(jnp.bfloat16)
                o_ref[...] = jnp.where(jnp.mod(i, 2) == 0, 1.0, 0.0)  #!-
                o_ref[...] = jnp.where(jnp.mod(i.astype(jnp.float32), 2) == 0, 1.0, 0.0)  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            run="run(f32(16, 128))",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...].astype(jnp.int8)
                o_ref[...] = (x + x) % 3 + 1  #!-
                o_ref[...] = ((x + x).astype(jnp.int32) % 3).astype(jnp.int8) + 1  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, jnp.int8),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            run="run(i8(32, 128))",
        ),
    )
    valid = (
        Example(
            """
            import jax.numpy as jnp
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import tpu as pltpu

            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) % 2 == 0)  # a 32-bit integer
                def _():
                    o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.4.35",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                i = x_ref[...].astype(jnp.bfloat16)
                o_ref[...] = jnp.where(jnp.mod(i, 2) == 0, 1.0, 0.0)  # Triton has a remainder for it

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        dtype = op.result.dtype if isinstance(op.result, Array) else None
        if dtype is None or (dtype not in _NARROW and dtype != "f32"):
            return
        found = failure(context, lambda backend, _, version: backend == "tpu" and _fails(dtype, version))
        if found is None:
            return
        compared = _compared(op, context)
        instruction = "remf" if is_float(dtype) else "remui" if dtype.startswith("u") else "remsi"
        wide = "float32" if is_float(dtype) else "int32"
        advice = f"compute it in {wide}" if dtype != "f32" else "compute it in int32"
        yield context.finding(
            op.site,
            f"`{spelled_function(op.site)}` of {long_name(dtype)} does not compile on {found.place}:"
            f" no `arith.{instruction}` for it",
            help=f"{advice}; `lax.rem` truncates where `mod` floors, so it is the same only for non-negative operands",
            severity=found.severity,
            op=op,
            only_in=found.only_in,
            dtype=dtype,
            related=[(event.site, "compared here") for event in compared[:1]],
            fixes=self._fixes(op, context, dtype, wide) if found.severity is Severity.ERROR else (),
        )

    def _fixes(self, op: Op, context: Context, dtype: str, wide: str) -> list[Fix]:
        sides = _operands(op)
        if sides is None or dtype == "f16":
            return []  # TPU cannot even load float16: widening the remainder alone mends nothing
        module = context.module_of(op.site)
        if dtype == "f32":
            floor, imports = context.spell("jax.numpy.floor", module)
            x, n = (operand(side) for side in sides)
            edit = context.replace(op.site, f"({x} - {floor}({x} / {n}) * {n})")
            return [context.unsafe("subtract the floored multiple", edit, *imports)]
        known = compat.known_versions()
        oldest = known.index(context.jax.oldest)
        if oldest < known.index("0.7.2" if dtype.startswith("u") else "0.5.3") and dtype not in ("i8", "i16"):
            return []  # no cast from 8 and 16 unsigned bits either, and no `remf` for float32
        wide_name, imports = context.spell(f"jax.numpy.{wide}", module)
        narrow_name, more = context.spell(f"jax.numpy.{long_name(dtype)}", module)
        casts = [isinstance(value, Array | Ref) for value in op.args]
        texts = [
            f"{operand(side)}.astype({wide_name})" if cast else side.code
            for side, cast in zip(sides, casts, strict=True)
        ]
        edits: list[Edit] = list(imports)
        edits += [_over(side, text) for side, text, cast in zip(sides, texts, casts, strict=True) if cast]
        back = f".astype({narrow_name})" if not _only_compared(op, context) else ""
        if back and dtype == "u16":
            return []  # the cast back to 16 unsigned bits aborts the TPU compiler (jax 0.12.0.1, v5e)
        if back:
            edits += more
            edits = _joined([*self._cast_back(op, back), *edits])
        fixes = [context.safe(f"compute the remainder in {wide}", *edits)]
        if not is_float(dtype) and all(is_non_negative(value) for value in op.args):
            rem, needed = context.spell("jax.lax.rem", module)
            whole = context.replace(op.site, f"{rem}({', '.join(texts)}){back}")
            fixes.append(context.safe(f"`lax.rem` in {wide}: no operand is negative", whole, *imports, *needed))
        return fixes

    @staticmethod
    def _cast_back(op: Op, back: str) -> list[Edit]:
        span, node = op.site.span, op.site.node
        end = Edit(Span(span.path, span.end, span.end), back)
        if isinstance(node, nodes.Call):
            return [end]
        if op.site.piece.parentheses(node):
            source = op.site.piece.source
            after = source.position(source.text.index(")", source.offset(span.end)) + 1)
            return [Edit(Span(span.path, after, after), back)]
        return [
            Edit(Span(span.path, span.start, span.start), "("),
            Edit(Span(span.path, span.end, span.end), f"){back}"),
        ]


def _joined(edits: list[Edit]) -> list[Edit]:
    """The edits, with insertions at the start of a replacement joined to it: one place, one edit."""
    found: list[Edit] = []
    for edit in edits:
        before = next((e for e in found if e.span.start == edit.span.start and e.span.path == edit.span.path), None)
        if before is None or before.span.end != before.span.start:
            found.append(edit)
            continue
        found[found.index(before)] = Edit(edit.span, before.text + edit.text)
    return found


def _fails(dtype: str, version: str) -> bool:
    if dtype == "u16":
        return within(version, "0.4.35", "0.11.2")
    return dtype in _NARROW or compat.nearest(version) == "0.4.35"


def _operands(op: Op) -> tuple[Site, Site] | None:
    """Dividend and divisor as in the code."""
    node, piece = op.site.node, op.site.piece
    if len(op.args) != 2 or op.keywords or op.open:
        return None
    if isinstance(node, nodes.BinaryOperation):
        return Site(piece, node.left), Site(piece, node.right)
    if isinstance(node, nodes.Call) and len(node.args) == 2 and not any(a.star or a.keyword for a in node.args):
        return Site(piece, node.args[0].value), Site(piece, node.args[1].value)
    return None


def _over(side: Site, text: str) -> Edit:
    """Replace an operand together with the parentheses around it, which `text` brings again if it needs them."""
    span, source = side.span, side.piece.source
    start, end = source.offset(span.start), source.offset(span.end)
    for _ in range(side.piece.parentheses(side.node)):
        start = source.text.rindex("(", 0, start)
        end = source.text.index(")", end) + 1
    return Edit(Span(span.path, source.position(start), source.position(end)), text)


def _users(op: Op, context: Context) -> Iterator[Op | Access]:
    for event in context.trace.events if context.trace is not None else ():
        if isinstance(event, Op):
            operands = event.arrays
        else:
            operands = [event.value] if isinstance(event, Access) and isinstance(event.value, Array) else []
        if isinstance(event, Op | Access) and any(array.origin is op for array in operands):
            yield event


def _compared(op: Op, context: Context) -> list[Op]:
    """The comparisons that take the remainder."""
    return [event for event in _users(op, context) if isinstance(event, Op) and event.name in _COMPARISONS]


def _only_compared(op: Op, context: Context) -> bool:
    users = list(_users(op, context))
    return bool(users) and all(isinstance(user, Op) and user.name in _COMPARISONS for user in users)
