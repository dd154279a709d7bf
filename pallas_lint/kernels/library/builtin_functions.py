"""Python builtins and the few static helpers of jax that specs and grids are computed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library import arrays, members
from pallas_lint.kernels.library.host import classes, known_numbers, machine, type_tests
from pallas_lint.kernels.library.host.known_numbers import items_of
from pallas_lint.kernels.library.indexing import product
from pallas_lint.kernels.library.operators import binary
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import bits, canonical, dtype_of, element_of, operand_element, promote
from pallas_lint.kernels.model.kinds import FLOATING, INEXACT, INTEGER, kinds_of
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.symbols import arithmetic, default_number, is_of_shape
from pallas_lint.kernels.model.values import (
    UNKNOWN,
    Array,
    CallResult,
    Class,
    Const,
    Dictionary,
    DType,
    External,
    Instance,
    Ref,
    Seq,
    Slice,
    Sym,
    Value,
    chosen_number,
    from_dim,
    shape_of,
    truth,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

_MAX_UNROLLED = 8  # the longest `range` over which a loop is run iteration by iteration


def _range(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    bounds = [value.value for value in arguments.positional if isinstance(value, Const)]
    if len(bounds) == len(arguments.positional) and bounds and all(isinstance(bound, int) for bound in bounds):
        try:
            values = range(*bounds)
        except (TypeError, ValueError):
            return UNKNOWN
        if not values[_MAX_UNROLLED:]:
            return Seq(tuple(Const(value) for value in values), "list")
    return interp.frame.opaque_call(name, arguments, node)


def _len(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    value = arguments.first
    if isinstance(value, Seq | Dictionary) and not value.open:
        return Const(len(value.items))
    if isinstance(value, Const) and isinstance(value.value, str | bytes):
        return Const(len(value.value))
    items = items_of(value)
    if items is not None:
        return Const(len(items))
    if isinstance(value, Array) and value.shape:
        return from_dim(value.shape[0])
    if isinstance(value, Class) and (size := classes.enum_size(interp, value)):
        return Const(size)
    if is_of_shape(value) and value.text.endswith(".shape"):
        return Sym(f"{value.text.removesuffix('.shape')}.ndim", value.owner)
    return Sym(f"len({value.text})", value.owner) if isinstance(value, Sym) else UNKNOWN


def _sequence(kind: str) -> Model:
    def run(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
        if not arguments.positional:
            return Seq((), kind)
        value = arguments.positional[0]
        items = items_of(value)
        if items is None:
            return Seq(value.items if isinstance(value, Seq) else (), kind, open=True)
        return Seq(items, kind)

    return run


def _zip(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    columns = [items_of(value) for value in arguments.positional]
    if columns and None not in columns:
        return Seq(tuple(map(Seq, zip(*(column for column in columns if column is not None), strict=False))), "list")
    return Seq((), "list", open=True)


def _enumerate(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    items, start = items_of(arguments.get("iterable", 0) or UNKNOWN), integer(arguments.get("start", 1) or Const(0))
    if items is not None and start is not None:
        return Seq(tuple(Seq((Const(at), item)) for at, item in enumerate(items, start)), "list")
    return interp.frame.opaque_call(name, arguments, node)


def _reversed(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    items = items_of(arguments.first)
    return Seq((), "list", open=True) if items is None else Seq(tuple(reversed(items)), "list")


def _map(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if not arguments.positional:
        return UNKNOWN
    function, *values = arguments.positional
    columns = [items_of(value) for value in values]
    if columns and None not in columns:
        rows = zip(*(column for column in columns if column is not None), strict=False)
        return Seq(tuple(interp.call(function, Arguments(list(row)), node) for row in rows), "list")
    if len(values) == 1 and isinstance(values[0], Seq):
        results = tuple(interp.call(function, Arguments([item]), node) for item in values[0].items)
        return Seq(results, "list", values[0].open)
    return Seq((), "list", open=True)


def _extreme(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    values = arguments.positional
    if "key" in arguments.keywords:
        return UNKNOWN
    if len(values) == 1:
        items = items_of(values[0])
        values = values if items is None else list(items) or [arguments.keywords.get("default", UNKNOWN)]
    values = [*map(chosen_number, values)]
    numbers = [value for value in values if isinstance(value, Const) and isinstance(value.value, int | float)]
    symbols = [value for value in values if isinstance(value, Sym)]
    if not values or len(numbers) + len(symbols) != len(values):
        return UNKNOWN
    # Numbers first, so that those that are known become one, and names in order: `max(a, b)` is `max(b, a)`.
    symbols.sort(key=lambda symbol: symbol.text)
    ordered: list[Value] = [*numbers, *symbols]
    result = ordered[0]
    for other in ordered[1:]:
        result = arithmetic(last_part(name), result, other)
    return result


def _sum(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    items = items_of(arguments.first)
    if items is None:
        return UNKNOWN
    total: Value = arguments.get("start", 1) or Const(0)
    for item in items:
        traced = isinstance(item, Array) or isinstance(total, Array)
        total = binary(interp, node, "+", "jax.numpy.add", total, item) if traced else arithmetic("+", total, item)
    return total


def _of_array(function: str) -> Model:
    """Builtins that arrays have a method for: `abs(x)`, `round(x)`, `divmod(x, y)`."""

    def run(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
        if not any(isinstance(value, Array) for value in arguments.positional):
            given = arguments.positional
            if name == "builtins.divmod" and len(given) == 2 and any(isinstance(value, Sym) for value in given):
                halves = (("//", "jax.numpy.floor_divide"), ("%", "jax.numpy.remainder"))
                return Seq(tuple(binary(interp, node, symbol, function, *given) for symbol, function in halves))
            return known_numbers.computed(last_part(name), given)
        wide = interp.root.x64 is not None
        result = arrays.infer(function, arguments.positional, arguments.keywords, wide)
        if name == "builtins.round" and len(arguments.positional) == 1 and isinstance(result, Array):
            result = Array(result.shape, canonical("i64", wide))  # Python's gives an integer
        return interp.frame.op(function, node, arguments, result, "operator")

    return run


def _result_type(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    operands = [
        (element, False) if (element := element_of(value)) is not None else operand_element(value)
        for value in arguments.positional
    ]
    return DType(canonical(promote(operands)[0], interp.root.x64 is not None))


# The abstract dtypes of `jnp.issubdtype`.
_ABSTRACT = {
    "bool_": frozenset(("bool",)),
    "integer": INTEGER,
    "floating": FLOATING,
    "complexfloating": frozenset(("complex",)),
    "inexact": INEXACT,
    "number": INTEGER | INEXACT,
}


def _issubdtype(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`jnp.issubdtype(x.dtype, jnp.floating)`; numpy's takes bfloat16 and 4-bit integers for no numbers."""
    dtype, wanted = arguments.get("arg1", 0), arguments.get("arg2", 1)
    kinds = kinds_of(element_of(dtype))
    if name.startswith("jax.") and isinstance(wanted, External):
        module, _, short = wanted.name.rpartition(".")
        abstract = _ABSTRACT.get(short) if module in ("jax.numpy", "numpy") else None
        if abstract is not None and kinds <= abstract:
            return Const(True)
        if abstract is not None and not kinds & abstract:
            return Const(False)
    return CallResult(name, tuple(arguments.positional), (), interp.frame.site(node))


def _prod(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    shape = shape_of(arguments.positional[0]) if arguments.positional else None
    return UNKNOWN if shape is None else product(shape)


def _cast(kind: type) -> Model:
    def run(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
        value = arguments.first
        if isinstance(value, Const) and isinstance(value.value, int | float | str):
            try:
                return Const(kind(value.value))
            except (OverflowError, ValueError):
                return UNKNOWN
        if isinstance(value, Array):
            interp.frame.op(name, node, arguments, UNKNOWN)
            if kind is float and value.host and value.shape == ():
                return Array((), "f64", weak=True, host=True)
        if not isinstance(value, Sym):
            return machine.computed(interp, (value,), node) or UNKNOWN
        # What is computed with integers stays what it is; a quotient does not.
        same = kind is int and not _divides(value)
        usual = default_number(value)
        default = None if usual is None else Const(kind(usual))
        return value if same else Sym(f"{kind.__name__}({value.text})", value.owner, default)

    return run


def _divides(value: Value) -> bool:
    """Whether true division took part in the value."""
    if not isinstance(value, Sym) or value.operation is None:
        return False
    symbol, left, right = value.operation
    return symbol == "/" or _divides(left) or _divides(right)


def _slice(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    values = arguments.positional
    none = Const(None)
    if len(values) == 1:
        return Slice(none, values[0], none)
    padded = [*values, none, none, none][:3]
    return Slice(padded[0], padded[1], padded[2])


def _dict(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    first = arguments.positional[0] if arguments.positional else Dictionary(())
    pairs = [item.items for item in items_of(first) or () if isinstance(item, Seq) and len(item.items) == 2]
    if isinstance(first, Seq) and not first.open and len(pairs) == len(first.items):
        first = Dictionary(tuple((key, value) for key, value in pairs))
    base = first.items if isinstance(first, Dictionary) else ()
    items = (*base, *((Const(key), value) for key, value in arguments.keywords.items()))
    return Dictionary(items, arguments.open or not isinstance(first, Dictionary) or first.open)


def _any_all(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    value = arguments.first
    decisive = name.endswith("any")  # of one item
    if not isinstance(value, Seq):
        return UNKNOWN
    flags = [None if isinstance(item, Array | Ref) else truth(item) for item in value.items]
    if decisive in flags:
        return Const(decisive)
    return UNKNOWN if None in flags or value.open else Const(not decisive)


def _static(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """Builtins that read and return static values, or print."""
    return UNKNOWN


def _dtype(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    return DType(element_of(arguments.positional[0]) if arguments.positional else None)


def _shape(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    return members.attribute_of(interp, arguments.positional[0], "shape", node) if arguments.positional else UNKNOWN


def _itemsize_bits(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    dtype = dtype_of(arguments.positional[0]) if arguments.positional else None
    return UNKNOWN if dtype is None else Const(bits(dtype))


def _hold(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    return interp.frame.opaque_call(name, arguments, node)


def _struct_like(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`jax.ShapeDtypeStruct.like(x)`."""
    like = arguments.first
    parts = [members.attribute_of(interp, like, part, node) for part in ("shape", "dtype")]
    return interp.frame.opaque_call("jax.ShapeDtypeStruct", Arguments(parts), node)


def _importorskip(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    first = arguments.first
    return External(first.value) if isinstance(first, Const) and isinstance(first.value, str) else UNKNOWN


def _super(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    method_of = interp.frame.stack[-1].method_of if interp.frame.stack else None
    if isinstance(method_of, Instance) and method_of.cls.bases:
        base = method_of.cls.bases[0]
        if isinstance(base, Class):
            return evolve(method_of, cls=base)  # the same object: what it sets is set in both
    return UNKNOWN


# What answers a question about types or shapes while jax traces: no operation of a kernel.
_TYPE_QUERIES: dict[str, Model] = {
    "dtype": _dtype,
    "issubdtype": _issubdtype,
    "result_type": _result_type,
    "promote_types": _result_type,
    "shape": _shape,
    "itemsize_bits": _itemsize_bits,
    "ndim": type_tests.rank,
    "isscalar": type_tests.is_scalar,
}
# ... of which the answer is not followed, and classes of settings.
_HELD = (
    "finfo iinfo can_cast isdtype size broadcast_shapes iscomplexobj isrealobj dtypes axis_size"
    " ShapeDtypeStruct Precision DotAlgorithm DotDimensionNumbers DotAlgorithmPreset GatherDimensionNumbers"
    " ConvDimensionNumbers ndarray"
)


def _typed(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`typing.cast(T, value)` is the value."""
    return arguments.get("val", 1) or UNKNOWN


BUILTINS: dict[str, Model] = {
    "builtins.range": _range,
    "builtins.len": _len,
    "builtins.tuple": _sequence("tuple"),
    "builtins.list": _sequence("list"),
    "builtins.sorted": known_numbers.sort,
    "builtins.next": known_numbers.first,
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.reversed": _reversed,
    "builtins.map": _map,
    "builtins.max": _extreme,
    "builtins.min": _extreme,
    "builtins.sum": _sum,
    "math.prod": _prod,
    "builtins.int": _cast(int),
    "builtins.float": _cast(float),
    "builtins.bool": _cast(bool),
    "builtins.getattr": type_tests.get,
    "builtins.hasattr": type_tests.has,
    "builtins.isinstance": type_tests.is_instance,
    "builtins.slice": _slice,
    "builtins.dict": _dict,
    "builtins.any": _any_all,
    "builtins.all": _any_all,
    "builtins.callable": type_tests.is_callable,
    "builtins.super": _super,
    "builtins.print": _static,
    "builtins.str": known_numbers.text,
    "builtins.repr": _static,
    "builtins.type": type_tests.type_of,
    "builtins.id": _static,
    "builtins.hash": _static,
    "builtins.divmod": _of_array("jax.numpy.divmod"),
    "builtins.pow": _of_array("jax.numpy.power"),
    "builtins.abs": _of_array("jax.numpy.abs"),
    "builtins.round": _of_array("jax.numpy.round"),
    "builtins.setattr": _static,
    "typing.cast": _typed,
    "pytest.importorskip": _importorskip,
    "jax.ShapeDtypeStruct.like": _struct_like,
    "numpy.prod": _prod,
    "jax.dtypes.itemsize_bits": _itemsize_bits,
    "jax.dtypes.bit_width": _itemsize_bits,  # its name in jax 0.6.2, in a private module
    **{
        f"{module}.{name}": model
        for module in ("jax.numpy", "jax.lax", "numpy")
        for name, model in _TYPE_QUERIES.items()
    },
    **{f"{module}.{name}": _hold for module in ("jax.numpy", "jax.lax") for name in _HELD.split()},
}
