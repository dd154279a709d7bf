"""Type tests on a value: `isinstance`, `type`, `hasattr`, `callable`."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

from pallas_lint.kernels.library import members
from pallas_lint.kernels.library.host import classes
from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.known_names import TRACER, UNION
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Class,
    Const,
    Dictionary,
    External,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Value,
)

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

# What every traced array is an instance of.
_ARRAY_TYPES = frozenset(
    ("jax.Array", "jax.core.Tracer", "jax._src.core.Tracer", "jax.numpy.ndarray", "jax.typing.ArrayLike")
)
# Attributes that arrays have, traced or not, and those that only traced ones have.
_OF_ARRAYS = frozenset("shape dtype ndim size astype reshape sum T item __array__ __getitem__ __len__".split())
_OF_TRACERS = _OF_ARRAYS | {"aval", "at"}
_NEVER_ARRAYS = frozenset(f"builtins.{name}" for name in ("list", "tuple", "dict", "set", "frozenset", "str", "bytes"))
_OTHERS = ("builtins.", "numpy.", "torch.", "jax.experimental.pallas.ops.")  # whose classes no array of jax is of
_CONTAINERS = frozenset(f"collections.abc.{name}" for name in ("Sequence", "Mapping", "Set", "Callable"))
_NUMBER_CLASSES = {f"numbers.{name}": getattr(numbers, name) for name in ("Number", "Complex", "Real", "Integral")}


def is_instance(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`isinstance(x, (jax.Array, int))`."""
    if len(arguments.positional) != 2:
        return UNKNOWN
    found = instance_of(*arguments.positional)
    return UNKNOWN if found is None else Const(found)


def instance_of(value: Value, wanted: Value) -> bool | None:
    """Whether a value is an instance of a class, or of one of several; None where that is not known."""
    if isinstance(value, OneOf):
        answers = {instance_of(option, wanted) for option in value.options}
        return answers.pop() if len(answers) == 1 else None
    found = [_is_of(value, cls) for cls in _classes(wanted)]
    return True if True in found else None if None in found or not found else False


def _classes(wanted: Value) -> list[Value]:
    """The classes in a tuple or a union of some."""
    if isinstance(wanted, CallResult) and wanted.function == UNION:
        return [cls for part in wanted.args for cls in _classes(part)]
    if isinstance(wanted, Seq):
        return [*(cls for part in wanted.items for cls in _classes(part)), *([UNKNOWN] if wanted.open else [])]
    return [wanted]


def _is_of(value: Value, cls: Value) -> bool | None:
    """Whether a value is an instance of one class."""
    if isinstance(value, Instance):
        return True if isinstance(cls, Class) and derives(value.cls, cls) else None
    if isinstance(cls, Class):
        return False if isinstance(value, Array | Const | Seq | Dictionary | Ref | Func) else None
    if not isinstance(cls, External):
        return None
    if cls.name == "builtins.object":
        return True
    if isinstance(value, Array):
        return _is_array_of(value, cls.name)
    if isinstance(value, Const):
        return _is_constant_of(value, cls.name)
    if cls.name in _ARRAY_TYPES or cls.name.startswith("numpy."):
        return False if isinstance(value, Seq | Dictionary | Func) else None
    if not cls.name.startswith("builtins."):
        return None
    if isinstance(value, Seq):
        return cls.name == f"builtins.{value.kind}"
    if isinstance(value, Dictionary):
        return cls.name == "builtins.dict"
    return False if isinstance(value, Func) or (isinstance(value, Ref) and not value.optional) else None


def _is_array_of(value: Array, name: str) -> bool | None:
    """An array of the host may be one of numpy's, or a number that Python or numpy computed."""
    if name in _NEVER_ARRAYS:
        return False
    if value.host:
        return False if name in _ARRAY_TYPES and name != "jax.typing.ArrayLike" else None
    if not value.is_tracer:
        return None
    if name in _ARRAY_TYPES:
        return True
    others = name.startswith(_OTHERS) or name in _NUMBER_CLASSES or name in _CONTAINERS
    return False if others else None


def _is_constant_of(value: Const, name: str) -> bool | None:
    if name.startswith("builtins."):
        return any(name == f"builtins.{base.__name__}" for base in value.kind.__mro__)
    if name in _NUMBER_CLASSES:
        return isinstance(value.value, _NUMBER_CLASSES[name])
    if name == "jax.typing.ArrayLike":
        return value.kind in (bool, int, float, complex)
    return False if name in _ARRAY_TYPES or name.startswith("numpy.") else None


def derives(cls: Class, base: Class) -> bool:
    """Whether a class is another one, or derives from it."""
    return cls is base or any(isinstance(parent, Class) and derives(parent, base) for parent in cls.bases)


def type_of(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`type(x)` of what is made here, of a constant, or of what is traced."""
    value = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    if isinstance(value, Instance) and value.attributes:
        return value.cls
    if isinstance(value, Array):
        return External(TRACER) if value.is_tracer and interp.kernel is not None else UNKNOWN
    return External(f"builtins.{value.kind.__name__}") if isinstance(value, Const) and value != NONE else UNKNOWN


def get(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`getattr(x, "name", default)`."""
    if len(arguments.positional) < 2 or not isinstance(arguments.positional[1], Const):
        return UNKNOWN
    owner, attribute = arguments.positional[0], str(arguments.positional[1].value)
    if len(arguments.positional) > 2:
        there, default = _has(interp, owner, attribute), arguments.positional[2]
        if isinstance(owner, External):
            found = External(f"{owner.name}.{attribute}")
            return found if there is True else default if there is False else join(found, default)
        if there is not True:
            return UNKNOWN
    return members.attribute_of(interp, owner, attribute, node)


def has(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`hasattr(x, "name")`."""
    if len(arguments.positional) != 2 or not isinstance(arguments.positional[1], Const):
        return UNKNOWN
    there = _has(interp, arguments.positional[0], str(arguments.positional[1].value))
    return UNKNOWN if there is None else Const(there)


def _has(interp: Tracer, owner: Value, attribute: str) -> bool | None:
    """Whether a value has an attribute: a module of jax, an object made here, an array, a number; None: not known."""
    if isinstance(owner, External):
        return interp.api_present(f"{owner.name}.{attribute}")
    if isinstance(owner, Instance):
        there = attribute in owner.attributes or classes.class_member(interp, owner.cls, attribute) is not None
        return True if there else None
    if isinstance(owner, Array):
        if owner.host and not owner.shape:
            return None  # it may be a number of Python
        return True if attribute in (_OF_TRACERS if owner.is_tracer else _OF_ARRAYS) else None
    if isinstance(owner, Const) and owner.kind in (bool, int, float, str):
        return hasattr(owner.value, attribute)
    return None


def is_callable(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`callable(x)`."""
    value = arguments.first
    if isinstance(value, Func | Class):
        return Const(True)
    return Const(False) if isinstance(value, Const | Seq | Dictionary | Array | Ref) else UNKNOWN


def is_scalar(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`np.isscalar(x)`, which is false for everything traced, and `jnp.isscalar(x)`, which is true for rank 0."""
    value = arguments.get("element", 0) or UNKNOWN
    if isinstance(value, Const) and value.kind in (bool, int, float, complex):
        return Const(True)
    if isinstance(value, Array) and not value.host and value.is_tracer:
        if name.startswith("numpy."):
            return Const(False)
        return UNKNOWN if value.rank is None else Const(value.rank == 0)
    return interp.frame.opaque_call(name, arguments, node)


def rank(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`jnp.ndim(x)`."""
    value = arguments.get("a", 0) or UNKNOWN
    if isinstance(value, Const) and value.kind in (bool, int, float, complex):
        return Const(0)
    if isinstance(value, Array | Ref) and value.rank is not None:
        return Const(value.rank)
    return interp.frame.opaque_call(name, arguments, node)
