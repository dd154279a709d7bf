"""Values as known calls write them: `f32[8,128]`, `64`, `dtype:bf16`, `fn:module:name`, tuples, dataclasses.

Values from the analysis of a caller may be known in part: `f32[?,128]`, `?[8,128]`, `f32[...]`.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.model.dtypes import canonical, element_of
from pallas_lint.kernels.model.values import (
    ENUM_MEMBER,
    UNKNOWN,
    Array,
    Class,
    Const,
    Dictionary,
    DType,
    External,
    Func,
    Instance,
    Seq,
    Value,
)
from pallas_lint.known_calls.known_call import ValueProblem
from pallas_lint.probe.specs import DTYPES
from pallas_lint.syntax import nodes
from pallas_lint.syntax.literals import replaced_outside_strings, without_warnings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.frame import StackEntry

    Find = Callable[[str, str], Value]  # module and qualified name -> what they name
    Make = Callable[[Value, dict[str, Value]], Value]  # a class and known attributes of an object -> the object

_ARRAY = re.compile(r"(?<![\w.])(key<\w+>|bool|b1|(?:bf|[fiuc])\d+(?:_\w+)?|\?)\[([\d?, ]*|\.\.\.)\]")
_DTYPE = re.compile(r"\bdtype:(\w+)")
_FUNCTION = re.compile(r"\bfn:([\w./-]+):([\w.]+)")
_OBJECT = re.compile(r"(?<![\w./'\"-])([\w./-]+):([^\W\d][\w.]*)\(")
_MAX_STRING_LENGTH = 64
_MAX_LENGTH = 2000  # characters of a value: longer ones help no reader
_MAX_DEPTH = 4
# The largest plausible array: more bits than all the memory of any accelerator today.
_MAX_ELEMENTS = 1 << 40


# -- from text ---------------------------------------------------------------------------------------------------------


def check(text: str) -> None:
    """Raises ValueProblem where the text is no value, or an implausible one."""
    if len(text) > _MAX_LENGTH:
        raise ValueProblem(f"'{text[:80]}': {len(text)} characters are too many for a value, at most {_MAX_LENGTH}")
    _read(text, lambda module, name: UNKNOWN, lambda cls, known: UNKNOWN)


def read(text: str, find: Find, make: Make = lambda cls, known: UNKNOWN) -> Value:
    """The value that a text stands for; UNKNOWN where it is none."""
    try:
        return _read(text, find, make)
    except ValueProblem:
        return UNKNOWN


def _read(text: str, find: Find, make: Make) -> Value:
    try:
        with without_warnings():
            tree = ast.parse(replaced_outside_strings(text, _with_placeholders).strip(), mode="eval").body
        return _value(tree, find, make)
    except ValueProblem as error:
        raise ValueProblem(f"'{text[:80]}': {error}") from error
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        message = f"cannot read '{text[:80]}': write f32[8,128], dtype:bf16, fn:module:name, a literal, or a tuple"
        raise ValueProblem(message) from error


def _with_placeholders(text: str) -> str:
    """Text outside of strings as Python can parse it: `i32[]` and `dtype:f32` are no expressions."""
    text = _ARRAY.sub(lambda match: f"_array({match[1]!r}, {match[2]!r})", text)
    text = _DTYPE.sub(r"_dtype('\1')", text)
    text = _FUNCTION.sub(r"_function('\1', '\2')", text)
    return _OBJECT.sub(r"_object('\1', '\2')(", text)


def _value(node: ast.expr, find: Find, make: Make) -> Value:
    if isinstance(node, ast.List | ast.Tuple):
        kind = "list" if isinstance(node, ast.List) else "tuple"
        return Seq(tuple(_value(each, find, make) for each in node.elts), kind)
    if isinstance(node, ast.Dict):
        keys = [Const(ast.literal_eval(key)) for key in node.keys if key is not None]
        return Dictionary(tuple(zip(keys, (_value(each, find, make) for each in node.values), strict=True)))
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Name) and called.id in _MAKERS:
            return _MAKERS[called.id](*(ast.literal_eval(each) for each in node.args), find)
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "_object":
            module, name = (ast.literal_eval(each) for each in called.args)
            fields = {each.arg: _value(each.value, find, make) for each in node.keywords if each.arg}
            return make(find(module, name), fields)
        raise ValueError
    literal = ast.literal_eval(node)
    return Const(literal) if isinstance(literal, int | float | complex | bool | str | bytes | None) else UNKNOWN


def _array(dtype: str, sizes: str, find: Find) -> Value:
    element = None if dtype == "?" else "bool" if dtype == "b1" else dtype
    if element is not None and not element.startswith("key<") and element not in DTYPES:
        raise ValueProblem(f"'{dtype}' is not a dtype: write f32, bf16, i32, bool, ... as jax prints them")
    if sizes == "...":
        return Array(None, element)
    shape = tuple(None if size.strip() == "?" else int(size) for size in sizes.split(",") if size.strip())
    elements = 1
    for size in shape:
        elements *= 1 if size is None else size
    if elements > _MAX_ELEMENTS:
        raise ValueProblem("no memory holds an array of that size")
    return Array(shape, element)


def _dtype(name: str, find: Find) -> Value:
    if name not in DTYPES:
        raise ValueProblem(f"'{name}' is not a dtype: write f32, bf16, i32, bool, ... as jax prints them")
    return DType(name)


def _function(module: str, name: str, find: Find) -> Value:
    return find(module, name)


_MAKERS: dict[str, Callable[..., Value]] = {"_array": _array, "_dtype": _dtype, "_function": _function}


# -- to text -----------------------------------------------------------------------------------------------------------


def spelled_arguments(
    entry: StackEntry, name_of: Callable[[Func | Class], str | None], *, x64: bool = False
) -> tuple[tuple[str, str], ...]:
    """What the parameters of a function got in a call, as far as it is known and can be written."""
    given, parameters = dict(entry.bindings), entry.func.node.params
    if isinstance(parameters.star_arg, nodes.Param):
        rest = given.pop(parameters.star_arg.name.value, None)
        given |= {f"*{at}": value for at, value in enumerate(rest.items if isinstance(rest, Seq) else ())}
    if parameters.star_kwarg is not None:
        rest = given.pop(parameters.star_kwarg.name.value, None)
        pairs = rest.items if isinstance(rest, Dictionary) else ()
        given |= {key.value: value for key, value in pairs if isinstance(key, Const)}
    spelled = ((name, spell(value, name_of, x64=x64)) for name, value in given.items())
    return tuple((name, text) for name, text in spelled if text is not None)


def spell(value: Value, name_of: Callable[[Func | Class], str | None], *, x64: bool = False) -> str | None:
    """A value as a known call writes it; None where it cannot, or nothing is known. `name_of` gives "module:name"."""
    text = _spelled(value, name_of, x64, 0)
    return text if text is None or len(text) <= _MAX_LENGTH else None


def _spelled(value: Value, name_of: Callable[[Func | Class], str | None], x64: bool, depth: int) -> str | None:
    if depth > _MAX_DEPTH:
        return None
    inner = partial(_spelled, name_of=name_of, x64=x64, depth=depth + 1)
    if isinstance(value, Const):
        return _literal(value.value)
    if isinstance(value, Array):
        return _array_type(value, x64=x64)
    if isinstance(value, Seq) and not value.open:
        return _sequence(value, [inner(each) for each in value.items])
    if isinstance(value, Dictionary) and not value.open:
        parts = {repr(key.value): inner(each) for key, each in value.items if isinstance(key, Const)}
        if len(parts) < len(value.items) or not any(parts.values()):
            return "{}" if not value.items else None
        return "{" + ", ".join(f"{key}: {part or '...'}" for key, part in parts.items()) + "}"
    if isinstance(value, Func) and not (value.bound or value.keywords or value.method_of):
        name = name_of(value)
        return None if name is None else f"fn:{name}"
    if isinstance(value, Instance):
        name = name_of(value.cls)
        if name is None:
            return None
        if value.made_by is ENUM_MEMBER:
            member = value.attributes["name"]
            return f"fn:{name}.{member.value}" if isinstance(member, Const) else None
        fields = ((key, inner(each) or "...") for key, each in value.attributes.items())
        return f"{name}({', '.join(f'{key}={text}' for key, text in fields)})"
    return _named(value)


def _literal(value: object) -> str | None:
    if value is None or isinstance(value, bool | int | float):
        return repr(value) if value == value and abs(value or 0) != float("inf") else None
    return repr(value) if isinstance(value, str) and len(value) <= _MAX_STRING_LENGTH else None


def _array_type(value: Array, *, x64: bool) -> str | None:
    if value.host and not value.shape:
        return None  # a number of Python or numpy, with which host code decides: an array would be traced
    dtype = canonical(value.dtype, x64)
    if value.shape is None:
        return None if dtype is None else f"{dtype}[...]"
    sizes = ["?" if not isinstance(size, int) else str(size) for size in value.shape]
    return f"{dtype or '?'}[{','.join(sizes)}]"


def _sequence(value: Seq, items: list[str | None]) -> str | None:
    if items and not any(items):
        return None
    inner = ", ".join(item or "..." for item in items)
    return f"[{inner}]" if value.kind == "list" else f"({inner}{',' if len(items) == 1 else ''})"


def _named(value: Value) -> str | None:
    element: Any = element_of(value) if isinstance(value, DType | External) or _is_dtype(value) else None
    if isinstance(element, str) and element in DTYPES:
        return f"dtype:{element}"
    if isinstance(value, External) and "." in value.name and ":" not in value.name:
        module, _, name = value.name.rpartition(".")
        return f"fn:{module}:{name}"
    return None


def _is_dtype(value: Value) -> bool:
    return getattr(value, "short", "") == "dtype"
