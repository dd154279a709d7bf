"""What is known of a program's values, and what is assumed where they are not: turns of loops, pages of a cache."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from pallas_lint.probe import client
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """
import importlib, json, sys

sys.path[:0] = sys.argv[1:]
import main

main.load_package()
environment, known, ragged_attention, module, arguments, whole = (
    importlib.import_module(f"{main.WORKER}.{name}")
    for name in ("environment", "launches.known", "launches.ragged_attention", "stages.module", "inputs.arguments",
                 "stages.whole_function")
)
environment.set_variables()
environment.import_jax()

import jax
import numpy as np

sys.path.append(".")
import functions


def array(*shape, dtype="int32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def lists(values):
    return None if values is None else [None if value is None else value.tolist() for value in values]


loops = known.turns(jax.make_jaxpr(functions.loops)(np.ones(8), 3))
cache = array(4, 128, 2, 128, dtype="float32")
program = jax.make_jaxpr(functions.ragged_paged_attention)(
    array(2, 128, dtype="float32"), cache, array(2), array(4), array(3), array(3)
)
(call,) = program.eqns


def assumed(case, *integers):
    found = ragged_attention.assumed(call, call.params["jaxpr"], [None, None, *integers], case)
    return found and found[0]


def states(tokens):
    return array(tokens, 128, dtype="float32"), array(5), array(4), array(3), array(4, dtype="bool")


def of_other(function, *operands):
    # What is assumed of a call with types alone, in each case, and why.
    (call,) = jax.make_jaxpr(function)(*operands).eqns
    none = [None] * len(operands)
    cases = [ragged_attention.assumed(call, call.params["jaxpr"], none, case) for case in ("likely", "least", "most")]
    return [lists(values) for values, _ in cases], cases[0][1]


each = {"kind": "array", "shape": [2], "dtype": "int32"}
found = {case: assumed(case, None, None, None, None) for case in ("likely", "least", "most")}
print(json.dumps({
    "turns": {line: turns for (_, line), turns in loops.items()},
    **{case: lists(values) for case, values in found.items()},
    "known lengths": lists(assumed("likely", np.asarray([7, 9]), None, None, None)),
    "packed": of_other(functions.varlen_attention, array(8, 128, dtype="float32"), array(5), array(1)),
    "slices": of_other(
        functions.kv_cache_update, array(8, 2, 128), array(3, 4), array(64, 2, 128), array(1)
    ),
    "pages of two parts": of_other(
        functions.topk, array(2, 128), array(4, 64, 2, 128), array(2), array(4), array(3), array(3)
    ),
    "parameters": arguments.CallArguments(
        [{"kind": "list", "value": [each]}, each], {"kv_lens": each, "cu_q_lens": each}
    ).names(functions.topk),
    "flags": [module.laid_out(np.asarray([True, False, True]), layout)[:4]
              for layout in ("s32[3]{0:T(128)}", "pred[3]{0:T(512)(128)(4,1)}")],
    "decoding": of_other(functions.gated_delta_rule, *states(4)),
    "prefill": of_other(functions.gated_delta_rule, *states(8)),
    "indices": [*whole.assumed_indices(["s32[300]{0:T(128)}", "s32[]", "f32[300]{0}"], ["f32[64,8,1]{2,1,0}"])],
    "all known": assumed("likely", *found["likely"][2:]),
}))
"""
FUNCTIONS = """
import jax, jax.numpy as jnp, numpy as np

BEGINS = np.asarray([0, 3, 5, 9])


def loops(x, unknown):
    def of_one(at, x):
        begins = jnp.asarray(BEGINS)
        return jax.lax.fori_loop(begins[at], begins[at + 1], lambda _, x: x + 1, x)  # three, two and four times

    x = jax.lax.fori_loop(0, jnp.asarray(BEGINS)[1], of_one, x)  # three times
    return jax.lax.fori_loop(0, unknown, lambda _, x: x * 2, x)


@jax.jit
def ragged_paged_attention(queries, kv_cache, kv_lens, page_indices, cu_q_lens, distribution):
    return queries + kv_cache.sum() + kv_lens.sum() + page_indices.sum() + cu_q_lens.sum() + distribution.sum()


@jax.jit
def topk(q, cache_kv, seq_lens, page_indices, cu_q_lens, distribution):  # of no known name
    return ragged_paged_attention(q, cache_kv, seq_lens, page_indices, cu_q_lens, distribution)


@jax.jit
def varlen_attention(q, cu_seqlens, num_seqs):
    return q + cu_seqlens.sum() + num_seqs


@jax.jit
def kv_cache_update(new_kv, slices, kv_cache, num_slices):
    return kv_cache + new_kv.sum() + slices.sum() + num_slices


@jax.jit
def gated_delta_rule(mixed_qkv, query_start_loc, state_indices, distribution, has_initial_state):
    return mixed_qkv + (query_start_loc[1:] * state_indices * has_initial_state).sum() + distribution.sum()
"""


@pytest.mark.slow
def test_what_known_values_tell_and_what_is_assumed(tmp_path: Path) -> None:
    """Two sequences of two pages each, of 128 tokens; each has one new token."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    command = [python(), "-c", _SCRIPT, str(client.MAIN.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert not done.returncode, done.stderr
    reported = json.loads(done.stdout)
    lines = {text: str(at) for at, text in enumerate(FUNCTIONS.splitlines(), 1)}
    loops = [lines[text] for text in lines if text.endswith(" times")]
    assert reported["turns"] == dict.fromkeys(loops, 3.0) and len(loops) == 2
    decoding = [[0, 1, 2, 3], [0, 1, 2], [2, 2, 2]]
    assert reported["likely"] == reported["most"] == [None, None, [256, 256], *decoding]
    assert reported["least"] == [None, None, [1, 1], *decoding]
    assert reported["known lengths"] == [None, None, [7, 9], *decoding] and reported["all known"] is None
    assert reported["pages of two parts"][0][0] == [None, None, [256, 256], *decoding]
    assert reported["parameters"] == ["", "cache_kv", "kv_lens", "cu_q_lens"]
    assert reported["flags"] == [[1, 0, 1, 0]] * 2
    equal, one = [None, [0, 2, 4, 6, 8], [4]], [None, [0, 8, 8, 8, 8], [1]]
    assert reported["packed"][0] == [equal, equal, one] and "packed" in reported["packed"][1]
    each_two, of_one = ([[0, 2, 4, 6], [0, 2, 4, 6], lengths] for lengths in ([2, 2, 2, 2], [2, 0, 0, 0]))
    written, first = [None, each_two, None, [4]], [None, of_one, None, [1]]
    assert reported["slices"][0] == [written, first, written] and "slices" in reported["slices"][1]
    own = [[0, 1, 2, 3], [True] * 4]
    decoded, alone = ([None, begins, own[0], kinds, own[1]] for begins, kinds in (
        ([0, 1, 2, 3, 4], [4, 4, 4]), ([0, 1, 1, 1, 1], [1, 1, 1])
    ))  # fmt: skip
    assert reported["decoding"][0] == [decoded, alone, alone] and "state" in reported["decoding"][1]
    packed, of_all = ([None, begins, own[0], [0, 0, count], own[1]] for begins, count in (
        ([0, 2, 4, 6, 8], 4), ([0, 8, 8, 8, 8], 1)
    ))  # fmt: skip
    assert reported["prefill"][0] == [packed, of_all, of_all]
    distinct, alike = reported["indices"]  # within the shortest dimension
    assert distinct.keys() == alike.keys() == {"0"} and len(distinct["0"]) >= 300
    assert set(distinct["0"]) == set(range(8)) and set(alike["0"]) == {0}
