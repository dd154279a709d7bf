"""Functions of values that jax lowers for a subcore of a SparseCore, and whose compiler takes other shapes or dtypes.

Compiled for v6e and v7x with jax 0.12.0.1: a hundred functions of numbers on both kinds of subcores, and of vectors of
32, 16 and 8 bits, with layout passes and without.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.named_axes import AXIS_INDEX
from pallas_lint.kernels.facts.subcores.vectors import layout_passes
from pallas_lint.kernels.library.indexing import is_scalar_index
from pallas_lint.kernels.model.dtypes import bits, is_float
from pallas_lint.kernels.model.values import NONE, Array, Const, Func, Seq, Value
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.compat.chips import SparseCores
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Op

Problem = tuple[str, str]  # what is refused, behind the function's name, and what to do


def _names(words: str, modules: str = "numpy lax") -> frozenset[str]:
    return frozenset(f"jax.{module}.{word}" for module in modules.split() for word in words.split())


_GETITEM = "jax.numpy.ndarray.__getitem__"
_OF_VECTORS = _names("exp log log2 sqrt rsqrt tanh") | {"jax.numpy.linalg.norm"}
_REMAINDERS = _names("rem mod remainder fmod floor_divide")
_DIVISIONS = _names("true_divide divide", "numpy") | _names("div", "lax")
_ON_SCALAR_SUBCORES = _names("exp")  # the others have no lowering there
_CONVERSIONS = _names("astype convert_element_type")
_BROADCASTING = _names(
    "add subtract multiply maximum minimum true_divide divide equal not_equal less less_equal greater greater_equal"
    " where bitwise_and bitwise_or bitwise_xor",
    "numpy",
)
_SPREADING = _names("outer repeat", "numpy")
_STACKS = _names("stack vstack", "numpy")
_SCANS = _names("scan map associative_scan", "lax")
_COUNTING = _names("eye identity tri linspace", "numpy")
_TRANSPOSES = _names("transpose swapaxes moveaxis permute_dims matrix_transpose")
_PICKS = _names("take", "numpy") | {_GETITEM}
_OF_WORDS = _names("abs absolute left_shift right_shift shift_left shift_right_arithmetic shift_right_logical")
_ROUNDING = _names("round around rint")
_OF_NUMBERS = (
    _names("sign bitwise_and bitwise_or bitwise_xor bitwise_not")
    | _names("add subtract multiply maximum minimum negative clip invert bitwise_invert where", "numpy")
    | _names("equal not_equal less less_equal greater greater_equal", "numpy")
    | _names("add sub mul max min neg clamp select eq ne lt le gt ge", "lax")
)
_SUMS = _names("add multiply mul")  # those that are computed even of a number and itself
_ABSOLUTE = _names("abs absolute")
_BRANCHES = _names("cond switch", "lax")
_UPDATES = frozenset(f"jax.numpy.ndarray.at.{what}" for what in "set add multiply mul min max divide".split())
OPERATIONS = (
    _OF_VECTORS | _REMAINDERS | _DIVISIONS | _CONVERSIONS | _BROADCASTING | _SPREADING | _STACKS | _TRANSPOSES | _PICKS
    | _UPDATES | _SCANS | _COUNTING | _OF_WORDS | _ROUNDING | _OF_NUMBERS
    | _BRANCHES
)  # fmt: skip
_NARROW_INTEGERS = ("i8", "u8", "i16", "u16")
_REARRANGED = ("rearranges the numbers of a vector, which a subcore does not", "store parts into VMEM, and load them")
_OF_A_VECTOR = "compute it of a vector, and take an element of that: `jnp.exp(v)[0]`"


def refused_value(op: Op, launch: Launch, chips: tuple[SparseCores, ...]) -> Problem | None:
    """What is wrong with a function of values on a subcore of all of the chips; None where it may pass."""
    if op.name in _ROUNDING:
        eight = launch.core == "sc_vector" and all(chip.lanes == 8 for chip in chips)
        floats = isinstance(op.result, Array) and op.result.dtype in ("f32", "bf16") and op.is_traced
        return ("has no instruction on this chip", "add 0.5 and convert to int32") if eight and floats else None
    if op.name in _SCANS:
        over = op.args[0] if op.short == "associative_scan" else op.argument("xs", 1 if op.short == "map" else 2)
        if over in (None, NONE):
            return None
        return "goes over the rows of a value, which a subcore does not", "`lax.fori_loop`, with loads from the ref"
    if not op.is_traced or not isinstance(op.result, Array):
        return None
    if op.name in _BRANCHES:
        return _branches(op, op.result)
    if op.result.shape == () and (problem := _narrow_number(op, op.result)) is not None:
        return problem
    if op.result.shape == () and op.name in _OF_VECTORS | _REMAINDERS | _DIVISIONS | _CONVERSIONS:
        return _number(op, op.result, scalar_subcore=launch.core == "sc_scalar")
    return _vector(op, op.result, layout_passes(launch)) if launch.core == "sc_vector" else None


def _narrow_number(op: Op, result: Array) -> Problem | None:
    """Arithmetic of numbers of 8 and 16 bits: there is none but conversions, and what folds away."""
    numbers = [array for array in op.arrays if array.dtype not in (None, "bool")]
    if op.name not in _OF_NUMBERS | _OF_WORDS | _REMAINDERS | _DIVISIONS or not numbers:
        return None
    dtype = numbers[0].dtype if result.dtype == "bool" else result.dtype
    unsigned = op.name in _ABSOLUTE and str(dtype).startswith("u")
    known = all(array.shape == () and array.dtype == dtype for array in numbers)
    folds = len(numbers) > 1 and op.name not in _SUMS and all(array is numbers[0] for array in numbers)
    if dtype not in _NARROW_INTEGERS or not known or unsigned or folds:
        return None
    return f"of a number of {dtype}, where a subcore takes 32 bits", "convert to int32 before"


def _branches(op: Op, result: Array) -> Problem | None:
    """A choice between constants of 8 and 16 bits, and 0 and 1 are none where a comparison makes them.

    Numbers that are computed are chosen before they are converted.
    """
    given = (op.argument("true_fun", 1), op.argument("false_fun", 2)) if op.short == "cond" else _branches_of_switch(op)
    constants = [_constant_of(branch) for branch in given]
    integers = result.dtype in _NARROW_INTEGERS
    if result.shape != () or not (integers or result.dtype in ("bf16", "f16")) or None in constants:
        return None
    if len(set(constants)) < 2 or (integers and {*constants} == {0, 1} and op.short == "cond"):
        return None
    return f"between numbers of {result.dtype}, where a subcore chooses 32 bits", "convert the result instead"


def _branches_of_switch(op: Op) -> tuple[Value | None, ...]:
    branches = op.argument("branches", 1)
    return branches.items if isinstance(branches, Seq) and not branches.open else (None,)


def _constant_of(branch: Value | None) -> float | None:
    """The number that a lambda makes of a literal and nothing else: `lambda: jnp.int16(2)`."""
    body = branch.node.body if isinstance(branch, Func) and isinstance(branch.node, nodes.Lambda) else None
    while isinstance(body, nodes.Call) and body.args:
        body = body.args[0].value
    sign = 1
    if isinstance(body, nodes.UnaryOperation) and isinstance(body.operator, nodes.Minus):
        sign, body = -1, body.expression
    digits = body.value.replace("_", "") if isinstance(body, nodes.Integer | nodes.Float) else ""
    return sign * float(digits) if digits.replace(".", "", 1).isdecimal() else None


def _number(op: Op, result: Array, *, scalar_subcore: bool) -> Problem | None:
    """A function of numbers, of which subcores have few."""
    if op.name in _CONVERSIONS:
        source = _operand(op)
        if source is None or source.dtype in (None, "bool") or result.dtype in (None, "bool"):
            return None
        taken = bits(source.dtype or ""), bits(result.dtype or "")
        of_integers = not is_float(source.dtype or "") and not is_float(result.dtype or "")
        folded = source.origin is not None and any(each.dtype == "bool" for each in source.origin.arrays)
        if of_integers or taken == (32, 32) or max(taken) > 32 or folded:
            return None
        return f"of a number from {source.dtype} to {result.dtype}", "convert a vector, or stay with 32 bits"
    if op.name in _REMAINDERS:
        return ("of numbers that are floats", _OF_A_VECTOR) if result.dtype == "f32" else None
    if op.name in _DIVISIONS:
        divisor = op.args[1] if len(op.args) > 1 else None
        exact = isinstance(divisor, Const) and _is_power_of_two(divisor.value)  # a product, to the compiler
        crashes = scalar_subcore and result.dtype == "f32" and not exact
        help = "multiply by the reciprocal, or divide on a vector subcore"
        return ("of numbers on a scalar subcore, where the compiler crashes", help) if crashes else None
    if scalar_subcore and op.name not in _ON_SCALAR_SUBCORES:
        return None
    if scalar_subcore:
        return "of a number: a scalar subcore does not compute it", "compute it on a vector subcore, of a vector"
    return "of a number: a vector subcore computes it of vectors only", _OF_A_VECTOR


def _vector(op: Op, result: Array, passes: bool | None) -> Problem | None:
    """A function of a vector, on a vector subcore."""
    source = _operand(op)
    if op.name in _BROADCASTING:
        return _broadcast(op, result)
    if op.name in _STACKS and passes is False:
        return _REARRANGED
    if op.name in _COUNTING:
        return "counts in two dimensions, or over another number than those of a register", "`lax.iota` and `jnp.where`"
    if op.name in _UPDATES:
        return "has no lowering on a subcore: no rule for `scatter`", "store into the ref, or select with `jnp.where`"
    if source is None or source.shape in (None, ()):
        return None
    if op.name in _CONVERSIONS:
        return _conversion(source, result, passes)
    if op.name in _REMAINDERS | _DIVISIONS | _OF_WORDS:
        return _of_words(op, source, result)
    if op.name in _OF_VECTORS and source.dtype in _NARROW_INTEGERS:
        return f"of a vector of {source.dtype}", "convert to int32 before"
    if op.name in _SPREADING or (op.name in _STACKS and passes is False):
        return (
            "rearranges the numbers of a vector, which a subcore does not",
            "store the parts into VMEM, and load them",
        )
    if op.name in _TRANSPOSES:
        return _transpose(op, source)
    if op.name in _PICKS and (problem := _pick(op, source, result)) is not None:
        return problem
    return None


def _broadcast(op: Op, result: Array) -> Problem | None:
    """A column that is spread over lanes."""
    if not result.shape or len(result.shape) < 2 or result.shape[-1] == 1:
        return None
    if any(array.shape and len(array.shape) > 1 and array.shape[-1] == 1 != array.shape[-2] for array in op.arrays):
        return "spreads a column over lanes, which a subcore does not", "take one number at a time: `v[i] * w`"
    return None


def _of_words(op: Op, source: Array, result: Array) -> Problem | None:
    """Divisions, shifts and absolute values, which are of 32 bits."""
    if op.name in _REMAINDERS and result.dtype in ("bf16", "f16"):
        return f"of {result.dtype}, where it takes f32", "convert to float32 around it"
    if source.dtype not in _NARROW_INTEGERS or any(source == each for each in op.arrays[1:]):
        return None
    return f"of a vector of {source.dtype}, where it takes 32 bits", "convert to int32 around it"


def _conversion(source: Array, result: Array, passes: bool | None) -> Problem | None:
    before, after = source.dtype, result.dtype
    if before is None or after is None or "bool" in (before, after) or passes is None:
        return None
    narrow, wide = sorted((bits(before), bits(after)))
    if narrow == wide:
        return None
    if not passes:
        return f"from {before} to {after} without layout passes", "`plsc.pack` and `plsc.unpack` change the width"
    if is_float(before) != is_float(after):
        between = "float32" if wide == 32 and is_float(after) else "int32" if wide == 32 else "the same width"
        return f"from {before} to {after}, of another width", f"convert in two steps, by way of {between}"
    if is_float(before) and wide > 2 * narrow:
        return f"from {before} to {after}", "convert by way of bfloat16"
    return None


def _transpose(op: Op, source: Array) -> Problem | None:
    if source.shape is None or len(source.shape) < 2 or 1 in source.shape:
        return None
    return "has no lowering on a subcore: no rule for `transpose`", "`plsc.load_gather` takes a column of a ref"


def _pick(op: Op, source: Array, result: Array) -> Problem | None:
    """Elements of a vector, by their numbers."""
    index = op.argument("indices", 1)
    if isinstance(index, Seq) and len(index.items) == 1:
        (index,) = index.items
    of = None if source.dtype in (None, "bool") else bits(source.dtype or "")
    if _is_computed(index):
        return (
            "takes an element at an index that is computed: no rule for `dynamic_slice`",
            "load from the ref at that index: `ref[pl.ds(i, n)][0]`, or `plsc.load_gather`",
        )
    if of is not None and of < 32 and result.shape == () and op.name == _GETITEM:
        return f"takes an element of a vector of {source.dtype}, where 32 bits are taken", "convert to 32 bits before"
    if isinstance(index, Array) and index.shape and index.dtype is not None and of is not None:
        return (
            (f"permutes {source.dtype} by indices of {index.dtype}: both need one width", "convert to 32 bits before")
            if of != bits(index.dtype)
            else None
        )
    return None


def _is_computed(index: Value | None) -> bool:
    if not isinstance(index, Array) or index.host:
        return False
    return is_scalar_index(index) is True or (index.origin is not None and index.origin.name == AXIS_INDEX)


def _operand(op: Op) -> Array | None:
    value = next(iter(op.args), None) or op.argument("x") or op.argument("a") or op.argument("operand")
    return value if isinstance(value, Array) else None


def _is_power_of_two(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5
