"""PAL208 value-indexing."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    ELLIPSIS,
    NONE,
    UNKNOWN,
    Array,
    Const,
    Context,
    Dim,
    Example,
    Failure,
    Finding,
    Fix,
    Op,
    Ref,
    Rule,
    Seq,
    Severity,
    Site,
    Slice,
    Value,
    failure,
    nodes,
)
from pallas_lint.checker.backend_failures import lowers
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.facts.loaded_values import load_of, ref_in_place
from pallas_lint.kernels.facts.signs import is_non_negative
from pallas_lint.kernels.library.indexing import is_scalar_index, result_shape
from pallas_lint.kernels.model.kinds import INEXACT
from pallas_lint.kernels.model.trace import is_full_index
from pallas_lint.kernels.model.values import as_tuple
from pallas_lint.records import frozen

_GETITEM = "jax.numpy.ndarray.__getitem__"
_AT = "jax.numpy.ndarray.at."
_SCATTERS = {
    "set": "scatter", "add": "scatter-add", "subtract": "scatter-sub", "max": "scatter-max", "min": "scatter-min",
    "mul": "scatter-mul", "multiply": "scatter-mul", "apply": "scatter", "power": "scatter", "divide": "scatter",
    "get": "slice",
}  # fmt: skip
_LAX = {
    "dynamic_slice": "dynamic_slice",
    "dynamic_slice_in_dim": "dynamic_slice",
    "dynamic_index_in_dim": "dynamic_slice",
    "dynamic_update_slice": "dynamic_update_slice",
    "dynamic_update_slice_in_dim": "dynamic_update_slice",
    "dynamic_update_index_in_dim": "dynamic_update_slice",
}
_LAST_WITH_DYNAMIC_NEGATIVE = (0, 8, 3)  # up to here `x[-1]` and `x[pl.ds(0, 8)]` of a value were not static slices


@frozen
class _ValueProblem:
    """The requirements of an index on a value. `sure`: False where it is not known whether anything is cut off."""

    kind: str  # a key of _HELP
    primitive: str
    sure: bool = True


class ValueIndexing(Rule):
    """Indexing of a value where only the ref can be indexed.

    What `x_ref[...]` returns is a value in registers. Memory can be addressed with an index that is known at
    run time only, registers cannot: `x[i]` with a traced `i` becomes the primitive `dynamic_slice`, `x.at[i].set`
    becomes `scatter`, `jnp.take` becomes `gather`, and none of the backends has a rule for these in any jax
    version (that of `gather` on TPU takes the form of `take_along_axis` only). The ref that the value was loaded
    from can be indexed: the load then fetches only that part. What is left of indexing differs:

    - slices with known bounds, `x[:8]`, and integers, `x[3]`, work on TPU; Triton has no rule for `slice`;
    - strides, `x[::2]`, work nowhere, nor do reversals;
    - an array as index, `x[rows, cols]`, is a `gather` too, and a boolean mask has no shape that could be known;
    - a negative integer, `x[-1]`, is a dynamic slice up to jax 0.8.3, and so is `x[jnp.int32(3)]` to this day;
    - `x[i : i + 8]` with a traced `i` fails while the kernel is traced, `x[pl.ds(i, 8)]` when it is lowered.

    `interpret=True` runs all of it.

    ## How to fix

    Index the ref instead of the value: `x_ref[i]`, `x_ref[pl.ds(i, 8), :]`, `x_ref[::2]`. Instead of
    `x.at[i].set(v)` store into the ref, or select with
    `jnp.where(lax.broadcasted_iota(jnp.int32, x.shape, 0) == i, v, x)`. For rows that data choose: scalar
    prefetch and an index map, or a one-hot matrix and a dot.

    ## Fix safety

    Safe where the kernel writes the ref nowhere and the index cannot be negative: the same elements are read.
    Unsafe for an index that may be negative or past the end, and for `lax.dynamic_slice`: there jax wraps and
    clamps, a ref does not.

    ## Known limits

    A fix is made where the value is a whole ref, loaded in a function around the place. Where shapes are not known a
    slice on Triton is a warning. Static slices on Mosaic GPU depend on the layout and are left alone.

    ## References

    - jax issues 18897 and 39366.
    - Lowered with jax 0.4.35, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2 and 0.12.0.1 for TPU and Triton, 0.11.2 and
      0.12.0.1 for Mosaic GPU: 120 forms, of float32, bfloat16 and int32.
    """

    code = "PAL208"
    name = "value-indexing"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    runs_without_backend = True
    ops = (
        _GETITEM,
        "jax.numpy.take",
        *(f"jax.lax.{name}" for name in _LAX),
        *(f"{_AT}{name}" for name in _SCATTERS),
    )
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = x[pl.program_id(0)]  #!-
                o_ref[...] = x_ref[pl.program_id(0)]  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(16,),
                    out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            run="run(f32(16, 8, 128))",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = x[:, :64] * x.at[0, 0].set(1.0)[:, :64]  #!

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 64), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """,
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                rows = [x[row] for row in range(4)]  # known integers
                o_ref[...] = sum(rows) + x[:1, :] + x_ref[pl.program_id(0)]

            def run():
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    out_shape=jax.ShapeDtypeStruct((4, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((4, 128), jnp.float32))
            """
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = x[:, None, :] + x[:16][None]  # nothing is cut off

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 16, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        value = op.args[0] if op.args else op.argument("operand") or op.argument("a")
        if not isinstance(value, Array) or value.host:
            return
        trouble = _trouble(op, value)
        if trouble is None:
            return
        found = failure(context, lambda backend, _, version: _fails(trouble, backend, version))
        if found is None:
            return
        severity = found.severity
        if not trouble.sure:
            severity = min(severity, Severity.WARNING, key=lambda level: level.rank)
        load = load_of(value, context.trace)
        yield context.finding(
            op.site,
            _message(op, trouble, found),
            help=_HELP[trouble.kind],
            severity=severity,
            op=op,
            only_in=found.only_in,
            related=[(load.site, "loaded here")] if load is not None and load.site.key != op.site.key else (),
            fixes=_fixes(op, value, trouble, context),
        )


# What fails while the kernel is traced, whatever the backend.
_AT_TRACE = {
    "bounds": "the bounds of a slice must be known when the kernel is traced",
    "mask": "a boolean mask as index has no shape that is known when the kernel is traced",
    "float": "a float is no index",
}
_HELP = {
    "mask": "select with `jnp.where`, and reduce over that",
    "float": "divide with `//`, or cast the index to `jnp.int32`",
    "bounds": "index the ref, with `pl.ds(start, size)`: the size must be known when the kernel is traced",
    "dynamic": "index the ref instead of the loaded value: `ref[i]`, `ref[pl.ds(i, n), :]`",
    "ds": "`pl.ds` is for refs: slice the value with plain bounds, or index the ref",
    "reversed": "reverse the order of blocks in the index map, or the array outside the kernel",
    "strided": "load with a stride: `ref[::2]`, `ref[pl.ds(0, n, stride=2), :]`",
    "negative": "count from the front: `x[x.shape[0] - 1]`",
    "static": "slice the ref when loading: `ref[a:b, :]`, `ref[pl.ds(a, n), :]`",
    "scatter": "store into the ref, or select with `jnp.where` and `lax.broadcasted_iota`",
    "gather": "index the ref with scalars, or use a one-hot matrix and a dot",
}


def _message(op: Op, trouble: _ValueProblem, found: Failure) -> str:
    spelled = op.site.code.partition("\n")[0]
    spelled = spelled if len(spelled) <= 60 else f"{spelled[:57]}..."
    if trouble.kind in _AT_TRACE:
        return f"`{spelled}`: {_AT_TRACE[trouble.kind]}"
    if trouble.kind == "ds":
        return f"`{spelled}`: a value cannot be indexed with `pl.ds` in {found.jax}"
    known = all(isinstance(value, Const) for value in op.args[1:])
    what = {
        "dynamic": "a dynamic slice of a value" if known else "a traced index into a value",
        "reversed": "reversing a value",
        "strided": "a strided slice of a value",
        "negative": "a negative index into a value",
        "static": "a slice of a value",
        "scatter": "an update of part of a value",
        "gather": "a gather from a value",
    }[trouble.kind]
    return f"`{spelled}`: {what} does not lower on {found.place} in {found.jax} (primitive `{trouble.primitive}`)"


def _trouble(op: Op, value: Array) -> _ValueProblem | None:
    module, _, short = op.name.rpartition(".")
    if module == "jax.lax":
        kind = "dynamic" if _LAX[short] == "dynamic_slice" else "scatter"
        return _ValueProblem(kind, _LAX[short])
    if op.name == "jax.numpy.take":
        return _ValueProblem("gather", "gather")
    if op.name != _GETITEM and short != "get":
        return _ValueProblem("scatter", _SCATTERS[short])
    return _of_index(value, op.args[1] if len(op.args) > 1 else UNKNOWN)


def _of_index(value: Array, index: Value) -> _ValueProblem | None:
    if isinstance(index, Seq) and (index.open or index.kind != "tuple"):
        return None
    parts = as_tuple(index)
    for part in parts:
        if isinstance(part, Slice) and part.size is None and any(map(_is_traced, (part.start, part.stop))):
            return _ValueProblem("bounds", "")
    arrays = [part for part in parts if isinstance(part, Array)]
    if any(part.host for part in arrays):
        return None  # numpy's numbers: which of the forms it is depends on them
    if any(part.dtype == "bool" and part.shape != () for part in arrays):
        return _ValueProblem("mask", "")
    if any(part.kinds <= INEXACT for part in arrays):
        return _ValueProblem("float", "")
    if any(part.shape not in (None, ()) for part in arrays):
        return _ValueProblem("gather", "gather")
    for part in parts:
        if isinstance(part, Array) or (isinstance(part, Slice) and part.size is not None and _is_traced(part.start)):
            # Of unknown shape it may be a gather, which fails just so.
            return _ValueProblem("dynamic", "dynamic_slice")
    if any(isinstance(part, Slice) and part.size is not None for part in parts):
        return _ValueProblem("ds", "")
    for part in parts:
        step = part.step.value if isinstance(part, Slice) and isinstance(part.step, Const) else None
        if isinstance(step, int) and step not in (0, 1):
            return _ValueProblem("reversed", "rev") if step == -1 else _ValueProblem("strided", "slice")
    if any(isinstance(part, Const) and type(part.value) is int and part.value < 0 for part in parts):
        return _ValueProblem("negative", "dynamic_slice")
    return _cut(value, index, parts)


def _cut(value: Array, index: Value, parts: tuple[Value, ...]) -> _ValueProblem | None:
    """Integers and slices that are known: a `slice` unless they leave everything."""
    if all(part in (NONE, ELLIPSIS) or is_full_index(part) for part in parts):
        return None
    if value.shape is None:
        # Bounds that are written out mostly leave something out.
        return _ValueProblem("static", "slice", sure=False) if any(map(_has_bounds, parts)) else None
    sizes = list(value.shape)
    after = result_shape(value.shape, Seq(tuple(part for part in parts if part != NONE)))
    if after is None:
        return None
    integers = [part for part in parts if is_scalar_index(part)]
    if integers:
        dims = _indexed(sizes, parts)
        if all(size == 1 for size in dims):
            return None
        return _ValueProblem("static", "slice", sure=any(isinstance(size, int) and size > 1 for size in dims))
    if len(after) != len(sizes) or tuple(sizes) == after:
        return None
    known = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(sizes, after, strict=True))
    return _ValueProblem("static", "slice", sure=known)


def _has_bounds(part: Value) -> bool:
    """Whether the start or stop of a slice is a number."""
    return isinstance(part, Slice) and any(
        isinstance(bound, Const) and type(bound.value) is int and bound.value != 0 for bound in (part.start, part.stop)
    )


def _indexed(sizes: list[Dim], parts: tuple[Value, ...]) -> list[Dim]:
    """The sizes of the dimensions that integers index."""
    taking = [part for part in parts if part != NONE]
    if ELLIPSIS not in taking:
        taking.append(ELLIPSIS)
    at = taking.index(ELLIPSIS)
    front, back = taking[:at], taking[at + 1 :]
    pairs = [*zip(front, sizes, strict=False), *zip(reversed(back), reversed(sizes), strict=False)]
    return [size for part, size in pairs if is_scalar_index(part)]


def _is_traced(value: Value) -> bool:
    return isinstance(value, Array) and not value.host


def _fails(trouble: _ValueProblem, backend: str, version: str) -> bool:
    if trouble.kind in _AT_TRACE:
        return True
    old = parse(version) <= _LAST_WITH_DYNAMIC_NEGATIVE
    if trouble.kind == "ds":
        return old
    if trouble.kind == "strided":
        if backend == "mosaic_gpu":
            return parse(version) >= (0, 11)  # measured from there on
        return backend == "tpu" or not lowers("slice", backend, version)
    if trouble.kind == "negative":
        return old if backend == "tpu" else backend == "triton" and not lowers("slice", backend, version)
    if trouble.kind == "static":
        return backend == "triton" and not lowers("slice", backend, version)
    if trouble.kind == "gather" and backend == "tpu":
        return True  # there is a rule, for `take_along_axis` alone
    return not lowers(trouble.primitive, backend, version)


def _fixes(op: Op, value: Array, trouble: _ValueProblem, context: Context) -> list[Fix]:
    node = op.site.node
    if trouble.kind == "negative" and context.target is not None and context.target.backend == "tpu":
        return _from_the_front(op, context)
    if op.name == _GETITEM and isinstance(node, nodes.Subscript):
        if trouble.kind not in ("dynamic", "strided", "static"):
            return []
        ref = ref_in_place(value, op.site, context.trace)
        index = op.args[1]
        if ref is None or not _takes(ref[0], index, trouble, context):
            return []
        parts = as_tuple(index)
        starts = [part.start if isinstance(part, Slice) else part for part in parts]
        safe = all(is_non_negative(start) for start in starts if isinstance(start, Array))
        edit = context.replace(Site(op.site.piece, node.value), ref[1])
        make = context.safe if safe else context.unsafe
        return [make(f"index the ref `{ref[1]}`", edit)]
    return _of_lax_call(op, value, context)


def _takes(ref: Ref, index: Value, trouble: _ValueProblem, context: Context) -> bool:
    """Whether the ref can be indexed in the same way."""
    parts = as_tuple(index)
    if NONE in parts:
        return False
    if trouble.kind != "strided" or context.target is None or context.target.backend != "tpu":
        return True
    if ref.rank is None or ELLIPSIS in parts:
        return False
    strided = [at for at, part in enumerate(parts) if isinstance(part, Slice) and part.step not in (NONE, Const(1))]
    return all(at < ref.rank - 1 for at in strided) and ref.dtype in ("f32", "i32")


def _from_the_front(op: Op, context: Context) -> list[Fix]:
    """`x[x.shape[0] - 1]` for `x[-1]`."""
    node, index = op.site.node, op.args[1]
    if not isinstance(node, nodes.Subscript) or not isinstance(node.value, nodes.Name) or not isinstance(index, Const):
        return []
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, nodes.Index):
        return []
    inner = node.slice[0].slice.value
    if not isinstance(inner, nodes.UnaryOperation) or not isinstance(inner.expression, nodes.Integer):
        return []
    text = f"{node.value.value}.shape[0] - {-index.value}"
    return [context.safe("count from the front", context.replace(Site(op.site.piece, inner), text))]


def _of_lax_call(op: Op, value: Array, context: Context) -> list[Fix]:
    """`ref[pl.ds(i, n)]` for `lax.dynamic_slice(x, (i,), (n,))` and its relatives."""
    node = op.site.node
    if not isinstance(node, nodes.Call) or any(arg.star for arg in node.args):
        return []
    given = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    plain = [arg.value for arg in node.args if arg.keyword is None]
    short = op.short
    names = {
        "dynamic_slice": ("operand", "start_indices", "slice_sizes"),
        "dynamic_slice_in_dim": ("operand", "start_index", "slice_size", "axis"),
        "dynamic_index_in_dim": ("operand", "index", "axis", "keepdims"),
    }.get(short)
    if names is None:
        return []
    given.update(dict(zip(names, plain, strict=False)))
    ref = ref_in_place(value, op.site, context.trace)
    if ref is None or "operand" not in given:
        return []
    ds, imports = context.spell("jax.experimental.pallas.ds", context.module_of(op.site))

    def text(expression: nodes.BaseExpression) -> str:
        return Site(op.site.piece, expression).code

    index: list[str] = []
    if short == "dynamic_slice":
        starts, sizes = given.get("start_indices"), given.get("slice_sizes")
        if not isinstance(starts, nodes.Tuple | nodes.List) or not isinstance(sizes, nodes.Tuple | nodes.List):
            return []
        if len(starts.elements) != len(sizes.elements):
            return []
        index = [
            f"{ds}({text(start.value)}, {text(size.value)})"
            for start, size in zip(starts.elements, sizes.elements, strict=True)
        ]
    else:
        axis = op.argument("axis", 3 if short == "dynamic_slice_in_dim" else 2) or Const(0)
        if not isinstance(axis, Const) or type(axis.value) is not int or axis.value < 0:
            return []
        start, size = given.get(names[1]), given.get("slice_size")
        if start is None or (short == "dynamic_slice_in_dim" and size is None):
            return []
        if size is not None:
            last = f"{ds}({text(start)}, {text(size)})"
        else:
            keep = op.argument("keepdims", 3) != Const(False)
            last = f"{ds}({text(start)}, 1)" if keep else text(start)
        index = [*[":"] * axis.value, last]
    edit = context.replace(op.site, f"{ref[1]}[{', '.join(index)}]")
    return [context.unsafe(f"index the ref `{ref[1]}`", edit, *imports)]
