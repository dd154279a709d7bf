"""PAL307: index maps that count the blocks of a prefetched length, which may be 0."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(len_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run(lengths):
    def index_map(i, j, len_ref):
        return i, {index}, 0

    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4, 4),
            in_specs=[pl.BlockSpec((1, 256, 128), index_map)],
            out_specs=pl.BlockSpec((1, 256, 128), lambda i, j, n: (i, j, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((4, 1024, 128), jnp.float32),
    )(lengths, jnp.zeros((4, 1024, 128)))
"""


def found(index: str) -> list[str]:
    return [f.severity.name for f in lint(_MODULE.format(index=index), "0.12.0.1", "tpu", "PAL307")]


@pytest.mark.parametrize(
    "index",
    [
        "jnp.minimum(j, pl.cdiv(len_ref[i], 256) - 1)",
        "lax.min(j, len_ref[i] // 256 - 1)",
        "jnp.minimum(j, (len_ref[i] - 1) // 256)",
        "(len_ref[i] + 255) // 256 - 1",
    ],
)
def test_no_block_of_an_empty_sequence(index: str) -> None:
    assert found(index) == ["WARNING"]


@pytest.mark.parametrize(
    "index",
    [
        "jnp.maximum(jnp.minimum(j, pl.cdiv(len_ref[i], 256) - 1), 0)",
        "jnp.clip(len_ref[i] // 256 - 1, 0, 3)",
        "jnp.where(len_ref[i] > 0, pl.cdiv(len_ref[i], 256) - 1, 0)",
        "jnp.minimum(j, len_ref[i] // 256)",
        "lax.div(len_ref[i] - 1, 256)",
        "len_ref[i] - 1",
        "len_ref[i]",
    ],
)
def test_kept_in_range(index: str) -> None:
    assert found(index) == []


def test_the_place_where_it_becomes_negative() -> None:
    """A helper counts the blocks of several index maps: that is where it is put right."""
    helper = "\n\ndef last_block(length):\n    blocks = pl.cdiv(length, 256)\n    return blocks - 1\n"
    code = _MODULE.format(index="jnp.minimum(j, last_block(len_ref[i]))") + helper
    [finding] = lint(code, "0.12.0.1", "tpu", "PAL307")
    lines = code.splitlines()
    assert lines[finding.span.start.line - 1].strip() == "return blocks - 1"
    assert lines[finding.related[0].span.start.line - 1].strip().startswith("return i, jnp.minimum(")
