"""PAL706: code that a known defect of the jax or libtpu in use makes wrong, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.compat.advisories import advisories, advisory
from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.finding import Severity
from pallas_lint.lint import lint_source
from pallas_lint.run.project import Project
from pallas_lint.testing import lint
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.finding import Finding

IMPORTS = """
    import functools
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import triton as plgpu
"""
SUM = """
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            o_ref[...] = x_ref[...]

    def run(x, bm=8, n=128):
        return pl.pallas_call(
            {kernel},
            grid=({grid},),
            in_specs=[pl.BlockSpec({block}, lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
            out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
            {more}
        )(x)
"""


def found(code: str, jax: str | None = "0.11.2") -> list[Finding]:
    return lint(IMPORTS + code, jax, select="PAL706")


def summed(
    kernel: str = "kernel", grid: str = "x.shape[0] // 8", block: str = "(8, 128)", more: str = "", jax: str = "0.11.2"
) -> list[Finding]:
    return found(SUM.format(kernel=kernel, grid=grid, block=block, more=more), jax)


@pytest.mark.parametrize(
    ("jax", "severity"),
    [
        ("0.10.2", None),
        ("0.11.0", Severity.WARNING),
        ("0.11.2", Severity.WARNING),
        ("0.12.0", None),
        (">=0.11,<0.11.2", Severity.WARNING),
        (">=0.10", Severity.INFO),  # some of them
    ],
)
def test_the_number_of_programs(jax: str, severity: Severity | None) -> None:
    assert [each.severity for each in summed(jax=jax)] == ([severity] if severity else [])


def test_an_unknown_version_is_not_reported() -> None:
    assert not found(SUM.format(kernel="kernel", grid="x.shape[0] // 8", block="(8, 128)", more=""), None)


@pytest.mark.parametrize(
    "options",
    [
        {"grid": "4"},  # one grid
        {"kernel": "functools.partial(kernel)"},  # another function at each launch
        {"kernel": "lambda x_ref, o_ref: kernel(x_ref, o_ref)"},
        {"grid": "n // bm", "block": "(bm, n)"},  # another grid has other blocks
        {"block": "x.shape"},
        {"block": "None"},
    ],
)
def test_grids_that_do_not_share_a_trace(options: dict[str, str]) -> None:
    assert not summed(**options)


def test_interpret_mode_has_it_too() -> None:
    assert summed(more="interpret=True")


def test_a_kernel_made_at_each_call() -> None:
    code = """
    def run(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * pl.num_programs(0)

        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        return pl.pallas_call(kernel, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=spec, out_shape=x)(x)
    """
    assert not found(code)


@pytest.mark.parametrize(("grids", "count"), [((2, 5), 1), ((4, 4), 0)])
def test_two_launches_of_one_kernel(grids: tuple[int, int], count: int) -> None:
    code = """
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * pl.num_programs(0)

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    """
    for name, size in zip(("one", "two"), grids, strict=True):
        code += f"""
    def {name}(x):
        shape = jax.ShapeDtypeStruct(({8 * size}, 128), jnp.float32)
        return pl.pallas_call(kernel, grid=({size},), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
    """
    assert len({each.span.start.line for each in found(code)}) == count


@pytest.mark.parametrize(
    ("name", "value", "jax", "flagged"),
    [
        ("plgpu.atomic_add", "jnp.ones((128,), jnp.int32)", "0.11.2", True),
        ("plgpu.atomic_add", "jnp.ones((128,), jnp.uint32)", "0.9.2", True),
        ("pl.atomic_add", "jnp.ones((128,), jnp.int32)", "0.6.2", True),
        ("plgpu.atomic_add", "jnp.ones((128,), jnp.int32)", "0.12.0", False),
        ("plgpu.atomic_add", "jnp.ones((128,), jnp.float32)", "0.11.2", False),
        ("plgpu.atomic_add", "jnp.int32(1)", "0.11.2", False),
        ("plgpu.atomic_add", "x_ref[...]", "0.11.2", False),  # of a dtype that nothing tells
        ("plgpu.atomic_max", "jnp.ones((128,), jnp.int32)", "0.11.2", True),
        ("plgpu.atomic_max", "jnp.ones((128,), jnp.int32)", "0.9.2", False),
        ("plgpu.atomic_max", "jnp.ones((128,), jnp.float32)", "0.11.2", False),
        ("plgpu.atomic_xchg", "jnp.ones((128,), jnp.int32)", "0.11.2", False),
    ],
)
def test_atomic_operations(name: str, value: str, jax: str, flagged: bool) -> None:
    code = f"""
    def kernel(x_ref, o_ref):
        {name}(o_ref, (jnp.arange(128),), {value})

    def run(x):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128,), x.dtype))(x)
    """
    assert bool(found(code, jax)) is flagged


COPY = """
ALIASES = {{}}

def kernel(source_hbm, other_hbm, out_hbm, staging):
    {}
    pltpu.sync_copy(staging, out_hbm)

def run(source):
    hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    return pl.pallas_call(
        kernel,
        in_specs=[hbm, hbm],
        out_specs=hbm,
        out_shape=jax.ShapeDtypeStruct((1, 256), jnp.float32),
        scratch_shapes=[pltpu.VMEM((1, 256), jnp.float32)],
        input_output_aliases=ALIASES,
    )(source, jnp.ones((16, 128), jnp.float32))
"""
PART, OTHER = "pltpu.sync_copy(source_hbm.at[pl.ds(0, 1), :], staging)", "pltpu.sync_copy(other_hbm.at[0], staging)"


@pytest.mark.parametrize(
    ("libtpu", "body", "flagged"),
    [
        ("0.0.43", PART, True),
        ("0.0.45.1", PART, True),
        ("0.0.42.1", PART, False),
        ("0.0.46", PART, False),
        (None, PART, False),
        ("nightly", PART, False),
        ("0.0.44", f"{PART}\n    {OTHER}", False),  # it is used
        ("0.0.44", "pltpu.sync_copy(source_hbm.at[0], out_hbm.at[0])", False),  # not to VMEM
        ("0.0.44", "pltpu.sync_copy(source_hbm, staging)", False),  # the whole operand is right
    ],
)
def test_an_operand_that_is_not_used(root: Path, libtpu: str | None, body: str, flagged: bool) -> None:
    lock = '[[package]]\nname = "jax"\nversion = "0.10.1"\n'
    if libtpu is not None:
        lock += f'\n[[package]]\nname = "libtpu"\nversion = "{libtpu}"\n'
    (root / "uv.lock").write_text(lock)
    header = "\n".join(line.strip() for line in IMPORTS.splitlines())
    settings = SettingsFinder(Overrides({"select": ["PAL706"]}), root).for_folder(root)
    text = header + COPY.format(body)
    result = lint_source(Source("k.py", text), settings, Project(root))
    assert bool(result.findings) is flagged, result.findings
    assert all(libtpu and libtpu in finding.message for finding in result.findings)
    aliased = text.replace("ALIASES = {}", "ALIASES = {1: 0}")  # used by way of the output
    assert not lint_source(Source("k.py", aliased), settings, Project(root)).findings


def test_advisories_are_complete() -> None:
    assert len({each.id for each in advisories()}) == len(advisories()) >= 5
    for each in advisories():
        assert advisory(each.id) is each
        assert each.package in ("jax", "libtpu")
        assert each.reports
        assert all(url.startswith("https://") for url in each.reports)
        assert not each.affects("no version")
        assert all(text and not text.endswith(".") for text in (each.code, each.effect, each.remedy, each.reproduced))
