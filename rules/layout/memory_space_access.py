"""PAL212 memory-space-access."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Access, Array, Context, Example, Finding, KernelTrace, Launch, Ref, Rule, Severity
from pallas_lint.checker.backend_failures import up_to
from pallas_lint.kernels.facts.memory_spaces import is_copy, tpu_space
from pallas_lint.kernels.facts.subcores.access import ACCESSES, far_access
from pallas_lint.kernels.model.known_names import PALLAS

_ASYNCHRONOUS = tuple(f"{PALLAS}.mosaic_gpu.async_{what}_tmem" for what in ("load", "store"))
_SPEC = ", or give it a BlockSpec without memory space"


class MemorySpaceAccess(Rule):
    """A ref in HBM, or in a GPU's tensor memory, that is read or written without a copy.

    On TPU, only VMEM and SMEM can be loaded from and stored to. A ref in HBM (`memory_space=pl.ANY` or `pltpu.HBM`,
    and every operand of `pl.kernel` on a tensor core or a SparseCore) is an address for DMAs and nothing else:
    `x_ref[...]` is refused with `Loads are only allowed on VMEM and SMEM references`, whatever is done with the value.
    Interpret mode knows no memory spaces and runs it. The subcores of a SparseCore share `pltpu.VMEM_SHARED`, which
    they only copy to and from, too; `plsc.load_gather`, `plsc.addupdate` and their like are loads and stores.

    On Mosaic GPU the same holds for TMEM, the accumulators of Blackwell's tensor cores: `acc_tmem[...]` fails with
    `Loads from TMEM are asynchronous operations`. GMEM and SMEM are loaded from directly there, and Triton has no
    memory spaces: its kernels are left alone.

    ## How to fix

    Copy first: `pltpu.sync_copy(x_hbm, x_vmem)`, or `pltpu.make_async_copy(...)` with `start` and `wait`, into
    `pltpu.VMEM` scratch; the other way round for results. Or let the pipeline copy: give the operand a BlockSpec
    without a memory space, or run `pltpu.emit_pipeline` over it. For TMEM: `plgpu.async_load_tmem` and
    `plgpu.async_store_tmem`.

    ## Known limits

    Silent where the memory space is not known. An input of `pl.kernel` is a warning: the caller may have put it into
    VMEM with `with_memory_space_constraint`; on a SparseCore it is an error where the array that is passed is known.
    Refs that are handed to code that is not seen are left to the probe.

    ## References

    - jax 0.4.35, 0.8.3 and 0.12.0.1, lowered for TPU: the refusal for loads and stores of any shape, for whole refs
      and views, for `pl.ANY`, `pltpu.HBM` and `pltpu.HOST`, for inputs, outputs and scratch; copies and `.shape` are
      fine. `pl.kernel` and `core_map` with 0.8.3, 0.10.2 and 0.12.0.1.
    - SparseCores, lowered for v5p, v6e and v7x with 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1, on both subcores, with layout
      passes and without: `Get does not support loading from HBM`, or VMEM_SHARED; `Swap does not support storing to
      HBM`. An input that `with_memory_space_constraint` puts into SMEM compiles on scalar subcores, and one in VMEM
      only with options of the compiler.
    - TMEM: lowered for a B200 with 0.7.2, 0.11.2 and 0.12.0.1, all refused; 0.6.2 takes loads.
    """

    code = "PAL212"
    name = "memory-space-access"
    severity = Severity.ERROR
    backends = frozenset({"tpu", "mosaic_gpu"})
    cores = frozenset({"tensor", "sparse"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + 1.0  #!

            def add_one(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
        Example(
            """
            def kernel(table_hbm, o_ref, row_vmem):
                pltpu.sync_copy(table_hbm.at[0:8], row_vmem)
                o_ref[...] = row_vmem[...] + table_hbm[8:16]  #!

            def run(table):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(table)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_hbm, o_ref, x_vmem):
                pltpu.sync_copy(x_hbm, x_vmem)
                o_ref[...] = x_vmem[...] + x_hbm.shape[0]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(x)
            """
        ),
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                o_gmem[...] = x_gmem[...] + 1.0

            def run(x):
                return plgpu.kernel(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32))(x)
            """,
            jax="0.10.2",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        target = context.target
        assert target is not None
        asynchronous = {op.site.key for op in trace.ops(*_ASYNCHRONOUS)}
        for access in trace.events:
            if not isinstance(access, Access) or access.site.key in asynchronous:
                continue
            if access.kind in ("load", "store", "accumulate") and not is_copy(access):
                yield from self._tpu(access, trace, context) if target.backend == "tpu" else self._gpu(access, context)
        for op in trace.ops(*sorted(ACCESSES)) if target.core == "sparse" else ():
            found = far_access(op, trace.launch)
            if found is not None:
                ref, where = found
                yield context.finding(
                    op.site,
                    f"`{op.short}` of `{ref.parameter}`, which lies in {where}: a subcore indexes and masks VMEM alone",
                    help="copy it with `pltpu.sync_copy` or `make_async_copy`",
                    op=op,
                )

    @staticmethod
    def _tpu(access: Access, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        ref = access.ref
        space = tpu_space(ref, trace.launch)
        sparse = context.target is not None and context.target.core == "sparse"
        if space not in ("any", "hbm", "host") and not (sparse and space == "vmem_shared"):
            return
        where = {"host": "host memory", "vmem_shared": "VMEM_SHARED"}.get(space, "HBM")
        core = "a subcore" if sparse else "TPU"
        declared = ref.space is not None
        yield context.finding(
            access.site,
            f"{_doing(access)} `{ref.parameter}`, which stays in {where}: {core} loads and stores only VMEM and SMEM",
            help=f"copy it with `pltpu.sync_copy` or `make_async_copy`{'' if sparse else _SPEC}",
            certain=access.certain
            and (declared or ref.role == "out" or (sparse and _is_plain_array(ref, trace.launch))),
        )

    @staticmethod
    def _gpu(access: Access, context: Context) -> Iterator[Finding]:
        if access.ref.space != "tmem":
            return
        versions = context.failing(lambda version: not up_to("0.6.2", version))
        if not versions:
            return
        function = "async_load_tmem" if access.kind == "load" else "async_store_tmem"
        yield context.finding(
            access.site,
            f"{_doing(access)} `{access.ref.parameter}`, which is in TMEM: it is accessed asynchronously only",
            help=f"use `plgpu.{function}`",
            op=access,
            versions=versions,
        )


def _is_plain_array(ref: Ref, launch: Launch) -> bool:
    """Whether the launch passes an array that nothing put into another memory for this input."""
    if ref.role != "in" or ref.owner is not None or ref.index is None or launch.operands is None:
        return False
    return ref.index < len(launch.operands) and isinstance(launch.operands[ref.index], Array)


def _doing(access: Access) -> str:
    if access.kind == "load":
        return "load from"
    return "store to" if access.kind == "store" else "update of"
