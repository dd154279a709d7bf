"""Runs launches under the jax of the interpreter that runs this file. Reads jobs as JSON, writes one result a line.

Started by `launched.py`; imports nothing of the linter, and works with every jax from 0.4.35.
"""

from __future__ import annotations

import ast
import json
import sys
import types
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "measure"))

import numpy as np
import targets  # sets the environment before jax starts

# isort: split
import jax
import jax.numpy as jnp

DTYPES = {
    "f32": "float32", "bf16": "bfloat16", "f16": "float16", "i32": "int32", "u32": "uint32", "i16": "int16",
    "i8": "int8", "u8": "uint8", "b1": "bool",
}  # fmt: skip
LARGEST = 4  # integers among the operands stay below: they may be indices


def operand(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    """Random values: normal floats, small integers."""
    if dtype == "bool":
        return jnp.asarray(random.integers(0, 2, shape), bool)
    if jnp.issubdtype(getattr(jnp, dtype), jnp.integer):
        return jnp.asarray(random.integers(0, LARGEST, shape), getattr(jnp, dtype))
    return jnp.asarray(random.standard_normal(shape), getattr(jnp, dtype))


def launched(code: str, call: str) -> tuple[Any, list[tuple[str, tuple[int, ...]]]]:
    """A function of the operands alone, and their dtypes and shapes: `f(f32(8, 128), rows=8)` has one."""
    module = sys.modules["example"] = types.ModuleType("example")  # dataclasses look their module up
    scope = vars(module)
    exec(compile(code, "example.py", "exec"), scope)
    expression = ast.parse(call, mode="eval").body
    assert isinstance(expression, ast.Call)
    operands: list[tuple[str, tuple[int, ...]]] = []

    def placed(node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DTYPES:
            shape = tuple(ast.literal_eval(size) for size in node.args)
            at = len(operands)
            operands.append((DTYPES[node.func.id], shape))
            return lambda values: values[at]
        value = eval(compile(ast.Expression(node), "example.py", "eval"), scope)
        return lambda values: value

    function = eval(compile(ast.Expression(expression.func), "example.py", "eval"), scope)
    positional = [placed(node) for node in expression.args]
    named = {str(keyword.arg): placed(keyword.value) for keyword in expression.keywords}

    def run(*values: Any) -> Any:
        return function(*(get(values) for get in positional), **{name: get(values) for name, get in named.items()})

    return run, operands


def interpreted(kind: str) -> Any:
    """What `interpret=` takes for the interpreter of this kind: "plain", or "tpu" where this jax has one."""
    if kind == "plain":
        return True
    params = getattr(targets.tpu, "InterpretParams", None) or getattr(targets.tpu, "TPUInterpretParams", None)
    if params is None:
        raise NotImplementedError("this jax has no interpreter for TPU")
    return params()


def force_interpret(kind: str) -> None:
    """Every pallas_call from here on is interpreted, whatever it says."""
    real, how = targets.pl.pallas_call, interpreted(kind)

    def call(*args: Any, **keywords: Any) -> Any:
        return real(*args, **{**keywords, "interpret": how})

    targets.pl.pallas_call = call


def lowered(job: dict[str, Any]) -> Any:
    """The launch lowered, and compiled where the job reports it, for its target."""
    backend, _, device = job["target"].replace("-", "_").partition(":")
    platform, kind, abstract = targets.BACKENDS["triton_rocm" if device == "rocm" else backend]
    run, operands = launched(job["code"], job["call"])
    sharding = None
    if backend == "tpu":
        kind = targets.TPU_DEVICES[device or "v5e"][1]
        if job["stage"] == "compile":
            sharding = jax.sharding.SingleDeviceSharding(targets.tpu_topology(device or "v5e"))
    arguments = [
        jax.ShapeDtypeStruct(shape, getattr(jnp, dtype), **({"sharding": sharding} if sharding else {}))
        for dtype, shape in operands
    ]
    options = {"in_shardings": sharding, "out_shardings": sharding} if sharding else {}
    with targets.device_context(kind, abstract, 1 if backend == "tpu" else None):
        result = jax.jit(run, **options).trace(*arguments).lower(lowering_platforms=(platform,))
    return result.compile() if job["stage"] == "compile" else result


def outcome(job: dict[str, Any]) -> dict[str, Any]:
    """The error of the job's stage, or None; what came out, where something ran."""
    real = targets.pl.pallas_call
    try:
        if job["stage"] in ("lowering", "compile"):
            lowered(job)
            return {"error": None}
        if job["stage"] == "run":
            force_interpret(job.get("interpreter", "plain"))
        run, operands = launched(job["code"], job["call"])
        if job["stage"] == "trace":
            jax.eval_shape(run, *(jax.ShapeDtypeStruct(shape, getattr(jnp, dtype)) for dtype, shape in operands))
            return {"error": None}
        random = np.random.default_rng(job.get("seed", 0))
        found = jax.tree.leaves(run(*(operand(dtype, shape, random) for dtype, shape in operands)))
        return {
            "error": None,
            "outputs": [[str(value.dtype), list(value.shape), np.asarray(value).tobytes().hex()] for value in found],
            "floats": [np.asarray(value, np.float64).ravel().tolist() for value in found] if job.get("floats") else [],
        }
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:600]}
    finally:
        targets.pl.pallas_call = real


def main() -> None:
    for job in json.load(sys.stdin):
        result = outcome(job)
        print(json.dumps({"name": job["name"], **result}), flush=True)


if __name__ == "__main__":
    main()
