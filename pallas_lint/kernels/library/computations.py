"""Models of jnp, lax and numpy functions: an operation in a kernel, an array outside, a number on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library import arrays, host_numbers, products
from pallas_lint.kernels.library.operands import as_may_be, leaves
from pallas_lint.kernels.library.wrappers import run_callbacks
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import from_name
from pallas_lint.kernels.model.symbols import kind_of_number
from pallas_lint.kernels.model.values import UNKNOWN, Array, Const, Func, OneOf, Ref, Seq, Sym, Unknown, Value
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import Site, nodes


def _compute(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    short = last_part(name)
    if any(isinstance(value, Func) for value in (*arguments.positional, *arguments.keywords.values())):
        run_callbacks(interp, name, arguments)
        return (
            interp.frame.op(name, node, arguments, UNKNOWN)
            if interp.kernel is not None
            else interp.frame.opaque_call(name, arguments, node)
        )
    x64 = interp.root.x64 is not None
    result = arrays.infer(name, arguments.positional, arguments.keywords, x64, arguments.open)
    if interp.kernel is not None:
        for value in (*arguments.positional, *arguments.keywords.values()):
            for ref in [value] if isinstance(value, Ref) else []:
                if short not in ("zeros_like", "ones_like", "full_like", "empty_like"):
                    interp.frame.access("load", ref, UNKNOWN, node)
        given = products.with_default_precision(name, arguments, interp.frame.matmul_precision)
        return interp.frame.op(name, node, given, result)
    # Outside a kernel a result may be anything: an operand that is not seen to be an array stays unknown.
    function, casts = arrays.function_of(name), from_name(short) is not None
    if casts or (function is not None and function.makes):
        if casts or (function is not None and function.alike):
            result = as_may_be(result, arguments.positional[:1])
        return evolve(result, site=interp.frame.site(node)) if isinstance(result, Array) else result
    joined = (part for value in arguments.positional if isinstance(value, Seq) for part in value.items)
    if any(isinstance(value, Array) for value in (*arguments.positional, *joined)):
        return result
    numbers = [*map(_number, arguments.positional)]
    if function is not None and not arguments.open and not arguments.keywords and None not in numbers:
        result = arrays.infer(name, [number for number in numbers if number is not None], {}, x64)
        return evolve(result, site=interp.frame.site(node)) if isinstance(result, Array) else result
    known = isinstance(result, Array) and result.shape and short in ("reshape", "broadcast_to")
    return result if known or short == "cdiv" else UNKNOWN


def _number(value: Value) -> Value | None:
    """A number of Python's, of which jax makes an array: the width of a head in `jnp.sqrt(width)`; None for others."""
    if isinstance(value, Const) and isinstance(value.value, int | float):
        return value
    kind = kind_of_number(value)
    return None if kind is None else Array((), "f64" if kind is float else "i64", weak=True)


def _numpy(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    short = last_part(name)
    if from_name(short) is not None:
        return host_numbers.numpy_scalar(short, arguments)
    if short in host_numbers.REAL:
        return host_numbers.real(name, arguments)
    function = arrays.function_of(f"jax.numpy.{short}")
    if function is not None and function.numpy == "alike":
        x64 = interp.root.x64 is not None
        result = arrays.infer(f"jax.numpy.{short}", arguments.positional, arguments.keywords, x64, arguments.open)
        return evolve(result, site=interp.frame.site(node), host=True) if isinstance(result, Array) else result
    if function is not None and function.numpy == "promoted":
        given = [*map(_as_array, arguments.positional[:1]), *arguments.positional[1:]]
        joined = given[0].items if given and isinstance(given[0], Seq) else given[:1]
        parts = [*joined, *given[1:]]
        known_dtype = any(isinstance(part, Array) for part in parts) and (short != "where" or len(given) == 3)
        if known_dtype and not any(isinstance(part, Unknown | Sym | OneOf) for part in parts):
            same = host_numbers.is_promoted_alike(short, parts) and not arguments.open
            result = arrays.infer(f"jax.numpy.{short}", given, arguments.keywords, more=arguments.open)
            return _of_numpy(result, interp.frame.site(node), same=same)
    return interp.frame.opaque_call(name, arguments, node)


def _as_array(value: Value) -> Value:
    """What numpy makes of a list of numbers."""
    if not isinstance(value, Seq) or value.open:
        return value
    if all(isinstance(leaf, Const) for leaf in leaves(value)):
        return arrays.infer("jax.numpy.array", [value], {})
    return evolve(value, items=tuple(map(_as_array, value.items)))


def _of_numpy(result: Value, site: Site, *, same: bool) -> Value:
    """What numpy makes where jnp makes that; `same`: it promotes as jnp does."""
    if isinstance(result, Seq):
        return evolve(result, items=tuple(_of_numpy(item, site, same=same) for item in result.items))
    if not isinstance(result, Array):
        return result
    return evolve(result, site=site, host=True, dtype=result.element if same else None, weak=False)


def _numpy_random(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    return host_numbers.random(last_part(name), arguments) or interp.frame.opaque_call(name, arguments, node)


def _math(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if last_part(name) in host_numbers.REAL:
        return host_numbers.real(name, arguments)
    return host_numbers.of_math(name, arguments) or interp.frame.opaque_call(name, arguments, node)


# What the functions of a module do that have no model of their own, by the beginning of their names.
COMPUTATIONS: dict[str, Model] = {
    **dict.fromkeys(
        ("jax.numpy.", "jax.lax.", "jax.nn.", "jax.random.", "jax.scipy.", "jax.image.", "jax.ops."), _compute
    ),
    "numpy.random.": _numpy_random,
    "numpy.": _numpy,
    "math.": _math,
}
