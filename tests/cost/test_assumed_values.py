"""What is known of a program's values, and what is assumed where they are not: turns of loops, pages of a cache."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_lint.probe.worker.launches import known, ragged_attention

pytestmark = pytest.mark.slow
jax = pytest.importorskip("jax")
np = pytest.importorskip("numpy")


def test_turns_that_known_values_tell() -> None:
    begins = np.asarray([0, 3, 5, 9])

    def function(x: Any, unknown: Any) -> Any:
        def of_one(at: Any, x: Any) -> Any:
            ends = jax.numpy.asarray(begins)
            return jax.lax.fori_loop(ends[at], ends[at + 1], lambda _, x: x + 1, x)  # inner

        x = jax.lax.fori_loop(0, jax.numpy.asarray(begins)[1], of_one, x)  # outer
        return jax.lax.fori_loop(0, unknown, lambda _, x: x * 2, x)

    program = jax.make_jaxpr(function)(np.ones(8), 3)
    first = function.__code__.co_firstlineno
    assert known.turns(program) == {(__file__, first + 3): 3.0, (__file__, first + 5): 3.0}, "of nine, three at a time"


@pytest.mark.parametrize(
    ("case", "lengths"), [("likely", [256, 256]), ("least", [1, 1]), ("most", [256, 256])]
)  # fmt: skip
def test_sequences_that_fill_their_pages(case: Any, lengths: list[int]) -> None:
    """Two of two pages each, of 128 tokens; each has one new token."""

    @jax.jit
    def ragged_paged_attention(q: Any, kv_cache: Any, kv_lens: Any, page_indices: Any, cu_q_lens: Any,
                               distribution: Any) -> Any:  # fmt: skip
        return q + kv_cache.sum() + kv_lens.sum() + page_indices.sum() + cu_q_lens.sum() + distribution.sum()

    def numbers(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, "int32")

    cache = jax.ShapeDtypeStruct((4, 128, 2, 128), "float32")
    program = jax.make_jaxpr(ragged_paged_attention)(
        jax.ShapeDtypeStruct((2, 128), "float32"), cache, numbers(2), numbers(4), numbers(3), numbers(3)
    )
    (call,) = program.eqns
    inner = call.params["jaxpr"]
    *_, found, pages, begins, kinds = ragged_attention.assumed(call, inner, [None] * 6, case) or []
    assert found.tolist() == lengths and pages.tolist() == [0, 1, 2, 3]
    assert begins.tolist() == [0, 1, 2] and kinds.tolist() == [2, 2, 2], "all sequences decode"
    given = [None, None, np.asarray([7, 9]), None, None, None]
    kept = ragged_attention.assumed(call, inner, given, case)
    assert kept is not None and kept[2] is given[2], "what is known stays"
    all_known = [None, None, np.asarray(lengths), pages, begins, kinds]
    assert ragged_attention.assumed(call, inner, all_known, case) is None
