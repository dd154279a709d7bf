"""PAL501 captured-array."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    Access,
    Array,
    CallResult,
    Capture,
    Const,
    Context,
    Dictionary,
    Event,
    Example,
    Finding,
    IndexMap,
    KernelTrace,
    Launch,
    Op,
    Rule,
    Seq,
    Severity,
    Site,
    Slice,
    Sym,
    Value,
    nodes,
)
from pallas_lint.compat.versions import parse
from pallas_lint.identity import ById
from pallas_lint.kernels.library.jit import is_traced
from pallas_lint.records import frozen

# These need a shape and a dtype; the array itself does not get into the kernel.
_LIKE = frozenset(
    f"jax.{module}.{name}"
    for module in ("numpy", "lax")
    for name in ("zeros_like", "ones_like", "full_like", "empty_like", "shape", "ndim", "result_type", "size")
)
# Others, such as `jax.typeof`, may need no more than that either.
_COMPUTING = ("jax.numpy.", "jax.lax.", "jax.nn.", "jax.scipy.", "jax.random.")
_FROM_LIST = frozenset(("jax.numpy.array", "jax.numpy.asarray"))
# From which release on a launch refuses arrays that its kernel closes over (measured; scalars and refs may stay).
_PASS = "pass it as an operand with a BlockSpec of its own (scalars: scalar prefetch, or a block in SMEM)"


class CapturedArray(Rule):
    """A kernel or index map that closes over an array.

    A kernel is compiled apart from the code around it, and reads only what its launch passes. An array that it finds in
    an enclosing scope has no place in that: tracing collects it as a constant and `pallas_call` refuses it, on every
    backend and in interpret mode: `ValueError: The kernel function ... captures constants [f32[128]]. You should pass
    them as inputs`.

    What counts as an array, measured alike on jax 0.4.35 to 0.12.0:

    - every jax array, scalars such as `jnp.float32(2)` or `scale = jnp.max(x)` included, and every value traced by an
      enclosing `jax.jit`; whether it is a global, a closure variable, an attribute of an object around
      the kernel, or bound by `functools.partial`;
    - a numpy array of rank 1 or more where it meets a traced value; a numpy scalar, or one element `table[3]` with an
      index that is known while tracing, is a plain number and fine;
    - `jnp.array([1.0, 2.0])` inside the kernel: a list of numbers is a constant array too.

    Only the value counts. `table.shape`, `table.dtype`, `len(table)` and `jnp.zeros_like(table)` are legal.
    Index maps may capture no array either: what a map looks up belongs into scalar prefetch. `pl.kernel` and
    `plgpu.kernel` accept captured scalars and refs, and refuse arrays since jax 0.10.2; `pl.core_map` since 0.11.2.

    ## How to fix

    Pass the array as an operand with a BlockSpec of its own; small tables that index maps or loops look up as scalar
    prefetch. Make scalars Python numbers (`2.0`, `float("-inf")`), and short constant vectors from `iota`:
    `jnp.where(lax.broadcasted_iota(...) == 0, a, b)`.

    ## Known limits

    Silent for values that are not seen to be arrays (parameters that are neither operands of the launch nor traced by a
    `jax.jit` in sight), and for numpy arrays of unknown rank. A function under an inner `jax.jit` hides its constants
    from the check at tracing; lowering for TPU fails then.

    ## References

    - `_trace_kernel_to_jaxpr` in jax/_src/pallas/pallas_call.py; jax/_src/pallas/mpmd.py.
    - Traced and lowered with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.
    """

    code = "PAL501"
    name = "captured-array"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            import numpy as np
            from jax.experimental import pallas as pl

            SCALE = jnp.float32(0.5)
            TABLE = np.arange(128, dtype=np.float32)

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * SCALE + TABLE  #!

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
        Example(
            """
            from jax.experimental import pallas as pl

            def run(x, bias):
                def kernel(x_ref, o_ref):
                    weights = jnp.array([0.25, 0.5, 0.25])  #!
                    o_ref[...] = x_ref[...] * weights[1] + x[0]  #!

                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32))(x)
            """
        ),
    )
    valid = (
        Example(
            """
            import numpy as np
            from jax.experimental import pallas as pl

            SCALE = 0.5
            TABLE = np.arange(128, dtype=np.float32)
            SHAPE = jnp.zeros((8, 128))

            def run(x, n):
                def kernel(x_ref, o_ref):
                    start = jnp.zeros_like(SHAPE)
                    o_ref[...] = x_ref[...] * SCALE + TABLE[3] + start * x.shape[0] + n

                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )

    # -- kernels ---------------------------------------------------------------------------------------------------

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        since = launch.form.captures_refused_since
        if since is None:
            return
        always = since == ()
        versions = context.failing(lambda version: parse(version) >= since)
        if not versions:
            return
        outside = _Outside(launch)
        reported: set[object] = set()
        for event in trace.events:
            if isinstance(event, Capture):
                outside.add(event)
                continue
            for value in _consumed(event):
                found = outside.judge(value, event, arrays_only=not always)
                if found is None or found.key in reported:
                    continue
                reported.add(found.key)
                severity = _lowered(found.severity, event, found.site, launch)
                yield context.finding(
                    found.site,
                    found.message,
                    help=found.help,
                    severity=severity,
                    only_in=() if always else versions,
                )
            if isinstance(event, Op) and event.name in _FROM_LIST and _is_constant_list(event):
                yield context.finding(
                    event.site,
                    "a list of numbers becomes an array constant, which a kernel cannot capture",
                    help="use Python numbers one by one, build it from `lax.broadcasted_iota`, or make it an operand",
                    severity=_lowered(Severity.ERROR, event, event.site, launch),
                    only_in=() if always else versions,
                )

    # -- index maps ------------------------------------------------------------------------------------------------

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        launch = index_map.launch
        if launch is None or not launch.form.is_over_blocks or not launch.is_pallas:
            return
        for name, subscript in _names(index_map.func.node.body):
            value = index_map.value_of(name)
            if value is None:
                continue
            if isinstance(value, Array):
                if value.host and (subscript is None or not index_map.depends_on_grid(subscript)):
                    continue
                what = "a numpy array, indexed by a traced index" if value.host else "an array"
                severity = Severity.ERROR
            elif isinstance(value, Sym) and value in (launch.operands or ()):
                what, severity = "an operand of the launch", _certainty(value, launch)
            elif is_traced(value):
                what, severity = "which `jax.jit` traces", Severity.ERROR
            else:
                continue
            yield context.finding(
                index_map.site_of(name),
                f"index map captures `{name.value}`, {what}",
                help="pass it by scalar prefetch (`pltpu.PrefetchScalarGridSpec`): the map then gets it as a ref",
                severity=severity,
                certain=index_map.sure,
                related=[(launch.called_at, "launched here")],
            )


@frozen
class _Found:
    key: object
    site: Site
    message: str
    severity: Severity
    help: str = _PASS


class _Outside:
    """The enclosing scopes of a kernel, as far as known from the events so far."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.captured: dict[ById, Capture] = {}
        self.symbols: dict[Sym, Capture] = {}
        self.bound: dict[ById, str] = {}
        self.bound_symbols: dict[Sym, str] = {}
        self.operands = [value for value in launch.operands or () if isinstance(value, Sym)]
        for func in launch.bodies:
            for name, value in (*func.keywords, *(("an argument", value) for value in func.bound)):
                if isinstance(value, Array):
                    self.bound[ById(value)] = name
                elif isinstance(value, Sym):
                    self.bound_symbols[value] = name

    def add(self, capture: Capture) -> None:
        if isinstance(capture.value, Array):
            self.captured[ById(capture.value)] = capture
        elif isinstance(capture.value, Sym):
            self.symbols[capture.value] = capture

    def judge(self, value: Value, event: Event, *, arrays_only: bool) -> _Found | None:
        """The complaint about a value that an operation or a store consumes."""
        if isinstance(value, Array):
            return self._array(value, event, arrays_only=arrays_only)
        if not isinstance(value, Sym) or arrays_only:
            return None
        operand = self._operand(value)
        if operand is None:
            return self._traced(value, event) if is_traced(value) else None
        capture = self.symbols.get(operand)
        if capture is None and operand not in self.bound_symbols:
            return None
        severity = _certainty(operand, self.launch)
        if operand != value and severity is not Severity.ERROR:
            return None  # an element of a list, perhaps
        name = capture.name if capture is not None else self.bound_symbols[operand]
        return _Found(
            operand,
            capture.site if capture is not None else event.site,
            f"kernel captures `{name}`, an operand of its own launch",
            severity,
            "read it through its ref: each operand comes as a parameter of the kernel",
        )

    def _traced(self, value: Sym, event: Event) -> _Found | None:
        """A parameter of a function under `jax.jit`, or something computed from one."""
        for symbol in _symbols(value):
            capture, name = self.symbols.get(symbol), self.bound_symbols.get(symbol)
            if is_traced(symbol) and (capture is not None or name is not None):
                site = event.site if capture is None else capture.site
                how = f"captures `{capture.name}`" if capture is not None else f"gets `{name}` bound by `partial`"
                return _Found(symbol, site, f"kernel {how}, which `jax.jit` traces", Severity.ERROR)
        return None

    def _operand(self, value: Sym) -> Sym | None:
        """The operand that the value is, or is an element of."""
        for operand in self.operands:
            if value == operand or (value.owner == operand.owner and value.text.startswith(f"{operand.text}[")):
                return operand
        return None

    def _array(self, value: Array, event: Event, *, arrays_only: bool) -> _Found | None:
        capture, bound = self.captured.get(ById(value)), self.bound.get(ById(value))
        if (value.host or arrays_only) and not value.rank:
            return None  # a number, or something that may be one
        if not value.host and capture is None and bound is None:
            return None
        what = "a numpy array" if value.host else "an array" if value.rank != 0 else "an array scalar"
        if capture is not None:
            return _Found(ById(value), capture.site, f"kernel captures `{capture.name}`, {what}", Severity.ERROR)
        if bound is not None:
            return _Found(ById(value), event.site, f"kernel gets {what} bound by `partial` (`{bound}`)", Severity.ERROR)
        return _Found(event.site.key, event.site, f"kernel uses {what} as a constant", Severity.ERROR)


def _consumed(event: Event) -> Iterator[Value]:
    """The values of which an operation, a store or an index takes the contents."""
    if isinstance(event, Op):
        if event.name.startswith(_COMPUTING) and event.name not in _LIKE:
            for value in (*event.args, *(value for _, value in event.keywords)):
                yield from _parts(value)
    elif isinstance(event, Access):
        if event.kind in ("store", "accumulate"):
            yield event.value
        for value in _parts(event.index):
            if isinstance(value, Array) and value.rank:
                yield value


def _parts(value: Value) -> Iterator[Value]:
    if isinstance(value, Seq):
        for item in value.items:
            yield from _parts(item)
    elif isinstance(value, Slice):
        return  # bounds may be numbers that jax makes static
    else:
        yield value


def _is_constant_list(op: Op) -> bool:
    first = op.argument("object", 0) or op.argument("a")
    return isinstance(first, Seq) and bool(first.items) and all(isinstance(leaf, Const) for leaf in _parts(first))


def _lowered(severity: Severity, event: Event, site: Site, launch: Launch) -> Severity:
    """One step down behind an undecided branch; two in code of another module, written for other launches too."""
    if getattr(event, "certain", True):
        return severity
    return severity.lowered() if site.piece.source is launch.site.piece.source else Severity.INFO


def _certainty(operand: Sym, launch: Launch) -> Severity:
    """Error where the launch itself takes the operand's shape or dtype: then it is an array for sure."""
    stack: list[Value] = [value for name, value in launch.arguments.items() if name not in ("kernel", "body")]
    while stack:
        value = stack.pop()
        if isinstance(value, Sym):
            if value.owner == operand.owner and value.text.startswith(
                (f"{operand.text}.shape", f"{operand.text}.dtype")
            ):
                return Severity.ERROR
        elif isinstance(value, Seq):
            stack.extend(value.items)
        elif isinstance(value, Dictionary):
            stack.extend(item for _, item in value.items)
        elif isinstance(value, CallResult):
            stack.extend((*value.args, *(item for _, item in value.keywords)))
    return Severity.WARNING


def _symbols(value: Value) -> Iterator[Sym]:
    """A symbol, and those that it is computed from."""
    if isinstance(value, Sym):
        yield value
        for part in value.operation[1:] if value.operation is not None else ():
            yield from _symbols(part)


def _names(node: nodes.Node) -> Iterator[tuple[nodes.Name, nodes.Subscript | None]]:
    """Names whose value an index map uses, and the subscript that they are the owner of."""
    if isinstance(node, nodes.Name):
        yield node, None
    elif isinstance(node, nodes.Subscript) and isinstance(node.value, nodes.Name):
        yield node.value, node
        for element in node.slice:
            yield from _names(element)
    elif isinstance(node, nodes.Attribute):
        if not isinstance(node.value, nodes.Name):
            yield from _names(node.value)
    elif isinstance(node, nodes.Call):
        for argument in node.args if getattr(node.func, "value", "") != "len" else ():
            yield from _names(argument.value)
    elif isinstance(node, nodes.NamedExpr | nodes.AssignTarget):
        for child in node.children:
            if child is not node.target:
                yield from _names(child)
    else:
        for child in node.children:
            yield from _names(child)
