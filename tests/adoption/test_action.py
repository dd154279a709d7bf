"""The action for GitHub: its steps are run as the runner runs those of a composite action."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from action import run_action

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # it installs
KERNEL = """\
from jax.experimental.pallas import tpu as pltpu

params = pltpu.TPUCompilerParams()
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner's folder: what the action installs lies there after the first run."""
    return tmp_path_factory.mktemp("runner")


def test_the_checkout_is_data(tmp_path: Path, runner: Path) -> None:
    assert not (runner / "pallas-lint").exists(), "the first run installs, among the files of the checkout"
    project, ran = tmp_path / "project", tmp_path / "ran"
    project.mkdir()
    for name in ("venv", "pip", "ensurepip", "json", "pallas_lint", "attrs", "sitecustomize", "setup", "setuptools"):
        (project / f"{name}.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    # Settings of what installs: an index, a folder for packages and an interpreter that are the checkout's.
    for name in ("pip.conf", "pip.ini", ".config/pip/pip.conf"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("[global]\nno-index = true\n[install]\ntarget = planted\n")
    (project / "setup.cfg").write_text("[install]\nprefix = planted\n[easy_install]\nindex_url = /nowhere\n")
    (project / "pyvenv.cfg").write_text("home = planted\n")
    (project / "pyproject.toml").write_text('[build-system]\nrequires = []\nbackend-path = ["."]\n')
    for name in ("python3", "bash"):
        (project / name).write_text(f"#!/bin/sh\n: >{ran}\n")
        (project / name).chmod(0o755)
    for name in ("a", "made1", "made2"):
        (project / f"{name}.py").write_text(KERNEL)
    (project / "--fix").write_text("x = 1\n")
    # A pattern in args is the linter's, not the shell's; one in paths is the shell's.
    args = "--isolated --jax-version 0.10.2 --force-exclude --exclude made*"
    options = {"python": sys.executable, "args": args, "sarif_file": "out.sarif"}
    done = run_action(project, runner, **options, paths="-* *.py")
    assert done.status == 1
    assert [line.split(" ")[0] for line in done.out.splitlines()] == ["::error"]
    assert (project / "a.py").read_text() == KERNEL
    assert '"version": "2.1.0"' in (project / "out.sarif").read_text()
    assert not ran.exists() and not (project / "planted").exists()


def test_windows_has_its_programs_in_another_folder(tmp_path: Path, runner: Path) -> None:
    environment, project = runner / "pallas-lint", tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text(KERNEL)
    if not environment.exists():
        run_action(project, runner, python=sys.executable)
    (environment / "bin").rename(environment / "Scripts")
    try:
        done = run_action(project, runner, args="--isolated --jax-version 0.10.2", sarif_file="out.sarif")
    finally:
        (environment / "Scripts").rename(environment / "bin")
    assert (done.status, done.out[:8]) == (1, "::error ")
    assert '"version": "2.1.0"' in (project / "out.sarif").read_text()


def test_findings_are_annotations_and_a_sarif_file(tmp_path: Path, runner: Path) -> None:
    project = tmp_path / "project"
    (project / "src dir").mkdir(parents=True)
    (project / "src dir" / "a.py").write_text(KERNEL)
    (project / "b.py").write_text(KERNEL)
    options = {"python": sys.executable, "args": "--isolated --jax-version 0.10.2", "sarif_file": "out.sarif"}
    done = run_action(project, runner, **options)
    assert (done.status, done.outputs) == (1, "status=1\n")
    assert [line.split(" ")[0] for line in done.out.splitlines()] == ["::error"], "a name that is gone is one finding"
    assert '"version": "2.1.0"' in (project / "out.sarif").read_text()
    (project / "b.py").write_text("x = 1\n")
    assert run_action(project, runner, **options, paths="b.py").status == 0
