"""PAL211 scalar-store-to-vmem."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pallas_lint.api import (
    Access,
    Array,
    Context,
    Example,
    Finding,
    KernelTrace,
    Rule,
    Seq,
    Severity,
    Slice,
    Value,
)
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.divisibility import loaded_values
from pallas_lint.kernels.facts.memory_spaces import is_copy, tpu_space
from pallas_lint.kernels.facts.single_numbers import stores_number
from pallas_lint.kernels.library.indexing import result_shape
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.values import ELLIPSIS, UNKNOWN


class ScalarStoreToVmem(Rule):
    """A scalar stored into VMEM, or a vector loaded from or stored into SMEM, on TPU.

    A TPU core has two memories of its own with a processor each. Vectors are loaded from and stored to VMEM, the
    memory of blocks unless their spec names another; the scalar unit loads and stores single numbers in
    SMEM. There is no instruction for the other combinations, and Pallas does not make one up:

    - `o_ref[0, 0] = s` into VMEM is refused with `Cannot store scalars to VMEM`;
    - `smem_ref[...]` or `smem_ref[0:8]` with `Can only load scalars from SMEM`, and a store of that kind with
      `Can only store scalars to SMEM`;
    - a 16-bit or 8-bit number loaded alone from VMEM (`x_ref[0, 0]`) does not compile: `Only 32-bit scalar
      vector.extracts supported`;
    - an output or input of rank 0 is no VMEM block at all;
    - a vector subcore of a SparseCore loads no single number of any dtype from VMEM (`Get only supports loading
      scalars from SMEM`), and a scalar subcore no vector.

    Interpret mode hides all of these but the last. (A scalar for a whole block, `o_ref[...] = jnp.sum(x)`, is refused
    everywhere: PAL506.)

    ## How to fix

    For single numbers, put the buffer into SMEM: `pl.BlockSpec(memory_space=pltpu.SMEM)` for an input or output,
    `pltpu.SMEM(shape, dtype)` for scratch. To stay in VMEM, store a vector: `o_ref[...] = jnp.full(o_ref.shape, s)`,
    or keep the dimensions of a reduction, `jnp.sum(x, keepdims=True)`, for a `(1, 1)` block. To write one element of a
    row, select it with an iota: `jnp.where(iota == i, s, o_ref[...])`. Read SMEM element by element. On a vector
    subcore, load a vector and take the element of the value: `ref[pl.ds(i, 8)][0]`.

    ## Known limits

    Silent where the memory space or the shape of what the index selects is not known. Copies (`pltpu.sync_copy`,
    `pltpu.make_async_copy`) may move anything and are left alone.

    ## References

    - jax issues 19292, 20046, 22817 and 23884: scalar stores to VMEM; helion issue 2069: both kinds.
    - 143 kernels with float32, int32 and bfloat16, compiled for v5e with jax 0.4.35, 0.8.3, 0.10.2 and 0.12.0.1: the
      same refusals in all four; loads of 32-bit scalars from VMEM compile from 0.8.3 on, of 16-bit ones in none.
    - SparseCores, lowered for v6e and v7x with 0.10.2 and 0.12.0.1.
    """

    code = "PAL211"
    name = "scalar-store-to-vmem"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    cores = frozenset({"tensor", "sparse"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[0, 0] = jnp.sum(x_ref[...])  #!

            def total(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((1, 1), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
        Example(
            """
            def kernel(scale_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...] * scale_ref[0:8]  #!

            def scaled(scale, x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[
                        pl.BlockSpec(memory_space=pltpu.SMEM),
                        pl.BlockSpec(memory_space=pltpu.VMEM),
                    ],
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(scale, x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[0, 0] = jnp.sum(x_ref[...])

            def total(x):
                return pl.pallas_call(
                    kernel,
                    out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
                    out_shape=jax.ShapeDtypeStruct((1, 1), jnp.float32),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.sum(x_ref[...], keepdims=True)

            def total(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((1, 1), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        numbers = loaded_values(trace, "smem")
        sparse = context.target is not None and context.target.core == "sparse"
        of_any_rank: list[Access] = []
        for access in trace.events:
            if not isinstance(access, Access) or access.kind not in ("load", "store", "accumulate") or is_copy(access):
                continue
            space = tpu_space(access.ref, trace.launch)
            found = None
            if space == "smem":
                found = _vector_in_smem(access)
                of_any_rank += [access] if found is None and _is_of_any_rank(access) else []
            elif space == "vmem":
                found = _scalar_load(access, sparse) if access.kind == "load" else _scalar_store(access, numbers)
            if found is not None:
                message, help_ = found
                yield context.finding(
                    access.site,
                    message,
                    help=help_,
                    op=access,
                )
        if of_any_rank:
            yield from self._wholes(of_any_rank, trace, context)

    @staticmethod
    def _wholes(loads: list[Access], trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """Loads of all of a ref of unknown rank in SMEM, where other code treats the ref as an array."""
        indexed = {each.ref for each in trace.accesses() if each.index not in (ELLIPSIS, UNKNOWN, Seq(()))}
        reduced = {ById(op.args[0]) for op in trace.ops() if op.args and op.short in _OF_ARRAYS}
        for load in loads:
            surely = load.ref in indexed  # which then has a dimension
            if surely or ById(load.value) in reduced:
                message = f"load of all of `{load.ref.parameter}`, which is in SMEM: TPU moves only scalars there"
                yield context.finding(load.site, message, help=_ELEMENTS, certain=surely, op=load)


_SCALAR_OUT = (
    "put it into SMEM (`memory_space=pltpu.SMEM`), or store a vector: `jnp.full(...)`, a reduction with `keepdims=True`"
)


def _scalar_store(access: Access, numbers: Collection[ById]) -> tuple[str, str] | None:
    """What is wrong with a store to VMEM."""
    name = access.ref.parameter
    if access.ref.shape == ():
        return f"`{name}` has rank 0 and is in VMEM, where TPU has no scalars", _SCALAR_OUT
    if stores_number(access, numbers):
        return f"scalar store to `{name}`, which is in VMEM: TPU stores only vectors there", _SCALAR_OUT
    return None


def _scalar_load(access: Access, sparse: bool) -> tuple[str, str] | None:
    """What is wrong with a load from VMEM: single numbers must have 32 bits, and a SparseCore takes none."""
    dtype = access.ref.dtype
    if access.ref.shape in (None, ()) or result_shape(access.ref.shape, access.index) != ():
        return None
    if sparse:
        return (
            f"scalar load from `{access.ref.parameter}` in VMEM: a subcore loads only vectors from there",
            "load a vector and take the element of the value: `ref[pl.ds(i, 8)][0]`",
        )
    if dtype is None or dtype == "bool" or bits(dtype) >= 32:
        return None
    return (
        f"scalar load of {dtype} from `{access.ref.parameter}` in VMEM: TPU takes single numbers of 32 bits only there",
        "load a vector and convert it before taking the element, or put the operand into SMEM",
    )


def _vector_in_smem(access: Access) -> tuple[str, str] | None:
    """What is wrong with an access to SMEM."""
    name = access.ref.parameter
    doing = "load from" if access.kind == "load" else "store to"
    shape = result_shape(access.ref.shape, access.index)
    if shape is None and access.kind != "load" and isinstance(access.value, Array) and access.value.shape:
        shape = access.value.shape
    if shape:
        return f"vector {doing} `{name}`, which is in SMEM: TPU moves only scalars there", _ELEMENTS
    if shape is None and access.ref.shape is None and _keeps_dimension(access.index):
        return f"vector {doing} `{name}`, which is in SMEM: TPU moves only scalars there", _ELEMENTS
    return None


def _is_of_any_rank(access: Access) -> bool:
    """Whether it loads all of a ref of unknown rank, which may be a single number."""
    return access.kind == "load" and access.ref.shape is None and not access.ref.view and access.index == ELLIPSIS


_OF_ARRAYS = frozenset("sum max min mean prod argmax argmin any all cumsum sort dot matmul".split())
_ELEMENTS = "index single elements, in a loop where there are several; for vectors put the buffer into VMEM"


def _keeps_dimension(index: Value) -> bool:
    """Whether the index has a slice, so that a dimension is left."""
    parts = index.items if isinstance(index, Seq) and index.kind == "tuple" else (index,)
    return any(isinstance(part, Slice) for part in parts)
