"""Indexing: the value of `owner[index]`, and its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.host import machine, tables
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.joins import join, part_of_choice
from pallas_lint.kernels.model.known_names import integer, is_integer
from pallas_lint.kernels.model.symbols import is_of_shape, item_of, part_of_shape, symbolic
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    Dim,
    External,
    Instance,
    OneOf,
    Ref,
    Seq,
    Shape,
    Slice,
    Sym,
    Value,
    as_tuple,
    dim,
    from_dim,
    shape_of,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

REF_AT = "ref.at"  # the operation `ref.at[index]`: a view is made, nothing is read as yet


def subscript(interp: Tracer, node: nodes.Subscript, owner: Value, index: Value) -> Value:
    """The value of `owner[index]`; a read of a ref or a slice of an array is recorded."""
    concretize_indices(interp, node, owner, index)
    if isinstance(owner, Ref):
        if owner.dtype == "semaphore" or owner.space == "semaphore":
            interp.frame.access("load", owner, index, node)
            return evolve(owner, view=True)
        loaded = Array(result_shape(owner.shape, index), owner.element)
        interp.frame.access("load", owner, index, node, loaded)
        return loaded
    if isinstance(owner, Array):
        result = Array(result_shape(owner.shape, index), owner.element, owner.weak)
        return interp.frame.op("jax.numpy.ndarray.__getitem__", node, Arguments([owner, index]), result, "operator")
    if isinstance(owner, CallResult) and owner.function == "method:at":
        base = owner.args[0]
        if isinstance(base, Ref):
            interp.frame.op(REF_AT, node, Arguments([base, index]), UNKNOWN, "operator")
            return evolve(base, view=True, shape=result_shape(base.shape, index), indexer=index, parent=base)
        return CallResult("method:at[]", (base, index), (), interp.frame.site(node))
    if isinstance(owner, Seq):
        return _element(owner, index)
    if isinstance(owner, Instance):
        return UNKNOWN if owner.sequence is None else _element(owner.sequence, index)
    if isinstance(owner, Const):
        return _part_of_text(owner.value, index)
    if isinstance(owner, Dictionary):
        return tables.look_up(interp, owner, index, interp.frame.piece.code(node.value))
    if isinstance(owner, Sym):
        return _of_symbol(owner, index)
    if isinstance(owner, CallResult) and owner.launch is not None and isinstance(index, Const | Sym | CallResult):
        # jax-triton style `kernel[grid](...)` never reaches here: those kernels are not Pallas.
        return UNKNOWN
    if isinstance(owner, External):
        return UNKNOWN
    if (devices := machine.first_devices(interp, owner, index, node)) is not None:
        return devices
    if (computed := machine.computed(interp, (owner, *_bounds(index)), node)) is not None:
        return computed
    if isinstance(owner, OneOf):
        result_value: Value | None = None
        with interp.maybe():
            for option in owner.options:
                value = subscript(interp, node, option, index)
                result_value = value if result_value is None else join(result_value, value)
        if result_value is None:
            return UNKNOWN
        return part_of_choice(result_value, owner, f"[{index.value!r}]") if isinstance(index, Const) else result_value
    return UNKNOWN


def _bounds(index: Value) -> tuple[Value, ...]:
    return (index.start, index.stop, index.step) if isinstance(index, Slice) and index.size is None else (index,)


def concretize_indices(interp: Tracer, node: nodes.Subscript, owner: Value, index: Value) -> None:
    """Indices that Python itself needs: those of its own containers, and the bounds of slices of refs."""
    if isinstance(owner, Seq | Dictionary):
        for part in (index.start, index.stop) if isinstance(index, Slice) and index.size is None else (index,):
            interp.frame.concretize("index", part, node)
        return
    view = isinstance(owner, CallResult) and owner.function == "method:at" and isinstance(owner.args[0], Ref)
    if not view and not isinstance(owner, Ref):
        return
    for part in as_tuple(index):
        if isinstance(part, Slice) and part.size is None:
            bound = part.start if isinstance(part.start, Array) else part.stop
            interp.frame.concretize("slice", bound, node)
        elif isinstance(part, Slice) and part.size is not None and not view:
            interp.frame.concretize("size", part.size, node)


def _of_symbol(owner: Sym, index: Value) -> Value:
    """`x.shape[0]`, `x.shape[1:]`, `config["rows"]`: under the name that it has."""
    if isinstance(index, Slice) and index.size is None and index.step == NONE and is_of_shape(owner):
        bounds = [integer(bound) for bound in (index.start, index.stop)]
        known = all(
            bound is not None or part == NONE for bound, part in zip(bounds, (index.start, index.stop), strict=True)
        )
        return (part_of_shape(owner, bounds[0] or 0, bounds[1]) or UNKNOWN) if known else UNKNOWN
    at = integer(index)
    if at is not None and is_of_shape(owner):
        return item_of(owner, at)
    text = _index_text(index)
    return UNKNOWN if text is None else Sym(f"{owner.text}[{text}]", owner.owner)


def _index_text(index: Value) -> str | None:
    if isinstance(index, Const) and isinstance(index.value, int | str):
        return repr(index.value)
    return index.text if isinstance(index, Sym) else None


def _element(owner: Seq, index: Value) -> Value:
    items = owner.items
    at = integer(index)
    if at is not None:
        if 0 <= at < len(items) or (not owner.open and -len(items) <= at < 0):
            return items[at]
        return UNKNOWN
    if isinstance(index, Slice) and index.size is None and not owner.open:
        bounds = [part.value if isinstance(part, Const) else UNKNOWN for part in (index.start, index.stop, index.step)]
        if all(bound is None or isinstance(bound, int) for bound in bounds):
            return Seq(items[slice(*bounds)], owner.kind)  # type: ignore[arg-type]
    if isinstance(index, Slice):
        return Seq((), owner.kind, open=True)
    if items and not owner.open:
        result = items[0]
        for item in items[1:]:
            result = join(result, item)
        return result
    return UNKNOWN


def _part_of_text(owner: object, index: Value) -> Value:
    """`name[0]`, `name[2:]`."""
    letters = Seq(tuple(map(Const, owner))) if isinstance(owner, str) else Seq(())
    part = _element(letters, index)
    if isinstance(part, Seq) and not part.open and isinstance(owner, str):
        return Const("".join(letter.value for letter in part.items if isinstance(letter, Const)))
    return part if integer(index) is not None else UNKNOWN


def with_item(owner: Value, index: Value, value: Value) -> Value | None:
    """`owner` after `owner[index] = value`; None where it is not a Python container."""
    if isinstance(owner, Dictionary):
        if not isinstance(index, Const):
            return evolve(owner, open=True)
        rest = tuple(pair for pair in owner.items if pair[0] != index)
        return Dictionary((*rest, (index, value)), owner.open)
    if isinstance(owner, Seq):
        if is_integer(index) and 0 <= index.value < len(owner.items):
            items = list(owner.items)
            items[index.value] = value
            return Seq(tuple(items), owner.kind, owner.open)
        return Seq((), owner.kind, open=True)
    return None


def is_scalar_index(index: Value) -> bool | None:
    """Whether the index removes a dimension (an integer, Python's or traced); None where it is not known."""
    if isinstance(index, Const):
        return isinstance(index.value, int) and not isinstance(index.value, bool)
    if isinstance(index, Array):
        return None if index.shape is None else index.shape == ()
    # A symbol may be a slice or a tuple, too; a computed value or part of a shape is not.
    counted = isinstance(index, Sym) and (index.traced or index.operation is not None or ".shape[" in index.text)
    return True if counted else None


def result_shape(shape: Shape | None, index: Value) -> Shape | None:
    """The shape of `x[index]` for `x` of `shape`; None where it is not known."""
    parts = list(index.items) if isinstance(index, Seq) and index.kind == "tuple" else [index]
    if isinstance(index, Seq) and (index.open or index.kind == "list"):
        return None
    taking = [part for part in parts if part not in (NONE, ELLIPSIS)]
    if shape is None:
        # All dimensions indexed by integers leave a scalar only if there are no more of them: not known.
        return None
    if ELLIPSIS not in parts:
        parts.append(ELLIPSIS)
    missing = len(shape) - len(taking)
    if missing < 0 or parts.count(ELLIPSIS) > 1:
        return None
    result: list[Dim] = []
    at = 0
    for number, part in enumerate(parts):
        if part == ELLIPSIS:
            result.extend(shape[at : at + missing])
            at += missing
        elif part == NONE:
            result.append(1)
        elif isinstance(part, Slice):
            result.append(_slice_size(part, shape[at]))
            at += 1
        else:
            scalar = is_scalar_index(part)
            if scalar is not True:
                chosen = _gathered(parts, number)
                if chosen is None:
                    return None
                result.extend(chosen)
            at += 1
    return tuple(result)


def _gathered(parts: list[Value], number: int) -> Shape | None:
    """The dimensions that an array of integers puts in its place; None where it is not the only one, or may not stay.

    numpy moves them to the front where scalars are separated from the array; refs of some jax releases always do. In
    the first place, or as the only index of an array, both agree.
    """
    part = parts[number]
    others = [other for at, other in enumerate(parts) if at != number and other not in (NONE, ELLIPSIS)]
    alone = all(isinstance(other, Slice) for other in others)
    if not isinstance(part, Array) or not alone or number or part.dtype in (None, "bool"):
        return None
    return part.shape


def _slice_size(part: Slice, size: Dim) -> Dim:
    if part.size is not None:
        return dim(part.size)
    if (part.start, part.stop, part.step) == (NONE, NONE, NONE):
        return size
    bounds = [bound.value if isinstance(bound, Const) else UNKNOWN for bound in (part.start, part.stop, part.step)]
    known = all(bound is None or isinstance(bound, int) for bound in bounds)
    if known and isinstance(size, int):
        return len(range(*slice(*bounds).indices(size)))
    start, stop, step = bounds
    if step in (None, 1) and isinstance(start, int) and _is_next(start, stop):
        return 1  # `x[7:8]`, `x[-1:]`: with fewer rows nothing would be left
    if start in (None, 0) and step is None and isinstance(part.stop, Sym):
        return part.stop
    if step is None and isinstance(part.stop, Sym) and part.stop.operation == ("+", part.start, Const(1)):
        return 1  # `x[i:i + 1]`
    return None


def _is_next(start: int, stop: object) -> bool:
    if stop is None:
        return start == -1
    return isinstance(stop, int) and stop == start + 1 and (start < 0) is (stop < 0)


def reshaped(shape: Shape | None, arguments: list[Value]) -> Shape | None:
    """The shape of `reshape(*arguments)`, with a single -1 computed where the rest is known."""
    wanted = arguments[0] if len(arguments) == 1 else Seq(tuple(arguments))
    target = shape_of(wanted)
    if target is None or -1 not in target:
        return target
    if target == (-1,) and shape is not None and len(shape) == 1:
        return shape
    known = [size for size in target if isinstance(size, int) and size != -1]
    if shape is not None and all(isinstance(size, int) for size in shape) and len(known) == len(target) - 1:
        total, rest = 1, 1
        for size in shape:
            total *= size  # type: ignore[operator]
        for size in known:
            rest *= size
        if rest and total % rest == 0:
            return tuple(total // rest if size == -1 else size for size in target)
    return tuple(None if size == -1 else size for size in target)


def product(shape: Shape) -> Value:
    """The number of elements, symbolic where a dimension is."""
    result: Value = Const(1)
    for size in shape:
        factor = from_dim(size)
        if not isinstance(factor, Const | Sym) or not isinstance(result, Const | Sym):
            return UNKNOWN
        result = _multiply(result, factor)
    return result


def _multiply(left: Const | Sym, right: Const | Sym) -> Value:
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(left.value * right.value)
    return symbolic("*", left, right)
