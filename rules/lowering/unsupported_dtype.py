"""PAL102 unsupported-dtype."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.api import (
    Array,
    Const,
    Context,
    Edit,
    Example,
    Finding,
    Fix,
    Func,
    KernelTrace,
    Op,
    Ref,
    Rule,
    Seq,
    Severity,
    Site,
    Span,
    failure,
    nodes,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.compat import SupportStatus
from pallas_lint.compat.outcomes import dtypes_named
from pallas_lint.kernels.facts.loaded_values import uses_loaded
from pallas_lint.kernels.library.arrays import broadcasts, promotes
from pallas_lint.kernels.model.dtypes import (
    bits,
    canonical,
    dtype_of,
    is_float,
    is_integer,
    long_name,
    operand_element,
    promote,
)
from pallas_lint.kernels.model.kinds import INEXACT, INTEGER, kinds_of
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.syntax.nesting import operand, spelled_function

if TYPE_CHECKING:
    from pallas_lint.api import Access
    from pallas_lint.compat import FunctionSupport
    from pallas_lint.config.targets import Target
    from pallas_lint.kernels.model.kinds import Element

# These report more about the dtypes of their functions; only they report it.
_SPECIALISTS = ("PAL103", "PAL104", "PAL105", "PAL106", "PAL108", "PAL109", "PAL202", "PAL203", "PAL207", "PAL208")
_WORDS = {
    SupportStatus.LOWER: "does not lower",
    SupportStatus.COMPILE: "does not compile",
    SupportStatus.ABORT: "crashes the compiler",
    SupportStatus.WRONG: "gives wrong numbers",
}
# Functions that are called on floats: for integers they do nothing, or something else would be written.
_OF_FLOATS = frozenset(
    "around log_softmax nanargmax nanargmin nanmax nanmin rint round signbit softmax stop_gradient".split()
)


class UnsupportedDtype(Rule):
    """A call that the backend supports, but not for the dtype at hand.

    The primitive has a lowering rule, so the function works in 32 bits; then the hardware or the compiler
    lacks the operation for a narrower or unsigned type. The vector unit of a TPU computes in 32 bits, and
    only from v6e on partly in bfloat16; int8 is a storage and matrix-unit format on TPU (`Only vector<i16>
    and vector<i32> are supported, but got 'i8'`); Triton reduces no booleans. A few operations compile and
    then compute wrong numbers on the device, which no test in interpret mode shows.

    The verdicts come from measuring: every function was lowered for seven dtypes by jax releases from 0.4.35 on,
    compiled with libtpu for v5e and v6e, with jax 0.12.0.1 for v4, v5p and tpu7x too, and run on an NVIDIA H200.
    Casts, shifts, arithmetic, reductions and comparisons were compiled for thirteen dtypes, narrow integers and 8-bit
    floats among them, and loads and stores for seven rarer floats, by jax 0.6.2 and later for each TPU from v4 to
    tpu7x. For Triton and Mosaic GPU casts and operations of 8 and 4 bits were lowered, and run on an H200 with jax
    0.11.2: Triton stores wrong numbers into int4 arrays, and its compiler ends the process at reductions of 8-bit
    floats; `x.astype(bool)` of int8 is wrong on Mosaic GPU, where `x != 0` is right; so is `lax.optimization_barrier`
    of less than 32 bits. 1,905 calls of other functions ran on Mosaic GPU with the right numbers.

    ## How to fix

    Cast around the call: `f(x.astype(jnp.float32)).astype(x.dtype)`; for whole chains of operations cast
    once, where the value is loaded, and back where it is stored.

    ## Fix safety

    Unsafe: the result is computed in 32 bits and rounded once, where the backend, if it could, would round
    otherwise; integers that overflow in the narrow type no longer do so in between.

    ## Known limits

    Needs a known dtype, or a known kind of dtype where the function lowers for none of that kind: `x / 2` is a float
    whatever `x` is. Functions that are called on floats and lower for none of them are a warning where it is not known
    what they are called on. Without a device generation given (`--target tpu:v5e`), a failure counts only if it happens
    on all that were measured. Functions that fail for every dtype are PAL101's; products, remainders, `isfinite` and
    reshapes have rules of their own.

    ## References

    - jax issues 30104, 20239 and 38990: comparisons, divisions and rounding of bfloat16, arithmetic of int8.
    - `pallas-lint support FUNCTION` prints the measured table.
    """

    code = "PAL102"
    name = "unsupported-dtype"
    severity = Severity.ERROR
    fix = "unsafe"
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    ops = ("*",)
    invalid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                x = x_ref[...].astype(jnp.bfloat16)
                y = y_ref[...].astype(jnp.bfloat16)
                o_ref[...] = lax.rem(x, y)  #!-
                o_ref[...] = lax.rem(x.astype(jnp.float32), y.astype(jnp.float32)).astype(jnp.bfloat16)  #+

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, jnp.bfloat16),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """,
            jax="0.12.0.1",
            run="run(bf16(16, 128), bf16(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                x = x_ref[...].astype(jnp.float32)
                o_ref[...] = lax.rem(x, y_ref[...].astype(jnp.float32))

            def run(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)
            """,
            jax="0.12.0.1",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        found = [*self._function(op, context)]
        if found or op.short not in _SINGLE:
            yield from found
        else:
            yield from _PACKING.get(op.name, _operation)(op, context)

    def _function(self, op: Op, context: Context) -> Iterator[Finding]:
        """A function that was measured with the dtype."""
        support, target = compat.function(op.name), context.target
        if support is None or target is None or op.name in _claimed(target.backend):
            return
        if not _fails_for_some(support, target.backend, target.device, context.jax.versions):
            return
        if any(isinstance(value, Func) for value in op.args):
            return  # a loop is what its body is
        dtypes, scalar = op.dtypes(), any(array.shape == () for array in op.arrays)
        if broadcasts(op.name) and any(array.shape for array in op.arrays):
            scalar = False  # it is broadcast
        if dtypes is None:
            yield from self._of_kind(op, support, context, scalar=scalar)
            return
        if len(dtypes) != 1 or scalar:
            return  # scalars take another path than vectors
        dtype, computed = next(iter(dtypes)), _computed_in(op)
        if promotes(op.name) and kinds_of(computed) - {"complex"} != kinds_of(dtype):
            if not isinstance(computed, str):
                return  # a number of which nothing is known may bring it to another kind
            dtype = computed
        found = failure(context, lambda *where: _counts(op, *where) and _outcome(support, dtype, *where) is not None)
        if found is None:
            return
        outcome = _outcome(support, dtype, found.backends[0], target.device, found.versions[-1])
        if outcome is None:
            return
        wide = _wider(support, dtype, found.backends[0], target.device, found.versions[-1])
        yield context.finding(
            op.site,
            f"`{spelled_function(op.site)}` of {long_name(dtype)} {_WORDS[outcome]} on {found.place}, in {found.jax}",
            help=self._help(support, wide, found.backends[0]),
            severity=Severity.WARNING if outcome is SupportStatus.WRONG else Severity.ERROR,
            op=op,
            only_in=found.only_in,
            dtype=dtype,
            fixes=self._fixes(op, context, dtype, long_name(wide)) if wide and bits(dtype) < 32 else (),
        )

    def _of_kind(self, op: Op, support: FunctionSupport, context: Context, *, scalar: bool) -> Iterator[Finding]:
        """A call that lowers for no float, or for no integer, where the dtype itself is not known."""
        kinds = kinds_of(_computed_in(op))
        sure = kinds <= INEXACT or kinds == INTEGER
        if not sure and not (op.short in _OF_FLOATS and "float" in kinds):
            return
        kind = "int" if kinds == INTEGER else "float"
        measured = dtypes_named(kind)

        def fails(backend: str, device: str | None, version: str) -> bool:
            if scalar and backend != "triton":
                return False  # there, scalars take another path than vectors
            return all(_outcome(support, dtype, backend, device, version) is SupportStatus.LOWER for dtype in measured)

        found = failure(context, fails)
        if found is None or context.target is None:
            return
        wide = _wider(support, measured[0], found.backends[0], found.device, found.versions[-1])
        spelled, words = spelled_function(op.site), {"int": "integers", "float": "floats"}
        yield context.finding(
            op.site,
            f"`{spelled}` of {words[kind]} does not lower on {found.place}, in {found.jax}",
            help=self._help(support, wide, found.backends[0]),
            certain=sure,
            op=op,
            only_in=found.only_in,
        )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        yield from _unloadable_refs(trace, context)
        yield from _wrong_stores(trace, context)

    @staticmethod
    def _help(support: FunctionSupport, wide: str | None, backend: str) -> str:
        if wide is not None:
            return (
                f"compute it in {long_name(wide)}: `x.astype(jnp.{long_name(wide)})` before, and cast the result back"
            )
        instead = compat.substitutes(support.name, backend)
        return f"instead: {instead[0]}" if instead else "compute it outside the kernel"

    @staticmethod
    def _fixes(op: Op, context: Context, dtype: str, wider: str) -> list[Fix]:
        node, result = op.site.node, op.result
        same = isinstance(result, Array) and result.dtype in (dtype, "bool")
        if dtype == "bool" or not same or op.form != "call" or not isinstance(node, nodes.Call):
            return []
        if len(node.args) != len(op.args) or any(arg.star or arg.keyword for arg in node.args):
            return []
        module = context.module_of(op.site)
        wide, imports = context.spell(f"jax.numpy.{wider}", module)
        narrow, more = context.spell(f"jax.numpy.{long_name(dtype)}", module)
        edits = [*imports]
        for arg, value in zip(node.args, op.args, strict=True):
            if isinstance(value, Array) and not value.weak:
                side = Site(op.site.piece, arg.value)
                if side.piece.parentheses(side.node):
                    return []
                edits.append(context.replace(side, f"{operand(side)}.astype({wide})"))
        if isinstance(result, Array) and result.dtype == dtype:
            edits += more
            end = op.site.span.end
            edits.append(Edit(Span(op.site.span.path, end, end), f".astype({narrow})"))
        return [context.unsafe(f"compute it in {wider}", *edits)]


def _unloadable_refs(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Refs of a dtype that the device cannot even load."""
    for access, dtype in _first_accesses(trace, ("load", "store", "accumulate")):
        if access.ref.space not in (None, "vmem"):
            continue
        found = failure(context, partial(_unloadable, dtype))
        if found is not None:
            yield context.finding(
                access.site,
                f"{long_name(dtype)} can neither be loaded nor stored on {found.place}, in {found.jax}",
                help="pass the operand as "
                + ("float8_e4m3fn or float8_e5m2" if bits(dtype) == 8 else "bfloat16 or float32"),
                op=access,
                only_in=found.only_in,
                dtype=dtype,
            )


def _wrong_stores(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """Stores of a dtype of which the backend writes wrong numbers; 8 bits and more are right."""
    for access, dtype in _first_accesses(trace, ("store", "accumulate")):
        found = failure(context, partial(_lacks, "copy", dtype)) if 1 < bits(dtype) < 8 else None
        if found is not None:
            yield context.finding(
                access.site,
                f"a store of {long_name(dtype)} on {found.place} writes wrong numbers, in {found.jax}",
                help="store int8, and cast it outside the kernel, or pack two values into a byte; loads are right",
                severity=Severity.WARNING,
                op=access,
                only_in=found.only_in,
                dtype=dtype,
            )


def _first_accesses(trace: KernelTrace, kinds: tuple[str, ...]) -> Iterator[tuple[Access, str]]:
    """The first access of these kinds to each ref of known dtype, with the dtype."""
    seen: set[object] = set()
    for access in trace.accesses():
        ref = access.ref
        if access.kind in kinds and ref.dtype is not None and ref.buffer not in seen:
            seen.add(ref.buffer)
            yield access, ref.dtype


# -- single operations: casts, and what the vector unit lacks for narrow dtypes --------------------------------------

_OPERATIONS = {
    **dict.fromkeys(("left_shift", "bitwise_left_shift", "shift_left"), "shift_left"),
    **dict.fromkeys(
        ("right_shift", "bitwise_right_shift", "shift_right_arithmetic", "shift_right_logical"), "shift_right"
    ),
    **dict.fromkeys(("add", "subtract", "sub"), "add"),
    **dict.fromkeys(("multiply", "mul"), "mul"),
    **dict.fromkeys(("rem", "fmod"), "rem"),
    **{each: each for each in ("div", "floor_divide")},
    **dict.fromkeys(("maximum", "minimum", "max", "min", "clip"), "max"),
    **dict.fromkeys(("abs", "absolute"), "abs"),
    **dict.fromkeys(("negative", "neg"), "neg"),
    "sum": "sum",
    "optimization_barrier": "barrier",
    **dict.fromkeys("greater gt greater_equal ge less lt less_equal le".split(), "compare"),
    **dict.fromkeys("equal eq not_equal ne".split(), "equal"),
}
_REDUCTIONS = {"jax.numpy.max": "reduce_max", "jax.numpy.min": "reduce_min"}  # lax's of these names are of two arrays
_CASTS = frozenset({"astype", "convert_element_type", "asarray"})
_SINGLE = frozenset({*_OPERATIONS, *_CASTS, "pack_elementwise", "unpack_elementwise"})
_NARROW_FLOATS = frozenset({"f8_e4m3fn", "f8_e5m2"})


def _operation(op: Op, context: Context) -> Iterator[Finding]:
    """One operation of a vector of known dtype, as measured by itself."""
    source, result, target = op.args[0] if op.args else None, op.result, context.target
    if target is None or op.open or not isinstance(source, Array):
        return
    if not isinstance(result, Array) or not _is_vector(op, result) or source.host:
        return
    if op.short in _CASTS:
        given, operation = source.dtype, f"cast:{result.dtype}"
        yield from _cast_by_new_libtpu(op, given, result.dtype, context)
    else:
        dtypes = op.dtypes() if op.name.startswith(("jax.numpy.", "jax.lax.")) else None
        given = next(iter(dtypes)) if dtypes is not None and len(dtypes) == 1 else None
        operation = _REDUCTIONS.get(op.name) or _OPERATIONS.get(op.short, "")
        if given != result.dtype and operation not in ("sum", "compare", "equal"):
            return  # the operands are brought to another dtype before
    if given is None or not operation or (operation == "floor_divide" and op.args[1:] == (Const(1),)):
        return  # by 1 nothing is divided

    found = failure(context, lambda *where: _counts(op, *where) and _lacks(operation, given, *where))
    outcome = None
    if found is not None:
        outcome = compat.operation_failure(operation, given, target.backend, target.device, found.versions[-1])
    if found is None or outcome is None:
        return
    cast = op.short in _CASTS
    to = f" to {long_name(result.dtype)}" if cast and result.dtype is not None else ""
    yield context.finding(
        op.site,
        f"`{spelled_function(op.site)}` of {long_name(given)}{to} {_WORDS[outcome]} on {found.place}, in {found.jax}",
        severity=Severity.WARNING if outcome is SupportStatus.WRONG else Severity.ERROR,
        help=_by_way_of(given, result.dtype or given, target, found.versions[-1])
        if cast
        else f"compute it in {long_name(_WIDE[is_float(given)])}"
        + (", and cast the result back" * (given == result.dtype)),
        op=op,
        only_in=found.only_in,
        dtype=given,
    )


def _lacks(operation: str, dtype: str, backend: str, device: str | None, version: str) -> bool:
    return compat.operation_failure(operation, dtype, backend, device, version) is not None


def _counts(op: Op, backend: str, device: str | None, version: str) -> bool:
    """Whether what was measured holds for the call: since jax 0.11, v4 only lacks shifts by numbers that are loaded."""
    if backend != "tpu" or _OPERATIONS.get(op.short) not in ("shift_left", "shift_right"):
        return True
    return within(version, "0.4.35", "0.10.2") or any(map(uses_loaded, op.args[1:]))


def _is_vector(op: Op, result: Array) -> bool:
    """Whether the result certainly has dimensions: a reduction that keeps them does, whatever the operand's shape."""
    return bool(result.shape) or (result.shape is None and op.argument("keepdims") == Const(True))


def _unpacked(op: Op, context: Context) -> Iterator[Finding]:
    """`unpack_elementwise` takes integers as wide as what it unpacks to; up to jax 0.10.1 uint32 and nothing else."""
    source, unpacked = op.argument("x", 0), dtype_of(op.argument("unpacked_dtype"))
    if not isinstance(source, Array) or source.dtype is None or unpacked is None:
        return
    given, words = source.dtype, f"u{bits(unpacked)}"

    def fails(version: str) -> bool:
        if bits(given) != bits(unpacked) or not is_integer(given):
            return True
        return given != "u32" and within(version, "0.4.35", "0.10.1")

    versions, always = context.failing(fails), context.everywhere(fails)
    if versions:
        yield context.finding(
            op.site,
            f"`{spelled_function(op.site)}` to {long_name(unpacked)} takes integers of its width,"
            f" not {long_name(given)}",
            help=f"make words of it: `pltpu.bitcast(x, jnp.{long_name(words)})`"
            if bits(given) == bits(unpacked)
            else f"pack the values into {long_name(words)} outside the kernel; what holds one value each is cast:"
            f" `x.astype(jnp.{long_name(unpacked)})`",
            op=op,
            only_in=() if always else versions,
            dtype=given,
        )


def _packed(op: Op, context: Context) -> Iterator[Finding]:
    """`pack_elementwise` takes arrays of one dtype, as many as fit into a word: float32 for bfloat16, or integers."""
    sources = op.argument("xs", 0)
    items = sources.items if isinstance(sources, Seq) and not sources.open else ()
    given = [item.dtype for item in items if isinstance(item, Array) and item.dtype is not None]
    if len(set(given)) > 1:
        different = " and ".join(map(long_name, dict.fromkeys(given)))
        yield context.finding(
            op.site,
            f"`{spelled_function(op.site)}` takes arrays of one dtype, not {different}",
            help="cast them to one before: float32 to be packed as bfloat16",
            op=op,
        )
        return
    packed = dtype_of(op.argument("packed_dtype"))
    if given and packed is not None and not _packs(given[0], packed):
        versions = context.failing(lambda version: within(version, "0.10.2"))
        if versions:
            yield context.finding(
                op.site,
                f"`{spelled_function(op.site)}` packs float32 as bfloat16, and integers as integers: not"
                f" {long_name(given[0])} as {long_name(packed)}",
                help=f"cast the arrays before: `x.astype(jnp.{'int32' if is_integer(packed) else 'float32'})`",
                op=op,
                only_in=() if context.everywhere(lambda version: within(version, "0.10.2")) else versions,
                dtype=given[0],
            )
        return
    if given and packed is not None and len(given) == len(items) != bits(given[0]) // bits(packed):
        count = bits(given[0]) // bits(packed)
        yield context.finding(
            op.site,
            f"`{spelled_function(op.site)}` of {long_name(given[0])} to {long_name(packed)} takes {count} arrays,"
            f" not {len(given)}",
            help=f"pass as many arrays as values of {long_name(packed)} fit into a word",
            op=op,
        )


def _packs(given: str, packed: str) -> bool:
    return (given, packed) == ("f32", "bf16") or (is_integer(given) and is_integer(packed))


_PACKING = {
    "jax.experimental.pallas.tpu.pack_elementwise": _packed,
    "jax.experimental.pallas.tpu.unpack_elementwise": _unpacked,
}


_WIDE = {True: "f32", False: "i32"}


def _by_way_of(given: str, to: str, target: Target, version: str) -> str:
    """A dtype that can be cast to from the one, and from which the other can be cast to."""
    if to == "bool":
        return "compare it: `x != 0`" + ", in float32 (`x.astype(jnp.float32)`)" * (given in _NARROW_FLOATS)

    def passes(one: str, other: str) -> bool:
        return one == other or not _lacks(f"cast:{other}", one, target.backend, target.device, version)

    for between in ("f32", "i32") if is_float(given) else ("i32", "f32"):
        if between not in (given, to) and passes(given, between) and passes(between, to):
            return f"go by way of {long_name(between)}: `.astype(jnp.{long_name(between)}).astype(jnp.{long_name(to)})`"
    return "cast it outside the kernel"


def _cast_by_new_libtpu(op: Op, given: str | None, to: str | None, context: Context) -> Iterator[Finding]:
    """A cast of 8-bit floats to bfloat16, or back: jax 0.7 and 0.8 have it for a libtpu from July 2025 on only.

    They lower it for the TPU at hand; not for `jax.export`, nor without a TPU.
    """
    if not {given, to} <= {"bf16", *_NARROW_FLOATS} or given == to or "bf16" not in (given, to):
        return
    versions = context.failing(lambda version: within(version, "0.7.0", "0.8.3"))
    if versions and context.target is not None and context.target.backend == "tpu":
        yield context.finding(
            op.site,
            f"a cast of {long_name(given or '')} to {long_name(to or '')} lowers in jax"
            f" {context.spelled_versions(versions)} with a libtpu from July 2025 on, and not for `jax.export`",
            help="go by way of float32, which all take: `x.astype(jnp.float32).astype(...)`",
            severity=Severity.WARNING,
            op=op,
            only_in=versions,
            dtype=given,
        )


def _computed_in(op: Op) -> Element:
    """The common dtype of the operands, as far as it is known."""
    operands = [value for value in op.args if not isinstance(value, Ref)] if promotes(op.name) else op.arrays
    return canonical(promote([operand_element(value) for value in operands])[0])


def _wider(support: FunctionSupport, dtype: str, backend: str, device: str | None, version: str) -> str | None:
    """The 32-bit dtype in which the function works; None where there is none."""
    for candidate in ("f32",) if is_float(dtype) else ("i32", "f32"):
        if candidate != dtype:
            status = support.verdict(backend, version, dtype=candidate, device=device).status
            if status in ("supported", "depends"):
                return candidate
    return None


@lru_cache(maxsize=3)
def _claimed(backend: str) -> frozenset[str]:
    """Functions of which another rule reports the dtypes on this backend."""
    rules = [registered.rule for code, registered in all_rules().items() if code in _SPECIALISTS]
    judging = [rule for rule in rules if rule.backends is None or backend in rule.backends]
    return frozenset(name for rule in judging for name in rule.ops if name != "*")


@lru_cache(maxsize=8192)
def _outcome(
    support: FunctionSupport, dtype: str, backend: str, device: str | None, version: str
) -> SupportStatus | None:
    """How every form of the call fails for this dtype, where other dtypes pass in the same forms; else None."""
    verdict = support.verdict(backend, version, dtype=dtype, device=device)
    if verdict.status != "unsupported" or verdict.outcome not in _WORDS:
        return None
    others = support.verdict(backend, version, device=device)
    passing = {cell.variant for cell in others.cells if cell.outcome is SupportStatus.OK and cell.dtype != dtype}
    failing = {cell.variant for cell in verdict.cells if cell.outcome.fails and not cell.scalar}
    if not failing or not failing <= passing:
        return None
    if verdict.outcome is not SupportStatus.LOWER and not compat.can_copy(dtype, backend, device, version):
        return None  # nothing of this dtype compiles: reported once, at the loads and stores
    return verdict.outcome


@lru_cache(maxsize=4096)
def _fails_for_some(support: FunctionSupport, backend: str, device: str | None, versions: tuple[str, ...]) -> bool:
    """Whether the function fails for any dtype at all in one of the versions; most operations are of others."""
    return any(
        _outcome(support, dtype, backend, device, version) is not None
        for version in versions
        for dtype in compat.DTYPES
    )


def _unloadable(dtype: str, backend: str, device: str | None, version: str) -> bool:
    """Whether no kernel that only copies blocks of this dtype compiles."""
    return backend == "tpu" and not compat.can_copy(dtype, backend, device, version)
