"""PAL216 gpu-copy."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pallas_lint.api import ELLIPSIS, NONE, Const, Context, Example, Finding, Op, Ref, Rule, Seq, Severity, Slice, Value
from pallas_lint.checker.backend_failures import Refusal, first_refused
from pallas_lint.kernels.facts.copies import TO_GMEM, TO_SMEM
from pallas_lint.kernels.facts.gpu_buffers import tiling, transforms, whole
from pallas_lint.kernels.facts.named_axes import axis_points, gpu_axes_in, indices_in
from pallas_lint.kernels.model.compiler_params import compiler_param
from pallas_lint.kernels.model.dtypes import bits, long_name
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.values import as_tuple

_BOX = 256  # elements of a dimension that one copy moves
_UNIT = 16  # bytes: what rows of a copy and of its array in GMEM are multiples of
_ARRIVAL = 128  # bytes: up to jax 0.10.2 every thread of a warpgroup counts its share
_DIVIDED = ("collective_axes", "leader_tracked", "partitioned_axis")  # each block gets a part of what is copied
_LANE = "0.10.2"  # the last release measured in which lane semantics are the default


class GpuCopy(Rule):
    """Mosaic GPU: a copy between GMEM and SMEM that the copy engine (TMA) cannot make.

    `copy_gmem_to_smem` and `copy_smem_to_gmem` move boxes as they are. Source and destination have one shape and one
    dtype. In GMEM, rows of the whole array have to start every 16 bytes, even where only a part is copied; the rows of
    the box start at multiples of 16 bytes and are multiples of 16 bytes long, too. Where they start elsewhere the copy
    lowers and compiles, and the GPU stops at an illegal instruction. Arrays of bool are not copied at all. A slice of a
    tiled buffer consists of whole tiles, without steps. No dimension of what comes into an untiled buffer is longer
    than 256.

    ## How to fix

    Fill the columns of the array up to a multiple of 16 bytes before the launch, slice along tiles, and copy long boxes
    in parts. To convert a dtype, load, `astype` and store.

    ## Known limits

    Collective copies are checked by dtype alone. Only slices with known bounds are compared with tiles. A buffer
    without `transforms` may get tiles from its uses from jax 0.11 on, which is why long boxes are only a warning.

    ## References

    - Lowered for H100 with jax 0.8.3, 0.10.2 and 0.12.0.1: "Expected dtypes to match but src had type float32 and dst
      had type bfloat16", "Expected source shape to be (64, 32), but got (64, 64).", "Async copies require all GMEM
      strides except the last one to be a multiple of 16 bytes", "Async copies require the number of bits copied along
      the last dimension to be divisible by 128, but got 992", "Async copies only support copying <=256 elements along
      each dimension, got (512, 64)", "Expected slice start (4) and slice size (64) to be divisible by the tile size
      (8)", "Strided slices not implemented".
    - Run on an H200 with jax 0.11.2, float32, bfloat16 and int8, whole columns and vectors, constant and loaded
      starts, both ways: `CUDA_ERROR_ILLEGAL_INSTRUCTION` for each start in a row that is no multiple of 16 bytes, right
      for each that is. An error for this release, a warning for others.
    - Another axis than those of the cluster, with jax 0.6.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: "Unknown
      cluster axis pair, available axes: ['c']".
    - Bool, lowered with jax 0.6.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: "Unsupported integer bitwidth: 1".
    - Up to 0.10.2 by default: "Only copies transferring a number of bytes divisible by the warpgroup size are
      supported. Got bytes=64", and steps are refused in GMEM, too.
    """

    code = "PAL216"
    name = "gpu-copy"
    severity = Severity.ERROR
    backends = frozenset({"mosaic_gpu"})
    ops = (TO_SMEM, TO_GMEM)
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem, x_smem, arrived):
                plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)  #!
                plgpu.barrier_wait(arrived)
                plgpu.copy_smem_to_gmem(x_smem, o_gmem)  #!
                plgpu.wait_smem_to_gmem(0)

            def identity():
                x = jnp.zeros((64, 100), jnp.bfloat16)
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 100), jnp.bfloat16),
                    scratch_types=[plgpu.SMEM((64, 100), jnp.bfloat16), plgpu.Barrier()],
                )(x)
            """
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem, x_smem, arrived):
                plgpu.copy_gmem_to_smem(x_gmem.at[:, pl.ds(3, 64)], x_smem, arrived)  #!
                plgpu.barrier_wait(arrived)
                o_gmem[...] = x_smem[...]

            def columns(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
                    scratch_types=[plgpu.SMEM((64, 64), jnp.float32), plgpu.Barrier()],
                )(x)

            columns(jnp.zeros((64, 128)))
            """,
            target="mosaic_gpu",
            jax="0.11.2",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem, x_smem, arrived):
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], x_smem, arrived)
                plgpu.barrier_wait(arrived)
                plgpu.copy_smem_to_gmem(x_smem, o_gmem)
                plgpu.wait_smem_to_gmem(0)

            def first_rows():
                x = jnp.zeros((256, 104), jnp.bfloat16)
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 104), jnp.bfloat16),
                    scratch_types=[plgpu.SMEM((64, 104), jnp.bfloat16), plgpu.Barrier()],
                )(x)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        source, target = op.argument("src", 0), op.argument("dst", 1)
        into = op.name == TO_SMEM
        if op.open or not isinstance(source, Ref) or not isinstance(target, Ref):
            return
        if into and op.argument("barrier", 2) in (None, NONE):
            return  # not the copy engine, but that of older chips
        gmem, smem = (source, target) if into else (target, source)
        yield from first_refused(_refusals(op, source, target, gmem, smem, context), op.site, context, op)


def _refusals(op: Op, source: Ref, target: Ref, gmem: Ref, smem: Ref, context: Context) -> Iterator[Refusal]:
    if source.dtype is not None and target.dtype is not None and source.dtype != target.dtype:
        what = f"copy of {long_name(source.dtype)} into {long_name(target.dtype)}: a copy converts nothing"
        yield Refusal(what, "copy into a buffer of the same dtype, then load, `astype` and store")
    if "bool" in (source.dtype, target.dtype):
        yield Refusal("copy of bool: TMA moves whole bytes", "pass the array as int8, and compare: `mask[...] != 0`")
    yield from _collective(op, context)
    if any(op.argument(name) not in (None, NONE) for name in _DIVIDED):
        return
    if _differ(source, target):
        what = f"copy of shape {_spelled(source)} into {_spelled(target)}"
        yield Refusal(what, "slice the larger one: `ref.at[pl.ds(start, size)]`")
    yield from _rows(gmem, smem)
    yield from _start(op, gmem, context)
    yield from _tiles(smem)
    if _steps(gmem):
        yield Refusal("copy of a slice with steps in GMEM", "copy all of it, or an index at a time", _LANE)
    sizes = _sizes(smem)
    if op.name != TO_SMEM or sizes is None or smem.dtype is None:
        return
    buffer = whole(smem)
    plain = buffer is not None and buffer.declared is not None and transforms(buffer) == ()
    if plain and max(sizes, default=0) > _BOX:
        what = f"copy of {_spelled(smem)} in one piece: a copy takes {_BOX} elements along a dimension"
        yield Refusal(what, "copy it in parts, or tile the buffer", severity=Severity.WARNING)
    number = prod(sizes) * bits(smem.dtype) // 8
    default = context.launch is not None and compiler_param(context.launch, "lowering_semantics") is None
    if number % _ARRIVAL and default:
        yield Refusal(f"copy of {number} bytes: copies into SMEM are multiples of {_ARRIVAL}", "copy more", _LANE)


def _collective(op: Op, context: Context) -> Iterator[Refusal]:
    """Blocks of a cluster among which a copy is divided."""
    launch, axes = context.launch, op.argument("collective_axes")
    if launch is None or launch.open or launch.api != f"{PALLAS}.mosaic_gpu.kernel" or "mesh" in launch.arguments:
        return
    given = launch.argument("cluster_names")
    names = given.items if isinstance(given, Seq) and not given.open else () if given in (None, NONE) else None
    if names is not None and isinstance(axes, Const) and isinstance(axes.value, str) and axes not in names:
        known = " and ".join(f'"{name.value}"' for name in names if isinstance(name, Const))
        has = f"the cluster of the launch has {known}" if known else "the launch has no cluster"
        what = f'`collective_axes="{axes.value}"`, but {has}'
        yield Refusal(what, "name an axis of `cluster_names`, over whose blocks the copy is shared")


def _differ(source: Ref, target: Ref) -> bool:
    """Whether the shapes certainly are not the same."""
    if source.shape is None or target.shape is None:
        return False
    if len(source.shape) != len(target.shape):
        return True
    pairs = zip(source.shape, target.shape, strict=True)
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def _rows(gmem: Ref, smem: Ref) -> Iterator[Refusal]:
    """Where rows start in GMEM, and how long those of the box are."""
    dtype = gmem.dtype
    if dtype in (None, "bool", "semaphore") or dtype is None:
        return
    array = whole(gmem)
    if array is not None and array.shape is not None and array.space in (None, "gmem"):
        stride = 1
        for at in range(len(array.shape) - 1, 0, -1):
            size, outer = array.shape[at], array.shape[at - 1]
            if not isinstance(size, int):
                break
            stride *= size
            if stride * bits(dtype) % (_UNIT * 8) and outer != 1:
                what = f"copy of an array in GMEM with rows of {stride * bits(dtype) / 8:g} bytes"
                yield Refusal(f"{what}: TMA needs a multiple of {_UNIT}", "pad the rows in the caller: `jnp.pad`")
                return
    for ref in (smem, gmem):
        last = ref.shape[-1] if ref.shape else None
        if isinstance(last, int) and last * bits(dtype) % (_UNIT * 8):
            what = f"copy of rows of {last * bits(dtype) / 8:g} bytes: TMA needs a multiple of {_UNIT}"
            yield Refusal(what, "copy more of each row")
            return


def _start(op: Op, gmem: Ref, context: Context) -> Iterator[Refusal]:
    """Where in a row of GMEM the copy starts."""
    array, parts = gmem.parent, as_tuple(gmem.indexer)
    if array is None or array.view or array.rank != len(parts) or ELLIPSIS in parts or gmem.dtype in (None, "bool"):
        return
    width, last = bits(gmem.dtype or ""), parts[-1]
    starts = _starts(last.start, op, context) if isinstance(last, Slice) and last.start is not None else iter(())
    start = next((each for each in starts if each * width % (_UNIT * 8)), None)
    if start is None:
        return
    was_run = bool(context.failing(lambda version: version == "0.11.2"))
    yield Refusal(
        f"copy that starts at element {start} of rows in GMEM, {start * width / 8:g} bytes: TMA needs a multiple of"
        f" {_UNIT}",
        "start at a multiple of it, or load from GMEM without a copy",
        severity=Severity.ERROR if was_run else Severity.WARNING,
    )


def _starts(start: Value, op: Op, context: Context) -> Iterator[int]:
    """Where a slice starts: the number, or those at the places on the axes of the launch, as far as they are known."""
    number = integer(start)
    if number is not None:
        yield number
    elif context.trace is not None and any(indices_in(start)):
        axes = gpu_axes_in(context.trace)
        for point in axis_points([start], context.trace.launch, axes) if axes else ():
            here = point.value(start)
            if isinstance(here, int) and point.runs(op.guards):
                yield here


def _tiles(smem: Ref) -> Iterator[Refusal]:
    """Slices in shared memory: of whole tiles, without steps."""
    if _steps(smem):
        yield Refusal("copy of a slice with steps in SMEM", "lay the buffer out so that the slice is in one piece")
    buffer, parent = whole(smem), smem.parent
    if buffer is None or parent is None or parent.view or parent.shape is None:
        return
    tile = next((tile for item in transforms(buffer) or () if (tile := tiling(item)) is not None), None)
    items = as_tuple(smem.indexer)
    if tile is None or ELLIPSIS in items or len(tile) > len(parent.shape):
        return
    first = len(parent.shape) - len(tile)
    for at, item in enumerate(items[first:]):
        if at < len(tile) and isinstance(item, Slice):
            start, size = integer(item.start), _length(item)
            if any(number is not None and tile[at] > 0 and number % tile[at] for number in (start, size)):
                numbers = " from ".join(str(number) for number in (size, start) if number is not None)
                what = f"copy of a slice of {numbers}, which are no whole tiles: the buffer lies in tiles of {tile[at]}"
                yield Refusal(what, "start and end at tiles, or take a smaller tile")
                return


def _length(item: Slice) -> int | None:
    if item.size is not None:
        return integer(item.size)
    start, stop = (0 if item.start == NONE else integer(item.start)), integer(item.stop)
    return stop - start if start is not None and stop is not None and 0 <= start < stop else None


def _steps(ref: Ref) -> bool:
    """Whether a view certainly leaves elements out in between."""
    if ref.parent is None:
        return False
    items = as_tuple(ref.indexer)
    return any(isinstance(item, Slice) and (integer(item.step) or 1) > 1 for item in items)


def _sizes(ref: Ref) -> tuple[int, ...] | None:
    found = tuple(size for size in ref.shape or () if isinstance(size, int))
    return found if ref.shape is not None and len(found) == len(ref.shape) else None


def _spelled(ref: Ref) -> str:
    sizes = [str(size) if isinstance(size, int) else "?" for size in ref.shape or ()]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
