"""Runs the probe as users do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tests.rules.interpreted import python

HERE = Path(__file__).parent
KERNELS = HERE / "kernels.py"
X = "f32[32,128]"
# What a run looks like where neither libtpu nor jax's version plays a part.
WITHOUT_COMPILER = ("--stage", "interpret")


def run(*arguments: str, cwd: Path = HERE, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pallas_lint", "probe", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **(env or {})},
        check=False,
    )


def probe(function: str, *arguments: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    done = run(f"kernels.py::{function}", *arguments, "--python", python(), "--output-format", "json")
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout), done


@cache
def jax_version() -> tuple[int, ...]:
    told = subprocess.run(
        [python(), "-c", "from importlib.metadata import version as v; print(v('jax'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(int(part) for part in told.stdout.strip().split(".")[:3])


def line_of(text: str) -> int:
    return next(at for at, line in enumerate(KERNELS.read_text().splitlines(), 1) if text in line)
