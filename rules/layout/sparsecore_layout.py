"""PAL217 sparsecore-layout."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pallas_lint.api import (
    Access,
    CallResult,
    Const,
    Context,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Launch,
    Op,
    Ref,
    Rule,
    Seq,
    Severity,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.compat.chips import sparse_cores
from pallas_lint.fixes.compiler_parameter import set_compiler_parameter
from pallas_lint.kernels.facts.memory_spaces import is_copy, tpu_space
from pallas_lint.kernels.facts.subcores.access import ACCESSES, access_problem, strides
from pallas_lint.kernels.facts.subcores.copies import COPIES, copy_problem, indirect_copy
from pallas_lint.kernels.facts.subcores.memory import is_tiled
from pallas_lint.kernels.facts.subcores.mesh import axes_of_subcores
from pallas_lint.kernels.facts.subcores.tiles import cut_block
from pallas_lint.kernels.facts.subcores.values import OPERATIONS, refused_value
from pallas_lint.kernels.facts.subcores.vectors import (
    JOINING,
    ONE_REGISTER,
    PARAMETER,
    WITHOUT_LAYOUT_PASSES,
    joined_within_a_tile,
    layout_passes,
    loaded_shape,
    packed_across_lanes,
    shape_of_register,
    shapes_loaded,
    taken_behind_a_slice,
    unaligned_indices,
)
from pallas_lint.kernels.grid.blocks import blocks_of, grid_of
from pallas_lint.kernels.launches.dimension_semantics import declared_semantics, semantics_name
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.syntax.nesting import spelled_function

_PIPELINE = f"{PALLAS}.tpu.emit_pipeline"
_BARRIER = f"{PALLAS}.tpu_sc.subcore_barrier"
_WITH_PALLAS_CALL = ("0.8.3", "0.9.2")  # measured; the last releases in which `pl.pallas_call` made such kernels
_MEASURED_SINCE = "0.10.2"  # the first release with which kernels over a `plsc` mesh were compiled


class SparseCoreLayout(Rule):
    """A copy, a vector, a pipeline or a mesh that SparseCores do not have.

    Arrays lie in tiles of 8 rows and 128 lanes on a SparseCore as they do on the tensor core. A copy takes whole
    tiles: a part of a row that is longer than a tile starts at a multiple of 128, and is one or reaches the end of
    the row; a shorter one lies within one tile, provably (`Slice sizes along tiled dimensions must be aligned to
    tiles`). Two rows of 16 bits share their words, and four of 8: a copy takes as many, `x_hbm.at[pl.ds(2 * i, 2)]`,
    and never one by its number. Tiles of arrays of one dimension hold 256 numbers of 16 bits or 512 of 8: a part of
    one starts at a tile, and takes whole tiles or the rest. So do the blocks of a pipeline. An indirect copy,
    `sync_copy(x_hbm.at[indices], rows)`, goes between HBM or `VMEM_SHARED` and VMEM, where the indices lie as well, one
    dimension of them. It takes 32-bit numbers, and rows of HBM that are multiples of 128 (`expected slice size (100) to
    be aligned with tiling (128)`). A vector subcore copies nothing from or to SMEM but from `VMEM_SHARED`, and a scalar
    subcore has no VMEM.

    `pltpu.emit_pipeline` copies between HBM and VMEM. Up to jax 0.10.0 `pl.pallas_call` launches on SparseCores, too,
    and its operands are in VMEM unless a spec names another memory: `SparseCore does not support transfers with relaxed
    ordering from local TileSpmem to local TileSpmem`.

    Since jax 0.10.2 vectors go through the compiler's layout passes by default, which take no reductions, scans and
    counts across lanes: `Operation not supported in the Mosaic-SC infer-vector-layout pass. Set
    needs_layout_passes=False`. Without these passes every load and store is one register: 8 numbers of 32 bits on v5p
    and v6e, 16 on v7x, twice and four times as many of 16 and 8 bits (`Get only supports bfloat16 arrays of shapes
    [(16,), (2, 8)]`). `lax.iota`, sorting and reversing take one register in either case. With the passes, an index
    that moves along a row of several tiles does so in steps of a register's length, as along a vector of 8 or 16 bits,
    of which as many are taken, or a whole tile; rows of 16 or 8 bits are taken two or four at a time (`expected second
    minor index to be divisible by 2 when dynamic`).

    Of numbers, subcores compute little: `jnp.exp(v)[0]` compiles, and `jnp.exp(v[0])` does not (`'math.exp' op
    requires a vector type`); nor do remainders of floats, conversions of floats to 16 bits, and on a scalar subcore
    divisions of floats. Numbers of 8 and 16 bits are converted and nothing else (`'arith.addi' op must have i32 or
    index for scalars`); a `lax.cond` between two constants of them is none (`'arith.select' op uses unsupported
    type 'i16'`). Columns, transposes, repeated numbers and indices of several dimensions have no instructions.
    Vectors of 8 and 16 bits are converted to floats of the same width only, and divided, shifted and taken apart at
    32 bits. `plsc.load_gather` and its like take a vector of indices for each dimension, numbers of 32 bits and
    boolean masks.

    A mesh has at most the cores and subcores of the chip: 4 x 16 on v5p, 2 x 16 on v6e and v7x. One of scalar subcores
    has one core or all: two on v5p are refused (`Core-parallel dimension must be less than or equal to the number of
    active cores`), vector subcores of two are not. A pipeline with a
    `core_axis_name` shares its grid over that axis of the mesh, and needs a grid axis that is `pltpu.PARALLEL` for it.

    ## How to fix

    Pad rows to a multiple of 128, or copy `pl.ds(at, size)` with a size that is one; or give up the tiles with
    `pltpu.CompilerParams(use_tc_tiling_on_sc=False)`, of this and of all that make the arrays. Bitcast 16-bit rows to
    32 bits before they are gathered. Put operands of a pipeline into HBM with `pl.BlockSpec(memory_space=pltpu.HBM)`.
    For reductions, `pltpu.CompilerParams(needs_layout_passes=False)`, and vectors of
    `plsc.get_sparse_core_info().num_lanes` numbers.

    ## Fix safety

    `needs_layout_passes=False` is written where the vectors of the kernel that are known are registers; it could not
    be compiled before.

    ## Known limits

    Judged are slices of known size of arrays of known shape, where tiles are not turned off. Rows at offsets that
    are not a multiple of eight are left to the probe.

    ## References

    - Compiled for v5p, v6e and v7x with jax 0.10.2 and 0.12.0.1: slices of 192 of 512, gathered rows of 100 and 64 and
      of bf16, and reductions are refused; gathered rows of 128 and 256 are not. For v6e (0.12.0.1) and v7x (0.10.2)
      slices of 1440 at 1440 of 2880 and 29 at 100 are refused, and 1344 at 1536 of 2880 is not. Arrays of 8 and 16 bits
      of one dimension: about 70 slices, at constants and at multiples of the index of a subcore. With both releases for
      v6e and v7x: all pairs of memories, twenty forms of gathers, functions with and without layout passes, widths of
      vectors of 8, 16 and 32 bits. A hundred functions of numbers on both subcores, and of vectors of five dtypes, with
      0.12.0.1 for v6e and v7x.
    - jax issues 34640, 39518 and 39577, tpu-inference 3038.
    """

    code = "PAL217"
    name = "sparsecore-layout"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    cores = frozenset({"sparse"})
    fix = "safe"
    ops = (
        *COPIES,
        *sorted(WITHOUT_LAYOUT_PASSES),
        *sorted(ONE_REGISTER),
        *sorted(JOINING),
        *sorted(OPERATIONS),
        *sorted(ACCESSES),
        _BARRIER,
    )
    invalid = (
        Example(
            """
            from jax.experimental.pallas import tpu_sc as plsc

            def scale(x):
                @pl.kernel(
                    out_type=jax.ShapeDtypeStruct((16,), x.dtype),
                    mesh=plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore"),
                    scratch_types=[pltpu.VMEM((16,), x.dtype)],
                    compiler_params=pltpu.CompilerParams(needs_layout_passes=False),  #+
                )
                def kernel(x_hbm, o_hbm, row):
                    pltpu.sync_copy(x_hbm, row)
                    row[...] = row[...] / jnp.sum(row[...])  #!
                    pltpu.sync_copy(row, o_hbm)

                return kernel(x)

            scale(jnp.ones((16,), jnp.float32))
            """,
            jax="0.12.0.1",
            target="tpu:tpu7x",
        ),
        Example(
            """
            from jax.experimental.pallas import tpu_sc as plsc

            def copy(x):
                @pl.kernel(
                    out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    mesh=plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore"),
                    scratch_types=[pltpu.VMEM((8, 192), x.dtype)],
                )
                def kernel(x_hbm, o_hbm, rows):
                    at = (pl.ds(8 * jax.lax.axis_index("subcore"), 8), pl.ds(0, 192))
                    pltpu.sync_copy(x_hbm.at[at], rows)  #!
                    pltpu.sync_copy(rows, o_hbm.at[at])  #!

                return kernel(x)

            copy(jnp.zeros((256, 512), jnp.float32))
            """,
            jax="0.12.0.1",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import tpu_sc as plsc

            def copy(x):
                @pl.kernel(
                    out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    mesh=plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore"),
                    scratch_types=[pltpu.VMEM((8, 256), x.dtype)],
                )
                def kernel(x_hbm, o_hbm, rows):
                    at = (pl.ds(8 * jax.lax.axis_index("subcore"), 8), pl.ds(0, 256))
                    pltpu.sync_copy(x_hbm.at[at], rows)
                    pltpu.sync_copy(rows, o_hbm.at[at])

                return kernel(x)

            copy(jnp.zeros((256, 512), jnp.float32))
            """,
            jax="0.12.0.1",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        launch, target = context.launch, context.target
        if launch is None or target is None or launch.core is None or not launch.is_pallas:
            return
        versions = context.failing(lambda version: within(version, _MEASURED_SINCE))
        if not versions:
            return
        chips = sparse_cores(target.device)
        problem, help, fixes = None, "", list[Fix]()
        if op.name in OPERATIONS:
            found = refused_value(op, launch, chips)
            if found is not None:
                problem, help = f"`{spelled_function(op.site)}` {found[0]}", found[1]
        elif op.name == _BARRIER:
            if launch.core == "sc_scalar":
                problem, help = "`subcore_barrier` on a scalar subcore, of which a core has one", "leave it out"
        elif launch.core == "sc_scalar":
            if op.name in COPIES and indirect_copy(op):
                problem, help = "an indirect copy on a scalar subcore", "gather on a `plsc.VectorSubcoreMesh`"
        elif launch.core != "sc_vector":
            return
        elif op.name in ACCESSES:
            problem, help = access_problem(op) or (None, "")
        elif op.name in ONE_REGISTER:
            problem = shape_of_register(op, chips)
            if problem is not None:
                problem = f"`{spelled_function(op.site)}` of {problem}"
                help = "go over the vector in pieces of `plsc.get_sparse_core_info().num_lanes`"
        elif op.name in JOINING:
            if joined_within_a_tile(op):
                problem = f"`{spelled_function(op.site)}` joins parts of vectors, which a subcore does not"
                help = "store the parts into VMEM at their places, and load the whole; `plsc.load_gather` permutes"
        elif op.name in WITHOUT_LAYOUT_PASSES:
            if layout_passes(launch) and op.is_traced:
                problem = f"`{spelled_function(op.site)}` of a vector does not get through the layout passes"
                help = "pass `pltpu.CompilerParams(needs_layout_passes=False)`"
                fixes = _without_layout_passes(launch, context)
            elif layout_passes(launch) is False and op.is_traced and packed_across_lanes(op):
                problem = f"`{spelled_function(op.site)}` goes across lanes of numbers of 32 bits"
                help = "unpack the vector with `plsc.unpack` before"
        else:
            problem, help = copy_problem(op, launch, chips) or (None, "")
        if problem:
            yield context.finding(op.site, problem, help=help, op=op, versions=versions, fixes=fixes)

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """Loads and stores that are no register without layout passes, or that these do not take."""
        launch, target = trace.launch, context.target
        if target is None or launch.core != "sc_vector" or not launch.is_pallas:
            return
        versions, passes = context.failing(lambda version: within(version, _MEASURED_SINCE)), layout_passes(launch)
        if not versions:
            return
        for access in trace.accesses():
            if access.kind in ("load", "store") and not is_copy(access) and (step := strides(access)) is not None:
                yield context.finding(
                    access.site,
                    f"every {_ordinal(step)} number of `{access.ref.parameter}`: a subcore takes numbers side by side",
                    help="`plsc.load_gather` and `plsc.store_scatter` take numbers by their indices",
                    op=access,
                    versions=versions,
                )
            vector = access.kind != "escape" and not is_copy(access) and tpu_space(access.ref, launch) == "vmem"
            if vector and taken_behind_a_slice(access):
                yield context.finding(
                    access.site,
                    f"an element of a dimension of `{access.ref.parameter}` behind several of another: a subcore takes"
                    " rows",
                    help="`plsc.load_gather` and `plsc.store_scatter` take a column; or keep the dimension in front",
                    op=access,
                    versions=versions,
                )
        if passes is None:
            return
        if passes:
            unaligned = unaligned_indices(trace, sparse_cores(target.device)) if is_tiled(launch) else ()
            found = [(each.access, each.problem, each.help) for each in unaligned]
        else:
            found = [
                (
                    access,
                    f"`{access.ref.parameter}` of {loaded_shape(access.value)}: without layout passes a vector of"
                    f" {access.ref.dtype} has the shape {taken}",
                    "take `pl.ds(i, plsc.get_sparse_core_info().num_lanes)` numbers of 32 bits at a time, in a loop",
                )
                for access, taken in _not_registers(trace, target.device)
            ]
        for access, problem, help in found:
            doing = "load" if access.kind == "load" else "store"
            doing = f"{doing} that {problem}" if passes else f"{doing} of {problem}"
            yield context.finding(access.site, doing, help=help, op=access, versions=versions)

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if launch.api == _PIPELINE:
            yield from self._pipeline(launch, context)
        elif launch.core is not None and launch.is_pallas and not launch.form.is_inner:
            versions = context.failing(lambda version: within(version, _MEASURED_SINCE))
            problem = _mesh(launch, context) or _memory_of_scalar_subcore(launch) if versions else None
            if problem is not None:
                yield context.finding(
                    launch.called_at, problem[0], help=problem[1], certain=launch.path.certain, versions=versions
                )

    @staticmethod
    def _pipeline(launch: Launch, context: Context) -> Iterator[Finding]:
        """A pipeline whose operands lie in VMEM already, or on a subcore that has none."""
        if len(launch.traces) != 1:
            return
        around = launch.traces[0].launch
        if around.core == "sc_scalar":
            versions = context.failing(lambda version: within(version, _MEASURED_SINCE))
            if versions:
                yield context.finding(
                    launch.called_at,
                    "`emit_pipeline` on a scalar subcore, which has no VMEM for its blocks",
                    help="run it on a `plsc.VectorSubcoreMesh`, or copy between HBM and SMEM",
                    certain=launch.path.certain,
                    versions=versions,
                )
            return
        versions = context.failing(lambda version: within(version, _MEASURED_SINCE))
        problem = _shared_grid(launch, around, context) or _cut_block(launch, around, context) if versions else None
        if problem is not None:
            yield context.finding(
                launch.called_at, problem[0], help=problem[1], certain=launch.path.certain, versions=versions
            )
        versions = context.failing(lambda version: within(version, *_WITH_PALLAS_CALL))
        if around.core != "sc_vector" or not around.form.is_over_blocks or not versions:
            return
        for value in launch.operands or ():
            if isinstance(value, Ref) and value.role in ("in", "out") and tpu_space(value, around) == "vmem":
                yield context.finding(
                    around.called_at,
                    f"`{value.parameter}` lies in VMEM, as operands without a memory space do, and `emit_pipeline` on "
                    "a SparseCore copies between HBM and VMEM",
                    help="put it into HBM: `pl.BlockSpec(memory_space=pltpu.HBM)`",
                    certain=launch.path.certain,
                    versions=versions,
                )
                return


def _cut_block(pipeline: Launch, around: Launch, context: Context) -> tuple[str, str] | None:
    """What is wrong with the blocks that a pipeline copies, if tiles are on."""
    blocks = blocks_of(pipeline, context.analysis) if is_tiled(around) else None
    if blocks is None or around.core != "sc_vector":
        return None
    for block in blocks.operands:
        problem = cut_block(block) if block is not None and block.sure else None
        if problem is not None:
            return problem
    return None


def _ordinal(step: int) -> str:
    return {2: "second", 3: "third"}.get(step, f"{step}th")


def _not_registers(trace: KernelTrace, device: str | None) -> Iterator[tuple[Access, str]]:
    """Loads and stores of VMEM whose shape no register of the device has, with the shapes that they have."""
    chips = sparse_cores(device)
    for access in trace.accesses():
        if access.kind == "escape" or is_copy(access) or tpu_space(access.ref, trace.launch) != "vmem":
            continue
        taken = shapes_loaded(access.ref.dtype, loaded_shape(access.value), chips)
        if taken is not None:
            yield access, taken


def _without_layout_passes(launch: Launch, context: Context) -> list[Fix]:
    """The parameter, where all vectors that are known are registers of the target."""
    device = context.device
    if len(launch.traces) != 1 or any(_not_registers(launch.traces[0], device)):
        return []
    edits = set_compiler_parameter(launch, PARAMETER, "False", context)
    return [context.safe(f"pass `{PARAMETER}=False`", *edits)] if edits else []


def _shared_grid(pipeline: Launch, around: Launch, context: Context) -> tuple[str, str] | None:
    """What is wrong with the axis of the mesh that a pipeline's grid is shared over."""
    given = pipeline.argument("core_axis_name")
    parts = given.items if isinstance(given, Seq) and not given.open else (given,)
    names = [part.value for part in parts if isinstance(part, Const) and isinstance(part.value, str)]
    axes = axes_of_subcores(around, context.device)
    if not names or len(names) != len(parts) or axes is None:
        return None
    if any(each.shard_map is not None or each.hidden or each.nested for each in around.result_calls.sharding_contexts):
        return None  # axes of a `shard_map` around are there, too
    unknown = next((name for name in names if name not in axes), None)
    if unknown is not None:
        known = " and ".join(f'"{name}"' for name in axes)
        return f'`core_axis_name="{unknown}"`, and the mesh of the kernel has {known}', "name an axis of the mesh"
    declared = declared_semantics(pipeline)
    if declared is None:
        words: list[str | None] = []
    elif isinstance(declared, Seq) and not declared.open:
        words = [semantics_name(each) for each in declared.items]
    else:
        return None
    grid = grid_of(pipeline)
    if declared is not None and grid is not None and grid.rank != len(words):
        return (
            f"`dimension_semantics` of {len(words)} words for a grid of rank {grid.rank}",
            "give one for each axis of the grid",
        )
    if None in words or "parallel" in words or math.prod(axes[name] for name in names) == 1:
        return None
    shared = " and ".join(f'"{name}"' for name in names)
    return (
        f"the steps of this pipeline are shared over {shared}, and no axis of its grid is parallel",
        "`dimension_semantics=(pltpu.PARALLEL,)`, with a word for each axis of the grid",
    )


def _mesh(launch: Launch, context: Context) -> tuple[str, str] | None:
    """What is wrong with the number of cores or subcores of a mesh."""
    mesh, device = launch.argument("mesh"), context.device
    if not isinstance(mesh, CallResult):
        return None
    chips = sparse_cores(device)
    for name, most in (
        ("num_cores", max(chip.cores for chip in chips)),
        ("num_subcores", max(chip.subcores for chip in chips)),
    ):
        given = integer(mesh.argument(name))
        if given is not None and given > most:
            what = "SparseCores" if name == "num_cores" else "vector subcores in a core"
            where = f"{device} has" if device is not None else "any TPU has"
            return f"`{name}={given}`, of more {what} than the {most} that {where}", f"leave `{name}` out"
    cores, most = integer(mesh.argument("num_cores")), max(chip.cores for chip in chips)
    if launch.core == "sc_scalar" and cores is not None and all(cores not in (1, chip.cores) for chip in chips):
        return (
            f"scalar subcores of {cores} SparseCores: a kernel takes one of them, or all {most}",
            "leave `num_cores` out",
        )
    return None


def _memory_of_scalar_subcore(launch: Launch) -> tuple[str, str] | None:
    """VMEM as scratch of a scalar subcore."""
    if launch.core != "sc_scalar" or len(launch.traces) != 1:
        return None
    for ref in launch.traces[0].refs:
        if ref.role == "scratch" and ref.space == "vmem" and ref.owner is None and not ref.optional:
            return (
                f"`{ref.parameter}` lies in VMEM, which a scalar subcore does not have",
                "take `pltpu.SMEM`, or `pltpu.VMEM_SHARED` for what is only copied",
            )
    return None
