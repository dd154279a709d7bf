"""Known defects of the versions that the probe ran with, whatever the project's files name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.probe.known_defects import known_defects
from pallas_lint.probe.reconcile import reconciled
from pallas_lint.probe.results import LaunchResult, ProbeResult
from pallas_lint.report.lines import Lines

if TYPE_CHECKING:
    from pathlib import Path

COPIED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_hbm, unused_hbm, o_ref, part, sem):
    copy = pltpu.make_async_copy(x_hbm.at[pl.ds(0, 8)], part, sem)
    copy.start()
    copy.wait()
    o_ref[...] = part[...]

def copied(x, y):
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x, y)
"""


def probed(folder: Path, jax: str, libtpu: str | None, kernel: str = "kernel") -> ProbeResult:
    place = {"file": str(folder / "k.py"), "line": 15}
    facts: Any = {"kernel": kernel, "place": place, "kernel_place": None, "backend": "tpu"}
    return ProbeResult(None, [LaunchResult(facts)], {"jax": jax, "libtpu": libtpu})


@pytest.mark.parametrize(
    ("jax", "libtpu", "kernel", "found"),
    [
        ("0.12.0.1", "0.0.44", "kernel", ["PAL706"]),
        ("0.12.0.1", "0.0.50.1", "kernel", []),
        ("0.12.0.1", None, "kernel", []),
        ("0.12.0.1", "/lib/libtpu.so", "kernel", []),
        ("0.12.0.1", "0.0.44", "another", []),
        ("0.99.0", "0.0.44", "kernel", ["PAL706"]),
    ],
)
def test_the_interpreter_of_the_probe_counts(
    tmp_path: Path, jax: str, libtpu: str | None, kernel: str, found: list[str]
) -> None:
    """The lock file beside it names a libtpu that has the defect."""
    (tmp_path / "k.py").write_text(COPIED)
    (tmp_path / "requirements.txt").write_text("jax==0.10.2\nlibtpu==0.0.44\n")
    result = probed(tmp_path, jax, libtpu, kernel)
    findings = known_defects([result, result], Lines(tmp_path))
    assert [each.code for each in findings] == found
    assert all(each.origin == "probe" and "libtpu 0.0.44" in each.message for each in findings)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert known_defects([probed(tmp_path, "0.12.0.1", "0.0.44")], Lines(tmp_path)) == []


def test_what_the_files_of_the_project_name_does_not_count_beside_it(tmp_path: Path) -> None:
    span = Span("k.py", Position(8, 5), Position(8, 20))
    static = Finding("PAL706", "known-defect", Severity.WARNING, "old libtpu", span, "", "kernel", "tpu")
    launches = probed(tmp_path, "0.12.0.1", "0.0.50.1").launches
    assert reconciled([static], [], launches) == []
    assert reconciled([static], [], probed(tmp_path, "0.12.0.1", None, "another").launches) == [static]
