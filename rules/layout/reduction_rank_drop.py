"""PAL206 reduction-rank-drop."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    ELLIPSIS,
    NONE,
    Array,
    Const,
    Context,
    Edit,
    Example,
    Finding,
    Fix,
    Op,
    Rule,
    Seq,
    Severity,
    Site,
    Value,
    failure,
    nodes,
)
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.model.trace import is_full_index
from pallas_lint.syntax.definitions import sole_definition
from pallas_lint.syntax.nesting import spelled_function

_GETITEM = "jax.numpy.ndarray.__getitem__"
_REDUCTIONS = tuple(f"jax.numpy.{name}" for name in ("max", "min", "sum", "mean", "prod", "amax", "amin"))
_ORDERED = frozenset(("max", "min", "amax", "amin"))


class ReductionRankDrop(Rule):
    """A reduction on TPU that drops a dimension which the kernel needs again.

    A row maximum of a `(16, 128)` value has one number a row. With `keepdims=True` it stays a matrix, `(16, 1)`, in
    the layout that the rows have. Without, it becomes a vector `(16,)`, and `m[:, None]` makes a matrix of it
    again; what is reduced once more is a vector too. Adding one dimension again compiles wherever it was tried.
    Reducing the last dimension twice does not: on v4 it fails to this day (`Sublane gather not supported by this
    TPU generation`), on v5e up to jax 0.6.2, from rank 3 on up to 0.7.2, and sums that end in a scalar and bfloat16
    of rank 3 in 0.8.3 and 0.9.2. A maximum of a maximum of bfloat16 that ends in a scalar does not lower anywhere: a
    scalar must have 32 bits, where a `(1, 1)` need not. With `keepdims=True` all of these compile.

    ## How to fix

    Pass `keepdims=True` and drop the `[:, None]`. Chained: `jnp.max(jnp.sum(x, -1, keepdims=True), -2, keepdims=True)`.

    ## Fix safety

    Safe: it is the same reduction, with the result in the same shape. The fix is made where the dimension is added
    again at its old place, directly or through a variable that is used in no other way.

    ## Known limits

    Adding a dimension again is an info, and so are chains where they compile. A chain that fails is an error for
    v4, v5e and in the lowering, else a warning. Silent where ranks are not known.

    ## References

    - jax issue 36970.
    - 206 forms (max and sum; float32, bfloat16, int32; rank 2 to 4) compiled for v5e with the libtpu of jax 0.12.0.1,
      47 of them with 0.6.2, 0.7.2, 0.8.3, 0.9.2 and 0.10.2, and for v4 with 0.12.0.1.
    """

    code = "PAL206"
    name = "reduction-rank-drop"
    severity = Severity.INFO
    fix = "safe"
    backends = frozenset({"tpu"})
    of_compiler = True
    ops = (*_REDUCTIONS, _GETITEM)
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                m = jnp.max(x, axis=-1)  #-
                p = jnp.exp(x - m[:, None])  #!-
                o_ref[...] = p / jnp.sum(p, axis=-1)[:, None]  #!-
                m = jnp.max(x, axis=-1, keepdims=True)  #+
                p = jnp.exp(x - m)  #+
                o_ref[...] = p / jnp.sum(p, axis=-1, keepdims=True)  #+

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """,
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] - jnp.max(jnp.sum(x_ref[...], -1), -1)  #!

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """,
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = x - jnp.max(x, axis=-1, keepdims=True) + jnp.sum(x, axis=0)

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        value = op.args[0] if op.args else None
        inner = value.origin if isinstance(value, Array) else None
        if inner is None or _dropped(inner) is None:
            return
        if op.name != _GETITEM:
            yield from self._chained(op, inner, context)
        elif _puts_back(op.args[1], inner):
            yield context.finding(
                op.site,
                f"`{spelled_function(inner.site)}` drops the dimension that `{op.site.code}` adds again",
                help="pass `keepdims=True`: a vector has another layout than a matrix on TPU",
                op=op,
                fixes=_fixes(op, inner, context),
            )

    @staticmethod
    def _chained(op: Op, inner: Op, context: Context) -> Iterator[Finding]:
        first = inner.args[0]
        if not isinstance(first, Array) or first.shape is None:
            return
        rank = len(first.shape)
        inner_axis, outer_axis = _dropped(inner), _dropped(op)
        if rank < 2 or inner_axis not in (-1, rank - 1) or outer_axis not in (-1, rank - 2):
            return  # other chains compile wherever they were tried
        names = tuple(each.short for each in (inner, op))

        def fails(backend: str, device: str | None, version: str) -> bool:
            return _fails(names, rank, first.dtype, device, version)

        found = failure(context, fails)
        device = context.device
        lowering = found is not None and rank == 2 and first.dtype == "bf16" and set(names) <= _ORDERED
        sure = lowering or device in ("v4", "v5e")
        outer_name, inner_name = spelled_function(op.site), spelled_function(inner.site)
        message = f"`{outer_name}` of what `{inner_name}` left without the last dimension"
        if found is not None:
            message += f" does not {'lower' if lowering else 'compile'} on {device or 'TPU'} in {found.jax}"
        else:
            message += ": a reduction of a vector needs a relayout on TPU, and does not compile on v4"
        yield context.finding(
            op.site,
            message,
            help="keep the dimensions, with `keepdims=True` in both",
            severity=Severity.INFO if found is None else Severity.ERROR if sure else Severity.WARNING,
            op=op,
            only_in=found.versions if found is not None else (),
        )


def _fails(names: tuple[str, ...], rank: int, dtype: str | None, device: str | None, version: str) -> bool:
    """Whether two reductions of the last dimension in a row fail, as measured on v5e; on v4 with 0.12 only."""
    number = parse(version)
    if number < (0, 6, 2):
        return False  # not measured
    if dtype == "bf16" and rank == 2 and set(names) <= _ORDERED:
        return True
    if device == "v4" and number >= (0, 12):
        return True
    if number < (0, 7):
        return True
    if number < (0, 8):
        return rank > 2
    if number < (0, 10):
        return (rank == 2 and set(names) == {"sum"}) or (rank > 2 and dtype == "bf16")
    return False


def _dropped(op: Op) -> int | None:
    """The axis that a reduction drops; None for anything else."""
    if op.name not in _REDUCTIONS or not op.args or op.argument("keepdims", 4) not in (None, Const(False)):
        return None
    axis = op.argument("axis", 1)
    return axis.value if isinstance(axis, Const) and type(axis.value) is int else None


def _puts_back(index: Value, inner: Op) -> bool:
    """Whether `x[index]` adds the dimension where the reduction dropped it, and takes everything."""
    parts = index.items if isinstance(index, Seq) and not index.open else (index,)
    if sum(part == NONE for part in parts) != 1:
        return False
    axis, first = _dropped(inner), inner.args[0]
    assert axis is not None
    if parts == (ELLIPSIS, NONE) and axis == -1:
        return True
    if not isinstance(first, Array) or first.shape is None or ELLIPSIS in parts:
        return False
    if not all(part == NONE or is_full_index(part) for part in parts):
        return False
    return len(parts) <= len(first.shape) and parts.index(NONE) == axis % len(first.shape)


def _fixes(op: Op, inner: Op, context: Context) -> list[Fix]:
    node, call, piece = op.site.node, inner.site.node, op.site.piece
    if not isinstance(node, nodes.Subscript) or not isinstance(call, nodes.Call) or inner.site.piece is not piece:
        return []
    if not call.args or call.keyword("keepdims") is not None or any(arg.star for arg in call.args):
        return []
    code = Site(piece, call).code
    if "\n" in code or not code.endswith(")"):
        return []
    kept = f"{code[:-1].rstrip().rstrip(',')}, keepdims=True)"
    title = "keep the dimension: `keepdims=True`"
    if node.value is call:
        return [context.safe(title, context.replace(op.site, kept))]
    if not isinstance(node.value, nodes.Name):
        return []
    definition = sole_definition(node.value, op.site)
    if definition is None or definition.value is not call:
        return []
    edits: list[Edit] = [context.replace(Site(piece, call), kept)]
    for name, around in definition.reads:
        if not isinstance(around, nodes.Subscript) or around.value is not name:
            return []
        if Site(piece, around).code != Site(piece, node).code:
            return []
        edits.append(context.replace(Site(piece, around), definition.name))
    return [context.safe(title, *edits)]
