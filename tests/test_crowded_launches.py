"""Launches that more calls lead to than are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.launches.launching import MAX_LAUNCHES
from pallas_lint.run.project import InputFile
from pallas_lint.run.runner import run
from pallas_lint.testing import settings

if TYPE_CHECKING:
    from pathlib import Path

LAUNCHER = """\
import jax
from jax.experimental import pallas as pl


def launch(kernel, x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
KERNELS = "\n".join(
    f"""
def kernel_{i}(x_ref, o_ref):
    o_ref[...] = x_ref[...] + {i}


def add_{i}(x):
    return launch(kernel_{i}, x)
"""
    for i in range(MAX_LAUNCHES + 4)
)


def test_the_launch_is_noted_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\n')
    (tmp_path / "one.py").write_text(LAUNCHER + KERNELS)
    (tmp_path / "two.py").write_text(f"from jax.experimental import pallas as pl\nfrom one import launch\n{KERNELS}")
    chosen = settings("0.12.0.1", "tpu", "PAL001")
    files = [InputFile(tmp_path / name, name, chosen) for name in ("one.py", "two.py")]
    found = [(each.span.path, each.severity.name, each.span.start.line) for each in run(files, cwd=tmp_path).findings]
    assert found == [("one.py", "INFO", 6)]
