"""PAL201 block-shape-tiling."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    NONE,
    Array,
    Block,
    Context,
    Dim,
    Example,
    Finding,
    Fix,
    Launch,
    Rule,
    Severity,
    Site,
    Sym,
    blocks_of,
    nodes,
)
from pallas_lint.checker.backend_failures import up_to
from pallas_lint.compat.chips import LANES, compiles_for, sublanes
from pallas_lint.kernels.facts.defaults import with_defaults
from pallas_lint.kernels.facts.guarded_sizes import multiples
from pallas_lint.kernels.grid.grid_points import axes_in, axis_of
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.probe.chip_memory import SUBLANES
from pallas_lint.records import evolve

_PACKED = frozenset("bf16 f16 i16 u16 i8 u8".split())  # the types that were measured


class BlockShapeTiling(Rule):
    """A block whose last two dimensions neither fill tiles nor are the whole array's, on TPU.

    A TPU array lies in tiles of 8 rows by 128 columns, and a block is copied tile by tile. So each of the last two
    dimensions of a block has to be a multiple of the tile (8 for the one before the last, 128 for the last) or that of
    the whole array: `The Pallas TPU lowering currently requires that the last two dimensions of your block shape are
    divisible by 8 and 128`. A squeezed dimension (None) counts as 1. All jax versions require this of blocks in VMEM
    and SMEM alike, whatever the kernel does with them.

    A block of a 1-D array is the whole array, or a multiple of 1024, or (from jax 0.9 on) a power of two of at least
    128 elements of 32 bits, 256 of 16 bits, 512 of 8 bits.

    16-bit types have 16 rows in a tile and 8-bit types 32: a block of 8 rows is legal, but moves half-empty tiles.

    ## How to fix

    Round the block up to the tile and mask what lies behind the array's end, or take the whole dimension. Where the
    dimension is a head or a batch, put it in front: `(heads, seq, 64)` with blocks `(None, bq, 64)` instead of
    `(seq, heads * 64)` with blocks `(bq, 64)`. Small numbers belong into SMEM, whole: `pl.BlockSpec(memory_space=
    pltpu.SMEM)`.

    ## Fix safety

    Unsafe: a default is rounded up to the tile, which changes how many blocks there are, and what lies behind the
    array's end.

    ## Known limits

    An error needs a known size of the array, or an index map that moves the block along the dimension, so that the
    block cannot be all of it; with a grid that is not known that is a warning, and an info where a caller requests one
    row of an array that is not seen. Of a size that a guard only asks to be a multiple (`if d % 128: raise`), the
    smallest multiple that is refused is a warning. Else sizes that are not known are taken to fit. Blocks of
    `emit_pipeline` are not checked.

    ## References

    - jax issues 25379 and 26433, helion 1986 and 2051, maxtext 420 and 1047, vllm 10343.
    - 400 blocks of rank 1 to 4 lowered with jax 0.4.35, 0.8.3 and 0.12.0.1: the rule for rank 2 and more is the same in
      all. Compiled for v5e with 0.4.35: 1-D blocks compile in multiples of 1024 only, though smaller ones lower; so
      with 0.6.2 and 0.8.3. Whole vectors compile; as outputs of packed types up to 0.8.3 in multiples of 256 (16 bits)
      or 512 (8 bits) only: 64 and 512 elements of bf16 and int8 were compiled with 0.5.3 to 0.8.3 for four TPUs, others
      with 0.6.2 and 0.8.3 for v5e. With 0.10.2 those of the rule compile.
      Blocks of 8, 16 and 24 rows of int8 compile for v5e up to 0.8.3 and again with 0.12.0.1.
    """

    code = "PAL201"
    name = "block-shape-tiling"
    severity = Severity.ERROR
    fix = "unsafe"
    backends = frozenset({"tpu"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            def double(x, bm=100):  #-
            def double(x, bm=104):  #+
                return pl.pallas_call(
                    kernel,
                    grid=(pl.cdiv(x.shape[0], bm),),
                    in_specs=[pl.BlockSpec((bm, 128), lambda i: (i, 0))],  #!
                    out_specs=pl.BlockSpec((bm, 128), lambda i: (i, 0)),  #!
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                block = pl.BlockSpec((128, 64), lambda i, j: (i, j))  #!
                return pl.pallas_call(
                    kernel,
                    grid=(4, 8),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((512, 512), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
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
                    grid=(16,),
                    in_specs=[pl.BlockSpec((100,), lambda i: (i,))],  #!
                    out_specs=pl.BlockSpec((100,), lambda i: (i,)),  #!
                    out_shape=jax.ShapeDtypeStruct((1600,), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                block = pl.BlockSpec((None, 128, 64), lambda h, i: (h, i, 0))  # 64 is all of the last dimension
                return pl.pallas_call(
                    kernel,
                    grid=(8, 4),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((8, 512, 64), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if not launch.form.is_over_blocks:
            return
        blocks = blocks_of(launch, context.analysis)
        if blocks is None:
            return
        for block in blocks.operands:
            if block is None or block.spec is None or not block.spec.has_block_shape or not block.dims:
                continue
            if block.array_shape is not None and len(block.array_shape) != len(block.dims):  # PAL310 reports it
                continue
            if block.space in ("semaphore", "any", "hbm", "host") or (block.space is None and _hidden_space(block)):
                continue
            found = list(self._check(block, context, {}))
            if not found or all(finding.severity is Severity.INFO for finding in found):
                usual, defaults = with_defaults(block)
                found = list(self._check(usual, context, defaults)) if defaults else found
                fix = _rounded_default(block, usual, defaults, launch, context)
                found = [evolve(each, fixes=(fix,)) if fix is not None else each for each in found]
            yield from found or self._for_some_size(block, context)

    def _for_some_size(self, block: Block, context: Context) -> Iterator[Finding]:
        """The smallest size that passes the code's guards (`if d % 128: raise`) for which the block is refused."""
        if block.grid.launch.known_call is not None:
            return
        for size, numbers in multiples(context.analysis.outcome.effects):
            for number in numbers:
                some, taken = with_defaults(block, {size: number})
                found = list(self._matrix(some, context, taken, f"where `{size.text}` is {number}"))
                if size.text in taken and any(finding.severity is not Severity.INFO for finding in found):
                    yield from found
                    return

    def _check(self, block: Block, context: Context, defaults: dict[str, int]) -> Iterator[Finding]:
        assert block.dims is not None
        rank = self._vector if len(block.dims) == 1 else self._matrix
        yield from rank(block, context, defaults)

    def _matrix(self, block: Block, context: Context, defaults: dict[str, int], where: str = "") -> Iterator[Finding]:
        """The last two dimensions of a block of rank 2 or more."""
        worst: tuple[Severity, int, int] | None = None
        for place, tile in ((1, LANES), (2, SUBLANES)):
            severity = _verdict(block, len(block.dims or ()) - place, tile)
            if severity is not None and (worst is None or severity.rank > worst[0].rank):
                worst = severity, len(block.dims or ()) - place, tile
        if worst is None:
            yield from self._packed(block, context)
            return
        severity, at, tile = worst
        yield self._report(block, at, f"not a multiple of {tile}", severity, context, defaults, where=where)

    def _vector(self, block: Block, context: Context, defaults: dict[str, int]) -> Iterator[Finding]:
        size, whole = _size(block, 0), _array(block, 0)
        if not isinstance(size, int):
            return
        severity = Severity.ERROR if size == whole else _whole_or(block, 0)
        if severity is None:
            return

        chunk = sublanes(context.device) * LANES

        def fails(version: str) -> bool:
            return not _vector_fits(size, whole, block, version, chunk)

        failing = context.failing(fails)
        if not failing:
            return
        always = context.everywhere(fails)
        old = up_to("0.8.3", failing[-1])
        row = _row(block.dtype)
        if size == whole:
            mismatch = f"not a multiple of {row}, and cannot be stored whole"
        elif old:
            mismatch = f"not a multiple of {chunk}"
        else:
            mismatch = f"neither a multiple of {chunk} nor a power of two from {row}"
        yield self._report(block, 0, mismatch, severity, context, defaults, () if always else failing)

    @staticmethod
    def _report(
        block: Block,
        at: int,
        mismatch: str,
        severity: Severity,
        context: Context,
        defaults: dict[str, int],
        only_in: tuple[str, ...] = (),
        where: str = "",
    ) -> Finding:
        assert block.spec is not None and block.dims is not None
        whole = _array(block, at)
        size = "1 (squeezed)" if block.dims[at].kind == "squeezed" else str(_size(block, at))
        beside = f" nor the array's {whole}" if isinstance(whole, int) and whole != _size(block, at) else ""
        listed = ", ".join(f"`{name}={value}`" for name, value in sorted(defaults.items()))
        condition = f" {where}, which the code allows" if where else f" (by default: {listed})" if listed else ""
        return context.finding(
            block.spec.site,
            f"block dimension {at} is {size}, {mismatch}{beside}{condition}",
            help="round it up and mask, take the whole dimension, or move it in front of the last two",
            severity=severity,
            certain=block.sure and not defaults,
            only_in=only_in,
        )

    @staticmethod
    def _packed(block: Block, context: Context) -> Iterator[Finding]:
        """A legal block that fills only a part of each tile of a packed dtype."""
        assert block.spec is not None and block.dims is not None
        at = len(block.dims) - 2
        size, whole = _size(block, at), _array(block, at)
        if block.dtype is None or block.dtype in ("bool", "semaphore") or bits(block.dtype) not in (8, 16, 32):
            return
        device = context.device
        rows = sublanes(device) * 32 // bits(block.dtype)
        if block.space == "smem" or not isinstance(size, int) or size % SUBLANES or not size % rows:
            return
        doubt = _whole_or(block, at)
        if size == whole or doubt is None:
            return
        # Mosaic before jax 0.11 loads bytes in tiles of 32 rows only: from 0.10 on for every TPU, before on v6e.
        narrow = bits(block.dtype) == 8 and compiles_for(device)
        failing = context.failing(
            lambda v: (
                narrow and up_to("0.10.2", v) and (not up_to("0.9.2", v) or (device == "v6e" and up_to("0.8.3", v)))
            )
        )
        if failing:
            yield context.finding(
                block.spec.site,
                f"block of {size} rows of {block.dtype}: this jax compiles multiples of {rows} only",
                help=f"take a multiple of {rows} rows, or the whole dimension",
                severity=doubt,
                certain=block.sure,
                only_in=failing,
                dtype=block.dtype,
            )
            return
        if size >= rows:
            return
        yield context.finding(
            block.spec.site,
            f"block of {size} rows of {block.dtype} fills a part of each tile: {rows} rows of it are one",
            help=f"take a multiple of {rows} rows",
            severity=Severity.INFO,
            dtype=block.dtype,
        )


def _rounded_default(
    block: Block, usual: Block, defaults: dict[str, int], launch: Launch, context: Context
) -> Fix | None:
    """Round the default up to the tile, where it alone is the size of one dimension that does not fill tiles."""
    at = len(block.dims or ())
    for tile in (LANES, SUBLANES) if at > 1 else ():
        at -= 1
        written, size = _size(block, at), _size(usual, at)
        if not isinstance(written, Sym) or not isinstance(size, int) or _verdict(usual, at, tile) is None:
            continue
        default = _default_of(written.text, size, launch)
        if default is not None and defaults.get(written.text) == size:
            rounded = str(-(-size // tile) * tile)
            return context.unsafe(f"make `{written.text}={rounded}` the default", context.replace(default, rounded))
    return None


def _default_of(name: str, value: int, launch: Launch) -> Site | None:
    """The default of the parameter of this name of the nearest function around a launch, if it is `value`."""
    for function in reversed(launch.path.callers):
        every = function.node.params
        for parameter in every.named:
            if parameter.name.value == name:
                default = parameter.default
                known = isinstance(default, nodes.Integer) and default.value == str(value)
                return Site(function.piece, default) if known and default is not None else None
    return None


def _size(block: Block, at: int) -> Dim:
    return None if block.dims is None else block.dims[at].size


def _array(block: Block, at: int) -> Dim:
    """The size of the array's dimension; None where it is not known."""
    shape = block.array_shape
    return shape[at] if shape is not None and block.dims is not None and len(shape) == len(block.dims) else None


def _verdict(block: Block, at: int, tile: int) -> Severity | None:
    """How sure it is that one dimension fits neither tile nor array."""
    size, whole = _size(block, at), _array(block, at)
    if not isinstance(size, int) or size % tile == 0:
        return None
    if isinstance(whole, int):
        return None if whole == size else Severity.ERROR
    return _whole_or(block, at)


def _whole_or(block: Block, at: int) -> Severity | None:
    """How sure it is that the block is not the array's whole dimension; None where it may well be.

    A block that the index map moves along the dimension is not: another block would be outside.
    """
    whole = _array(block, at)
    if isinstance(whole, int):
        return None if whole == _size(block, at) else Severity.ERROR
    if block.indices is None or at >= len(block.indices) or block.dims is None:
        return None
    if block.dims[at].kind not in ("blocked", "squeezed"):
        return None
    axes, complete = axes_in(block.indices[at], block.grid.launch)
    if not axes or not complete:
        return None
    if _is_moved(block, at):
        return Severity.ERROR
    unknown = any(not isinstance(block.grid.sizes[axis], int) for axis in axes if axis < block.grid.rank)
    if not unknown or len(axes) != 1:
        return None
    # A caller that requests one row has one, as a decoder does: the array is not known here.
    by_caller = block.grid.launch.known_call is not None and _size(block, at) == 1
    return Severity.INFO if by_caller else Severity.WARNING


def _is_moved(block: Block, at: int) -> bool:
    """Whether the literal grid certainly moves the block along this dimension."""
    visits = block.visits
    if visits is not None:
        return len({indices[at] for _, indices in visits}) > 1
    index = block.indices[at] if block.indices is not None else None
    op = index.origin if isinstance(index, Array) else None
    axis = axis_of(op, block.grid.launch) if op is not None and op.name == PROGRAM_ID else None
    size = block.grid.sizes[axis] if axis is not None and axis < block.grid.rank else None
    return isinstance(size, int) and size > 1


def _vector_fits(size: int, whole: Dim, block: Block, version: str, chunk: int) -> bool:
    """Whether a 1-D block compiles in this version; `chunk`: numbers of 32 bits in a vector register."""
    if size % chunk == 0:
        return True
    row = _row(block.dtype)
    if size == whole:  # parts of packed rows could not be stored
        refused = block.role == "out" and block.dtype in _PACKED and up_to("0.8.3", version)
        return size % row == 0 or not refused
    if up_to("0.8.3", version):
        return block.dtype == "bool" or (isinstance(whole, int) and size >= whole and size % LANES == 0)
    return size >= row and size & (size - 1) == 0


def _row(dtype: str | None) -> int:
    """The elements in a row of a vector register."""
    return LANES * (1 if dtype in (None, "bool") else max(32 // bits(dtype or "f32"), 1))


def _hidden_space(block: Block) -> bool:
    """Whether a memory space was given that is not understood."""
    assert block.spec is not None
    return block.spec.value.open or block.spec.value.argument("memory_space") not in (None, NONE)
