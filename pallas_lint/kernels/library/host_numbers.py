"""Numbers and arrays that Python or numpy make while jax traces: `np.float32(2)`, `math.sqrt(d)`, `rng.normal(…)`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import dtype_of
from pallas_lint.kernels.model.known_names import is_integer
from pallas_lint.kernels.model.values import Array, Const, Seq, Value, shape_of

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments

# Functions of math and numpy that return a real number, whatever number they get.
REAL = frozenset("sqrt exp exp2 log log2 log10 log1p expm1 sin cos tan tanh".split())

# Where functions of `numpy.random`, and the methods of its generators, take the shape.
_RANDOM = {
    **dict.fromkeys(("random", "random_sample", "standard_normal"), 0),
    **dict.fromkeys(("normal", "uniform", "randint", "integers"), 2),
}
GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState")


def random(short: str, arguments: Arguments) -> Array | None:
    """The array that `np.random.randn(16, 128)` or `rng.normal(size=shape)` makes; None where no shape is given."""
    if arguments.open:
        return None
    if short == "permutation":
        count = arguments.get("x", 0)
        known = is_integer(count)
        return Array(shape_of(count), "i64", host=True) if count is not None and known else None
    if short in ("randn", "rand"):
        size: Value | None = Seq(tuple(arguments.positional)) if arguments.positional else None
    else:
        size = arguments.get("size", _RANDOM[short]) if short in _RANDOM else None
    if size is None:
        return None
    told = "dtype" in arguments.keywords
    of_ints = short in ("randint", "integers")
    return Array(shape_of(size), None if told else "i64" if of_ints else "f64", host=True)


def numpy_scalar(short: str, arguments: Arguments) -> Value:
    """`np.float32(2)`: of that very type, where a Python number would be weak."""
    if any(isinstance(value, Array | Seq) and not getattr(value, "host", False) for value in arguments.positional):
        return Array(None, dtype_of(Const(short)), host=True)
    return Array((), dtype_of(Const(short)), host=True)


def real(name: str, arguments: Arguments) -> Value:
    """A Python float from `math`, a 64-bit numpy scalar from numpy, which jax takes for a strong type."""
    value = arguments.positional[0] if arguments.positional else None
    of_array = isinstance(value, Array) and value.shape != ()
    if name.startswith("numpy."):
        known = isinstance(value, Const) or (isinstance(value, Array) and value.dtype == "f64" and value.host)
        return Array(None if of_array or value is None else (), "f64" if known else None, host=True)
    if isinstance(value, Const) and isinstance(value.value, int | float):
        try:
            return Const(float(getattr(math, last_part(name))(value.value)))
        except (ArithmeticError, ValueError):
            pass
    return Array((), "f64", weak=True, host=True)
