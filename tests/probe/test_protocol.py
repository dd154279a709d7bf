"""What the probe and its worker say to each other: messages that are right are read, others make one clear error."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.probe import client
from pallas_lint.probe.protocol import ProtocolError, read_event, read_request
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target

if TYPE_CHECKING:
    from pathlib import Path

END: dict[str, Any] = {
    "event": "end", "task": "grid:0", "launch": 0, "stage": "grid", "target": None, "ok": False, "seconds": 0,
    "problems": [{"kind": "raised", "type": "E", "message": "m", "places": [{"file": "/k.py", "line": 1}]}],
}  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        {"event": "begin", "task": "load"},
        {"event": "died", "task": None, "reason": "exit", "status": -6, "output": ""},
        {
            "event": "compile",
            "launch": 0,
            "target": "tpu",
            "file": "f",
            "ins": [[[8], "f32", None]],
            "outs": [],
            "axes": {"x": 4},
            "over": None,
            "options": {"xla_tpu_scoped_vmem_limit_kib": "65536"},
        },
        END,
        {**END, "added": "by a later version"},
    ],
)
def test_events_are_read(event: dict[str, Any]) -> None:
    assert read_event(json.dumps(event)) == event


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", "no message: ''"),
        ("[1]", "no message: '[1]'"),
        (b"\xff{}", "no message"),
        ('{"task": "load"}', "there is no event None"),
        ('{"event": "begun"}', "there is no event 'begun'"),
        ('{"event": "begin"}', "event 'begin': `task` is missing"),
        ('{"event": "error", "message": 3}', "event 'error': `message` is 3"),
        ('{"event": "parts", "parts": {"jax": 4}}', "event 'parts': `parts.jax` is 4"),
        (json.dumps({**END, "launch": True}), "event 'end': `launch` is true"),
        (json.dumps({**END, "stage": "fly"}), "event 'end': `stage` is \"fly\""),
        (json.dumps({**END, "problems": [{"kind": "raised"}]}), "event 'end': `problems.0` is {\"kind\": \"raised\"}"),
        (json.dumps({**END, "problems": [{"kind": "odd", "message": "m"}]}), "`problems.0`"),
        (
            '{"event": "compile", "launch": 0, "target": "", "file": "", "ins": [[[8]]], "outs": [], "axes": {}, '
            '"over": null, "options": {}}',
            "`ins.0` is [[8]]",
        ),
    ],
)  # fmt: skip
def test_others_are_reported(line: str | bytes, text: str) -> None:
    with pytest.raises(ProtocolError) as reported:
        read_event(line)
    assert text in str(reported.value) and "\n" not in str(reported.value)


def test_requests_of_the_probe_are_read(tmp_path: Path) -> None:
    requested: list[Any] = []

    class Told(client.Worker):
        def send(self, request: Any) -> Any:
            requested.append(request)
            return iter(())

    spec = parse_target("k.py::f", ["f32[8,128]", "{'a': [bf16[2], (1,)]}", "bm=f32"])
    Session(Told("python", tmp_path), tmp_path, ProbeOptions(("tpu",), "grid")).probe(spec)
    assert read_request(json.dumps(requested[0]))["timeout"] == 120.0
    del requested[0]["args"]
    with pytest.raises(ProtocolError, match="`args` is missing"):
        read_request(json.dumps(requested[0]))


def test_an_unreadable_worker_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = tmp_path / "main.py"
    main.write_text('input()\nprint(\'{"event": "begin", "task": "load"}\')\nprint(\'hello\', flush=True)\ninput()\n')
    monkeypatch.setattr(client, "MAIN", main)
    with client.Worker(sys.executable, tmp_path) as worker:
        result = Session(worker, tmp_path, ProbeOptions()).probe(parse_target("k.py::f", []))
    assert result.errors == ["the worker is not understood: no message: 'hello'"]
