"""Captured programs that leave processes behind, in sessions of their own: these end with the run, and no others do."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack
from tests.probe.test_containment import running, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems let no process adopt orphans")

# A process that leaves its session, one that is forked twice as daemons are, and one that ignores SIGTERM.
# Each says that it is there before the program goes on.
PROGRAM = """\
import os, signal, sys, time
mark, how = sys.argv[1:]
SLEEP = "import pathlib, sys, time; pathlib.Path(sys.argv[2]).touch(); time.sleep(600)"

def start(name):
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    os.execv(sys.executable, [sys.executable, "-S", "-c", SLEEP, mark, name])

if os.fork() == 0:
    os.setsid()
    start("session")
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    start("daemon")
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setsid()
    start("deaf")
while not all(map(os.path.exists, ("session", "daemon", "deaf"))):
    time.sleep(0.01)
open("begun", "w").close()
if how == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if how == "hang":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    return folder


@pytest.fixture
def mark() -> str:
    """An argument that only the processes of one test have."""
    return f"mark-{uuid.uuid4().hex}"


@pytest.fixture
def bystander(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon of the user's own, which no run has started."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(600)", f"{mark}-bystander"], start_new_session=True
    )
    yield process
    process.kill()
    process.wait()


# Not through Python's runner: the interpreter that runs it is named by a shell.
def command(mark: str, how: str) -> list[str]:
    return ["probe", "--capture", "--", "sh", "-c", f'exec "{sys.executable}" program.py {mark} {how}']


@pytest.mark.parametrize(("how", "reported"), [("end", ""), ("crash", "the program ended with status -11")])
def test_nothing_is_left_of_a_program(
    project: Path, mark: str, bystander: subprocess.Popen[bytes], how: str, reported: str
) -> None:
    ran = attack.run(*command(mark, how), cwd=project)
    assert ran.calm and ran.status == (2 if reported else 0) and reported in ran.err
    assert (project / "begun").exists()
    assert running(mark) == []
    assert bystander.poll() is None and running(f"{mark}-bystander")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_when_the_run_is_ended(project: Path, mark: str, sent: signal.Signals) -> None:
    process = subprocess.Popen(
        [attack.PROGRAM, *command(mark, "hang")], cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        assert wait_for((project / "begun").exists)
        assert len(running(mark)) == 4
        process.send_signal(sent)
        _, stderr = process.communicate(timeout=attack.SECONDS)
        assert "Traceback" not in stderr
        assert wait_for(lambda: not running(mark)), "processes are left"
    finally:
        process.kill()


def test_a_program_that_does_not_start_is_an_error(project: Path) -> None:
    (project / "text").write_text("no program")
    (project / "text").chmod(0o755)
    ran = attack.run("probe", "--capture", "--", "./text", cwd=project)
    assert ran.calm and ran.status == 2
    assert ran.err == "pallas-lint: error: cannot run ./text: Exec format error\n"


def test_a_program_has_the_signals_that_it_would_have(project: Path) -> None:
    """Of what Python ignores, and of what the guard blocks, nothing reaches it."""
    show = "grep -E 'Sig(Blk|Ign)' /proc/self/status >&2"
    ran = attack.run("probe", "--capture", "-q", "--", "sh", "-c", show, cwd=project)
    plain = subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True)
    assert ran.err.splitlines() == plain.stderr.splitlines()
