"""A stand-in for the interpreter that probes: it answers with events that were written down, and waits in between.

So it is seen what is shown while a probe goes on, without jax and without a clock.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

WAIT = "wait"  # in place of an event: until `go` was called as often
SCRIPT = """#!{python}
import json, pathlib, sys, time
here = pathlib.Path(__file__).parent
for line in sys.stdin:
    waited = 0
    for event in json.loads((here / "events.json").read_text()):
        if event == "wait":
            waited += 1
            while not (here / f"go-{{waited}}").exists():
                time.sleep(0.01)
        else:
            print(json.dumps(event), flush=True)
    print(json.dumps({{"event": "done"}}), flush=True)
"""


def make(folder: Path, events: list[Any]) -> Path:
    """The program, in a new folder of its own."""
    folder.mkdir()
    (folder / "events.json").write_text(json.dumps(events))
    program = folder / "python"
    program.write_text(SCRIPT.format(python=sys.executable))
    program.chmod(0o755)
    return program


def go(program: Path, times: int = 1) -> None:
    """Let it go on after it has waited so often."""
    (program.parent / f"go-{times}").touch()


def launch(file: Path, line: int, kernel: str = "kernel", **facts: Any) -> dict[str, Any]:
    """The event that describes a launch on a line of a file."""
    place = {"file": str(file), "line": line, "column": 1}
    reported: dict[str, Any] = {"event": "launch", "launch": 0, "kind": "pallas_call", "kernel": kernel, "times": 1}
    reported |= dict.fromkeys(("backend", "semantics", "memory", "picture", "causes"))
    reported |= dict.fromkeys(("interpret", "waits", "targets_guessed"), False)
    reported |= {name: [] for name in ("stack", "aliases", "reads", "guessed", "stages", "operands")}
    return {**reported, "place": place, "kernel_place": place, "grid": [1], "axes": {}, **facts}


def ended(stage: str, target: str | None = None, *, ok: bool | None = True, **more: Any) -> dict[str, Any]:
    """The event that says how a stage ended."""
    task = f"{stage}:0" + (f":{target}" if target else "")
    reported = {"event": "end", "task": task, "launch": 0, "stage": stage, "target": target}
    return {**reported, "ok": ok, "seconds": 0.1, **more}
