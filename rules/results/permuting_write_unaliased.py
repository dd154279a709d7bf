"""PAL408 permuting-write-unaliased."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    Array,
    CallResult,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Rule,
    Seq,
    Severity,
    Site,
    Sym,
    Value,
    nodes,
)
from pallas_lint.fixes.alias_edits import alias_pallas_outputs, alias_triton_outputs
from pallas_lint.kernels.facts.aliases import aliased_outputs, output_leaves
from pallas_lint.kernels.facts.triton_kernels import triton_kernel
from pallas_lint.kernels.facts.writes import all_seen
from pallas_lint.kernels.grid.row_permutations import is_filled_before, row_permutations

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.aliases import Leaf
    from pallas_lint.kernels.facts.triton_kernels import TritonKernel, TritonMove
    from pallas_lint.kernels.model.launch import ForeignCall


class PermutingWriteUnaliased(Rule):
    """A kernel that writes other rows than it reads, with an output that has no alias of an operand.

    Such a kernel reads one row and writes another: a permutation, a scatter, a reversal. It is right only while
    nothing writes the memory that other threads still read. The output has to be memory of its own, and what is in
    the rows that no thread writes has to come from somewhere. Without an alias neither is given: the rows that are left
    out hold garbage, and where a buffer is reused for the output (a donated or temporary operand of the same size),
    threads overwrite rows that others have yet to read. An autotuner makes it worse: it runs the kernel again and
    again on the same buffers, and restores only those that are aliased.

    An alias for some of the outputs is half a repair: each output without one is as free as before.

    ## How to fix

    Allocate the outputs yourself, `jnp.zeros(shape, dtype)`, pass them as further operands and alias every output to
    its own: the memory is claimed, holds zeros where nothing is written, and an autotuner restores it.

    ## Fix safety

    Unsafe: the kernel and the call get a parameter more for each output. Rows that are not written become zeros. Not
    offered where several calls launch the kernel, or where operands, outputs or specs are not written out. On TPU an
    output that comes in blocks does not start with the buffer's contents all the same: write the whole block there, or
    give the output `memory_space=pl.ANY`.

    ## Known limits

    Rows are compared by the expressions that compute them; those of a helper in another file, or of block pointers, are
    not seen. A row that is read by an index and written in order (a gather), or one that is worked out, counts
    where output and operand have the same shape; in Pallas kernels a gather does not count, nor an output that is
    filled before, and a row that is worked out, or made of several loads, is advice. Outputs that `zeroed_outputs`
    names, and rows copied by DMA, are advice too. Rows that are found through the same table on both sides do not
    move, nor those that one dimension counts here and two count there. What an FFI target does with rows is not
    known.

    ## References

    - jax_triton 0.3.1, `triton_call`: the autotuner gets the operands that `input_output_aliases` names, and of
      no others.
    - Run with jax 0.4.35, 0.6.2, 0.8.3, 0.10.2 and 0.12.0, `interpret=True`: rows that a scatter leaves out are NaN,
      with a zeroed operand aliased to the output they are 0; indices count scalar-prefetch operands.
    """

    code = "PAL408"
    name = "permuting-write-unaliased"
    severity = Severity.WARNING
    runs_on_known_calls = False  # rows that are never written are reported where that holds for every caller
    fix = "unsafe"
    invalid = (
        Example(
            """
            import jax.numpy as jnp  #-
            import jax_triton as jt
            import triton
            import triton.language as tl

            @triton.jit
            def permute_kernel(x_ptr, index_ptr, out_ptr, stride, BLOCK: tl.constexpr):  #-
            def permute_kernel(x_ptr, index_ptr, out_ptr_buffer, out_ptr, stride, BLOCK: tl.constexpr):  #+
                row = tl.program_id(0)
                target = tl.load(index_ptr + row)
                columns = tl.arange(0, BLOCK)
                values = tl.load(x_ptr + row * stride + columns)
                tl.store(out_ptr + target * stride + columns, values)

            def permute(x, index):
                return jt.triton_call(  #!
                    x,
                    index,  #-
                    index, jnp.zeros(x.shape, x.dtype),  #+
                    kernel=permute_kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),  #-
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={2: 0},  #+
                    grid=(x.shape[0],),
                    stride=x.shape[1],
                    BLOCK=128,
                )
            """,
        ),
        Example(
            """
            def scatter_kernel(index_ref, x_ref, o_ref):  #-
            def scatter_kernel(index_ref, x_ref, _o_ref_buffer, o_ref):  #+
                def body(i, carry):
                    o_ref[index_ref[i], :] = x_ref[i, :]
                    return carry

                jax.lax.fori_loop(0, 16, body, 0)

            def scatter(index, x):
                return pl.pallas_call(  #!
                    scatter_kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(1,),
                        in_specs=[pl.BlockSpec((16, 128), lambda i, index: (0, 0))],  #-
                        in_specs=[pl.BlockSpec((16, 128), lambda i, index: (0, 0)), pl.BlockSpec(memory_space=pl.ANY)],  #+
                        out_specs=pl.BlockSpec((16, 128), lambda i, index: (0, 0)),
                    ),
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),  #-
                )(index, x)  #-
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32), input_output_aliases={2: 0},  #+
                )(index, x, jnp.zeros((16, 128), jnp.float32))  #+
            """,  # noqa: E501
            run="scatter(i32(16), f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            import jax_triton as jt
            import triton
            import triton.language as tl

            @triton.jit
            def double_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
                row = tl.program_id(0)
                columns = tl.arange(0, BLOCK)
                values = tl.load(x_ptr + row * stride + columns)
                tl.store(out_ptr + row * stride + columns, values * 2)

            def double(x):
                return jt.triton_call(
                    x,
                    kernel=double_kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    grid=(x.shape[0],),
                    stride=x.shape[1],
                    BLOCK=128,
                )
            """
        ),
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        for call in context.analysis.outcome.foreign_calls:
            if call.form.is_triton:
                for func in call.kernels:
                    kernel = triton_kernel(func)
                    if kernel is not None:
                        yield from _triton(call, kernel, context)

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        if not launch.form.is_over_blocks or not trace.complete:
            return
        taken, outputs = aliased_outputs(launch), output_leaves(launch)
        if taken is None or outputs is None:
            return
        semaphores = {ref.index for ref in trace.refs if ref.role == "out" and "semaphore" in (ref.dtype, ref.space)}
        unclaimed = sorted(set(range(len(outputs))) - taken - semaphores)
        if not unclaimed:
            return
        moves = [
            move
            for move in row_permutations(trace)
            if (move.how == "data" or _fits(launch, move.source.index, outputs)) and not is_filled_before(move, trace)
        ]
        if not moves:
            return
        # A move to an output without an alias goes first, an error before advice.
        moves.sort(key=lambda move: (move.output.index in taken, move.how != "data", move.copy))
        move = moves[0]
        sure = move.how == "data" and not move.copy and move.store.certain and move.alone
        yield context.finding(
            launch.called_at,
            _message(trace.name, unclaimed, bool(taken)),
            help=_HELP,
            severity=Severity.WARNING if sure else Severity.INFO,
            related=[(move.store.site, _related(move.source.parameter))],
            fixes=[fix] if all_seen(trace) and (fix := alias_pallas_outputs(launch, trace, context)) else [],
        )


_HELP = "pass a pre-allocated array for each output, and alias it: `input_output_aliases={operand: output}`"


def _message(kernel: str, unclaimed: list[int], some: bool) -> str:
    numbers = ", ".join(map(str, unclaimed))
    which = f"output {numbers} has" if len(unclaimed) == 1 else f"outputs {numbers} have"
    others = ", although others have one" if some else ""
    return f"`{kernel}` writes other rows than it reads, but {which} no alias of an operand{others}"


def _related(source: str) -> str:
    return f"what is made of a row of `{source}` goes to another row here"


def _fits(launch: Launch, source: int | None, outputs: list[Leaf]) -> bool:
    """Whether an output may have the size of the operand that rows come from."""
    prefetch, operands = launch.prefetch_count, launch.operands
    if source is None or prefetch is None or operands is None or prefetch + source >= len(operands):
        return True
    operand = operands[prefetch + source]
    return any(_same_shape(operand, output.value) is not False for output in outputs)


def _triton(call: ForeignCall, kernel: TritonKernel, context: Context) -> Iterator[Finding]:
    taken, outputs = aliased_outputs(call), output_leaves(call)
    if taken is None or outputs is None or call.operands is None or call.operands_open:
        return
    inputs = len(call.operands)
    names = kernel.parameters[inputs : inputs + len(outputs)]
    unclaimed = [at for at in range(len(outputs)) if at not in taken]
    moves = [
        move for move in kernel.moves(set(names)) if move.how == "scatter" or _may_share(move, call, kernel, outputs)
    ]
    if not unclaimed or not moves:
        return
    move = min(moves, key=lambda move: (names.index(move.output) in taken, move.how != "scatter"))
    zeroed = _zeroed(call)
    filled = zeroed is None or set(unclaimed) <= zeroed
    if filled and names.index(move.output) in taken:
        return
    help_text = _HELP
    if kernel.is_autotuned:
        help_text += "; the autotuner runs the kernel many times and restores aliased buffers only"
    fix = alias_triton_outputs(call, kernel, context)
    func = call.site.node.func if isinstance(call.site.node, nodes.Call) else call.site.node
    yield context.finding(
        Site(call.site.piece, func),
        _message(kernel.func.name, unclaimed, bool(taken)),
        help=help_text,
        severity=Severity.INFO if filled else Severity.WARNING,
        related=[(Site(kernel.piece, move.store.node), _related(move.source))],
        fixes=[fix] if fix is not None else [],
    )


def _zeroed(call: ForeignCall) -> set[int] | None:
    """The outputs that are zeroed before the kernel starts; None where that is not known."""
    value = call.made.argument("zeroed_outputs")
    if value is None:
        return set()
    if not isinstance(value, Seq) or value.open:
        return None
    return {item.value for item in value.items if isinstance(item, Const)}


def _may_share(move: TritonMove, call: ForeignCall, kernel: TritonKernel, outputs: list[Leaf]) -> bool:
    """Whether the operand that rows are read from certainly has the shape of the output that they are written to."""
    assert call.operands is not None
    at = kernel.parameters.index(move.source)
    to = kernel.parameters.index(move.output) - len(call.operands)
    if at >= len(call.operands) or not 0 <= to < len(outputs):
        return False
    return _same_shape(call.operands[at], outputs[to].value) is True


def _same_shape(operand: Value, output: Value) -> bool | None:
    """Whether an operand and an output have the same shape; None where that is not known."""
    if operand == output:
        return True
    shape = output.argument("shape", 0) if isinstance(output, CallResult) else None
    if isinstance(operand, Sym) and isinstance(shape, Sym):
        return True if shape == Sym(f"{operand.text}.shape", operand.owner) else None
    if isinstance(operand, Array) and operand.shape is not None and isinstance(shape, Seq) and not shape.open:
        if len(operand.shape) != len(shape.items):
            return False
        known = [
            size == item.value if isinstance(size, int) and isinstance(item, Const) else None
            for size, item in zip(operand.shape, shape.items, strict=True)
        ]
        return False if False in known else None if None in known else True
    return None
