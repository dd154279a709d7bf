"""The report of the action for GitHub, in a checkout whose links lead out of it: nothing is written there."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from tests.adoption.action import run_action
from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = {"args": "--isolated --jax-version 0.10.2", "paths": "kernel.py"}


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A folder for temporary files in which the action finds this installation as its own."""
    python = tmp_path / "runner" / "pallas-lint" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    return tmp_path / "runner"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with links to a folder and to files outside of it, some of which do not exist."""
    folder, outside = tmp_path / "project", tmp_path / "outside"
    for place in (folder / "real" / "deep", outside / "sub"):
        place.mkdir(parents=True)
    for place in (folder, folder / "real", outside):
        (place / "kernel.py").write_text(attack.KERNEL)
    (outside / "authorized_keys").write_text("kept")
    links = {
        "reports": outside,
        "real/reports": outside,
        "real/up": tmp_path,
        "chain": "reports",
        "inner": "real",
        "out.sarif": outside / "authorized_keys",
        "new.sarif": outside / "new",
        "inner.sarif": "real/kernel.py",
        "loop": "loop",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file() and not file.is_symlink()}


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("reports/x", "."),
        ("reports/sub/x", "."),
        ("reports/authorized_keys", "."),
        ("real/reports/x", "."),
        ("real/../reports/x", "."),
        ("real/up/x", "."),
        ("chain/x", "."),
        ("out.sarif", "."),
        ("new.sarif", "."),
        ("inner/x", "."),
        ("inner.sarif", "."),
        ("loop/x", "."),
        ("loop", "."),
        ("../x", "."),
        ("../../x", "real"),
        ("../reports/x", "real"),
        ("x", "reports"),
        ("{checkout}/reports/x", "."),
        ("{checkout}/out.sarif", "."),
        ("{checkout}/real/../reports/x", "."),
        ("{elsewhere}/reports/x", "."),
        ("{outside}/link", "."),
    ],
)
def test_no_link_leads_the_report_elsewhere(project: Path, runner: Path, name: str, folder: str) -> None:
    outside, elsewhere = project.parent / "outside", project.parent / "elsewhere"
    elsewhere.symlink_to(project)  # another name of the checkout, as in a runner whose work folder is a link
    (outside / "link").symlink_to(outside / "authorized_keys")
    before = everything(project.parent)
    named = name.format(checkout=project, outside=outside, elsewhere=elsewhere)
    checkout = elsewhere if "elsewhere" in name else project
    done = run_action(checkout, runner, **OPTIONS, sarif_file=named, working_directory=folder)
    assert (done.status, done.outputs) == (2, "status=2\n")
    assert done.err.startswith(("::error::sarif-file ", "pallas-lint: error: --report: ")) and done.err.count("\n") == 1
    after = everything(project.parent)
    after.pop(str(project.parent / "output"))
    assert after == before


@pytest.mark.parametrize(
    ("name", "folder", "place"),
    [
        ("x y.sarif", ".", "project/x y.sarif"),
        ("kept.sarif", ".", "project/kept.sarif"),
        ("real/deep/x", ".", "project/real/deep/x"),
        ("../x", "real", "project/x"),
        ("real/reports/../x", ".", "project/real/x"),
        ("{checkout}/real/x", ".", "project/real/x"),
        ("{elsewhere}/real/x", ".", "project/real/x"),
        ("{outside}/x", ".", "outside/x"),
    ],
)
def test_it_is_written_where_it_is_named(project: Path, runner: Path, name: str, folder: str, place: str) -> None:
    outside, elsewhere = project.parent / "outside", project.parent / "elsewhere"
    elsewhere.symlink_to(project)
    (project / "kept.sarif").write_text("of an earlier run")
    named = name.format(checkout=project, outside=outside, elsewhere=elsewhere)
    checkout = elsewhere if "elsewhere" in name else project
    done = run_action(checkout, runner, **OPTIONS, sarif_file=named, working_directory=folder)
    assert (done.status, done.outputs) == (1, "status=1\n"), done.err
    assert '"version": "2.1.0"' in (project.parent / place).read_text()
