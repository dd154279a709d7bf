"""What a probed function does to its process, and an interrupt: nothing is left behind."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from pallas_lint.probe.worker import server
from tests.probe.running import HERE, X, probe, run
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


def running(mark: str) -> list[str]:
    """The processes that have `mark` among their arguments."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in file.read_bytes().split(b"\0"):
                found.append(file.parent.name)
        except OSError:
            continue
    return found


def wait_for(what: object, seconds: float = 300.0) -> bool:
    """Whether `what()` comes true in time."""
    assert callable(what)
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@needs_proc
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_leaves_no_process_behind(sent: int, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = subprocess.Popen(
        [sys.executable, "-m", "pallas_lint", "probe", "kernels.py::leaves_others_behind", X, "--python", python()],
        cwd=HERE, env={**os.environ, "MARK": str(mark)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
        # A shell's background jobs ignore SIGINT, and what they start does too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        assert wait_for(mark.exists)
        assert wait_for(lambda: running(str(mark))), "its arguments are readable a moment after it began"
        process.send_signal(sent)
        _, stderr = process.communicate(timeout=300)
        assert "Traceback" not in stderr
        assert wait_for(lambda: not running(str(mark))), "processes are left"
    finally:
        process.kill()


@needs_proc
def test_a_swarm_is_stopped() -> None:
    done = run("kernels.py::swarms", X, "--python", python(), "--timeout", "100")
    assert done.returncode == 2
    assert "stopped: it started more than a hundred processes" in done.stderr


def test_a_semaphore_never_signalled() -> None:
    report, done = probe("waits_for_ever", X, "--target", "tpu", "--stage", "lower", "--timeout", "30")
    assert [finding["code"] for finding in report["findings"]] == ["PAL910"]
    stages = {stage["stage"]: stage["ok"] for stage in report["launches"][0]["stages"]}
    assert stages["verify"] is False and stages["interpret"] is None and stages["lower"] is True
    assert done.returncode == 1


@pytest.mark.nightly
def test_a_wait_that_depends_on_data() -> None:
    report, done = probe("waits_for_ever_if_set", X, "--target", "tpu", "--stage", "lower", "--timeout", "30")
    assert [finding["code"] for finding in report["findings"]] == ["PAL905"]
    stages = {stage["stage"]: stage["ok"] for stage in report["launches"][0]["stages"]}
    assert stages["verify"] is None
    assert stages["interpret"] is False and stages["lower"] is True, "what comes after it goes on"
    assert done.returncode == 1


def slow_to_write(request: Any, emit: Any) -> None:
    """Two launches; libtpu is slow while it writes the schedule of the second. `ok`: whether it writes any."""
    writes = not request.get("unscheduled")
    for task in ("function:tpu", "compile:0:tpu", "compile:1:tpu"):
        if task in request["skip"]:
            continue
        emit({"event": "begin", "task": task, "share": 0.5})
        while writes and task.startswith("compile:1"):
            pass
        emit({"event": "end", "task": task, "ok": writes, "seconds": 0.0})


def test_a_compiler_that_is_slow_to_write_schedules_still_compiles() -> None:
    replies = io.StringIO()
    request = {"perf": True, "timeout": 20.0, "memory_limit": 1 << 33, "targets": ["tpu"]}
    server.Supervisor(cast("Any", request), replies, slow_to_write).run()
    events = [json.loads(line) for line in replies.getvalue().splitlines()]
    ended = {event["task"]: event["ok"] for event in events if event["event"] == "end"}
    assert ended == {"function:tpu": True, "compile:0:tpu": True, "compile:1:tpu": False}
    assert not any(event["event"] == "died" for event in events)


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "report.html"
    done = run("kernels.py::good", X, "--python", python(), "--stage", "grid", "--html", str(place))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "cannot be written" in done.stderr
