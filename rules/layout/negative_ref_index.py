"""PAL210 negative-ref-index."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    ELLIPSIS,
    Access,
    Array,
    CallResult,
    Const,
    Context,
    Example,
    Finding,
    Fix,
    IndexMap,
    KernelTrace,
    Ref,
    Rule,
    Seq,
    Severity,
    Site,
    Slice,
    Value,
    nodes,
)
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.facts.copies import copies_of
from pallas_lint.kernels.facts.dataflow import Flow, is_among, reaches_result
from pallas_lint.kernels.facts.ref_indexing import ref_indexings
from pallas_lint.kernels.grid.grid_points import axes_in, loops_in
from pallas_lint.kernels.grid.index_ranges import always_holds
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.kernels.model.trace import LOOP_INDEX, conditions_in
from pallas_lint.kernels.model.values import as_tuple
from pallas_lint.syntax.literals import integer_value

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.ref_indexing import IndexPart, RefIndexing

# Functions that leave the value of a Python integer as it is.
_CASTS = frozenset("int8 int16 int32 int64 array asarray astype convert_element_type multiple_of".split())
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "subtract": operator.sub, "sub": operator.sub, "multiply": operator.mul, "mul": operator.mul,
}  # fmt: skip
_COMPARISONS = frozenset("less less_equal greater greater_equal equal not_equal lt le gt ge eq ne".split())
_MAX_DEPTH = 8


class NegativeRefIndex(Rule):
    """A negative index into a ref, which Pallas does not count from the end.

    `x_ref[-1]` looks like the last row, as it is for arrays. A ref is memory: Pallas hands the -1 to the
    compiler as it is, in every jax version, and the kernel reads or writes the row *before* the buffer. On
    TPU that is whatever lies in front of it in VMEM or SMEM, on GPU another part of the array or another
    array. Nothing complains: the kernel lowers, compiles and runs. Only libtpu of old releases stops, by
    aborting the whole process. `interpret=True` counts from the end, and so do loads under
    `pltpu.InterpretParams()`: a test in interpret mode passes.

    The same holds for views (`ref.at[-1]`), for copies from and to them, for semaphores, for scalar-prefetch
    refs in index maps, and for `pl.ds(-2, 2)`. Slices with negative bounds are another matter: `ref[-2:]` and
    `ref[:-1]` are counted from the end at trace time and are right.

    An index such as `pl.program_id(0) - 1` is -1 in the first step of the grid. That is flagged where no
    condition stands around it: a warning for a store, for a copy, and for a load that goes into a result which nothing
    replaces; an info for other loads, the value of which may be thrown away. A condition that lets every step through,
    such as `i >= 0`, is none; behind it loads are a warning, too.

    ## How to fix

    Name the row: `x_ref[x_ref.shape[0] - 1]`, or load first and index the value: `x_ref[...][-1]`.

    ## Fix safety

    Safe: it is what interpret mode computes, and what hardware computed instead was not part of the array.

    ## Known limits

    Silent where the sign of an index is not known, and for a dynamic index under `pl.when`, `lax.cond`, or
    `jnp.maximum`. `pl.ds(-2, 2)` is right on Mosaic GPU before jax 0.12 and not flagged there.

    ## References

    - jax issue 27490.
    - Traced, lowered and compiled with jax 0.4.35, 0.6.2, 0.8.3, 0.10.2 and 0.12.0.1 in 14 forms: the jaxpr
      keeps `c[-1,:]` in each of them. libtpu of 0.4.35 aborts on them, that of 0.8.3 on a negative index
      into a leading dimension, that of 0.12.0.1 compiles them; Triton and Mosaic GPU lower them, with the
      constant -1 as index. In interpret mode `x_ref[-1]` is the last row.
    """

    code = "PAL210"
    name = "negative-ref-index"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + x_ref[-1]  #!-
                o_ref[...] = x_ref[...] + x_ref[x_ref.shape[0] - 1]  #+

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            run="run(f32(16, 128))",
        ),
        Example(
            """
            def kernel(length_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...] * length_ref[-1]  #!-
                o_ref[...] = x_ref[...] * length_ref[length_ref.shape[0] - 1]  #+

            def run(lengths, x):
                return pl.pallas_call(
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(4,),
                        in_specs=[pl.BlockSpec((8, 128), lambda i, lengths: (lengths[-1], 0))],  #!-
                        in_specs=[pl.BlockSpec((8, 128), lambda i, lengths: (lengths[lengths.shape[0] - 1], 0))],  #+
                        out_specs=pl.BlockSpec((8, 128), lambda i, lengths: (i, 0)),
                    ),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                )(lengths, x)
            """,
            run="run(i32(4), f32(32, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = x + x[-1]  # a value is an array: counted from the end
                o_ref[0, :] = x_ref[x_ref.shape[0] - 1, :]
                o_ref[:2, :] = x_ref[-2:, :]  # so are the bounds of slices

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                i = pl.program_id(0)

                @pl.when(i > 0)
                def _():
                    o_ref[i, :] = x_ref[i - 1, :]

            def run(x):
                return pl.pallas_call(
                    kernel, grid=(16,), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={0: 0}
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        for indexing in ref_indexings(trace):
            for part in indexing.parts:
                yield from self._check(indexing, part, trace, context)

    def _check(self, indexing: RefIndexing, part: IndexPart, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        value = part.value
        if isinstance(value, Slice):
            if value.size is None or _wraps_slices(context):
                return  # bounds of a plain slice are counted from the end
            value = value.start
        constant = negative_constant(value)
        if constant is not None:
            if not _is_one_ref(indexing, trace):
                return
            spelled = indexing.site.code.partition("\n")[0]
            last = f"{_base(indexing)}.shape[{_axis(part)}] - 1"
            yield context.finding(
                indexing.site,
                f"`{spelled}`: index {constant} of a ref is not counted from the end, it is before the buffer",
                help=f"the last one is `{last}`; interpret mode hides the difference",
                op=indexing.event,
                fixes=_fixes(indexing, part, constant, context),
            )
            return
        steps = _below_zero_at_first(value)
        conditions = conditions_in(indexing.event.guards)
        if steps is not None and all(always_holds(guard, trace.launch) for guard in conditions):
            spelled = indexing.site.code.partition("\n")[0]
            certain = indexing.writes or conditions or _is_copied(indexing, trace) or _is_kept(indexing, trace)
            yield context.finding(
                indexing.site,
                f"`{spelled}`: the index is {steps[0]} in the first {steps[1]}, before the buffer",
                help="put it under `pl.when`, or start the index at 0 with `jnp.maximum`",
                severity=Severity.WARNING if certain else Severity.INFO,
                op=indexing.event,
            )

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        """Scalar-prefetch refs in index maps."""
        names = {parameter.name.value for parameter in index_map.parameters}
        for node in index_map.subscripts:
            if not isinstance(node.value, nodes.Name):
                continue
            if (
                node.value.value not in names
                or len(node.slice) != 1
                or not isinstance(node.slice[0].slice, nodes.Index)
            ):
                continue
            constant = _literal(node.slice[0].slice.value)
            if constant is None or constant >= 0:
                continue
            site = index_map.site_of(node)
            inner = index_map.site_of(node.slice[0].slice.value)
            name = node.value.value
            yield context.finding(
                site,
                f"`{site.code}`: index {constant} of a ref is not counted from the end, it is before the buffer",
                help=f"the last one is `{name}.shape[0] - 1`; interpret mode hides the difference",
                fixes=[
                    context.safe(
                        f"write `{name}.shape[0] - {-constant}`",
                        context.replace(inner, f"{name}.shape[0] - {-constant}"),
                    )
                ],
            )


def _is_kept(indexing: RefIndexing, trace: KernelTrace) -> bool:
    """Whether what is loaded certainly goes into a result that nothing replaces, and no comparison may mask it."""
    load = indexing.event
    if not isinstance(load, Access) or load.kind != "load" or not load.certain or not trace.complete:
        return False
    if trace.tracked_until is not None or any(op.short in _COMPARISONS for op in trace.ops()):
        return False
    made = Flow(trace).derived(load)
    writes = [each for each in trace.accesses() if each.kind in ("store", "accumulate")]
    into = [at for at, each in enumerate(writes) if is_among(each.value, made)]
    if not into or not reaches_result(load, trace):
        return False
    if not all(writes[at].kind == "accumulate" or _moves(writes[at].index, trace) for at in into):
        return False  # what later steps replace
    kept = {writes[at].ref.buffer for at in into}
    return not any(each.ref.buffer in kept for each in writes[into[-1] + 1 :])


def _moves(index: Value, trace: KernelTrace) -> bool:
    """Whether an index goes on with the steps of a loop or of the grid."""
    starts = [part.start if isinstance(part, Slice) else part for part in as_tuple(index)]
    return any(any(loops_in(start)) or axes_in(start, trace.launch)[0] for start in starts)


def _is_copied(indexing: RefIndexing, trace: KernelTrace) -> bool:
    """Whether a copy that starts in every step takes the view: TPUs stop at one that leaves its array."""
    if isinstance(indexing.event, Access) or trace.launch.backend == "mosaic_gpu":
        return False
    return any(
        isinstance(ref, Ref) and ref.indexer is indexing.index
        for start in copies_of(trace).of("start")
        for ref in (start.source, start.target)
        if start.op.certain and all(always_holds(guard, trace.launch) for guard in conditions_in(start.op.guards))
    )


def negative_constant(value: Value) -> int | None:
    """The integer below 0 that the value certainly is."""
    if isinstance(value, Const):
        known = value.value
        return known if isinstance(known, int) and not isinstance(known, bool) and known < 0 else None
    if isinstance(value, CallResult) and value.short in _CASTS and len(value.args) == 1:
        return negative_constant(value.args[0])
    origin = value.origin if isinstance(value, Array) and value.shape == () else None
    if origin is not None and origin.args and origin.short in _CASTS:
        return negative_constant(origin.args[0])
    return None


def _literal(node: nodes.BaseExpression) -> int | None:
    if isinstance(node, nodes.UnaryOperation) and isinstance(node.operator, nodes.Minus):
        inner = _literal(node.expression)
        return None if inner is None else -inner
    return integer_value(node) if isinstance(node, nodes.Integer) else None


def _below_zero_at_first(value: Value) -> tuple[int, str] | None:
    """The index in the first step, and what kind of step, for `program_id(0) - 1` and its like below 0."""
    first = _first_value(value)
    return first if first is not None and first[0] < 0 and first[1] else None


@memoize_by_identity
def _first_value(value: Value, depth: int = 0) -> tuple[int, str] | None:
    """What an index is in the first step of the grid or loop that it counts; no step for a constant."""
    if isinstance(value, Const):
        return (value.value, "") if type(value.value) is int else None
    if not isinstance(value, Array) or value.origin is None or depth > _MAX_DEPTH:
        return None
    origin = value.origin
    if origin.name == PROGRAM_ID:
        return 0, "grid step"
    if origin.name == LOOP_INDEX:
        lower = origin.args[0]
        return (lower.value, "iteration") if isinstance(lower, Const) and type(lower.value) is int else None
    combine = _ARITHMETIC.get(origin.short)
    if combine is None or len(origin.args) != 2:
        return None
    left, right = (_first_value(operand, depth + 1) for operand in origin.args)
    if combine is operator.mul:
        zero = next((side for side in (left, right) if side is not None and side[0] == 0), None)
        if zero is not None:
            return zero
    if left is None or right is None:
        return None
    return combine(left[0], right[0]), left[1] or right[1]


def _is_one_ref(indexing: RefIndexing, trace: KernelTrace) -> bool:
    """Whether it certainly is a ref that is indexed, not a tuple of refs that came in one argument."""
    ref = indexing.ref
    if ref.view or ref.shape is not None or ref.space is not None or len(indexing.parts) > 1:
        return True
    if ref.role in ("prefetch", "in", "out") and not ref.optional:
        return True
    others = (other for other in ref_indexings(trace) if other.ref.buffer == ref.buffer)
    return any(isinstance(other.index, Seq) or other.index == ELLIPSIS for other in others)


def _wraps_slices(context: Context) -> bool:
    """Mosaic GPU before jax 0.12 counts the start of a static slice from the end."""
    if context.launch is None or context.launch.backend != "mosaic_gpu":
        return False
    return any(parse(version) < (0, 12) for version in context.versions)


def _base(indexing: RefIndexing) -> str:
    return indexing.ref.parameter if indexing.base is None else indexing.base.code


def _axis(part: IndexPart) -> int:
    return part.axis or 0


def _fixes(indexing: RefIndexing, part: IndexPart, constant: int, context: Context) -> list[Fix]:
    """`ref.shape[axis] - 1` where the index is written out as a number."""
    base, node = indexing.base, part.node
    if isinstance(node, nodes.Call) and node.args:
        node = node.args[0].value  # the start of a `pl.ds`, or what is cast
    if base is None or node is None or _literal(node) != constant:
        return []
    text = f"{base.code}.shape[{_axis(part)}] - {-constant}"
    return [context.safe(f"write `{text}`", context.replace(Site(indexing.site.piece, node), text))]
