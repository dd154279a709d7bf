"""Shapes, dtypes and weak types inferred in a kernel against those that a real jax traces there.

Every expression stands in one kernel; what is inferred may be unknown, but never wrong. The same holds of the kinds
that are inferred where nothing tells the dtypes of the refs, whatever these are. Measured with jax 0.4.35, 0.7.2,
0.10.2 and 0.12.0.1.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess

import pytest

from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.kernels.model.dtypes import canonical, from_name, operand_element
from pallas_lint.kernels.model.kinds import ANY, kinds_of
from pallas_lint.kernels.model.trace import Access
from pallas_lint.kernels.model.values import Array, Const, Ref, Value
from pallas_lint.text.source import Source
from tests.kernels.expressions import EXPRESSIONS, PREPARATION, REFS
from tests.rules.interpreted import ENVIRONMENT, python

_PRELUDE = """\
import functools
import math
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

"""
_RUNNER = """
import json, sys
prelude, refs, preparation, expressions = json.load(sys.stdin)
scope = {}
exec(prelude, scope)
jax, jnp, pl = scope["jax"], scope["jnp"], scope["pl"]
found = []
def kernel(*kernel_refs):
    names = dict(scope)
    names.update(zip([f"{name}_ref" for name in refs], kernel_refs))
    exec(preparation, names)
    for expression in expressions:
        try:
            value = eval(expression, names)
            weak = bool(getattr(value, "weak_type", getattr(getattr(value, "aval", None), "weak_type", False)))
            if isinstance(value, (bool, int, float, complex)):
                found.append([[], str(jnp.asarray(value).dtype), not isinstance(value, bool)])
            else:
                found.append([list(value.shape), str(value.dtype), weak])
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}"[:200])
operands = [jax.ShapeDtypeStruct(tuple(shape), getattr(jnp, dtype)) for shape, dtype in refs.values()]
out = jax.ShapeDtypeStruct((16, 128), jnp.float32)
try:
    jax.eval_shape(lambda *args: pl.pallas_call(kernel, out_shape=out, grid=(2,))(*args), *operands)
except ValueError:  # some of the expressions are constants, which a kernel must not capture: all were traced
    assert len(found) == len(expressions)
print(json.dumps(found))
"""


def inferred(expressions: list[str], *, known_dtypes: bool = True) -> list[Value]:
    """The abstract value of each expression, in a kernel that stores one after the other.

    `known_dtypes`: whether the dtypes of the refs are known.
    """
    structs = "\n".join(
        f"    {name} = jnp.zeros({tuple(shape)}, {f'jnp.{dtype}' if known_dtypes else f'dtypes[{name!r}]'})"
        for name, (shape, dtype) in REFS.items()
    )
    body = [*PREPARATION.splitlines(), *(f"o_ref[...] = {expression}" for expression in expressions)]
    code = (
        f"{_PRELUDE}\ndef kernel({', '.join(f'{name}_ref' for name in REFS)}, o_ref):\n    "
        + "\n    ".join(body)
        + f"\n\n\ndef run({'' if known_dtypes else 'dtypes'}):\n{structs}\n"
        + "    return pl.pallas_call(kernel, grid=(2,), out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32))"
        + f"({', '.join(REFS)})\n"
    )
    events = analyse(ModuleGraph().add(Source("example.py", code), None), ("0.10.2",)).traces[-1].events
    return [e.value for e in events if isinstance(e, Access) and e.kind == "store" and e.ref.parameter == "o_ref"]


def real(expressions: list[str], refs: dict[str, tuple[tuple[int, ...], str]] = REFS) -> list[list[object] | str]:
    """(shape, dtype, weak) of each expression as jax traces it, or the error."""
    done = subprocess.run(
        [python(), "-c", _RUNNER],
        input=json.dumps([_PRELUDE, refs, PREPARATION, expressions]),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result: list[list[object] | str] = json.loads(done.stdout)
    return result


def compare(expressions: list[str]) -> tuple[list[str], list[str], list[str]]:
    """What is inferred wrongly, what only in part, and what jax itself refuses."""
    wrong, unknown, refused = [], [], []
    for expression, ours, theirs in zip(expressions, inferred(expressions), real(expressions), strict=True):
        if isinstance(theirs, str):
            refused.append(f"{expression}: {theirs}")
            continue
        shape, dtype, weak = theirs
        assert isinstance(shape, list)
        known = isinstance(ours, Array | Ref) and ours.shape is not None and None not in ours.shape
        our_shape = ours.shape if isinstance(ours, Array | Ref) else () if isinstance(ours, Const) else None
        our_dtype, our_weak = operand_element(ours)
        our_dtype, weak = canonical(our_dtype), weak and dtype != "bool"
        what = f"{expression}: {our_dtype}{our_shape}{' weak' if our_weak else ''}, not {dtype}{shape} weak={weak}"
        fits = our_shape is None or (
            len(our_shape) == len(shape) and all(a in (None, b) for a, b in zip(our_shape, shape, strict=True))
        )
        if not fits or (isinstance(our_dtype, str) and (our_dtype, our_weak) != (from_name(str(dtype)), weak)):
            wrong.append(what)
        elif not isinstance(our_dtype, str) or not (known or isinstance(ours, Const)):
            unknown.append(what)
    return wrong, unknown, refused


@pytest.mark.slow
def test_inferred_as_traced() -> None:
    wrong, unknown, refused = compare(EXPRESSIONS)
    assert wrong == []
    assert len(refused) <= 12, refused  # what only some releases of jax have
    judged = len(EXPRESSIONS) - len(refused)
    assert judged >= 1000
    assert (judged - len(unknown)) / judged >= 0.98, unknown


# Refs of other dtypes than `REFS` says; what jax refuses then is not judged.
_DTYPES: dict[str, dict[str, str]] = {
    "as written": {},
    "integers": {"float32": "int32", "bfloat16": "int8", "float16": "uint16", "float8_e4m3fn": "uint32"},
    "floats": {"int32": "float32", "int8": "bfloat16", "uint8": "float16", "uint32": "float32", "int16": "bfloat16"},
    "booleans": dict.fromkeys(("float32", "bfloat16", "int8", "uint8", "uint32"), "bool_"),
    "complex": dict.fromkeys(("float32", "bfloat16", "int8"), "complex64"),
}


def _composed(seed: int, count: int) -> list[str]:
    """Expressions of `f` in which other expressions stand for it."""
    draw = random.Random(seed)
    outer = [expression for expression in EXPRESSIONS if re.search(r"\bf\b", expression)]
    return [re.sub(r"\bf\b", f"({draw.choice(EXPRESSIONS)})", draw.choice(outer)) for _ in range(count)]


@pytest.mark.nightly
@pytest.mark.parametrize("dtypes", _DTYPES)
def test_kinds_inferred_as_traced(dtypes: str) -> None:
    """Nothing tells the dtypes of the refs: the kind of what is traced is among those inferred."""
    refs = {name: (shape, _DTYPES[dtypes].get(dtype, dtype)) for name, (shape, dtype) in REFS.items()}
    wrong, known = [], 0
    expressions = [*EXPRESSIONS, *_composed(len(dtypes), 1000)]
    values = inferred(expressions, known_dtypes=False)
    for expression, ours, theirs in zip(expressions, values, real(expressions, refs), strict=True):
        if isinstance(theirs, str):
            continue
        dtype, (element, _) = from_name(str(theirs[1])), operand_element(ours)
        known += kinds_of(element) != ANY
        inferred_dtype = canonical(element)
        if (
            inferred_dtype != dtype
            if isinstance(inferred_dtype, str)
            else not kinds_of(dtype) <= kinds_of(inferred_dtype)
        ):
            wrong.append(f"{expression}: {inferred_dtype}, not {dtype}")
    assert wrong == []
    assert known >= len(expressions) // 8
