"""Probed code that means harm, with a real jax: what it starts is ended, and what it names stays where it belongs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.probe.running import run
from tests.probe.test_containment import wait_for
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems let no process adopt orphans")


def marked(mark: Path) -> list[str]:
    """The processes that have the mark in their environment, as everything has that a run with it starts."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"MARK={mark}".encode() in file.read_bytes().split(b"\0"):
                found.append(file.parent.name)
        except OSError:
            continue
    return found


@on_linux
@pytest.mark.parametrize(
    ("function", "reported"),
    [
        ("leaves_daemons", "launches no kernel"),
        ("hangs_with_daemons", "stopped after 15 s"),
        ("kills_the_worker", "the process was ended by SIGKILL"),
        ("kills_the_guard", "the process was ended by SIGKILL"),
        ("fills_memory_in_a_daemon", "it took more memory than --memory-limit allows"),
    ],
)
def test_what_leaves_the_session_is_counted_and_ended(tmp_path: Path, function: str, reported: str) -> None:
    limits = ("--memory-limit", "1G", "--timeout", "100" if "memory" in function else "15")
    mark = tmp_path / "mark"
    done = run(f"hostile_kernels.py::{function}", "f32[8,128]", *limits, "--python", python(), env={"MARK": str(mark)})
    assert done.returncode == 2 and reported in done.stderr, done.stderr
    assert mark.exists() or "memory" in function
    # Without its guard, the worker itself is still about to end when what it started has.
    assert wait_for(lambda: not marked(mark)) if function == "kills_the_guard" else not marked(mark)


def test_names_of_kernels_name_no_other_folder(tmp_path: Path) -> None:
    models, outside = tmp_path / "deep" / "models", tmp_path / "outside.txt"
    outside.write_text("mine")
    models.mkdir(parents=True)
    (models / "same-9.pml").write_text("mine, too")
    (models / "CON-7.pml").symlink_to(outside)
    (models / "__-2.pml").write_text("")
    done = run(
        "hostile_kernels.py::named", "f32[8,128]", "--python", python(), "--stage", "verify", "--promela", str(models),
        "--html", str(tmp_path / "report.html"),
    )  # fmt: skip
    written = sorted(file.name for file in models.iterdir() if not file.is_symlink())
    assert len(written) == 13, written
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.parent != models} == {
        "deep", "deep/models", "outside.txt", "report.html",
    }  # fmt: skip
    assert outside.read_text() == "mine" and (models / "same-9.pml").read_text() == "mine, too"
    assert done.returncode == 2 and done.stderr.count("there is another file of that name") == 3
    for file in models.iterdir():
        text = file.read_text()
        if "c_code" in text:
            assert text.splitlines()[1].startswith("/* * / c_code { evil } /* on device 0")
    page = (tmp_path / "report.html").read_text()
    assert "c_code { evil }" in page and "\0" not in page


@pytest.mark.parametrize(
    ("function", "reported"),
    [
        ("endless_grid", "a device does more than 60000 things"),
        ("endless_loops", "a device does more than 60000 things"),
        pytest.param("many_copies", "not judged: ", marks=pytest.mark.nightly),  # half a minute of them
        ("huge_mesh", "a mesh of 1000000 devices, more than 64"),
    ],
)
def test_verify_names_what_is_too_much_for_it(function: str, reported: str) -> None:
    done = run(
        f"hostile_kernels.py::{function}", "f32[8,128]", "--python", python(), "--stage", "verify", "--timeout", "12",
        "--output-format", "json",
    )  # fmt: skip
    (launch,) = json.loads(done.stdout)["launches"]
    (stage,) = (each for each in launch["stages"] if each["stage"] == "verify")
    assert stage["ok"] is None and reported in stage["detail"]
    assert done.returncode == 0 and "Traceback" not in done.stderr
