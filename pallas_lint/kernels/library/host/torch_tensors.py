"""Tensors of torch that tests make and hand to jax: `torch.randn(2, 128).to(torch.bfloat16).numpy()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pallas_lint.kernels.library import arrays
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import element_of
from pallas_lint.kernels.model.known_names import is_integer
from pallas_lint.kernels.model.values import Array, Const, Seq, Value, shape_of
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.kinds import Element
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

# Functions that take the sizes, one by one or as a tuple, with what they make where no dtype is given.
_FILLED: dict[str, Element] = dict.fromkeys(("randn", "rand", "zeros", "ones", "empty"), "f32")
_LIKE = ("zeros_like", "ones_like", "empty_like", "randn_like", "rand_like", "full_like")
_SAME = frozenset("detach numpy cpu cuda contiguous clone requires_grad_ tpu".split())
_ELEMENTWISE = frozenset("abs neg exp log sqrt rsqrt sigmoid tanh relu".split())
_ACTIVATIONS = frozenset("logsigmoid sigmoid tanh relu gelu silu softplus softmax log_softmax normalize".split())
_REARRANGING = {"permute": "transpose", "unsqueeze": "expand_dims", "view": "reshape", "transpose": "swapaxes"}
_FLOATS = ("f32", "f16", "bf16", "f64")  # what these functions keep; of integers most make floats
_CASTS: dict[str, Element] = {
    "float": "f32", "half": "f16", "bfloat16": "bf16", "double": "f64", "int": "i32", "long": "i64", "bool": "bool",
}  # fmt: skip


def _made(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    if interp.kernel is not None or arguments.open:
        return None
    short, requested = last_part(name), arguments.keywords.get("dtype")
    first = arguments.get("size", 0)
    result: Array | None = None
    if short in _FILLED:
        result = Array(_sizes(arguments.positional or ([first] if first is not None else [])), _FILLED[short])
    elif short == "full":
        result = Array(_sizes([first] if first is not None else []), None)
    elif short == "randint":
        numbers = [value for value in arguments.positional if is_integer(value)]
        size = arguments.get("size", len(numbers))
        result = Array(_sizes([size] if size is not None else []), "i64")
    elif short in _LIKE or short in ("tensor", "as_tensor", "from_numpy"):
        result = _as_tensor(arguments.positional[0]) if arguments.positional else None
    if result is None or result.shape is None:
        return None
    return evolve(result, dtype=result.element if requested is None else element_of(requested), host=True)


def _sizes(given: list[Value]) -> tuple[int, ...] | None:
    """The sizes, where all are numbers."""
    sizes = shape_of(given[0] if len(given) == 1 else Seq(tuple(given))) if given else None
    numbers = tuple(size for size in sizes or () if isinstance(size, int))
    return numbers if sizes is not None and len(numbers) == len(sizes) else None


def _as_tensor(value: Value) -> Array | None:
    if isinstance(value, Array):
        return value
    result = arrays.infer("jax.numpy.array", [value], {}) if isinstance(value, Seq | Const) else None
    if not isinstance(result, Array):
        return None
    return evolve(result, dtype={"f64": "f32"}.get(str(result.element), result.element), weak=False)


def _joined(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    if interp.kernel is not None or arguments.open or not arguments.positional:
        return None
    axis = arguments.get("dim", 1) or Const(0)
    function = "concatenate" if last_part(name) in ("cat", "concat") else "stack"
    result = arrays.infer(f"jax.numpy.{function}", [arguments.positional[0], axis], {})
    return evolve(result, host=True) if isinstance(result, Array) and result.shape is not None else None


def _elementwise(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    """`F.logsigmoid(x)`: a tensor of the same shape and dtype."""
    first = arguments.get("input", 0)
    if interp.kernel is not None or arguments.open or "dtype" in arguments.keywords or not isinstance(first, Array):
        return None
    return first if first.host and first.dtype in _FLOATS else None


def method(owner: Array, name: str, arguments: Arguments) -> Value | None:
    """What a method that only tensors have returns: `x.float()`; None for other names."""
    given = arguments.positional
    if name in _SAME or (name in _ELEMENTWISE and owner.dtype in _FLOATS):
        return owner
    if name in _CASTS:
        return evolve(owner, dtype=_CASTS[name])
    if name in ("to", "type"):
        casts = [element for value in (*given, *arguments.keywords.values()) if (element := element_of(value))]
        return evolve(owner, dtype=casts[0]) if casts else owner
    function = _REARRANGING.get(name)
    if function is None or not given or not all(map(is_integer, given)):
        return None
    if name == "transpose" and owner.rank == len(given):
        return None  # numpy's, which takes all the axes
    wanted = given if name in ("unsqueeze", "transpose") else [Seq(tuple(given))]
    result = arrays.infer(f"jax.numpy.{function}", [owner, *wanted], {})
    return evolve(result, host=True) if isinstance(result, Array) else None


# They return None where too little is known.
TENSORS: dict[str, Callable[[Tracer, str, Arguments, nodes.Node], Value | None]] = {
    **{
        f"torch.{name}": _made
        for name in (*_FILLED, *_LIKE, "full", "randint", "tensor", "as_tensor", "from_numpy")
    },
    **{f"torch.{name}": _elementwise for name in _ELEMENTWISE},
    **{f"torch.nn.functional.{name}": _elementwise for name in _ACTIVATIONS},
    **{f"torch.{name}": _joined for name in ("cat", "concat", "stack")},
}  # fmt: skip
