"""PAL215 tensor-memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pallas_lint.api import (
    NONE,
    Access,
    CallResult,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Op,
    Ref,
    Rule,
    Severity,
    Value,
)
from pallas_lint.checker.backend_failures import Refusal, first_refused
from pallas_lint.kernels.facts.copies import GPU
from pallas_lint.kernels.facts.gpu_buffers import buffers
from pallas_lint.kernels.library.indexing import REF_AT
from pallas_lint.kernels.model.dtypes import bits, long_name
from pallas_lint.kernels.model.trace import refs_in

_MMA = f"{GPU}.tcgen05_mma"
_LOAD, _WAIT = f"{GPU}.async_load_tmem", f"{GPU}.wait_load_tmem"
_STORE, _COMMIT = f"{GPU}.async_store_tmem", f"{GPU}.commit_tmem"
_AWAITED_BY = {_COMMIT: _STORE, _WAIT: _LOAD}
# Functions that access tensor memory, and its position among the arguments: what is written comes first.
_USES: dict[str, tuple[tuple[str, int], ...]] = {
    _MMA: (("acc", 0), ("a", 1)),
    _LOAD: (("src", 0),),
    _STORE: (("ref", 0),),
}
_COLUMNS = 512  # of 32 bits, in 128 lanes
_FLAT = "0.8.3"  # the last release measured that has no batches of matrices in TMEM


class TensorMemory(Rule):
    """Mosaic GPU: tensor memory that cannot be allocated, or is read before anything was written to it.

    Tensor memory (TMEM) has 128 lanes of 512 columns of 32 bits for all that a kernel allocates. A buffer takes 128
    lanes, or 64; narrower types set their layout there: `packed=True` puts several elements into one
    column, `packed=False` leaves the rest of it empty. All buffers of a kernel are collective, or none is.

    It is not cleared: a `tcgen05_mma` that accumulates, which is the default, adds to whatever the buffer holds. Loads
    and stores are asynchronous: `commit_tmem` makes stores visible to products and loads, and `wait_load_tmem` keeps
    the next product or store from overwriting what is still being read. Nothing warns about a missing one.

    ## How to fix

    Pass `accumulate=False` to the first product, or `accumulate=step > 0` in a loop. Call `plgpu.commit_tmem()` after
    stores and `plgpu.wait_load_tmem()` after loads, before the buffer is used again.

    ## Known limits

    Buffers with a `layout` are not measured. What `run_scoped` allocates is counted alone. Any store to a buffer, and
    any code that is not seen, counts as its first value; only what follows in the same block of code, or in one around
    it, is compared with loads and stores.

    ## References

    - Lowered for B200 with jax 0.8.3, 0.10.2 and 0.12.0.1: "TMEM references must have either 128 or 64 rows, but got
      256", "dtypes narrower than 32-bit require either the packed argument or an explicit TMEM layout", "After rounding
      up, got 1024 columns, exceeding the limit of 512", "Minor dimension of shape must be divisible by packing", "Can't
      mix collective and non-collective TMEM allocations within the same kernel".
    - Run with the GPU interpreter of jax 0.12.0.1 (`detect_races=True`): a race where `commit_tmem` is missing between
      store and load, or `wait_load_tmem` between load and store; none with them.
    - jax documentation of `async_load_tmem`, `wait_load_tmem`, `async_store_tmem` and `commit_tmem`.
    """

    code = "PAL215"
    name = "tensor-memory"
    severity = Severity.ERROR
    backends = frozenset({"mosaic_gpu"})
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, x_smem, y_smem, total, done):
                plgpu.tcgen05_mma(total, x_smem, y_smem, done)  #!
                plgpu.barrier_wait(done)
                o_gmem[...] = plgpu.async_load_tmem(total)

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    scratch_types=[
                        plgpu.SMEM((128, 64), jnp.bfloat16),
                        plgpu.SMEM((64, 128), jnp.bfloat16),
                        plgpu.TMEM((128, 128), jnp.float32),
                        plgpu.Barrier(orders_tensor_core=True),
                    ],
                )()
            """
        ),
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, total):
                plgpu.async_store_tmem(total, jnp.zeros((256, 128), jnp.float32))
                plgpu.commit_tmem()
                o_gmem[...] = plgpu.async_load_tmem(total)

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32),
                    scratch_types=[
                        plgpu.TMEM((256, 128), jnp.float32),  #!
                    ],
                )()
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, x_smem, y_smem, total, done):
                plgpu.tcgen05_mma(total, x_smem, y_smem, done, accumulate=False)
                plgpu.barrier_wait(done)
                o_gmem[...] = plgpu.async_load_tmem(total)

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    scratch_types=[
                        plgpu.SMEM((128, 64), jnp.bfloat16),
                        plgpu.SMEM((64, 128), jnp.bfloat16),
                        plgpu.TMEM((128, 128), jnp.float32),
                        plgpu.Barrier(orders_tensor_core=True),
                    ],
                )()
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        allocated = [(ref, ref.declared) for ref in buffers(trace) if ref.declared and ref.declared.short == "TMEM"]
        for buffer, declared in allocated:
            yield from first_refused(_refused(buffer, declared), declared.site, context)
        yield from _together([item for item in allocated if item[0] in trace.refs], context)
        if allocated:
            yield from _unset(trace, context)
            yield from _unawaited(trace, context)


def _refused(buffer: Ref, declared: CallResult) -> Iterator[Refusal]:
    """What jax refuses of one buffer."""
    shape, dtype = buffer.shape, buffer.dtype
    if shape is None or declared.open:
        return
    if len(shape) < 2:
        yield Refusal("a vector in TMEM, which holds matrices", "give it 128 rows: `plgpu.TMEM((128, columns), dtype)`")
        return
    rows, columns = shape[-2:]
    if declared.argument("layout") not in (None, NONE):
        return
    if isinstance(rows, int) and rows not in (64, 128):
        yield Refusal(f"{rows} rows of TMEM: a buffer has 64 or 128", "take 128 rows, and more columns or buffers")
    if dtype is not None and bits(dtype) < 32 and declared.argument("packed") in (None, NONE):
        what = f"{long_name(dtype)} in TMEM does not declare whether it is packed"
        yield Refusal(what, "pass `packed=True` for operands, `packed=False` for accumulators")
    packed = _packing(buffer, declared)
    if packed is not None and isinstance(columns, int) and columns % packed:
        what = f"{columns} columns of TMEM, packed by {packed}: they are a multiple of it"
        yield Refusal(what, "fill the columns up")
    if len(shape) > 2:
        yield Refusal("several matrices in one buffer of TMEM", "allocate one for each", _FLAT)
    taken = _columns(buffer, declared)
    if taken is not None and taken > _COLUMNS:
        what = f"{taken} columns of 32 bits of TMEM, and there are {_COLUMNS}"
        yield Refusal(what, "take a smaller accumulator, or reuse one")


def _together(allocated: list[tuple[Ref, CallResult]], context: Context) -> Iterator[Finding]:
    """What the scratch of one kernel takes, and whether all of it is collective."""
    sizes = [(ref.parameter, _columns(ref, declared)) for ref, declared in allocated if not ref.optional]
    known = [(name, size) for name, size in sizes if size is not None]
    total = sum(size for _, size in known)
    if context.launch is None or not allocated:
        return
    if total > _COLUMNS and all(size <= _COLUMNS for _, size in known):
        yield context.finding(
            context.launch.called_at,
            f"scratch takes {total} columns of TMEM, and there are {_COLUMNS}",
            help=" + ".join(f"{name} {size}" for name, size in known),
        )
    kinds = {_is_collective(declared) for _, declared in allocated}
    if kinds == {True, False}:
        yield context.finding(
            context.launch.called_at,
            "some buffers of TMEM are collective, and some are not: all of a kernel are alike",
            help="pass `collective=True` to all of them",
        )


def _packing(buffer: Ref, declared: CallResult) -> int | None:
    """How many elements share a column; None where it is not known."""
    packed = declared.argument("packed")
    if packed in (None, NONE, Const(False)):
        return 1
    return max(32 // bits(buffer.dtype), 1) if packed == Const(True) and buffer.dtype is not None else None


def _columns(buffer: Ref, declared: CallResult) -> int | None:
    """How many columns a buffer certainly takes: 64 rows fill half the lanes, twice as many columns a lane."""
    packed = _packing(buffer, declared)
    sizes = [size for size in buffer.shape or () if isinstance(size, int)]
    if packed is None or buffer.shape is None or len(sizes) != len(buffer.shape) or len(sizes) < 2:
        return None
    if declared.open or declared.argument("layout") not in (None, NONE):
        return None
    return prod(sizes) // sizes[-2] // packed // (2 if sizes[-2] == 64 else 1) if sizes[-2] else None


def _is_collective(declared: CallResult) -> bool | None:
    given = declared.argument("collective")
    if given in (None, NONE):
        return None if declared.open else False
    return given.value if isinstance(given, Const) and isinstance(given.value, bool) else None


def _unset(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Products that add to what nothing has written."""
    if not trace.complete or trace.tracked_until is not None:
        return
    first: dict[tuple[str, object], Op] = {}
    products = list(trace.ops(_MMA))
    for op in products:
        acc = op.argument("acc", 0)
        if isinstance(acc, Ref) and trace.owns(acc) and acc.role == "scratch" and acc.space == "tmem":
            first.setdefault(acc.buffer, op)
    for op in trace.ops():
        written = (op.argument("acc", 0) or NONE,) if op.name == _MMA else _written(op)
        adds = op.name == _MMA and op.argument("accumulate") in (None, Const(True)) and not op.open
        for value in () if adds else written:
            for ref in refs_in(value):
                first.pop(ref.buffer, None)
    places = {op.site.key for op in trace.ops(_MMA, _LOAD)}
    for event in trace.events:
        if isinstance(event, Access) and event.kind != "load" and event.site.key not in places:
            first.pop(event.ref.buffer, None)
    for op in first.values():
        yield context.finding(
            op.site,
            f"`tcgen05_mma` adds to {_named(op.argument('acc', 0))}, to which nothing was written before",
            help="pass `accumulate=False` to the first product: `accumulate=step > 0` in a loop",
            severity=Severity.WARNING,
            op=op,
        )


def _written(op: Op) -> tuple[Value, ...]:
    """What an operation other than a product may write: all that it is given; loads and views write nothing."""
    return () if op.name in (_LOAD, REF_AT) else (*op.args, *(value for _, value in op.keywords))


def _unawaited(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Stores that are not committed before they are used, loads that are not awaited before they are overwritten."""
    pending: dict[str, dict[tuple[str, object], tuple[Op, Ref]]] = {_STORE: {}, _LOAD: {}}
    unseen = set(trace.untracked_at)
    for at, op in enumerate(trace.events):
        if at in unseen:
            pending = {_STORE: {}, _LOAD: {}}
        if not isinstance(op, Op):
            continue
        if op.name in _AWAITED_BY:
            pending[_AWAITED_BY[op.name]] = {}
        used = [ref for name, at in _USES.get(op.name, ()) if isinstance(ref := op.argument(name, at), Ref)]
        for ref in used:
            store = _hit(pending[_STORE], ref, op)
            if store is not None:
                yield _finding(op, store, context, f"may not see what was stored to {_named(ref)}", "commit_tmem")
        for ref in used[:1] if op.name != _LOAD else ():
            load = _hit(pending[_LOAD], ref, op)
            if load is not None:
                yield _finding(op, load, context, f"may overwrite {_named(ref)} while it is read", "wait_load_tmem")
            if op.name == _STORE:
                pending[_STORE][ref.buffer] = op, ref
        if op.name == _LOAD and used:
            pending[_LOAD][used[0].buffer] = op, used[0]


def _hit(pending: dict[tuple[str, object], tuple[Op, Ref]], ref: Ref, op: Op) -> Op | None:
    """What is pending for this memory; of two parts of a buffer it is not known whether they meet."""
    before, part = pending.get(ref.buffer, (None, ref))
    if before is None or (part.view and ref.view):
        return None
    del pending[ref.buffer]
    return before if _follows(before, op) else None


def _follows(before: Op, after: Op) -> bool:
    """Whether `after` runs whenever it is reached from `before`, in the same turn of all loops."""
    return before.guards[: len(after.guards)] == after.guards


def _finding(op: Op, before: Op, context: Context, what: str, missing: str) -> Finding:
    return context.finding(
        op.site,
        f"`{op.short}` {what}: no `{missing}` in between",
        help=f"call `plgpu.{missing}()` first",
        severity=Severity.WARNING,
        op=op,
        related=[(before.site, "stored here" if before.name == _STORE else "loaded here")],
    )


def _named(ref: object) -> str:
    return f"`{ref.parameter}`" if isinstance(ref, Ref) and not ref.parameter.startswith("#") else "its buffer"
