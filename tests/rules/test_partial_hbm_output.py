"""PAL421: rows of a table that a kernel updates, and the caches of a pair."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_ROWS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(rows_ref, grad_ref, table_hbm, new_hbm, row, sem):
    {loop}
    def update({argument}):
        at = pl.ds(rows_ref[pl.program_id(0)], 1)
        pltpu.async_copy(table_hbm.at[{read}], row, sem).wait()
        row[...] -= grad_ref[...]
        pltpu.sync_copy(row, new_hbm.at[at])

def update(table, rows, grads):
    hbm, block = pl.BlockSpec(memory_space=pltpu.HBM), pl.BlockSpec((1, 1, 256), lambda i, rows: (i, 0, 0))
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=rows.shape,
            in_specs=[block, hbm],
            out_specs=hbm,
            scratch_shapes=[pltpu.VMEM((1, 1, 256), table.dtype), pltpu.SemaphoreType.DMA],
        ),
        out_shape=table{more},
    )(rows, grads, table)

update(jnp.ones(({rows}, 1, 256)), jnp.array([3, 1, 2, 0]), jnp.ones((4, 1, 256)))
"""


# With jax 0.12.0.1 the TPU interpreter returns NaN for the other rows.
@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({}, 1),
        ({"read": "pl.ds(rows_ref[pl.program_id(0)], 1)"}, 1),
        ({"more": ", input_output_aliases={2: 0}"}, 0),
        ({"rows": "4"}, 0),  # each may be written
        ({"read": "pl.ds(pl.program_id(0), 1)"}, 0),  # rows are sorted
        ({"read": "pl.ds(rows_ref[pl.program_id(0)] + 1, 1)"}, 0),
        ({"loop": "@pl.loop(0, 2)", "argument": "i"}, 1),
        ({"loop": "@pl.loop(0, 16)", "argument": "i"}, 0),
        ({"loop": "@pl.loop(0, rows_ref[0])", "argument": "i"}, 0),
    ],
)
def test_rows_of_an_input_that_are_updated(given: dict[str, str], count: int) -> None:
    plain = {"read": "at", "more": "", "rows": "64", "loop": "@pl.when(True)", "argument": ""}
    text = _ROWS.format(**plain | given)
    codes = [finding.code for finding in lint(text)]
    assert codes.count("PAL421") == count


_TWO_CACHES = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(slot_ref, new_ref, k_cache, v_cache, k_out, v_out):
    for out in (k_out, v_out):
        pltpu.sync_copy(new_ref, out.at[slot_ref[0]])

def write(slot, new, k, v):
    hbm, cache = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct(k.shape, k.dtype)
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM), hbm, hbm],
        out_specs=[hbm, hbm],
        out_shape=[cache, cache],
        input_output_aliases={aliases},
    )(slot, new, k, v)

{call}
"""


@pytest.mark.parametrize(
    ("aliases", "expected"), [("{2: 0}", ["v_out v_cache"]), ("{3: 1}", ["k_out k_cache"]), ("{2: 0, 3: 1}", [])]
)
def test_the_input_that_has_no_alias_yet(aliases: str, expected: list[str]) -> None:
    cache = "jnp.ones((16, 8, 128))"
    for call in ("", f"write(jnp.ones(1, int), jnp.ones((8, 128)), {cache}, {cache})"):
        found = lint(_TWO_CACHES.format(aliases=aliases, call=call), select="PAL421")
        assert [" ".join(finding.message.split("`")[1:4:2]) for finding in found] == expected
