"""PAL302: what its fix takes away."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import fixed, lint

LAUNCH = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(batch_ref, block_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]

def run(batch, block, x):
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda {}: ({}, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, *_: (i, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(batch, block, x)
"""


@pytest.mark.parametrize(
    ("parameters", "index", "left"),
    [
        ("i, layer, batch, block", "i", "i, layer, batch"),
        # The layer is what is not passed: without `block` at the end, `batch` would be the block.
        ("i, layer, batch, block", "batch[i]", "i, layer, batch, block"),
    ],
)
def test_parameters_are_taken_away_where_no_operand_is_read(parameters: str, index: str, left: str) -> None:
    code = LAUNCH.format(parameters, index)
    assert [finding.code for finding in lint(code, select="PAL302")] == ["PAL302"]
    assert f"lambda {left}: ({index}, 0)" in fixed(code, select="PAL302")


LAYOUT = """\
import jax
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def blocks({}):
    return i, 0

def run(x):
    spec = pl.BlockSpec((8, 128), blocks)
    return pl.pallas_call(kernel, grid=(4, 4), in_specs=[spec], out_shape=x)(x)
"""


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("i", "i, _"),
        ("i,", "i, _,"),
        ("\n    i,\n", "\n    i,\n    _,\n"),
        ("\n    i\n", "\n    i,\n    _\n"),
        ("i, j, k", "i, j"),
        ("\n    i,\n    j,\n    k,\n    l,\n", "\n    i,\n    j,\n"),
        ("i,\n           j,\n           k", "i,\n           j"),
        ("\n    i,\n    j,\n    k, l\n", "\n    i,\n    j\n"),
        # Comments may be about what would go.
        ("\n    i,  # rows\n", None),
        ("\n    i,\n    j,  # columns\n    k,\n", None),
    ],
)
def test_the_layout_of_the_parameters_is_kept(written: str, left: str | None) -> None:
    code = LAYOUT.format(written)
    (finding,) = lint(code, select="PAL302")
    if left is None:
        assert not finding.fixes
    else:
        assert LAYOUT.format(left).strip() == fixed(code, select="PAL302").strip()


def test_several_parameters_are_added_in_the_layout_of_those_there() -> None:
    code = LAYOUT.format("\n    i,\n    j,\n").replace("grid=(4, 4)", "grid=(4, 4, 4, 4)")
    assert "def blocks(\n    i,\n    j,\n    *_,\n):" in fixed(code, select="PAL302")


PIPELINE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def kernel(x_ref, o_ref):
    block = pl.BlockSpec((16, 128), lambda: (0, 0))
    pltpu.emit_pipeline(body, grid=({steps},), in_specs=[block], out_specs=[pl.BlockSpec((16, 128), lambda i: (0, 0))])(
        x_ref, o_ref
    )

def run(x):
    any_memory = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(kernel, in_specs=[any_memory], out_specs=any_memory, out_shape=x)(x)
"""


# Traced with jax 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1, of arrays of (16, 128).
@pytest.mark.parametrize(
    ("steps", "jax", "severity"),
    [
        (1, "0.10.2", Severity.WARNING),
        (1, "0.12.0.1", Severity.WARNING),
        (1, "0.9.2", Severity.ERROR),
        (2, "0.12.0.1", Severity.ERROR),
    ],
)
def test_pipelines_of_one_step_may_call_no_index_map(steps: int, jax: str, severity: Severity) -> None:
    found = lint(PIPELINE.format(steps=steps), jax, "tpu", "PAL302")
    assert [each.severity for each in found] == [severity]


_PREFETCH = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(rows_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]

def select({names}):
    {body}

def gather(rows, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[pl.BlockSpec((1, 128), select)],
        out_specs=pl.BlockSpec((1, 128), lambda i, _: (i, 0)),
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(rows, x)
"""


# `rows, i` was traced with jax 0.12.0.1, in another kernel: `IndexError: Too many indices`.
@pytest.mark.parametrize(
    ("names", "body", "wrong"),
    [
        ("rows, i", "return rows[i], 0", True),
        ("i, rows", "return rows[i], 0", False),
        ("*rows", "return rows[0], 0", False),
        ("i, rows", "i, rows = [rows[i]], i; return i[0], 0", False),
        ("i, *refs", "return refs[0][i], 0", False),
    ],
)
def test_a_grid_index_that_is_indexed(names: str, body: str, wrong: bool) -> None:
    found = lint(_PREFETCH.format(names=names, body=body), "0.12.0.1", "tpu", "PAL302")
    assert [each.severity for each in found] == [Severity.ERROR] * wrong


@pytest.mark.parametrize(
    ("first", "second", "flagged"),
    [
        ("i, batch, block: (batch[i], 0)", "i, block, batch: (block[i], 0)", True),
        ("i, batch, block: (batch[i], 0)", "i, block, batch: (i, 0)", False),  # neither is read
        ("i, batch, block: (batch[i], 0)", "i, batch, block: (block[i], 0)", False),
        ("i, batch, block: (batch[i], 0)", "i, rows, batch: (batch[i], 0)", False),  # other names: it may be meant
        ("i, batch, block: (batch[i], 0)", "i, *refs: (refs[0][i], 0)", False),
    ],
)
def test_prefetched_operands_in_another_order(first: str, second: str, flagged: bool) -> None:
    code = LAUNCH.replace("lambda {}: ({}, 0)", f"lambda {first}").replace("lambda i, *_: (i, 0)", f"lambda {second}")
    found = lint(code, target="tpu", select="PAL302")
    assert [finding.severity for finding in found] == ([Severity.WARNING] if flagged else [])
