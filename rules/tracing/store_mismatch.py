"""PAL506 store-mismatch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    Access,
    Array,
    Const,
    Context,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Ref,
    Rule,
    Severity,
    Shape,
    Site,
    Sym,
    Value,
    nodes,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.kernels.facts.copy_ends import started_by, unequal_ends
from pallas_lint.kernels.facts.operand_shapes import (
    comes_of_mismatch,
    outer_broadcast,
    outer_product,
)
from pallas_lint.kernels.facts.ref_indexing import RefIndexing
from pallas_lint.kernels.library.indexing import result_shape
from pallas_lint.kernels.library.operands import broadcast, shape
from pallas_lint.kernels.model.dtypes import canonical, operand_element
from pallas_lint.kernels.model.kinds import FLOATING, INTEGER, described, differ, exact, kinds_of
from pallas_lint.kernels.model.symbols import default_of
from pallas_lint.kernels.model.trace import is_full_index
from pallas_lint.kernels.model.values import spelled_shape
from pallas_lint.syntax.nesting import operand, parent

if TYPE_CHECKING:
    from pallas_lint.kernels.model.kinds import Element


class StoreMismatch(Rule):
    """A store of a value that has another dtype or another shape than what it is stored to.

    Unlike assignments to NumPy arrays, stores to refs neither cast nor broadcast. `o_ref[...] = v` is refused while the
    kernel is traced, on every backend and in interpret mode, unless `v` has the shape of `o_ref[...]` (`Invalid shape
    for swap`: not `(1, n)` for `(m, n)`, not `(n,)` for `(1, n)`, not the number 0 for anything but a single element)
    and its dtype (`Invalid dtype for swap`). An `o_ref[...] += v` computes first, so `v` may broadcast there; what is
    stored is the sum, in the dtype that the two promote to. And a ref is no value: `o_ref[...] = x_ref` is refused too.

    Some dtypes do convert by `ref[...] = v`: since jax 0.6.0 any integer to any other, and Python's floats, with what
    is computed of them alone (weakly typed floats), to any float; up to 0.5.3 all that is weakly typed, and nothing
    else. `pl.store`, `pltpu.store` and `plgpu.store` convert nothing at all.

    Nor do asynchronous copies on TPU: both ends have one shape and one dtype, or the compiler refuses the copy
    (`'tpu.enqueue_dma' op DMA source and target element type mismatch`). Interpret mode takes other shapes.

    Where one operation made too much of its operands, `(n, n)` of `(n, 1)` and `(n,)`, the finding is there.

    ## How to fix

    Cast what is stored, `value.astype(o_ref.dtype)`, and bring it into shape: `keepdims=True`, `reshape`,
    `jnp.broadcast_to(value, o_ref.shape)`, `jnp.zeros_like(o_ref)`; index a dimension that is to vanish
    (`o_ref[0, :] = row`). Where the ref is wrong, correct `out_shape` or the scratch buffer.

    ## Fix safety

    Safe where floats become floats, where a Python number fills a ref, and for a forgotten `[...]`: the code could not
    run. Unsafe are casts to another kind of dtype (a float may belong into a float output) and `broadcast_to` (a
    reduction may lack its `keepdims`).

    ## Known limits

    Checks what is certain of both sides; the kind of a dtype may be enough, `x / 2` fits no integers whatever `x`
    is. Dimensions known by name only are compared with 1, as a warning, unless the code itself provides for 1: by a
    parameter's default, or as a bound (`max(n // 8, 1)`); names are not compared with other names or numbers. 64-bit
    dtypes count as those of 32 bits that they become without `jax_enable_x64`.

    ## References

    - jax issues 19292 and 22817: numbers stored to whole blocks.
    - jax, `_src/state/primitives.py`, `_maybe_implicit_cast` (since 0.6.0).
    - 440 stores traced with each of jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: the
      shapes are refused alike in all, the dtypes as described above.
    - Copies of unequal ends, compiled for v5e with jax 0.6.2, lowered with 0.7.2, 0.8.3 and 0.12.0.1: all refused.
    """

    code = "PAL506"
    name = "store-mismatch"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...].astype(jnp.float32) * 2.0  #!-
                o_ref[...] = (x_ref[...].astype(jnp.float32) * 2.0).astype(o_ref.dtype)  #+

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 128), jnp.bfloat16))(x)
            """,
            run="run(bf16(16, 128))",
        ),
        Example(
            """
            def kernel(x_ref, o_ref, acc_ref):
                acc_ref[...] = 0.0  #!
                acc_ref[...] += jnp.sum(x_ref[...], axis=0)
                o_ref[...] = acc_ref[...]  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec((16, 128), lambda: (0, 0))],
                    out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_hbm, o_ref, buf, sem):
                copy = pltpu.make_async_copy(x_hbm.at[pl.ds(0, 1)], buf, sem)  #!
                copy.start()
                copy.wait()
                o_ref[...] = buf[...]

            def first(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA],
                )(x)

            first(jnp.ones((4, 16, 128)))
            """
        ),
        Example(
            """
            def kernel(x_ref, w_ref, o_ref):
                gate, up = jnp.split(x_ref[...] @ w_ref[...], 2, axis=0)
                o_ref[...] = gate * up  #!

            def gated(x, w, rows=64):
                k, two = x.shape[1], w.shape[-1]
                return pl.pallas_call(
                    kernel,
                    grid=(x.shape[0] // rows,),
                    in_specs=[pl.BlockSpec((rows, k), lambda i: (i, 0)), pl.BlockSpec((k, two), lambda i: (0, 0))],
                    out_specs=pl.BlockSpec((rows, two // 2), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((x.shape[0], two // 2), x.dtype),
                )(x, w)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref, count_ref):
                o_ref[...] = (x_ref[...].astype(jnp.float32) * 2.0).astype(o_ref.dtype)
                o_ref[0:1, :] = jnp.where(x_ref[0:1, :] > 0, 1.0, 0.0)
                o_ref[...] += 0.5
                count_ref[0, 0] = 0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=(
                        jax.ShapeDtypeStruct((16, 128), jnp.bfloat16),
                        jax.ShapeDtypeStruct((1, 1), jnp.int32),
                    ),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        calls = {op.site.key: op.short for op in trace.ops() if isinstance(op.site.node, nodes.Call)}
        for access in trace.accesses():
            if access.kind not in ("store", "accumulate") or "semaphore" in (access.ref.dtype, access.ref.space):
                continue
            called = calls.get(access.site.key)
            if called is None or called in ("store", "swap"):  # not copies, not atomics
                yield from _check(access, strict=called is not None, context=context)
        if trace.launch.backend == "tpu" and not trace.launch.interpret and not trace.launch.argument("mesh"):
            yield from _check_copies(trace, context)


def _check_copies(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Copies from HBM to VMEM and back, and to other devices; SparseCores also gather and scatter by them."""
    for op in trace.ops():
        copy = started_by(op)
        reason = unequal_ends(copy) if copy is not None else None
        if copy is not None and reason is not None:
            help = "give the buffer the shape and dtype of what is copied, and cast or reshape what was loaded from it"
            yield context.finding(copy.site, reason, help=help, op=op)


def _check(access: Access, *, strict: bool, context: Context) -> Iterator[Finding]:
    name, stored = access.ref.parameter, access.value
    if isinstance(stored, Ref):
        if not strict and not stored.optional:
            yield context.finding(
                access.site,
                f"`{stored.parameter}` itself is stored into `{name}`, not what it holds",
                help=f"load it first: `{stored.parameter}[...]`",
                op=access,
                fixes=_loaded(access, context),
            )
        return
    if not isinstance(stored, Array) and not (isinstance(stored, Const) and stored.kind in (bool, int, float, complex)):
        return
    target, given = result_shape(access.ref.shape, access.index), shape(stored)
    if target is not None and given is not None:
        severity = _shapes_differ(target, given, access.ref.shape or ())
        others = _same_store(access, context) if severity is not None else []
        if any(comes_of_mismatch(each.value) for each in ([access, *others] if severity is not None else ())):
            return
        if severity is not None and not (severity is Severity.WARNING and any(map(_fits, others))):
            yield _shape_finding(access, target, given, severity, context)
            return
    yield from _dtype(access, stored, strict, context)


def _shape_finding(access: Access, target: Shape, given: Shape, severity: Severity, context: Context) -> Finding:
    """A store of another shape, at the store, or at the operation that made too much of its operands."""
    name = access.ref.parameter
    message = (
        f"shape {spelled_shape(given)} is stored where `{name}` has {spelled_shape(target)}: stores do not broadcast"
    )
    larger = len(given) > len(target)
    growth = outer_product([access.value]) if larger else outer_broadcast(access.value, target)
    if growth is not None:
        return context.finding(
            growth.op.site,
            f"{growth.reason}: {message}",
            help=growth.instead,
            severity=severity,
            op=growth.op,
            related=[(access.site, "where it does not fit")],
        )
    return context.finding(
        access.site,
        message,
        help="store a value of that shape: `jnp.broadcast_to(x, ref.shape)`, a reduction with `keepdims=True`"
        if given
        else f"fill it: `jnp.full({spelled_shape(target)}, ...)`",
        severity=severity,
        op=access,
        fixes=_filled(access, target, given, context),
    )


# -- shapes --------------------------------------------------------------------------------------------------------


def _shapes_differ(target: Shape, given: Shape, ref: Shape) -> Severity | None:
    """How sure it is that jax refuses the store; None where it may fit."""
    if len(target) != len(given):
        # A symbol in a block shape may be None, which removes the dimension.
        return Severity.ERROR if all(map(_is_size, (*target, *given, *ref))) else Severity.WARNING
    pairs = list(zip(target, given, strict=True))
    if any(isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs):
        return Severity.ERROR
    if any(_is_part(one, other) or _is_part(other, one) for one, other in pairs):
        return Severity.ERROR
    # `(n, 1)` for `(n, m)`: it fits where m is 1. With two such dimensions, `(1, n)` for `(n, 1)`, it may well be.
    differing = [one if other == 1 else other for one, other in pairs if one != other and 1 in (one, other)]
    likely = len(differing) == 1 and isinstance(differing[0], Sym) and not _may_be_one(differing[0])
    return Severity.WARNING if likely else None


def _is_part(part: int | Sym | None, whole: int | Sym | None) -> bool:
    """Whether one size is a fraction of the other, by which no two are equal: `n // 2` of n."""
    if not isinstance(part, Sym) or part.operation is None:
        return False
    symbol, divided, count = part.operation
    return symbol == "//" and divided == whole and isinstance(count, Const) and count.kind is int and count.value > 1


def _same_store(access: Access, context: Context) -> list[Access]:
    """The store as other calls of the launcher have it: with their sizes."""
    launch = context.launch
    return [
        each
        for other in context.analysis.launches
        if launch is not None and other is not launch and other.site.key is launch.site.key
        for trace in other.traces
        for each in trace.accesses(access.ref.parameter)
        if each.site.key is access.site.key
    ]


def _fits(access: Access) -> bool:
    target, given = result_shape(access.ref.shape, access.index), shape(access.value)
    return target is not None and given is not None and _shapes_differ(target, given, access.ref.shape or ()) is None


def _may_be_one(size: Value) -> bool:
    """Whether the code itself provides for the size 1: by the defaults of parameters, or as a bound, `max(n, 1)`."""
    usual = default_of(size)
    if usual is not None:
        return usual == 1
    if not isinstance(size, Sym) or size.operation is None:
        return False
    symbol, left, right = size.operation
    if symbol in ("max", "min"):
        return _may_be_one(left) or _may_be_one(right)
    return symbol == "*" and _may_be_one(left) and _may_be_one(right)


def _is_size(size: int | Sym | None) -> bool:
    """Whether a dimension is certainly a number: its value, or arithmetic, is known."""
    return isinstance(size, int) or (isinstance(size, Sym) and (size.operation is not None or ".shape[" in size.text))


# -- dtypes --------------------------------------------------------------------------------------------------------


def _dtype(access: Access, stored: Array | Const, strict: bool, context: Context) -> Iterator[Finding]:
    (given, weak), wanted = operand_element(stored), canonical(access.ref.element)
    given = canonical(given)
    if "other" in kinds_of(given) | kinds_of(wanted) or not differ(given, wanted):
        return
    weak = weak or _may_be_weak(stored, given)

    def fails(version: str) -> bool:
        return strict or not _converts(given, wanted, weak, version)

    versions = context.failing(fails)
    if not versions:
        return
    always = context.everywhere(fails)
    since = "" if always else f" in jax {context.spelled_versions(versions)}"
    name = access.ref.parameter
    yield context.finding(
        access.site,
        f"{described(given)} is stored into `{name}`, which holds {described(wanted)}: stores do not cast{since}",
        help=f"cast the value, `.astype({name}.dtype)`, or declare `{name}` as {described(given)}",
        op=access,
        only_in=() if always else versions,
        dtype=exact(given),
        fixes=_cast(access, stored, given, wanted, context),
    )


def _may_be_weak(stored: Array | Const, given: Element) -> bool:
    """Whether the value may be weakly typed: only its kind is known, or it compares values that may be weak."""
    if not isinstance(given, str):
        return True
    compared = stored.origin.arrays if given == "bool" and isinstance(stored, Array) and stored.origin else []
    return bool(compared) and all(array.dtype in (None, "bool") or array.weak for array in compared)


def _converts(given: Element, wanted: Element, weak: bool, version: str) -> bool:
    """Whether `ref[...] = value` converts one dtype to the other, which is not the same."""
    if not within(version, "0.6.0"):
        return weak
    kinds = kinds_of(given)
    return kinds == kinds_of(wanted) and (kinds == INTEGER or (weak and kinds == FLOATING))


# -- fixes ---------------------------------------------------------------------------------------------------------


def _value_site(access: Access) -> Site | None:
    """The expression that is stored."""
    site, node = access.site, access.site.node
    if isinstance(node, nodes.AugAssign):
        return Site(site.piece, node.value)
    if isinstance(node, nodes.Subscript):
        target = parent(site)
        statement = parent(Site(site.piece, target)) if isinstance(target, nodes.AssignTarget) else None
        sole = isinstance(statement, nodes.Assign) and len(statement.targets) == 1
        return Site(site.piece, statement.value) if sole and isinstance(statement, nodes.Assign) else None
    return None


def _ref_text(access: Access) -> str | None:
    base = RefIndexing(access.ref, access.index, access).base
    # A view has another shape than its base; the dtype of a bitcast is another, too.
    return base.code if base is not None and not access.ref.view and isinstance(base.node, nodes.Name) else None


def _loaded(access: Access, context: Context) -> list[Fix]:
    value = _value_site(access)
    if (
        value is None
        or not isinstance(value.node, nodes.Name | nodes.Attribute)
        or isinstance(access.site.node, nodes.AugAssign)
    ):
        return []
    return [context.safe("load it", context.replace(value, f"{value.code}[...]"))]


def _cast(access: Access, stored: Array | Const, given: Element, wanted: Element, context: Context) -> list[Fix]:
    value, ref = _value_site(access), _ref_text(access)
    if value is None or ref is None or not isinstance(stored, Array):
        return []
    title = f"cast to the dtype of `{ref}`"
    edit = context.replace(value, f"{operand(value)}.astype({ref}.dtype)")
    same_kind = kinds_of(given) == kinds_of(wanted) == FLOATING
    return [context.safe(title, edit) if same_kind else context.unsafe(title, edit)]


def _filled(access: Access, target: Shape, given: Shape, context: Context) -> list[Fix]:
    value, ref = _value_site(access), _ref_text(access)
    if value is None or ref is None or not is_full_index(access.index) or isinstance(access.site.node, nodes.AugAssign):
        return []
    if isinstance(access.value, Const):
        spelled, imports = context.spell("jax.numpy.full", context.module_of(access.site))
        edit = context.replace(value, f"{spelled}({ref}.shape, {value.code}, {ref}.dtype)")
        return [context.safe(f"fill `{ref}`", edit, *imports)]
    if broadcast([target, given]) == target:
        spelled, imports = context.spell("jax.numpy.broadcast_to", context.module_of(access.site))
        edit = context.replace(value, f"{spelled}({value.code}, {ref}.shape)")
        return [context.unsafe(f"broadcast to the shape of `{ref}`", edit, *imports)]
    return []
