"""Runs of the real program in a folder that means harm, under limits of memory and time.

A run that passes a limit of memory ends in an error of the program; one that passes the limit of time is killed and
fails the test. The limits are far above what any honest folder costs: tests say nothing about how long something takes.

Starts cost more than what is tested: put many attacks into one folder and look at the one run from many sides.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from attrs import frozen

from tests.cli.invocation import KERNEL
from tests.server.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(sys.executable).with_name("pallas-lint"))
MEMORY = 1 << 30  # bytes of address space, for each process
SERVER_MEMORY = 2 << 30  # its threads reserve more than they use
SECONDS = 300.0
# What a run says when something got through to it that it did not expect.
BREAKDOWNS = ("Traceback", "MemoryError", "RecursionError", "internal error")

# KERNEL has one finding, PAL301 on line 14, with a safe fix.
FIXED = KERNEL.replace("(i * 8, 0)", "(i, 0)")


@frozen
class Ran:
    """What a run came to."""

    status: int
    out: str
    err: str

    @property
    def calm(self) -> bool:
        """Whether it ended as the contract has it: with a verdict or a clear error, and nothing broke."""
        return self.status in (0, 1, 2) and not any(word in self.out + self.err for word in BREAKDOWNS)


def run(
    *arguments: str | Path,
    cwd: Path,
    home: Path | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    memory: int = MEMORY,
    seconds: float = SECONDS,
) -> Ran:
    """`pallas-lint ARGUMENTS` in `cwd`. Without a `home` the user's folder is `cwd`'s sibling `home`."""
    return _run([PROGRAM, *map(str, arguments)], cwd, _environment(cwd, home, env), stdin, memory, seconds)


def hook(
    name: str,
    *files: str,
    cwd: Path,
    home: Path | None = None,
    env: Mapping[str, str] | None = None,
    memory: int = MEMORY,
    seconds: float = SECONDS,
) -> Ran:
    """The hook `name` on `files`, started as pre-commit starts it: the words of its entry, then the names of files."""
    entries = {each["id"]: each for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    program, *words = [*shlex.split(entries[name]["entry"]), *entries[name].get("args", ())]
    assert program == "pallas-lint"
    return _run([PROGRAM, *words, *files], cwd, _environment(cwd, home, env), b"", memory, seconds)


def server(
    *options: str,
    cwd: Path,
    home: Path | None = None,
    env: Mapping[str, str] | None = None,
    memory: int = SERVER_MEMORY,
) -> Wire:
    """A server process in `cwd` for a `with` block; `initialize` opens the session.

    Waiting for a message of a server that hangs fails after `tests.server.wire.LIMIT` seconds.
    """
    return Wire(_limited([PROGRAM, "server", *options], memory), cwd=cwd, env=_environment(cwd, home, env))


def _environment(cwd: Path, home: Path | None, env: Mapping[str, str] | None) -> dict[str, str]:
    """That of a user whose folder is `home`, without settings of jax or colours."""
    home = home or cwd.parent / "home"
    home.mkdir(exist_ok=True)
    reported = (
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "NO_COLOR",
        "FORCE_COLOR",
        *(n for n in os.environ if n.startswith("XDG_")),
    )
    return {
        **os.environ,
        **dict.fromkeys(reported, ""),
        "HOME": str(home),
        **(env or {}),
    }  # empty is as good as not set


def _limited(command: list[str], memory: int) -> list[str]:
    # The shell sets the limit and becomes the program: from outside a process is limited only once it runs.
    return ["/bin/sh", "-c", 'ulimit -v "$0" && exec "$@"', str(memory // 1024), *command]


def _run(command: list[str], cwd: Path, env: dict[str, str], stdin: bytes, memory: int, seconds: float) -> Ran:
    process = subprocess.Popen(
        _limited(command, memory),
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its own processes too
        out, err = process.communicate()
        shown = shlex.join(command)
        raise AssertionError(f"{shown} does not end\n{out.decode('utf-8', 'replace')[-2000:]}") from None
    return Ran(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
