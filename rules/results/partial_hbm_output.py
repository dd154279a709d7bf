"""PAL421 partial-hbm-output."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from pallas_lint.api import (
    UNKNOWN,
    Access,
    Array,
    CallResult,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Op,
    Ref,
    Rule,
    Seq,
    Severity,
    Slice,
    Sym,
    blocks_of,
)
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.aliases import aliased_outputs, pairs
from pallas_lint.kernels.facts.copies import copies_of
from pallas_lint.kernels.facts.loaded_values import uses_loaded
from pallas_lint.kernels.facts.writes import all_seen, outputs_of
from pallas_lint.kernels.grid.index_ranges import number, reach_of
from pallas_lint.kernels.model.symbols import item_of
from pallas_lint.kernels.model.trace import LOOP_INDEX, is_full_index
from pallas_lint.kernels.model.values import as_tuple

if TYPE_CHECKING:
    from pallas_lint.api import Value
    from pallas_lint.kernels.grid.blocks import Block


class PartialHbmOutput(Rule):
    """An output of which only some rows or blocks are written, while the input of its shape is not used.

    Such a kernel updates an array in place: rows of a cache, pages of a pool. It writes them by copies to an output in
    HBM, or by an index map that takes the output's block from a prefetched table. The rest keeps what was in the
    memory of the output, and that is the old array only where the output is an alias of it. Without
    `input_output_aliases` the output is new memory, and all other rows are garbage; interpret mode fills it with NaN,
    or with zeros for integers.

    ## How to fix

    Alias the input to the output: `input_output_aliases={operand: output}`, where operands are counted with what is
    prefetched in front.

    ## Known limits

    Only outputs that nothing but copies writes, with an index that is loaded in the kernel or fewer elements than the
    output has, or whose index map reads a prefetched operand; and only where an input of the same shape and dtype, or
    the one that the output is declared like, is passed and not used: without one, all rows may well be reached. An
    input that is read counts where the copies are certainly too few, and write the places that are read.

    ## References

    - pytorch/helion issue 2839.
    """

    code = "PAL421"
    name = "partial-hbm-output"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            def kernel(page_ref, new_ref, cache_hbm, out_hbm, sem):
                i = pl.program_id(0)
                copy = pltpu.make_async_copy(new_ref, out_hbm.at[pl.ds(page_ref[i], 1)], sem)
                copy.start()
                copy.wait()

            def run(pages):
                cache = jnp.zeros((16, 8, 128), jnp.float32)
                return pl.pallas_call(  #!
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(4,),
                        in_specs=[
                            pl.BlockSpec((1, 8, 128), lambda i, p: (i, 0, 0)),
                            pl.BlockSpec(memory_space=pltpu.HBM),
                        ],
                        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
                        scratch_shapes=[pltpu.SemaphoreType.DMA],
                    ),
                    out_shape=jax.ShapeDtypeStruct((16, 8, 128), jnp.float32),
                )(pages, jnp.zeros((4, 8, 128), jnp.float32), cache)
            """
        ),
        Example(
            """
            def kernel(new_ref, cache_hbm, out_hbm):
                pltpu.sync_copy(new_ref, out_hbm.at[pl.ds(0, 8)])

            def run():
                return pl.pallas_call(  #!
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM), pl.BlockSpec(memory_space=pltpu.HBM)],
                    out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
                    out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                )(jnp.zeros((8, 128), jnp.float32), jnp.zeros((64, 128), jnp.float32))
            """
        ),
        Example(
            """
            def kernel(new_ref, cache_ref, out_ref, sem):
                rows = new_ref.shape[1]
                copy = pltpu.make_async_copy(new_ref, out_ref.at[:, pl.ds(out_ref.shape[1] - rows, rows), :], sem)
                copy.start()
                copy.wait()

            def append(new, cache):
                b, s, d = cache.shape
                hbm = pl.BlockSpec(memory_space=pl.ANY)
                return pl.pallas_call(  #!
                    kernel,
                    in_specs=[hbm, hbm],
                    out_specs=hbm,
                    out_shape=jax.ShapeDtypeStruct(cache.shape, cache.dtype),
                    scratch_shapes=[pltpu.SemaphoreType.DMA],
                )(new, cache)
            """
        ),
        Example(
            """
            def kernel(x_ref, out_ref, sem):
                @pl.loop(0, x_ref.shape[0] // 2)
                def _(i):
                    copy = pltpu.make_async_copy(x_ref.at[i], out_ref.at[i], sem)
                    copy.start()
                    copy.wait()

            def run(x):
                return pl.pallas_call(  #!
                    kernel,
                    out_specs=pl.BlockSpec(memory_space=pl.ANY),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.SemaphoreType.DMA],
                )(x)
            """
        ),
        Example(
            """
            def kernel(page_ref, new_ref, cache_ref, out_ref):
                out_ref[...] = new_ref[...]

            def update(pages, new, cache):
                n, size, d = new.shape
                return pl.pallas_call(  #!
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(n,),
                        in_specs=[
                            pl.BlockSpec((1, size, d), lambda i, p: (i, 0, 0)),
                            pl.BlockSpec(memory_space=pl.ANY),
                        ],
                        out_specs=pl.BlockSpec((1, size, d), lambda i, p: (p[i], 0, 0)),
                    ),
                    out_shape=jax.ShapeDtypeStruct(cache.shape, cache.dtype),
                )(pages, new, cache)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(page_ref, new_ref, cache_hbm, out_hbm, sem):
                i = pl.program_id(0)
                copy = pltpu.make_async_copy(new_ref, out_hbm.at[pl.ds(page_ref[i], 1)], sem)
                copy.start()
                copy.wait()

            def run(pages):
                cache = jnp.zeros((16, 8, 128), jnp.float32)
                return pl.pallas_call(
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(4,),
                        in_specs=[
                            pl.BlockSpec((1, 8, 128), lambda i, p: (i, 0, 0)),
                            pl.BlockSpec(memory_space=pltpu.HBM),
                        ],
                        out_specs=pl.BlockSpec(memory_space=pltpu.HBM),
                        scratch_shapes=[pltpu.SemaphoreType.DMA],
                    ),
                    out_shape=jax.ShapeDtypeStruct((16, 8, 128), jnp.float32),
                    input_output_aliases={2: 0},
                )(pages, jnp.zeros((4, 8, 128), jnp.float32), cache)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        taken, prefetched = aliased_outputs(launch), launch.prefetch_count
        if taken is None or prefetched is None or not all_seen(trace):
            return
        accessed = {event.ref.buffer for event in trace.events if isinstance(event, Access) and event.kind != "delete"}
        yield from _chosen_by_table(trace, taken, prefetched, accessed, context)
        for output in outputs_of(trace):
            if output.index in taken or output.space not in ("hbm", "any"):
                continue
            writes = _parts_written(trace, output)
            counted = _fraction_written(writes or [], output, trace)
            if counted is not None:
                yield context.finding(
                    launch.called_at,
                    f"copies write {counted.text} rows of output `{output.parameter}`, which has more: the rest of it"
                    " is garbage",
                    help="copy all rows, or alias an input that holds the others: `input_output_aliases`",
                    related=[(op.site, "the copy in a loop") for op, _ in (writes or [])[:1]],
                )
            if not writes or not (
                any(part.indexer is not None and uses_loaded(part.indexer) for _, part in writes)
                or _are_too_few(writes, output, launch)
                or _is_one_part(writes, launch)
            ):
                continue
            inputs = _without_alias(trace, prefetched)
            same = [ref for ref in inputs if _fits(ref, output, launch)]
            # An output like an input that another one has is of a pair: nothing is known of the shape of its own.
            if not same and any(_fits(ref, output, launch) for ref in trace.refs if ref.role == "in"):
                same = [ref for ref in inputs if ref.shape is None]
            unused = next((ref for ref in same if ref.buffer not in accessed), None)
            if unused is None and _are_too_few(writes, output, launch):
                unused = next((ref for ref in same if _is_read_where_written(ref, writes, trace)), None)
            if unused is None or unused.index is None:
                continue
            yield context.finding(
                launch.called_at,
                f"copies write a part of output `{output.parameter}`, which is no alias of `{unused.parameter}`:"
                " the rest of it is garbage",
                help=_alias_help(prefetched, unused, output),
                related=[(op.site, "a copy to a part of it") for op, _ in writes[:1]],
            )


def _chosen_by_table(
    trace: KernelTrace, taken: frozenset[int], prefetched: int, accessed: set[tuple[str, object]], context: Context
) -> Iterator[Finding]:
    """Outputs whose written blocks are chosen by a prefetched operand."""
    launch = trace.launch
    blocks = blocks_of(launch, context.analysis) if prefetched and launch.form.is_over_blocks else None
    if blocks is None or blocks.outputs is None or blocks.inputs is None:
        return
    unused = [
        (ref, block)
        for ref in _without_alias(trace, prefetched)
        if ref.index is not None and ref.buffer not in accessed
        if (block := blocks.inputs[ref.index]) is not None
    ]
    for output in outputs_of(trace) if unused else ():
        block = blocks.outputs[output.index or 0]
        if block is None or not block.sure or output.index in taken or output.buffer not in accessed:
            continue
        like = next((ref for ref, its in unused if _is_like(ref, its, output, block, launch)), None)
        if like is None or not any(map(uses_loaded, block.indices or ())):
            continue
        yield context.finding(
            launch.called_at,
            f"a prefetched table chooses the blocks of output `{output.parameter}`, which is no alias of"
            f" `{like.parameter}`: blocks that are not in the table are garbage",
            help=_alias_help(prefetched, like, output),
            related=[(block.spec.site, "chosen here")] if block.spec is not None else [],
        )


def _without_alias(trace: KernelTrace, prefetched: int) -> list[Ref]:
    """The inputs of a kernel that are no output yet."""
    aliased = {operand for operand, _ in pairs(trace.launch) or ()}
    inputs = (ref for ref in trace.refs if ref.role == "in")
    return [ref for ref in inputs if ref.index is None or prefetched + ref.index not in aliased]


def _is_like(ref: Ref, its: Block, output: Ref, block: Block, launch: Launch) -> bool:
    """Whether the arrays of an input and an output have the same shape and dtype."""
    if None not in (shape := block.array_shape or (None,)):
        return its.array_shape == shape and its.dtype == block.dtype is not None
    return _is_declared_like(ref, output, launch)


def _alias_help(prefetched: int, unused: Ref, output: Ref) -> str:
    return f"alias the input to it: `input_output_aliases={{{prefetched + (unused.index or 0)}: {output.index}}}`"


def _fits(ref: Ref, output: Ref, launch: Launch) -> bool:
    """Whether an input has the shape and the dtype of the output, or the output is declared with the input's."""
    if ref.shape is None and output.shape is None:
        return _is_declared_like(ref, output, launch)
    if ref.dtype is None and output.dtype is None:
        return bool(ref.shape) and ref.shape == output.shape and _has_dtype_of_its_shape(output, launch)
    known = ref.shape is not None and all(isinstance(size, int) for size in ref.shape)
    return ref.shape == output.shape and ref.dtype == output.dtype is not None and (known or bool(ref.shape))


def _is_declared_like(ref: Ref, output: Ref, launch: Launch) -> bool:
    """`jax.ShapeDtypeStruct(x.shape, x.dtype)` for an input `x`."""
    shapes, operand = launch.out_shapes, None if ref.index is None else launch.operand(ref.index)
    declared = shapes.items[output.index] if shapes is not None and output.index is not None else UNKNOWN
    if not isinstance(operand, Sym) or not isinstance(declared, CallResult):
        return False
    shape, dtype = (Sym(f"{operand.text}.{name}", operand.owner) for name in ("shape", "dtype"))
    return declared.argument("shape", 0) == shape and declared.argument("dtype", 1) == dtype


def _has_dtype_of_its_shape(output: Ref, launch: Launch) -> bool:
    """`jax.ShapeDtypeStruct((b, s, d), x.dtype)` where the sizes are those of `x`."""
    shapes = launch.out_shapes
    declared = shapes.items[output.index] if shapes is not None and output.index is not None else UNKNOWN
    dtype = declared.argument("dtype", 1) if isinstance(declared, CallResult) else None
    if not isinstance(dtype, Sym):
        return False
    whole = Sym(f"{dtype.text.removesuffix('.dtype')}.shape", dtype.owner)
    return all(size == item_of(whole, at) for at, size in enumerate(output.shape or ()))


def _parts_written(trace: KernelTrace, output: Ref) -> list[tuple[Op, Ref]] | None:
    """The copies that write to the output, and where; None where anything else is done with it, or all is written."""
    targets = [(signal.op, signal.target) for signal in copies_of(trace).of("start")]
    targets += [(op, op.argument("dst_ref", 1) or UNKNOWN) for op in trace.ops() if op.short == "sync_copy"]
    parts = []
    for op, target in targets:
        if isinstance(target, Ref) and target.buffer == output.buffer:
            if target.indexer is None:
                return None
            parts.append((op, target))
    others = (event for event in trace.accesses() if event.ref.buffer == output.buffer)
    return (
        None if any(event.kind in ("load", "store", "accumulate") and not event.ref.view for event in others) else parts
    )


def _is_read_where_written(ref: Ref, writes: list[tuple[Op, Ref]], trace: KernelTrace) -> bool:
    """Whether an input is read at nothing but the places that are written, which are loaded: rows are updated."""
    reads = [access for access in trace.accesses() if access.ref.buffer == ref.buffer and access.kind != "delete"]
    written = [
        _computation(part.indexer, trace)
        for _, part in writes
        if part.indexer is not None and uses_loaded(part.indexer)
    ]
    return bool(reads) and all(
        access.kind == "load" and is_full_index(access.index) and _computation(access.ref.indexer, trace) in written
        for access in reads
    )


def _computation(value: Value | None, trace: KernelTrace) -> object:
    """What a part of an index is computed of: equal for two that are loaded from the same place and computed alike."""
    if isinstance(value, Seq):
        return tuple(_computation(item, trace) for item in value.items)
    if isinstance(value, Slice):
        return tuple(_computation(part, trace) for part in (value.start, value.stop, value.step, value.size))
    if not isinstance(value, Array):
        return value
    if value.origin is not None:
        return value.origin.name, *(_computation(each, trace) for each in value.origin.args)
    load = trace.load_of(value)
    return ById(value) if load is None else (load.ref.buffer, _computation(load.index, trace))


def _are_too_few(writes: list[tuple[Op, Ref]], output: Ref, launch: Launch) -> bool:
    """Whether all that is ever written, over the whole grid, is less than the output."""
    total, counts = _elements(output), [_elements(part) for _, part in writes]
    steps: list[int | None] | None = [] if launch.has_grid is False else None
    if launch.grid is not None and not launch.grid.open:
        steps = [number(size) for size in launch.grid.items]
    if total is None or steps is None or not launch.form.is_over_blocks:
        return False
    looped = [_iterations(op) for op, _ in writes]
    sizes, times, rounds = ([each for each in known if each is not None] for known in (counts, steps, looped))
    if len(sizes) < len(counts) or len(times) < len(steps) or len(rounds) < len(looped):
        return False
    return sum(size * each for size, each in zip(sizes, rounds, strict=True)) * prod(times) < total


def _iterations(op: Op) -> int | None:
    """How often an operation is run at most in one step of the grid; None where that is not known."""
    count = 1
    for guard in op.guards:
        if guard.kind != "loop" or guard.exact:
            continue
        index = guard.condition.origin if isinstance(guard.condition, Array) else None
        if index is None or index.name != LOOP_INDEX:
            return None
        first, end = (number(bound) for bound in index.args[:2])
        if first is None or end is None:
            return None
        count *= max(end - first, 0)
    return count


def _is_one_part(writes: list[tuple[Op, Ref]], launch: Launch) -> bool:
    """Whether a single copy writes, once, and not from the first element on: `out.at[pl.ds(n - rows, rows)]`."""
    if len(writes) != 1 or launch.has_grid is not False or not launch.form.is_over_blocks:
        return False
    [(op, part)] = writes
    index = part.indexer
    slices = [each for each in as_tuple(index) if isinstance(each, Slice)]
    moved = any(each.size is not None and not isinstance(each.start, Const) for each in slices)
    return moved and not any(guard.kind == "loop" for guard in op.guards)


def _fraction_written(writes: list[tuple[Op, Ref]], output: Ref, trace: KernelTrace) -> Sym | None:
    """How many rows the only copy writes in a loop of `n // 2` steps, of an output declared with an input of n rows."""
    launch = trace.launch
    if len(writes) != 1 or launch.has_grid is not False or not launch.form.is_over_blocks:
        return None
    index = writes[0][1].indexer
    reach = None if index is None else reach_of(index.items[0] if isinstance(index, Seq) else index, launch)
    count = None if reach is None or reach.factor != Const(1) else reach.count
    if not isinstance(count, Sym) or count.operation is None or count.operation[0] != "//":
        return None
    _, rows, parts = count.operation
    alike = (ref for ref in trace.refs if ref.role == "in" and _is_declared_like(ref, output, launch))
    return count if (number(parts) or 0) > 1 and any(rows in _lengths(ref, trace) for ref in alike) else None


def _lengths(ref: Ref, trace: KernelTrace) -> tuple[Sym, ...]:
    """The names of the number of rows of an input that the kernel gets whole."""
    operand = trace.launch.operand(ref.index or 0)
    named = (Sym(f"{operand.text}.shape[0]", operand.owner),) if isinstance(operand, Sym) else ()
    return (*named, Sym(f"{ref.parameter}.shape[0]", trace)) if ref.shape is None else ()


def _elements(ref: Ref) -> int | None:
    sizes = [size for size in ref.shape or () if isinstance(size, int)]
    return prod(sizes) if ref.shape is not None and len(sizes) == len(ref.shape) else None
