"""PAL402 init-guard-wrong-axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Example, Finding, Fix, Guard, KernelTrace, Launch, Rule, Severity, Site, nodes
from pallas_lint.kernels.facts.buffer_uses import buffers_of, holds_pipelines
from pallas_lint.kernels.grid.grid_simulation import axes_text, models, program_ids, step_text, tested_axes
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.buffer_uses import BufferHistory, BufferUse
    from pallas_lint.kernels.grid.grid_simulation import Fault


class InitGuardWrongAxis(Rule):
    """A buffer that is initialised, or written out, at the wrong steps of the grid: the guard tests another axis.

    On TPU the grid runs step by step, and an output block stays in VMEM for as long as its index map returns the
    same indices. A sum over the axis that the index map ignores must be started at that axis's first step and, if a
    scratch buffer holds it, be written out at its last. A guard that tests another axis starts it over in the
    middle, so that all but the last summands are lost, or leaves most blocks with what the memory held before. A guard
    that forgets one of several ignored axes starts over at each of its steps.

    ## How to fix

    Test every grid axis along which the block stays the same, and no other: for
    `pl.BlockSpec((bm, bn), lambda i, j, k: (i, j))` these are `pl.program_id(2) == 0` and
    `pl.program_id(2) == pl.num_programs(2) - 1`.

    ## Fix safety

    Unsafe: the guard is changed to the axis that the block ignores; perhaps the index map was meant to change instead.
    Offered where there is one such axis and the guard tests one axis only.

    ## Known limits

    Every step of the grid is played through, on small sizes where the text gives none. Silent where a condition
    depends on data, where the buffer goes through `where` or to code that is not seen, and where a scratch buffer is
    carried over from block to block in a way that is consistent. A guard that is only wrong for some sizes of the grid
    is a warning, as is a sum that is started anew at every step, with no guard at all.

    ## References

    - jax documentation, "Grids and BlockSpecs" and "Matrix multiplication on TPU": accumulation over the last axis.
    - Run with jax 0.8.3, 0.10.2 and 0.12.0 under `pltpu.InterpretParams()`: each flagged kernel of the tests returns
      wrong sums, each other one right ones.
    """

    code = "PAL402"
    name = "init-guard-wrong-axis"
    severity = Severity.ERROR
    fix = "unsafe"
    backends = frozenset({"tpu"})
    runs_without_backend = True
    invalid = (
        Example(
            """
            def kernel(a_ref, b_ref, o_ref, acc_ref):
                @pl.when(pl.program_id(1) == 0)  #!-
                @pl.when(pl.program_id(2) == 0)  #+
                def _():
                    acc_ref[...] = jnp.zeros_like(acc_ref)

                acc_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)

                @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
                def _():
                    o_ref[...] = acc_ref[...]

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
                    scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
                )(a, b)
            """,
            run="matmul(f32(512, 512), f32(512, 512))",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                first = pl.program_id(2) == 0

                @pl.when(first)  #!
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += x_ref[...]

            def sums(x):
                return pl.pallas_call(
                    kernel,
                    grid=(2, 4, 4),
                    in_specs=[pl.BlockSpec((8, 128), lambda i, j, k: ((i * 4 + j) * 4 + k, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary", "arbitrary")),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when((pl.program_id(1) == 0) & (pl.program_id(2) == 0))
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += x_ref[...]

            def sums(x):
                return pl.pallas_call(
                    kernel,
                    grid=(2, 4, 4),
                    in_specs=[pl.BlockSpec((8, 128), lambda i, j, k: ((i * 4 + j) * 4 + k, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary", "arbitrary")),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref, carry_ref):
                @pl.when(pl.program_id(1) == 0)
                def _():
                    carry_ref[...] = jnp.zeros_like(carry_ref)

                carry_ref[...] += x_ref[...]
                o_ref[...] = carry_ref[...]

            def running_sum(x):
                return pl.pallas_call(
                    kernel,
                    grid=(2, 4),
                    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i * 4 + j, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j: (i * 4 + j, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        if not launch.form.is_over_blocks or holds_pipelines(trace, context.analysis):
            return
        for buffer in buffers_of(trace, launch, context.analysis):
            yield from self._check(buffer, launch, context)

    def _check(self, buffer: BufferHistory, launch: Launch, context: Context) -> Iterator[Finding]:
        if not any(use.kind in ("set", "part", "obscure") for use in buffer.uses):
            return  # nothing initialises it: another rule's business
        found, always = _play(buffer)
        done: set[object] = set()
        for fault in found:
            use = _culprit(fault, buffer)
            if use is None:
                continue
            guard = _guard_of(use, buffer)
            place = guard.site if guard is not None else use.access.site
            if place.key in done:
                continue
            done.add(place.key)
            sure = always and fault.sure and guard is not None and fault.kind != "late" and use.access.certain
            yield context.finding(
                place,
                _message(fault, use, guard, buffer),
                help=_help(fault.kind, buffer),
                certain=sure,
                fixes=_fixes(use, buffer, context),
            )


_HELP = {
    "unset": "test the axes along which the block stays the same, and no others",
    "lost": "test every axis along which the block stays the same",
    "unwritten": "write it out at the last step of the axes along which the block stays the same",
    "late": "write it out at the last step of the axes along which the block stays the same, after the last update",
}


def _help(kind: str, buffer: BufferHistory) -> str:
    """What to do, with the condition to write where the axes are known."""
    axes = buffer.results[0][1].ignored_axes
    if not axes:
        return _HELP[kind]
    first = kind in ("unset", "lost")
    tests = [f"pl.program_id({axis}) == {'0' if first else f'pl.num_programs({axis}) - 1'}" for axis in axes]
    return f"{_HELP[kind]}: `{tests[0] if len(tests) == 1 else ' & '.join(f'({test})' for test in tests)}`"


def _play(buffer: BufferHistory) -> tuple[list[Fault], bool]:
    """What goes wrong with a buffer, and whether it does in every grid with something to accumulate."""
    if not buffer.results:
        return [], False
    grid = buffer.results[0][1].grid
    blocks = [block for _, block in buffer.results]
    several = [axis for axis in range(grid.rank) if all(block.ignores(axis) for block in blocks)]
    tested = [axis for axis in several if any(axis in tested_axes(use.guards, grid) for use in buffer.uses)]
    variants = models(grid, buffer.uses, blocks, tuple(tested or several), buffer.cache)
    shown: list[Fault] = []
    always, goes_on = True, False
    for steps in variants or ():
        if steps.visits(buffer) is None:
            return [], False
        found = [fault for fault in steps.faults(buffer) if fault.kind != "unwritten" or buffer.is_output]
        always &= bool(found)
        shown = shown or found
        goes_on |= any(steps.sizes[axis] > 1 for axis in tested or several)
    if not (always and goes_on):  # in one step what a state becomes for the next one looks like a late summand
        shown = [fault for fault in shown if fault.kind != "late"]
    return sorted(shown, key=lambda fault: (not fault.sure, _ORDER.index(fault.kind)))[:1], always


_ORDER = ("unset", "lost", "unwritten", "late")


def _culprit(fault: Fault, buffer: BufferHistory) -> BufferUse | None:
    """The use whose guard is at fault."""
    if fault.kind == "unset":
        starts = [use for use in buffer.uses if use.kind in ("set", "part", "obscure")]
        return next((use for use in starts if _guard_of(use, buffer) is not None), None)
    if fault.kind == "unwritten":
        writes = [use for use in buffer.uses if use.kind != "read"]
        return next((use for use in writes if _guard_of(use, buffer) is not None), None)
    return fault.use


def _guard_of(use: BufferUse, buffer: BufferHistory) -> Guard | None:
    """The innermost condition of a use that reads a grid axis."""
    grid = buffer.results[0][1].grid
    return next((guard for guard in reversed(use.guards) if tested_axes((guard,), grid)), None)


def _message(fault: Fault, use: BufferUse, guard: Guard | None, buffer: BufferHistory) -> str:
    step = f"at {step_text(fault.point)}"
    outcome = {
        "unset": f"nothing has set {buffer.spelled} {step}",
        "lost": f"the sum in {buffer.spelled} is lost {step}",
        "unwritten": f"the block that {buffer.spelled} has {step} is never written",
        "late": f"{buffer.spelled} is still added to after it was written out",
    }[fault.kind]
    if guard is None:
        return f"{buffer.spelled} is set anew at every step: {outcome}"
    ref, block = buffer.results[0]
    ignored = block.ignored_axes
    stays = "does not stay the same along any axis"
    if ignored:
        stays = f"stays the same along {axes_text(ignored)}"
    elif ignored is None:
        stays = "does not follow it"
    tested = tested_axes(use.guards, block.grid)
    if tested == ignored:
        return f"guard holds at the wrong steps of grid {axes_text(tested)}: {outcome}"
    return f"guard tests grid {axes_text(tested)}, but the block of `{ref.parameter}` {stays}: {outcome}"


def _fixes(use: BufferUse, buffer: BufferHistory, context: Context) -> list[Fix]:
    """An edit to test the one axis that the block ignores instead."""
    block = buffer.results[0][1]
    ignored = block.ignored_axes
    tested = tested_axes(use.guards, block.grid)
    guards = [guard for guard in use.guards if tested_axes((guard,), block.grid)]
    if ignored is None or len(ignored) != 1 or len(tested) != 1 or tested == ignored or len(guards) != 1:
        return []
    inside = guards[0].site.span
    edits = []
    for op in program_ids(guards[0], block.grid):
        node = op.site.node
        span = op.site.span
        within = span.path == inside.path and inside.start <= span.start <= inside.end
        if not within or not isinstance(node, nodes.Call) or len(node.args) != 1:
            return []  # a variable that may be meant for other uses too
        edits.append(context.replace(Site(op.site.piece, node.args[0].value), str(ignored[0])))
    if not any(op.name != NUM_PROGRAMS for op in program_ids(guards[0], block.grid)):
        return []
    return [context.unsafe(f"test grid axis {ignored[0]}, along which the block stays the same", *edits)]
