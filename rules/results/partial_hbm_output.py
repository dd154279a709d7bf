"""PAL421 partial-hbm-output."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    Access,
    Context,
    Example,
    Finding,
    KernelTrace,
    Ref,
    Rule,
    Severity,
    Value,
)
from pallas_lint.kernels.facts.aliases import aliased_outputs
from pallas_lint.kernels.facts.copies import copies_of
from pallas_lint.kernels.facts.loaded_values import uses_loaded
from pallas_lint.kernels.facts.writes import all_seen, outputs_of


class PartialHbmOutput(Rule):
    """An output in HBM of which copies write parts that the data choose, while the input of its shape is not used.

    Such a kernel updates an array in place: rows of a cache, pages of a pool. What no copy reaches keeps what was in
    the memory of the output, and that is the old array only where the output is an alias of it. Without
    `input_output_aliases` the output is new memory, and all other rows are garbage; interpret mode fills it with NaN,
    or with zeros for integers.

    ## How to fix

    Alias the input to the output: `input_output_aliases={operand: output}`, where operands are counted with what is
    prefetched in front.

    ## Known limits

    Only outputs that nothing but copies writes, with an index that is loaded in the kernel, and only where an input of
    the same shape and dtype is passed and not used: without one, the copies may well reach all rows.

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
        for output in outputs_of(trace):
            if output.index in taken or output.space not in ("hbm", "any"):
                continue
            parts = _parts_written(trace, output)
            if not parts or not any(map(uses_loaded, parts)):
                continue
            same = [ref for ref in trace.refs if ref.role == "in" and _fits(ref, output)]
            unused = next((ref for ref in same if ref.buffer not in accessed), None)
            if unused is None or unused.index is None:
                continue
            alias = f"{{{prefetched + unused.index}: {output.index}}}"
            yield context.finding(
                launch.called_at,
                f"copies write a part of output `{output.parameter}`, which is no alias of `{unused.parameter}`:"
                " the rest of it is garbage",
                help=f"alias the input to it: `input_output_aliases={alias}`",
            )


def _fits(ref: Ref, output: Ref) -> bool:
    known = ref.shape is not None and all(isinstance(size, int) for size in ref.shape)
    return ref.shape == output.shape and ref.dtype == output.dtype is not None and (known or bool(ref.shape))


def _parts_written(trace: KernelTrace, output: Ref) -> list[Value] | None:
    """The indices at which copies write to the output; None where anything else is done with it, or all is written."""
    parts = []
    for signal in copies_of(trace).of("start"):
        if isinstance(signal.target, Ref) and signal.target.buffer == output.buffer:
            if signal.target.indexer is None:
                return None
            parts.append(signal.target.indexer)
    others = (event for event in trace.accesses() if event.ref.buffer == output.buffer)
    return (
        None if any(event.kind in ("load", "store", "accumulate") and not event.ref.view for event in others) else parts
    )
