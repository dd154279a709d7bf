"""PAL504 program-id-misplaced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pallas_lint.api import (
    UNKNOWN,
    Const,
    Context,
    Example,
    Finding,
    Fix,
    IndexMap,
    KernelTrace,
    Launch,
    Op,
    Rule,
    Seq,
    Severity,
)
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.facts.devices import axes_around
from pallas_lint.kernels.facts.named_axes import AXIS_INDEX, gpu_axes
from pallas_lint.kernels.facts.subcores.mesh import axes_of_subcores
from pallas_lint.kernels.library.operands import leaves
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, PROGRAM_ID, is_integer, is_tensorcore_mesh
from pallas_lint.text.wording import count_of

_PROGRAM_ID = re.compile("program_id")
_MAPPED = re.compile(r"\b[vpx]map\b")
_TRACED = re.compile("when|cond|loop|scan|switch")  # jax's own guards: a loop of Python runs while tracing
_KERNEL_SINCE = (0, 10, 2)  # `pl.kernel` on TPU: 0.8.3 still lowers it


class ProgramIdMisplaced(Rule):
    """`pl.program_id` or `pl.num_programs` where there is no grid, or no such axis of it.

    - In the function that launches, or anywhere else outside a kernel, both die with an `AssertionError` that has no
      text. Index maps get the grid indices as arguments; `pl.program_id` there is refused by the TPU lowering
      ("program id: 0 was passed, but user did not provide a grid").
    - An axis that the grid does not have: `ValueError: Axis 1 is out of bounds for grid (2,)`; without a grid there is
      none at all. A negative axis counts from the end in interpret mode and on Triton, and is refused on TPU.
    - In a body of `pl.kernel` on TPU the lowering dies since jax 0.10.2; in `plgpu.kernel` the changelog of 0.10.2
      lists both as removed, though 0.12.0.1 still lowers them: `lax.axis_index(name)` works in all. On the subcores of
      a SparseCore the name is one of the mesh, in `plgpu.kernel` one of the grid, the cluster or the threads, in
      `pallas_call` one of the mesh of the `jax.shard_map` around it: others are unbound.
    - Under `interpret=True` `pl.program_id` inside the body of a `pl.when`, `lax.cond` or loop has no rule: "MLIR
      translation rule for primitive 'program_id' not found for platform cpu".

    ## How to fix

    Call it at the top of the kernel, and use its result in `pl.when` bodies and loops.

    ## Fix safety

    Safe: in `plgpu.kernel` the index of the axis's name is the same number. `pl.program_id(-1)` becomes the positive
    axis.

    ## Known limits

    Outside kernels only in functions that launch. Grids that are not known, or may be given elsewhere, are not
    counted.

    ## References

    - jax documentation, "Pallas Changelog", 0.10.2.
    - Traced, lowered for TPU, Triton and Mosaic GPU and run in interpret mode with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2,
      0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1.
    """

    code = "PAL504"
    name = "program-id-misplaced"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * pl.program_id(1)  #!

            def run(x):
                step = pl.program_id(0)  #!
                return pl.pallas_call(
                    kernel, grid=(4,), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
                )(x * step)
            """
        ),
        Example(
            """
            from jax import lax  #-
            from jax.experimental.pallas import mosaic_gpu as plgpu
            from jax.experimental import pallas as pl

            def body(x_gmem, o_gmem):
                row = pl.program_id(0)  #!-
                row = lax.axis_index("rows")  #+
                o_gmem[pl.ds(row, 1)] = x_gmem[pl.ds(row, 1)]

            def run(x):
                return plgpu.kernel(
                    body, out_type=jax.ShapeDtypeStruct((4, 128), jnp.float32), grid=(4,), grid_names=("rows",)
                )(x)
            """,
            jax="0.12.0",
            run="run(f32(4, 128))",
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                rows = pl.ds(lax.axis_index("rows") * 64, 64)  #!
                o_gmem[rows] = x_gmem[rows] * 2

            def double(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((256, 128), jnp.float32),
                    grid=(4,),
                    grid_names=("row",),
                )(x)

            double(jnp.ones((256, 128)))
            """,
            target="mosaic_gpu",
        ),
    )
    valid = (
        Example(
            """
            def row():
                return pl.program_id(0)

            def kernel(x_ref, o_ref):
                first = row() == 0

                @pl.when(first & (pl.program_id(1) == pl.num_programs(1) - 1))
                def _():
                    o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, grid=(4, 2), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        for op in trace.ops(PROGRAM_ID, NUM_PROGRAMS):
            if op.launch is not launch:
                continue  # in the body of a pipeline, which has a grid of its own
            found = self._axis(op, launch, context) if op.certain else None
            if found is None and launch.form.refs == "arrays":
                found = self._mesh(op, launch, context)
            if found is None and op.name == PROGRAM_ID:
                found = self._interpreted(op, launch, context)
            if found is not None:
                yield found

        for op in trace.ops(AXIS_INDEX):
            found = _unbound(op, launch, context) or _not_in_mesh(op, launch, context)
            if found is not None:
                yield found

    def check_module(self, context: Context) -> Iterator[Finding]:
        outside = context.analysis.outcome.effects.outside
        if not outside:
            return
        launchers = {
            launch.path.callers[-1].node
            for launch in context.analysis.launches
            if launch.form.is_program and launch.path.callers and launch.is_pallas
        }
        for op, stack in outside:
            if op.certain and any(func.node in launchers for func in stack):
                yield context.finding(
                    op.site,
                    f"`pl.{_short(op)}` outside a kernel: there is no grid here",
                    help="call it in the kernel; the grid's size is known here without it",
                )

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        trace = index_map.run() if index_map.func.piece.has(_PROGRAM_ID) else None
        if trace is None or index_map.launch is None:
            return
        for op in trace.ops(PROGRAM_ID):
            yield context.finding(
                op.site,
                "`pl.program_id` in an index map: the TPU lowering has no grid there",
                help="use the parameters of the index map: they are the grid indices",
                certain=index_map.launch.backend == "tpu",
                op=op,
            )

    @staticmethod
    def _axis(op: Op, launch: Launch, context: Context) -> Finding | None:
        axis = op.argument("axis", 0)
        if not isinstance(axis, Const) or not isinstance(axis.value, int) or not launch.is_pallas:
            return None
        rank = _rank(launch)
        if rank is None:
            return None
        if axis.value >= rank:
            limit = "there is no grid" if rank == 0 else f"the grid has {count_of(rank, 'axis')}"
            return context.finding(
                op.site,
                f"`pl.{_short(op)}({axis.value})`, but {limit}",
                help=f"axes count from 0: the last one is {rank - 1}" if rank else "pass `grid=` to the launch",
                op=op,
                related=[(launch.called_at, "launched here")],
            )
        if axis.value < 0 and op.name == PROGRAM_ID and axis.value + rank >= 0:
            argument = _axis_edit(op, str(axis.value + rank), context)
            return context.finding(
                op.site,
                f"`pl.program_id({axis.value})`: the TPU lowering takes no negative axis",
                help=f"write `pl.program_id({axis.value + rank})`",
                certain=launch.backend == "tpu",
                op=op,
                fixes=[argument] if argument is not None else [],
            )
        return None

    @staticmethod
    def _mesh(op: Op, launch: Launch, context: Context) -> Finding | None:
        """`pl.kernel` and `plgpu.kernel`: the axes have names."""
        failing = context.failing(lambda version: parse(version) >= _KERNEL_SINCE)
        if not failing:
            return None
        what = "axis_index" if op.name == PROGRAM_ID else "axis_size"
        if launch.form.counts_programs:
            axis, names = op.argument("axis", 0), launch.argument("grid_names")
            fix = None
            if is_integer(axis) and isinstance(names, Seq) and not names.open:
                named = names.items[axis.value] if 0 <= axis.value < len(names.items) else None
                if isinstance(named, Const) and isinstance(named.value, str):
                    spelled, imports = context.spell(f"jax.lax.{what}", context.module_of(op.site))
                    text = f'{spelled}("{named.value}")'
                    fix = context.safe(f"write `{text}`", context.replace(op.site, text), *imports)
            return context.finding(
                op.site,
                f"`pl.{_short(op)}` in `plgpu.kernel` is on its way out since jax 0.10.2",
                help=f"use `lax.{what}` with the axis's name",
                severity=Severity.INFO,
                op=op,
                versions=failing,
                fixes=[fix] if fix is not None else [],
            )
        on_tensor_core = is_tensorcore_mesh(launch.argument("mesh"))
        on_subcores = launch.core is not None and axes_of_subcores(launch, device=None) is not None
        if launch.backend != "tpu" or not (on_subcores or (launch.core is None and on_tensor_core)):
            return None
        return context.finding(
            op.site,
            f"`pl.{_short(op)}` in `pl.kernel` does not lower for TPU since jax 0.10.2",
            help=f"use `lax.{what}` with the mesh's axis name",
            op=op,
            only_in=failing,
        )

    @staticmethod
    def _interpreted(op: Op, launch: Launch, context: Context) -> Finding | None:
        """`interpret=True` evaluates bodies of conditions and loops where no grid is known."""
        value = launch.argument("interpret")
        if not launch.form.is_over_blocks or value != Const(True):
            return None
        if not any(
            guard.kind in ("when", "cond", "loop") and guard.site.piece.search(_TRACED, guard.site.node)
            for guard in op.guards
        ):
            return None
        return context.finding(
            op.site,
            "`pl.program_id` in the body of a condition or loop cannot be interpreted",
            help="call it before the `pl.when`, `lax.cond` or loop, and use its result there",
            severity=Severity.WARNING,
            op=op,
        )


def _unbound(op: Op, launch: Launch, context: Context) -> Finding | None:
    """The index along an axis that neither the launch, or its mesh of subcores, nor a `shard_map` around it has.

    A mesh around it may stand in another file: only a name that is almost one of the launch's is surely a slip.
    """
    subcores, name = axes_of_subcores(launch, device=None), op.argument("axis_name", 0)
    axes = list((gpu_axes(launch) if subcores is None else subcores) or ())
    if not isinstance(name, Const) or not isinstance(name.value, str) or name.value in axes or not axes:
        return None
    import difflib

    meant = difflib.get_close_matches(name.value, axes, 1)
    contexts = launch.result_calls.sharding_contexts
    alone = all(each.shard_map is None and not each.hidden and not each.nested for each in contexts)
    if not (meant or subcores) or not alone or not contexts:
        return None
    known = " and ".join(f'"{axis}"' for axis in axes)
    where = "the launch" if subcores is None else "the mesh of the kernel"
    return context.finding(
        op.site,
        f'no axis "{name.value}" here: {where} has {known}',
        help=f'did you mean "{meant[0]}"?' if meant else f"use {known}, the names in the mesh",
        op=op,
        certain=bool(meant) and launch.known_call is not None,
    )


def _not_in_mesh(op: Op, launch: Launch, context: Context) -> Finding | None:
    """The index along an axis that the `shard_map` around the launch does not have: no other names are bound there."""
    axes, name = axes_around(launch), op.argument("axis_name", 0)
    if not axes or not launch.form.is_over_blocks or op.launch is not launch:
        return None
    if any(_MAPPED.search(context.module_of(site).source.text) for site in (op.site, launch.called_at)):
        return None  # it may bind the name
    unknown = [part.value for part in leaves(name or UNKNOWN) if isinstance(part, Const) and part.value not in axes]
    if not unknown or not isinstance(unknown[0], str):
        return None
    known = " and ".join(f'"{axis}"' for axis in axes)
    return context.finding(
        op.site,
        f'no axis "{unknown[0]}" here: the mesh of the `shard_map` around it has {known}',
        help=f"use {known}, the names in the mesh",
        op=op,
    )


def _short(op: Op) -> str:
    return op.short


def _rank(launch: Launch) -> int | None:
    """The rank of the grid; 0 where there certainly is none."""
    if launch.form.is_inner or not launch.form.counts_programs:
        return None
    if launch.grid is not None:
        return None if launch.grid.open else len(launch.grid.items)
    return 0 if launch.has_grid is False else None


def _axis_edit(op: Op, text: str, context: Context) -> Fix | None:
    whole = op.site.code
    opened = whole.find("(")
    inner = whole[opened + 1 : -1].strip()
    if opened < 0 or not inner.removeprefix("axis=").startswith("-"):
        return None
    prefix = "axis=" if inner.startswith("axis=") else ""
    return context.safe(f"write axis {text}", context.replace(op.site, f"{whole[:opened]}({prefix}{text})"))
