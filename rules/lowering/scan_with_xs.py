"""PAL108 scan-with-xs."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    NONE,
    Access,
    Array,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Op,
    Ref,
    Rule,
    Severity,
    Value,
    dim,
    failure,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, is_integer
from pallas_lint.records import frozen
from pallas_lint.syntax.nesting import spelled_function

_WHEN = "jax.experimental.pallas.when"
_LOOPS = ("jax.lax.fori_loop", "jax.experimental.pallas.loop")
_EVERY = frozenset({"tpu", "triton", "mosaic_gpu"})
_BOTH = frozenset({"tpu", "triton"})
_TPU, _TRITON = frozenset({"tpu"}), frozenset({"triton"})


@frozen
class _ScanRefusal:
    """What is refused, on which backends, from which version to which."""

    what: str
    instead: str
    backends: frozenset[str]
    until: str | None = None
    severity: Severity = Severity.ERROR
    mosaic_gpu: bool = False  # Mosaic GPU too, for which the newest release was measured

    def fails(self, backend: str, device: str | None, version: str) -> bool:
        if backend == "mosaic_gpu" and self.mosaic_gpu:
            return within(version, "0.12.0.1")
        return backend in self.backends and within(version, "0.4.35", self.until)


class ScanWithXs(Rule):
    """A loop or branch in a form that no kernel can take: `lax.scan` over arrays, `lax.map`, an unrolled loop.

    `lax.scan` slices its `xs` and stacks its `ys` along the first axis, `lax.map` is a scan that does both, and
    `lax.associative_scan` cuts and joins its operand. Kernels have no such slices of values: the lowering raises `Scan
    with 1 extensive argument(s) is not supported` (before jax 0.9 a bare `NotImplementedError`). Scanning backwards
    is refused too, and so is `unroll=` on Triton, and on TPU before 0.10 where it is not the whole loop. With
    bounds that are known only in the kernel `fori_loop` refuses to unroll on any backend: `Can only use unroll in
    fori_loop if the loop bounds are statically known`. Up to 0.8 a scan without `xs` lowers only if a counter leads
    its carry. Interpret mode runs all of these but the last two. The condition of a `lax.cond` or `pl.when` is one
    boolean, on every backend (`Pred must be a scalar`).

    ## How to fix

    Loop with `lax.fori_loop` and index the ref in the body: `acc + x_ref[i, :]` instead of scanning over
    `x_ref[...]`, `o_ref[i, :] = ...` instead of collecting results. Unroll loops with bounds of the kernel by hand,
    several steps in one.

    ## Known limits

    Results that a scan collects count only where something takes them. Mosaic GPU was measured
    with jax 0.12.0.1 only, and takes an `unroll=` that divides the length. On SparseCores, only what every backend
    refuses is found.

    ## References

    - 76 loops and branches lowered for TPU and Triton by jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2
      and 0.12.0.1; those that pass in 0.12.0.1 compiled with libtpu for v5e and v6e.
    - jax issue 21190: a scan over a value that works in interpret mode only.
    """

    code = "PAL108"
    name = "scan-with-xs"
    severity = Severity.ERROR
    backends = _EVERY
    cores = frozenset({"tensor", "sparse"})
    runs_without_backend = True
    ops = (
        "jax.lax.scan", "jax.lax.map", "jax.lax.associative_scan", "jax.lax.fori_loop", "jax.lax.while_loop",
        "jax.lax.cond", "jax.lax.switch", "jax.experimental.pallas.loop", _WHEN,
    )  # fmt: skip
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                def add(total, row):
                    return total + row, None

                total, _ = lax.scan(add, jnp.zeros((128,)), x_ref[...])  #!
                o_ref[...] = jnp.broadcast_to(total, (8, 128))

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
        Example(
            """
            def kernel(n_ref, x_ref, o_ref):
                n = n_ref[0]
                o_ref[...] = lax.fori_loop(0, n, lambda i, a: a * 2, x_ref[...], unroll=4)  #!

            def run(n, x):
                return pl.pallas_call(
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(n, x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                total, _ = jax.lax.scan(lambda acc, row: (acc + row[...], None), jnp.zeros((8, 128)), x_ref)  #!
                o_ref[...] = total

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                total = lax.fori_loop(0, 8, lambda i, total: total + x_ref[i, :], jnp.zeros((128,)))
                o_ref[...] = jnp.broadcast_to(total, (8, 128))

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                doubled, _ = lax.scan(lambda a, _: (a * 2, None), x_ref[...], None, length=4)
                o_ref[...] = doubled

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.12.0.1",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        if op.open:
            return
        trace = context.trace
        sparse = context.target is not None and context.target.core == "sparse"
        for refusal in _refusals(op, trace):
            if sparse and refusal.backends != _EVERY:
                continue  # what is refused by lowering was not measured there
            found = failure(context, refusal.fails)
            if found is None:
                continue
            severity = found.severity if found.severity is Severity.INFO else refusal.severity
            yield context.finding(
                op.site,
                f"`{spelled_function(op.site)}` {refusal.what}",
                help=refusal.instead,
                severity=severity,
                op=op,
                only_in=found.only_in,
            )
            return


_INDEX_REFS = "loop with `lax.fori_loop(0, n, body, init)`, and read `ref[i]` in its body"


def _refusals(op: Op, trace: KernelTrace | None) -> Iterator[_ScanRefusal]:
    short = op.short
    if short == "scan":
        yield from _of_scan(op, trace)
    elif short == "map":
        yield _ScanRefusal("slices and stacks arrays: no kernel can", _INDEX_REFS, _BOTH, mosaic_gpu=True)
    elif short == "associative_scan":
        yield from _of_associative_scan(op)
    elif op.name in _LOOPS:
        yield from _of_loop(op)
    elif short == "cond" or op.name == _WHEN:
        predicate = op.argument("pred" if short == "cond" else "condition", 0)
        if isinstance(predicate, Array) and predicate.shape and not predicate.host:
            yield _ScanRefusal(
                "is given an array: it takes one boolean", "select with `jnp.where(condition, a, b)`", _EVERY
            )


def _of_scan(op: Op, trace: KernelTrace | None) -> Iterator[_ScanRefusal]:
    leaves = list(tree_leaves(op.argument("xs", 2) or NONE))
    arrays = sum(isinstance(leaf, Array) for leaf in leaves)
    if arrays or any(isinstance(leaf, Ref) for leaf in leaves):
        what = (
            f"scans over {arrays} arrays: no kernel can slice them"
            if arrays > 1
            else f"scans over {'an array' if arrays else 'a ref'}: no kernel can slice it"
        )
        yield _ScanRefusal(what, _INDEX_REFS, _BOTH, mosaic_gpu=True)
    if op.argument("reverse", 4) == Const(True):
        yield _ScanRefusal(
            "scans backwards, for which there is no lowering",
            "count down in the body: read `ref[n - 1 - i]`",
            _BOTH,
            mosaic_gpu=True,
        )
    if trace is not None and _is_taken(op, trace):
        what = "collects results: no kernel can stack them"
        yield _ScanRefusal(what, "store them to a ref in the body: `ref[i] = y`", _BOTH, mosaic_gpu=True)
    leading = next((leaf for leaf in tree_leaves(op.argument("init", 1) or NONE) if leaf != NONE), None)
    number = isinstance(leading, Const) and leading.kind is float
    if number or (isinstance(leading, Array) and (leading.shape or not leading.kinds & {"int", "other"})):
        what = "does not lower without a counter as the first element of its carry"
        yield _ScanRefusal(what, "use `lax.fori_loop`", _BOTH, "0.8.3")
    steps = dim(op.argument("length", 3) or NONE)
    yield from _of_unroll(op.argument("unroll", 5), steps)


def _of_associative_scan(op: Op) -> Iterator[_ScanRefusal]:
    operand, axis = op.argument("elems", 1), op.argument("axis", 3) or Const(0)
    size = None
    if isinstance(operand, Array) and operand.shape and is_integer(axis):
        if not -len(operand.shape) <= axis.value < len(operand.shape):
            return
        size = operand.shape[axis.value]
    if size == 1:
        return
    severity = Severity.ERROR if isinstance(size, int) else Severity.WARNING
    instead = "multiply by a triangular matrix, or loop with `lax.fori_loop`"
    yield _ScanRefusal("cuts and joins its operand: no kernel can", instead, _BOTH, severity=severity)


def _of_loop(op: Op) -> Iterator[_ScanRefusal]:
    lower, upper = op.argument("lower", 0), op.argument("upper", 1)
    if upper is None:
        lower, upper = Const(0), lower
    unroll = op.argument("unroll", 3 if op.short == "loop" else 4)
    if _is_traced(lower) or _is_traced(upper):
        what = "unrolls a loop whose bounds are known only in the kernel"
        instead = "leave `unroll` out, or do several steps in the body by hand"
        if isinstance(unroll, Const) and unroll.kind is int and unroll.value > 1:
            yield _ScanRefusal(what, instead, _EVERY)
        elif isinstance(unroll, Const) and unroll != NONE:
            yield _ScanRefusal(what, "leave `unroll` out", _EVERY, "0.5.3")
        return
    first, last = dim(lower or NONE), dim(upper or NONE)
    steps = max(last - first, 0) if isinstance(first, int) and isinstance(last, int) else None
    static = steps is not None or (not isinstance(lower, Array) and not isinstance(upper, Array))
    if static:
        yield from _of_unroll(unroll, steps)


def _of_unroll(unroll: Value | None, steps: object) -> Iterator[_ScanRefusal]:
    if not isinstance(unroll, Const) or unroll.kind not in (int, bool) or not unroll.value:
        return
    if (unroll.kind is int and unroll.value == 1) or (unroll.kind is bool and steps in (0, 1)):
        return
    repeat = "leave `unroll` out, or repeat the step in a Python loop: `for i in range(n)`"
    severity = Severity.ERROR if unroll.kind is int or isinstance(steps, int) else Severity.WARNING
    yield _ScanRefusal("unrolls, for which Triton has no lowering", repeat, _TRITON, severity=severity)
    if unroll.kind is int and isinstance(steps, int) and unroll.value != steps:
        what = f"unrolls {unroll.value} of {steps} steps: TPU takes all or none"
        yield _ScanRefusal(what, "pass `unroll=True`, or leave it out", _TPU, "0.9.2")


@memoize_by_identity
def _is_traced(value: Value | None, depth: int = 8) -> bool:
    """Whether a bound is certainly known only in the kernel: made of a load, a grid index or the index of a loop."""
    if not isinstance(value, Array) or value.host:
        return False
    op = value.origin
    if op is None:
        return True
    if op.name == NUM_PROGRAMS or depth == 0:
        return False  # a Python number where the grid is static
    if not op.arrays:
        return op.name.endswith("program_id") or "loop index" in op.name
    return any(_is_traced(array, depth - 1) for array in op.arrays)


def _is_taken(loop: Op, trace: KernelTrace) -> bool:
    """Whether something takes the results that the scan collects."""
    for event in trace.events:
        if isinstance(event, Op) and any(array.origin is loop for array in event.arrays):
            return True
        if isinstance(event, Access):
            values = (event.value, event.index)
            if any(isinstance(value, Array) and value.origin is loop for value in values):
                return True
    return False
