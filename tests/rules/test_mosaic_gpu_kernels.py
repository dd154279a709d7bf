"""Mosaic GPU kernels, each run or lowered with jax 0.11.2: what fails there is found, what works is not."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu


def kernel({refs}):
{body}


def run(x):
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct({out}, jnp.float32),
        {launch}
    )(x)


run(jnp.{operand})
"""
_ROWS = 'grid=(pl.cdiv(x.shape[0], 64),), grid_names=("row",),'
_WARPGROUPS = 'num_threads=2, thread_name="wg",'
_STORE = "o_gmem[rows] = x_gmem[rows] * 2"


def found(
    body: str,
    select: str,
    *,
    refs: str = "x_gmem, o_gmem",
    launch: str = _ROWS,
    out: str = "x.shape",
    operand: str = "ones((160, 128))",
    jax: str = "0.11.2",
) -> list[str]:
    """The findings of one rule, as "SEVERITY message"."""
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    source = _MODULE.format(body=body, refs=refs, launch=launch, out=out, operand=operand)
    return [f"{each.severity.name} {each.message}" for each in lint(source, jax, "mosaic-gpu:sm90", select)]


def check(messages: list[str], start: str | None) -> None:
    """One finding or more that start so, or none at all."""
    if start is None:
        assert not messages
    else:
        assert messages
        assert all(message.startswith(start) for message in messages)


# -- axes of the launch --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (_STORE, "ERROR on row 2 of 3 the slice ends at 192, but dimension 0 of"),
        (f"@pl.when(lax.axis_index('row') < 2)\ndef _():\n    {_STORE}", None),
        ("plgpu.copy_gmem_to_smem(x_gmem.at[rows], o_gmem.at[rows], None)", None),  # leaves out what is past the end
    ],
)
def test_rows_past_the_end(body: str, start: str | None) -> None:
    rows = 'rows = pl.ds(lax.axis_index("row") * 64, 64)\n'
    check(found(rows + body, "PAL412"), start)


@pytest.mark.parametrize(
    ("launch", "start"),
    [
        (_ROWS, None),
        (_ROWS.replace("64", "128"), "WARNING the whole grid (row: 1) writes a part of output `o_gmem` only"),
        ('grid=(n,), grid_names=("row",),', None),
    ],
)
def test_rows_that_no_block_writes(launch: str, start: str | None) -> None:
    body = f'rows = pl.ds(lax.axis_index("row") * 64, 64)\n{_STORE}'
    check(found(body, "PAL308", launch=launch, operand="ones((128, 128))"), start)


def test_rows_of_warpgroups() -> None:
    body = f'rows = pl.ds((lax.axis_index("row") * 2 + lax.axis_index("wg")) * 64, 64)\n{_STORE}'
    both = 'grid=(2,), grid_names=("row",), ' + _WARPGROUPS
    for rule in ("PAL308", "PAL412"):
        assert not found(body, rule, launch=both, operand="ones((256, 128))")
    overlapping = body.replace("* 64, 64", "* 32, 64")
    check(found(overlapping, "PAL308", launch=both, operand="ones((256, 128))"), "WARNING the whole grid (row: 2, wg:")


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("row", None),
        ("rows", 'ERROR no axis "rows" here: the launch has "row"'),
        ("x", None),  # of a mesh around it, which may stand in another file
    ],
)
def test_names_of_axes(name: str, start: str | None) -> None:
    body = f'rows = pl.ds(lax.axis_index("{name}") * 64, 64)\n{_STORE}'
    check(found(body, "PAL504", operand="ones((128, 128))"), start)


# -- warpgroups, barriers and semaphores ---------------------------------------------------------------------------

_COPY = """
    wg = lax.axis_index("wg")
    plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(wg * 64, 64)], x_smem.at[wg], arrived)
    plgpu.barrier_wait(arrived)
    o_gmem[pl.ds(wg * 64, 64)] = x_smem[wg]
"""


@pytest.mark.parametrize(
    ("barrier", "start"),
    [
        ("", "WARNING this copy of each of the 2 warpgroups arrives at `arrived` before a wait, which ends after 1"),
        ("num_arrivals=2", None),
        ("num_arrivals=3", "ERROR this wait never ends"),
    ],
)
def test_a_copy_of_each_warpgroup(barrier: str, start: str | None) -> None:
    launch = f"{_WARPGROUPS} scratch_types=[plgpu.SMEM((2, 64, 128), jnp.float32), plgpu.Barrier({barrier})],"
    refs = "x_gmem, o_gmem, x_smem, arrived"
    check(found(_COPY, "PAL415", refs=refs, launch=launch, operand="ones((128, 128))"), start)


def test_a_copy_under_a_condition() -> None:
    body = """
        @pl.when(lax.axis_index("row") > 0)
        def _():
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], x_smem, arrived)

        plgpu.barrier_wait(arrived)
    """
    launch = f"{_ROWS} scratch_types=[plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()],"
    refs = "x_gmem, o_gmem, x_smem, arrived"
    check(found(body, "PAL415", refs=refs, launch=launch), "WARNING waits always, but the copy is started only under")


def test_a_copy_of_one_warpgroup() -> None:
    body = """
        @pl.when(lax.axis_index("wg") == 0)
        def _():
            plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)

        plgpu.barrier_wait(arrived)
        o_gmem[...] = x_smem[...]
    """
    launch = f"{_WARPGROUPS} scratch_types=[plgpu.SMEM((128, 128), jnp.float32), plgpu.Barrier()],"
    refs = "x_gmem, o_gmem, x_smem, arrived"
    assert not found(body, "PAL415", refs=refs, launch=launch, operand="ones((128, 128))")


@pytest.mark.parametrize(
    ("signal", "start"),
    [("", "ERROR this wait never ends: nothing signals `ready`"), ("pl.semaphore_signal(ready, 1)", None)],
)
def test_a_semaphore(signal: str, start: str | None) -> None:
    body = f"{signal}\npl.semaphore_wait(ready, 1)\no_gmem[...] = x_gmem[...]"
    launch = "scratch_types=[plgpu.SemaphoreType.REGULAR],"
    check(found(body, "PAL415", refs="x_gmem, o_gmem, ready", launch=launch), start)


def test_a_copy_that_the_kernel_does_not_wait_for() -> None:
    body = "o_smem[...] = x_gmem[...]\nplgpu.commit_smem()\nplgpu.copy_smem_to_gmem(o_smem, o_gmem)"
    launch = "scratch_types=[plgpu.SMEM((160, 128), jnp.float32)],"
    start = "WARNING nothing waits for this copy"  # 8,192 blocks were right
    check(found(body, "PAL415", refs="x_gmem, o_gmem, o_smem", launch=launch), start)


@pytest.mark.parametrize(("number", "start"), [("240", None), ("100", "ERROR `set_max_registers` of 100")])
def test_registers(number: str, start: str | None) -> None:
    check(found(f"plgpu.set_max_registers({number}, action='increase')", "PAL315", launch=_WARPGROUPS), start)


# -- functions and memory of TPUs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "scratch", "start"),
    [
        ("pltpu.roll(x_gmem[...], 1, 1)", "", "ERROR `pltpu.roll` is for TPU: it does not lower for Mosaic GPU"),
        ("x_gmem[...]", "pltpu.VMEM((8, 128), jnp.float32)", "ERROR `pltpu.VMEM` is for TPU"),
        ("x_gmem[...]", "plgpu.SMEM((8, 128), jnp.float32)", None),
        ("(pltpu.roll(x_gmem[...], 1, 1) if ON_TPU else x_gmem[...])", "", None),
    ],
)
def test_names_of_tpus(value: str, scratch: str, start: str | None) -> None:
    body, launch = f"o_gmem[...] = {value}", f"scratch_types=[{scratch}],"
    check(found(body, "PAL112", refs="x_gmem, o_gmem, *scratch", launch=launch), start)


# -- arrays --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "flagged"),
    [
        ("100, 100", True),
        ("3, 32", True),
        ("1, 1", True),
        ("100,", True),
        ("32, 100", False),
        ("64, 4", False),
        ("128,", False),
        ("64,", False),  # a row of a product's result
    ],
)
@pytest.mark.parametrize("jax", ["0.10.2", "0.11.2", "0.12.0.1"])
def test_numbers_of_elements(shape: str, flagged: bool, jax: str) -> None:
    messages = found("o_gmem[...] = x_gmem[...] * 2", "PAL113", launch="", operand=f"ones(({shape}))", jax=jax)
    check(messages, "ERROR an array of " if flagged else None)


@pytest.mark.parametrize(
    ("jax", "start"),
    [
        ("0.10.2", "ERROR an array of bool in GMEM, `x_gmem`, does not lower"),
        ("0.11.2", "ERROR the load of `x_gmem` reads a bit for each element"),
        ("0.12.0.1", "WARNING the load of `x_gmem` reads a bit for each element"),
    ],
)
def test_bool_in_gmem(jax: str, start: str) -> None:
    body, operand = "o_gmem[...] = jnp.where({}, 1.0, 2.0)", "ones((128, 128), {})"
    check(found(body.format("x_gmem[...]"), "PAL113", launch="", operand=operand.format("jnp.bool_"), jax=jax), start)
    bytes_ = found(body.format("x_gmem[...] != 0"), "PAL113", launch="", operand=operand.format("jnp.int8"), jax=jax)
    assert not bytes_


@pytest.mark.parametrize(
    ("index", "dtype", "start"),
    [
        (":, pl.ds(3, 64)", "float32", "ERROR copy that starts at element 3 of rows in GMEM, 12 bytes"),
        (":, pl.ds(4, 64)", "float32", None),
        (":, pl.ds(4, 64)", "bfloat16", "ERROR copy that starts at element 4 of rows in GMEM, 8 bytes"),
        (":, pl.ds(8, 64)", "bfloat16", None),
        (":, pl.ds(lax.axis_index('n') * 4, 64)", "bfloat16", "ERROR copy that starts at element 4 of rows in GMEM"),
        (":, pl.ds(lax.axis_index('n') * 8, 64)", "bfloat16", None),
        ("pl.ds(0, 128), pl.ds(64, 64)", "bool_", "ERROR copy of bool"),
    ],
)
def test_starts_of_copies(index: str, dtype: str, start: str | None) -> None:
    body = f"plgpu.copy_gmem_to_smem(x_gmem.at[{index}], x_smem, arrived)\nplgpu.barrier_wait(arrived)"
    axes = 'grid=(2,), grid_names=("n",),'
    launch = f"{axes} scratch_types=[plgpu.SMEM((128, 64), jnp.{dtype}), plgpu.Barrier()],"
    refs, operand = "x_gmem, o_gmem, x_smem, arrived", f"ones((128, 128), jnp.{dtype})"
    check(found(body, "PAL216", refs=refs, launch=launch, operand=operand), start)


def test_rows_of_copies_start_anywhere() -> None:
    body = "plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(3, 64)], x_smem, arrived)\nplgpu.barrier_wait(arrived)"
    launch = "scratch_types=[plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()],"
    assert not found(body, "PAL216", refs="x_gmem, o_gmem, x_smem, arrived", launch=launch)


@pytest.mark.parametrize(
    ("axis", "cluster", "start"),
    [
        ("pair", 'cluster=(2,), cluster_names=("pair",),', None),
        ("c", 'cluster=(2,), cluster_names=("pair",),', 'ERROR `collective_axes="c"`, but the cluster of the launch'),
        ("c", "", 'ERROR `collective_axes="c"`, but the launch has no cluster'),
    ],
)
def test_blocks_that_share_a_copy(axis: str, cluster: str, start: str | None) -> None:
    body = f'plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived, collective_axes="{axis}")\nplgpu.barrier_wait(arrived)'
    scratch = "scratch_types=[plgpu.SMEM((160, 128), jnp.float32), plgpu.Barrier()],"
    check(found(body, "PAL216", refs="x_gmem, o_gmem, x_smem, arrived", launch=cluster + scratch), start)
