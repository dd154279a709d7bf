"""PAL106 dot-accumulator."""

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
    Rule,
    Severity,
    Site,
    Span,
    failure,
    nodes,
)
from pallas_lint.kernels.model.dtypes import bits, is_float, is_integer, long_name
from pallas_lint.syntax.nesting import spelled_function

_PRODUCTS = ("dot", "matmul", "einsum", "tensordot", "inner", "vecdot")
_LAX_PRODUCTS = ("dot", "dot_general", "batch_matmul")
_KEEPS = ("add", "subtract", "multiply", "maximum", "minimum", "true_divide", "sub", "mul")


class DotAccumulator(Rule):
    """A product of 16-bit or 8-bit operands that is not accumulated in 32 bits.

    `jnp.dot(a, b)` returns the dtype its operands promote to, so the product of two bfloat16 blocks is
    bfloat16. The matrix unit of a TPU only ever accumulates into 32 bits: Mosaic's `tpu.matmul` demands a
    32-bit accumulator, and the lowering of a 16-bit or 8-bit one fails with `VerificationError: 'tpu.matmul'
    op Expected accumulator ...`. On Triton the accumulator is 32 bits wide inside, but the result is rounded
    to 16 bits (8 for int8, where it wraps around) before the next operation sees it: a sum over K blocks then
    loses what the hardware had computed.

    ## How to fix

    Request the accumulator: `jnp.dot(a, b, preferred_element_type=jnp.float32)` for floats, `jnp.int32` for
    integers; keep sums over blocks in that dtype, and cast once, when the result is stored. `a @ b` has no
    place for the argument: write `jnp.matmul(a, b, preferred_element_type=jnp.float32)`.

    ## Fix safety

    Safe, on TPU: the code could not run. Where something other than a 32-bit store, a cast or a 32-bit sum
    takes the result, the fix casts it back, so that every later dtype stays what it was. There is no fix
    where the code runs.

    ## Known limits

    Operands of unknown dtype are not checked, nor are those of two different dtypes.

    ## References

    - `jnp.dot` of bfloat16, int8 and float8 for TPU in nine jax releases, and seven other spellings in 0.4.35 and
      0.12.0.1: all refused, by Mosaic (`only 32-bit matmul results supported`) up to 0.4.35, later by the lowering.
    - The same with `preferred_element_type`, compiled with libtpu for v5e and v6e: they pass.
    """

    code = "PAL106"
    name = "dot-accumulator"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu", "triton"})
    runs_without_backend = True
    ops = (*(f"jax.numpy.{name}" for name in _PRODUCTS), *(f"jax.lax.{name}" for name in _LAX_PRODUCTS))
    invalid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                x = x_ref[...].astype(jnp.bfloat16)
                y = y_ref[...].astype(jnp.bfloat16)
                scores = jnp.dot(x, y)  #!-
                scores = jnp.dot(x, y, preferred_element_type=jnp.float32).astype(jnp.bfloat16)  #+
                o_ref[...] = jnp.exp(scores).astype(jnp.float32)

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """,
            run="run(f32(128, 128), f32(128, 128))",
        ),
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                x = x_ref[...].astype(jnp.bfloat16)
                o_ref[...] += x @ y_ref[...].astype(jnp.bfloat16)  #!-
                o_ref[...] += jnp.matmul(x, y_ref[...].astype(jnp.bfloat16), preferred_element_type=jnp.float32)  #+

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    input_output_aliases={1: 0},
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """,
            run="run(f32(128, 128), f32(128, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                x = x_ref[...].astype(jnp.bfloat16)
                y = y_ref[...].astype(jnp.bfloat16)
                o_ref[...] = jnp.dot(x, y, preferred_element_type=jnp.float32)

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """
        ),
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = x_ref[...] @ y_ref[...]  # of whatever dtype the caller passes

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        operands = op.arrays[:2]
        dtypes = {array.dtype for array in operands}
        result = op.result.dtype if isinstance(op.result, Array) else None
        if len(operands) != 2 or None in dtypes or len(dtypes) != 1 or op.open:
            return
        dtype = next(iter(dtypes))
        if dtype is None or result is None or not _narrow(dtype) or not _narrow(result):
            return
        wide = "float32" if is_float(dtype) else "int32"
        spelled = spelled_function(op.site)
        rounded = long_name(result)
        if context.target is not None and context.target.backend == "triton":
            yield context.finding(
                op.site,
                f"`{spelled}` of {long_name(dtype)} operands is rounded to {rounded} after every product",
                help=f"pass `preferred_element_type=jnp.{wide}`, and cast when the result is stored",
                severity=Severity.INFO,
                op=op,
                dtype=dtype,
            )
            return
        found = failure(context, lambda backend, device, version: backend == "tpu")
        if found is None:
            return
        yield context.finding(
            op.site,
            f"`{spelled}` of {long_name(dtype)} operands accumulates in {rounded}: TPU products need 32 bits",
            help=f"pass `preferred_element_type=jnp.{wide}`, and cast the result where it must be {rounded}",
            severity=found.severity,
            op=op,
            dtype=dtype,
            fixes=self._fixes(op, context, dtype, wide) if found.severity is Severity.ERROR else (),
        )

    def _fixes(self, op: Op, context: Context, dtype: str, wide: str) -> list[Fix]:
        known = compat.known_versions()
        if bits(dtype) < 16 and known.index(context.jax.oldest) < known.index("0.5.3"):
            return []  # Mosaic of 0.4.35 has no products of 8-bit operands at all
        module = context.module_of(op.site)
        wide_name, imports = context.spell(f"jax.numpy.{wide}", module)
        argument = f"preferred_element_type={wide_name}"
        node, edits = op.site.node, list(imports)
        back = ""
        if not self._takes_wide(op, context, wide):
            # The dtype of an operand, by name where the text has one: it follows when the operand's dtype changes.
            narrow, more = context.spell(f"jax.numpy.{long_name(dtype)}", module)
            back = f".astype({narrow})"
            edits.extend(more)
        if isinstance(node, nodes.BinaryOperation):
            matmul, more = context.spell("jax.numpy.matmul", module)
            edits.extend(more)
            left, right = (Site(op.site.piece, side).code for side in (node.left, node.right))
            edits.append(context.replace(op.site, f"{matmul}({left}, {right}, {argument}){back}"))
        elif isinstance(node, nodes.Call) and node.args and not any(arg.star for arg in node.args):
            edits.extend(self._call_edits(node, op.site, context, argument, wide_name, back))
        else:
            return []
        edits = list({(edit.span, edit.text): edit for edit in edits}.values())
        return [context.safe(f"accumulate in {wide}", *edits)]

    @staticmethod
    def _call_edits(
        node: nodes.Call, site: Site, context: Context, argument: str, wide: str, back: str
    ) -> Iterator[Edit]:
        given = node.keyword("preferred_element_type")
        if given is not None:
            yield context.replace(Site(site.piece, given.value), wide)
        else:
            yield _insertion(Site(site.piece, node.args[-1].value), f", {argument}")
        if back:
            yield _insertion(Site(site.piece, node), back, inside=True)

    @staticmethod
    def _takes_wide(op: Op, context: Context, wide: str) -> bool:
        """Whether everything that uses the result takes a 32-bit one without another dtype coming out of it."""
        short = "f32" if wide == "float32" else "i32"
        users = 0
        for event in context.trace.events if context.trace is not None else ():
            if isinstance(event, Access) and isinstance(event.value, Array) and event.value.origin is op:
                users += 1
                if event.ref.dtype != short:
                    return False
            elif isinstance(event, Op) and any(array.origin is op for array in event.arrays):
                users += 1
                others = [array for array in event.arrays if array.origin is not op]
                if event.name in ("jax.numpy.astype", "jax.lax.convert_element_type"):
                    continue
                if event.short not in _KEEPS or not others:
                    return False
                if any(array.dtype != short or array.weak for array in others):
                    return False
        return users > 0


def _narrow(dtype: str) -> bool:
    return (is_float(dtype) or is_integer(dtype)) and bits(dtype) < 32


def _insertion(site: Site, text: str, *, inside: bool = False) -> Edit:
    """Insert after a node: behind the parentheses around it, or `inside` them."""
    source, end = site.piece.source, site.span.end
    for _ in range(0 if inside else site.piece.parentheses(site.node)):
        closing = source.text.index(")", source.offset(end))
        end = source.position(closing + 1)
    return Edit(Span(site.span.path, end, end), text)
