"""PAL205 bool-mask-reshape."""

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
from pallas_lint.kernels.facts.vector_layout import layout_of, made_by_logic
from pallas_lint.syntax.definitions import sole_definition
from pallas_lint.syntax.nesting import fitted

_RESHAPES = ("reshape", "expand_dims")


class BoolMaskReshape(Rule):
    """A dimension put behind a boolean vector on TPU: `mask[:, None]`.

    A mask on TPU is one bit for each element, in a layout of its own. The vector `x_ref[0, :] > 0` lies along the
    lanes; `mask[:, None]` wants it along the sublanes, each bit in another row. For numbers Mosaic can move that,
    for single bits it cannot: it stops with `unsupported shape cast`, and newer versions of libtpu abort the
    whole process (`layout.h: Check failed: rem == 0`). What does work is adding a dimension in front or in the
    middle (`mask[None, :]`, `mask[:, None, :]`), and adding one behind a mask that lies along the sublanes already,
    as comparing the result of a row sum gives: `(jnp.max(x, axis=1) > 0)[:, None]`. In jax 0.4.35 a simple comparison
    could be moved, but no mask made by `&`, `|` or `~`.

    ## How to fix

    Add the dimension before comparing: `x_ref[0, :][:, None] > 0`. Masks put together by `&` are expanded part
    by part. For row and column numbers use `lax.broadcasted_iota` of rank 2.

    ## Fix safety

    Safe: comparing does not look at other elements, so it gives the same whether the dimension is added before
    or after. The fix is made for a comparison with a scalar or with vectors of the same rank, in place or through a
    variable that has no other definition and no other use.

    ## Known limits

    An error needs a mask whose layout is known. A mask whose rank is only guessed from how the code
    indexes is a warning, one of unknown origin an info.

    ## References

    - jax issues 37370 and 24464.
    - 115 forms (float32, bfloat16, int32, vectors of 8 to 1024) compiled for v5e with the libtpu of jax 0.4.35 and
      0.12.0.1, the failing ones and their repairs with 0.6.2, 0.8.3, 0.9.2 and 0.10.2 too, and for v4 with 0.12.0.1.
    """

    code = "PAL205"
    name = "bool-mask-reshape"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu"})
    of_compiler = True
    ops = (
        "jax.numpy.ndarray.__getitem__",
        *(f"jax.{module}.{name}" for module in ("numpy", "lax") for name in _RESHAPES),
        "jax.lax.broadcast_in_dim",
    )
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                mask = x_ref[0, :] > 0  #-
                o_ref[...] = jnp.where(mask[:, None], 1.0, 0.0)  #!-
                mask = x_ref[0, :][:, None] > 0  #+
                o_ref[...] = jnp.where(mask, 1.0, 0.0)  #+

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 1), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((8, 128), jnp.float32))
            """,
            jax="0.12.0.1",
            run="run()",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.where((jnp.arange(32) < 20)[:, None], x_ref[...], 0.0)  #!-
                o_ref[...] = jnp.where(jnp.arange(32)[:, None] < 20, x_ref[...], 0.0)  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.12.0.1",
            run="run(f32(32, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                rows = jnp.max(x, axis=1) > 0  # lies along the sublanes
                columns = x_ref[0, :] > 0
                o_ref[...] = jnp.where(rows[:, None] & columns[None, :], x, 0.0)

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """,
            jax="0.12.0.1",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        mask = op.args[0] if op.args else None
        if not isinstance(mask, Array) or mask.dtype != "bool" or mask.host or not _adds_behind(op, mask):
            return
        layout = layout_of(mask, context.trace)
        logic = made_by_logic(mask)

        def fails(backend: str, device: str | None, version: str) -> bool:
            return _fails(layout.along, logic, version) is True

        found = failure(context, fails)
        spelled = op.site.code.partition("\n")[0]
        if found is None:
            doubtful = layout.along is None and any(_fails("lanes", logic, version) for version in context.versions)
            if doubtful:
                yield context.finding(
                    op.site,
                    f"`{spelled}`: a dimension behind a boolean vector does not compile on TPU if it lies along lanes",
                    help=_HELP,
                    severity=Severity.INFO,
                    op=op,
                )
            return
        yield context.finding(
            op.site,
            f"`{spelled}`: a dimension behind a boolean vector does not compile on TPU in {found.jax}",
            help=_HELP,
            severity=found.severity if layout.sure else Severity.WARNING,
            op=op,
            only_in=found.only_in,
            fixes=_fixes(op, mask, context),
        )


_HELP = "add the dimension before comparing: `x[:, None] > 0`"


def _fails(along: str | None, logic: bool, version: str) -> bool | None:
    """Whether it fails to compile, as measured; None where it was not."""
    number = parse(version)
    if number < (0, 5):
        # Along the sublanes some compile and some do not.
        return logic if along in ("lanes", "matrix") else None
    if along in ("lanes", "matrix"):
        return True if number >= (0, 6, 2) else None
    return False


def _adds_behind(op: Op, mask: Array) -> bool:
    """Whether the last dimension becomes one before the last."""
    short = op.short
    if short == "__getitem__":
        parts = op.args[1].items if isinstance(op.args[1], Seq) and not op.args[1].open else (op.args[1],)
        others = [part for part in parts if part != NONE]
        if parts[-1:] != (NONE,) or not others or not all(_is_whole(part) for part in others):
            return False
        return ELLIPSIS in others or mask.shape is None or len(mask.shape) == len(others)
    before, after = mask.shape, op.result.shape if isinstance(op.result, Array) else None
    if short == "broadcast_in_dim":
        dims = op.argument("broadcast_dimensions", 2)
        if before is None or after is None or not isinstance(dims, Seq) or not dims.items:
            return False
        last = dims.items[-1]
        return isinstance(last, Const) and last.value != len(after) - 1
    axis = op.argument("axis", 1) or op.argument("dimensions", 1)
    axis = axis.items[0] if isinstance(axis, Seq) and len(axis.items) == 1 else axis
    if before is None and short == "expand_dims":
        return axis == Const(-1)
    if before is None or after is None or len(after) != len(before) + 1:
        return False
    if short == "reshape":
        return after[-1] == 1 and before[-1] != 1
    return isinstance(axis, Const) and axis.value in (-1, len(before))


def _is_whole(part: Value) -> bool:
    from pallas_lint.kernels.model.trace import is_full_index

    return is_full_index(part)


def _fixes(op: Op, mask: Array, context: Context) -> list[Fix]:
    origin, node = mask.origin, op.site.node
    if origin is None or not isinstance(origin.site.node, nodes.Comparison) or origin.site.piece is not op.site.piece:
        return []
    comparison = origin.site.node
    if not isinstance(node, nodes.Subscript) or len(comparison.comparisons) != 1 or len(origin.args) != 2:
        return []
    piece = op.site.piece
    code, owner = Site(piece, node).code, Site(piece, node.value).code
    suffix = code[code.index("[", code.index(owner) + len(owner)) :]
    sides = (comparison.left, comparison.comparisons[0].comparator)
    expanded: list[tuple[nodes.BaseExpression, str]] = []
    for side, value in zip(sides, origin.args, strict=True):
        if isinstance(value, Array) and value.shape != ():
            if value.shape is None and not isinstance(side, nodes.Name | nodes.Subscript | nodes.Call):
                return []
            if mask.shape is not None and (value.shape is None or len(value.shape) != len(mask.shape)):
                return []
            code = Site(piece, side).code
            plain = isinstance(side, nodes.Name | nodes.Attribute | nodes.Call | nodes.Subscript)
            expanded.append((side, f"{code}{suffix}" if plain else f"({code}){suffix}"))
    if not expanded:
        return []
    if node.value is comparison:
        text = _with(piece, comparison, expanded)
        return [context.safe("add the dimension before comparing", context.replace(op.site, fitted(op.site, text)))]
    if not isinstance(node.value, nodes.Name):
        return []
    definition = sole_definition(node.value, op.site)
    if definition is None or definition.value is not comparison:
        return []
    edits: list[Edit] = [context.replace(Site(piece, side), text) for side, text in expanded]
    for name, around in definition.reads:
        if not isinstance(around, nodes.Subscript) or around.value is not name:
            return []
        if Site(piece, around).code != Site(piece, node).code:
            return []
        edits.append(context.replace(Site(piece, around), definition.name))
    return [context.safe("add the dimension before comparing", *edits)]


def _with(piece: object, comparison: nodes.Comparison, expanded: list[tuple[nodes.BaseExpression, str]]) -> str:
    """The comparison's text, without parentheses around it, with its sides expanded."""
    texts = dict(expanded)
    target = comparison.comparisons[0]

    def text(side: nodes.BaseExpression) -> str:
        return texts.get(side) or Site(piece, side).code  # type: ignore[arg-type]

    operator = Site(piece, target.operator).code  # type: ignore[arg-type]
    return f"{text(comparison.left)} {operator.strip()} {text(target.comparator)}"
