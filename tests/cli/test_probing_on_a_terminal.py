"""What a terminal shows while a probe goes on: each stage as soon as it has ended, and nothing of it afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.stand_in_worker import WAIT, ended, go, launch, make

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no pseudo-terminals")
TARGET = "tpu:v5e"
LIMIT = 300.0  # seconds after which the program counts as hanging


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The interpreter that is named to the probe, which waits twice."""
    file = tmp_path / "k.py"
    file.write_text("def double(x):\n    return launch(x)\n")
    stages = [["grid", None], ["lower", TARGET], ["interpret", None]]
    events = [
        {"event": "begin", "task": "trace"},
        launch(file, 2, "double_kernel", stages=stages), ended("grid"), {"event": "begin", "task": "lower:0"}, WAIT,
        ended("lower", TARGET), {"event": "begin", "task": "interpret:0"}, WAIT, ended("interpret"),
    ]  # fmt: skip
    return make(tmp_path / "stand-in", events)


def probe(program: Path, stderr: int, *options: str, term: str = "xterm") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pallas_lint", "probe", "--python", str(program), *options, "k.py::double", "1"]
    return subprocess.Popen(
        command, cwd=program.parents[1], stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, "TERM": term}
    )


def report(program: Path, *options: str) -> bytes:
    """Output that goes to no terminal."""
    with probe(program, subprocess.DEVNULL, *options) as process:
        assert process.stdout is not None
        return process.stdout.read()


def read_until(terminal: int, part: bytes) -> bytes:
    """What a terminal shows until it shows this."""
    shown, end = b"", time.monotonic() + LIMIT
    while part not in shown:
        assert time.monotonic() < end, shown
        shown += os.read(terminal, 1 << 16)
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("output", ["full", "json"])
def test_stages_are_shown_as_they_end(program: Path, output: str) -> None:
    import pty

    terminal, end = pty.openpty()
    with probe(program, end, "--no-cache", "--output-format", output) as process:
        os.close(end)
        shown = read_until(terminal, b"grid \x1b[1;32mok")
        assert b"double_kernel" in shown and b"lower \x1b" not in shown
        go(program)
        shown = read_until(terminal, b"lower \x1b[1;32mok")
        assert b"interpret \x1b" not in shown
        assert process.poll() is None
        go(program, 2)
        assert process.stdout is not None
        written = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 0
    assert written == report(program, "--no-cache", "--output-format", output), "the report is the same as ever"
    assert b"double_kernel" in written and b"\x1b" not in written


@pytest.mark.parametrize("options", [("--quiet",), ()])
def test_nothing_is_shown_where_it_is_not_wanted(program: Path, options: tuple[str, ...]) -> None:
    go(program)
    go(program, 2)
    if options:
        import pty

        terminal, end = pty.openpty()
        with probe(program, end, "--no-cache", *options) as process:
            process.wait(LIMIT)
        os.set_blocking(terminal, False)
        with pytest.raises(BlockingIOError):
            os.read(terminal, 1)
        os.close(terminal)
        os.close(end)
    else:
        with probe(program, subprocess.PIPE, "--no-cache") as process:
            assert process.communicate()[1] == b""
