"""PAL417 all-masked-row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from pallas_lint.api import (
    NONE,
    UNKNOWN,
    Access,
    Array,
    Const,
    Context,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Op,
    Rule,
    Seq,
    Severity,
    Sym,
    Value,
    nodes,
)
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.dataflow import SELECTING, operands
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import named
from pallas_lint.kernels.model.trace import LOOP_INDEX
from pallas_lint.records import define

Evidence = Literal["data", "length", "positions", "unknown"]


_EXP = named("exp exp2 expm1")
_SOFTMAX = named("softmax")
_SUBTRACT = named("subtract sub")
_MAXIMA = named("max amax reduce_max")
_MAXIMUM = named("maximum max")
_ADD = named("add subtract sub")
_SCALE = named("multiply mul true_divide divide div")
# What leaves each value what it is, in another shape or type.
_SAME = named(
    "astype convert_element_type reshape ravel expand_dims squeeze broadcast_to broadcast_in_dim transpose swapaxes"
    " ndarray.__getitem__ stop_gradient asarray array"
) | {"jax.experimental.pallas.broadcast_to", "jax.experimental.pallas.tpu.repeat", "jax.numpy.repeat"}
_FILLED = named("full full_like")
_COMPARING = named("less less_equal greater greater_equal equal not_equal lt le gt ge eq ne")
_POSITIONS = named("iota broadcasted_iota arange") | {
    "jax.experimental.pallas.program_id", "jax.experimental.pallas.num_programs", LOOP_INDEX,
}  # fmt: skip
# By what a comparison shows, or masks: which of its sides is a row that sees columns before its own only, and those.
_SHOWN = {"greater": (0, 1), "gt": (0, 1), "less": (1, 0), "lt": (1, 0)}
_MASKED = {"greater_equal": (1, 0), "ge": (1, 0), "less_equal": (0, 1), "le": (0, 1)}
_LOW = -1e4  # what masks, and is no score
_MAX_DEPTH = 40


class AllMaskedRow(Rule):
    """A softmax that becomes NaN for a row in which everything is masked with minus infinity.

    If a whole row is `-inf`, so is its maximum, and `exp(x - max)` computes `-inf - -inf`, which is NaN. One NaN in the
    row sum or the running maximum stays until the end. It happens for padded queries, for sequences of length 0, for
    sliding windows and segments that share nothing with a block of keys: in flash attention it is enough that the
    *first* block that a row meets is masked.

    A mask that shows each row the columns before its own, `rows > columns`, leaves the first row none: with `-inf` it
    is NaN, and with a finite value it weighs all columns alike, those after it too. Both are a warning.

    Starting the running maximum at `-inf` is fine by itself: `exp(-inf - finite)` is 0.

    ## How to fix

    Mask with a large finite value (`-1e30`, `jnp.finfo(x.dtype).min`), or take 0 for a maximum that is `-inf`:
    `m = jnp.where(m == -jnp.inf, 0.0, m)`; then the row sum is 0, which must not be divided by.

    ## Fix safety

    Unsafe: with a finite value a row that is masked entirely gives equal weights instead of NaN. None where another
    mask of the same scores has a lower value, or one that is not known: what it masks would then be above.

    ## Known limits

    Whether a row is ever masked entirely depends on data. Masks that are read from memory (segments, padding) give
    a warning; those made of positions and lengths only a hint, and only where they combine several comparisons or
    depend on a length; a causal mask alone keeps the diagonal and is not reported. Silent where the result of `exp` or
    what becomes of it goes through a `where` that can replace it, and where the running maximum starts at something
    finite or unknown.

    ## References

    - Run with jax 0.8.3, 0.10.2 and 0.12.0.1 in interpret mode: NaN in the masked row for `jnp.where(mask, s, -inf)`,
      for `s + jnp.where(mask, 0, -inf)`, for `jax.nn.softmax` of either and for a running maximum that starts at
      `-inf`; none with `-1e30`, `finfo.min`, a guarded maximum, a finite start, or a later block that is masked.
    """

    code = "PAL417"
    name = "all-masked-row"
    severity = Severity.WARNING
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(x_ref, mask_ref, o_ref):
                x = jnp.where(mask_ref[...] != 0, x_ref[...], -jnp.inf)  #-
                x = jnp.where(mask_ref[...] != 0, x_ref[...], -1e30)  #+
                p = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))  #!
                o_ref[...] = p / jnp.sum(p, axis=-1, keepdims=True)

            def softmax(x, mask):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, mask)
            """,
            run="softmax(f32(16, 128), b1(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, mask_ref, o_ref):
                x = jnp.where(mask_ref[...] != 0, x_ref[...], -jnp.inf)
                m = jnp.max(x, axis=-1, keepdims=True)
                m = jnp.where(m == -jnp.inf, 0.0, m)
                p = jnp.exp(x - m)
                total = jnp.sum(p, axis=-1, keepdims=True)
                o_ref[...] = p / jnp.where(total == 0, 1.0, total)

            def softmax(x, mask):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, mask)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        flow = _Flow(trace)
        for op in trace.ops(*_EXP, *_SOFTMAX):
            where = flow.poisoned_by(op)
            if where is None or flow.is_repaired(op):
                continue
            level = flow.severity(where)
            if level is None:
                continue
            yield context.finding(
                op.site,
                "a row that is masked entirely becomes NaN: its maximum is `-inf`, and `-inf - -inf` is NaN",
                help="mask with a finite value such as -1e30, or take 0 for a maximum that is `-inf`",
                severity=level,
                op=op,
                related=[(where.site, "masked with `-inf` here")],
                fixes=_fixes(flow, op, where, context),
            )
        yield from _first_rows(_Flow(trace, finite=True), context)


def _first_rows(flow: _Flow, context: Context) -> Iterator[Finding]:
    """Softmaxes under a mask that shows each row the columns before its own only: the first one has none."""
    for op in flow.trace.ops(*_EXP, *_SOFTMAX):
        where = flow.poisoned_by(op)
        if where is None or not flow.is_over_columns(op) or flow.is_repaired(op):
            continue
        shown = flow.hides_first_row(where)
        if shown is None:
            continue
        infinite = any(branch == Const(-math.inf) for branch in _branches(where) or ())
        becomes = "becomes NaN" if infinite else "weighs all columns alike, those after it too"
        yield context.finding(
            shown.site if shown.site.span.path == where.site.span.path else where.site,
            f"the mask leaves the first row no column: it {becomes}",
            help="let each row see its own column: `rows >= columns`",
            severity=Severity.WARNING,
            op=where,
            related=[(op.site, "the softmax")],
        )


@define(eq=False, slots=False)
class _Flow:
    """Where values of one kernel come from. `finite`: large negative numbers count as minus infinity, too."""

    trace: KernelTrace
    finite: bool = False

    @cached_property
    def loads(self) -> dict[ById, Access]:
        """Reads by the identity of what was read."""
        return {
            ById(event.value): event
            for event in self.trace.accesses()
            if event.kind == "load" and isinstance(event.value, Array)
        }

    # -- minus infinity --------------------------------------------------------------------------------------------

    def is_infinite(self, value: Value | None, depth: int = 0) -> bool:
        """Whether the value certainly is minus infinity everywhere."""
        if isinstance(value, Const):
            number = value.value
            return isinstance(number, int | float) and (number == -math.inf or (self.finite and number <= _LOW))
        op = value.origin if isinstance(value, Array) else None
        if op is None or depth > _MAX_DEPTH or not op.args:
            return False
        if op.name in _FILLED:
            return self.is_infinite(op.argument("fill_value", 1), depth + 1)
        if op.name in _SAME or op.short in ("float32", "bfloat16", "float16"):
            return self.is_infinite(op.args[0], depth + 1)
        return False

    @memoize_by_identity
    def masked(self, value: Value, depth: int = 0) -> Op | None:
        """The `where` that may have made the value minus infinity everywhere."""
        op = value.origin if isinstance(value, Array) else None
        if op is None or depth > _MAX_DEPTH:
            return None
        branches = _branches(op)
        if branches is not None:
            return op if any(self.is_infinite(branch) for branch in branches) else None
        if op.name in _SAME and op.args:
            return self.masked(op.args[0], depth + 1)
        if op.name in _ADD and len(op.args) == 2:
            left = self.masked(op.args[0], depth + 1)
            return left or (self.masked(op.args[1], depth + 1) if "sub" not in op.name else None)
        if op.name in _SCALE and len(op.args) == 2:
            for operand, other in (op.args, op.args[::-1]):
                if isinstance(other, Const) and isinstance(other.value, int | float) and other.value > 0:
                    return self.masked(operand, depth + 1)
            return self.masked(op.args[0], depth + 1) if isinstance(op.args[1], Sym) else None
        return None

    @memoize_by_identity
    def row_maximum(self, value: Value, depth: int = 0) -> Op | None:
        """The `where` over which the value is a maximum, minus infinity where all is masked; None if it is guarded."""
        op = value.origin if isinstance(value, Array) else None
        if op is None or depth > _MAX_DEPTH or not op.args:
            return None
        if op.name in _SAME:
            return self.row_maximum(op.args[0], depth + 1)
        if op.name in _MAXIMA and (op.name != "jax.lax.max" or len(op.args) == 1):
            if op.argument("initial") not in (None, NONE) and not self.is_infinite(op.argument("initial")):
                return None
            return self.masked(op.args[0])
        if op.name in _MAXIMUM and len(op.args) == 2:
            for operand, other in (op.args, op.args[::-1]):
                found = self.row_maximum(operand, depth + 1)
                if found is not None and self._starts_infinite(other, depth + 1):
                    return found
        if op.name in _SCALE and len(op.args) == 2 and isinstance(op.args[1], Const):
            return self.row_maximum(op.args[0], depth + 1)
        return None

    def _starts_infinite(self, value: Value, depth: int) -> bool:
        """Whether the running maximum starts at minus infinity."""
        if self.is_infinite(value) or self.row_maximum(value, depth) is not None:
            return True
        op = value.origin if isinstance(value, Array) else None
        if op is not None:
            return op.name in _SAME and bool(op.args) and self._starts_infinite(op.args[0], depth + 1)
        load = self.loads.get(ById(value))
        if load is None:
            return False
        return any(
            event.kind == "store" and event.ref.buffer == load.ref.buffer and self.is_infinite(event.value)
            for event in self.trace.accesses()
        )

    def poisoned_by(self, op: Op) -> Op | None:
        """The mask for which this `exp(x - max)` or `softmax(x)` may be NaN."""
        if not op.args:
            return None
        if op.name in _SOFTMAX:
            return self.masked(op.args[0]) if op.argument("where") in (None, NONE) else None
        value: Value = op.args[0]
        for _ in range(_MAX_DEPTH):
            origin = value.origin if isinstance(value, Array) else None
            if origin is None:
                return None
            if origin.name in _SUBTRACT and len(origin.args) == 2:
                found = self.masked(origin.args[0])
                return found if found is not None and self.row_maximum(origin.args[1]) is found else None
            if origin.name in _SAME or (origin.name in _SCALE and isinstance(origin.args[1], Const | Sym)):
                value = origin.args[0]
            elif origin.name in _SCALE and isinstance(origin.args[0], Const | Sym):
                value = origin.args[1]
            else:
                return None
        return None

    @memoize_by_identity
    def may_mask_below(self, limit: float, value: Value | None, but: Op, depth: int = 0) -> bool:
        """Whether another mask than `but` may have put something lower than a limit into the value."""
        if isinstance(value, Const):
            return isinstance(value.value, int | float) and value.value < limit
        if not isinstance(value, Array) or depth > _MAX_DEPTH:
            return True
        op = value.origin
        if op is None:
            load = self.loads.get(ById(value))  # one number for all is not what the rows are made of
            return load is None or value.shape == () or _is_scalar(load)
        branches = _branches(op)
        if op is but:
            parts = [branch for branch in branches or () if not self.is_infinite(branch)]
        elif branches is not None:
            parts = list(branches)
        elif op.name in _FILLED:
            parts = [op.argument("fill_value", 1) or UNKNOWN]
        elif op.name in _SAME or op.short in ("float32", "bfloat16", "float16"):
            parts = list(op.args[:1])
        elif op.name in _ADD or op.name in _SCALE:
            parts = [operand for operand in op.args if isinstance(operand, Array) and operand.shape != ()]
        else:
            return False
        return any(self.may_mask_below(limit, part, but, depth + 1) for part in parts)

    # -- what becomes of it ----------------------------------------------------------------------------------------

    def is_repaired(self, exp: Op) -> bool:
        """Whether the NaN may be replaced later on."""
        tainted: set[ById] = {ById(exp)}
        buffers: set[tuple[str, object]] = set()
        started = False
        for event in self.trace.events:
            started |= event is exp
            if isinstance(event, Access):
                if event.kind in ("store", "accumulate") and self._is_tainted(event.value, tainted):
                    buffers.add(event.ref.buffer)
                elif event.kind == "load" and event.ref.buffer in buffers:
                    tainted.add(ById(event.value))
            elif isinstance(event, Op) and event is not exp and started:
                touched = any(self._is_tainted(value, tainted) for value in operands(event))
                if event.short == "nan_to_num" and touched:
                    return True
                if event.name in SELECTING and self._replaces(event, tainted):
                    return True
                if touched:
                    tainted.add(ById(event))
        return False

    def _is_tainted(self, value: Value, tainted: set[ById]) -> bool:
        return ById(value) in tainted or (isinstance(value, Array) and ById(value.origin) in tainted)

    def _replaces(self, op: Op, tainted: set[ById]) -> bool:
        """Whether a `where` chooses between the NaN, or something that may hold it, and another value."""
        branches = _branches(op)
        if branches is None:
            return True
        values = [value for value in branches if isinstance(value, Array)]
        hidden = [value for value in values if value.origin is None and ById(value) not in self.loads]
        if not hidden and not any(self._is_tainted(value, tainted) for value in values):
            return False
        condition = op.args[0].origin if op.args and isinstance(op.args[0], Array) else None
        # `where(total == 0, 1, total)` lets NaN through; a comparison that NaN fails, or another mask, does not.
        # Of a row that is known, `rows == 0` is one that finds it.
        return self.finite or condition is None or condition.name not in ("jax.numpy.equal", "jax.lax.eq")

    # -- the first row ---------------------------------------------------------------------------------------------

    def is_over_columns(self, exp: Op) -> bool:
        """Whether a softmax, or the maximum that an `exp` subtracts, is one of each row."""
        if exp.name in _SOFTMAX:
            return exp.argument("axis", 1) in (None, Const(-1), Const(1))
        maxima = [op for op in self.trace.ops(*_MAXIMA) if op.args and self.masked(op.args[0]) is not None]
        return bool(maxima) and all(op.argument("axis", 1) in (Const(-1), Const(1)) for op in maxima)

    def hides_first_row(self, where: Op) -> Op | None:
        """The comparison by which a mask shows positions along dimension 1 that are lower than the one along dimension
        0, both from 0 on."""
        branches = _branches(where)
        condition = where.argument("condition", 0) or where.argument("pred", 0)
        op = condition.origin if isinstance(condition, Array) else None
        if branches is None or op is None or len(op.args) != 2 or where.short == "select_n":
            return None
        order = (_MASKED if self.is_infinite(branches[0]) else _SHOWN).get(op.short)
        if order is None:
            return None
        rows, columns = op.args[order[0]], op.args[order[1]]
        return op if _first_along(rows, 0) == 0 and _first_along(columns, 1) == 0 else None

    # -- how likely ------------------------------------------------------------------------------------------------

    def severity(self, where: Op) -> Severity | None:
        condition = where.argument("condition", 0) or where.argument("pred", 0)
        kinds: set[Evidence] = set()
        comparisons: set[ById] = set()
        self._leaves(condition, kinds, comparisons)
        if "data" in kinds:
            return Severity.WARNING
        if kinds & {"length", "unknown"} or len(comparisons) > 1:
            return Severity.INFO
        return None

    @memoize_by_identity
    def _leaves(self, value: Value | None, kinds: set[Evidence], comparisons: set[ById], depth: int = 0) -> None:
        """What a mask is made of."""
        if isinstance(value, Const) or value is None:
            return
        if isinstance(value, Sym):
            kinds.add("positions")
            return
        if not isinstance(value, Array) or depth > _MAX_DEPTH:
            kinds.add("unknown")
            return
        op = value.origin
        if op is None:
            load = self.loads.get(ById(value))
            kinds.add("unknown" if load is None else "length" if value.shape == () or _is_scalar(load) else "data")
        elif op.name in _POSITIONS:
            kinds.add("positions")
        else:
            if op.name in _COMPARING:
                comparisons.add(ById(op))
            for operand in operands(op):
                if isinstance(operand, Array | Sym):
                    self._leaves(operand, kinds, comparisons, depth + 1)


def _first_along(value: Value, dimension: int, depth: int = 0) -> int | None:
    """The least of positions that grow along a dimension, at the first step of the grid; None where that is not known.

    Sizes, which have names, are above 0.
    """
    op = value.origin if isinstance(value, Array) else None
    if isinstance(value, Const):
        return value.value if type(value.value) is int and value.value >= 0 else None
    if op is None or depth > _MAX_DEPTH:
        return None
    if op.short in ("iota", "broadcasted_iota"):
        return 0 if op.argument("dimension", 2) == Const(dimension) else None
    if op.name in _POSITIONS:
        return None if op.short == "arange" else 0
    if op.name in _ADD and "sub" not in op.name and len(op.args) == 2:
        left, right = (_first_along(operand, dimension, depth + 1) for operand in op.args)
        return None if left is None or right is None else left + right
    if op.short in ("multiply", "mul") and len(op.args) == 2:
        for factor, other in (op.args, op.args[::-1]):
            if isinstance(other, Sym | Const) and _first_along(factor, dimension, depth + 1) == 0:
                return 0
    return None


def _is_scalar(load: Access) -> bool:
    """Whether one element is loaded, as far as the index is known: `lengths_ref[row]`."""
    parts = load.index.items if isinstance(load.index, Seq) and load.index.kind == "tuple" else (load.index,)
    return all(
        isinstance(part, Sym)
        or (isinstance(part, Array) and not part.shape)
        or (isinstance(part, Const) and type(part.value) is int)
        for part in parts
    )


def _branches(op: Op) -> tuple[Value, Value] | None:
    """The two values between which a `where` or `select` chooses; None for other operations."""
    if op.name == "jax.numpy.where":
        first, second = op.argument("x", 1), op.argument("y", 2)
    elif op.name == "jax.lax.select":
        first, second = op.argument("on_true", 1), op.argument("on_false", 2)
    elif op.name == "jax.lax.select_n" and len(op.args) == 3:
        first, second = op.args[1], op.args[2]
    else:
        return None
    return None if first is None or second is None else (first, second)


def _fixes(flow: _Flow, exp: Op, where: Op, context: Context) -> list[Fix]:
    """A finite value in the place of minus infinity, unless another mask is lower: it would no longer be on top."""
    node = where.site.node
    if not isinstance(node, nodes.Call) or where.name != "jax.numpy.where" or len(node.args) != 3:
        return []
    if any(argument.star or argument.keyword is not None for argument in node.args):
        return []
    fills = [at for at in (1, 2) if where.args[at] == Const(-math.inf)]
    if len(fills) != 1:
        return []
    other = where.args[3 - fills[0]]
    dtype = other.dtype if isinstance(other, Array) else "f32"
    text = "-1e30" if dtype != "f16" else "-6e4"
    if flow.may_mask_below(float(text), exp.args[0], where):
        return []
    site = type(where.site)(where.site.piece, node.args[fills[0]].value)
    return [context.unsafe(f"mask with {text}", context.replace(site, text))]
