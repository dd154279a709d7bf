"""PAL410 store-to-input."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    UNKNOWN,
    Access,
    Array,
    CallResult,
    Context,
    Example,
    Finding,
    IndexMap,
    KernelTrace,
    Launch,
    Ref,
    Rule,
    Severity,
    Value,
    blocks_of,
    nodes,
)
from pallas_lint.kernels.facts.aliases import made_blank, pairs
from pallas_lint.kernels.facts.writes import is_copied
from pallas_lint.kernels.grid.index_maps import index_maps_of

_GPU = ("triton", "mosaic_gpu")
_DESCRIBED = ("make_async_copy", "make_async_remote_copy")
_STARTED = tuple(f"{name}.start" for name in _DESCRIBED)


class StoreToInput(Rule):
    """A store, accumulation or copy into an input or scalar-prefetch ref.

    Pallas lets a kernel write any ref, on every backend, without a warning. The effect differs:

    - TPU, an input that comes in blocks: the kernel writes its copy in VMEM, and nothing copies that back. The store
      is lost. If the next grid step uses the same block, it is not fetched again, so that step sees the change.
    - TPU, an input with `memory_space=pl.ANY` (or HBM), and every input on GPU: the kernel writes the operand itself.
      XLA assumes that operands stay as they are; other readers of this array get the new values, or the old ones,
      as the schedule falls.
    - a scalar-prefetch operand that index maps read: the next block is already being fetched by the old number when
      the kernel changes it. Interpret mode works with the new number at once.

    ## How to fix

    Write an output. To update an operand in place, alias it with `input_output_aliases` and write the output ref. For
    working memory use `scratch_shapes`.

    ## Known limits

    Scalar-prefetch operands that no index map reads are left alone: kernels keep counters there. So are inputs in HBM,
    or on GPU, that share memory with an output; a buffer in HBM that the kernel both
    writes and reads is advice only. A block that the kernel reads again after writing it is working memory,
    which is advice only, unless several grid steps see the same block.

    ## References

    - jax issue 20154: a Triton kernel that stores its result into an input.
    - jax issue 39179: a kernel that writes the scalar-prefetch operand of its index map.
    - Traced, lowered for TPU and Triton, and run with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.10.2, 0.11.2 and 0.12.0
      (compiled for TPU v5e with 0.8.3 and 0.12.0): stores and `+=` to inputs pass everywhere,
      on TPU copies and scalar-prefetch operands too. A store to
      an aliased input alone reaches the output under `interpret=True` of 0.11 and 0.12, but not of older releases, and
      not under `pltpu.InterpretParams()`.
    """

    code = "PAL410"
    name = "store-to-input"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                x_ref[...] = x_ref[...] + 1.0  #!
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """
        ),
        Example(
            """
            def kernel(rows_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...]
                rows_ref[pl.program_id(0) + 1] = 0  #!

            def run(rows, x):
                return pl.pallas_call(
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(4,),
                        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (rows[i], 0))],
                        out_specs=pl.BlockSpec((8, 128), lambda i, rows: (i, 0)),
                    ),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(rows, x)
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = (x_ref[...] + 1.0) * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        done: set[tuple[str, object]] = set()
        for at, event in enumerate(trace.events):
            if not isinstance(event, Access) or event.kind not in ("store", "accumulate") or event.ref.buffer in done:
                continue
            if event.ref.dtype == "semaphore" or event.ref.space == "semaphore":
                continue
            launch = event.ref.owner if isinstance(event.ref.owner, Launch) else trace.launch
            if event.ref.role == "prefetch":
                done.add(event.ref.buffer)
                yield from _prefetch(event, launch, context)
            elif event.ref.role == "in" and _is_constant(event.ref, launch) and _is_done(event, trace):
                done.add(event.ref.buffer)
                yield from _input(event, at, trace, launch, context)


def _is_constant(ref: Ref, launch: Launch) -> bool:
    """Whether the operand is an array: those of `pl.kernel` may be refs, which are there to be written."""
    if launch.form.refs == "arrays":
        return isinstance(_operand(ref, launch), Array)
    return launch.form.refs == "blocks"


def _is_done(store: Access, trace: KernelTrace) -> bool:
    """Whether it happens: a copy that is only described, to wait for it, does not."""
    if not any(op.site.key == store.site.key and op.name.endswith(_DESCRIBED) for op in trace.ops()):
        return True
    started = [op for op in trace.ops() if op.name.endswith(_STARTED)]
    return any(
        isinstance(op.args[0], CallResult) and op.args[0].site.key == store.site.key for op in started if op.args
    )


def _prefetch(store: Access, launch: Launch, context: Context) -> Iterator[Finding]:
    index = store.ref.index
    readers = [] if index is None else list(_readers(launch, index, context))
    if not readers:
        return
    yield context.finding(
        store.site,
        f"store to `{store.ref.parameter}`, a scalar-prefetch operand that an index map reads",
        help="compute the numbers before the call: blocks are fetched ahead by those that were there",
        op=None,
        severity=Severity.WARNING if store.certain else Severity.INFO,
        related=[(reader.site_of(reader.func.node), "index map that reads it") for reader in readers[:1]],
    )


def _readers(launch: Launch, index: int, context: Context) -> Iterator[IndexMap]:
    """The index maps that use the scalar-prefetch operand number `index`."""
    grid = launch.grid
    if grid is None or grid.open:
        return
    for index_map in index_maps_of(launch, context.analysis):
        parameters = [parameter.name.value for parameter in index_map.parameters]
        at = len(grid.items) + index
        star = index_map.func.node.params.star_arg
        name = parameters[at] if at < len(parameters) else star.name.value if isinstance(star, nodes.Param) else None
        if name is not None and _mentions(index_map.func.node.body, name):
            yield index_map


def _mentions(node: nodes.Node, name: str) -> bool:
    if isinstance(node, nodes.Name):
        return node.value == name
    return any(_mentions(child, name) for child in node.children)


def _input(store: Access, at: int, trace: KernelTrace, launch: Launch, context: Context) -> Iterator[Finding]:
    ref = store.ref
    on_gpu = launch.backend in _GPU
    in_place = not launch.form.is_inner and (on_gpu or not is_copied(ref))
    aliased = _is_aliased(ref, launch)
    if launch.core is not None or (in_place and aliased is not False):
        return
    if launch.form.is_inner and aliased is None:
        return  # buffers that its caller made: code of its own may write them back
    doing = (
        "copy" if isinstance(store.site.node, nodes.Call) and "copy" in store.site.code.partition("(")[0] else "store"
    )
    severity = Severity.WARNING
    if in_place:
        if made_blank(_operand(ref, launch)) or (not on_gpu and _is_read(ref, trace)):
            severity = Severity.INFO  # a buffer to work in
        message = f"{doing} to input `{ref.parameter}` changes the operand itself, behind XLA's back"
        help_text = "write an output that is aliased to it (`input_output_aliases`)"
    elif (again := _is_seen_again(ref, launch, context)) and _is_read(ref, trace):
        message = f"{doing} to input `{ref.parameter}` is seen by the next grid step that uses the same block"
        help_text = "it is lost after that: use a scratch buffer to carry something from step to step"
        severity = Severity.INFO if ref.space == "smem" else Severity.WARNING
    elif _is_read_later(store, at, trace) or not trace.complete:
        severity = Severity.WARNING if again else Severity.INFO
        message = f"{doing} to input `{ref.parameter}`: its block is used as working memory"
        help_text = "a later grid step that uses the same block sees the change: use a scratch buffer"
    else:
        if aliased is None:
            severity = Severity.INFO
        message = f"{doing} to input `{ref.parameter}` is lost: nothing copies an input block back"
        help_text = (
            "write an output: add one to `out_shape`" if aliased is False else "write the output that is aliased to it"
        )
        if launch.backend is None:
            help_text += "; on GPU the store changes the operand itself"
    yield context.finding(store.site, message, help=help_text, severity=severity, op=store)


def _operand(ref: Ref, launch: Launch) -> Value:
    operands, prefetch = launch.operands or [], launch.prefetch_count or 0
    at = None if ref.index is None else ref.index + prefetch
    return operands[at] if at is not None and at < len(operands) else UNKNOWN


def _is_aliased(ref: Ref, launch: Launch) -> bool | None:
    """Whether an input shares memory with an output; None where that is not known."""
    if launch.form.is_inner:
        # Allocations that come with the call may be copied back.
        return None if launch.operands is None or launch.options - {"scratches"} else False
    found, prefetch = pairs(launch), launch.prefetch_count
    if found is None or prefetch is None or ref.index is None:
        return None
    operands = [operand for operand, _ in found]
    if prefetch + ref.index in operands:
        return True
    return None if None in operands or ref.in_tree else False


def _is_read(ref: Ref, trace: KernelTrace) -> bool:
    return any(
        isinstance(event, Access) and event.ref.buffer == ref.buffer and event.kind in ("load", "accumulate", "escape")
        for event in trace.events
    )


def _is_read_later(store: Access, at: int, trace: KernelTrace) -> bool:
    """Whether the kernel reads the buffer after the store, or may do so in the next round of a loop."""
    if trace.tracked_until is not None:
        return True
    looped = any(guard.kind == "loop" for guard in store.guards)
    return any(
        isinstance(event, Access)
        and event.ref.buffer == store.ref.buffer
        and event.kind in ("load", "escape", "accumulate")
        and event is not store
        for event in (trace.events if looped else trace.events[at + 1 :])
    )


def _is_seen_again(ref: Ref, launch: Launch, context: Context) -> bool:
    """Whether several grid steps certainly see the same block of an input."""
    blocks = blocks_of(launch, context.analysis)
    block = blocks.of(ref) if blocks is not None else None
    if blocks is None or block is None or not block.ignored_axes:
        return False
    return any(blocks.grid.sizes[axis] != 1 for axis in block.ignored_axes)
