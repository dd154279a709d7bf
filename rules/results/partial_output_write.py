"""PAL406 partial-output-write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Example, Finding, KernelTrace, Ref, Rule, Severity
from pallas_lint.kernels.facts.aliases import aliased_outputs
from pallas_lint.kernels.facts.named_axes import gpu_axes_in
from pallas_lint.kernels.facts.writes import alias_not_fetched, gap, outputs_of, use_of

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.writes import Gap


class PartialOutputWrite(Rule):
    """An output of which a part is never written.

    Outputs are not zeroed: what the kernel does not write holds whatever the memory held before, zeros by luck, an old
    result, NaN in interpret mode. Two ways lead there: every step writes the same part of the block only
    (`o_ref[0, :] = ...` of an (8, 128) block), or a guard lets some steps pass without a store, although each step has
    a block of its own.

    An alias (`input_output_aliases`) fills the gap with the operand's values on GPU, in interpret mode, and for outputs
    in `memory_space=pl.ANY`. It does not on TPU where the output comes in blocks: nothing fetches an output block
    before the kernel, so the rest of the block is garbage that overwrites the operand's values.

    ## How to fix

    Write the whole block, zeros if need be, before or beside the part. To keep an operand's values alias it, and on
    TPU copy the input block to the output block first. Where only a part is ever written, make the block that small.

    ## Known limits

    Only literal parts, loops with literal bounds and guards that depend on `program_id` alone are checked. A store
    under any other condition counts as done. Masked stores count as whole. An error only where the function around the
    call is seen to take the output as a whole.

    ## References

    - jax issue 19399: outputs are not initialised.
    - jax issue 24023: an aliased output block on TPU does not hold the operand's block.
    - Run with jax 0.4.35, 0.6.2, 0.7.2, 0.8.3, 0.10.2, 0.11.2 and 0.12.0: a slice store leaves NaN in the rest under
      `interpret=True` and `pltpu.InterpretParams()` (since 0.6), with an alias under the latter only; of blocks
      that a guard left out, `interpret=True` shows NaN and `InterpretParams` the block of the step before.
    """

    code = "PAL406"
    name = "partial-output-write"
    severity = Severity.ERROR
    runs_on_known_calls = False  # one call may leave out what others write
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[0:1, :] = jnp.sum(x_ref[...], axis=0, keepdims=True)  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = x_ref[...]  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[0:4, :] = x_ref[4:8, :]
                o_ref[4:8, :] = x_ref[0:4, :]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) == 3)
                def _():
                    o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        if not launch.form.is_program:
            return
        taken = aliased_outputs(launch)
        if taken is None or gpu_axes_in(trace):  # what all places of such a grid write: PAL308
            return
        for_tpu = any(target.backend == "tpu" for target in context.settings.target)
        for ref in outputs_of(trace):
            fresh = alias_not_fetched(ref, launch, for_tpu=for_tpu) if ref.index in taken else "sure"
            found = gap(trace, ref, context.analysis) if fresh is not None else None
            if found is None or ref.index is None:
                continue
            severity = Severity.ERROR
            if not found.certain or fresh == "likely" or use_of(launch, ref.index) != "whole":
                severity = Severity.WARNING
            yield context.finding(
                found.access.site,
                _message(ref, found),
                help=_help(found, aliased=ref.index in taken),
                severity=severity,
            )


def _message(ref: Ref, found: Gap) -> str:
    if found.kind == "blocks":
        what = (
            f"block {_tuple(found.block)} of output `{ref.parameter}` is"
            if found.certain
            else f"blocks of output `{ref.parameter}` are"
        )
        return f"{what} not written: the guard leaves out the grid steps that have {'it' if found.certain else 'them'}"
    if found.written is not None and found.certain and found.shape == tuple(ref.shape or ()):
        part = ", ".join(f"{start}:{stop}" for start, stop in found.written)
        return f"{_name(ref)} is written in part only: [{part}] of {_tuple(found.shape)}"
    return f"{_name(ref)} is written in part only"


def _help(found: Gap, *, aliased: bool) -> str:
    if aliased:
        return "on TPU an aliased output block does not hold the operand's block: copy the input block to it first"
    if found.kind == "blocks":
        return "store at every step: what is left out holds whatever the memory held (NaN in interpret mode)"
    return "write the whole block, `o_ref[...] = ...`: the rest holds whatever the memory held (NaN in interpret mode)"


def _tuple(numbers: tuple[int, ...]) -> str:
    return f"({numbers[0]},)" if len(numbers) == 1 else f"({', '.join(map(str, numbers))})"


def _name(ref: Ref) -> str:
    return f"output {ref.index}" if ref.parameter.startswith("#") else f"output `{ref.parameter}`"
