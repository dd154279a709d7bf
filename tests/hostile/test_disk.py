"""Where nothing can be written: every file stays whole, and one line says which could not be written."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

NEW = ("--isolated", "--jax-version", "0.10.2")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--output-format", "json", "--output-file", "old"), "--output-file: old"),
        (("--output-format", "json", "--output-file", "new"), "--output-file: new"),
        (("--report", "sarif=old"), "--report: old"),
        (("--report", "junit=new"), "--report: new"),
        (("--fix",), "kernel.py: error: cannot write the fixed file"),
        (("--add-suppressions",), "kernel.py: error: cannot write"),
        (("--write-baseline", "--baseline", "new"), "new: error: cannot write the baseline"),
    ],
)
def test_what_cannot_be_written_stays_as_it_was(tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    """A file of more than no bytes is refused by the system, as on a full disk."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "kernel.py").write_text(attack.KERNEL)
    (project / "old").write_text("kept")
    before = {file.name: file.read_bytes() for file in project.iterdir()}
    command = [attack.PROGRAM, *NEW, *options, "kernel.py"]
    limited = ["/bin/sh", "-c", 'ulimit -f 0 && exec "$@"', "sh", *command]
    done = subprocess.run(limited, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert named in done.stderr and "internal error" not in done.stderr
    assert {file.name: file.read_bytes() for file in project.iterdir()} == before
