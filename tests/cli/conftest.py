"""A folder to run the command line in, and the run."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from invocation import KERNEL, Ran

from pallas_lint.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, an empty cache, and an environment that is silent about jax or colours."""
    place = Path(os.path.realpath(tmp_path))
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("user-cache")))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return place


@pytest.fixture
def kernel_file(folder: Path) -> Path:
    """The kernel with one finding, in `folder`."""
    file = folder / "kernel.py"
    file.write_text(KERNEL)
    return file


@pytest.fixture
def lint(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Runs the command line in `folder`."""

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsysbinary.readouterr()
        status = main(list(arguments))
        out, err = capsysbinary.readouterr()
        return Ran(status, out.decode(), err.decode())

    return run
