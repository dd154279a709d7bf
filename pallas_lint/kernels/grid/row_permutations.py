"""Stores of input rows to other rows of an output: permutations, scatters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pallas_lint.identity import ById, iter_unique
from pallas_lint.kernels.grid.grid_points import axis_of
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import PALLAS, PROGRAM_ID
from pallas_lint.kernels.model.trace import LOOP_INDEX, Access, Op, is_full_index
from pallas_lint.kernels.model.values import (
    NONE,
    Array,
    CallResult,
    Const,
    Func,
    OneOf,
    Ref,
    Seq,
    Slice,
    Sym,
    Unknown,
    Value,
)
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from pallas_lint.kernels.model.trace import KernelTrace

# What mixes rows: its result is no row of its operand any more.
_MIXING = frozenset("dot matmul dot_general einsum sum max min prod mean argmax argmin any all cumsum sort".split())
_SAME = frozenset("astype convert_element_type asarray array multiple_of squeeze reshape max_contiguous".split())
COPIES = tuple(f"{PALLAS}.{name}" for name in ("tpu.make_async_copy", "tpu.async_copy", "tpu.sync_copy"))
_CHOOSING = frozenset("where select cond switch".split())  # by their first operand, which is no part of the result
_MAX_DEPTH = 30


@frozen(eq=False)
class RowPermutation:
    """`how`: whether the row that is written is read from memory ("data") or worked out ("computed")."""

    output: Ref
    source: Ref
    store: Access
    how: Literal["data", "computed"]
    copy: bool = False  # by a DMA
    alone: bool = True  # what is written was made of this one load: it is the row itself


def row_permutations(trace: KernelTrace) -> list[RowPermutation]:
    """Every store to an output whose row is another than the one its value was read at."""
    loads = _loads(trace)
    found = []
    for event in trace.events:
        if not isinstance(event, Access) or event.kind != "store" or event.ref.role != "out" or event.ref.owner:
            continue
        sources = list(_sources(event.value, loads))
        tables = {*map(ById, _loads_of(_index(event), loads))}  # they select rows, and are not moved themselves
        for load in sources:
            if load.ref.role != "in" or load.ref.owner or ById(load) in tables:
                continue
            how = _difference(_index(event), _index(load), loads)
            if how is not None:
                alone = len(sources) == 1 and _is_followed(event.value, loads)
                found.append(RowPermutation(event.ref, load.ref, event, how, alone=alone))
                break
    return [*found, *_copies(trace, loads)]


def _copies(trace: KernelTrace, loads: dict[ById, Access]) -> Iterator[RowPermutation]:
    for op in trace.ops(*COPIES):
        source, target = (op.argument(name, at) for at, name in enumerate(("src_ref", "dst_ref")))
        if not isinstance(source, Ref) or not isinstance(target, Ref) or source.indexer is None:
            continue
        if target.indexer is None or target.role != "out" or source.role != "in" or target.owner or source.owner:
            continue
        how = _difference(target.indexer, source.indexer, loads)
        if how is not None:
            store = Access("store", target, target.indexer, op.site, guards=op.guards, certain=op.certain)
            yield RowPermutation(target, source, store, how, copy=True)


def is_filled_before(permutation: RowPermutation, trace: KernelTrace) -> bool:
    """Whether the whole output is certainly written before rows move to it: those left out do not hold garbage."""
    for event in trace.accesses():
        if event is permutation.store:
            return False
        stored = event.kind == "store" and event.certain and not event.guards
        whole = event.ref.indexer is None and is_full_index(event.index)
        if stored and whole and event.ref.buffer == permutation.output.buffer:
            return True
    return False


def is_data_dependent(access: Access, trace: KernelTrace) -> bool:
    """Whether the index of an access is read from memory."""
    return bool(_loads_of(_index(access), _loads(trace)))


def _index(access: Access) -> Value:
    return access.ref.indexer if access.ref.indexer is not None else access.index


def _loads(trace: KernelTrace) -> dict[ById, Access]:
    """Loads by the identity of what was loaded."""
    return {
        ById(event.value): event
        for event in trace.events
        if isinstance(event, Access) and event.kind == "load" and isinstance(event.value, Array)
    }


def _sources(value: Value, loads: dict[ById, Access]) -> Iterator[Access]:
    """The loads that a value was made of row by row."""
    yield from _walk(value, loads, _row_operands)


def _is_followed(value: Value, loads: dict[ById, Access]) -> bool:
    """Whether it is known what a value was made of: no carry of a loop, no choice, and no result of unknown code."""
    stack = [value]
    for current in iter_unique(stack):
        if isinstance(current, Array) and ById(current) not in loads:
            if current.origin is None:
                return False
            if ById(current.origin.result) not in loads:
                stack.extend(_row_operands(current.origin))
        elif isinstance(current, Seq):
            stack.extend(current.items)
        elif isinstance(current, Unknown | OneOf | Func | CallResult):
            return False
    return True


def _walk(value: Value, loads: dict[ById, Access], operands: Callable[[Op], Iterable[Value]]) -> Iterator[Access]:
    stack = [value]
    for current in iter_unique(stack):
        load = loads.get(ById(current))
        if load is not None:
            yield load
            continue
        if isinstance(current, Array) and current.origin is not None:
            load = loads.get(ById(current.origin.result))
            if load is not None:
                yield load
            else:
                stack.extend(operands(current.origin))
        elif isinstance(current, Seq):
            stack.extend(current.items)
        elif isinstance(current, Slice):
            stack.extend(part for part in (current.start, current.stop, current.size) if part is not None)


def _operands(op: Op) -> tuple[Value, ...]:
    return *op.args, *(item for _, item in op.keywords)


def _row_operands(op: Op) -> Iterable[Value]:
    """The operands of which rows are rows of the result."""
    return () if op.short in _MIXING else _operands(op)[op.short in _CHOOSING :]


def _loads_of(value: Value, loads: dict[ById, Access]) -> list[Access]:
    return list(_walk(value, loads, _operands))


def _difference(target: Value, source: Value, loads: dict[ById, Access]) -> Literal["data", "computed"] | None:
    """How the row that is written differs from the one that is read; None where it may be the same."""
    written, read, forms = _parts(target), _parts(source), _Forms(loads)
    form_written = [forms.of(part) for part in written]
    form_read = [forms.of(part) for part in read]
    moving = [part for part, form in zip(written, form_written, strict=True) if form not in form_read]
    if any(_loads_of(part, loads) for part in moving) and not forms.is_split(written, read):
        return "data"
    known_written = [form for form in form_written if form is not None]
    known_read = [form for form in form_read if form is not None]
    if len(known_written) < len(written) or len(known_read) < len(read):
        return None
    indices_written = {index for form in known_written for index in form.indices}
    indices_read = {index for form in known_read for index in form.indices}
    if not indices_written or indices_written != indices_read or any(form.has_load for form in known_read):
        return None
    left = [form for form in known_written if form not in known_read and form.indices]
    right = [form for form in known_read if form not in known_written and form.indices]
    return "computed" if left and right and not forms.is_split(written, read) else None


def _parts(index: Value) -> list[Value]:
    parts = list(index.items) if isinstance(index, Seq) and index.kind == "tuple" else [index]
    return [part for part in parts if not isinstance(part, Const) or type(part.value) is int]


def _is_placed(part: Value) -> bool:
    """Whether an index selects rows of a dimension: it is not a number, and does not take the whole dimension."""
    return not isinstance(part, Const) and not is_full_index(part)


def _terms(part: Value) -> Iterator[Value]:
    """What is added up in an index, dimensions of size 1 left out: `start + offsets[:, None]`."""
    stack = [part]
    for current in iter_unique(stack):
        op = current.origin if isinstance(current, Array) else None
        if isinstance(current, Slice) and current.size is not None:
            stack.append(current.start)
        elif op is not None and op.short == "add" and not op.keywords:
            stack.extend(op.args)
        elif op is not None and _only_lays_out(op):
            stack.append(op.args[0])
        else:
            yield current


def _only_lays_out(op: Op) -> bool:
    """Whether an operation only adds dimensions of size 1: `x[:, None]`."""
    if op.name != "jax.numpy.ndarray.__getitem__" or len(op.args) != 2:
        return False
    index = op.args[1]
    parts = index.items if isinstance(index, Seq) and not index.open else (index,)
    return all(part == NONE or is_full_index(part) for part in parts)


@frozen(eq=False)
class _Form:
    """How a value is made: of the grid and loop indices `indices`, and of loads or not."""

    indices: frozenset[Hashable] = frozenset()
    has_load: bool = False


@define(eq=False)
class _Forms:
    """The forms of values: the very same one for values that certainly are the same."""

    loads: dict[ById, Access]
    _known: dict[tuple[Hashable, ...], _Form] = field(factory=dict)

    @memoize_by_identity
    def of(self, value: Value | None, depth: int = 0) -> _Form | None:
        """The form of a value; None where that is not known."""
        if depth > _MAX_DEPTH or value is None:
            return None
        if isinstance(value, Const):
            return self._form("const", value.value)
        if isinstance(value, Sym):
            return self._form("symbol", value.text, value.owner)
        if isinstance(value, Slice):
            if value.size is None and value.start == value.stop == Const(None):
                return self._form("slice")
            # `i * B : (i + 1) * B` and `pl.ds(i * B, B)`: where it starts is what counts.
            return self.of(value.start, depth + 1)
        load = self.loads.get(ById(value))
        if load is None and isinstance(value, Array) and value.origin is not None:
            load = self.loads.get(ById(value.origin.result))
        if load is not None:
            inner = self.of(load.index, depth + 1)
            return self._form("load", load.ref.buffer, load if inner is None else inner)
        if isinstance(value, Seq):
            return self._made("tuple", value.items, depth)
        if isinstance(value, Array) and value.origin is not None:
            return self._operation(value.origin, depth)
        return None

    def is_split(self, written: list[Value], read: list[Value]) -> bool:
        """Whether rows are counted in one dimension here and in two there: `o[c, at]` of `x[c * chunk + at]`.

        A value read from memory is then an operand of a sum in one place and alone in the other; all other parts of the
        index come from the grid, in both.
        """
        if sum(map(_is_placed, written)) == sum(map(_is_placed, read)):
            return False
        terms = [[self.of(term) for part in parts for term in _terms(part)] for parts in (written, read)]
        if any(None in found for found in terms):
            return False
        rest = [
            [form for form in found if form is not None and form not in other and (form.indices or form.has_load)]
            for found, other in (terms, reversed(terms))
        ]
        if any(form.has_load for found in rest for form in found):
            return False
        used = [{index for form in found for index in form.indices} for found in rest]
        return used[0] == used[1]

    def _operation(self, op: Op, depth: int) -> _Form | None:
        if op.name == LOOP_INDEX:
            return self._form("index", "loop", op)
        if op.name == PROGRAM_ID:
            axis = axis_of(op, op.launch)
            return None if axis is None else self._form("index", "grid", axis)
        short = op.short
        if (short in _SAME and op.args) or _only_lays_out(op):
            return self.of(op.args[0], depth + 1)
        return None if op.keywords else self._made(short, op.args, depth)

    def _made(self, how: str, parts: tuple[Value, ...], depth: int) -> _Form | None:
        forms = tuple(self.of(part, depth + 1) for part in parts)
        return None if None in forms else self._form(how, *forms)

    def _form(self, how: str, *parts: Hashable) -> _Form:
        key = (how, *parts)
        if key not in self._known:
            inner = [part for part in parts if isinstance(part, _Form)]
            own = [parts] if how == "index" else []
            indices = frozenset().union(own, *(form.indices for form in inner))
            self._known[key] = _Form(indices, how == "load" or any(form.has_load for form in inner))
        return self._known[key]
