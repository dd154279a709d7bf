"""Measure single operations in the running interpreter, by dtype: `operations.py --out FILE DEVICE ...`.

For a TPU they are compiled. For `triton` and `mosaic_gpu` they are lowered, and with JAX_PLATFORMS=cuda compiled and
run on the GPU that is here. On Mosaic GPU they do not lower where neither semantics takes the dtype, whatever the
layout.

Casts between all dtypes, and shifts, arithmetic, remainders and reductions of narrow ones, which the vector unit may
lack. Each operation stands alone between a load and a store. Comparisons are those of 8-bit floats: whether masks of
other dtypes can be used depends on what they select. Of rare floats only loads and stores are measured, on TPUs.
One JSON line a case, [operation, dtype, device, outcome], so that a compiler that aborts the process loses nothing: a
child does the work, and its successor goes on behind it. Outcomes are "ok", "lower", "compile", "abort", "wrong"
(other numbers than outside a kernel) and "lowers" (no compiler was run); "copy" is the case in which blocks of the
dtype are only copied.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import targets  # first: it sets the environment that jax reads

# isort: split
import jax
import jax.numpy as jnp
import numpy
from jax import lax

SHAPE = (64, 256)
_RUNS = os.environ["JAX_PLATFORMS"] == "cuda"
DTYPES = {
    "f32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "i4": "int4",
    "u4": "uint4",
    "f8_e4m3fn": "float8_e4m3fn",
    "f8_e5m2": "float8_e5m2",
    "bool": "bool_",
}
RARE = {  # only copied
    "f8_e4m3": "float8_e4m3",
    "f8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e3m4": "float8_e3m4",
    "f8_e8m0fnu": "float8_e8m0fnu",
    "f4_e2m1fn": "float4_e2m1fn",
}
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "copy": lambda x, y: x,
    "shift_left": lambda x, y: lax.shift_left(x, y),
    "shift_right": lambda x, y: x >> y,
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "max": lambda x, y: jnp.maximum(x, y),
    "and": lambda x, y: x & y,
    "rem": lambda x, y: lax.rem(x, y),
    "div": lambda x, y: lax.div(x, y),
    "mod": lambda x, y: x % y,
    "floor_divide": lambda x, y: x // y,
    "compare": lambda x, y: jnp.where(x > y, 1.0, 2.0),
    "equal": lambda x, y: jnp.where(x == y, 1.0, 2.0),
    "barrier": lambda x, y: lax.optimization_barrier(x),
    "abs": lambda x, y: jnp.abs(x),
    "neg": lambda x, y: -x,
    "sum": lambda x, y: jnp.zeros(SHAPE) + jnp.sum(x, axis=1, keepdims=True).astype(jnp.float32),
    "reduce_max": lambda x, y: jnp.zeros(SHAPE) + jnp.max(x, axis=1, keepdims=True).astype(jnp.float32),
    "reduce_min": lambda x, y: jnp.zeros(SHAPE) + jnp.min(x, axis=1, keepdims=True).astype(jnp.float32),
}
_OF_INTEGERS = ("shift_left", "shift_right", "and", "rem", "div", "mod", "floor_divide")
_INTO_FLOAT32 = ("compare", "equal", "sum", "reduce_max", "reduce_min")
_8_BIT_FLOATS = ("f8_e4m3fn", "f8_e5m2")
# What other dtypes do there on TPUs depends on the axis, or is measured with the functions.
_OF_SOME = {
    **dict.fromkeys(("compare", "equal"), _8_BIT_FLOATS),
    "sum": (*_8_BIT_FLOATS, "u16", "u8", "i4", "u4"),
    **dict.fromkeys(("reduce_max", "reduce_min"), (*_8_BIT_FLOATS, "i16", "u16", "u8", "i4", "u4")),
}
GPUS = {"mosaic_gpu": ("mosaic_gpu_lane", "mosaic_gpu"), "triton": ("triton",)}  # and the backends to be tried
_NARROW = ("i8", "u8", "i4", "u4", *_8_BIT_FLOATS)  # the functions are measured for 16 and 32 bits
# What Mosaic GPU refuses by the dtype alone.
_REFUSED = re.compile(
    r"Pointwise operations on \d-bit types are unsupported|Hardware has no support for converting"
    r"|Unsupported conversion involving narrow float types|Conversion between float types of width other than 16"
    r"|Register bitwidth in target type must be divisible by 8"  # casts to bool; with 8 in a register they are wrong
)


def cases(device: str) -> Iterator[tuple[str, str]]:
    """(operation, dtype); a cast is "cast:" and the dtype of its result."""
    on_gpu = device in GPUS
    for dtype in DTYPES:
        integer = dtype[0] in "iu"
        for name in OPERATIONS:
            of_some = _NARROW if on_gpu else _OF_SOME.get(name, DTYPES)
            if name == "barrier":
                of_some = DTYPES if device == "mosaic_gpu" else ()  # elsewhere the dtype does not matter
            if name == "copy" or (dtype in of_some and dtype != "bool" and (integer or name not in _OF_INTEGERS)):
                yield name, dtype
    for dtype in RARE if not on_gpu else ():
        yield "copy", dtype
    for dtype in DTYPES:
        for result in DTYPES:
            if result != dtype and not (on_gpu and {dtype, result}.isdisjoint((*_NARROW, "bool"))):
                yield f"cast:{result}", dtype


def outcome(operation: str, dtype: str, device: str) -> str:
    """How a kernel of the one operation ends."""
    given = getattr(jnp, {**DTYPES, **RARE}[dtype], None)
    into = getattr(jnp, DTYPES.get("f32" if operation in _INTO_FLOAT32 else operation.partition(":")[2], ""), given)
    if given is None or into is None:
        return "absent"
    compute = OPERATIONS.get(operation, lambda x, y: x.astype(into))

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = compute(x_ref[...], y_ref[...])

    result = jax.ShapeDtypeStruct(SHAPE, into)
    if device in GPUS:
        return _on_gpu(device, kernel, compute, given, result)
    operand = jax.ShapeDtypeStruct(SHAPE, given, sharding=_sharding(device))
    try:
        with targets.device_context(targets.TPU_DEVICES[device][1], "tpu"):  # signs are lowered for a generation
            lowered = jax.jit(targets.pallas_call(kernel, result, "tpu")).lower(operand, operand)
    except Exception:
        return "lower"
    try:
        lowered.compile()
    except Exception:
        return "compile"
    return "ok"


@functools.cache
def _sharding(device: str) -> Any:
    return jax.sharding.SingleDeviceSharding(targets.tpu_topology(device))


def _on_gpu(device: str, kernel: Callable[..., None], compute: Callable[..., Any], given: Any, result: Any) -> str:
    operand = jax.ShapeDtypeStruct(SHAPE, given)
    for backend in GPUS[device]:
        platform, kind, plain = targets.BACKENDS[backend]
        try:
            call = jax.jit(targets.pallas_call(kernel, (result,), backend))
            with contextlib.nullcontext() if _RUNS else targets.device_context(kind, plain):
                call.trace(operand, operand).lower(lowering_platforms=(platform,))
        except Exception as error:
            if device == "triton" or _REFUSED.search(str(error)):
                continue
            return "lowers"  # it may depend on the layout
        return _run(call, compute, given) if _RUNS else "lowers"
    return "lower"


def _run(call: Callable[..., Any], compute: Callable[..., Any], given: Any) -> str:
    """Small numbers, so that no sum overflows, and no shift is as wide as the dtype."""
    random = numpy.random.default_rng(0)
    signed = jnp.issubdtype(given, jnp.floating) or jnp.issubdtype(given, jnp.signedinteger)
    x = jnp.asarray(random.integers(-2 if signed else 0, 3, SHAPE)).astype(given)
    y = jnp.asarray(random.integers(0, 3, SHAPE)).astype(given)
    try:
        compiled = call.lower(x, y).compile()
    except Exception:
        return "compile"
    (found,) = compiled(x, y)
    expected = jax.jit(compute)(x, y)
    return "ok" if (found.astype(jnp.float32) == expected.astype(jnp.float32)).all() else "wrong"


def work(todo: list[tuple[str, str, str]], sink: Any) -> None:
    """Measure until the process dies or all is done; what is begun is written first."""
    for operation, dtype, device in todo:
        sink.write(json.dumps([operation, dtype, device, "abort"]) + "\n")
        sink.flush()
        sink.write(json.dumps([operation, dtype, device, outcome(operation, dtype, device)]) + "\n")
        sink.flush()


def read(path: Path) -> dict[tuple[str, str, str], str]:
    """The last outcome of each case; one that was begun and not ended is "abort"."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")] if path.exists() else []
    return {(operation, dtype, device): found for operation, dtype, device, found in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("devices", nargs="+", choices=(*targets.TPU_DEVICES, *GPUS))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="operations, with commas; `copy` belongs to each")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else None
    wanted = [
        (operation, dtype, device)
        for device in options.devices
        for operation, dtype in cases(device)
        if only is None or operation in (*only, "copy")
    ]
    while todo := [case for case in wanted if case not in read(options.out)]:
        child = os.fork()
        if child == 0:
            with options.out.open("a") as sink:
                work(todo, sink)
            os._exit(0)
        os.waitpid(child, 0)
    print(jax.__version__, len(wanted), "cases", file=sys.stderr)


if __name__ == "__main__":
    main()
