"""PAL202 reshape-minor-dims."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pallas_lint import compat
from pallas_lint.api import (
    ELLIPSIS,
    NONE,
    Array,
    Context,
    Example,
    Finding,
    Op,
    Rule,
    Seq,
    Severity,
    Shape,
    Value,
    failure,
)
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.values import spelled_shape

_LANES = 128
_RESHAPES = ("reshape", "ravel", "expand_dims", "squeeze")


class ReshapeMinorDims(Rule):
    """A reshape that changes the last dimensions of a value on TPU.

    A TPU value lives in vector registers of 8 sublanes by 128 lanes (16 by 128 for 16-bit types): the last
    dimension lies along the lanes, the one before along the sublanes. Leading dimensions are only a count of
    registers, so reshaping them is free. A reshape that changes the last dimension has to move every element
    to another lane, and what Mosaic can move, it learnt over time; before, it stops with `unsupported shape
    cast`:

    - last dimension a multiple of 128 before and after: 32-bit types from jax 0.6.2 on if the last dimension
      is only split or merged, else from 0.7.2 on, other types included;
    - a last dimension of 16 or 64, for example, on either side: nothing up to 0.8.3, some shapes from 0.9.2 on, and
      from 0.12 on most, but not rows of more than 128 lanes from rows that do not fill them: `(8, 64)` to
      `(512,)`;
    - a new last dimension of size 1 in a 16-bit or 8-bit type (`x[:, :, None]`): from 0.8.3 on.

    Where it compiles it still is a relayout: rotates, selects and stores that cost as much as the arithmetic
    around.

    ## How to fix

    Reshape in the caller, where it is free or cheap, and let the BlockSpec bring the shape that the kernel
    wants. Keep reduced dimensions (`keepdims=True`) instead of adding them again. Split and merge leading
    dimensions only, in steps of the tile (8 rows of 32 bits, 16 of 16 bits). Instead of splitting lanes,
    slice them at multiples of 128.

    ## Known limits

    An error needs both shapes and a jax version in which that kind of reshape was measured to fail. Values of
    rank 1 out of reductions have layouts of their own and are left alone, and so are merges of rows that keep
    the last dimension. Silent where the shapes are not known and the new last dimension could be the
    old one.

    ## References

    - jax issues 21999 and 24404: `unsupported shape cast`.
    - 167 reshapes in float32, bfloat16, int32 or int8, compiled for v5e and v6e with the libtpu of nine jax
      releases from 0.4.35 to 0.12.0.1 (eight of them for a third of the shapes).
    """

    code = "PAL202"
    name = "reshape-minor-dims"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    of_compiler = True
    ops = (
        *(f"jax.numpy.{name}" for name in _RESHAPES),
        *(f"jax.lax.{name}" for name in _RESHAPES),
        "jax.numpy.ndarray.__getitem__",
    )
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...].reshape(128, 16).T  #!

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """,
            jax="0.8.3",
        ),
        Example(
            """
            def kernel(x_ref, o_ref, acc_ref):
                o_ref[...] = acc_ref[...].reshape(16, 256)  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((32, 128), jnp.float32)],
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.12.0.1",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...].reshape(1, 16, 128)[0]  # leading dimensions are free
                o_ref[...] = x.reshape(2, 8, 128).sum(axis=0)

            def run():
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.ones((16, 128), jnp.float32))
            """,
            jax="0.4.35",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...].reshape(128, 16).T

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        value, result = op.args[0] if op.args else None, op.result
        if not isinstance(value, Array) or not isinstance(result, Array) or result.shape is None:
            return
        if op.name.endswith("__getitem__") and not _only_new_axes(op.args[1]):
            return
        before, after, dtype = value.shape, result.shape, value.dtype
        if before is None:
            if _leaves_lanes_empty(after) and op.short == "reshape":
                yield self._relayout(op, context, f"reshape to {spelled_shape(after)}", Severity.INFO)
            return
        change = f"reshape of {spelled_shape(before)} to {spelled_shape(after)}"
        if not _moves_lanes(before, after):
            return
        failed = failure(context, lambda _, __, version: _compiles(before, after, dtype, version) is False)
        if failed is not None:
            yield context.finding(
                op.site,
                f"{change} does not compile on TPU in {failed.jax}: `unsupported shape cast`",
                help=_ADVICE,
                op=op,
                only_in=failed.only_in,
                dtype=dtype,
            )
            return
        doubtful = failure(context, lambda _, __, version: _compiles(before, after, dtype, version) is None)
        if doubtful is not None:
            yield self._relayout(op, context, change, Severity.WARNING)
        elif op.short in ("reshape", "ravel"):
            yield self._relayout(op, context, change, Severity.INFO)

    @staticmethod
    def _relayout(op: Op, context: Context, change: str, severity: Severity) -> Finding:
        doubt = ", which not every such shape survives" if severity is Severity.WARNING else ""
        return context.finding(
            op.site,
            f"{change} moves elements to other lanes: a relayout on TPU{doubt}",
            help=_ADVICE,
            severity=severity,
            op=op,
            only_in=context.versions if severity is Severity.WARNING else (),
        )


_ADVICE = "reshape outside the kernel, or keep the last dimension and split or merge leading ones only"


def _only_new_axes(index: Value) -> bool:
    """`x[:, None]` and its like: what is taken is the whole value."""
    from pallas_lint.kernels.model.trace import is_full_index

    parts = index.items if isinstance(index, Seq) and not index.open else ()
    return NONE in parts and all(part in (NONE, ELLIPSIS) or is_full_index(part) for part in parts)


def _leaves_lanes_empty(shape: Shape) -> bool:
    """Whether a value of unknown shape hardly had this one's last dimension before: literal, and a part of 128."""
    if len(shape) < 2 or not all(isinstance(size, int) for size in shape):
        return False
    last = shape[-1]
    return isinstance(last, int) and 1 < last < _LANES and _LANES % last == 0


def _moves_lanes(before: Shape, after: Shape) -> bool:
    """Whether the last dimension certainly changes, other than by dimensions of size 1 in front."""
    first, second = _without_ones(before), _without_ones(after)
    if not first or not second or first == second:
        return False
    return isinstance(first[-1], int) and isinstance(second[-1], int) and first[-1] != second[-1]


def _without_ones(shape: Shape) -> Shape:
    start = next((at for at, size in enumerate(shape) if size != 1), len(shape))
    return shape[start:]


def _compiles(before: Shape, after: Shape, dtype: str | None, version: str) -> bool | None:
    """Whether Mosaic compiles the reshape in this jax version, as measured; None where it may or may not."""
    first, second = _without_ones(before), _without_ones(after)
    last_first, last_second = first[-1], second[-1]
    assert isinstance(last_first, int) and isinstance(last_second, int)
    wide = dtype is not None and bits(dtype) == 32
    if last_second == 1 or last_first == 1:
        return _trailing_one(before, after, dtype, version)
    if last_first % _LANES or last_second % _LANES:
        if _up_to("0.8.3", version):
            return False
        return _recent(first, second) if not _up_to("0.11.2", version) else None
    if not _up_to("0.7.1", version):
        return True if wide or not _up_to("0.7.2", version) or min(len(first), len(second)) > 1 else None
    known = all(isinstance(size, int) for size in (*first, *second))
    if not known or dtype is None:
        return None
    if min(len(first), len(second)) == 1 or _merges(first, second) or _merges(second, first):
        rows = max(last_first, last_second) // min(last_first, last_second)
        if wide and (rows % 8 == 0 or not _up_to("0.6.1", version)):
            return True if rows % 8 == 0 or min(len(first), len(second)) > 1 else None
        return None
    return False if _up_to("0.6.2", version) else None


def _trailing_one(before: Shape, after: Shape, dtype: str | None, version: str) -> bool:
    """A last dimension of size 1 put behind a matrix, or another kind of change that involves one.

    Of those others nothing is known to fail: layouts differ too much for a verdict from the shapes alone.
    """
    added = after == (*before, 1) and len(before) > 1
    narrow = dtype is not None and dtype != "bool" and bits(dtype) < 32
    return not (added and narrow and _up_to("0.7.2", version))


def _merges(longer: Shape, shorter: Shape) -> bool:
    """Whether `shorter` is `longer` with its last two dimensions made one."""
    return len(longer) == len(shorter) + 1 and longer[: len(shorter) - 1] == shorter[:-1]


def _recent(first: Shape, second: Shape) -> bool | None:
    """Lanes that are not full, from jax 0.12 on: all within 128 lanes, or the last dimension of many rows split."""
    if all(isinstance(size, int) for size in first) and _count(first) <= _LANES:
        return True
    lasts = (first[-1], second[-1])
    if all(isinstance(last, int) and last <= _LANES for last in lasts):
        narrow = [shape for shape in (first, second) if isinstance(shape[-1], int)]
        return True if all(len(shape) > 1 for shape in narrow) else None
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    if _merges(longer, shorter) and len(shorter) > 1:
        return True
    return None


def _count(shape: Shape) -> int:
    return prod(size for size in shape if isinstance(size, int))


def _up_to(last: str, version: str) -> bool:
    known = compat.known_versions()
    return known.index(compat.nearest(version)) <= known.index(last)
