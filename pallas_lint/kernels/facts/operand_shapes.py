"""Operands whose shapes, or dtypes, jax refuses together: reshapes, broadcasting, products, joins."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.arrays import promotes
from pallas_lint.kernels.library.operands import argument, axes, shape
from pallas_lint.kernels.library.products import PRODUCTS, contracted, operands, subscripts
from pallas_lint.kernels.model.dtypes import long_name
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.symbols import default_of
from pallas_lint.kernels.model.values import Array, Const, Seq, Sym, SymbolOwner, shape_of, spelled_dim, spelled_shape
from pallas_lint.records import evolve, frozen
from pallas_lint.syntax.nesting import spelled_function
from pallas_lint.text.wording import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.kernels.model.values import Dim, Shape, Value

_JOINS = frozenset({"concatenate", "concat", "stack", "vstack", "hstack"})
_SELECTS = frozenset({"jax.numpy.where", "jax.lax.select"})
_PRODUCTS = frozenset(PRODUCTS.split())
_OF_ONE_DTYPE = frozenset(
    f"jax.lax.{name}"
    for name in "add sub mul div rem max min bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical"
    " shift_right_arithmetic nextafter atan2 eq ne lt le gt ge".split()
)
_TRANSPOSE_FACTOR = "transpose an operand: the other dimension has the size that is summed over"
_TRANSPOSES = frozenset({"transpose", "permute_dims"})
_OUTER_PRODUCTS = frozenset({"jax.numpy.dot", "jax.lax.dot", "jax.numpy.tensordot"})
_REDUCTIONS = frozenset(
    f"jax.numpy.{name}" for name in "sum prod max min mean std var any all argmax argmin cumsum cumprod".split()
)


@frozen
class ShapeMismatch:
    """Why jax refuses an operation, and what to write instead."""

    reason: str
    instead: str
    pairs: tuple[tuple[Dim, Dim], ...] = ()  # sizes with other names that would have to be one number


def shape_mismatch(op: Op) -> ShapeMismatch | None:
    """Why jax refuses the shapes of the operands, whatever the sizes that are not known; None where it may not."""
    if op.open:
        return None
    args, keywords = list(op.args), dict(op.keywords)
    if op.short == "reshape":
        return _reshape(args, keywords)
    if op.short in _PRODUCTS:
        return _product(op, args, keywords)
    if op.short == "einsum":
        return _einsum(args, keywords)
    if op.short in _JOINS:
        return _join(op.short, args, keywords)
    if op.name == "jax.numpy.broadcast_to":
        return _broadcast_to(args, keywords)
    if op.name == "jax.numpy.split":
        return _split(args, keywords)
    if op.short in _TRANSPOSES:
        return _transpose(args, keywords)
    if op.short == "squeeze":
        return _squeeze(args, keywords)
    if op.name in _REDUCTIONS:
        return _axis(args, keywords)
    if op.name in _SELECTS or promotes(op.name):
        return _broadcast([value for value in (*args, *keywords.values()) if isinstance(value, Array)])
    return None


def dtype_mismatch(op: Op) -> tuple[str, str] | None:
    """The dtypes of two arrays that a function of lax, which promotes nothing, is given; None where they may be one."""
    if op.open or op.keywords or op.name not in _OF_ONE_DTYPE or len(op.args) != 2:
        return None
    one, other = (value.dtype if isinstance(value, Array) and not value.weak else None for value in op.args)
    if one is None or other is None or one == other:
        return None
    return long_name(one), long_name(other)


def _sizes(sizes: Shape | None) -> tuple[int, ...] | None:
    """A shape of numbers alone."""
    known = tuple(size for size in sizes or () if isinstance(size, int))
    return known if sizes is not None and len(known) == len(sizes) else None


def _differ(one: Dim, other: Dim) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


# -- reshape -------------------------------------------------------------------------------------------------------


def _reshape(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    if not args or not isinstance(args[0], Array) or not keywords.keys() <= {"shape", "new_sizes", "newshape"}:
        return None
    wanted = [*args[1:], *keywords.values()]
    before = _sizes(args[0].shape)
    after = _sizes(shape_of(wanted[0] if len(wanted) == 1 else Seq(tuple(wanted))))
    if before is None or after is None or any(size < -1 for size in after) or after.count(-1) > 1:
        return None
    total, rest = prod(before), prod(size for size in after if size != -1)
    if total == rest if -1 not in after else rest and total % rest == 0:
        return None
    count = f"{rest} elements" if -1 not in after else f"a multiple of {rest} elements"
    return ShapeMismatch(
        f"the value has shape {spelled_shape(before)}, {total} elements, and {spelled_shape(after)} takes {count}",
        "a reshape keeps the number of elements: check the sizes that it is computed from",
    )


# -- broadcasting --------------------------------------------------------------------------------------------------


def _broadcast(values: list[Array]) -> ShapeMismatch | None:
    shapes = [value.shape for value in values if value.shape is not None]
    at = _unequal_from_the_end(shapes)
    if at is None:
        return None
    instead = "give the operands equal sizes there, or size 1 to the one to be repeated: `x[:, None]`, `keepdims=True`"
    return ShapeMismatch(f"shapes {_listed(shapes)} do not broadcast: they differ in dimension {at}", instead)


def _unequal_from_the_end(shapes: list[Shape]) -> int | None:
    """The last dimension, counted from the end (-1), in which two of these shapes have other sizes, none of them 1."""
    for at in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {size for sizes in shapes if len(sizes) >= at and isinstance(size := sizes[-at], int) and size != 1}
        if len(sizes) > 1:
            return -at
    return None


def _listed(shapes: Iterable[Shape]) -> str:
    return listed([*dict.fromkeys(map(spelled_shape, shapes))])


def _broadcast_to(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    before, wanted = _sizes(shape(args[0])) if args else None, argument(args, keywords, "shape", 1)
    after = _sizes(shape_of(wanted)) if wanted is not None else None
    if before is None or after is None:
        return None
    pairs = zip(reversed(before), reversed(after), strict=False)
    if len(before) <= len(after) and all(one in (1, other) for one, other in pairs):
        return None
    reason = f"shape {spelled_shape(before)} does not broadcast to {spelled_shape(after)}"
    return ShapeMismatch(reason, "sizes are compared from the last dimension on: `x[:, None]` puts one of size 1 there")


# -- axes ----------------------------------------------------------------------------------------------------------


def _split(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    sizes, count = _sizes(shape(args[0])) if args else None, argument(args, keywords, "indices_or_sections", 1)
    at = axes(argument(args, keywords, "axis", 2) or Const(0), len(sizes)) if sizes else None
    parts = integer(count) if count is not None else None
    if not sizes or not at or not parts or parts < 0 or sizes[at[0]] % parts == 0:
        return None
    reason = f"dimension {at[0]} of shape {spelled_shape(sizes)} has no {parts} equal parts"
    return ShapeMismatch(reason, "`jnp.array_split` makes parts of different sizes; a list has the places to split at")


def _transpose(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    sizes, order = _sizes(shape(args[0])) if args else None, args[1] if len(args) == 2 else keywords.get("axes")
    named = keywords.get("permutation", order)
    if sizes is None or not isinstance(named, Seq) or named.open or len(named.items) == len(sizes):
        return None
    reason = f"{len(named.items)} axes are given for shape {spelled_shape(sizes)}"
    return ShapeMismatch(reason, "name each dimension of the operand once")


def _axis(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    sizes, at = _sizes(shape(args[0])) if args else None, argument(args, keywords, "axis", 1)
    wanted = at.items if isinstance(at, Seq) and not at.open else (at,)
    numbers = [item.value for item in wanted if isinstance(item, Const) and item.kind is int]
    outside = [] if sizes is None else [axis for axis in numbers if not -len(sizes) <= axis < len(sizes)]
    if sizes is None or not outside:
        return None
    reason = f"shape {spelled_shape(sizes)} has no dimension {outside[0]}"
    return ShapeMismatch(reason, f"its dimensions are 0 to {len(sizes) - 1}" if sizes else "it is a single number")


def _squeeze(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    sizes, at = _squeezed(args, keywords)
    wrong = next((axis for axis in at if _differ(sizes[axis], 1)), None)
    return None if wrong is None else _not_one(sizes, wrong)


def _squeezed(args: list[Value], keywords: dict[str, Value]) -> tuple[Shape, tuple[int, ...]]:
    """The shape of what is squeezed, and the dimensions that are named."""
    sizes = shape(args[0]) if args else None
    wanted = argument(args, keywords, "dimensions" if "dimensions" in keywords else "axis", 1)
    at = axes(wanted, len(sizes)) if sizes and wanted is not None else None
    return sizes or (), at or ()


def _not_one(sizes: Shape, wrong: int) -> ShapeMismatch:
    reason = f"dimension {wrong} of shape {spelled_shape(sizes)} is not 1"
    return ShapeMismatch(reason, "only dimensions of size 1 are squeezed: index the others, `x[0]`")


# -- products ------------------------------------------------------------------------------------------------------


def _product(op: Op, args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    factors = operands(args, keywords)
    left, right = map(shape, factors) if len(factors) == 2 else (None, None)
    if left is None or right is None:
        return None
    pairs = contracted(op.name, left, right, args, keywords)
    different = next(((one, other) for one, other in pairs or () if _differ(one, other)), None)
    if different is None:
        at = _unequal_from_the_end([left[:-2], right[:-2]]) if op.short == "matmul" else None
        if at is None:
            return None
        reason = f"batch dimensions of shapes {spelled_shape(left)} and {spelled_shape(right)} do not broadcast"
        return ShapeMismatch(reason, "give both operands the same leading dimensions")
    reason = f"shapes {spelled_shape(left)} and {spelled_shape(right)}: {different[0]} is summed with {different[1]}"
    return ShapeMismatch(reason, "the dimensions to be summed over need equal sizes: transpose or slice an operand")


def _einsum(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    pattern = subscripts(args[0] if args else keywords.get("subscripts"))
    if pattern is None or len(pattern[0]) != len(args) - 1:
        return None
    shapes = [shape(value) for value in args[1:]]
    found: dict[str, int] = {}
    for letters, sizes in zip(pattern[0], shapes, strict=True):
        if sizes is None or "." in letters:
            continue
        if len(letters) != len(sizes):
            reason = f"`{letters}` names {len(letters)} dimensions of an operand of shape {spelled_shape(sizes)}"
            return ShapeMismatch(reason, "write one letter per dimension")
        for letter, size in zip(letters, sizes, strict=True):
            if isinstance(size, int) and size != 1 and found.setdefault(letter, size) != size:
                reason = f"`{letter}` is {found[letter]} and {size} in shapes {_listed(s for s in shapes if s)}"
                return ShapeMismatch(reason, "one letter stands for one size")
    return None


# -- sizes that have only names ------------------------------------------------------------------------------------


def named_mismatch(op: Op) -> ShapeMismatch | None:
    """Why shapes of named sizes fit only where two names stand for one number, and would fit if an operand was
    transposed, or with a number that a parameter is not by default.
    """
    args, keywords = list(op.args), dict(op.keywords)
    if op.open or op.short == "reshape":
        return None if op.open else _named_reshape(args, keywords)
    if op.short == "squeeze":
        return _named_squeeze(args, keywords)
    if op.short == "einsum":
        return _named_einsum(args, keywords)
    if op.short not in _PRODUCTS:
        return _named_broadcast(args) if promotes(op.name) or op.name in _SELECTS else None
    factors = operands(args, keywords)
    left, right = map(shape, factors) if len(factors) == 2 else (None, None)
    if left is None or right is None or len(left) != 2 or len(right) != 2 or None in (*left, *right):
        return None
    return _named_product(contracted(op.name, left, right, args, keywords), left, right)


def _named_broadcast(args: list[Value]) -> ShapeMismatch | None:
    """Two shapes among the operands that would broadcast if one was transposed; of more dimensions, if two of them
    were exchanged that both have.
    """
    shapes = list(dict.fromkeys(sizes for value in args if (sizes := shape(value)) != ()))
    left, right = shapes if len(shapes) == 2 else (None, None)
    if left is None or right is None or None in (*left, *right):
        return None
    if abs(len(left) - len(right)) == 1:
        return _named_lost(*sorted((left, right), key=len))
    if not len(left) == len(right) > 1:
        return None
    pairs = tuple((a, b) for a, b in zip(left, right, strict=True) if a != b and 1 not in (a, b))
    if len(left) == 2:
        turned = _broadcasts(left, right[::-1]) or _broadcasts(left[::-1], right)
    else:
        turned = len(pairs) == 2 and pairs[0] == pairs[1][::-1]
    if not pairs or not turned:
        return None
    reason = f"shapes {_listed((left, right))} broadcast only where {_equalities(pairs)}"
    return ShapeMismatch(reason, "transpose one of the operands", pairs)


def _equalities(pairs: Iterable[tuple[Dim, Dim]]) -> str:
    return " and ".join(f"{spelled_dim(one)} is {spelled_dim(other)}" for one, other in pairs)


def _named_lost(part: Shape, whole: Shape) -> ShapeMismatch | None:
    """A shape that has all sizes of another but one within, so that those before it meet the next one."""
    pairs = tuple((a, b) for a, b in zip(part, whole[1:], strict=True) if a != b and 1 not in (a, b))
    lost = [at for at in range(1, len(whole)) if (*whole[:at], *whole[at + 1 :]) == part]
    if not pairs or not lost or len(set(part)) < len(part):
        return None
    reason = f"shapes {_listed((whole, part))} broadcast only where {_equalities(pairs)}"
    return ShapeMismatch(reason, f"give it a dimension of size 1 at place {lost[0]}: `x[:, None]`", pairs)


def _named_product(pairs: Sequence[tuple[Dim, Dim]] | None, left: Shape, right: Shape) -> ShapeMismatch | None:
    if pairs is None or len(pairs) != 1:
        return None
    [(one, other)] = pairs
    free = right[1] if right[0] == other else right[0]
    exchanged = (one, other) == (left[1], right[0]) and right[1] == left[0] and _are_unlike(one, other)
    if one == other or not (free == one or exchanged) or left == right:  # of one shape they are square
        return None
    reason = f"shapes {_listed((left, right))}: {spelled_dim(one)} is summed with {spelled_dim(other)}"
    instead = _TRANSPOSE_FACTOR if free == one else "exchange the operands: the sizes fit the other way round"
    return ShapeMismatch(reason, instead, ((one, other),))


def _are_unlike(one: Dim, other: Dim) -> bool:
    """Whether they are sizes of two kinds: two of one array, or one of an array and a block's, which has a default."""
    if not isinstance(one, Sym) or not isinstance(other, Sym):
        return False
    arrays = [size.text.partition(".shape[")[0] for size in (one, other) if ".shape[" in size.text]
    if len(arrays) == 2:
        return arrays[0] == arrays[1]
    return len(arrays) == 1 and any(default_of(size) is not None for size in (one, other))


def _named_einsum(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    """A letter that stands for two sizes, each one if the last two letters of an operand were exchanged."""
    pattern = subscripts(args[0] if args else keywords.get("subscripts"))
    shapes = [sizes for value in args[1:] if (sizes := shape(value)) is not None and None not in sizes]
    if pattern is None or not len(pattern[0]) == len(shapes) == 2:
        return None
    left, right = pattern[0]
    if any(len(letters) != len(sizes) or "." in letters for letters, sizes in zip((left, right), shapes, strict=True)):
        return None
    pairs = () if shapes[0] == shapes[1] else _unequal_letters((left, right), shapes)  # of one shape they are square
    turned = [(left, right[:-2] + right[:-3:-1]), (left[:-2] + left[:-3:-1], right)]
    if not pairs or all(_unequal_letters(letters, shapes) for letters in turned):
        return None
    reason = f"shapes {_listed(shapes)}: {spelled_dim(pairs[0][0])} is summed with {spelled_dim(pairs[0][1])}"
    return ShapeMismatch(reason, _TRANSPOSE_FACTOR, pairs)


def _unequal_letters(letters: tuple[str, str], shapes: list[Shape]) -> tuple[tuple[Dim, Dim], ...]:
    """The pairs of sizes that a letter stands for in two operands, where they differ and none is 1."""
    one, other = (dict(zip(each, sizes, strict=True)) for each, sizes in zip(letters, shapes, strict=True))
    pairs = ((size, other[letter]) for letter, size in one.items() if letter in other)
    return tuple((a, b) for a, b in pairs if a != b and 1 not in (a, b))


def _named_reshape(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    """Elements that have a factor too many on one side, a number or a parameter that is not 1 by default."""
    before = shape(args[0]) if args else None
    wanted = [*args[1:], *(value for name, value in keywords.items() if name in ("shape", "new_sizes", "newshape"))]
    after = shape_of(wanted[0] if len(wanted) == 1 else Seq(tuple(wanted)))
    if before is None or after is None or None in (*before, *after) or -1 in after:
        return None
    more, less = _without(after, before), _without(before, after)
    factors = [size for size in (more or less) if size != 1]
    if (more and less) or not factors or not all(_is_more_than_one(size) for size in factors):
        return None
    reason = f"the value has shape {spelled_shape(before)}, and {spelled_shape(after)} is another number of elements"
    return ShapeMismatch(reason, "a reshape keeps the number of elements: check the sizes that it is computed from")


def _named_squeeze(args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    """A named size that is taken for 1, beside a dimension that is 1 and stays."""
    sizes, at = _squeezed(args, keywords)
    wrong = next((axis for axis in at if isinstance(sizes[axis], Sym)), None)
    has_other = any(size == 1 for axis, size in enumerate(sizes) if axis not in at)
    return _not_one(sizes, wrong) if wrong is not None and has_other else None


def lost_dimension(op: Op) -> ShapeMismatch | None:
    """What was made of an array without `keepdims`, and goes back to it along another dimension."""
    values = [value for value in op.args if isinstance(value, Array)]
    if len(values) != 2 or not promotes(op.name):
        return None
    for whole, part in (values, values[::-1]):
        made = part.origin
        if made is not None and made.name in _REDUCTIONS and made.args and made.args[0] is whole:
            return _lost_dimension(whole, part, made)
    return None


def _lost_dimension(whole: Array, part: Array, made: Op) -> ShapeMismatch | None:
    sizes, at = whole.shape, argument(list(made.args), dict(made.keywords), "axis", 1)
    if sizes is None or part.shape is None or len(part.shape) != len(sizes) - 1 or not isinstance(at, Const):
        return None
    lost = axes(at, len(sizes))
    if not lost or not any(map(_is_more_than_one, sizes[: lost[0]])):  # what is before it moves by one
        return None
    before, after = map(spelled_shape, (sizes, part.shape))
    reason = f"`{made.short}` without `keepdims` made {after} of {before}, and what it lost was not the first dimension"
    return ShapeMismatch(reason, "keep the dimension: `keepdims=True`, or put it back: `x[:, None]`")


def _without(sizes: Shape, others: Shape) -> list[Dim]:
    """The sizes that the others do not have, or less often."""
    return [size for at, size in enumerate(sizes) if sizes[: at + 1].count(size) > others.count(size)]


def _is_more_than_one(size: Dim) -> bool:
    return size > 1 if isinstance(size, int) else (default_of(size) or 0) > 1


def _broadcasts(one: Shape, other: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(one, other, strict=True))


def default_mismatch(op: Op) -> tuple[ShapeMismatch, dict[Sym, int]] | None:
    """Why jax refuses the operands where a function's parameters have their defaults, and the sizes that this gives."""
    taken: dict[Sym, int] = {}
    args = tuple(_with_defaults(value, taken) for value in op.args)
    if len({owner for size in taken for owner in size.owners}) != 1 or any(map(_is_of_kernel, taken)):
        return None
    mismatch = shape_mismatch(evolve(op, args=args))
    return None if mismatch is None else (mismatch, taken)


def _with_defaults(value: Value, taken: dict[Sym, int]) -> Value:
    if isinstance(value, Seq):
        return evolve(value, items=tuple(_with_defaults(item, taken) for item in value.items))
    if not isinstance(value, Array) or value.shape is None:
        return value
    defaults = {size: number for size in value.shape if isinstance(size, Sym) and (number := default_of(size))}
    taken.update(defaults)
    return evolve(
        value, shape=tuple(defaults.get(size, size) if isinstance(size, Sym) else size for size in value.shape)
    )


def _is_of_kernel(size: Sym) -> bool:
    return not all(isinstance(owner, SymbolOwner) and not owner.in_kernel for owner in size.owners)


# -- joins ---------------------------------------------------------------------------------------------------------


def _join(short: str, args: list[Value], keywords: dict[str, Value]) -> ShapeMismatch | None:
    parts = args[0] if args else keywords.get("arrays", keywords.get("operands"))
    if not isinstance(parts, Seq) or parts.open:
        return None
    shapes = [sizes for part in parts.items if (sizes := shape(part)) is not None]
    if len(shapes) < 2:
        return None
    instead = "all parts need the same sizes but along the joined axis: slice, pad or broadcast them before"
    if short in ("vstack", "hstack"):
        return None  # they bring their parts to one rank before
    if len({len(sizes) for sizes in shapes}) > 1:
        return ShapeMismatch(f"parts of shapes {_listed(shapes)} have different numbers of dimensions", instead)
    axis = argument(args, keywords, "dimension" if "dimension" in keywords else "axis", 1) or Const(0)
    rank = len(shapes[0])
    joined = axes(axis, rank) if short != "stack" else ()
    if joined is None:
        return None
    for one, other in pairwise(shapes):
        if any(_differ(one[at], other[at]) for at in range(rank) if at not in joined):
            return ShapeMismatch(f"parts of shapes {_listed((one, other))} do not fit together", instead)
    return None


# -- values --------------------------------------------------------------------------------------------------------

_MAX_FOLLOWED = 64  # operations


def comes_of_mismatch(value: Value) -> bool:
    """Whether one of the operations that made a value is refused: nothing that is done with it runs."""
    seen: set[Op] = set()
    pending = [value]
    while pending and len(seen) < _MAX_FOLLOWED:
        made = pending.pop()
        op = made.origin if isinstance(made, Array) else None
        if op is None or op in seen:
            continue
        if shape_mismatch(op) is not None:
            return True
        seen.add(op)
        pending += op.args
    return False


@frozen
class Growth:
    """An operation that makes more of its operands than fits where the result is used."""

    op: Op
    how: str  # "of each matrix with each"
    instead: str

    @property
    def reason(self) -> str:
        made = spelled_shape(shape(self.op.result) or ())
        return f"`{spelled_function(self.op.site)}` makes {made} {self.how}"


def outer_product(values: Iterable[Value]) -> Growth | None:
    """The `jnp.dot` of operands with three dimensions and more that gave one of these values dimensions too many.

    It multiplies each matrix of the left with each of the right. Followed are operations that keep its dimensions.
    """
    for op in _made_with_equal_rank(values):
        if op.name in _OUTER_PRODUCTS:
            ranks = [len(shape(factor) or ()) for factor in operands(list(op.args), dict(op.keywords))]
            if min(ranks, default=0) > 2 and len(shape(op.result) or ()) > max(ranks):
                return Growth(op, "of each matrix with each", "multiply batches of matrices one by one: `jnp.matmul`")
    return None


def outer_broadcast(value: Value, wanted: Shape) -> Growth | None:
    """The operation that broadcast both its operands, `(n, 1)` and `(n,)`, where one has the shape that is wanted."""
    for op in _made_with_equal_rank([value]):
        shapes = [shape(operand) for operand in op.args if isinstance(operand, Array)]
        if promotes(op.name) and len(shapes) == 2 and wanted in shapes and shape(op.result) not in (wanted, *shapes):
            of_each = " and ".join(spelled_shape(each or ()) for each in shapes)
            instead = "keep the dimension of a reduction: `keepdims=True`, or put it back: `x[:, None]`"
            return Growth(op, f"of {of_each}", instead)
    return None


def _made_with_equal_rank(values: Iterable[Value]) -> Iterator[Op]:
    """The operations that made these values, and their operands of as many dimensions, the last ones first."""
    seen: set[Op] = set()
    pending = [*values]
    while pending and len(seen) < _MAX_FOLLOWED:
        made = pending.pop()
        op = made.origin if isinstance(made, Array) else None
        if op is None or op in seen:
            continue
        seen.add(op)
        yield op
        rank = len(shape(op.result) or ())
        pending += [value for value in op.args if len(shape(value) or ()) == rank]
