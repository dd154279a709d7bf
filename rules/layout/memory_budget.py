"""PAL213 memory-budget."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Array, Const, Context, Example, Finding, Launch, Op, Rule, Severity
from pallas_lint.checker.backend_failures import SUBCORES
from pallas_lint.compat.chips import (
    CHIPS,
    SCALAR_SUBCORE_SMEM,
    VECTOR_SUBCORE_SMEM,
    knowing,
    sparse_cores,
    sublanes,
)
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.facts.memory_budget import (
    LaunchBudget,
    Part,
    budgets_of,
    largest_size,
    scalars_of,
    spelled,
)
from pallas_lint.kernels.facts.shared_memory import LOCAL_DATA_SHARE, SHARED, shared_memory
from pallas_lint.kernels.facts.subcores.memory import subcore_memory
from pallas_lint.kernels.grid.block_counts import may_be_any
from pallas_lint.kernels.model.compiler_params import compiler_param, compiler_param_site
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.probe.byte_sizes import format_exactly
from pallas_lint.probe.chip_memory import COUNTED_TWICE_SINCE, MIB, SMEM, kept_arrays

_NAMES = {"v4": "v4", "v5e": "v5e", "v5p": "v5p", "v6e": "v6e", "tpu7x": "v7x", "tpu8i": "8i", "tpu8t": "8t"}
_SHARED = "VMEM_SHARED, of which the VMEM of its subcores is a part, and a SparseCore has"
_DOTS = ("jax.numpy.dot", "jax.numpy.matmul", "jax.lax.dot_general", "jax.lax.dot", "jax.experimental.pallas.dot")


class MemoryBudget(Rule):
    """A launch whose blocks and scratch take more on-chip memory than there is.

    A TPU kernel works in VMEM: every block of an input or output lies there, twice where the pipeline moves it (one is
    computed on while the other is copied), and scratch lies there besides. A kernel gets 16 MiB of it by default (32
    MiB on v6e and v7x), more with `vmem_limit_bytes`, and never more than the core has. What is over fails to compile,
    after the compiler has unrolled everything: `Ran out of memory in memory space vmem`, `Scoped allocation with size
    24.00M and limit 16.00M exceeded`. Without a grid, the block is the whole array.

    | | v4 | v5e | v5p | v6e | v7x | 8i | 8t |
    |---|---|---|---|---|---|---|---|
    | VMEM of a core | 16 MiB | 128 MiB | 64 MiB | 128 MiB | 64 MiB | 192 MiB | 128 MiB |
    | default limit | 16 MiB | 16 MiB | 16 MiB | 32 MiB | 32 MiB | ? | ? |

    To jax 0.8.0 (libtpu 0.0.29) compilers counted each block once.

    Scratch that nothing reads takes nothing, even where it is written. The sum is a lower bound: tiles are filled up (a
    last dimension of 64 takes 128), but values that do not fit into registers, and blocks whose size is not known, are
    not counted. A `vmem_limit_bytes` written down as a number is checked against the same table: what v5e and v6e
    grant, v7x does not have. That is an info, since it compiles as long as the sum itself fits.

    A vector subcore of a SparseCore has a VMEM of its own: 512 KiB on v5p and v7x, 256 KiB on v6e. The scratch of a
    kernel over a `plsc.VectorSubcoreMesh` lies there, and two buffers for each block of a pipeline:
    `CompileTimeSparseCoreAllocationFailure`. The VMEM of all 16 subcores is a part of the core's `VMEM_SHARED` of 8 MiB
    (4 MiB on v6e): 256 KiB of scratch in each subcore leave 4 MiB of it. A subcore's SMEM takes 2047 words, that of a
    scalar subcore 16313.

    SMEM, where scalar-prefetch operands lie, has 1 MiB; the rows of a matrix take multiples of 128 numbers in it.

    On Triton, the operands of a dot go through shared memory, of which a block of threads has 227 KiB at most, and 64
    KiB on AMD's MI200 and MI300 (`triton:rocm`). On Mosaic GPU, `plgpu.SMEM` buffers lie in it (scratch and those of
    `run_scoped`), the blocks of pipelines, one for each of `max_concurrent_steps`, and barriers: `Mosaic GPU kernel
    exceeds available shared memory: smem_bytes=525320 > max_smem_bytes=232448`. What is held one inside the other adds
    up, each buffer filled up to 1024 bytes; of scopes that follow each other the largest counts.

    ## How to fix

    Smaller blocks; a further grid axis over the contracted dimension, with an accumulator in scratch;
    `pipeline_mode=pl.Buffered(1)` for blocks that seldom move; `pltpu.CompilerParams(vmem_limit_bytes=...)` where the
    core has it, best from `pltpu.get_tpu_info().vmem_capacity_bytes`. On SparseCores: fewer rows at a time.

    ## Known limits

    An error: more than any of the targets has, or more than the limit that the launch sets. Over the default limit is a
    warning, since `LIBTPU_INIT_ARGS` can raise it, and so is what may fit in a function: between operations XLA keeps
    arrays in VMEM (not on v4), and of such an array a block that lies in one piece, rows with all that is below them,
    takes no buffers. Scratch always counts, and so do blocks of some columns, and arrays larger than VMEM. On tensor
    cores, `run_scoped` buffers and nested pipelines are not counted; on GPUs, what reductions take is not. Of 8i and 8t
    the default limit is not known: no libtpu compiles for them yet. Sizes that have only names count as the least that
    passes the code's own test of a remainder (`assert k % 8192 == 0`), as a warning; where one size alone has no number
    and the target names a chip, an info has the largest that fits.

    ## References

    - jax issues 17320 and 38988; tpu-inference 508 and 3194, keras-io 2284, pytorch/xla 8429, sglang-jax 1262.
    - Compiled for v5e and v6e with jax 0.12.0.1: blocks of 4 x 4 MiB compile with the default limit of v5e and 4 x 4.03
      MiB do not; 4 x 8 and 4 x 8.03 on v6e, 4 x 16 and 4 x 16.03 with a limit of 64 MiB on both. Of prefetched int32,
      250000 compile and 262144 do not; (1024, 8) does, (2048, 1) does not: so on v4, v5p and tpu7x, too.
    - SparseCores, compiled for v5p, v6e and v7x with jax 0.12.0.1: VMEM, and VMEM_SHARED with and without VMEM beside
      it, that are filled to the last byte compile, and a row more does not. Vector subcores take 1920 words of SMEM and
      not 1921, (8, 64) and not (9, 64), (2, 4, 32) and not (2, 5, 64), scalar ones 16256 and not 16257: arrays fill
      tiles there, unless `use_tc_tiling_on_sc=False`, with which (16, 64) and 1985 fit.
    - The sum of shared memory equals the `smem_bytes` of jax 0.8.3, 0.10.2 and 0.12.0.1 for twelve kernels that take
      too much, with scratch, nested scopes and both kinds of pipelines; eight that fit are lowered for CUDA by all.
    - Triton 3.9 compiles the module that jax 0.10.2 lowers for ROCm with 64 KiB of shared memory for a dot of float32
      tiles of 128 x 128, for gfx90a and gfx942, and 128 KiB for 256 x 128; ROCm/jax 147.
    - With jax 0.12.0.1 for all five TPUs: what XLA puts into VMEM is missing in the compiler's sum where the block lies
      in one piece (whole arrays, rows, planes; computed operands, results that are used, on v7x parameters, too), and
      is in it for columns and tiles. A launch of 48 MiB compiles on v5e between a `cos` and a `sin`, and not alone.
    - Compiled for v5e and v6e with jax 0.8.3, 0.10.2 and 0.12.0.1: scratch of 24 and 48 MiB that is not used, or is
      written or copied to only, is in no sum; what is read once, copied from or added to, is.
    - The sum was compared with what the compilers of jax 0.8.3 and 0.12 report for 40 random launches each: equal in
      all. The limits are those in the errors of jax 0.12's compiler for each generation.
    """

    code = "PAL213"
    name = "memory-budget"
    severity = Severity.ERROR
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    cores = frozenset({"tensor", "sparse"})
    of_compiler = True
    ops = _DOTS
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref, acc_ref):
                acc_ref[...] = x_ref[...] * 2.0
                o_ref[...] = acc_ref[...]

            def double(x):
                block = pl.BlockSpec((2048, 2048), lambda i: (i, 0))
                return pl.pallas_call(  #!
                    kernel,
                    grid=(4,),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((8192, 2048), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((2048, 2048), jnp.float32)],
                    compiler_params=pltpu.CompilerParams(vmem_limit_bytes=32 * 1024 * 1024),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((512, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((512, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(
                        vmem_limit_bytes=100 * 1024 * 1024,  #!
                    ),
                )(x)
            """,
            target="tpu:tpu7x",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref, acc_ref):
                acc_ref[...] = x_ref[...] * 2.0
                o_ref[...] = acc_ref[...]

            def double(x):
                block = pl.BlockSpec((512, 1024), lambda i: (i, 0))  # 2 MiB
                return pl.pallas_call(
                    kernel,
                    grid=(16,),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((8192, 1024), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((512, 1024), jnp.float32)],
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        target = context.target
        if target is not None and target.backend == "mosaic_gpu":
            yield from _shared(launch, context)
        if target is not None and target.core == "sparse":
            yield from _of_subcores(launch, target.device, context)
            return
        if target is None or target.backend != "tpu" or not launch.form.is_over_blocks:
            return
        every = tuple(device for device in CHIPS if knowing(device, context.versions))
        devices = (target.device,) if target.device is not None else every
        yield from _written_limit(launch, devices, context)
        yield from _smem(launch, context)
        for budget in budgets_of(launch, context.analysis, sublanes(target.device)):
            counted, versions = _as_counted(budget, context.versions)
            found = list(_vmem(counted, launch, devices, versions, context))
            yield from found
            if any(finding.severity is not Severity.INFO for finding in found):
                return
        if target.device is not None and launch.known_call is None:
            yield from _largest(launch, target.device, context)

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        target = context.target
        if target is None or target.backend != "triton" or len(op.args) < 2:
            return
        sizes = [_bytes(operand) for operand in op.args[:2]]
        if None in sizes:
            return
        least = min(size for size in sizes if size is not None)
        # On AMD what is of exactly this size was reported not to fit (ROCm/jax#147).
        limit, most = (LOCAL_DATA_SHARE, LOCAL_DATA_SHARE - 1) if target.device == "rocm" else (SHARED, SHARED)
        if least > most:
            yield context.finding(
                op.site,
                f"dot of operands of {format_exactly(least)} and more: they go through shared memory, "
                f"{format_exactly(limit)} at most",
                help="loop over the contracted dimension in blocks of 32 to 128",
                severity=Severity.WARNING,
                op=op,
            )


def _as_counted(budget: LaunchBudget, versions: tuple[str, ...]) -> tuple[LaunchBudget, tuple[str, ...]]:
    """The sum as the compilers of these releases of jax count it, and the releases where those of others count less."""
    newer = tuple(version for version in versions if parse(version) >= COUNTED_TWICE_SINCE["jax"])
    if not newer:
        return budget.counted_once(), ()
    return budget, newer if len(newer) < len(versions) else ()


def _vmem(
    budget: LaunchBudget, launch: Launch, devices: tuple[str, ...], versions: tuple[str, ...], context: Context
) -> Iterator[Finding]:
    """The sum against what the launch may take."""
    total = budget.total
    physical = max(CHIPS[device].vmem for device in devices)
    defaults = {device: most for device in devices if (most := CHIPS[device].default_vmem) is not None}
    places = "every TPU" if len(devices) > 1 else _NAMES[devices[0]]
    severity: Severity | None = None
    limit, help = "", "take smaller blocks, or raise `vmem_limit_bytes` where the core has it"
    if total > physical:
        severity, limit = Severity.ERROR, f"{places} has {format_exactly(physical)} at most"
    elif budget.limit is not None and total > budget.limit:
        severity, limit = Severity.ERROR, f"`vmem_limit_bytes` is {format_exactly(budget.limit)}"
    elif budget.limit is None and budget.limit_known and defaults and total > max(defaults.values()):
        severity, limit = Severity.WARNING, f"the default limit is {format_exactly(max(defaults.values()))} at most"
    elif budget.limit is None and budget.limit_known and len(devices) > 1:
        small = [device for device, most in defaults.items() if total > most]
        if small:
            names = ", ".join(_NAMES[device] for device in small)
            severity, limit = Severity.INFO, f"the default limit is {format_exactly(defaults[small[0]])} on {names}"
    if severity is None:
        return
    certain = budget.exceeds_anywhere(budget.limit or physical, physical, max(map(kept_arrays, devices)))
    if not certain:
        help = f"unless XLA keeps whole arrays in VMEM in the function around it, {help}"
    if severity is Severity.ERROR and (budget.assumed or not certain):
        severity = Severity.WARNING
    condition = f", if {', '.join(budget.assumed[:3])}" if budget.assumed else ""
    yield context.finding(
        launch.called_at,
        f"blocks and scratch take at least {format_exactly(total)} of VMEM{condition}: {limit}",
        help=f"{spelled(budget.parts)}; {help}",
        severity=severity,
        only_in=versions,
    )


def _largest(launch: Launch, device: str, context: Context) -> Iterator[Finding]:
    """The largest size of an array of which each block holds a whole dimension."""
    budgets = budgets_of(launch, context.analysis, sublanes(device))
    if not budgets or not budgets[0].limit_known:
        return
    limit = budgets[0].limit or CHIPS[device].default_vmem or CHIPS[device].vmem
    found = largest_size(launch, context.analysis, sublanes(device), limit)
    if found is not None and may_be_any(context.analysis.outcome.effects, found[0]):
        size, most = found
        yield context.finding(
            launch.called_at,
            f"blocks and scratch do not fit into the {format_exactly(limit)} of VMEM that there are on"
            f" {_NAMES[device]} beyond {size.text} = {most}",
            help="loop over that dimension in blocks where it may be larger",
            severity=Severity.INFO,
        )


def _of_subcores(launch: Launch, device: str | None, context: Context) -> Iterator[Finding]:
    """Scratch and pipelines against the memories of a subcore, and of the SparseCore that it is part of."""
    if launch.core not in SUBCORES or not launch.is_pallas:
        return
    core_name, chips = SUBCORES[launch.core], sparse_cores(device)
    vector = launch.core == "sc_vector"
    own = subcore_memory(launch, "vmem", context.analysis) if vector else ()
    shared = subcore_memory(launch, "vmem_shared", context.analysis)
    scalars = subcore_memory(launch, "smem", context.analysis)
    subcores = max(chip.subcores for chip in chips)
    of_core = (*shared, *(Part(f"{part.name} of each subcore", part.total, subcores) for part in own))
    smem = VECTOR_SUBCORE_SMEM if vector else SCALAR_SUBCORE_SMEM
    for parts, limit, where, help in (
        (own, max(chip.vmem for chip in chips), f"VMEM, and a {core_name} has", "take fewer rows at a time"),
        (of_core if shared else (), max(chip.shared for chip in chips), _SHARED, "take fewer rows at a time"),
        (scalars, smem, f"SMEM, and a {core_name} has", "keep large tables in VMEM or HBM and copy rows"),
    ):
        total = sum(part.total for part in parts)
        if total > limit:
            on = "on any TPU" if device is None else f"on {_NAMES[device]}"
            yield context.finding(
                launch.called_at,
                f"scratch and pipelines take at least {format_exactly(total)} of {where} {format_exactly(limit)} {on}",
                help=f"{spelled(parts)}; {help}",
                severity=Severity.ERROR,
                certain=launch.path.certain,
            )
            return


def _shared(launch: Launch, context: Context) -> Iterator[Finding]:
    """Shared memory of a block of threads, of which scratch, scopes and pipelines take at least this."""
    if launch.form.is_inner or not launch.is_pallas:
        return
    parts = shared_memory(launch, context.analysis)
    total = sum(part.total for part in parts)
    if total > SHARED:
        yield context.finding(
            launch.called_at,
            f"at least {total:,} bytes of shared memory are held at once, and a block of threads has {SHARED:,}",
            help=f"{spelled(parts)}; take smaller tiles, or fewer of them in flight",
            severity=Severity.ERROR,
            certain=launch.path.certain,
        )


def _smem(launch: Launch, context: Context) -> Iterator[Finding]:
    """Numbers for the scalar unit: rows of a matrix are filled up to 128 there, too."""
    parts = scalars_of(launch, context.analysis)
    total = sum(part.total for part in parts)
    if total < SMEM:
        return
    yield context.finding(
        launch.called_at,
        f"operands in SMEM take {format_exactly(total)}, of less than {format_exactly(SMEM)} that there is",
        help=f"{spelled(parts)}; pass large tables in HBM and copy rows, and matrices transposed or flat",
    )


def _written_limit(launch: Launch, devices: tuple[str, ...], context: Context) -> Iterator[Finding]:
    """A `vmem_limit_bytes` that some generation does not have."""
    value = compiler_param(launch, "vmem_limit_bytes")
    if not isinstance(value, Const) or not isinstance(value.value, int):
        return
    lacking = [device for device in devices if value.value > CHIPS[device].vmem]
    if not lacking or (len(devices) > 1 and value.value <= 64 * MIB):
        return
    names = ", ".join(_NAMES[device] for device in lacking if len(devices) == 1 or device != "v4")
    most = max(CHIPS[device].vmem for device in lacking)
    yield context.finding(
        compiler_param_site(launch, "vmem_limit_bytes"),
        f"`vmem_limit_bytes` of {format_exactly(value.value)}, but VMEM is {format_exactly(most)} at most on {names}",
        help="query the device: `int(pltpu.get_tpu_info().vmem_capacity_bytes * 0.9)`",
        severity=Severity.INFO,
    )


def _bytes(value: object) -> int | None:
    """The size of an array, at one byte an element where its dtype is not known."""
    if not isinstance(value, Array) or value.shape is None or value.dtype == "bool":
        return None
    total = max(bits(value.dtype or "i8") // 8, 1)
    for size_ in value.shape:
        if not isinstance(size_, int):
            return None
        total *= size_
    return total
