"""Dtypes by the names that jax prints in avals, and jax's promotion of them.

Promotion is that of jax with 64-bit types; `canonical` makes of its results what they are without.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, overload

from pallas_lint.kernels.model.kinds import element_of_kinds, exact, join_elements, kinds_of, mapped, promoted
from pallas_lint.kernels.model.values import Array, CallResult, Const, DType, External, OneOf, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.kinds import Element

_LONG = {
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "int4": "i4", "int2": "i2",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "uint4": "u4", "uint2": "u2",
    "bool_": "bool", "bool": "bool", "complex64": "c64", "complex128": "c128",
    "float8_e4m3fn": "f8_e4m3fn", "float8_e5m2": "f8_e5m2", "float8_e4m3b11fnuz": "f8_e4m3b11fnuz",
    "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e4m3": "f8_e4m3",
    "float8_e3m4": "f8_e3m4", "float8_e8m0fnu": "f8_e8m0fnu", "float4_e2m1fn": "f4_e2m1fn",
    "single": "f32", "double": "f64", "half": "f16", "float_": "f32", "int_": "i32", "uint": "u32",
}  # fmt: skip
_PYTHON = {"builtins.int": "i64", "builtins.float": "f64", "builtins.bool": "bool", "builtins.complex": "c128"}
_KINDS = {bool: "bool", int: "i64", float: "f64", complex: "c128"}
_NARROWED = {"i64": "i32", "u64": "u32", "f64": "f32", "c128": "c64"}
_SIGNED = ("i2", "i4", "i8", "i16", "i32", "i64")
_UNSIGNED = ("u2", "u4", "u8", "u16", "u32", "u64")
_DTYPE_MODULES = ("jax.numpy", "numpy", "ml_dtypes", "jax.dtypes", "torch")


def from_name(name: str) -> str | None:
    """ "f32" for "float32"; None for what is not a dtype's name."""
    return _LONG.get(name)


def long_name(dtype: str) -> str:
    """ "float32" for "f32"; the name itself where there is no longer one."""
    return next((long for long, short in _LONG.items() if short == dtype), dtype)


def dtype_of(value: Value | None) -> str | None:
    """The dtype of a value passed as `dtype=`; None where it is not known."""
    return exact(element_of(value))


def element_of(value: Value | None) -> Element:
    """The known part of the dtype of a value passed as `dtype=`."""
    if isinstance(value, DType):
        return value.element
    if isinstance(value, Const) and isinstance(value.value, str):
        return _LONG.get(value.value)
    if isinstance(value, External):
        module, _, name = value.name.rpartition(".")
        return _LONG.get(name) if module in _DTYPE_MODULES else _PYTHON.get(value.name)
    if isinstance(value, CallResult) and value.short == "dtype" and value.args:
        return element_of(value.args[0])
    if isinstance(value, OneOf):
        return reduce(join_elements, map(element_of, value.options))
    return None


@overload
def canonical(dtype: str | None, x64: bool = False) -> str | None: ...
@overload
def canonical(dtype: Element, x64: bool = False) -> Element: ...
def canonical(dtype: Element, x64: bool = False) -> Element:
    """The dtype that jax gives an array for a requested one; `x64`: whether 64-bit types are enabled."""
    if not isinstance(dtype, str):
        # With them, there are integers that promote to a float: uint64 and int64.
        return element_of_kinds(dtype | {"float"}) if x64 and dtype is not None and "int" in dtype else dtype
    return dtype if x64 else _NARROWED.get(dtype, dtype)


def inexact(dtype: Element) -> Element:
    """The dtype in which functions of real numbers compute: floats stay, integers become 32 or 64 bits wide."""
    if not isinstance(dtype, str):
        return element_of_kinds(kinds_of(mapped(dtype, bool="float", int="float")) - {"other"})
    if is_float(dtype) or dtype[0] == "c":
        return dtype
    return "f64" if bits(dtype) == 64 else "f32"


def bits(dtype: str) -> int:
    """The width in bits: 16 for "bf16", 8 for "bool" and "f8_e4m3fn"."""
    if dtype == "bool":
        return 8
    digits = "".join(character for character in dtype.partition("_")[0] if character.isdigit())
    return int(digits) if digits else 32


def is_float(dtype: str) -> bool:
    return dtype.startswith(("f", "bf"))


def is_integer(dtype: str) -> bool:
    return dtype in _SIGNED or dtype in _UNSIGNED


def is_signed(dtype: str) -> bool:
    return dtype in _SIGNED


def promote(operands: list[tuple[Element, bool]]) -> tuple[Element, bool]:
    """The dtype that operands of these (dtype, weak) promote to, as far as known, and whether it is certainly weak."""
    if not operands:
        return None, False
    result, weak = operands[0]
    for element, other_weak in operands[1:]:
        if isinstance(result, str) and isinstance(element, str):
            result, weak = _promote(result, weak, element, other_weak)
        else:
            result, weak = element_of_kinds(promoted(map(kinds_of, (result, element)))), False
    return result, weak


def _promote(a: str, weak_a: bool, b: str, weak_b: bool) -> tuple[str | None, bool]:
    if a == b:
        return a, weak_a and weak_b
    if a == "bool" or b == "bool":
        return (b, weak_b) if a == "bool" else (a, weak_a)
    if weak_a != weak_b:
        strong, soft = (b, a) if weak_a else (a, b)
        if _rank(soft) <= _rank(strong):
            return strong, False
        return {1: "f64", 2: "c128"}[_rank(soft)], True  # an integer array and a Python float
    weak = weak_a and weak_b
    if _rank(a) != _rank(b):
        return (a if _rank(a) > _rank(b) else b), weak
    if _rank(a) == 2:
        return ("c128" if "c128" in (a, b) else "c64"), weak
    if is_float(a):
        if bits(a) < 16 or bits(b) < 16:
            return None, False  # 8-bit floats have no implicit promotion
        if bits(a) == bits(b):
            return "f32", weak  # bf16 and f16
        return (a if bits(a) > bits(b) else b), weak
    if is_signed(a) == is_signed(b):
        return (a if bits(a) > bits(b) else b), weak
    signed, unsigned = (a, b) if is_signed(a) else (b, a)
    if bits(signed) > bits(unsigned):
        return signed, False
    return ("f64", True) if unsigned == "u64" else (f"i{bits(unsigned) * 2}", False)


def _rank(dtype: str) -> int:
    """Integers come before floats, and these before complex numbers."""
    return 2 if dtype[0] == "c" else 1 if is_float(dtype) else 0


def operand_element(value: Value) -> tuple[Element, bool]:
    """The dtype with which a value takes part in promotion, as far as known, and whether it is certainly weak."""
    if isinstance(value, Array):
        return value.element, value.weak and value.dtype != "bool"
    if isinstance(value, Const):
        return _KINDS.get(value.kind), value.kind is not bool
    return None, False
