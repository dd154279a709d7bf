"""Findings where several targets are judged: each names the devices for which it holds."""

from __future__ import annotations

from pathlib import Path

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.lint import lint_source
from pallas_lint.run.project import Project
from pallas_lint.text.source import Source

CODE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref, s_ref):
    s_ref[0:8, 0:128] = x_ref[...]
    o_ref[...] = jnp.sort(s_ref[0:8, 0:128])


def run(x):
    scratch = [pltpu.VMEM((ROWS, 1024), jnp.float32)]
    params = pltpu.CompilerParams(vmem_limit_bytes=100 * 2**20)
    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    return pl.pallas_call(kernel, out_shape=shape, scratch_shapes=scratch, compiler_params=params)(x)


run(jnp.zeros((8, 128)))
"""


def found(rows: int, *targets: str) -> dict[tuple[str, str], str | None]:
    """The devices of each finding, by code and severity."""
    overrides = Overrides(
        {"select": ["PAL101", "PAL213"], "jax-version": "0.12.0.1", "target": [*targets]}, isolated=True
    )
    settings = SettingsFinder(overrides, Path("/nonexistent")).for_folder(Path("/nonexistent"))
    source = Source("example.py", CODE.replace("ROWS", str(rows)))
    result = lint_source(source, settings, Project(Path("/nonexistent")))
    return {(each.code, each.severity.value): each.device for each in result.findings}


def test_a_finding_names_the_devices_for_which_it_holds() -> None:
    every = found(16384, "tpu:v5e", "tpu:tpu7x", "tpu:v4")
    assert every == {
        ("PAL101", "error"): "tpu7x, v4, v5e", ("PAL213", "error"): "tpu7x, v4", ("PAL213", "info"): "tpu7x, v4",
    }  # fmt: skip


def test_nothing_of_a_single_target_is_lost_beside_others() -> None:
    targets = ("tpu:v5e", "tpu:tpu7x", "tpu:v4", "tpu:v6e")
    for rows in (1024, 8192, 16384, 32768):
        together = found(rows, *targets)
        for target in targets:
            for finding in found(rows, target):
                assert target.removeprefix("tpu:") in (together[finding] or "").split(", ")
