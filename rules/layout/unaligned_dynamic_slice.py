"""PAL204 unaligned-dynamic-slice."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pallas_lint.api import (
    ELLIPSIS,
    NONE,
    Access,
    Array,
    Const,
    Context,
    Dim,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Ref,
    Rule,
    Seq,
    Severity,
    Site,
    Slice,
    Sym,
    Value,
    nodes,
)
from pallas_lint.checker.backend_failures import up_to
from pallas_lint.compat.chips import LANES, sublanes
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.divisibility import is_counted, loaded_values, proven_divisor, true_divisor
from pallas_lint.kernels.facts.memory_spaces import is_copy, tpu_space
from pallas_lint.kernels.facts.single_numbers import stores_number
from pallas_lint.kernels.library.indexing import result_shape
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.trace import LOOP_INDEX
from pallas_lint.records import evolve, frozen


class UnalignedDynamicSlice(Rule):
    """A slice of a ref whose start, known at run time only, is not provably a multiple of the TPU's tile.

    A TPU buffer lies in tiles of 8 rows (sublanes) by 128 columns (lanes) of 32 bits; 16-bit types pack two rows into
    one, 8-bit types four. A load or store moves whole tiles. Where the start is a number known at compile time, Mosaic
    shifts the data into place; where it is known only at run time, it has to be a multiple of the tile, provably:
    `cannot statically prove that index in dimension 1 is a multiple of 128`. Required are:

    - last dimension: 128, in every type, for slices and single elements alike;
    - the dimension before: nothing in 32-bit types for single rows or up to 128 columns, else 8; 8 in 16-bit types; 32
      in 8-bit types (8 on v5e and older with older releases), for single rows too;
    - the only dimension of a 1-D ref: 128 in 32-bit types, 256 in 16-bit, 512 in 8-bit; 1024 up to jax 0.8.

    Mosaic proves it from the arithmetic: `i * 128` is fine, with `i` a loop or grid index, and so is
    `pl.multiple_of(x, 128)`, for which the author answers.

    Strides other than 1 exist for rows of up to 128 columns only, of 32 bits (of less for loads, from jax 0.11 or 0.12
    on), and not in the last dimension. DMAs need the same alignment, and their columns must begin and end at
    multiples of 128 even where both are known.

    ## How to fix

    Count in blocks (`pl.ds(i * 128, 128)`), or promise what is true: `pl.multiple_of(start, 128)`. If the start is not
    aligned, load the aligned tiles around it and select or roll (`pltpu.roll`) in registers; if it counts rows, put
    the rows into a leading dimension.

    ## Fix safety

    Safe: `pl.multiple_of` is offered only where the arithmetic shows that the promise is true. A promise that is not
    true gives wrong data without any error.

    ## Known limits

    Silent where shapes, dtypes or the start are not known. Whether a named block size is a multiple of the tile is for
    the caller to know: an info where the code neither states it nor refuses others (`assert block % 128 == 0`).
    What Mosaic gets out of `jnp.where`, `jnp.minimum` and remainders of aligned numbers differs by release, and is
    left to the probe.

    ## References

    - helion issues 2753 and 3459: unproven alignment of loads, stores and DMAs; jax issue 29520: strides.
    - 280 kernels with float32, bfloat16, int32 and int8 slices compiled for v5e and v6e with jax 0.4.35, 0.6.2, 0.8.3,
      0.10.2 and 0.12.0.1 (the last for v4, v5p and tpu7x, too); 450 more with 0.4.35 and 0.12.0.1; 78 DMAs with 0.4.35,
      0.8.3, 0.10.2 and 0.12.0.1.
    """

    code = "PAL204"
    name = "unaligned-dynamic-slice"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu"})
    of_compiler = True
    invalid = (
        Example(
            """
            def kernel(start_ref, x_ref, o_ref):
                o_ref[...] = x_ref[:, pl.ds(start_ref[0], 128)]  #!

            def window(start, x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[
                        pl.BlockSpec(memory_space=pltpu.SMEM),
                        pl.BlockSpec((8, 1024), lambda: (0, 0)),
                    ],
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                )(start, x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                start = pl.program_id(0) << 7
                o_ref[...] = x_ref[:, pl.ds(start, 128)]  #!-
                o_ref[...] = x_ref[:, pl.ds(pl.multiple_of(start, 128), 128)]  #+

            def copy(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 512), lambda i: (0, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (0, i)),
                    out_shape=jax.ShapeDtypeStruct((8, 512), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            run="copy(f32(8, 512))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(row_ref, x_ref, o_ref):
                def body(i, total):
                    return total + x_ref[:, pl.ds(i * 128, 128)]

                total = lax.fori_loop(0, 4, body, jnp.zeros((8, 128), jnp.float32))
                o_ref[...] = total + x_ref[pl.ds(row_ref[0], 1), 0:128]

            def run(row, x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[
                        pl.BlockSpec(memory_space=pltpu.SMEM),
                        pl.BlockSpec((8, 512), lambda: (0, 0)),
                    ],
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                )(row, x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        loaded = loaded_values(trace)
        numbers = loaded_values(trace, "smem")
        for access in trace.events:
            if not isinstance(access, Access) or access.kind not in ("load", "store", "accumulate"):
                continue
            space = tpu_space(access.ref, trace.launch)
            copied = is_copy(access)
            if space != "vmem" and not (copied and space in ("any", "hbm")):
                continue
            if access.kind != "load" and not copied and stores_number(access, numbers):
                continue  # PAL211 reports it: no index makes a number fit for VMEM
            for part in _parts(access, trace):
                checks = (_strided(part, access, context), _copied_lanes(part, access, context))
                for found in (*checks, _unaligned(part, access, loaded, numbers, context)):
                    if found is not None:
                        yield found


@frozen
class _Part:
    """One dimension of an index: `place` counts from the last dimension, 0 being the lanes."""

    ref: Ref  # the ref, or view, that is indexed
    rank: int
    place: int
    index: Value
    own: bool  # in the access itself, not in a view that it goes through

    @property
    def start(self) -> Value:
        return self.index.start if isinstance(self.index, Slice) else self.index

    @property
    def size(self) -> Dim:
        from pallas_lint.kernels.model.values import dim

        if not isinstance(self.index, Slice):
            return 1
        return None if self.index.size is None else dim(self.index.size)

    @property
    def lanes(self) -> Dim:
        return None if not self.ref.shape else self.ref.shape[-1]

    @property
    def extent(self) -> Dim:
        return None if not self.ref.shape else self.ref.shape[self.rank - 1 - self.place]

    @property
    def dimension(self) -> int:
        return self.rank - 1 - self.place


def _parts(access: Access, trace: KernelTrace) -> Iterator[_Part]:
    """The indexed dimensions of the access and of the views that it goes through."""
    ref, own = access.ref, True
    index: Value = access.index
    left = _rank_left(access, trace)
    while True:
        if ref.view and ref.indexer is None:
            return  # a bitcast or reshape: other tiles than the buffer's own
        taken = index.items if isinstance(index, Seq) and index.kind == "tuple" else (index,)
        if left is not None and ref.shape is None:
            left += sum(not isinstance(part, Slice) and part != ELLIPSIS for part in taken)
            ref = evolve(ref, shape=(None,) * left)
        elif ref.shape is not None:
            left = len(ref.shape)
        yield from _placed(ref, index, own)
        parent, indexer = ref.parent, ref.indexer
        if parent is None or indexer is None:
            return
        ref, index, own = parent, indexer, False


def _rank_left(access: Access, trace: KernelTrace) -> int | None:
    """The rank of what an access selects, from the other end of the copy or from where it is stored as it is."""
    if access.ref.shape is not None:
        return None
    place = access.site.key if is_copy(access) else None
    value = access.value if isinstance(access.value, Array) else None
    if place is None and value is None:
        return None
    for other in trace.accesses():
        stored = other.value is value and value is not None and other.kind == "store"
        together = not stored and place is not None and place == other.site.key and is_copy(other)
        if (together or stored) and other is not access and other.ref.shape is not None:
            shape = result_shape(other.ref.shape, other.index)
            return None if shape is None else len(shape)
    return None


def _placed(ref: Ref, index: Value, own: bool) -> Iterator[_Part]:
    parts = list(index.items) if isinstance(index, Seq) and index.kind == "tuple" else [index]
    if ref.shape is None or (isinstance(index, Seq) and index.open) or NONE in parts:
        return
    rank = len(ref.shape)
    if ELLIPSIS in parts:
        at = parts.index(ELLIPSIS)
        parts[at : at + 1] = [Slice(NONE, NONE, NONE)] * (rank - len(parts) + 1)
    if len(parts) > rank:
        return
    for dimension, part in enumerate(parts):
        place = rank - 1 - dimension
        if isinstance(part, Slice) or (isinstance(part, Array) and part.shape in ((), None)):
            yield _Part(ref, rank, place, part, own)


# -- alignment -----------------------------------------------------------------------------------------------------


def _needed(part: _Part, version: str, device: str | None, copied: bool) -> int:
    """The number of which the start has to be a multiple; 1 where nothing is required or known."""
    rows = sublanes(device)
    dtype, lanes = part.ref.dtype, part.lanes
    width = None if dtype in (None, "semaphore") else 32 if dtype == "bool" else bits(dtype)
    if part.rank == 1:
        if copied or dtype == "bool":
            return 1
        return 1024 if up_to("0.9.2", version) else LANES * (1 if width is None else max(32 // width, 1))
    if part.place == 0:
        return LANES
    if part.place > 1 or dtype == "bool":
        return 1
    narrow = isinstance(lanes, int) and lanes <= LANES
    wide = isinstance(lanes, int) and lanes > LANES
    if width is None:
        return rows if wide and part.size not in (1, None) else 1
    if width >= 32:
        return 1 if narrow or not wide or part.size in (1, None) else rows
    if width == 16 or copied:
        return rows
    if width == 8:
        return 8 if device != "v6e" and up_to("0.9.2", version) else 4 * rows
    return 8 if up_to("0.9.2", version) else 8 * rows


def _unaligned(
    part: _Part, access: Access, loaded: Collection[ById], numbers: Collection[ById], context: Context
) -> Finding | None:
    start = part.start
    if part.place > 1 or not isinstance(start, Array):
        return None
    if start is part.index and start.shape != () and ById(start) not in numbers:
        return None  # it may be an array
    if part.size is not None and part.size == part.extent and part.place:
        return None  # the whole dimension
    target = context.target
    assert target is not None
    copied = is_copy(access)
    summed, multiplied = proven_divisor(start, loaded), proven_divisor(start, loaded, sums=False)
    if summed is None and multiplied is None:
        return _by_name(part, access, context)

    def fails(version: str) -> bool:
        proofs = [summed] if not up_to("0.7.2", version) else [multiplied]
        if up_to("0.7.2", version) and not up_to("0.6.2", version):
            proofs = [summed, multiplied]
        needed = _needed(part, version, target.device, copied)
        return all(proof is not None and proof % needed for proof in proofs)

    failing = context.failing(fails)
    if not failing:
        return None
    needed = _needed(part, failing[-1], target.device, copied)
    what = "start" if isinstance(part.index, Slice) else "index"
    always = context.everywhere(fails)
    truth = true_divisor(start, loaded)
    aligned = truth is not None and not truth % needed
    fix = _promise(part, access, str(needed), context) if aligned else None
    advice = "which it is" if aligned else "where that is true; else load whole tiles and select"
    return context.finding(
        access.site,
        f"dynamic {what} in dimension {part.dimension} of `{part.ref.parameter}` is no proven multiple of {needed}",
        help=f"state it with `pl.multiple_of({what}, {needed})`, {advice}",
        op=access,
        only_in=() if always else failing,
        dtype=part.ref.dtype,
        fixes=[fix] if fix is not None else [],
    )


def _by_name(part: _Part, access: Access, context: Context) -> Finding | None:
    """`pl.ds(i * block, block)` with a block size that the caller passes."""
    op = part.start.origin if isinstance(part.start, Array) else None
    if op is None or op.name != "jax.numpy.multiply" or not part.own or not isinstance(part.index, Slice):
        return None
    named = [operand for operand in op.args if isinstance(operand, Sym)]
    target = context.target
    assert target is not None
    needed = max(_needed(part, version, target.device, is_copy(access)) for version in context.versions)
    if len(named) != 1 or named[0] != part.index.size or needed == 1:
        return None
    if any(_is_unrolled(operand) for operand in op.args):
        return None  # each start is a number then
    if named[0].is_chosen:
        return None  # by a branch, not by the caller
    multiples = context.analysis.outcome.effects.multiples
    if any(size == named[0] and not number % needed for size, number in multiples):
        return None  # the code refuses others
    node = op.site.node
    if not isinstance(node, nodes.BinaryOperation):
        return None
    factor = node.right if isinstance(op.args[1], Sym) else node.left
    if not isinstance(factor, nodes.Name):
        return None
    fix = _promise(part, access, factor.value, context)
    return context.finding(
        access.site,
        f"start in dimension {part.dimension} of `{part.ref.parameter}` is aligned only where `{factor.value}` is a "
        f"multiple of {needed}",
        help=f"give its value, `# pallas-lint: assume {factor.value}={4 * needed}`, or promise it: "
        f"`pl.multiple_of(start, {needed})`",
        severity=Severity.INFO,
        op=op,
        fixes=[fix] if fix is not None and _start_node(part, access) is node else [],
    )


def _is_unrolled(value: Value) -> bool:
    """Whether it is the index of a loop that is not run as one."""
    op = value.origin if isinstance(value, Array) else None
    return op is not None and op.name == LOOP_INDEX and not is_counted(op)


def _start_node(part: _Part, access: Access) -> nodes.BaseExpression | None:
    """The expression for the start, if it is in the access itself."""
    node = access.site.node
    if isinstance(node, nodes.AugAssign):
        node = node.target
    if not part.own or not isinstance(node, nodes.Subscript):
        return None
    elements = [element.slice for element in node.slice]
    if len(elements) == 1 and isinstance(elements[0], nodes.Index) and isinstance(elements[0].value, nodes.Tuple):
        found: list[nodes.Node] = [element.value for element in elements[0].value.elements]
    else:
        found = [element.value if isinstance(element, nodes.Index) else element for element in elements]
    ellipsis = next((at for at, value in enumerate(found) if isinstance(value, nodes.Ellipsis)), None)
    at = part.dimension if ellipsis is None or part.dimension < ellipsis else len(found) - 1 - part.place
    if not 0 <= at < len(found):
        return None
    value = found[at]
    if isinstance(value, nodes.Call):
        if not isinstance(part.index, Slice) or not value.args or value.args[0].keyword or value.args[0].star:
            return None
        return value.args[0].value
    return value if isinstance(value, nodes.BaseExpression) and not isinstance(part.index, Slice) else None


def _promise(part: _Part, access: Access, multiple: str, context: Context) -> Fix | None:
    node = _start_node(part, access)
    if node is None:
        return None
    site = Site(access.site.piece, node)
    function, imports = context.spell("jax.experimental.pallas.multiple_of", context.module_of(access.site))
    edit = context.replace(site, f"{function}({site.code}, {multiple})")
    return context.safe(f"promise that the start is a multiple of {multiple}", edit, *imports)


# -- copies -------------------------------------------------------------------------------------------------------


def _copied_lanes(part: _Part, access: Access, context: Context) -> Finding | None:
    """A DMA of a part of the lanes: it moves whole tiles."""
    index, extent = part.index, part.extent
    if (
        not is_copy(access)
        or part.rank < 2
        or part.place
        or not isinstance(index, Slice)
        or not isinstance(extent, int)
    ):
        return None
    start = 0 if index.start == NONE else index.start.value if isinstance(index.start, Const) else None
    size = part.size
    if index.size is None and start is not None:
        stop = extent if index.stop == NONE else index.stop.value if isinstance(index.stop, Const) else None
        size = stop - start if isinstance(stop, int) and stop >= 0 else None
    if not isinstance(start, int) or not isinstance(size, int) or (size == extent and start == 0):
        return None
    if start % LANES == 0 and size % LANES == 0:
        return None
    return context.finding(
        access.site,
        f"copy of columns {start} to {start + size} of `{part.ref.parameter}`: DMAs move whole tiles of {LANES}",
        help=f"copy a multiple of {LANES} columns from a multiple of {LANES}, and select in registers",
        op=access,
    )


# -- strides -------------------------------------------------------------------------------------------------------


def _strided(part: _Part, access: Access, context: Context) -> Finding | None:
    index = part.index
    if not isinstance(index, Slice) or is_copy(access):
        return None
    stride = index.step.value if isinstance(index.step, Const) else None
    if not isinstance(stride, int) or stride == 1:
        return None
    reason: str | None = None
    failing: tuple[str, ...] = ()
    if part.place == 0:
        reason = "the last dimension has no strided access on TPU"
    elif isinstance(part.lanes, int) and part.lanes > LANES:
        reason = f"rows of {part.lanes} columns have none on TPU, only those of up to 128"
    elif part.ref.dtype is not None and part.ref.dtype not in ("bool", "semaphore") and bits(part.ref.dtype) < 32:
        if access.kind == "load" and not isinstance(part.start, Array):
            failing = context.failing(lambda version: up_to("0.10.2", version))
            if not failing:
                return None
        elif access.kind == "load" and part.place != 1:
            return None
        reason = f"{part.ref.dtype} has none on TPU"
    if reason is None:
        return None
    return context.finding(
        access.site,
        f"stride {stride} in dimension {part.dimension} of `{part.ref.parameter}`: {reason}",
        help="load without the stride and select, or lay the data out so that a leading dimension strides",
        op=access,
        only_in=failing,
        dtype=part.ref.dtype,
    )
