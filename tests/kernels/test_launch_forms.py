"""The table of launch forms: a new form is one row, whatever it and its kernel are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.kernels.model.launch_forms import FOREIGN_WORDS, FORMS, LaunchForm
from pallas_lint.run.project import concerns_pallas
from pallas_lint.testing import lint
from tests.kernels.test_discovery import run

if TYPE_CHECKING:
    from collections.abc import Iterator

TILES = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def doubler(x_ref, o_ref):
    o_ref[...] = jnp.fft.fft(x_ref[...])

def run(x):
    tiled = pltpu.launch_tiles(
        doubler,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )
    return tiled(jnp.zeros((32, 128), jnp.float32))
"""


@pytest.fixture
def tiles() -> Iterator[LaunchForm]:
    """A form that no jax has, in the table for one test."""
    row = LaunchForm(
        "pallas_call", ("jax.experimental.pallas.tpu.launch_tiles",), ("body",), refs="blocks", backend="tpu"
    )
    kept = dict(vars(FORMS))
    vars(FORMS).clear()
    vars(FORMS)["rows"] = (*kept["rows"], row)
    yield row
    vars(FORMS).clear()
    vars(FORMS).update(kept)


def test_a_new_form_is_one_row(tiles: LaunchForm) -> None:
    (launch,) = run(TILES).launches
    assert launch.form is tiles
    assert launch.is_pallas
    assert launch.backend == "tpu"
    (trace,) = launch.traces
    assert [(ref.parameter, ref.role, ref.shape) for ref in trace.refs] == [
        ("x_ref", "in", (8, 128)),
        ("o_ref", "out", (8, 128)),
    ]
    assert [finding.code for finding in lint(TILES, select="PAL101")] == ["PAL101"]
    assert [finding.code for finding in lint(TILES, select="PAL302")] == ["PAL302"]


def test_without_its_row_nothing_is_launched() -> None:
    assert run(TILES).launches == []


@pytest.mark.parametrize(
    "spelled",
    ["pltpu.launch_tiles(kernel)", "launch_tiles(kernel, grid=2)", "partial(pltpu.launch_tiles, grid=2)"],
)
def test_its_name_is_looked_for_in_texts(tiles: LaunchForm, spelled: str) -> None:
    assert FORMS.launching.search(spelled)
    assert FORMS.preparing.search(spelled)
    assert FORMS.launched_in(spelled)


def test_the_private_module_of_core_map() -> None:
    code = """
import jax
import jax.numpy as jnp
from jax._src.pallas import core as pallas_core
from jax.experimental.pallas import tpu as pltpu

def run(x):
    given, made = jax.new_ref(x), jax.empty_ref(jax.ShapeDtypeStruct((8, 128), jnp.float32))

    @pallas_core.core_map(pltpu.create_tensorcore_mesh("core"))
    def kernel():
        made[...] = jnp.fft.fft(given[...])
"""
    assert [finding.code for finding in lint(code, select="PAL101")] == ["PAL101"]


def test_private_names_are_the_public_ones() -> None:
    code = """
import jax.numpy as jnp
from jax._src import api, lax, tree_util
from jax._src.pallas import core as pallas_core
from jax._src.pallas.pallas_call import pallas_call
from jax.experimental.pallas import tpu as pltpu

def launcher(body):
    @api.jit
    def run(*operands):
        @pallas_core.core_map(pltpu.create_tensorcore_mesh("core"))
        def _():
            return body(*tree_util.tree_map(lambda x: x, operands))
    return run

def kernel(x):
    x[...] = jnp.fft.fft(x[...])

def whole(x_ref, o_ref):
    o_ref[...] = jnp.fft.fft(x_ref[...])

def run(x):
    launcher(kernel)(x)
    return pallas_call(whole, out_shape=lax.full(x.shape, 0.0))(x)
"""
    assert [finding.code for finding in lint(code, select="PAL101")] == ["PAL101"] * 2


def test_a_name_belongs_to_one_row() -> None:
    names = [name for row in FORMS.rows for name in row.names]
    assert len(names) == len(set(names))


def test_files_with_launches_are_not_passed_over() -> None:
    """Texts are reported apart by words long before names are looked up."""
    for row in FORMS.rows:
        assert all(concerns_pallas(name.encode()) for name in row.names)
    assert all(concerns_pallas(word.encode()) for word in FOREIGN_WORDS)


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name}(" for row in FORMS.rows if row.pattern is None for name in row.last_parts),
        "pl.kernel(", "@pl.kernel,", "partial(kernel,", "f(mpmd_map)", "pl.run_scoped (", "pl.BlockSpec(", "GridSpec (",
    ],
)  # fmt: skip
def test_words_are_looked_for_before_the_pattern(text: str) -> None:
    assert FORMS.preparing.search(text)
    assert FORMS.may_prepare(text)
    assert not FORMS.may_prepare("call(BlockDim, grid)")
