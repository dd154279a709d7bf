"""Numbers and arrays that Python or numpy compute during tracing: `np.float32(2)`, `math.sqrt(d)`, `rng.normal(…)`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import bits, dtype_of, element_of
from pallas_lint.kernels.model.known_names import is_integer
from pallas_lint.kernels.model.symbols import symbolic
from pallas_lint.kernels.model.values import NONE, UNKNOWN, Array, Const, DType, Seq, Sym, Value, shape_of

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.kinds import Element

# Functions of math and numpy that return a real number, whatever number they get.
REAL = frozenset("sqrt exp exp2 log log2 log10 log1p expm1 sin cos tan tanh".split())

# Where functions of `numpy.random`, and the methods of its generators, take the shape.
_RANDOM = {
    **dict.fromkeys(("random", "random_sample", "ranf", "sample", "standard_normal", "standard_exponential"), 0),
    **dict.fromkeys(("choice", "exponential", "poisson", "rayleigh", "chisquare", "geometric", "standard_gamma"), 1),
    **dict.fromkeys(("normal", "uniform", "randint", "integers", "binomial", "beta", "gamma", "laplace"), 2),
    **dict.fromkeys(("lognormal", "logistic", "gumbel"), 2),
}
_OF_INTEGERS = frozenset(("randint", "integers", "binomial", "poisson", "geometric"))
GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator")
LIMITS = ("finfo", "iinfo")  # functions for the limits of a dtype


def random(short: str, arguments: Arguments) -> Array | None:
    """The array that `np.random.randn(16, 128)` or `rng.normal(size=shape)` makes; None where no shape is given."""
    if arguments.open:
        return None
    if short in ("permutation", "permuted"):
        given = arguments.get("x", 0)
        if isinstance(given, Array):
            return Array(given.shape, given.element, host=True)
        return Array(shape_of(given), "i64", host=True) if given is not None and is_integer(given) else None
    if short in ("randn", "rand"):
        size: Value | None = Seq(tuple(arguments.positional)) if arguments.positional else None
    else:
        size = arguments.get("size", _RANDOM[short]) if short in _RANDOM else None
    if size in (None, NONE):
        return None
    requested = arguments.keywords.get("dtype")
    if short == "choice":
        return Array(shape_of(size), _chosen(arguments.get("a", 0)), host=True)
    made = "i64" if short in _OF_INTEGERS else "f64"
    return Array(shape_of(size), made if requested is None else element_of(requested), host=True)


def _chosen(source: Value | None) -> Element:
    """The dtype of what is drawn from an array, or from the numbers below one."""
    return source.element if isinstance(source, Array) else "i64" if is_integer(source) else None


def limit(kind: str, name: str, dtype: Value) -> Value:
    """`jnp.finfo(dtype).max`: of that dtype, for numpy a number of the host; those of integers are Python's."""
    element = element_of(dtype) or (dtype.element if isinstance(dtype, Array) else None)
    if not isinstance(element, str):
        return UNKNOWN
    width = bits(element)
    if name == "bits":
        return Const(width)
    if name == "dtype":
        return DType(element)
    if kind == "iinfo" and element[0] in "iu":
        signed = element[0] == "i"
        least, most = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
        return {"min": Const(least), "max": Const(most)}.get(name, UNKNOWN)
    real = name in ("min", "max", "eps", "tiny", "smallest_normal", "resolution") and kind == "finfo"
    return Array((), element, host=True) if real else UNKNOWN


# Of narrow integers numpy makes wide ones here.
_ADDING = frozenset(("sum", "prod", "cumsum", "cumprod"))


def is_promoted_alike(short: str, operands: list[Value]) -> bool:
    """Whether numpy gives the dtype that jnp gives: of operands of one dtype, and numbers that do not widen it."""
    if short in ("take", "take_along_axis"):
        operands = operands[:1]
    elif short == "where":
        operands = operands[1:]
    dtypes = {value.dtype for value in operands if isinstance(value, Array)}
    numbers = {value.kind for value in operands if isinstance(value, Const)}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    if dtype is None or (short in _ADDING and dtype[0] in "iu" and bits(dtype) < 32):
        return False
    return dtype[0] == "f" or (float not in numbers and complex not in numbers and dtype in ("i32", "i64", "bool"))


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
        known = isinstance(value, Const) or (isinstance(value, Array) and value.dtype in ("f32", "f64") and value.host)
        element = value.dtype if known and isinstance(value, Array) else "f64" if known else None
        return Array(value.shape if isinstance(value, Array) and of_array else (), element, host=True)
    if isinstance(value, Const) and isinstance(value.value, int | float):
        try:
            return Const(float(getattr(math, last_part(name))(value.value)))
        except (ArithmeticError, ValueError):
            pass
    return Array((), "f64", weak=True, host=True)


# Functions of math that give the same for the same numbers, and take no time for small ones.
_OF_MATH = frozenset("ceil floor trunc gcd lcm isqrt fabs fmod copysign hypot pow".split())


def of_math(name: str, arguments: Arguments) -> Value | None:
    """`math.gcd(96, 128)`, `math.ceil(n / 8)`: the number, where those that it is computed from are known."""
    short, quotient = last_part(name), arguments.first
    if short == "ceil" and isinstance(quotient, Sym) and quotient.operation is not None:
        symbol, left, right = quotient.operation
        whole = isinstance(right, Sym) or is_integer(right)
        if symbol == "/" and whole and isinstance(left, Sym | Const) and isinstance(right, Sym | Const):
            return symbolic("cdiv", left, right)
    given = [value.value for value in arguments.positional if isinstance(value, Const)]
    known = len(given) == len(arguments.positional) and not arguments.open and not arguments.keywords
    if short not in _OF_MATH or not known:
        return None
    try:
        return Const(getattr(math, short)(*given))
    except (ArithmeticError, TypeError, ValueError):
        return None
