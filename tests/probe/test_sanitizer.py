"""What compute-sanitizer writes of a launch, as a stand-in for it writes it: test machines have no GPU."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.probe.worker.launches import locate
from pallas_lint.probe.worker.stages import sanitizer

if TYPE_CHECKING:
    from pathlib import Path

# Written by compute-sanitizer 2025.3 on an H200, jax 0.11.2.
OUTSIDE = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at kernel+0xd0
=========     by thread (64,0,0) in block (7,0,0)
=========     Access to 0x48ea002000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x48ea001000 of size 4,096 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at kernel+0xd0
=========     by thread (65,0,0) in block (7,0,0)
=========     Access to 0x48ea002004 is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x48ea001000 of size 4,096 bytes
=========
========= ERROR SUMMARY: 2 errors
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
DIED = CLEAN.replace("========= E", "========= Error: process didn't terminate successfully\n========= E")
REFUSED = "========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the documentation\n"


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What becomes of a good run where the program that stands for compute-sanitizer writes this."""

    def of(log: str) -> Any:
        (tmp_path / "log").write_text(log)
        code = f"import sys\nwords, text = sys.argv, open({str(tmp_path / 'log')!r}).read()\n"
        code += "open(words[words.index('--log-file') + 1], 'w').write(text)\n"
        code += f"open({str(tmp_path / 'request')!r}, 'w').write(sys.stdin.read())\n"
        program = tmp_path / "compute-sanitizer"
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(locate, "imported", lambda: ["/mine/oob.py", "/mine/other.py"])
        request: Any = {"file": "/mine/oob.py"}
        return sanitizer.beside({"ok": True, "problems": [], "detail": "NVIDIA H200: 2.5 µs"}, request, 3)

    return of


def test_nothing(reported: Any, tmp_path: Path) -> None:
    found = reported(CLEAN)
    assert found == {"ok": True, "problems": [], "detail": "NVIDIA H200: 2.5 µs; compute-sanitizer finds nothing"}
    assert json.loads((tmp_path / "request").read_text()) == {"file": "/mine/oob.py", "alone": 3}


def test_an_access_behind_an_array_is_reported_once(reported: Any) -> None:
    found = reported(OUTSIDE)
    assert found["ok"] is False
    [problem] = found["problems"]
    assert (problem["kind"], problem["type"], problem["places"]) == ("out-of-bounds", "write", [])
    assert problem["message"] == (
        "out of bounds: write of 4 bytes in global memory, 1 bytes after an array of 4,096, first in block (7,0,0)"
    )


def test_reads_and_writes_have_their_lines(reported: Any) -> None:
    text = OUTSIDE.replace("+0xd0", "+0xd0 in oob.py:15") + OUTSIDE.replace("write", "read")
    first, second = reported(text)["problems"]
    assert (first["type"], first["places"]) == ("write", [{"file": "/mine/oob.py", "line": 15}])
    assert (second["type"], second["places"]) == ("read", [])


@pytest.mark.parametrize("log", [REFUSED, DIED, ""])
def test_a_sanitizer_that_does_not_get_through_finds_nothing_wrong(reported: Any, log: str) -> None:
    found = reported(log)
    assert (found["ok"], found["problems"]) == (True, [])
    assert "does not get through it" in found["detail"]


def test_without_one_nothing_is_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome: Any = {"ok": True, "detail": "NVIDIA H200: 2.5 µs"}
    request: Any = {}
    assert sanitizer.beside(outcome, request, 0) is outcome
