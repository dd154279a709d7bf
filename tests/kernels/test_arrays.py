"""Inferred shapes and dtypes against `jax.eval_shape`: what is inferred is never wrong."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from pallas_lint.kernels.library.arrays import infer
from pallas_lint.kernels.model.dtypes import from_name
from pallas_lint.kernels.model.values import Array, Const, DType, Seq, Value
from tests.rules.interpreted import ENVIRONMENT, python

F32, BF16, F16 = ("float32", (16, 128)), ("bfloat16", (16, 128)), ("float16", (16, 128))
I32, I8, BOOL = ("int32", (16, 128)), ("int8", (16, 128)), ("bool", (16, 128))
U8, U32 = ("uint8", (16, 128)), ("uint32", (16, 128))
SQUARE, CUBE = ("bfloat16", (128, 128)), ("float32", (2, 16, 128))
COLUMN, ROW = ("float32", (16, 1)), ("float32", (1, 128))
VECTOR, COMPLEX = ("float32", (128,)), ("complex64", (16, 128))

# name, arguments (a pair is an array), keywords ("dtype:x" is a dtype)
CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((f"jax.numpy.{name}", [a, b], {}) for name in ("add", "multiply", "remainder", "maximum", "power")
      for a, b in ((F32, 2), (I8, 2), (I8, 2.5), (BF16, 2.5), (I32, F32), (BF16, F32), (I8, U8), (I32, U32),
                   (BOOL, 2), (F16, BF16), (F32, ROW), (COLUMN, ROW))),
    *(("jax.numpy.true_divide", [a, b], {}) for a, b in ((I32, 2), (BF16, 2), (I8, I8), (F32, COLUMN))),
    *((f"jax.numpy.{name}", [a], {}) for name in ("exp", "sqrt", "negative", "abs", "floor", "square", "sign")
      for a in (F32, BF16, I32)),
    *((f"jax.{module}.{name}", [a], {}) for module in ("numpy", "lax") for name in ("real", "imag", "abs")
      for a in (COMPLEX, F32, I32) if module == "numpy" or name == "abs" or a == COMPLEX),
    *((f"jax.numpy.{name}", [a], {}) for name in ("isfinite", "isnan", "logical_not") for a in (F32, I32)),
    *((f"jax.numpy.{name}", [a, 0], {}) for name in ("equal", "less") for a in (F32, BF16)),
    *((f"jax.numpy.{name}", [a], k) for name in ("sum", "max", "mean", "prod", "all", "argmax")
      for a in (F32, BF16, I8, U8, I32, BOOL) for k in ({}, {"axis": 1}, {"axis": -1, "keepdims": True})
      if (name, a) not in (("max", BOOL),)),
    *((f"jax.numpy.{name}", [a], {"axis": 0}) for name in ("cumsum", "cumprod") for a in (F32, I8, BOOL)),
    ("jax.numpy.where", [BOOL, F32, 0.0], {}),
    ("jax.numpy.where", [BOOL, BF16, F32], {}),
    ("jax.numpy.where", [BOOL, I8, 1.5], {}),
    ("jax.numpy.where", [BOOL, 1.0, 0.0], {}),
    ("jax.numpy.reshape", [F32, [128, 16]], {}),
    ("jax.numpy.reshape", [F32, [-1]], {}),
    ("jax.numpy.reshape", [F32, -1], {}),
    ("jax.numpy.reshape", [F32, [2, -1, 128]], {}),
    ("jax.numpy.ravel", [F32], {}),
    ("jax.numpy.expand_dims", [F32, 1], {}),
    ("jax.numpy.expand_dims", [F32, -1], {}),
    ("jax.numpy.expand_dims", [F32, [0, 3]], {}),
    ("jax.numpy.squeeze", [COLUMN], {}),
    ("jax.numpy.squeeze", [COLUMN, 1], {}),
    ("jax.numpy.squeeze", [COLUMN], {"axis": -1}),
    ("jax.lax.squeeze", [COLUMN, [1]], {}),
    ("jax.lax.expand_dims", [VECTOR, [0]], {}),
    ("jax.lax.reshape", [F32, [128, 16]], {}),
    ("jax.numpy.transpose", [CUBE], {}),
    ("jax.numpy.transpose", [CUBE, [1, 0, 2]], {}),
    ("jax.numpy.swapaxes", [CUBE, 0, -1], {}),
    ("jax.numpy.broadcast_to", [ROW, [16, 128]], {}),
    ("jax.numpy.concatenate", [[F32, F32]], {"axis": 1}),
    ("jax.numpy.concatenate", [[F32, BF16]], {"axis": 0}),
    ("jax.numpy.stack", [[F32, F32]], {"axis": 1}),
    ("jax.numpy.zeros_like", [I8], {}),
    ("jax.numpy.zeros_like", [I8], {"dtype": "dtype:float32"}),
    ("jax.numpy.full_like", [BF16, 1.0], {}),
    ("jax.numpy.zeros", [[8, 128]], {}),
    ("jax.numpy.full", [[8, 128], 2], {}),
    ("jax.numpy.full", [[8, 128], 2.5], {"dtype": "dtype:bfloat16"}),
    ("jax.numpy.arange", [128], {}),
    ("jax.numpy.arange", [4, 128], {}),
    ("jax.numpy.arange", [0.0, 8], {}),
    ("jax.numpy.tile", [F32, [2, 1]], {}),
    ("jax.numpy.clip", [BF16, 0.0, 1.0], {}),
    ("jax.numpy.clip", [I32, 0.0, 1.5], {}),
    ("jax.numpy.dot", [SQUARE, SQUARE], {}),
    ("jax.numpy.dot", [SQUARE, SQUARE], {"preferred_element_type": "dtype:float32"}),
    ("jax.numpy.dot", [F32, ("float32", (128,))], {}),
    ("jax.numpy.dot", [BF16, ("float32", (128, 64))], {}),
    ("jax.numpy.matmul", [I8, ("int8", (128, 64))], {}),
    ("jax.numpy.matmul", [CUBE, ("float32", (2, 128, 64))], {}),
    ("jax.numpy.einsum", ["ij,kj->ik", BF16, SQUARE], {}),
    ("jax.numpy.einsum", ["bij,bjk->bik", CUBE, ("float32", (2, 128, 8))], {"preferred_element_type": "dtype:float32"}),
    ("jax.numpy.tensordot", [BF16, SQUARE, 1], {}),
    ("jax.numpy.inner", [BF16, SQUARE], {}),
    ("jax.lax.dot", [BF16, SQUARE], {"preferred_element_type": "dtype:float32"}),
    ("jax.lax.dot_general", [BF16, SQUARE, [[[1], [1]], [[], []]]], {}),
    ("jax.lax.dot_general", [BF16, SQUARE, [[[1], [0]], [[], []]], None, "dtype:float32"], {}),
    ("jax.lax.broadcasted_iota", ["dtype:int32", [16, 128], 1], {}),
    ("jax.lax.rem", [I32, I32], {}),
    ("jax.lax.select", [BOOL, BF16, BF16], {}),
    ("jax.lax.max", [I8, I8], {}),
    ("jax.nn.silu", [BF16], {}),
    ("jax.nn.softmax", [BF16], {}),
    ("jax.nn.one_hot", [("int32", (16,)), 8], {}),
]  # fmt: skip

_RUNNER = """
import functools, json, sys
import jax, jax.numpy as jnp
def value(v):
    if isinstance(v, str) and v.startswith("dtype:"): return getattr(jnp, v[6:])
    return tuple(map(value, v)) if isinstance(v, list) else v
def is_array(v): return isinstance(v, list) and len(v) == 2 and isinstance(v[0], str)
def build(v, found):
    if is_array(v):
        found.append(jax.ShapeDtypeStruct(tuple(v[1]), getattr(jnp, v[0] if v[0] != "bool" else "bool_")))
        at = len(found) - 1
        return lambda arrays: arrays[at]
    if isinstance(v, list) and any(is_array(item) for item in v):
        parts = [build(item, found) for item in v]
        return lambda arrays: [part(arrays) for part in parts]
    fixed = value(v)
    return lambda arrays: fixed
results = []
for name, args, keywords in json.load(sys.stdin):
    function = functools.reduce(getattr, name.split(".")[1:], jax)
    found = []
    parts = [build(arg, found) for arg in args]
    named = {key: value(item) for key, item in keywords.items()}
    try:
        out = jax.eval_shape(lambda *arrays: function(*[part(arrays) for part in parts], **named), *found)
        results.append([list(out.shape), str(out.dtype)])
    except Exception as error:
        results.append([None, f"{type(error).__name__}: {error}"[:200]])
print(json.dumps(results))
"""


def _is_array(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def _abstract(value: Any) -> Value:
    if _is_array(value):
        return Array(value[1], from_name(value[0]))
    if isinstance(value, list):
        return Seq(tuple(_abstract(item) for item in value))
    if isinstance(value, str) and value.startswith("dtype:"):
        return DType(from_name(value[6:]))
    return Const(value)


def inferred(case: tuple[str, list[Any], dict[str, Any]]) -> Array:
    name, args, keywords = case
    result = infer(name, [_abstract(arg) for arg in args], {key: _abstract(v) for key, v in keywords.items()})
    assert isinstance(result, Array)
    return result


@pytest.mark.slow
def test_nothing_inferred_is_wrong() -> None:
    done = subprocess.run(
        [python(), "-c", _RUNNER],
        input=json.dumps(CASES),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    wrong = []
    for case, (shape, dtype) in zip(CASES, json.loads(done.stdout), strict=True):
        result = inferred(case)
        if shape is None:
            wrong.append((case, "jax refuses it", dtype))
            continue
        if result.dtype is not None and result.dtype != from_name(dtype):
            wrong.append((case, result.dtype, dtype))
        if result.shape is not None and (
            len(result.shape) != len(shape)
            or any(isinstance(a, int) and a != b for a, b in zip(result.shape, shape, strict=True))
        ):
            wrong.append((case, result.shape, shape))
    assert not wrong, "\n".join(map(str, wrong))


def test_what_rules_need_is_known() -> None:
    def known(name: str, *args: Any, **keywords: Any) -> tuple[object, object]:
        result = inferred((name, list(args), keywords))
        return result.shape, result.dtype

    assert known("jax.numpy.reshape", F32, [128, 16]) == ((128, 16), "f32")
    assert known("jax.numpy.ravel", F32) == ((2048,), "f32")
    assert known("jax.numpy.remainder", BF16, 2) == ((16, 128), "bf16")
    assert known("jax.numpy.tensordot", BF16, SQUARE, 1)[1] == "bf16"
    assert known("jax.lax.dot_general", BF16, SQUARE, [[[1], [0]], [[], []]], None, "dtype:float32")[1] == "f32"
    assert known("jax.lax.dot", BF16, SQUARE, None, "dtype:float32")[1] == "f32"
