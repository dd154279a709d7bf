"""PAL203 transpose-minor-dims."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    NONE,
    Array,
    Context,
    Example,
    Finding,
    Fix,
    Op,
    Rule,
    Seq,
    Severity,
    Shape,
    Site,
    Value,
    failure,
    nodes,
    shape_of,
)
from pallas_lint.checker.backend_failures import up_to
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import integer

_TRANSPOSES = tuple(
    f"jax.{module}.{name}"
    for module in ("numpy", "lax")
    for name in ("transpose", "swapaxes", "moveaxis", "matrix_transpose", "permute_dims")
)
_DOTS = ("jax.numpy.dot", "jax.numpy.matmul")


class TransposeMinorDims(Rule):
    """A transpose that the TPU compiler of the jax version does not have, or that a dot could do on its own.

    A transpose that moves the last two dimensions turns whole vector registers over, 8 by 128 elements at a time. What
    Mosaic can turn, it learnt over time:

    - matrices of 32-bit and 16-bit types: always; 8-bit integers from jax 0.6 on (`Unsupported type in transpose`),
      8-bit floats from 0.8, booleans from 0.9 or 0.10 on;
    - three dimensions and more: not at all up to 0.5; in 0.6 only `(1, 0, 2)`, in 32 bits, of dimensions that are
      multiples of 8; all of them from 0.8 on, except that booleans still cannot swap leading dimensions.

    Where it compiles it still costs a pass over the data. The matrix unit does not need it: it takes either operand
    turned over, by the dimensions that `dot_general` contracts.

    ## How to fix

    Cast before and back after (`x.astype(jnp.int32).T.astype(jnp.int8)`), or transpose in the caller. In
    `jnp.dot(a, b.T)`, contract the last dimensions of both: `lax.dot_general(a, b, (((1,), (1,)), ((), ())))`.

    ## Fix safety

    Unsafe: `dot_general` sums the same products, but the compiler may choose another order.

    ## Known limits

    Silent where rank or dtype are not known and would decide, and for jax 0.7, of which nothing is measured. Transposes
    on GPU are left to PAL101. `a.T @ b` is left alone: with that operand `dot_general` did not compile in old releases.

    ## References

    - jax issue 29278: int8.
    - 198 transposes of 1 to 4 dimensions in nine dtypes, compiled for v5e and v6e with jax 0.4.35, 0.6.2, 0.8.3, 0.10.2
      and 0.12.0.1, and 48 dots of transposed operands beside the same `dot_general`; lowered with 0.5.3 and 0.7.2.
    """

    code = "PAL203"
    name = "transpose-minor-dims"
    severity = Severity.ERROR
    fix = "unsafe"
    backends = frozenset({"tpu"})
    of_compiler = True
    ops = (*_TRANSPOSES, *_DOTS)
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.swapaxes(x_ref[...], 1, 2)  #!

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((4, 128, 64), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((4, 64, 128), jnp.float32))
            """,
            jax="0.6.2",
        ),
        Example(
            """
            from jax import lax  #+
            #+
            def kernel(q_ref, k_ref, o_ref):
                o_ref[...] = jnp.dot(q_ref[...], k_ref[...].T, preferred_element_type=jnp.float32)  #!-
                o_ref[...] = lax.dot_general(q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)  #+

            def scores():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 256), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((128, 64), jnp.float32), jnp.ones((256, 64), jnp.float32))
            """,  # noqa: E501
            run="scores()",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...].T

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 16), jnp.bfloat16),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.bfloat16))
            """,
            jax="0.4.35",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        if op.name in _DOTS:
            yield from _foldable(op, context)
            return
        value = op.args[0] if op.args else None
        if not isinstance(value, Array) or value.host:
            return
        shape, dtype = value.shape, value.dtype
        order = None if shape is None else permutation(op, len(shape))
        if shape is None and op.short == "matrix_transpose" and dtype == "bool":
            return
        if order == tuple(range(len(order or ()))):
            return
        failed = failure(context, lambda _, __, version: _compiles(shape, order, dtype, version) is False)
        if failed is None:
            return
        what = "of rank 3 and more" if shape is not None and len(shape) > 2 else "of its last two dimensions"
        typed = f" of {dtype}" if dtype is not None else ""
        yield context.finding(
            op.site,
            f"transpose{typed} {what} does not compile on TPU in {failed.jax}",
            help="cast to 32 bits around it, transpose in the caller, or contract other dimensions in `dot_general`",
            op=op,
            only_in=failed.only_in,
            dtype=dtype,
        )


def permutation(op: Op, rank: int) -> tuple[int, ...] | None:
    """The order of axes that a transposing operation gives; None where it is not known."""
    name = op.short
    straight = tuple(range(rank))
    if name in ("transpose", "permute_dims"):
        axes = op.argument("axes", 1)
        axes = op.argument("permutation", 1) if axes is None else axes
        if axes in (None, NONE):
            return straight[::-1]
        found = shape_of(axes) if isinstance(axes, Seq) else None
        if found is None or len(found) != rank or not all(isinstance(axis, int) for axis in found):
            return None
        return tuple(int(axis) % rank for axis in found if isinstance(axis, int))
    if name == "matrix_transpose":
        return (*straight[:-2], rank - 1, rank - 2) if rank > 1 else straight
    first, second = _axis(op, ("axis1", "source"), 1), _axis(op, ("axis2", "destination"), 2)
    if first is None or second is None or not (-rank <= first < rank and -rank <= second < rank):
        return None
    first, second = first % rank, second % rank
    order = list(straight)
    if name == "swapaxes":
        order[first], order[second] = order[second], order[first]
    else:
        order.insert(second, order.pop(first))
    return tuple(order)


def _axis(op: Op, names: tuple[str, ...], position: int) -> int | None:
    for name in names:
        axis = integer(op.argument(name, position))
        if axis is not None:
            return axis
    return None


def _compiles(shape: Shape | None, order: tuple[int, ...] | None, dtype: str | None, version: str) -> bool | None:
    """Whether Mosaic compiles the transpose, as measured; None where it may or may not."""
    if shape is None or len(shape) == 2:
        return _turns(dtype, version) if shape is not None or dtype not in (None, "bool") else None
    if len(shape) < 2 or order is None:
        return None
    if up_to("0.5.3", version):
        return False
    if up_to("0.6.2", version):
        if order != (1, 0, 2):
            return False
        narrow = dtype is not None and (dtype == "bool" or bits(dtype) < 32)
        short = any(isinstance(size, int) and size % 8 for size in shape[:2])
        return False if narrow or (dtype is not None and short) else None
    if dtype != "bool" or up_to("0.7.2", version):
        return None
    if order[-1] == len(shape) - 1:
        # Leading dimensions only are free; those that reach the rows are not.
        return False if order[-2] != len(shape) - 2 else None
    return False if up_to("0.8.3", version) else None


def _turns(dtype: str | None, version: str) -> bool | None:
    """Whether a matrix of this dtype is turned over."""
    if dtype is None:
        return None
    if dtype == "bool":
        return False if up_to("0.8.3", version) else True if not up_to("0.9.2", version) else None
    if bits(dtype) >= 16:
        return True
    if dtype in ("i8", "u8"):
        return False if up_to("0.4.35", version) else True if not up_to("0.5.3", version) else None
    if dtype.startswith("f8"):
        return False if up_to("0.6.2", version) else True if not up_to("0.7.2", version) else None
    return None


# -- dots ----------------------------------------------------------------------------------------------------------


def _foldable(op: Op, context: Context) -> Iterator[Finding]:
    """`jnp.dot(a, b.T)` and `a @ b.T` of matrices."""
    left, right = (op.args[0], op.args[1]) if len(op.args) > 1 else (None, None)
    if not isinstance(left, Array) or not isinstance(right, Array) or left.rank != 2 or right.rank != 2:
        return
    turned = right.origin
    if turned is None or turned.name not in _TRANSPOSES or not isinstance(turned.args[0], Array):
        return
    if permutation(turned, 2) != (1, 0):
        return
    fix = _fold(op, turned, context)
    if fix is None:
        return
    yield context.finding(
        op.site,
        "right operand of a dot is transposed for it: `dot_general` contracts either dimension without that",
        help="contract the last dimensions of both: `(((1,), (1,)), ((), ()))`",
        severity=Severity.INFO,
        op=op,
        fixes=[fix],
    )


def _fold(op: Op, turned: Op, context: Context) -> Fix | None:
    node = op.site.node
    source = _untransposed(turned)
    if source is None:
        return None
    rest = ""
    if isinstance(node, nodes.BinaryOperation):
        first, second = node.left, node.right
    elif isinstance(node, nodes.Call) and len(node.args) > 1 and not any(arg.star for arg in node.args):
        if node.args[0].keyword or node.args[1].keyword or any(arg.keyword is None for arg in node.args[2:]):
            return None
        first, second = node.args[0].value, node.args[1].value
        rest = "".join(f", {Site(op.site.piece, arg).code.rstrip().rstrip(',')}" for arg in node.args[2:])
    else:
        return None
    if second is not turned.site.node:
        return None
    function, imports = context.spell("jax.lax.dot_general", context.module_of(op.site))
    texts = [Site(op.site.piece, part).code for part in (first, source)]
    text = f"{function}({texts[0]}, {texts[1]}, (((1,), (1,)), ((), ())){rest})"
    return context.unsafe("contract the last dimensions of both", context.replace(op.site, text), *imports)


def _untransposed(turned: Op) -> nodes.BaseExpression | None:
    """The expression that is transposed."""
    node: Value | nodes.Node = turned.site.node
    if isinstance(node, nodes.Attribute):
        return node.value
    if isinstance(node, nodes.Call):
        if turned.form == "method" and isinstance(node.func, nodes.Attribute):
            return node.func.value
        if node.args and node.args[0].keyword is None and not node.args[0].star:
            return node.args[0].value
    return None
