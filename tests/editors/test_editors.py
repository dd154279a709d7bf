"""Neovim and Emacs, without a screen, with the server as their users start it.

A missing editor is a failure: `apt-get install neovim emacs-nox elpa-eglot`, or name the ones left out on purpose in
PALLAS_LINT_WITHOUT_EDITORS=nvim,emacs. Other versions than those on PATH: NVIM=..., EMACS=...
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.test_protocol import CODE

HERE = Path(__file__).parent
SERVER = [str(Path(sys.executable).with_name("pallas-lint")), "server"]
LEFT_OUT = [name for name in os.environ.get("PALLAS_LINT_WITHOUT_EDITORS", "").split(",") if name]

pytestmark = pytest.mark.slow


def binary(name: str) -> str:
    """The editor to run; fails where there is none."""
    if name in LEFT_OUT:
        pytest.skip(f"{name} is left out by PALLAS_LINT_WITHOUT_EDITORS")
    found = shutil.which(os.environ.get(name.upper(), name))
    assert found, f"no {name}: apt-get install neovim emacs-nox elpa-eglot, or PALLAS_LINT_WITHOUT_EDITORS={name}"
    return found


def run(command: list[str], folder: Path) -> list[str]:
    """What a session checked; fails with the session's output where a check did."""
    file = folder / "kernels.py"
    file.write_text(CODE)
    home = folder / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "XDG_STATE_HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "EDITED_FILE": str(file),
        "SERVER_COMMAND": json.dumps(SERVER),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
    )
    lines = [line.strip() for line in done.stdout.splitlines()]
    checked = [line.removeprefix("ok - ") for line in lines if line.startswith("ok - ")]
    assert done.returncode == 0 and not [line for line in lines if line.startswith("not ok")], (
        f"{done.stdout}\n{done.stderr}"
    )
    return checked


CHECKS = {
    "diagnostics",
    "hover",
    "quick-fix offered",
    "finding gone",
    "fix all offered",
    "fixed",
    "file on disk",
    "probe refused",
    "the message says how to allow it",
    "other settings",
    "stopped",
    "restarted",
}


def test_neovim(tmp_path: Path) -> None:
    script = HERE / "session.lua"
    checked = run([binary("nvim"), "--headless", "-u", "NONE", "-n", "-c", f"luafile {script}", "-c", "cq"], tmp_path)
    assert set(checked) >= CHECKS | {"semantic tokens"}


def test_emacs(tmp_path: Path) -> None:
    emacs = binary("emacs")
    # Debian installs eglot for Emacs before 29 beside it; `-Q` leaves out where.
    load = [f"--directory={path}" for path in sorted(Path("/usr/share/emacs/site-lisp/elpa-src").glob("*"))]
    version = subprocess.run([emacs, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    if int(version.partition(".")[0]) >= 29:
        load = []
    checked = run([emacs, "-Q", "--batch", *load, "--load", str(HERE / "session.el")], tmp_path)
    assert set(checked) >= CHECKS
