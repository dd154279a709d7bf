"""Shapes and dtypes of products: dot, matmul, einsum and their like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.operands import Keywords, argument, axes, broadcast, shape
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import element_of, operand_element, promote
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import NONE, UNKNOWN, Array, CallResult, Const, Dim, External, Seq, Shape, Value
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.kinds import Element

# By position only lax's forms take the result's type: dot(lhs, rhs, precision, type), dot_general(lhs, rhs, numbers,
# precision, type); jnp's have it by name.
_TYPE_AT = {"jax.lax.dot": 3, "jax.lax.dot_general": 4}
# Where the precision stands; 99: by name only.
_PRECISION_AT = {
    **dict.fromkeys((f"jax.numpy.{name}" for name in "dot matmul inner vdot vecdot tensordot einsum".split()), 99),
    "jax.lax.dot": 2,
    "jax.lax.dot_general": 3,
}


@frozen
class Dimensions:
    """The dimension numbers of a product: which axes are summed over, and which are batches."""

    contract: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


def precision_name(value: Value | None) -> str | None:
    """ "HIGHEST" of `lax.Precision.HIGHEST`, "highest" of the string; None for what is no such constant."""
    if isinstance(value, External) and ".Precision." in value.name:
        return value.short
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def precision_set(value: Value) -> Value | None:
    """What `jax.default_matmul_precision(...)` sets; None for other values."""
    if not isinstance(value, CallResult) or value.function != "jax.default_matmul_precision":
        return None
    return value.argument("new_val", 0) or UNKNOWN


def with_default_precision(name: str, arguments: Arguments, default: Value | None) -> Arguments:
    """The arguments of a product, with the precision that is set around it where it names none."""
    at = _PRECISION_AT.get(name)
    if default is None or at is None or arguments.open or arguments.get("precision", at) not in (None, NONE):
        return arguments
    if at < len(arguments.positional):
        return Arguments([*arguments.positional[:at], default, *arguments.positional[at + 1 :]], arguments.keywords)
    return Arguments(arguments.positional, {**arguments.keywords, "precision": default})


def operands(args: list[Value], keywords: Keywords) -> list[Value]:
    """The two factors, passed by position or by name."""
    names = (("a", "b"), ("lhs", "rhs"), ("x1", "x2"), ("x", "y"))
    pairs = [[keywords[name] for name in pair] for pair in names if all(name in keywords for name in pair)]
    return pairs[0] if pairs else args[:2]


def dimensions(value: Value | None, ranks: tuple[int, int]) -> Dimensions | None:
    """`(((1,), (0,)), ((), ()))` as numbers; None where they are not known."""
    if not isinstance(value, Seq) or len(value.items) != 2:
        return None
    pairs = []
    for pair in value.items:
        if not isinstance(pair, Seq) or len(pair.items) != 2:
            return None
        left, right = (axes(item, rank) for item, rank in zip(pair.items, ranks, strict=True))
        if left is None or right is None:
            return None
        pairs.append((left, right))
    return Dimensions(pairs[0], pairs[1])


def product_dtype(name: str, args: list[Value], keywords: Keywords) -> tuple[Element, bool]:
    requested = argument(args, keywords, "preferred_element_type", _TYPE_AT.get(name, 99))
    if requested is not None:
        return element_of(requested), False
    return promote([operand_element(value) for value in operands(args, keywords)])


def infer_product(name: str, args: list[Value], keywords: Keywords) -> Value:
    short = last_part(name)
    dtype, weak = product_dtype(name, args, keywords)
    left, right = (shape(value) for value in operands(args, keywords))
    result: Shape | None = None
    if left is not None and right is not None:
        result = _SHAPES[short](left, right, args, keywords)
    return Array(result, dtype, weak)


def _dot(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    numbers = argument(args, keywords, "dimension_numbers", 99)
    if numbers is not None:
        return _general(left, right, dimensions(numbers, (len(left), len(right))))
    if not left or not right:
        return left or right
    if argument(args, keywords, "trans_a", 2) == Const(True):
        left = (*left[:-2], left[-1], left[-2])
    if argument(args, keywords, "trans_b", 3) == Const(True):
        right = (*right[:-2], right[-1], right[-2])
    return (*left[:-1], *(right[:-2] if len(right) > 1 else ()), *(right[-1:] if len(right) > 1 else ()))


def _matmul(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    if not left or not right:
        return None
    batch = broadcast([left[:-2], right[:-2]])
    rows = left[-2:-1]
    columns = right[-1:] if len(right) > 1 else ()
    return None if batch is None else (*batch, *rows, *columns)


def _dot_general(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    numbers = argument(args, keywords, "dimension_numbers", 2)
    return _general(left, right, dimensions(numbers, (len(left), len(right))))


def _general(left: Shape, right: Shape, numbers: Dimensions | None) -> Shape | None:
    if numbers is None:
        return None
    rest_left = (size for at, size in enumerate(left) if at not in (*numbers.contract[0], *numbers.batch[0]))
    rest_right = (size for at, size in enumerate(right) if at not in (*numbers.contract[1], *numbers.batch[1]))
    return (*(left[at] for at in numbers.batch[0]), *rest_left, *rest_right)


def _tensordot(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    return _general(left, right, _summed(argument(args, keywords, "axes", 2) or Const(2), len(left), len(right)))


def _summed(wanted: Value, left: int, right: int) -> Dimensions | None:
    """The axes that `tensordot` sums over, given as their number or as two lists."""
    count = integer(wanted)
    if count is not None and 0 <= count <= min(left, right):
        return Dimensions((tuple(range(left - count, left)), tuple(range(count))))
    if not isinstance(wanted, Seq) or len(wanted.items) != 2:
        return None
    summed = (axes(wanted.items[0], left), axes(wanted.items[1], right))
    return None if summed[0] is None or summed[1] is None else Dimensions((summed[0], summed[1]))


def _inner(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    if not left or not right:
        return left or right
    return (*left[:-1], *right[:-1])


def _vecdot(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    if argument(args, keywords, "axis", 99) not in (None, Const(-1)):
        return None
    return broadcast([left[:-1], right[:-1]])


def _outer(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    sizes = [sizes[0] if len(sizes) == 1 else None for sizes in (left, right)]
    return tuple(sizes)


def _scalar(left: Shape, right: Shape, args: list[Value], keywords: Keywords) -> Shape | None:
    return ()


_SHAPES: dict[str, Callable[[Shape, Shape, list[Value], Keywords], Shape | None]] = {
    "dot": _dot,
    "matmul": _matmul,
    "batch_matmul": _matmul,
    "dot_general": _dot_general,
    "tensordot": _tensordot,
    "inner": _inner,
    "vecdot": _vecdot,
    "vdot": _scalar,
    "outer": _outer,
}
PRODUCTS = " ".join(_SHAPES)


def contracted(
    name: str, left: Shape, right: Shape, args: list[Value], keywords: Keywords
) -> list[tuple[Dim, Dim]] | None:
    """The pairs of sizes that a product of these shapes needs equal: summed over, or batches of `dot_general`."""
    short = last_part(name)
    if not left or not right:
        return None
    if short == "inner":
        return [(left[-1], right[-1])]
    numbers = argument(args, keywords, "dimension_numbers", 2 if short == "dot_general" else 99)
    if numbers is not None:
        known = dimensions(numbers, (len(left), len(right)))
        return None if known is None else _sizes_at(left, right, known)
    if short == "tensordot":
        summed = _summed(argument(args, keywords, "axes", 2) or Const(2), len(left), len(right))
        return None if summed is None else _sizes_at(left, right, summed)
    if short not in ("dot", "matmul") or {"trans_a", "trans_b"} & keywords.keys() or "pallas" in name:
        return None
    return [(left[-1], right[-2] if len(right) > 1 else right[-1])]


def _sizes_at(left: Shape, right: Shape, numbers: Dimensions) -> list[tuple[Dim, Dim]]:
    pairs = [*zip(*numbers.contract, strict=False), *zip(*numbers.batch, strict=False)]
    return [(left[one], right[other]) for one, other in pairs]


def subscripts(value: Value | None) -> tuple[list[str], str] | None:
    """The letters of each operand and of the result of an einsum: those that occur once where it has no arrow."""
    if not isinstance(value, Const) or not isinstance(value.value, str):
        return None
    inputs, arrow, output = value.value.replace(" ", "").partition("->")
    if not arrow:
        letters = inputs.replace(",", "").replace(".", "")
        output = ("..." if "..." in inputs else "") + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        )
    return inputs.split(","), output


def infer_einsum(name: str, args: list[Value], keywords: Keywords) -> Value:
    requested = argument(args, keywords, "preferred_element_type", 99)
    dtype, weak = (
        (element_of(requested), False) if requested is not None else promote([operand_element(v) for v in args[1:]])
    )
    pattern = subscripts(args[0] if args else keywords.get("subscripts"))
    if pattern is None:
        return Array(None, dtype, weak)
    inputs, output = pattern
    sizes: dict[str, Dim] = {}
    rest: list[Shape | None] = []
    for letters, value in zip(inputs, args[1:], strict=False):
        before, dots, after = letters.partition("...")
        sizes_of = shape(value)
        if sizes_of is None or len(sizes_of) < len(before) + len(after) or (not dots and len(sizes_of) != len(before)):
            if dots:
                rest.append(None)
            continue
        last = len(sizes_of) - len(after)
        sizes.update(zip(before, sizes_of, strict=False))
        sizes.update(zip(after, sizes_of[last:], strict=True))
        if dots:
            rest.append(sizes_of[len(before) : last])
    before, dots, after = output.partition("...")
    batch = broadcast(rest) if dots else ()
    if batch is None:
        return Array(None, dtype, weak)
    result = (*(sizes.get(letter) for letter in before), *batch, *(sizes.get(letter) for letter in after))
    return Array(result, dtype, weak)


# -- what a product is to a backend ----------------------------------------------------------------------------


@frozen
class MatrixProduct:
    """A product as the backend gets it: two factors, the numbers of axes summed over and of batch axes.

    None where they are not known; `left` and `right` are the factors as written.
    """

    left: Array
    right: Array
    contract: int | None
    batch: int | None
    swapped: bool = False  # the backend gets the factors the other way round


def product_of(name: str, args: list[Value], keywords: Keywords) -> MatrixProduct | None:
    """What `name(*args, **keywords)` multiplies; None for what is no product of two arrays."""
    short = last_part(name)
    factors = args[1:] if short == "einsum" else operands(args, keywords)
    if len(factors) != 2:
        return None
    left, right = factors
    if not isinstance(left, Array) or not isinstance(right, Array):
        return None
    if short == "einsum":
        pattern = subscripts(args[0])
        counts = (None, None) if pattern is None else _einsum_counts(*pattern)
        return MatrixProduct(left, right, *counts)
    if short == "vdot":
        return MatrixProduct(Array((None,), left.element), Array((None,), right.element), 1, 0)
    ranks = (left.rank, right.rank)
    if ranks[0] is None or ranks[1] is None:
        return MatrixProduct(left, right, None, None)
    if 0 in ranks:
        return None  # a scalar multiplies
    numbers = argument(args, keywords, "dimension_numbers", 2 if short == "dot_general" else 99)
    if numbers is not None:
        known = dimensions(numbers, (ranks[0], ranks[1]))
        counts = (None, None) if known is None else (len(known.contract[0]), len(known.batch[0]))
        return MatrixProduct(left, right, *counts)
    if short == "tensordot":
        wanted = argument(args, keywords, "axes", 2) or Const(2)
        first = wanted.items[0] if isinstance(wanted, Seq) and wanted.items else None
        count = len(first.items) if isinstance(first, Seq) else 1 if first is not None else integer(wanted)
        return MatrixProduct(left, right, count, 0)
    if short in ("matmul", "batch_matmul", "vecdot"):
        batch = min(ranks[0], ranks[1]) - (1 if short == "vecdot" else 2)
        shared = [*(left.shape or ())[-2 - batch : -2], *(right.shape or ())[-2 - batch : -2]] if batch > 0 else []
        if short == "matmul" and any(not isinstance(size, int) or size == 1 for size in shared):
            return MatrixProduct(left, right, None, None)  # batch axes of size 1 are squeezed before
        swapped = short == "matmul" and ranks[0] == 2 and ranks[1] > 2
        return MatrixProduct(left, right, 1, max(batch, 0), swapped)
    return MatrixProduct(left, right, 1, 0)


def _einsum_counts(inputs: list[str], output: str) -> tuple[int | None, int | None]:
    if len(inputs) != 2 or any("." in letters or len(set(letters)) < len(letters) for letters in inputs):
        return None, None
    shared = set(inputs[0]) & set(inputs[1])
    return len(shared - set(output)), len(shared & set(output))
