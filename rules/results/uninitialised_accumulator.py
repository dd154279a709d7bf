"""PAL401 uninitialised-accumulator."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    Access,
    Array,
    Context,
    Example,
    Finding,
    Fix,
    Func,
    KernelTrace,
    Launch,
    Ref,
    Rule,
    Severity,
    Span,
    blocks_of,
    nodes,
)
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.aliases import aliased_outputs
from pallas_lint.kernels.facts.buffer_uses import starts_uninitialised
from pallas_lint.kernels.facts.dataflow import Flow, inputs, is_among, reaches_result
from pallas_lint.kernels.facts.writes import alias_not_fetched

_ADDING = frozenset(("jax.numpy.add", "jax.numpy.subtract"))


class UninitialisedAccumulator(Rule):
    """An output or scratch buffer that is read, or added to, before anything is written to it.

    Outputs and scratch are not zeroed. On TPU the block lies in VMEM that the previous kernel, or the previous grid
    step, left behind; on GPU it is whatever the allocator returned. `o_ref[...] += v` therefore adds to garbage, and
    often enough to zeros on the first run, which is why such kernels pass their first test. Interpret mode fills fresh
    buffers with NaN (the smallest integer for integer dtypes), so that the mistake shows there as NaN everywhere.

    A block that several grid steps visit must be set on the first visit only: that is the step at which every grid
    index that its index map ignores is 0.

    ## How to fix

    Write the buffer first: under `pl.when(pl.program_id(axis) == 0)` for the reduction axis, or plainly where each
    block is visited once. To continue from existing values, pass them as an input and alias it with
    `input_output_aliases`; on TPU, where an output block is not fetched, copy the input block to it first (without
    that an aliased block that is read is a warning).

    ## Fix safety

    Unsafe: zeros are right for a sum, not for a maximum; the fix is offered for sums only, and on GPU, where grid steps
    run at the same time, only where each block is visited once.

    ## Known limits

    A buffer that is read and then set anew, to carry something into the next step, is a warning: the first step may
    be one that is not used. Any earlier write counts as initialisation, whatever its guard and whatever part it
    writes. Silent where the buffer was handed to code that is not seen, where a value that was read goes into a
    `where` or `select`, for aliased outputs and for Mosaic GPU accumulators, which start at zero. Reads under a
    condition are reported only if nothing in the kernel ever writes the buffer.

    ## References

    - Run with jax 0.6.2, 0.8.3, 0.10.2 and 0.12.0: `o_ref[...] += x_ref[...]` on an aliased output in blocks is NaN
      under `pltpu.InterpretParams()`, and the sum with the operand under `interpret=True`.
    - jax issues 19399, 24023, 27227 and 20154: outputs accumulated without initialisation.
    - Run with jax 0.4.35, 0.6.2, 0.8.3, 0.10.2 and 0.12.0, `interpret=True` and
      `pltpu.InterpretParams()`: NaN for float32
      and -2147483648 plus the sum for int32, for outputs and scratch alike.
    """

    code = "PAL401"
    name = "uninitialised-accumulator"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(a_ref, b_ref, o_ref):
                @pl.when(pl.program_id(2) == 0)  #+
                def _():  #+
                    o_ref[...] = jnp.zeros_like(o_ref)  #+
            #+
                o_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)  #!

            def matmul(a, b):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 4, 4),
                    in_specs=[
                        pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
                        pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
                    ],
                    out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
                    out_shape=jax.ShapeDtypeStruct((512, 512), jnp.float32),
                )(a, b)
            """,
            run="matmul(f32(512, 512), f32(512, 512))",
        ),
        Example(
            """
            def kernel(x_ref, o_ref, max_ref):
                max_ref[...] = jnp.maximum(max_ref[...], x_ref[...])  #!
                o_ref[...] = max_ref[...]

            def running_max(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += x_ref[...]

            def total(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, start_ref, o_ref):
                o_ref[...] += x_ref[...]

            def add_to(x, start):
                return pl.pallas_call(
                    kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={1: 0}
                )(x, start)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                first = pl.program_id(0) == 0
                o_ref[...] = jnp.where(first, x_ref[...], o_ref[...] + x_ref[...])

            def total(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        if not trace.complete:
            return
        done: set[tuple[str, object]] = set()
        for event in trace.events:
            if not isinstance(event, Access) or event.ref.buffer in done:
                continue
            done.add(event.ref.buffer)
            launch = event.ref.owner if isinstance(event.ref.owner, Launch) else trace.launch
            if trace.launch.form.may_nest and event.ref.owner is not trace.launch:
                continue  # a body on its own: the buffers it closes over have a history that is not seen
            for_tpu = any(target.backend == "tpu" for target in context.settings.target)
            if starts_uninitialised(event.ref, launch):
                yield from self._check(event.ref, trace, launch, context)
            elif (
                launch.form.is_over_blocks
                and event.ref.role == "out"
                and event.ref.index in (aliased_outputs(launch) or ())
                and alias_not_fetched(event.ref, launch, for_tpu=for_tpu) == "sure"
            ):  # an alias names the array; on TPU the block of it is not fetched
                yield from self._check(event.ref, trace, launch, context, aliased=True)

    def _check(
        self, ref: Ref, trace: KernelTrace, launch: Launch, context: Context, *, aliased: bool = False
    ) -> Iterator[Finding]:
        flow = Flow(trace)
        found = _first_read(ref, trace, flow)
        if found is None:
            return
        read, ever_written = found
        role = "output" if ref.role == "out" else "scratch buffer"
        doing = "added to" if _is_sum(read, trace) else "updated" if read.kind == "accumulate" else "read"
        if ever_written:
            message = f"{role} `{ref.parameter}` is {doing} before anything is written to it"
        else:
            message = f"{role} `{ref.parameter}` is {doing}, but nothing initialises it"
        if aliased:
            yield context.finding(
                read.site,
                f"{message}: on TPU an alias does not bring the operand's block",
                help="copy the input block to the output block on the first visit: `o_ref[...] = x_ref[...]`",
                severity=Severity.WARNING,
            )
            return
        yield context.finding(
            read.site,
            message,
            help="set it first, under `@pl.when(pl.program_id(axis) == 0)` if it is carried along a grid axis: "
            "it starts with whatever the memory held (NaN in interpret mode)",
            certain=read.certain and not _is_replaced(read, flow),
            fixes=_fixes(ref, read, trace, launch, context),
        )


_OR = ("logical_or", "bitwise_or")


def _first_read(ref: Ref, trace: KernelTrace, flow: Flow) -> tuple[Access, bool] | None:
    """The first use of unwritten memory, and whether the kernel writes the buffer at all later on."""
    conditional: Access | None = None
    for at, event in enumerate(trace.events):
        if not isinstance(event, Access) or event.ref.buffer != ref.buffer or event.kind == "delete":
            continue
        blind = trace.tracked_until is not None and at >= trace.tracked_until
        if event.kind in ("store", "escape") or blind:
            # If all reads before it are conditional, the first visit may come here first.
            return None
        if event.kind == "load" and not reaches_result(event, trace):
            continue
        if all(guard.kind == "loop" for guard in event.guards) and not _is_used_at_times(event, flow):
            return event, _written(ref, trace)
        conditional = conditional or event
    if conditional is None or trace.tracked_until is not None or conditional.kind != "accumulate":
        return None
    return conditional, False


def _is_used_at_times(read: Access, flow: Flow) -> bool:
    """Whether what was loaded is stored under conditions only: the load may be for nothing on the first visit."""
    if read.kind != "load":
        return False
    tainted = flow.derived(read)
    stores = [event for event in flow.trace.accesses() if event.kind != "load" and is_among(event.value, tainted)]
    if not stores:  # it decides something: `(step == 0) | (low < best_ref[0])`
        ors = [op for op in flow.trace.ops() if op.short in _OR and any(is_among(each, tainted) for each in op.args)]
        return any(isinstance(each, Array) and not is_among(each, tainted) for op in ors for each in op.args)
    return all(any(guard.kind in ("when", "cond") for guard in store.guards) for store in stores)


def _written(ref: Ref, trace: KernelTrace) -> bool:
    return any(
        isinstance(event, Access) and event.ref.buffer == ref.buffer and event.kind in ("store", "escape")
        for event in trace.events
    )


def _is_replaced(read: Access, flow: Flow) -> bool:
    """Whether the buffer later gets a value that owes nothing to what was read.

    Such a buffer carries something from one grid step to the next; the result of the first step may be unused.
    """
    if read.kind != "load":
        return False
    tainted = flow.derived(read)
    return any(
        isinstance(event, Access)
        and event.kind == "store"
        and event.ref.buffer == read.ref.buffer
        and not is_among(event.value, tainted)
        for event in flow.trace.events
    )


def _is_sum(read: Access, trace: KernelTrace) -> bool:
    """Whether zero is the value to start from: `+=`, or a load that is added to and stored."""
    if isinstance(read.site.node, nodes.AugAssign):
        return isinstance(read.site.node.operator, nodes.AddAssign | nodes.SubtractAssign)
    if read.kind == "accumulate":
        return isinstance(read.site.node, nodes.Call) and "atomic_add" in read.site.code
    loaded = {ById(read.value)}
    users = [op for op in trace.ops() if any(is_among(value, loaded) for value in inputs(op))]
    return len(users) == 1 and users[0].name in _ADDING


# -- the fix -------------------------------------------------------------------------------------------------------


def _fixes(ref: Ref, read: Access, trace: KernelTrace, launch: Launch, context: Context) -> list[Fix]:
    func = next((body for body in launch.bodies if _defines(body, ref)), None)
    if func is None or not _is_sum(read, trace) or read.site.piece.source is not func.piece.source:
        return []
    axes = _revisiting_axes(ref, launch, context)
    if axes is None or (axes and launch.backend in ("triton", "mosaic_gpu")):
        return []
    body = func.node.body
    assert isinstance(body, nodes.IndentedBlock)
    first = next((s for s in body.body if not _is_docstring(s)), None)
    if first is None:
        return []
    module = context.module_of(read.site)
    zeros, imports = context.spell("jax.numpy.zeros_like", module)
    when, more = context.spell("jax.experimental.pallas.when", module)
    program_id, _ = context.spell("jax.experimental.pallas.program_id", module)
    start = func.piece.span(first).start
    indent = " " * (start.column - 1)
    step = " " * max(start.column - func.piece.span(func.node).start.column, 1)
    store = f"{ref.parameter}[...] = {zeros}({ref.parameter})"
    if axes:
        parts = [f"{program_id}({axis}) == 0" for axis in axes]
        condition = parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)
        text = f"@{when}({condition})\n{indent}def _():\n{indent}{step}{store}\n\n{indent}"
        imports = (*imports, *more)
    else:
        text = f"{store}\n{indent}"
    where = Span(func.piece.source.path, start, start)
    when_set = "on the first visit" if axes else "at the start of each step"
    return [context.unsafe(f"set `{ref.parameter}` to zero {when_set}", context.replace(where, text), *imports)]


def _defines(func: Func, ref: Ref) -> bool:
    node = func.node
    if not isinstance(node, nodes.FunctionDef) or not isinstance(node.body, nodes.IndentedBlock):
        return False
    return any(parameter.name.value == ref.parameter for parameter in node.params.named)


def _is_docstring(statement: nodes.Node) -> bool:
    if not isinstance(statement, nodes.SimpleStatementLine) or not isinstance(statement.body[0], nodes.Expr):
        return False
    return isinstance(statement.body[0].value, nodes.SimpleString | nodes.ConcatenatedString)


def _revisiting_axes(ref: Ref, launch: Launch, context: Context) -> tuple[int, ...] | None:
    """The grid axes over which the buffer stays the same; None where that is not known."""
    blocks = blocks_of(launch, context.analysis) if launch.form.is_over_blocks else None
    if blocks is None or not blocks.outputs:
        return None
    at = ref.index if ref.role == "out" else 0 if len(blocks.outputs) == 1 else None
    block = blocks.outputs[at] if at is not None and at < len(blocks.outputs) else None
    return block.ignored_axes if block is not None and block.sure else None
