"""How to call each function on kernel values: hand-written recipes, and signatures read for the rest.

Runs inside the measured interpreter (standard library, numpy and jax only), on every jax from 0.4.35.

A recipe states its operands by one letter each:
  x  tile (ROWS, 128) of the tested dtype       b  tile of bool        i  tile of int32
  v  vector (128,) of the tested dtype          m  matrix (128, 128) of the tested dtype
  c  scalar of the tested dtype                 s  int32 scalar known only at run time
  w  vector (4,) of the tested dtype            j  vector (128,) of int32
  q  column (ROWS, 1) of int32                  k  random key as Pallas TPU kernels receive it
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.lax
import jax.nn
import jax.numpy as jnp
import jax.random
import jax.scipy.special

# 32 rows make whole native TPU tiles of 32-, 16- and 8-bit types and satisfy Triton's old minimum of 16
# rows for a dot, so that the shape of the tile is never what fails.
ROWS = int(os.environ.get("PALLAS_COMPAT_ROWS", "32"))
TILE = (ROWS, 128)

MODULES: dict[str, Any] = {
    "jax.numpy": jnp,
    "jax.lax": jax.lax,
    "jax.nn": jax.nn,
    "jax.scipy.special": jax.scipy.special,
    "jax.random": jax.random,
}


@dataclass(frozen=True)
class Recipe:
    """One way of calling one function."""

    function: str
    variant: str
    operands: str
    call: Callable[..., Any]
    # Several functions are only reachable on one backend; None is all of them.
    backends: tuple[str, ...] | None = None


HAND: dict[str, list[Recipe]] = {}
# Functions of the walked modules that take no kernel values (dtype queries, input and output, collectives).
NOT_ARRAY: set[str] = set()
# Functions that only work inside a kernel, with the operand letter that describes what they return.
KERNEL_ONLY: dict[str, str] = {}


def add(
    function: str,
    _backends: tuple[str, ...] | None = None,
    /,
    **variants: tuple[str, Callable[..., Any]],
) -> None:
    """Register recipes for `function`, one for each keyword."""
    HAND.setdefault(function, []).extend(
        Recipe(function, variant, operands, call, _backends) for variant, (operands, call) in variants.items()
    )


def skip(module: str, names: str) -> None:
    """Register functions of `module` that take no kernel values."""
    NOT_ARRAY.update(f"{module}.{name}" for name in names.split())


def other(x: Any) -> Any:
    """Another value of the type, by an operation that no backend refuses it: TPUs do not add numbers of 8 bits.

    For functions that call functions, where it is the call that is measured.
    """
    return ~x if x.dtype == jnp.int8 else x + x


def wide(x: Any) -> Any:
    """`x` as one of the types that every backend reduces."""
    return x.astype(jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else jnp.int32)


# Parameters that are arrays whenever they are required, and constants for those that are not.
_ARRAYS = frozenset(
    [
        "a",
        "b",
        "c",
        "x",
        "y",
        "z",
        "m",
        "v",
        "arr",
        "array",
        "ary",
        "values",
        "x1",
        "x2",
        "x3",
        "prototype",
        "operand",
        "operands",
        "lhs",
        "rhs",
        "p",
        "q",
        "n",
        "d",
        "init_value",
        "query",
        "key",
        "value",
        "weights",
        "object",
        "f",
        "g",
        "xp",
        "fp",
        "condition",
        "cond",
        "acc",
        "update",
        "h",
        "theta",
        "phi",
        "lmbda",
        "N",
        "k_",
        "w",
        "t",
        "logits",
        "data",
        "loc",
        "scale",
        "alpha",
        "beta",
        "df",
        "mean",
        "left",
        "right",
        "lam",
        "dfnum",
        "dfden",
        "sigma",
        "pred",
        "on_false",
        "on_true",
        "test_elements",
        "element",
        "xs",
        "start",
        "stop",
        "min",
        "max",
    ]
)
_CONSTANTS: dict[str, Any] = {
    "axis": -1, "shape": TILE, "sizes": TILE, "newshape": TILE, "new_sizes": TILE, "dtype": jnp.float32,
    "new_dtype": jnp.int32, "axis1": 0, "axis2": 1, "dimension": 0, "num": 4, "decimals": 1, "kth": 2,
    "repeats": 2, "reps": (1, 1), "shift": 1, "indices_or_sections": 2, "k": 2, "num_classes": 128,
    "permutation": (1, 0), "dimensions": (0,), "axes": (0,), "source": 0, "destination": 1,
    "index_dtype": jnp.int32, "exponent_bits": 5, "mantissa_bits": 7, "fill_value": 1, "M": 8, "deg": 2,
    "obj": 0, "padding": "SAME", "minval": 0, "maxval": 10, "lower": 0.0, "upper": 1.0, "num_keys": 1,
}  # fmt: skip
_LISTS = frozenset({"arrays", "tup", "seq", "choicelist"})


class NoRecipe(Exception):
    """The signature does not show how to call the function."""


def _required(function: Callable[..., Any], every_argument_an_array: bool) -> list[tuple[str | None, Any]]:
    """Arguments to pass: (keyword or None, letter | constant in a 1-tuple | letters in a list)."""
    parameters = list(inspect.signature(function).parameters.values())
    required = [p for p in parameters if p.default is p.empty]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arguments: list[tuple[str | None, Any]] = []
    for p in required:
        if p.kind is p.VAR_KEYWORD:
            continue
        if p.kind is p.VAR_POSITIONAL:
            if not any(q.kind in plain for q in required):
                arguments += [(None, "x")] * (1 if arguments else 2)
            continue
        keyword = p.name if p.kind is p.KEYWORD_ONLY else None
        if every_argument_an_array or p.name in _ARRAYS:
            arguments.append((keyword, "x"))
        elif p.name in _LISTS:
            arguments.append((keyword, ["x", "x"]))
        elif p.name == "condlist":
            arguments.append((keyword, ["b", "b"]))
        elif p.name in ("indices", "idx"):
            arguments.append((keyword, "i"))
        elif p.name == "bins":
            arguments.append((keyword, "v"))
        elif p.name in _CONSTANTS:
            arguments.append((keyword, (_CONSTANTS[p.name],)))
        else:
            raise NoRecipe(p.name)
    if not arguments and every_argument_an_array and any(p.kind in plain for p in parameters):
        arguments.append((None, "x"))
    return arguments


def _bind(
    function: Callable[..., Any],
    arguments: list[tuple[str | None, Any]],
    extra: dict[str, Any],
    tile: str = "x",
) -> tuple[str, Callable[..., Any]]:
    """Operands, and a callable of them that passes constants and lists where they belong."""
    operands: list[str] = []
    plan: list[tuple[str | None, Any]] = []
    for keyword, what in arguments:
        if isinstance(what, tuple):
            plan.append((keyword, what))
            continue
        letters = what if isinstance(what, list) else [what]
        first = len(operands)
        operands += [tile if letter == "x" else letter for letter in letters]
        plan.append((keyword, slice(first, len(operands)) if isinstance(what, list) else first))

    def value(what: Any, arrays: tuple[Any, ...]) -> Any:
        if isinstance(what, tuple):
            return what[0]
        return list(arrays[what]) if isinstance(what, slice) else arrays[what]

    def call(*arrays: Any) -> Any:
        positional = [value(what, arrays) for keyword, what in plan if keyword is None]
        named = {keyword: value(what, arrays) for keyword, what in plan if keyword is not None}
        return function(*positional, **named, **extra)

    return "".join(operands), call


def _traces(operands: str, call: Callable[..., Any], aval: Callable[[str, Any], Any]) -> bool:
    for dtype in (jnp.float32, jnp.int32, jnp.bool_):
        try:
            out = jax.eval_shape(call, *[aval(letter, dtype) for letter in operands])
        except Exception:
            continue
        if any(hasattr(leaf, "shape") for leaf in jax.tree_util.tree_leaves(out)):
            return True
    return False


def automatic(name: str, function: Callable[..., Any], mode: str) -> list[Recipe]:
    """Recipes read from the signature; `mode` is "arrays" or "names" (see `find_mode`)."""
    arguments = _required(function, mode == "arrays")
    operands, call = _bind(function, arguments, {})
    recipes = [Recipe(name, "plain", operands, call)]
    parameters = inspect.signature(function).parameters
    if "axis" in parameters and parameters["axis"].default is not inspect.Parameter.empty and mode == "arrays":
        for axis in (0, 1):
            extra: dict[str, Any] = {"axis": axis}
            if "keepdims" in parameters:
                extra["keepdims"] = True
            recipes.append(Recipe(name, f"axis{axis}", *_bind(function, arguments, extra)))
            if "keepdims" in parameters:
                recipes.append(Recipe(name, f"axis{axis}_drop", *_bind(function, arguments, {"axis": axis})))
    elif operands and set(operands) == {"x"}:
        # Scalars take another path on TPU (the scalar core) than vectors do.
        recipes.append(Recipe(name, "scalar", *_bind(function, arguments, {}, "c")))
    return recipes


def find_mode(function: Callable[..., Any], aval: Callable[[str, Any], Any]) -> str | None:
    """How the signature has to be read for a call that traces; None if no reading does."""
    for mode in ("arrays", "names"):
        try:
            operands, call = _bind(function, _required(function, mode == "arrays"), {})
        except Exception:
            continue
        if _traces(operands, call, aval):
            return mode
    return None


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Canonical name and object of every public function of the measured modules."""
    for module_name, module in MODULES.items():
        for name in sorted(dir(module)):
            if name.startswith("_") or name.endswith("_p"):
                continue
            try:
                value = getattr(module, name)
            except Exception:
                continue
            if inspect.ismodule(value) or inspect.isclass(value) or not callable(value):
                continue
            yield f"{module_name}.{name}", value


def everything(modes: dict[str, str | None], aval: Callable[[str, Any], Any]) -> Iterator[Recipe]:
    """All recipes for the running jax. Fills `modes` with what signatures gave, or uses what is there."""
    present = dict(public_functions())
    for name, function in present.items():
        if name in NOT_ARRAY or name in HAND:
            continue
        if name not in modes:
            modes[name] = find_mode(function, aval)
        mode = modes[name]
        if mode is not None:
            yield from automatic(name, function, mode)
    for name, recipes in HAND.items():
        module = name.rpartition(".")[0]
        attribute = name.rpartition(".")[2]
        if module in MODULES and not hasattr(MODULES[module], attribute):
            continue
        yield from recipes
