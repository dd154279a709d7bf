"""`--watch` in a folder with links: what they lead to is not watched, and the run goes on."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hostile import attack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPTIONS = ("--isolated", "--no-cache", "--jax-version", "0.10.2", "--output-format", "concise")


def test_links_are_not_followed_and_new_folders_are_seen(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for place in (project / "real", project / ".git", project / "node_modules" / "x", tmp_path / "outside" / "deep"):
        place.mkdir(parents=True)
    links = {"root": "/", "self": ".", "real/up": "..", "out": "../outside", "loop": "loop", "gone": "nowhere"}
    for name, target in links.items():
        (project / name).symlink_to(target)
    (project / "kernel.py").write_text("x = 1\n")
    process = subprocess.Popen(
        [attack.PROGRAM, "--watch", *OPTIONS], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    lines = output(process)
    try:
        wait(lines, "watching for changes")
        wait(lines, "kernel.py:14:", lambda: (project / "kernel.py").write_text(attack.KERNEL))
        (project / "real" / "new" / "deep").mkdir(parents=True)
        kernel = project / "real" / "new" / "deep" / "kernel.py"
        wait(lines, "real/new/deep/kernel.py:14:", lambda: kernel.write_text(attack.KERNEL))
        if Path("/proc/self/fdinfo").exists():  # Linux; the watch begins after the round that is printed
            next(lines for _ in lines if watches(process.pid) == 4)  # the project, real, new, deep
    finally:
        process.kill()
        process.communicate()


def output(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """What the process has written to both streams so far, each time that something came or a moment has passed."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    phrase = ""
    for _ in range(400):
        if process.poll() is not None:
            break
        for stream in select.select(streams, [], [], 0.3)[0]:
            phrase += os.read(stream.fileno(), 1 << 16).decode()
        yield phrase
    raise AssertionError(f"it ended with {process.returncode}, or did not do what was waited for: {phrase}")


def watches(process: int) -> int:
    """How many folders a process has watched by inotify."""
    watched = 0
    for file in Path("/proc", str(process), "fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            watched += file.read_text().count("inotify wd:")
    return watched


def wait(lines: Iterator[str], text: str, act: Callable[[], object] = str) -> None:
    """Wait for `text`, and until then `act` again and again: what happens before the watch begins is not seen."""
    for phrase in lines:
        if text in phrase:
            return
        act()
