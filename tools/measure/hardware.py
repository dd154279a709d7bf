"""Run every case on the GPU that is here and compare with the same function outside the kernel.

`hardware.py --backend triton --out FILE --workers 12`: starts that many processes over parts of the cases,
and restarts what dies or hangs. Lowering can succeed where compiling fails or the numbers are wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cuda,cpu"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

SILENT = 40.0  # seconds after which a worker counts as hung
TOLERANCE = {"f32": 2e-3, "bf16": 4e-2, "f16": 6e-3}


def inputs(case: Any, random: np.random.Generator) -> list[Any]:
    """Values for the operands: numbers of either sign, indices in range."""
    import kernels

    values = []
    for letter, operand in zip(case.recipe.operands, case.operands()):
        shape, dtype = operand.shape, operand.dtype
        if letter == "s":
            values.append(np.int32(0))
        elif letter in "ijq":
            values.append(random.integers(0, kernels.TILE[0], shape).astype(np.int32))
        elif dtype == np.bool_:
            values.append(random.integers(0, 2, shape).astype(np.bool_))
        elif np.issubdtype(dtype, np.unsignedinteger):
            values.append(random.integers(1, 200, shape).astype(dtype))
        elif np.issubdtype(dtype, np.integer):
            numbers = random.integers(1, 100, shape) * random.choice([-1, 1], shape)
            values.append(numbers.astype(dtype))
        else:
            values.append((random.standard_normal(shape) * 2).astype(dtype))
    return values


def expected(plan: str, reference: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """What the output block should hold when the result is stored this way."""
    value = np.asarray(reference)
    if plan == "total" and value.ndim:
        value = np.asarray(value, np.float64 if value.dtype.kind not in "biu" else np.int64).sum()
    if value.dtype == np.bool_:
        value = value.astype(np.int32)
    return np.broadcast_to(value, shape).astype(dtype)


def compare(got: np.ndarray, expected_values: np.ndarray, tolerance: float) -> str:
    """Empty when alike; else how many differ and one of them."""
    if got.dtype.kind in "biu":
        wrong = got != expected_values
    else:
        got, expected_values = got.astype(np.float64), expected_values.astype(np.float64)
        both = np.isnan(got) & np.isnan(expected_values)
        with np.errstate(invalid="ignore"):
            close = np.abs(got - expected_values) <= tolerance * (1 + np.abs(expected_values))
        wrong = ~(both | close | (got == expected_values))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, at {at} {got[at]} instead of {expected_values[at]}"


def examine(case: Any, goal: Any) -> dict[str, Any]:
    """Lower, compile, run, compare: one row."""
    import jax
    import kernels

    recipe = case.recipe
    row: dict[str, Any] = {"f": recipe.function, "v": recipe.variant, "d": case.dtype}
    outside = case.outside()
    if isinstance(outside, str):
        return {**row, "s": outside}
    outputs, names = outside
    row["p"] = sorted(names)
    result = kernels.lower(case, goal, outputs)
    row[goal.backend] = [result.status, result.message, result.primitive, result.plan, ""]
    if result.status != kernels.OK:
        return row
    if set(recipe.operands) & set("k") or recipe.function in kernels.KERNEL_ONLY:
        return row
    traced = case.trace(goal.backend, result.plan, outputs)
    try:
        compiled = traced.lower().compile()
    except Exception as error:
        row["r"] = [kernels.COMPILE, kernels.message(error), None]
        return row
    values = inputs(case, np.random.default_rng(0))
    stored = []
    for letter, value in zip(recipe.operands, values):
        if letter == "s":
            continue
        if letter == "c":
            value = np.asarray(value).reshape(1, 1)
        stored.append(value.astype(np.int32) if value.dtype == np.bool_ else value)
    try:
        got = jax.device_get(compiled(*stored))
    except Exception as error:
        row["r"] = [kernels.COMPILE, kernels.message(error), None]
        return row
    reference = jax.device_get(jax.jit(recipe.call)(*[jax.numpy.asarray(value) for value in values]))
    leaves = [leaf for leaf in jax.tree_util.tree_leaves(reference) if hasattr(leaf, "shape")]
    for one, leaf in zip(jax.tree_util.tree_leaves(got), leaves):
        one = np.asarray(one)
        expected_values = expected(result.plan, leaf, one.shape, one.dtype)
        if result.plan == "row":
            one, expected_values = one[:1], expected_values[:1]
        difference = compare(
            one, expected_values, TOLERANCE.get(case.dtype, 1e-3) * (20 if result.plan == "total" else 1)
        )
        if difference:
            row["r"] = ["w", difference, None]
            return row
    row["r"] = [kernels.OK, "", None]
    return row


def work(options: argparse.Namespace) -> None:
    """One worker: its share of the cases, behind those that are in its file already."""
    import functions
    import jax
    import kernels
    import recipes

    begun, done = None, set()
    for row in functions.read(options.out):
        if "begun" in row:
            begun = tuple(row["begun"])
        else:
            done.add((row["f"], row["v"], row["d"]))
            begun = None
    write = partial(functions.write, options.out.open("a"))
    if begun is not None:
        death = [kernels.ABORT, "the process died or hung", None]
        key = dict(zip("fvd", begun))
        write({**key, options.backend: [kernels.ABORT, death[1], None, "", ""], "r": death})
        done.add(begun)
    goal = kernels.Target.of(options.backend)
    part, parts = (int(number) for number in options.part.split("/"))
    for number, recipe in enumerate(recipes.everything({}, kernels.aval)):
        if number % parts != part or (recipe.backends and options.backend not in recipe.backends):
            continue
        if options.backend == "mosaic_gpu" and set(recipe.operands) & set("cqw"):
            continue  # its copies take no block of less than 16 bytes
        if options.only and recipe.function not in options.only.split(","):
            continue
        for dtype in kernels.wanted_dtypes(recipe):
            if options.dtypes and dtype not in options.dtypes.split(","):
                continue
            key = (recipe.function, recipe.variant, dtype)
            if key in done:
                continue
            write({"begun": key})
            try:
                with functions.limit(options.limit):
                    row = examine(kernels.Case(recipe, dtype), goal)
            except kernels.Deadline:
                row = {**dict(zip("fvd", key)), options.backend: [kernels.TIMEOUT, "no answer", None, "", ""]}
            except Exception as error:
                row = {**dict(zip("fvd", key)), "s": kernels.SKIPPED, "error": kernels.message(error)}
            write(row)
            if "CUDA_ERROR" in json.dumps(row):
                os._exit(3)  # the context is broken: a new process goes on
        if number % 200 == 0:
            jax.clear_caches()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("triton", "mosaic_gpu"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--part", help="for the workers themselves: which part of how many")
    parser.add_argument("--dtypes", default="", help="only these")
    parser.add_argument("--only", default="", help="only these functions, by their whole names")
    parser.add_argument("--limit", type=float, default=12.0)
    parser.add_argument("--seconds", type=float, default=420.0, help="stop after so long")
    options = parser.parse_args()
    if options.part:
        work(options)
        return
    started = time.time()
    running: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}

    def start(part: int) -> None:
        path = options.out.with_suffix(f".{part}")
        command = [sys.executable, __file__, "--backend", options.backend, "--out", str(path)]
        command += ["--part", f"{part}/{options.workers}", "--limit", str(options.limit)]
        command += ["--dtypes", options.dtypes, "--only", options.only]
        running[part] = (subprocess.Popen(command, stderr=subprocess.DEVNULL), path)

    for part in range(options.workers):
        start(part)
    while running and time.time() - started < options.seconds:
        time.sleep(1)
        for part, (process, path) in list(running.items()):
            code = process.poll()
            if code is None and path.exists() and time.time() - path.stat().st_mtime > SILENT:
                process.kill()
                code = process.wait()
            if code == 0:
                del running[part]
            elif code is not None:
                start(part)
    for process, _ in running.values():
        process.kill()
    with options.out.open("w") as sink:
        for part in range(options.workers):
            path = options.out.with_suffix(f".{part}")
            if path.exists():
                sink.writelines(line for line in path.open() if '"begun"' not in line)
                path.unlink()
    print(options.backend, "unfinished parts", len(running), "seconds", round(time.time() - started))


if __name__ == "__main__":
    main()
