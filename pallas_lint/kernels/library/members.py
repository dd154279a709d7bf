"""Attributes and methods of abstract values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library import arrays, derivatives, host_numbers, indexing
from pallas_lint.kernels.library.host import (
    classes,
    command_lines,
    known_numbers,
    machine,
    shards,
    tables,
    torch_tensors,
    tpu_fields,
)
from pallas_lint.kernels.library.host.trees import as_arrays
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import long_name
from pallas_lint.kernels.model.joins import join, part_of_choice
from pallas_lint.kernels.model.known_names import LOOP_INFO, PALLAS, is_shape_struct, public_name
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NAMED_NUMBERS,
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Class,
    Const,
    Dictionary,
    DType,
    External,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Shape,
    Sym,
    Unknown,
    Value,
    from_dim,
    of_any_items,
    shape_of,
)
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.tracer import Tracer

# Methods of arrays and the functions that they are; the array is the first argument.
_ARRAY_METHODS = {
    name: f"jax.numpy.{name}"
    for name in (
        "all any argmax argmin argpartition argsort astype clip conj conjugate copy cumprod cumsum diagonal dot flatten"
        " max mean min nonzero prod ptp ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take"
        " trace transpose var view choose compress"
    ).split()
}
_AHEAD_OF_TIME = ("lower", "trace")  # methods of what `jax.jit` returns: they take structs for arrays, and lower
_MAX_LISTED = 32  # elements of an array that `tolist` lists
_ARRAY_METHODS["flatten"] = "jax.numpy.ravel"
_ARRAY_METHODS["view"] = "jax.lax.bitcast_convert_type"


def attribute_of(interp: Tracer, owner: Value, name: str, node: nodes.Node) -> Value:
    """The value of `owner.name`."""
    if isinstance(owner, External):
        return _external_attribute(interp, owner, name, node)
    if isinstance(owner, Sym):
        default = None
        if isinstance(owner.default, Instance):
            found = classes.instance_attribute(interp, classes.like_default(owner, owner.default), name, node)
            if not isinstance(found, Unknown | OneOf):
                return found
            default = classes.instance_attribute(interp, owner.default, name, node)
        return Sym(f"{owner.text}.{name}", owner.owner, default)
    if isinstance(owner, Array):
        return _array_attribute(interp, owner, name, node)
    if isinstance(owner, Ref):
        return _ref_attribute(interp, owner, name, node)
    if isinstance(owner, Instance):
        return classes.instance_attribute(interp, owner, name, node)
    if isinstance(owner, Class):
        return classes.class_attribute(interp, owner, name)
    if isinstance(owner, OneOf):
        result: Value | None = None
        for option in owner.options:
            value = attribute_of(interp, option, name, node)
            result = value if result is None else join(result, value)
        return UNKNOWN if result is None else part_of_choice(result, owner, f".{name}")
    if isinstance(owner, CallResult):
        return _made_attribute(interp, owner, name, node)
    if isinstance(owner, Const) and name == "value":
        return owner  # a member of an enumeration that is a number, or a text
    if isinstance(owner, Seq | Dictionary | Const | Func):
        return CallResult(f"method:{name}", (owner,), (), interp.frame.site(node))
    if isinstance(owner, Unknown) and name == "astype" and interp.kernel is not None:
        return CallResult("method:astype", (owner,), (), interp.frame.site(node))
    if isinstance(owner, DType) and name in ("type", "dtype"):
        return owner
    if isinstance(owner, DType) and owner.name is not None:
        if name == "itemsize":
            return Const(max(arrays.bits(owner.name) // 8, 1))
        if name == "name":
            return Const("bool" if owner.name == "bool" else long_name(owner.name))
    return UNKNOWN


def _external_attribute(interp: Tracer, owner: External, name: str, node: nodes.Node) -> Value:
    module = interp.graph.by_name(owner.name)
    if module is not None:
        return module.lookup(name, interp) or _submodule(interp, owner, name)
    dotted = public_name(f"{owner.name}.{name}")
    number = NAMED_NUMBERS.get(dotted)
    if number is not None:
        return number
    if dotted == "sys.argv":
        return command_lines.ARGUMENTS
    if dotted == f"{PALLAS}.no_block_spec":
        return CallResult(dotted, (), (), interp.frame.site(node))
    if interp.frame.piece is not None and not owner.name.startswith(("jax", "numpy", "builtins", "functools")):
        value = _project_attribute(interp, owner.name, name)
        if value is not None:
            return value
    return External(dotted, interp.frame.site(node))


def _submodule(interp: Tracer, owner: External, name: str) -> Value:
    module = interp.graph.by_name(owner.name)
    inner = None if module is None else interp.graph.find(f".{name}", module)
    return UNKNOWN if inner is None or module is None else External(interp.graph.absolute(f".{name}", module))


def _project_attribute(interp: Tracer, dotted: str, name: str) -> Value | None:
    """`package.module.name` spelled in full after `import package.module`."""
    importer = interp.frame.module
    module = None if importer is None else interp.graph.find(dotted, importer)
    if module is None or importer is None:
        return None
    value = module.lookup(name, interp)
    if value is not None:
        return value
    return None if interp.graph.find(f"{dotted}.{name}", importer) is None else External(f"{dotted}.{name}")


def _array_attribute(interp: Tracer, owner: Array, name: str, node: nodes.Node) -> Value:
    if owner.shape is None and owner.named is not None and name in ("shape", "ndim", "size"):
        return Sym(f"{owner.named.text}.{name}", owner.named.owner)
    if name == "shape":
        if owner.shape is None:
            return UNKNOWN
        return Seq(tuple(from_dim(size) for size in owner.shape))
    if name == "dtype":
        return DType(owner.element)
    if name == "ndim":
        return UNKNOWN if owner.shape is None else Const(len(owner.shape))
    if name in ("T", "mT"):
        result = arrays.infer("jax.numpy.transpose", [owner], {}, interp.root.x64 is not None)
        if name == "mT" and owner.shape is not None and len(owner.shape) >= 2:
            *batch, rows, columns = owner.shape
            result = Array((*batch, columns, rows), owner.element)
        function = "jax.numpy.transpose" if name == "T" else "jax.numpy.matrix_transpose"
        return interp.frame.op(function, node, Arguments([owner]), result, "method")
    if name in ("real", "imag"):
        function = f"jax.numpy.{name}"
        result = arrays.infer(function, [owner], {}, interp.root.x64 is not None)
        return interp.frame.op(function, node, Arguments([owner]), result, "method")
    if name in ("size", "itemsize", "nbytes"):
        return _extent(owner, name)
    return CallResult(f"method:{name}", (owner,), (), interp.frame.site(node))


def _extent(owner: Array, name: str) -> Value:
    """How many elements an array has, or bytes; those narrower than a byte take a whole one."""
    size = UNKNOWN if owner.shape is None else indexing.product(owner.shape)
    bytes_ = UNKNOWN if owner.dtype is None else Const(max(arrays.bits(owner.dtype) // 8, 1))
    return size if name == "size" else bytes_ if name == "itemsize" else arithmetic("*", size, bytes_)


def _ref_attribute(interp: Tracer, owner: Ref, name: str, node: nodes.Node) -> Value:
    if name == "shape":
        if owner.shape is not None:
            return Seq(tuple(from_dim(size) for size in owner.shape))
        return UNKNOWN if owner.view else Sym(f"{owner.parameter}.shape", interp.kernel)
    if name == "dtype":
        return DType(owner.element)
    if name == "ndim":
        return UNKNOWN if owner.shape is None else Const(len(owner.shape))
    if name in ("size", "itemsize", "nbytes", "memory_space", "aval"):
        return UNKNOWN
    if name == "T":
        shape = None if owner.shape is None else tuple(reversed(owner.shape))
        return evolve(owner, shape=shape, view=True, parent=None)
    return CallResult(f"method:{name}", (owner,), (), interp.frame.site(node))


def _made_attribute(interp: Tracer, owner: CallResult, name: str, node: nodes.Node) -> Value:
    if is_shape_struct(owner):
        if name in ("shape", "dtype"):
            return owner.argument(name, ("shape", "dtype").index(name)) or UNKNOWN
        sizes = shape_of(owner.argument("shape", 0) or UNKNOWN)
        if name in ("ndim", "size"):
            return UNKNOWN if sizes is None else Const(len(sizes)) if name == "ndim" else indexing.product(sizes)
    if owner.short in host_numbers.LIMITS and owner.args:
        return host_numbers.limit(owner.short, name, owner.args[0])
    if owner.function == "method:at":
        return UNKNOWN
    if owner.function == LOOP_INFO:
        return owner.argument(name) or UNKNOWN
    if owner.short == "ArgSpec" and name == "args":
        return owner.argument(name, 0) or UNKNOWN
    known = (
        tpu_fields.field(interp, owner, name)
        or machine.attribute(interp, owner, name)
        or shards.mesh_attribute(owner, name)
    )
    return known if known is not None else CallResult(f"method:{name}", (owner,), (), interp.frame.site(node))


# -- methods ---------------------------------------------------------------------------------------------------


def call_method(interp: Tracer, method: CallResult, arguments: Arguments, node: nodes.Node, env: Env) -> Value:
    """Call `owner.name(...)`, `method` being what the attribute gave."""
    owner, name = method.args[0], method.function.removeprefix("method:")
    if isinstance(owner, Array):
        return _array_method(interp, owner, name, arguments, node)
    if isinstance(owner, Ref):
        return _ref_method(interp, owner, name, arguments, node)
    if isinstance(owner, CallResult) and owner.function in ("method:at[]", "method:at"):
        return _at_method(interp, owner, name, arguments, node)
    if isinstance(owner, CallResult):
        return _made_method(interp, owner, name, arguments, node)
    if isinstance(owner, Seq):
        return _sequence_method(interp, owner, name, arguments, node, env)
    if isinstance(owner, Const) and isinstance(owner.value, str):
        return known_numbers.text_method(owner.value, name, arguments)
    if isinstance(owner, Const) and isinstance(owner.value, int | float):
        return known_numbers.number_method(owner.value, name, arguments)
    if isinstance(owner, Instance):
        return classes.method(interp, owner, name, arguments)
    if isinstance(owner, Dictionary):
        return _dictionary_method(interp, owner, name, arguments, node, env)
    if isinstance(owner, Func) and name in _AHEAD_OF_TIME:
        named = {key: as_arrays(value) for key, value in arguments.keywords.items()}
        interp.call(owner, Arguments(list(map(as_arrays, arguments.positional)), named, arguments.open), node)
        return CallResult(f"jax.stages.{name}", (owner,), (), interp.frame.site(node))
    if isinstance(owner, Func):
        if name == "defvjp":
            env.bind(derivatives.bound_name(owner), Seq(derivatives.handed_over(arguments)))
        return UNKNOWN  # what is handed over is found as functions of the module, too
    if isinstance(owner, Unknown) and name == "astype":
        return Array(None, arrays.element_of(arguments.get("dtype", 0)))
    return UNKNOWN


def called_by_name(method: Sym, arguments: Arguments) -> Value:
    """A method of an x of which nothing is known, outside kernels.

    The shape of `x.reshape(16, 300)` is known; of `x.astype(jnp.bfloat16)` the dtype is, and the shape keeps x's name.
    """
    if method.text.endswith(".astype"):
        wanted = arguments.get("dtype", 0)
        dtype = None if wanted is None or is_of_numpy(wanted) else arrays.dtype_of(wanted)
        named = Sym(method.text.removesuffix(".astype"), method.owner)
        return Array(None, dtype, named=named) if dtype is not None else UNKNOWN
    if not method.text.endswith(".reshape") or arguments.open:
        return UNKNOWN
    shape = indexing.reshaped(None, arguments.positional)
    return Array(shape) if shape else UNKNOWN


def is_of_numpy(dtype: Value) -> bool:
    """Whether a dtype is spelled as one of numpy's: the code probably uses numpy arrays."""
    return isinstance(dtype, External) and dtype.name.startswith("numpy.")


def _array_method(interp: Tracer, owner: Array, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if name in ("item", "tolist"):
        interp.frame.concretize("method", owner, node, name)
        return UNKNOWN if name == "item" or owner.shape is None else _listed(owner.shape)
    if name in ("block_until_ready", "to_device"):
        return owner
    function = _ARRAY_METHODS.get(name)
    arguments.positional.insert(0, owner)
    if owner.host and interp.kernel is None and (function is None or name in ("view", "transpose")):
        tensor = torch_tensors.method(owner, name, arguments.rest(1))
        if tensor is not None:
            return tensor
    if function is None:
        interp.escape(arguments, node)
        return UNKNOWN
    if name in ("reshape", "transpose") and len(arguments.positional) > 2:
        # Methods take the dimensions one by one where the functions take a tuple.
        arguments.positional[1:] = [Seq(tuple(arguments.positional[1:]))]
    x64 = interp.root.x64 is not None
    result = arrays.infer(function, arguments.positional, arguments.keywords, x64, arguments.open)
    return interp.frame.op(function, node, arguments, result, "method")


def _listed(shape: Shape) -> Value:
    """Python's numbers, in lists, that `tolist` makes of an array."""
    if not shape:
        return UNKNOWN
    length = shape[0]
    if not isinstance(length, int) or length > _MAX_LISTED:
        return Seq((), "list", open=True)
    return Seq((_listed(shape[1:]),) * length, "list")


def _ref_method(interp: Tracer, owner: Ref, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if name == "set" and arguments.positional:
        interp.frame.access("store", owner, ELLIPSIS, node, arguments.positional[0])
        return UNKNOWN
    if name == "__setitem__" and len(arguments.positional) == 2:
        interp.frame.access("store", owner, arguments.positional[0], node, arguments.positional[1])
        return NONE
    if name == "get":
        loaded = Array(owner.shape, owner.element)
        interp.frame.access("load", owner, ELLIPSIS, node, loaded)
        return loaded
    if name in ("bitcast", "reshape", "transpose", "reinterpret"):
        known = name == "reshape" and not arguments.open
        shape = indexing.reshaped(owner.shape, arguments.positional) if known else None
        cast = name == "bitcast" and arguments.positional
        element = arrays.element_of(arguments.positional[0]) if cast else owner.element
        return evolve(owner, view=True, shape=shape, dtype=element, parent=None)
    interp.frame.access("escape", owner, UNKNOWN, node)
    interp.escape(arguments, node)
    return UNKNOWN


def _at_method(interp: Tracer, at: CallResult, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    base = at.args[0]
    if not isinstance(base, Array):
        return UNKNOWN
    index = at.args[1] if len(at.args) > 1 else UNKNOWN
    arguments.positional[:0] = [base, index]
    result = Array(base.shape if name != "get" else indexing.result_shape(base.shape, index), base.element)
    return interp.frame.op(f"jax.numpy.ndarray.at.{name}", node, arguments, result, "method")


def _made_method(interp: Tracer, owner: CallResult, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if name in ("defvjp", "defjvp", "def_partition", "defvjps"):
        return UNKNOWN
    if name == "get_sublane_tiling" and (tiling := tpu_fields.sublane_tiling(interp, owner, arguments)) is not None:
        return tiling
    if interp.kernel is not None and owner.function.startswith("jax.experimental.pallas"):
        arguments.positional.insert(0, owner)
        return interp.frame.op(f"{owner.function}.{name}", node, arguments, UNKNOWN, "method")
    if owner.function in host_numbers.GENERATORS and (drawn := host_numbers.random(name, arguments)) is not None:
        return drawn
    if (computed := machine.computed(interp, (owner, *arguments.positional), node)) is not None:
        return computed
    interp.escape(arguments, node)
    return CallResult(
        f"{owner.function}.{name}",
        (owner, *arguments.positional),
        tuple(arguments.keywords.items()),
        interp.frame.site(node),
    )


def _sequence_method(interp: Tracer, owner: Seq, name: str, arguments: Arguments, node: nodes.Node, env: Env) -> Value:
    first = arguments.first
    changed: Seq | None = None
    if name == "append":
        changed = owner if owner.open else Seq((*owner.items, first), owner.kind)
    elif name in ("extend", "insert", "remove", "pop", "clear", "reverse", "sort", "add", "discard", "update"):
        changed = Seq(owner.items if name in ("extend", "pop") else (), owner.kind, open=True)
        if name == "extend" and isinstance(first, Seq) and not owner.open:
            changed = Seq((*owner.items, *first.items), owner.kind, first.open)
        elif name == "insert" and first == Const(0) and len(arguments.positional) == 2:
            changed = Seq((arguments.positional[1], *owner.items), owner.kind, owner.open)
        elif name == "pop" and not owner.open and owner.items and not arguments.positional:
            changed = Seq(owner.items[:-1], owner.kind)
    elif name == "copy":
        return evolve(owner)
    if changed is not None:
        _rebind_owner(interp, node, owner, changed, env)
        return owner.items[-1] if name == "pop" and owner.items and not owner.open else UNKNOWN
    return UNKNOWN


def _rebind_owner(interp: Tracer, call: nodes.Node, owner: Value, changed: Value, env: Env) -> None:
    """What a method has changed its owner into, where the owner stands."""
    place = call.func.value if isinstance(call, nodes.Call) and isinstance(call.func, nodes.Attribute) else None
    rebind(interp, place, owner, changed, env)


def rebind(interp: Tracer, place: nodes.BaseExpression | None, owner: Value, changed: Value, env: Env) -> None:
    """What a list or dictionary has become, where it stands: under a name, in an object, in another list.

    Wherever else it is, nothing is known of it any more.
    """
    if changed is not owner and env.parent is not None:
        interp.mark_outdated(owner)
    if isinstance(place, nodes.Name):
        runs_once = not interp.frame.uncertain and env is interp.frame.scope
        env.change(place.value, changed, changed if runs_once else of_any_items(changed))
    elif isinstance(place, nodes.Attribute | nodes.Subscript):
        interp.assign(place, changed, env)


def _dictionary_method(
    interp: Tracer, owner: Dictionary, name: str, arguments: Arguments, node: nodes.Node, env: Env
) -> Value:
    if name == "items":
        return Seq(tuple(Seq(pair) for pair in owner.items), "list", owner.open)
    if name == "values":
        return Seq(tuple(value for _, value in owner.items), "list", owner.open)
    if name == "keys":
        return Seq(tuple(key for key, _ in owner.items), "list", owner.open)
    if name in _CHANGING:
        _rebind_owner(interp, node, owner, _changed(owner, name, arguments), env)
    if name in ("get", "pop", "setdefault") and arguments.positional and isinstance(node, nodes.Call):
        default = arguments.positional[1] if len(arguments.positional) > 1 else Const(None)
        table = node.func.value if isinstance(node.func, nodes.Attribute) else node.func
        return tables.look_up(interp, owner, arguments.positional[0], interp.frame.piece.code(table), default)
    return evolve(owner) if name == "copy" else UNKNOWN


_CHANGING = frozenset({"setdefault", "update", "pop", "popitem", "clear"})


def _changed(owner: Dictionary, name: str, arguments: Arguments) -> Dictionary:
    """A dictionary after a method that changes it."""
    first, *others = arguments.positional or (UNKNOWN,)
    if name == "clear":
        return Dictionary(())
    if name == "update":
        added = Dictionary(()) if not arguments.positional else first
        if isinstance(added, Dictionary) and not added.open and not arguments.open:
            new = (*added.items, *((Const(key), value) for key, value in arguments.keywords.items()))
            replaced = [key for key, _ in new]
            return Dictionary((*(pair for pair in owner.items if pair[0] not in replaced), *new), owner.open)
    elif isinstance(first, Const) and name != "popitem":
        rest = tuple(pair for pair in owner.items if pair[0] != first)
        if name == "pop":
            return Dictionary(rest, owner.open)
        if len(rest) < len(owner.items):
            return owner  # `setdefault` of what is there
        return owner if owner.open else Dictionary((*rest, (first, others[0] if others else Const(None))))
    return Dictionary((), open=True)
