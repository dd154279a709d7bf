"""PAL209 fancy-ref-index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pallas_lint.api import (
    ELLIPSIS,
    NONE,
    Access,
    Array,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Op,
    Rule,
    Seq,
    Severity,
    Slice,
    Sym,
    Value,
    failure,
)
from pallas_lint.checker.backend_failures import lowers
from pallas_lint.kernels.facts.loaded_values import load_of
from pallas_lint.kernels.facts.ref_indexing import ref_indexings
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.kinds import INEXACT
from pallas_lint.kernels.model.values import as_tuple
from pallas_lint.records import evolve, frozen
from pallas_lint.syntax.nesting import spelled_function
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.ref_indexing import RefIndexing


@frozen
class _IndexProblem:
    """What is wrong with an index: the fact, what to do, and on which backends it fails (None: on each)."""

    fact: str
    help: str
    backends: frozenset[str] | None = None
    most: Severity = Severity.ERROR  # less where it is not sure

    def fails(self, backend: str, device: str | None, version: str) -> bool:
        """Whether it fails on this backend: the same in every version."""
        return self.backends is None or backend in self.backends


class FancyRefIndex(Rule):
    """An index that a ref cannot be indexed with: an array, a float, or one index too many.

    A ref is memory, and a load is one instruction for a rectangle of it: an index is an integer or a slice for
    each dimension. What numpy allows beyond that, Pallas has in part:

    - an array as index, `x_ref[idx]` or `x_ref[rows, cols]`, is a gather. Triton loads through pointers and can do
      it. Mosaic TPU raises `Cannot do int indexing on TPU` (or complains about `broadcast_to`), Mosaic GPU
      `int_indexer_shape non-empty`. The same holds for stores;
    - a list as index fails while the kernel is traced;
    - `jnp.take_along_axis` of a loaded value is the one gather that TPU has, and the indices must have the shape of
      the array: one index a row, `(n, 1)`, does not lower up to jax 0.9.2 and does not compile later;
    - a float as index, often from `/` where `//` was meant, does not lower on TPU and Mosaic GPU. Triton lowers it;
    - more indices than dimensions fail while the kernel is traced. A block dimension that is `None` (or
      `pl.Squeezed()`) is not there in the kernel, one of size 1 is: `(None, 16, 128)` gives a ref of rank 2;
    - `None` in an index of a ref is taken for an index, not for a new axis: add axes to what was loaded.

    Slices with bounds that are known only at run time, `x_ref[i : i + 8]`, are PAL502's.

    ## How to fix

    Load rows one by one in a loop (`x_ref[idx_ref[k]]`, with the indices in SMEM), let the index map choose blocks
    by scalar prefetch, multiply by a one-hot matrix, or gather by DMA. On SparseCore there is
    `plsc.load_gather`. Divide with `//`.

    ## Known limits

    An array index is an error where its rank is known to be 1 or more. What is loaded by `idx_ref[i]` from a ref of
    unknown shape that nothing puts into SMEM is a warning, and only where a TPU is the target: it is an array, or a
    single number at an offset in VMEM of which the compiler wants proof that it is aligned. `idx_ref[i, 0]` compiles,
    and so does `idx_ref[0]` where it is a number: an info. Too many indices are reported where every size of the block
    is known: a name in a block shape may stand for `None`. On SparseCores only loads and stores are checked: copies
    take arrays as index, `x_hbm.at[idx]`. Whether a gather that lowers on Triton reads what is meant is not checked.
    Arrays as index into a value are PAL208's.

    ## References

    - jax issues 25230, 27795, 39518, 37006 and 22783; jax-triton issues 46 and 170.
    - Lowered with jax 0.4.35, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2 and 0.12.0.1 for TPU, 0.4.35, 0.8.3 and 0.12.0.1
      for Triton, 0.11.2 and 0.12.0.1 for Mosaic GPU: 75 forms, each with the same outcome in all versions. Twelve for
      the vector subcores of v6e with 0.10.2 and 0.12.0.1.
    """

    code = "PAL209"
    name = "fancy-ref-index"
    severity = Severity.ERROR
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    cores = frozenset({"tensor", "sparse"})
    runs_without_backend = True
    ops = ("jax.numpy.take_along_axis",)
    invalid = (
        Example(
            """
            def kernel(x_ref, rows_ref, o_ref):
                o_ref[...] = x_ref[rows_ref[...]]  #!
                o_ref[jnp.arange(8), :] = jnp.zeros((8, 128))  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, jnp.zeros((16,), jnp.int32))
            """
        ),
        Example(
            """
            from jax.experimental.pallas import tpu as pltpu

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[0, :, :]  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((None, 16, 128), lambda i: (i, 0, 0))],
                    out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, rows_ref, o_ref):
                o_ref[...] = x_ref[rows_ref[...]]  # Triton gathers

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(x, jnp.zeros((16,), jnp.int32))
            """
        ),
        Example(
            """
            def kernel(rows_ref, x_ref, o_ref):
                def copy_row(k, _):
                    o_ref[k, :] = x_ref[rows_ref[k], :]

                lax.fori_loop(0, 16, copy_row, None)

            def run(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec((64, 128), lambda: (0, 0))],
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                )(jnp.zeros((16,), jnp.int32), x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        sparse = context.target is not None and context.target.core == "sparse"
        for indexing in ref_indexings(trace):
            trouble = _of_ref(indexing, trace)
            if trouble is None:
                continue
            if sparse:
                if not isinstance(indexing.event, Access) or trouble.most is not Severity.ERROR:
                    continue  # copies take arrays as index; numbers from VMEM are PAL211's
                if trouble.help is _INSTEAD:
                    trouble = evolve(trouble, help=_GATHER)
            found = failure(context, trouble.fails)
            if found is None or (trouble.most is not Severity.ERROR and context.target is None):
                continue
            place = f" on {found.place}" if trouble.backends is not None else ""
            yield context.finding(
                indexing.site,
                f"`{indexing.site.code}`: {trouble.fact}{place}",
                help=trouble.help,
                severity=min(found.severity, trouble.most, key=lambda severity: severity.rank),
                op=indexing.event,
            )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        """`take_along_axis` with indices of another shape than the array's."""
        value, indices = op.argument("arr", 0), op.argument("indices", 1)
        differs = _other_size(value, indices, op.argument("axis", 2))
        if differs is None or (context.target is not None and context.target.core == "sparse"):
            return
        # Without a rule for `gather` it fails whatever the shapes: PAL101 reports that.
        found = failure(context, lambda backend, _, version: backend == "tpu" and lowers("gather", backend, version))
        if found is None:
            return
        yield context.finding(
            op.site,
            f"`{spelled_function(op.site)}` with indices of {differs[0]}: TPU takes indices of the array's shape only",
            help="broadcast the indices to the shape of the array, or sum over a one-hot comparison",
            severity=found.severity if differs[1] else min(found.severity, Severity.WARNING, key=lambda s: s.rank),
            op=op,
        )


_INSTEAD = (
    "load row by row with scalar indices from SMEM, choose blocks by scalar prefetch and an index map, or multiply by"
    " a one-hot matrix"
)
_GATHER = "gather with `plsc.load_gather(ref, [rows, columns])`, with an array of indices for each dimension"
_IN_SMEM = (
    "keep the indices in SMEM, `pl.BlockSpec(memory_space=pltpu.SMEM)`, where single numbers can be loaded, or prefetch"
    " them: `pltpu.PrefetchScalarGridSpec`"
)
_INTEGERS = "divide with `//`, or cast the index to `jnp.int32`"
_MOSAIC = frozenset({"tpu", "mosaic_gpu"})
_TPU = frozenset({"tpu"})
_ELEMENTWISE = frozenset(
    "add subtract multiply floor_divide remainder mod rem minimum maximum where astype clip bitwise_and bitwise_or"
    " left_shift right_shift div mul sub".split()
)
_MAX_DEPTH = 8


def _of_ref(indexing: RefIndexing, trace: KernelTrace) -> _IndexProblem | None:
    if isinstance(indexing.index, Seq) and indexing.index.kind == "list":
        return _IndexProblem("a list is not an index of a ref", _INSTEAD)
    values = [part.value for part in indexing.parts]
    for value in values:
        if isinstance(value, Slice) and value.size is not None and _is_float(value.size):
            return _IndexProblem("the size of a slice is a float", _INTEGERS)
        if isinstance(value, Seq) and value.kind == "list":
            return _IndexProblem("a list is not an index of a ref", _INSTEAD)
    ranks = [_has_rank(value, trace) for value in values]
    if True in ranks:
        return _IndexProblem("an array as index of a ref does not lower", _INSTEAD, _MOSAIC)
    if "likely" in ranks:
        return _IndexProblem("an index that was loaded from VMEM does not compile", _IN_SMEM, _TPU, Severity.WARNING)
    if "maybe" in ranks:
        fact = "where the index is a row of a larger ref, and no number, it does not lower"
        return _IndexProblem(fact, _INSTEAD, _TPU, Severity.INFO)
    if any(_is_float(value.start if isinstance(value, Slice) else value) for value in values):
        return _IndexProblem("a float as index of a ref does not lower", _INTEGERS, _MOSAIC)
    return _too_many(indexing, values)


@memoize_by_identity
def _has_rank(value: Value, trace: KernelTrace, depth: int = 0) -> bool | Literal["likely", "maybe"] | None:
    """Whether an index is an array and no scalar.

    "likely" for what is loaded from an operand of unknown shape that is not declared to be in SMEM, where scalars are;
    "maybe" where one constant picks a row of it, or a number.
    """
    if not isinstance(value, Array) or value.host:
        return None
    if value.shape is not None:
        return bool(value.shape)
    load = load_of(value, trace)
    if load is not None:
        if load.ref.role not in ("in", "out", "scratch") or load.ref.space not in (None, "vmem"):
            return None
        parts = as_tuple(load.index)
        whole = any(part == ELLIPSIS or isinstance(part, Slice) for part in parts)
        if not whole and not trace.launch.form.is_over_blocks:
            return None  # one number: operands of `pl.kernel` are where the caller put them
        if isinstance(parts[-1], Const) and type(parts[-1].value) is int:
            return None if len(parts) > 1 else "maybe"  # a number at such an offset can be loaded
        return True if whole and load.ref.space is not None else "likely"
    if value.origin is None or depth > _MAX_DEPTH or value.origin.short not in _ELEMENTWISE:
        return None
    found = [_has_rank(operand, trace, depth + 1) for operand in value.origin.args]
    return True if True in found else "likely" if "likely" in found else "maybe" if "maybe" in found else None


def _other_size(value: Value | None, indices: Value | None, axis: Value | None) -> tuple[str, bool] | None:
    """How the shape of indices differs along the axis, and whether that is sure."""
    if not isinstance(value, Array) or not isinstance(indices, Array) or value.shape is None or indices.shape is None:
        return None
    if not isinstance(axis, Const) or type(axis.value) is not int or len(value.shape) != len(indices.shape):
        return None
    if not -len(value.shape) <= axis.value < len(value.shape):
        return None
    size, wanted = indices.shape[axis.value], value.shape[axis.value]
    if not isinstance(size, int) or wanted is None or size == wanted:
        return None
    if isinstance(wanted, int):
        return f"size {size} along an axis of {wanted}", True
    return (f"size {size} along an axis of `{wanted.text}`", False) if size == 1 else None


def _too_many(indexing: RefIndexing, values: list[Value]) -> _IndexProblem | None:
    shape = indexing.ref.shape
    if values.count(ELLIPSIS) > 1:
        return _IndexProblem("more than one `...`", "spell the dimensions out with `:`")
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    count = sum(value != ELLIPSIS for value in values)
    if count <= len(shape):
        return None
    if NONE in values:
        return _IndexProblem(
            f"`None` is taken for an index, which makes {count} for {len(shape)} dimensions",
            "add the axis to the value that was loaded: `ref[...][:, None]`",
        )
    sizes = ", ".join(str(size) for size in shape)
    return _IndexProblem(
        f"{count} indices for a ref of {count_of(len(shape), 'dimension')}, ({sizes})",
        "give one index for each dimension of the ref: a block dimension of `None` is not there in the kernel",
    )


def _is_float(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, float)
    if isinstance(value, Sym):
        return value.operation is not None and value.operation[0] == "/"
    return isinstance(value, Array) and value.kinds <= INEXACT and not value.host
