"""PAL217 sparsecore-layout."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Const, Context, Example, Finding, Launch, Op, Ref, Rule, Severity
from pallas_lint.checker.backend_failures import within
from pallas_lint.compat.chips import LANES
from pallas_lint.kernels.facts.copies import LOCAL
from pallas_lint.kernels.facts.memory_budget import compiler_param
from pallas_lint.kernels.facts.memory_spaces import tpu_space
from pallas_lint.kernels.facts.subcore_memory import is_tiled
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.values import NONE, Seq, Slice
from pallas_lint.syntax.nesting import spelled_function

_COPIES = (*sorted(LOCAL), f"{PALLAS}.tpu.sync_copy", f"{PALLAS}.sync_copy")
_PIPELINE = f"{PALLAS}.tpu.emit_pipeline"
# What the pass that lays out vectors refuses: they run across the lanes of a vector.
_ACROSS_LANES = tuple(f"jax.numpy.{name}" for name in ("sum", "max", "min", "any", "all", "cumsum"))
_WITH_PALLAS_CALL = ("0.8.3", "0.9.2")  # measured; the last releases in which `pl.pallas_call` made such kernels
_MEASURED_SINCE = "0.10.2"  # the first release with which kernels over a `plsc` mesh were compiled


class SparseCoreLayout(Rule):
    """A copy, a pipeline or a reduction that the compiler for SparseCores refuses.

    Arrays lie in tiles of 8 rows and 128 lanes on a SparseCore as they do on the tensor core. A copy takes whole tiles:
    a part of a row that is longer than a tile has to be a multiple of 128 or reach the end of the row, and a shorter
    one lies within one tile (`Slice sizes along tiled dimensions must be aligned to tiles`). An indirect copy,
    `sync_copy(x_hbm.at[indices], rows)`, takes rows that are multiples of 128, of 32-bit numbers (`expected slice size
    (100) to be aligned with tiling (128)`).

    `pltpu.emit_pipeline` copies between HBM and VMEM. Up to jax 0.10.0 `pl.pallas_call` launches on SparseCores, too,
    and its operands lie in VMEM where no spec says otherwise: `SparseCore does not support transfers with relaxed
    ordering from local TileSpmem to local TileSpmem`.

    Since jax 0.10.2 vectors go through the compiler's layout passes by default, which take no reductions across lanes:
    `Operation not supported in the Mosaic-SC infer-vector-layout pass. Set needs_layout_passes=False`.

    ## How to fix

    Pad rows to a multiple of 128, or copy `pl.ds(at, size)` with a size that is one; or give up the tiles with
    `pltpu.CompilerParams(use_tc_tiling_on_sc=False)`, of this and of all that make the arrays. Bitcast 16-bit rows to
    32 bits before they are gathered. Put operands of a pipeline into HBM with `pl.BlockSpec(memory_space=pltpu.HBM)`.
    For reductions, `pltpu.CompilerParams(needs_layout_passes=False)`.

    ## Known limits

    Judged are slices of known size of arrays of known shape, where tiles are not turned off. Rows at offsets that are
    no multiple of eight, and widths of vectors, are left to the probe.

    ## References

    - Compiled for v5p, v6e and v7x with jax 0.10.2 and 0.12.0.1: slices of 192 of 512, gathered rows of 100 and 64 and
      of bf16, and reductions are refused; gathered rows of 128 and 256 are not. For v6e (0.12.0.1) and v7x (0.10.2)
      slices of 1440 at 1440 of 2880 and 29 at 100 are refused, and 1344 at 1536 of 2880 is not.
    - jax issues 34640, 39518 and 39577, tpu-inference 3038.
    """

    code = "PAL217"
    name = "sparsecore-layout"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    cores = frozenset({"sparse"})
    ops = (*_COPIES, *_ACROSS_LANES)
    invalid = (
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
        launch = context.launch
        if launch is None or launch.core != "sc_vector" or not launch.is_pallas:
            return
        versions = context.failing(lambda version: within(version, _MEASURED_SINCE))
        if not versions:
            return
        if op.name in _ACROSS_LANES:
            problem, help = _across_lanes(op, launch), "pass `pltpu.CompilerParams(needs_layout_passes=False)`"
        else:
            problem, help = _copied(op, launch), "take multiples of 128, or `use_tc_tiling_on_sc=False`"
        if problem:
            yield context.finding(op.site, problem, help=help, op=op, versions=versions)

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        """A pipeline whose operands lie in VMEM already."""
        if launch.api != _PIPELINE or len(launch.traces) != 1:
            return
        around = launch.traces[0].launch
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
                    severity=Severity.ERROR if launch.certain else Severity.WARNING,
                    versions=versions,
                )
                return


def _across_lanes(op: Op, launch: Launch) -> str | None:
    """What is wrong with a reduction of a vector: the layout passes, unless they are surely left out."""
    if compiler_param(launch, "needs_layout_passes") not in (None, NONE, Const(True)) or not op.is_traced:
        return None
    return f"`{spelled_function(op.site)}` across the lanes of a vector does not get through the layout passes"


def _copied(op: Op, launch: Launch) -> str | None:
    """What is wrong with the parts of arrays that are copied, if anything."""
    if not is_tiled(launch):
        return None
    for value in (*op.args[:2], *(item for name, item in op.keywords if name in ("src_ref", "dst_ref"))):
        if isinstance(value, Ref) and value.view and value.parent is not None and not value.parent.view:
            problem = _part(value, value.parent)
            if problem is not None:
                return problem
    return None


def _part(view: Ref, whole: Ref) -> str | None:
    if whole.shape is None or len(whole.shape) < 2 or whole.space == "smem":
        return None
    *_, width = whole.shape
    parts = view.indexer.items if isinstance(view.indexer, Seq) else (view.indexer,)
    if any(isinstance(part, Ref) for part in parts[:1]):
        return _gathered(whole, width if len(parts) == 1 else None)
    if len(parts) != len(whole.shape) or not isinstance(width, int):
        return None
    last = parts[-1]
    if not isinstance(last, Slice) or last.size is None:
        return None
    size, start = integer(last.size), integer(last.start)
    if size is None or size >= width or not _is_cut(start, size, width):
        return None
    at = "" if start is None else f" at {start}"
    return f"{size} of {width} numbers of a row{at} of `{view.parameter}`: a copy takes whole tiles of {LANES}"


def _is_cut(start: int | None, size: int, width: int) -> bool:
    """Whether the slice of a row surely cuts tiles in two, other than the last one."""
    if size > LANES:
        if start is None:  # it may be the end of the row
            return size % LANES != 0 and (width - size) % LANES != 0
        return size % LANES != 0 and not (start % LANES == 0 and start + size == width)
    return start is not None and size < LANES and start % LANES + size > LANES


def _gathered(whole: Ref, width: object) -> str | None:
    """What is wrong with an indirect copy of rows."""
    name = whole.parameter
    if isinstance(width, int) and width % LANES:
        return f"rows of {width} of `{name}` are gathered, which have to be multiples of {LANES}"
    if whole.dtype not in (None, "semaphore", "bool") and bits(whole.dtype) < 32:
        return f"rows of {whole.dtype} of `{name}` are gathered, of which a SparseCore takes 32-bit numbers only"
    return None
