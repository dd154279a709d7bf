"""An interrupt from the terminal while block sizes are tried: what is known is reported and kept."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.probe.running import run
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow
KERNELS = (Path(__file__).parents[1] / "cost" / "kernels.py").read_text()
MANY = ",".join(str(8 * at) for at in range(1, 40))


def interrupted(folder: Path, *words: str, when: str) -> tuple[int, str, str]:
    """Status and output of a probe that is interrupted, with all of its processes, once `when` is a file there."""
    command = [sys.executable, "-m", "pallas_lint", "probe", *words, "--python", python()]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs ignore SIGINT, and what they start does too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        while not (folder / when).exists() and process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=300)
    return process.returncode, out, errors


@pytest.mark.nightly
def test_a_table_goes_on_from_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "table.py").write_text("TUNED = {\n    256: 64,\n    512: 128,\n    1024: 256,\n}\n")
    words = (
        "kernels.py::rows", "f32[{m},128]", "--tune-table", "table.py", "--tune-key", "m", "--tune-value", "bm",
        "--target", "tpu:v5e", "--tune-results", "results.json",
    )  # fmt: skip
    status, _, errors = interrupted(tmp_path, *words, when="results.json")
    line = re.fullmatch(
        r"pallas-lint: interrupted: (\d+) calls are left; the same command goes on from there\n", errors
    )
    assert line is not None and status == 2, errors
    kept = json.loads((tmp_path / "results.json").read_text())["calls"]
    assert kept and len(kept) + int(line[1]) == 9
    done = run(*words, "--python", python(), cwd=tmp_path)
    assert done.stdout.startswith("tpu:v5e: 3 of 3 rows: ") and done.returncode in (0, 1), done.stderr
    after = json.loads((tmp_path / "results.json").read_text())["calls"]
    assert len(after) == 9 and kept.items() <= after.items()


def test_choices_that_were_tried_are_reported(tmp_path: Path) -> None:
    """Also where it is interrupted before the first of them; what is kept is what is reported."""
    marked = f"{KERNELS}\nimport pathlib\npathlib.Path(__file__).with_name('loaded').touch()\n"
    (tmp_path / "kernels.py").write_text(marked)
    words = ("kernels.py::rows", "f32[4096,128]", "--tune", f"bm={MANY}", "--target", "tpu:v5e",
             "--tune-results", "results.json")  # fmt: skip
    status, out, errors = interrupted(tmp_path, *words, "--output-format", "json", when="loaded")
    pattern = r"pallas-lint: interrupted: (\d+) of \d+ choices were tried; the same command goes on from there\n"
    line = re.fullmatch(pattern, errors)
    assert line is not None and status == 2, errors
    found = [each for target in json.loads(out)["tune"] for each in (*target["choices"], *target["unknown"])]
    results = tmp_path / "results.json"
    kept = json.loads(results.read_text())["calls"] if results.exists() else {}
    assert len(found) == int(line[1]) == len(kept)
