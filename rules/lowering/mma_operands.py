"""PAL111 mma-operands."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import NONE, Array, Const, Context, Dim, Example, Finding, Op, Ref, Rule, Severity, Value
from pallas_lint.checker.backend_failures import Refusal, first_refused
from pallas_lint.kernels.facts.gpu_buffers import swizzle, tiling, transforms, whole
from pallas_lint.kernels.model.dtypes import bits, long_name
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.records import evolve, frozen

_WGMMA = f"{PALLAS}.mosaic_gpu.wgmma"
_TCGEN05 = f"{PALLAS}.mosaic_gpu.tcgen05_mma"
_COMMIT = f"{PALLAS}.mosaic_gpu.tcgen05_commit_arrive"

_FLOAT8 = frozenset(("f8_e4m3fn", "f8_e5m2"))
_HALF = ("f32", "f16")
# What products of a dtype may be summed in.
_SUMS: dict[str, tuple[str, ...]] = {
    "bf16": ("f32",),
    "f16": _HALF,
    "f8_e4m3fn": _HALF,
    "f8_e5m2": _HALF,
    "i8": ("i32",),
}
_WGMMA_SUMS = {**_SUMS, "f32": ("f32",), "u8": ("i32",)}
_UNTRIED = frozenset(("u8", "i4", "u4", "f4_e2m1fn"))  # by `tcgen05_mma`
_MIN_BITS = 256  # bits of a row in shared memory, the smallest swizzle


@frozen
class _Product:
    """`acc[m, n] += a[m, k] @ b[k, n]`, as far as shapes and dtypes are known."""

    acc: Value | None
    a: Value | None
    b: Value | None

    def shape(self, operand: Value | None) -> tuple[Dim, Dim] | None:
        shape = operand.shape if isinstance(operand, Ref | Array) else None
        return None if shape is None or len(shape) != 2 else (shape[0], shape[1])

    def size(self, *places: tuple[Value | None, int]) -> int | None:
        """The first of these sizes that is known."""
        for operand, axis in places:
            shape = self.shape(operand)
            size = None if shape is None else shape[axis]
            if isinstance(size, int):
                return size
        return None

    @property
    def m(self) -> int | None:
        return self.size((self.acc, 0), (self.a, 0))

    @property
    def n(self) -> int | None:
        return self.size((self.acc, 1), (self.b, 1))

    @property
    def k(self) -> int | None:
        return self.size((self.a, 1), (self.b, 0))


class MmaOperands(Rule):
    """Mosaic GPU: `wgmma` or `tcgen05_mma` with operands that the tensor cores do not take.

    The tensor cores multiply tiles of fixed sizes: 64 rows for `wgmma`, columns by eights up to 256 (512 for
    `tcgen05_mma`), and in the summed dimension at least 32 bytes. Both operands have one dtype (the two of 8-bit floats
    may be mixed from jax 0.11 on), and sums are kept in float32, for float16 and 8-bit floats also in float16, for
    8-bit integers in int32. bfloat16 accumulators do not exist.

    Of `wgmma`, only operands of 16 bits may lie either way round in shared memory; of others the second has to be
    transposed, so that the summed dimension comes last there, too. `wgmma` takes 8-bit integers for signed ones,
    whatever their dtype.

    `tcgen05_mma` and `tcgen05_commit_arrive` signal a barrier that was made with `orders_tensor_core=True`.

    ## How to fix

    Take tiles of the sizes above, `plgpu.ACC((m, n), jnp.float32)` and a cast after the loop. Keep a 32-bit or 8-bit
    second operand as `(n, k)` and pass `plgpu.transpose_ref(b_smem, (1, 0))`; from jax 0.12 on the buffer needs
    transforms for that (`TilingTransform((8, 32))` and `SwizzleTransform(128)` for 32 bits).

    ## Known limits

    Silent where shapes and dtypes are not known, for views that are neither slices nor whole buffers, and for sizes of
    collective, scaled and sparse `tcgen05_mma`.

    ## References

    - Lowered for H100 and B200 with jax 0.8.3, 0.10.2 and 0.12.0.1, with lane and with warpgroup semantics: "N must be
      a multiple of 8 and <= 256, got: 512", "WGMMA requires m and n to be multiples of 64 and 8, got 96 and 128",
      "Mixed input dtypes for matrix multiplication unsupported", "WGMMA with element type bf16 only supports
      accumulators of type f32, but got: bf16", "Only f16 WGMMA supports transposes", "Incompatible shapes for matrix
      multiplication", "The only supported N > 256, is 512, but got N=384", "Unsupported input element type: tf32", "MMA
      barrier must have orders_tensor_core set to True."
    """

    code = "PAL111"
    name = "mma-operands"
    severity = Severity.ERROR
    backends = frozenset({"mosaic_gpu"})
    ops = (_WGMMA, _TCGEN05, _COMMIT)
    invalid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, x_smem, y_smem):
                def body(total):
                    plgpu.wgmma(total, x_smem, y_smem)  #!
                    return total[...]

                o_gmem[...] = pl.run_scoped(body, plgpu.ACC((64, 128), jnp.bfloat16))

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 128), jnp.bfloat16),
                    scratch_types=[plgpu.SMEM((64, 64), jnp.bfloat16), plgpu.SMEM((64, 128), jnp.bfloat16)],
                )()
            """
        ),
        Example(
            """
            from jax.experimental import pallas as pl
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(o_gmem, x_smem, y_smem, total, done):
                plgpu.tcgen05_mma(total, x_smem, y_smem, done, accumulate=False)  #!
                plgpu.barrier_wait(done)
                o_gmem[...] = plgpu.async_load_tmem(total)
                plgpu.wait_load_tmem()

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    scratch_types=[
                        plgpu.SMEM((128, 64), jnp.bfloat16),
                        plgpu.SMEM((64, 128), jnp.bfloat16),
                        plgpu.TMEM((128, 128), jnp.float32),
                        plgpu.Barrier(),
                    ],
                )()
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            ROWS = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))

            def kernel(o_gmem, x_smem, y_smem):
                def body(total):
                    plgpu.wgmma(total, x_smem, plgpu.transpose_ref(y_smem, (1, 0)))
                    return total[...]

                o_gmem[...] = pl.run_scoped(body, plgpu.ACC((64, 128), jnp.float32))

            def run():
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    scratch_types=[
                        plgpu.SMEM((64, 64), jnp.float32, transforms=ROWS),
                        plgpu.SMEM((128, 64), jnp.float32, transforms=ROWS),
                    ],
                )()
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        if op.open:
            return
        refusals = (evolve(refusal, what=f"`{op.short}` {refusal.what}") for refusal in _refusals(op))
        yield from first_refused(refusals, op.site, context, op)


def _refusals(op: Op) -> Iterator[Refusal]:
    if op.name == _COMMIT:
        yield from _barrier(op.argument("barrier", 0))
        return
    product = _Product(op.argument("acc", 0), op.argument("a", 1), op.argument("b", 2))
    if op.name == _WGMMA:
        yield from _shapes(product)
        yield from _dtypes(product, _WGMMA_SUMS)
        yield from _wgmma_sizes(product)
        yield from _unsigned(product)
        return
    yield from _barrier(op.argument("barrier", 3))
    if any(op.argument(name) not in (None, NONE) for name in ("a_scale", "b_scale", "a_sparse_metadata")):
        return
    collective = op.argument("collective_axis") not in (None, NONE)
    yield from _shapes(product, whole_b=not collective)
    yield from _dtypes(product, _SUMS)
    if not collective:
        yield from _tcgen05_sizes(product)


def _barrier(barrier: Value | None) -> Iterator[Refusal]:
    declared = barrier.declared if isinstance(barrier, Ref) else None
    if declared is None or declared.short not in ("Barrier", "ClusterBarrier") or declared.open:
        return
    if declared.argument("orders_tensor_core") in (None, Const(False)):
        yield Refusal(
            "signals a barrier that does not order the tensor core",
            f"declare it as `plgpu.{declared.short}(orders_tensor_core=True)`",
        )


def _shapes(product: _Product, *, whole_b: bool = True) -> Iterator[Refusal]:
    operands = [operand.shape for operand in (product.acc, product.a, product.b) if isinstance(operand, Ref | Array)]
    if any(shape is not None and len(shape) != 2 for shape in operands):
        yield Refusal("multiplies matrices, and one operand is none", "cut a matrix out: `x_smem.at[slot]`")
    for what, one, other in (
        ("K: columns of the first operand, rows of the second", (product.a, 1), (product.b, 0)),
        ("M: rows of the accumulator and of the first operand", (product.acc, 0), (product.a, 0)),
        ("N: columns of the accumulator and of the second operand", (product.acc, 1), (product.b, 1)),
    ):
        first, second = product.size(one), product.size(other)
        if first is not None and second is not None and first != second and (whole_b or what[0] != "N"):
            yield Refusal(
                f"of shapes that do not fit: {first} and {second} for {what}",
                "`acc[m, n] += a[m, k] @ b[k, n]`; `plgpu.transpose_ref(x, (1, 0))` turns an operand round",
            )


def _dtypes(product: _Product, sums: dict[str, tuple[str, ...]]) -> Iterator[Refusal]:
    acc, a, b = (x.dtype if isinstance(x, Ref | Array) else None for x in (product.acc, product.a, product.b))
    for dtype in (a, b):
        if dtype is not None and dtype not in sums and dtype not in _UNTRIED:
            yield Refusal(f"does not take {long_name(dtype)}", _taken(sums))
    if a is not None and b is not None and a != b:
        last = "0.10.2" if {a, b} <= _FLOAT8 else None
        what = f"of {long_name(a)} and {long_name(b)}: the operands need one dtype"
        yield Refusal(what, "cast one before it comes into shared memory", last)
    allowed = sums.get(a or b or "")
    if allowed is not None and acc is not None and acc not in allowed:
        names = " or ".join(map(long_name, allowed))
        what = f"accumulates in {long_name(acc)}: products of {long_name(a or b or '')} are summed in {names}"
        yield Refusal(what, f"make the accumulator {names}, and cast what it holds at the end")


def _taken(sums: dict[str, tuple[str, ...]]) -> str:
    return f"cast to one of {', '.join(map(long_name, sums))}"


def _wgmma_sizes(product: _Product) -> Iterator[Refusal]:
    m, n = product.m, product.n
    if m is not None and m % 64:
        yield Refusal(f"of {m} rows: M is a multiple of 64", "take 64 rows a warpgroup")
    if n is not None and (n % 8 or n > 256):
        what = f"of {n} columns: N is a multiple of 8, up to 256"
        yield Refusal(what, "cut the second operand into parts, each with its accumulator")
    yield from _depth(product)
    b = product.b
    buffer = whole(b) if isinstance(b, Ref) else None
    if buffer is None or b is None or buffer.dtype is None or not _as_it_lies(buffer):
        return
    if bits(buffer.dtype) != 16 and buffer.dtype in _WGMMA_SUMS:
        yield Refusal(
            f"of {long_name(buffer.dtype)}: the second operand has to be transposed, as only 16 bits go both ways",
            f"keep it as (N, K), and pass `plgpu.transpose_ref({_spelled(buffer)}, (1, 0))`",
        )
    elif n is not None and n * bits(buffer.dtype) % _MIN_BITS:
        step = _MIN_BITS // bits(buffer.dtype)
        yield Refusal(f"of {n} columns that lie in rows: they are a multiple of {step}", "take wider tiles")


def _unsigned(product: _Product) -> Iterator[Refusal]:
    for operand in (product.a, product.b):
        if isinstance(operand, Ref) and operand.dtype == "u8":
            what = "takes uint8 for int8: what is above 127 counts as negative"
            yield Refusal(what, "subtract 128 and cast to int8 before, and correct the sum", severity=Severity.WARNING)


def _tcgen05_sizes(product: _Product) -> Iterator[Refusal]:
    m, n = product.m, product.n
    step = 16 if isinstance(product.b, Ref) and product.b.dtype == "i8" else 8
    if n is not None and (n % step or (n > 256 and n != 512)):
        yield Refusal(
            f"of {n} columns: N is a multiple of {step} up to 256, or 512", "take tiles of 128 or 256 columns"
        )
    if isinstance(product.a, Ref) and product.a.space == "tmem" and m is not None and m != 128:
        yield Refusal(f"of {m} rows: a first operand in TMEM has 128", "take 128 rows, or keep it in shared memory")
    yield from _depth(product)


def _depth(product: _Product) -> Iterator[Refusal]:
    """What is summed over comes in pieces of 32 bytes, the smallest swizzle."""
    k, operand = product.k, product.b
    dtype = operand.dtype if isinstance(operand, Ref) else None
    if k is not None and dtype is not None and dtype in _WGMMA_SUMS and k * bits(dtype) % _MIN_BITS:
        what = f"sums over {k} of {long_name(dtype)}: K is a multiple of {_MIN_BITS // bits(dtype)}"
        yield Refusal(what, "take 32 bytes or more of each row, and fill up with zeros")


def _as_it_lies(buffer: Ref) -> bool:
    """Whether nothing turns the rows of a buffer into columns."""
    found = transforms(buffer)
    return found is not None and all(tiling(item) is not None or swizzle(item) is not None for item in found)


def _spelled(buffer: Ref) -> str:
    return "b_smem" if buffer.parameter.startswith("#") else buffer.parameter
