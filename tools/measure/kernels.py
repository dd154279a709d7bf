"""A tiny real kernel around one recipe, and what happens when it is lowered and compiled.

The tile goes in and the result goes out in ways that do not fail by themselves: where a plain store of the
result is refused, other ways of storing it are tried before the function gets the blame.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import targets  # first: it sets the environment that jax reads
from jax.experimental import pallas as pl
from recipes import KERNEL_ONLY, TILE, Recipe

DTYPES = {
    "f32": jnp.float32,
    "bf16": jnp.bfloat16,
    "f16": jnp.float16,
    "i32": jnp.int32,
    "i8": jnp.int8,
    "u32": jnp.uint32,
    "bool": jnp.bool_,
}
SCALAR_DTYPES = frozenset({"f32", "i32", "bool"})

# What became of a case, one letter each, as the packed data keep it.
OK, TRACE, LOWER, COMPILE, ABORT, TIMEOUT = "k", "t", "l", "c", "a", "T"
REFUSED = "u"  # the function itself refuses the dtype, outside kernels too
SKIPPED = "s"  # nothing to store: no array, a complex or an empty one
HARNESS = "h"  # this file's loads and stores failed, not the function

_LOADS_AND_STORES = frozenset({"get", "swap", "load", "store", "masked_load", "masked_swap", "addupdate"})
_ADAPTERS = _LOADS_AND_STORES | {
    "broadcast_in_dim", "convert_element_type", "reshape", "select_n", "reduce_sum", "squeeze", "expand_dims",
}  # fmt: skip


class Deadline(BaseException):
    """Raised by the alarm; no `except Exception` on the way may swallow it."""


@dataclass
class Result:
    """Outcome of one case on one backend."""

    status: str
    message: str = ""
    primitive: str | None = None
    plan: str = "direct"
    text: str = ""
    lowered: Any = field(default=None, repr=False)


def aval(letter: str, dtype: Any) -> Any:
    """What the recipe sees for this operand letter."""
    shapes: dict[str, tuple[tuple[int, ...], Any]] = {
        "x": (TILE, dtype), "b": (TILE, jnp.bool_), "i": (TILE, jnp.int32), "v": ((128,), dtype),
        "w": ((4,), dtype), "m": ((128, 128), dtype), "c": ((), dtype), "s": ((), jnp.int32),
        "j": ((128,), jnp.int32), "q": ((TILE[0], 1), jnp.int32),
    }  # fmt: skip
    if letter == "k":
        return _pallas_key()
    shape, kind = shapes[letter]
    return jax.ShapeDtypeStruct(shape, kind)


def _pallas_key() -> Any:
    """Aval of a random key as TPU kernels receive it."""
    convert = getattr(targets.tpu, "to_pallas_key", None)
    if convert is None:
        from jax._src.pallas.mosaic import random as pallas_random

        convert = pallas_random.to_pallas_key
    return jax.eval_shape(lambda: convert(jax.random.key(0)))


def wanted_dtypes(recipe: Recipe) -> list[str]:
    """Dtypes for which the recipe is another case; one where no operand has the tested dtype."""
    letters = set(recipe.operands)
    if "c" in letters and not letters & set("xvwm"):
        return [d for d in DTYPES if d in SCALAR_DTYPES]
    if not letters & set("xvwmc"):
        return ["f32"]
    # Unsigned numbers reduce as they do along the default axis; two more axes add nothing. Joins have no default.
    skipped = recipe.variant.startswith("axis") and "concat" not in recipe.function
    return [d for d in DTYPES if d != "u32" or not skipped]


def subjaxprs(value: Any) -> list[Any]:
    """Every jaxpr inside a parameter of an equation."""
    if hasattr(value, "eqns"):
        return [value]
    if hasattr(value, "jaxpr"):
        return subjaxprs(value.jaxpr)
    if isinstance(value, (tuple, list)):
        return [inner for item in value for inner in subjaxprs(item)]
    return []


def primitives(jaxpr: Any, into: set[str] | None = None) -> set[str]:
    """Names of all primitives in a jaxpr, nested ones included."""
    names: set[str] = set() if into is None else into
    for equation in jaxpr.eqns:
        names.add(str(equation.primitive))
        for value in equation.params.values():
            for inner in subjaxprs(value):
                primitives(inner, names)
    return names


def _kernel_jaxpr(jaxpr: Any) -> Any:
    for equation in jaxpr.eqns:
        if str(equation.primitive) == "pallas_call":
            return equation.params["jaxpr"]
        for value in equation.params.values():
            for inner in subjaxprs(value):
                found = _kernel_jaxpr(inner)
                if found is not None:
                    return found
    return None


def fingerprint(traced: Any) -> str:
    """Hash of the kernel's jaxpr without names and addresses: equal ones lower and compile alike."""
    kernel = _kernel_jaxpr(traced.jaxpr)
    if kernel is None:
        return ""
    text = re.sub(r"\bname=\S+", "", str(kernel))
    if " at 0x" in text:
        return ""
    return hashlib.sha1(text.encode()).hexdigest()[:16]


def cause(error: BaseException) -> BaseException:
    """The innermost exception with a message."""
    current = error
    while current.__cause__ is not None:
        current = current.__cause__
    if type(current).__name__ == "JaxStackTraceBeforeTransformation" or not str(current).strip():
        return error
    return current


def message(error: BaseException) -> str:
    """One line that names the failure."""
    inner = cause(error)
    text = str(inner).strip() or str(error).strip()
    if "captures constants" in text:
        return "the function makes an array constant, which a kernel cannot capture"
    named = re.search(r"HLO name `[^`]*`: ([^\n]*)", text)
    if named and named.group(1).strip():
        return tidy(named.group(1))
    for pattern in (
        r"(?:Unimplemented primitive|Unsupported primitive)[^\n]*",
        r"Bad lhs type[^\n]*",
        r"(?i:not implemented): [^\n]*",
        r"'[\w.]+' op [^\n]*",
        r"error: (?!Failures have been)[^\n]*",
    ):
        found = re.search(pattern, text)
        if found:
            return tidy(found.group(0))
    lines = [line for line in text.split("\n") if line.strip() and "HLO name" not in line]
    name = type(inner).__name__
    if name in ("JaxStackTraceBeforeTransformation", "MosaicError", "JaxRuntimeError", "XlaRuntimeError"):
        return tidy(lines[0] if lines else text)
    return tidy(f"{name}: {lines[0]}" if lines else name)


def tidy(line: str) -> str:
    line = re.sub(r"0x[0-9a-f]+", "0x", line)
    line = re.sub(r"loc\(.*", "", line)
    line = re.sub(r"\. Please file an issue.*", "", line)
    line = re.sub(r"(/[\w.\-]+){2,}", "…", line)
    return line.strip()[:200]


def guilty(error: BaseException) -> str | None:
    """The primitive being lowered when it failed: the innermost `eqn` of jax's lowering loops."""
    text = str(cause(error))
    unimplemented = re.search(r"(?:Unimplemented|Unsupported) primitive[^\n]*?: ([\w-]+)", text)
    if unimplemented:
        return unimplemented.group(1)
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    found: str | None = None
    for exception in reversed(chain):
        trace = exception.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            equation = frame.f_locals.get("eqn")
            if hasattr(equation, "primitive") and "pallas" in frame.f_code.co_filename:
                found = str(equation.primitive)
            trace = trace.tb_next
        if found is not None:
            return found
    # Verifier and compiler run after lowering and name the operation by its location: "is_finite:"(…
    named = re.search(r'(?:error: |loc\()"(?:[^"]*/)?(\w+):?"\(', text)
    return named.group(1) if named else None


def _wide(value: Any) -> Any:
    if value.dtype == jnp.bool_:
        return value.astype(jnp.int32)
    if jnp.issubdtype(value.dtype, jnp.floating):
        return value.astype(jnp.float32)
    return value.astype(jnp.int32) if value.dtype.itemsize < 4 else value


def _wide_dtype(dtype: Any) -> Any:
    if dtype == jnp.bool_:
        return jnp.int32
    if jnp.issubdtype(dtype, jnp.floating):
        return jnp.float32
    return jnp.int32 if dtype.itemsize < 4 else dtype


def _plan_for(plan: str, out: Any) -> tuple[tuple[int, ...], Any, Callable[[Any, Any], None]]:
    """Shape and dtype of the output block, and how the value gets into it."""
    wide = _wide_dtype(out.dtype)
    rank = len(out.shape)
    if plan == "total" and rank:

        def total(ref: Any, value: Any) -> None:
            ref[...] = jnp.full(ref.shape, jnp.sum(_wide(value)).astype(ref.dtype))

        return TILE, wide, total
    if rank == 0:

        def fill(ref: Any, value: Any) -> None:
            value = _wide(value) if plan != "direct" or value.dtype == jnp.bool_ else value
            ref[...] = jax.lax.broadcast(jnp.asarray(value), ref.shape).astype(ref.dtype)

        return TILE, wide if plan != "direct" or out.dtype == jnp.bool_ else out.dtype, fill
    if rank == 1 and plan == "row":

        def row(ref: Any, value: Any) -> None:
            ref[0, :] = _wide(value).astype(ref.dtype)

        return (8, out.shape[0]), wide, row
    if rank == 1 and plan == "spread":

        def spread(ref: Any, value: Any) -> None:
            ref[...] = jnp.broadcast_to(_wide(value)[None, :], ref.shape)

        return (8, out.shape[0]), wide, spread
    if plan == "direct":

        def direct(ref: Any, value: Any) -> None:
            ref[...] = value.astype(jnp.int32) if value.dtype == jnp.bool_ else value

        return out.shape, jnp.int32 if out.dtype == jnp.bool_ else out.dtype, direct

    def widened(ref: Any, value: Any) -> None:
        ref[...] = _wide(value)

    return out.shape, wide, widened


def plans(outputs: list[Any]) -> list[str]:
    """Ways of storing these outputs worth trying, the plainest first."""
    names = ["direct"]
    if any(len(out.shape) == 1 for out in outputs):
        names += ["row", "spread"]
    elif any(out.dtype.itemsize < 4 for out in outputs):
        names.append("wide")
    if any(len(out.shape) for out in outputs):
        names.append("total")
    return names


def plain(outputs: list[Any]) -> bool:
    """Whether every output is a whole tile of 32-bit numbers (or a scalar), which any backend can store."""

    def whole(shape: tuple[int, ...]) -> bool:
        return not shape or (len(shape) == 2 and shape[0] % 8 == 0 and shape[1] % 128 == 0)

    return all(out.dtype.itemsize == 4 and whole(out.shape) for out in outputs)


@dataclass
class Case:
    """One recipe with one dtype."""

    recipe: Recipe
    dtype: str

    def operands(self) -> list[Any]:
        return [aval(letter, DTYPES[self.dtype]) for letter in self.recipe.operands]

    def outside(self) -> tuple[list[Any], set[str]] | str:
        """Outputs and primitives of the function outside any kernel; REFUSED or SKIPPED if there are none."""
        if self.recipe.function in KERNEL_ONLY:
            return [aval(KERNEL_ONLY[self.recipe.function], DTYPES[self.dtype])], set()
        try:
            jaxpr = jax.make_jaxpr(self.recipe.call)(*self.operands())
        except Exception:
            return REFUSED
        outputs = [out for out in jaxpr.out_avals if hasattr(out, "shape")]
        if not outputs:
            return SKIPPED
        for out in outputs:
            if not (jnp.issubdtype(out.dtype, jnp.number) or out.dtype == jnp.bool_):
                return SKIPPED
            if jnp.issubdtype(out.dtype, jnp.complexfloating) or 0 in out.shape:
                return SKIPPED
        return outputs, primitives(jaxpr.jaxpr)

    def trace(self, backend: str, plan: str, outputs: list[Any], sharding: Any = None) -> Any:
        """Trace the kernel for this backend; raises what jax raises."""
        letters = self.recipe.operands
        avals = self.operands()
        stored = [_plan_for(plan, out) for out in outputs]
        on_tpu = backend == "tpu"
        arguments, specs = [], []
        for letter, operand in zip(letters, avals):
            if letter == "s":
                continue
            shape, dtype, space = operand.shape, operand.dtype, None
            if letter == "c":
                shape, space = (1, 1), targets.tpu.SMEM if on_tpu else None
            elif letter == "k":
                space = targets.tpu.SMEM
            elif letter in "vwj" and on_tpu:
                # 1-D blocks are refused for reasons of their own; a row of a tile is not.
                shape = (8, 128)
            if dtype == jnp.bool_:
                dtype = jnp.int32
            keywords = {} if sharding is None else {"sharding": sharding}
            arguments.append(jax.ShapeDtypeStruct(shape, dtype, **keywords))
            specs.append(pl.BlockSpec(memory_space=space) if space is not None else pl.BlockSpec())
        count = len(arguments)

        def kernel(*refs: Any) -> None:
            given = iter(refs[:count])
            values = []
            for letter, operand in zip(letters, avals):
                if letter == "s":
                    values.append(pl.program_id(0))
                    continue
                ref = next(given)
                if letter == "c":
                    value = ref[0, 0]
                elif letter in "vwj" and on_tpu:
                    value = ref[0, : operand.shape[0]]
                else:
                    value = ref[...]
                values.append(value != 0 if operand.dtype == jnp.bool_ else value)
            result = self.recipe.call(*values)
            leaves = [leaf for leaf in jax.tree_util.tree_leaves(result) if hasattr(leaf, "shape")]
            for ref, leaf, (_, _, store) in zip(refs[count:], leaves, stored):
                store(ref, jnp.asarray(leaf))

        keywords: dict[str, Any] = {"grid": (1,)} if "s" in letters else {}
        if on_tpu and set(letters) & set("ck"):
            keywords["in_specs"] = specs
        shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype, _ in stored]
        call = targets.pallas_call(kernel, shapes, backend, **keywords)
        placed = {} if sharding is None else {"in_shardings": sharding, "out_shardings": sharding}
        return jax.jit(call, **placed).trace(*arguments)


@dataclass
class Target:
    """What to lower for."""

    backend: str
    kind: str
    sharding: Any = None
    # Results by fingerprint, where equal kernels need to be lowered only once.
    seen: dict[str, Result] | None = None

    @classmethod
    def of(cls, backend: str, seen: dict[str, Result] | None = None) -> Target:
        """The backend's usual device."""
        return cls(backend, targets.BACKENDS[backend][1], seen=seen)


def lower(case: Case, target: Target, outputs: list[Any], first: str = "direct") -> Result:
    """Lower the case, trying other ways of storing (from `first` on) where only the store failed."""
    order = plans(outputs)
    failure: Result | None = None
    for plan in order[order.index(first) if first in order else 0 :]:
        result = lower_once(case, target, plan, outputs)
        if result.status == OK:
            return result
        failure = failure or result
        if result.primitive is not None and result.primitive not in _ADAPTERS:
            return result
    assert failure is not None
    if failure.primitive in _LOADS_AND_STORES and case.recipe.function != "kernel:identity":
        failure.status = HARNESS
    return failure


def lower_once(case: Case, target: Target, plan: str, outputs: list[Any]) -> Result:
    """Lower the case with one way of storing its results."""
    backend, seen = target.backend, target.seen
    platform, _, device_platform = targets.BACKENDS[backend]
    with targets.device_context(target.kind, device_platform, 1 if backend == "tpu" else None):
        try:
            traced = case.trace(backend, plan, outputs, target.sharding)
        except Exception as error:
            return Result(TRACE, message(error), guilty(error), plan)
        text = fingerprint(traced)
        if seen is not None and text and text in seen:
            known = seen[text]
            return Result(known.status, known.message, known.primitive, plan, text)
        try:
            lowered = traced.lower(lowering_platforms=(platform,))
        except Exception as error:
            result = Result(LOWER, message(error), guilty(error), plan, text)
        else:
            result = Result(OK, plan=plan, text=text, lowered=lowered)
    if seen is not None and text:
        seen[text] = Result(result.status, result.message, result.primitive, plan, text)
    return result
