"""Shapes and dtypes of the results of `jax.random`, and of its keys."""

from __future__ import annotations

from collections.abc import Callable

from pallas_lint.kernels.library.operands import Keywords, argument, axes, broadcast, shape, shape_argument
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import element_of, operand_element
from pallas_lint.kernels.model.kinds import INTEGER
from pallas_lint.kernels.model.known_names import is_integer
from pallas_lint.kernels.model.values import NONE, Array, Const, Seq, Shape, Sym, Value, dim

_KEY = frozenset({"other"})  # the dtype of a key
# Where these take the shape, which is that of a scalar if they get none; the dtype comes next.
_SHAPE_AT = {
    **dict.fromkeys(
        "normal uniform randint bits gumbel exponential laplace logistic cauchy rademacher maxwell".split(), 1
    ),
    "truncated_normal": 3,
}
# ... that of their parameters, which come before it, if they get none.
_OF_PARAMETERS = {
    **dict.fromkeys("bernoulli gamma poisson chisquare geometric pareto rayleigh".split(), 2),
    **dict.fromkeys("beta binomial".split(), 3),
}
_DTYPES = {"randint": "i64", "rademacher": "i64", "bernoulli": "bool", "poisson": "i64", "geometric": "i64"}


def drawn(name: str, args: list[Value], keywords: Keywords) -> Value:
    short = last_part(name)
    at = _SHAPE_AT[short]
    requested = argument(args, keywords, "dtype", at + (3 if short == "randint" else 1))
    sizes = shape_argument(argument(args, keywords, "shape", at) or Seq(()))
    if requested is not None:
        return Array(sizes, element_of(requested))
    return Array(sizes, INTEGER if short == "bits" else _DTYPES.get(short, "f64"))


def _of_parameters(name: str, args: list[Value], keywords: Keywords) -> Value:
    short = last_part(name)
    at = _OF_PARAMETERS[short]
    requested, given_shape = argument(args, keywords, "dtype", at + 1), argument(args, keywords, "shape", at)
    given = args[1:at]
    sizes: Shape | None = None
    if given_shape is not None:
        sizes = shape_argument(given_shape)
    elif short == "bernoulli" and len(args) == 1 and "p" not in keywords:
        sizes = ()  # p is a half
    elif len(given) == at - 1:
        sizes = broadcast([None if isinstance(value, Sym) else shape(value) for value in given])
    if requested is not None and short != "bernoulli":
        return Array(sizes, element_of(requested))
    return Array(sizes, _DTYPES.get(short, "f64"))


def _choice(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`choice(key, a, shape)`: numbers below `a`, or entries of it."""
    source = args[1] if len(args) > 1 else keywords.get("a", NONE)
    sizes: Shape | None = shape_argument(argument(args, keywords, "shape", 2) or Seq(()))
    if is_integer(source):
        return Array(sizes, "i64")
    dtype, weak = operand_element(source)
    inner = shape(source) if isinstance(source, Array) else None
    at = axes(argument(args, keywords, "axis", 5) or Const(0), len(inner)) if inner else None
    if inner is None or sizes is None or at is None:
        return Array(None, dtype, weak)
    return Array((*inner[: at[0]], *sizes, *inner[at[0] + 1 :]), dtype, weak)


def _permutation(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = args[1] if len(args) > 1 else keywords.get("x", NONE)
    if is_integer(source):
        return Array((source.value,), "i64")
    dtype, weak = operand_element(source)
    return Array(source.shape if isinstance(source, Array) else None, dtype, weak)


def _categorical(name: str, args: list[Value], keywords: Keywords) -> Value:
    given_shape = argument(args, keywords, "shape", 3)
    if given_shape is not None:
        return Array(shape_argument(given_shape), "i64")
    sizes = shape(args[1]) if len(args) > 1 else None
    at = axes(argument(args, keywords, "axis", 2) or Const(-1), len(sizes)) if sizes else None
    return Array(None if sizes is None or at is None else (*sizes[: at[0]], *sizes[at[0] + 1 :]), "i64")


def _key(name: str, args: list[Value], keywords: Keywords) -> Value:
    """A key has a dtype of its own; one of the old kind is a row of numbers, how many hangs on the generator."""
    return Array((), _KEY) if name.endswith(".key") else Array((None,), "u32")


def _derived(name: str, args: list[Value], keywords: Keywords) -> Value:
    key = args[0] if args else keywords.get("key", NONE)
    return Array(key.shape, key.element) if isinstance(key, Array) else Array()


def _split(name: str, args: list[Value], keywords: Keywords) -> Value:
    key, count = args[0] if args else keywords.get("key", NONE), argument(args, keywords, "num", 1) or Const(2)
    front = shape_argument(count) if isinstance(count, Seq) else (dim(count),)
    if not isinstance(key, Array) or key.shape is None or front is None:
        return Array()
    return Array((*front, *key.shape), key.element)


RULES: dict[str, Callable[[str, list[Value], Keywords], Value]] = {
    **{f"jax.random.{name}": drawn for name in _SHAPE_AT},
    **{f"jax.random.{name}": _of_parameters for name in _OF_PARAMETERS},
    "jax.random.choice": _choice,
    "jax.random.permutation": _permutation,
    "jax.random.categorical": _categorical,
    "jax.random.key": _key,
    "jax.random.PRNGKey": _key,
    "jax.random.fold_in": _derived,
    "jax.random.clone": _derived,
    "jax.random.split": _split,
}
