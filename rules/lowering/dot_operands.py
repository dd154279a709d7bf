"""PAL109 dot-operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    NONE,
    Array,
    CallResult,
    Context,
    Example,
    External,
    Finding,
    Op,
    Rule,
    Seq,
    Severity,
    failure,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.kernels.library.products import contracted, precision_name, product_of
from pallas_lint.kernels.model.dtypes import bits, is_float, is_integer, long_name
from pallas_lint.records import frozen
from pallas_lint.syntax.nesting import spelled_function

if TYPE_CHECKING:
    from pallas_lint.kernels.library.products import MatrixProduct

_PALLAS_DOTS = tuple(f"jax.experimental.pallas.{name}" for name in ("dot", "triton.dot", "gpu.dot"))
_MIN_SIDE = 16  # of a side of a product, for Triton up to jax 0.8
# What a step of NVIDIA's tensor cores takes of each row, by dtype; 8-bit floats are made 16-bit ones.
_STEP_BITS = {"bf16": 256, "f16": 256, "f32": 256, "i8": 256, "f8_e4m3fn": 128, "f8_e5m2": 128}
_HIGH = frozenset({"HIGH", "high", "tensorfloat32", "bfloat16_3x"})
_FULL = frozenset({"HIGHEST", "highest", "float32"})
_TRITON_PRESETS = frozenset(
    "DEFAULT F16_F16_F16 F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9"
    " TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32".split()
)


@frozen
class _Refusal:
    """What a backend refuses, in which versions, and what to do."""

    what: str
    instead: str
    fails: Callable[[str], bool]
    severity: Severity = Severity.ERROR

    def refuses(self, backend: str, device: str | None, version: str) -> bool:
        return self.fails(version)


def _since(first: str, last: str | None = None) -> Callable[[str], bool]:
    return lambda version: within(version, first, last)


_ALWAYS = _since("0.4.35")


class DotOperands(Rule):
    """A product in a form that the backend refuses: rank, batch dimensions, dtypes or precision.

    Outside kernels XLA turns every `dot_general` into something the hardware has. In a kernel the backend's own
    lowering takes only what maps onto the matrix unit. Triton multiplies two matrices of one dtype: a vector
    operand ends in `a and b must be 2D`, a batch dimension in an `AssertionError` without any text, operands of two
    dtypes in `a and b must have the same element type`. TPU takes more with every release (matrices only in
    jax 0.4, one batch dimension from 0.5, vectors on the right from 0.7 and on the left from 0.10, several batch
    or summed axes from 0.11), but no product that leaves a scalar, no precision for each operand and no
    `DotAlgorithmPreset`. Neither multiplies unsigned integers. `interpret=True` computes all of these.

    Up to jax 0.8 Triton refuses products with a side below 16. Later releases lower them, and where fewer than 16
    numbers of 16 bits are summed over (8 of float32 in TF32, 32 of int8), the result of jax 0.11.2 is wrong, without
    any message.

    ## How to fix

    Give vectors a second dimension (`v[None, :] @ m`), loop over the batch or put it into the grid, cast one
    operand to the other's dtype, and write products of vectors as `jnp.sum(a * b)`.

    ## Known limits

    Needs known ranks or dtypes. Operands of 16 or 8 bits with an accumulator of the same width are PAL106's.
    TPU verdicts are those of the lowering, in nine releases; what only Mosaic's compiler refuses was compiled for
    v5e and v6e, and is a warning on other generations, and where tpu7x alone takes it (sums of int8 in float32) and the
    device is not known. Products with small sides compile there, down to 1x128 by 128x1; older compilers refused
    some, which is left to the probe.

    ## References

    - 208 products lowered for Triton and TPU by jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and
      0.12.0.1, and compiled with libtpu for v5e with 0.4.35 and for v5e and v6e with 0.12.0.1; sums in another kind of
      number for v4, v5p and tpu7x, too.
    - Sums over 1 to 32 numbers, run on an H200 with jax 0.11.2, Triton, for sides of 8, 16 and 64: wrong by as much as
      the result for bfloat16, float16 and 8-bit floats below 16, float32 below 8, int8 below 32, right from there on,
      and for float32 at `HIGHEST`. Other releases and GPUs were not run: there it is a warning.
    - jax issues 24209 and 23926 (algorithms), 29698 (a batch of one), 37367 and 23989 (dtypes), 23182 (TF32).
    """

    code = "PAL109"
    name = "dot-operands"
    severity = Severity.ERROR
    backends = frozenset({"tpu", "triton"})
    ops = (
        *(f"jax.numpy.{name}" for name in ("dot", "matmul", "einsum", "tensordot", "inner", "vdot", "vecdot")),
        *(f"jax.lax.{name}" for name in ("dot", "dot_general", "batch_matmul")),
        *_PALLAS_DOTS,
    )
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.einsum("bij,bjk->bik", x_ref[...], y_ref[...])  #!

            def run():
                x = jnp.zeros((2, 64, 64), jnp.bfloat16)
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((2, 64, 64), jnp.bfloat16),
                    compiler_params=plgpu.CompilerParams(),
                )(x, x)
            """
        ),
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=lax.DotAlgorithmPreset.BF16_BF16_F32)  #!

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, y_ref, o_ref):
                for b in range(2):
                    o_ref[b] = jnp.dot(x_ref[b], y_ref[b]).astype(jnp.bfloat16)

            def run():
                x = jnp.zeros((2, 64, 64), jnp.bfloat16)
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((2, 64, 64), jnp.bfloat16),
                    compiler_params=plgpu.CompilerParams(),
                )(x, x)
            """
        ),
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=lax.Precision.HIGHEST)

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        if context.target is None or op.open:
            return
        product = product_of(op.name, list(op.args), dict(op.keywords))
        refusals = _on_triton if context.target.backend == "triton" else _on_tpu
        for refusal in (*_algorithm_keyword(op), *refusals(op, product, context.target.device)):
            found = failure(context, refusal.refuses)
            if found is None:
                continue
            yield context.finding(
                op.site,
                f"`{spelled_function(op.site)}` {refusal.what}",
                help=refusal.instead,
                severity=refusal.severity,
                op=op,
                only_in=found.only_in,
            )
            return


def _algorithm_keyword(op: Op) -> Iterator[_Refusal]:
    if op.argument("algorithm") is not None:
        yield _Refusal(
            "takes no `algorithm`: it is a `precision`", "pass it as `precision=`, a `lax.DotAlgorithmPreset`", _ALWAYS
        )


def _dtypes(product: MatrixProduct) -> tuple[str, str] | None:
    """The factors' dtypes, where both are known and neither is a Python number's."""
    left, right = product.left, product.right
    return None if left.dtype is None or right.dtype is None else (left.dtype, right.dtype)


def _unsigned(product: MatrixProduct) -> str | None:
    return next((d for d in (product.left.dtype, product.right.dtype) if d is not None and d[0] == "u"), None)


def _precision(op: Op) -> tuple[str | None, str | None]:
    """What is passed as precision: ("each" | "preset" | "object" | "plain", its name); None for what is unknown."""
    value = op.argument("precision", 3 if op.name == "jax.lax.dot_general" else 2)
    if op.name in _PALLAS_DOTS:
        value = op.argument("precision")
    if value in (None, NONE):
        return "plain", None
    if isinstance(value, Seq):
        same = len(value.items) == 2 and value.items[0] == value.items[1]
        return ("plain", precision_name(value.items[0])) if same else ("each", None)
    if isinstance(value, External) and ".DotAlgorithmPreset." in value.name:
        return "preset", value.short
    if isinstance(value, CallResult) and value.function.endswith(".DotAlgorithm"):
        return "object", None
    name = precision_name(value)
    return ("plain", name) if name is not None else (None, None)


_MATRICES = "give vectors a second dimension, e.g. `v[None, :]`"


def _on_triton(op: Op, product: MatrixProduct | None, device: str | None) -> Iterator[_Refusal]:
    kind, name = _precision(op)
    if kind == "object":
        yield _Refusal("with a `DotAlgorithm` does not lower on Triton", "pass a `lax.DotAlgorithmPreset`", _ALWAYS)
    if kind == "preset":
        split = name is not None and name.startswith("BF16_BF16_F32_X")
        refused = _ALWAYS if name not in _TRITON_PRESETS else _since("0.4.35", "0.5.3" if split else "0.4.35")
        yield _Refusal(f"with `{name}` does not lower on Triton", "pass `precision=lax.Precision.HIGHEST`", refused)
    if product is None:
        return
    yield from _ranks_on_triton(product)
    unsigned = _unsigned(product)
    if unsigned is not None:
        message = f"of {long_name(unsigned)} operands does not lower on Triton"
        yield _Refusal(message, "cast to a signed type before", _since("0.9.2"))
    yield from _mixed_on_triton(op, product)
    left, right = product.left.shape, product.right.shape
    if left is not None and right is not None and len(left) == len(right) == 2:
        for sizes, last in ((right, "0.8.3"), (left, "0.4.35")):
            small = [size for size in sizes if isinstance(size, int) and size < _MIN_SIDE]
            if small:
                message = f"has a side of {small[0]}: Triton products need {_MIN_SIDE}"
                yield _Refusal(message, "use larger blocks, or `jnp.sum` of a product", _since("0.4.35", last))
    plain = kind == "plain" and name in (None, "DEFAULT", "default")
    if plain and device != "rocm" and op.argument("allow_tf32") is None:
        yield from _short_sums(op, product)
    explicit = op.argument("allow_tf32") is not None or op.argument("preferred_element_type") is not None
    if product.left.dtype == product.right.dtype == "f32" and plain and not explicit and device != "rocm":
        message = "of float32 operands computes in TF32 by default, with 10 bits of mantissa"
        instead = "pass `precision=lax.Precision.HIGHEST` where full float32 is wanted"
        yield _Refusal(message, instead, _ALWAYS, Severity.INFO)


def _short_sums(op: Op, product: MatrixProduct) -> Iterator[_Refusal]:
    """A sum of less than a step of the tensor cores, 256 bits of each row: up to jax 0.8 it is refused."""
    left, right, dtype = product.left.shape, product.right.shape, product.left.dtype
    if left is None or right is None or not len(left) == len(right) == 2 or dtype != product.right.dtype:
        return
    name = "jax.numpy.dot" if op.name in _PALLAS_DOTS and len(op.args) == 2 else op.name
    pairs = contracted(name, left, right, list(op.args), dict(op.keywords))
    sizes = [size for pair in pairs or () for size in pair if isinstance(size, int)]
    least = None if dtype is None else _STEP_BITS.get(dtype, 0) // bits(dtype)
    if least and sizes and min(sizes) < least:
        what = f"sums over {min(sizes)} numbers of {long_name(dtype or '')}: Triton's result is wrong below {least}"
        instead = f"pad both operands with zeros to {least}, or use `jnp.sum` of a product"
        yield _Refusal(what, instead, _since("0.11.2", "0.11.2"))
        yield _Refusal(what, instead, _since("0.9.2"), Severity.WARNING)


def _ranks_on_triton(product: MatrixProduct) -> Iterator[_Refusal]:
    ranks = (product.left.rank, product.right.rank)
    if product.batch:
        what = (
            f"has {'a batch dimension' if product.batch == 1 else 'batch dimensions'}: Triton multiplies two matrices"
        )
        yield _Refusal(what, "put the batch into the grid, with blocks of `(None, m, k)`, or loop over it", _ALWAYS)
    elif product.contract is not None and product.contract != 1:
        what = f"sums over {product.contract or 'no'} axes: Triton products sum over one"
        yield _Refusal(what, "reshape first, or write `jnp.sum(a * b, axis)`", _ALWAYS)
    elif ranks == (1, 2):
        # Earlier releases read a second dimension that is not there, and by chance go on.
        what = "has a vector operand: Triton multiplies two matrices"
        yield _Refusal(what, _MATRICES, _since("0.12.0.1"))
        yield _Refusal(what, _MATRICES, _since("0.4.35", "0.11.2"), Severity.WARNING)
    elif 1 in ranks and None not in ranks:
        yield _Refusal("has a vector operand: Triton multiplies two matrices", _MATRICES, _ALWAYS)
    elif None not in ranks and ranks != (2, 2) and not product.swapped:
        yield _Refusal(
            "has an operand of rank 3 or more: Triton multiplies two matrices",
            "loop over the leading dimension, and load `ref[i]`",
            _ALWAYS,
        )


def _mixed_on_triton(op: Op, product: MatrixProduct) -> Iterator[_Refusal]:
    pair = _dtypes(product)
    if pair is None or pair[0] == pair[1]:
        return
    if op.name == "jax.numpy.matmul" and op.argument("preferred_element_type") is None:
        if all(map(is_float, pair)):
            return  # it promotes floats
        if "bool" in pair:
            return
    if all(map(is_integer, pair)) and bits(pair[0]) == bits(pair[1]):
        return  # the same type to Triton; unsigned ones are refused by themselves
    first, second = map(long_name, pair)
    message = f"of {first} and {second}: Triton products need operands of one dtype"
    yield _Refusal(message, "cast one to the dtype of the other: `a.astype(b.dtype)`", _ALWAYS)


def _on_tpu(op: Op, product: MatrixProduct | None, device: str | None) -> Iterator[_Refusal]:
    kind, name = _precision(op)
    if kind in ("preset", "object"):
        yield _Refusal(
            "with a dot algorithm does not lower on TPU",
            "pass `precision=lax.Precision.HIGHEST`, or leave it out",
            _ALWAYS,
        )
    if kind == "each":
        yield _Refusal(
            "with a precision for each operand does not lower on TPU", "pass one `lax.Precision` for both", _ALWAYS
        )
    if kind == "plain" and name in _HIGH:
        refused = _since("0.4.35", "0.10.2")
        yield _Refusal(
            f"with precision `{name}` does not lower on TPU", "pass `precision=lax.Precision.HIGHEST`", refused
        )
    if product is None:
        return
    yield from _ranks_on_tpu(product)
    unsigned = _unsigned(product)
    if unsigned is not None:
        message = f"of {long_name(unsigned)} operands does not lower on TPU"
        yield _Refusal(message, "cast to a signed type before", _since("0.9.2"))
    yield from _dtypes_on_tpu(op, product, device, full=kind == "plain" and name in _FULL | _HIGH)


def _ranks_on_tpu(product: MatrixProduct) -> Iterator[_Refusal]:
    left, right, contract, batch = product.left.rank, product.right.rank, product.contract, product.batch
    if left is None or right is None or contract is None or batch is None:
        return
    if contract == 0:
        yield _Refusal(
            "sums over no axis, which no TPU product does",
            "multiply with broadcasting: `a[:, None] * b[None, :]`",
            _ALWAYS,
        )
    elif left + right == 2 * contract and batch == 0:
        yield _Refusal("leaves a scalar, which no TPU product does", "write `jnp.sum(a * b)`", _ALWAYS)
    elif batch > 1 or contract > 1:
        axes = "batch" if batch > 1 else "summed"
        what = f"has several {axes} axes: TPU products take one"
        yield _Refusal(what, "reshape first, or loop over one of them", _since("0.4.35", "0.10.2"))
    elif left == batch + contract and right > left:
        yield _Refusal("has a vector on the left: TPU multiplies matrices", _MATRICES, _since("0.4.35", "0.9.2"))
    elif batch and left == right == batch + contract:
        yield _Refusal("multiplies vectors, one by one", "write `jnp.sum(a * b, axis)`", _since("0.8.3", "0.8.3"))
    elif right == 1:
        yield _Refusal("has a vector operand: TPU multiplies matrices", _MATRICES, _since("0.4.35", "0.6.2"))
    elif batch == 0 and max(left, right) > 2:
        yield _Refusal(
            "has an operand of rank 3: TPU multiplies matrices",
            "loop over the leading dimension, and load `ref[i]`",
            _since("0.4.35", "0.6.2"),
        )
    elif batch and left > 2:
        yield _Refusal(
            "has a batch dimension: TPU multiplies matrices",
            "loop over the leading dimension, and load `ref[i]`",
            _since("0.4.35", "0.4.35"),
        )


def _dtypes_on_tpu(op: Op, product: MatrixProduct, device: str | None, *, full: bool) -> Iterator[_Refusal]:
    pair = _dtypes(product)
    result = op.result.dtype if isinstance(op.result, Array) else None
    if pair is not None:
        yield from _not_lowered_on_tpu(pair, result)
        if full:
            yield from _precisions_on_tpu(pair, result, device)
        yield from _not_compiled_on_tpu(pair, result, device, unsigned=_unsigned(product) is not None)


# What the compiler refuses was measured for these: v5e with 0.4.35, v5e and v6e with 0.12.0.1. None: any of them.
_MEASURED_TPUS = (None, "v5e", "v6e")


def _named(pair: tuple[str, str]) -> str:
    return " and ".join(dict.fromkeys(map(long_name, pair)))


def _not_lowered_on_tpu(pair: tuple[str, str], result: str | None) -> Iterator[_Refusal]:
    if result is not None and bits(result) < 32 and (pair[0] != pair[1] or bits(pair[0]) >= 32):
        wide = "float32" if is_float(result) else "int32"
        what = f"of {_named(pair)} accumulates in {long_name(result)}: TPU products need 32 bits"
        yield _Refusal(what, f"pass `preferred_element_type=jnp.{wide}`", _ALWAYS)
    if pair == ("bool", "bool") and result == "bool":
        yield _Refusal(
            "of booleans does not lower on TPU", "cast both operands: `.astype(jnp.bfloat16)`", _since("0.5.3")
        )


def _precisions_on_tpu(pair: tuple[str, str], result: str | None, device: str | None) -> Iterator[_Refusal]:
    if set(pair) == {"bf16"}:
        what = "of bfloat16 operands takes no precision above the default on TPU"
        severity = Severity.ERROR if device in _MEASURED_TPUS else Severity.WARNING
        yield _Refusal(what, "leave `precision` out: bfloat16 products are exact", _ALWAYS, severity)
    elif all(map(is_float, pair)) and set(pair) != {"f32"} and "f16" not in pair:
        # Compiled by 0.6.2 to 0.12.0.1 for v5e, v6e and, from 0.8.3 on, tpu7x: every mix, in either order.
        what = f"of {_named(pair)} takes no precision above the default on TPU: that needs float32 on both sides"
        severity = Severity.ERROR if device in (*_MEASURED_TPUS, "tpu7x") else Severity.WARNING
        yield _Refusal(what, "cast both operands, `.astype(jnp.float32)`, or leave `precision` out", _ALWAYS, severity)
    elif _takes_no_precision(pair, result, device):
        what = f"of {_named(pair)} takes no precision above the default on {'TPU7x' if device == 'tpu7x' else 'TPU'}"
        yield _Refusal(what, "leave `precision` out, or cast both operands: `.astype(jnp.float32)`", _ALWAYS)


def _not_compiled_on_tpu(
    pair: tuple[str, str], result: str | None, device: str | None, *, unsigned: bool
) -> Iterator[_Refusal]:
    names = _named(pair)
    severity = Severity.ERROR if device in _MEASURED_TPUS else Severity.WARNING
    if "f16" in pair:
        yield _Refusal(
            "of float16 operands does not compile on TPU",
            "cast both operands: `.astype(jnp.bfloat16)`",
            _ALWAYS,
            severity,
        )
    if device == "v4" and pair == ("i8", "i8"):
        yield _Refusal(
            "of int8 does not compile on TPU v4",
            "cast both operands: `.astype(jnp.bfloat16)`",
            _ALWAYS,
            Severity.WARNING,
        )
    integers = all(map(is_integer, pair))
    # tpu7x converts narrow integers to floats, and sums to either: compiled for it by 0.8.3, 0.10.2, 0.11.2, 0.12.0.1.
    # A float and an int8 were compiled by 0.12.0.1 for each TPU: summed in float32 on all, in int32 on tpu7x alone.
    mixed = any(map(is_float, pair)) and "i8" in pair and "f16" not in pair
    converts = (integers and max(map(bits, pair)) <= 8) or (all(map(is_float, pair)) and "f16" not in pair) or mixed
    if converts and device == "tpu7x":
        return
    if converts and device is None:
        severity = Severity.WARNING
    if integers and pair[0] == pair[1] and bits(pair[0]) >= 16 and not unsigned:
        yield _Refusal(f"of {names} does not compile on TPU", "cast to int8 or bfloat16", _ALWAYS, severity)
    elif integers and pair[0] != pair[1] and not unsigned:
        yield _Refusal(
            f"of {names} does not compile on TPU", "cast both operands: `.astype(jnp.int8)`", _ALWAYS, severity
        )
    elif integers and result == "f32":
        what = f"of {names} does not accumulate in float32 before tpu7x"
        yield _Refusal(what, "pass `preferred_element_type=jnp.int32`", _ALWAYS, severity)
    elif (all(map(is_float, pair)) or mixed) and result == "i32":
        what = f"of {names} does not accumulate in int32 before tpu7x"
        yield _Refusal(what, "pass `preferred_element_type=jnp.float32`", _ALWAYS, severity)


def _takes_no_precision(pair: tuple[str, str], result: str | None, device: str | None) -> bool:
    """Integers of 4 or 8 bits, at a higher precision: compiled for each TPU by releases from 0.6.2 to 0.12.0.1.

    A product with a float below 32 bits compiles for none of them; for tpu7x, none that is summed in float32.
    """
    others = {dtype for dtype in pair if dtype not in ("i8", "i4")}
    if len(others) == 2 or (not others and result != "f32"):
        return False
    narrow_float = bool(others) and all(is_float(dtype) and bits(dtype) < 32 and dtype != "f16" for dtype in others)
    return narrow_float or (device == "tpu7x" and others <= {"f32"})
